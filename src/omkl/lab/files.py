"""Results as files."""

import json
from collections.abc import Mapping
from pathlib import Path

from omkl.persist import write_atomically


def write_json(path: Path, results: Mapping[str, object]) -> None:
    """Write `results` whole or not at all.

    A pipe or a device is written to as it stands, since a rename would put a file in its place.
    """
    text = json.dumps(results, indent=1, allow_nan=False) + "\n"
    if path.exists() and not path.is_file():
        path.write_text(text, encoding="utf-8")
    else:
        write_atomically(path.resolve(), text.encode())  # resolved, so that a link stays a link
