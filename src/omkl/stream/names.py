"""The columns that options name, checked against those that the data has: a misspelt name is refused, not ignored."""

import difflib
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from omkl.stream.raw import DataError

_NUMBER = re.compile(r"[-+]?\d+([.,]\d+)?")
SHOWN = 20  # columns that a message lists


@dataclass(frozen=True)
class NamedColumns:
    """Columns that the data must have, each with the option that names it."""

    needed: dict[str, str] = field(default_factory=dict)  # by option: every file must have it
    named: dict[str, tuple[str, ...]] = field(default_factory=dict)  # by option: the first file must have them
    learned: tuple[str, ...] = ()  # of a model: the data must have at least one of them

    def check_needed(self, where: str, present: Collection[str], advice: str = "") -> None:
        """Refuse a file without a column that every file must have."""
        self._check(where, self.needed.items(), present, advice)

    def check_named(self, where: str, present: Collection[str], advice: str = "") -> None:
        """Refuse data without a column that an option names."""
        self._check(where, self._named(), present, advice)

    def check_learned(self, where: str, present: Collection[str]) -> None:
        """Refuse data without any column that the model has learned from."""
        if self.learned and not set(self.learned) & set(present):
            raise DataError(
                f"{where}: no column in common with the model, which has learned from {listed(self.learned)}; "
                f"the columns are {listed(present)}"
            )

    def absent(self, present: Collection[str]) -> list[str]:
        """What to say about columns that an option names and that are not there yet."""
        return [
            f"{name!r} ({option}){suggestion(name, present)}" for option, name in self._named() if name not in present
        ]

    def _named(self) -> list[tuple[str, str]]:
        return [(option, name) for option, names in self.named.items() for name in names]

    def _check(self, where: str, wanted: Iterable[tuple[str, str]], present: Collection[str], advice: str = "") -> None:
        for option, name in wanted:
            if name not in present:
                near = suggestion(name, present)
                raise DataError(
                    f"{where}: there is no column {name!r} ({option}){near}{' The' if near else '; the'} columns are "
                    f"{listed(present)}{advice}"
                )


def advice_about_header(names: Collection[str]) -> str:
    """What may be wrong with the first line of a CSV file that lacks a column.

    >>> advice_about_header(["a", "b"]), advice_about_header(["7", "Bonn"])
    ('', '; if the first line is data, pass --no-header: columns are then called 1, 2, 3, ...')
    """
    if len(names) == 1:
        return "; its first line must be the header, with no line before it, and --delimiter says what separates them"
    if any(_NUMBER.fullmatch(name) for name in names):
        return "; if the first line is data, pass --no-header: columns are then called 1, 2, 3, ..."
    return ""


def suggestion(name: str, known: Iterable[str]) -> str:
    """The known name that is nearest to one that is not known, as a question; nothing where none is near.

    >>> suggestion("tempc", ["wind", "temp_c"]), suggestion("x", ["wind"])
    (", did you mean 'temp_c'?", '')
    """
    lower = {text.lower(): text for text in known}
    near = difflib.get_close_matches(name.lower(), lower, n=1)
    return f", did you mean {lower[near[0]]!r}?" if near else ""


def listed(names: Iterable[str]) -> str:
    """The first of these names, for a message.

    >>> listed(["a", "b"])
    "'a', 'b'"
    """
    every = list(names)
    more = f" and {len(every) - SHOWN} more" if len(every) > SHOWN else ""
    return ", ".join(repr(name) for name in every[:SHOWN]) + more
