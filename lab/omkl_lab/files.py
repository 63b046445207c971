"""Results as files: JSON, and lines of JSON, there whole or not at all."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

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


def read_json(path: Path) -> Any:
    """What the file holds, None where there is none."""
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


def write_lines(path: Path, lines: Iterable[Any]) -> None:
    """All lines, or the file as it was."""
    write_atomically(path, "".join(json.dumps(line, allow_nan=False) + "\n" for line in lines).encode())


def read_lines(path: Path) -> list[Any]:
    """Whole lines; a torn last one is what a killed process was about to say."""
    if not path.is_file():
        return []
    lines = path.read_text(encoding="utf-8").split("\n")[:-1]
    out = []
    for number, line in enumerate(lines, 1):
        try:
            out.append(json.loads(line))
        except ValueError:
            raise ValueError(f"{path}, line {number}: not JSON; remove the file to start anew") from None
    return out


def brief(x: float) -> float:
    """Five digits, which are enough for tables and pictures: more would be noise.

    >>> brief(0.123456789)
    0.12346
    """
    return float(f"{x:.5g}")
