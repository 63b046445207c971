"""Checks of what a file of a run claims, before a run relies on it."""

from omkl.algorithms.graph_mkl.constants import LEVELS
from omkl.algorithms.invariants import is_count
from omkl.persist import demand
from omkl.validation import is_number


def count(value: object, what: str, least: int = 0) -> int:
    """A whole number, not negative."""
    demand(is_count(value) and isinstance(value, int) and value >= least, f"{what} must be a count, got {value!r}")
    assert isinstance(value, int)
    return value


def number(value: object, what: str) -> float:
    """A number that a double can hold."""
    demand(is_number(value), f"{what} must be a number, got {value!r}")
    assert isinstance(value, (int, float))
    return value


def coverage(value: object) -> float:
    """That of an interval."""
    share = number(value, "the coverage of an interval")
    demand(0 < share <= LEVELS[-1], f"the coverage of an interval must be above 0, at most {LEVELS[-1]}, got {value!r}")
    return share


def string(value: object, what: str) -> str:
    """A string."""
    demand(isinstance(value, str), f"{what} must be text, got {value!r}")
    return str(value)


def text(value: object, what: str) -> str:
    """A string of characters that can be written, as those of a table can; half a surrogate pair is none."""
    found = string(value, what)
    demand(found == found.encode(errors="replace").decode(), f"{what} must be valid text, got {value!r}")
    return found


def strings(value: object, what: str) -> list[str]:
    """A list of strings."""
    demand(isinstance(value, list), f"{what} must be a list, got {value!r}")
    assert isinstance(value, list)
    return [string(part, what) for part in value]


def flag(value: object, what: str) -> bool:
    """True or false."""
    demand(isinstance(value, bool), f"{what} must be true or false, got {value!r}")
    return bool(value)


def one_of(value: object, known: tuple[object, ...], what: str) -> None:
    """One of a few values."""
    demand(any(value is each or (isinstance(value, str) and value == each) for each in known),
           f"{what} must be one of {known}, got {value!r}")  # fmt: skip


def mapping(value: object, what: str) -> dict[str, object]:
    """A dictionary."""
    demand(isinstance(value, dict), f"{what} must be a mapping, got {value!r}")
    assert isinstance(value, dict)
    return value
