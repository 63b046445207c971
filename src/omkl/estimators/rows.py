"""Single rows: dictionaries of cells, and how those of numbers are recognised."""

import math
from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from omkl.arrays import Vector
from omkl.engine import gather
from omkl.validation import is_missing

if TYPE_CHECKING:
    from omkl.encoder import Encoder

Row = dict[Hashable, float]
Cells = Mapping[Hashable, object]  # of a row: numbers, text, timestamps, None


def check_row(x: Cells) -> Vector:
    """The values of a row of numbers, which is refused before any of its features becomes known."""
    x = as_row(x)
    names, values = tuple(x), np.empty(len(x))
    if (found := gather(x, names, 0.0, values)) < 0:
        raise not_a_number(x, names[-1 - found])
    return values


def as_row(x: Cells) -> dict[Any, Any]:
    """A row as the engine reads it; what is no dictionary is refused."""
    if isinstance(x, dict):
        return x
    if not isinstance(x, Mapping):
        hint = "; use x.to_dict()" if hasattr(x, "to_dict") else ""
        raise TypeError(f"x must be a dictionary of features, such as {{'size': 3.5}}, got {type(x).__name__}{hint}")
    return dict(x)


def encoder_after(names: Sequence[Hashable], codes: int) -> "Encoder":
    """An encoder for what comes after rows of numbers with these names; so many numbers describe a target."""
    from omkl.encoder import Encoder, text_names, warn  # pyarrow takes time to load, and numbers do without

    encoder = Encoder.of_numbers(text_names(names), warn)
    encoder.codes = codes
    return encoder


def checked_cells(x: Cells) -> dict[Hashable, object]:
    """A row that can be learned later."""
    try:
        return dict(zip(x, check_row(x).tolist(), strict=True))
    except NotANumber:
        from omkl.encoder import of_row

        of_row(x)  # refuses what cannot be used
        return {name: None if is_missing(cell) else cell for name, cell in x.items()}


class NotANumber(Exception):
    """A cell that is no finite number."""


def not_a_number(x: Cells, name: Hashable) -> Exception:
    """The error of a row of features, which must be numbers; infinite ones are refused, others may be encoded."""
    try:
        infinite = math.isinf(x[name])  # type: ignore[arg-type]  # what is no number raises an error
    except (TypeError, ValueError, OverflowError):
        infinite = False
    if infinite:
        return ValueError(f"feature {name!r} must be a finite number, got {x[name]!r}; drop the row, or pass None")
    return NotANumber(name)


def in_order(names: Collection[Hashable]) -> list[Hashable]:
    """The order in which new features are added, whatever order they came in: numbers by value, then names.

    >>> in_order({"b", "10", "9", "a"})
    ['9', '10', 'a', 'b']
    """

    def rank(name: Hashable) -> tuple[bool, int, str]:
        text = str(name)
        return (False, int(text), "") if text.isdecimal() else (True, 0, text)

    return sorted(names, key=rank)
