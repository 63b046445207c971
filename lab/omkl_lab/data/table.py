"""Reads CSV files of numbers; errors name the file, line and column."""

import csv
import gzip
import math
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np

from omkl.arrays import Matrix, Vector

TARGET = "target"  # name of the last column


class Table(NamedTuple):
    """Rows in file order, features and target separated."""

    columns: tuple[str, ...]  # of X
    X: Matrix  # (T, d)
    y: Vector  # (T,)


class BadTableError(ValueError):
    """The file is not a table of finite numbers with a target column."""


def read_table(path: Path, gaps: bool = False) -> Table:
    """Read a CSV file with one header line, the column `target` last; `.gz` is unpacked.

    gaps
        Drop rows with a missing value (`NaN`) instead of raising an error.
    """
    try:
        with opened(path) as file:
            header = next(csv.reader([file.readline()]), [])
            require_header(path, header)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # an empty file is reported below
                numbers = np.loadtxt(file, delimiter=",", ndmin=2, comments=None)
    except ValueError as error:
        if isinstance(error, BadTableError):
            raise
        raise explained(path, error) from None
    except (EOFError, gzip.BadGzipFile) as error:
        raise BadTableError(f"{path}: incomplete gzip file ({error}); download it again") from None
    if len(numbers) == 0:
        raise BadTableError(
            f"{path}, line 2, column 1: expected a row of {len(header)} numbers, but the file ends here"
        )
    whole = np.isfinite(numbers).all(axis=1)
    if numbers.shape[1] != len(header) or not (whole.all() or gaps):
        raise explained(path, None)
    return Table(tuple(header[:-1]), np.ascontiguousarray(numbers[whole, :-1]), numbers[whole, -1].copy())


def opened(path: Path) -> IO[str]:
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return path.open(encoding="utf-8-sig", newline="")


def require_header(path: Path, header: list[str]) -> None:
    if len(header) < 2 or header[-1].strip() != TARGET:
        last = f"{header[-1].strip()!r}" if header else "an empty line"
        raise BadTableError(
            f"{path}, line 1, column {max(len(header), 1)}: expected a header whose last column is named {TARGET!r}, "
            f"after at least one feature, got {last}; rename the column to be predicted and put it last"
        )


def explained(path: Path, error: ValueError | None) -> BadTableError:
    """The first error in the file, found by checking it cell by cell."""
    try:
        for message in faults(path):
            return BadTableError(f"{path}, {message}")
    except UnicodeDecodeError:
        pass
    return BadTableError(f"{path}: not a CSV file of numbers ({error})")


def faults(path: Path) -> Iterator[str]:
    with opened(path) as file:
        lines = csv.reader(file)
        header = next(lines)
        for row in lines:
            line = lines.line_num
            if not row:
                continue  # numpy skips empty lines too
            if len(row) != len(header):
                column = min(len(row), len(header)) + 1
                missing = " (the target is missing)" if len(row) == len(header) - 1 else ""
                yield f"line {line}, column {column}: expected {len(header)} cells, got {len(row)}{missing}"
            for column, (name, cell) in enumerate(zip(header, row, strict=False), 1):
                if not is_finite(cell):
                    shown = "an empty cell" if not cell.strip() else repr(cell.strip()[:40])
                    yield f"line {line}, column {column} ({name.strip()}): expected a finite number, got {shown}"


def is_finite(cell: str) -> bool:
    try:
        return math.isfinite(float(cell))
    except ValueError:
        return False
