"""Reads and writes results as JSON and JSON Lines; files are replaced atomically."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from omkl.persist import write_atomically


def write_json(path: Path, results: Mapping[str, object]) -> None:
    """Write `results` atomically.

    A pipe or a device is written to directly, since an atomic rename would replace it by a regular file.
    """
    text = json.dumps(results, indent=1, allow_nan=False) + "\n"
    if path.exists() and not path.is_file():
        path.write_text(text, encoding="utf-8")
    else:
        write_atomically(path.resolve(), text.encode())  # resolved, so that a symbolic link remains one


def read_json(path: Path) -> Any:
    """The content of the file, or None if it does not exist."""
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


def write_lines(path: Path, lines: Iterable[Any]) -> None:
    """Replace the file by these lines, atomically."""
    write_atomically(path, "".join(json.dumps(line, allow_nan=False) + "\n" for line in lines).encode())


def read_lines(path: Path) -> list[Any]:
    """All complete lines; an incomplete last line, left by a killed process, is ignored."""
    if not path.is_file():
        return []
    lines = path.read_text(encoding="utf-8").split("\n")[:-1]
    out = []
    for number, line in enumerate(lines, 1):
        try:
            out.append(json.loads(line))
        except ValueError:
            raise ValueError(f"{path}, line {number}: not JSON; remove the file to start again") from None
    return out


def brief(x: float) -> float:
    """Round to five significant digits, enough for tables and figures.

    >>> brief(0.123456789)
    0.12346
    """
    return float(f"{x:.5g}")
