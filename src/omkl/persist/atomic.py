"""Files that are written whole or not at all."""

import os
import secrets
from collections.abc import Iterable
from pathlib import Path

from omkl.errors import naming


def write_atomically(path: str | os.PathLike[str], *pieces: bytes | memoryview) -> None:
    """Write a temporary file beside `path`, flush it to the disk, then rename it; pipes and devices are written to."""
    write_pieces(path, pieces)


def write_pieces(path: str | os.PathLike[str], pieces: Iterable[bytes | memoryview]) -> None:
    """The same for pieces that are made one by one while they are written."""
    with naming(path):
        _write(Path(path).resolve(), pieces)


def _write(path: Path, pieces: Iterable[bytes | memoryview]) -> None:
    if path.exists() and not path.is_file():
        with open(path, "wb") as file:
            file.writelines(pieces)
        return
    temporary = path.with_name(f".omkl-{secrets.token_hex(8)}")  # short, whatever the length of the name
    try:
        with open(temporary, "xb") as file:
            file.writelines(pieces)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    flush_folder(path.parent)


def flush_folder(folder: Path) -> None:
    """Return when the names of the files in a folder are on the disk."""
    if hasattr(os, "O_DIRECTORY"):  # not on Windows
        found = os.open(folder, os.O_DIRECTORY)
        try:
            os.fsync(found)
        finally:
            os.close(found)
