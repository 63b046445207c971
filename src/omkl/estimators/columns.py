"""Which column of a learner's rows a feature has, and room for features that come later.

The first features are added to the problem by their names. Features that come later, one row after another, are given
columns that are there already: room is made for as many as there are, so that most new features cost nothing. Beyond a
limit features share columns, and which one is a hash of the name: memory is bounded however many names there are.
Statistics of columns of many categories share none, since the numbers of buckets cannot be added to anything.
"""

import copy
import zlib
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from omkl import algorithms
from omkl.algorithms.base import AlgorithmSettings
from omkl.arrays import Matrix, Vector
from omkl.names import ID_PARTS

MAX_NAMED = 16  # with more features than this, those that come later are not added by their names


class Limits(NamedTuple):
    own: int  # features that have a column of their own
    shared: int  # columns that all others share
    room: int  # columns that are made first for features to come
    statistics: int = 300  # that have columns of their own behind these

    @property
    def most(self) -> int:
        """Columns that there may ever be behind those that were added by their names."""
        return self.own + self.shared + self.statistics


OF_SPARSE = Limits(4096, 1024, 64)  # with an algorithm that has sparse inputs
OF_OTHERS = Limits(512, 128, 16)  # with another


class Columns:
    """The features known so far.

    Parameters
    ----------
    names
        In the order of their columns.
    limits
        How many there may be.
    named
        The number of those that were added by their names, the first; all of them unless given.
    room
        Columns behind these, of which the first have the rest of the names.
    """

    def __init__(self, names: Iterable[Hashable], limits: Limits, named: int | None = None, room: int = 0) -> None:
        self.names = tuple(names)
        self.limits, self.room = limits, room
        self.named = len(self.names) if named is None else named
        self.index: dict[Hashable, int] = {name: k for k, name in enumerate(self.names)}

    def _extended(self, new: Sequence[Hashable], room: int) -> Self:
        """With these names behind the others."""
        other = copy.copy(self)
        other.names, other.room = (*self.names, *new), room
        other.index = self.index.copy()  # many times faster than to make it again
        other.index.update(zip(new, range(len(self.names), len(other.names)), strict=True))
        return other

    @property
    def number(self) -> int:
        """Values of a row."""
        return self.named + self.room

    @property
    def own(self) -> tuple[Hashable, ...]:
        """The features that have a column of their own."""
        if not self.room:
            return self.names
        first = max(self.limits.own, self.named)
        return (*self.names[:first], *filter(is_statistic, self.names[first:]))

    @property
    def full(self) -> bool:
        """Whether a name that is not known shares its column."""
        return bool(self.room) and len(self.names) >= self.limits.own

    @property
    def statistics(self) -> int:
        """Statistics whose columns are behind the limit of features."""
        return sum(map(is_statistic, self.names[self.limits.own :])) if self.room else 0

    def _has_own(self, name: Hashable) -> bool:
        """Whether a feature that is not known will have a column of its own, though there are as many as may be."""
        return is_statistic(name) and self.statistics < self.limits.statistics

    @property
    def sharing(self) -> bool:
        """Whether features share columns."""
        return bool(self.room) and len(self.names) > self.limits.own

    def as_text(self) -> Self:
        """With the same names, all of them text."""
        return type(self)(map(str, self.names), self.limits, self.named, self.room)

    def with_names(self, new: Sequence[Hashable]) -> Self:
        """With further features, each added by its name."""
        return type(self)((*self.names, *new), self.limits)

    def with_late(self, new: Sequence[Hashable]) -> Self:
        """With further features, in columns that are there already as far as there are."""
        if not self.room and len(self.names) + len(new) <= MAX_NAMED:
            return self.with_names(new)
        free = max(self.limits.own - len(self.names), 0)
        own, others = list(new[:free]), new[free:]
        statistics = [name for name in others if is_statistic(name)][: self.limits.statistics - self.statistics]
        own += statistics
        names = {self.shared_name(name) for name in others if name not in statistics}
        shared = sorted(name for name in names if name not in self.index)
        room = max(self.room, self.limits.room)
        while room < len(self.names) + len(own) + len(shared) - self.named:
            room *= 2
        most = self.limits.own + self.limits.shared + self.statistics + len(statistics)
        return self._extended([*own, *shared], min(room, most))

    def with_often(self, new: Sequence[Hashable], row: set[Hashable], X: Matrix) -> Self:
        """With the further features of this row; all rows before it, X, will be learned again.

        Where features become many, only those that are in most rows are added by their names.
        """
        if len(self.names) + len(new) <= MAX_NAMED:
            return self.with_names(new)
        present = (~np.isnan(X)).sum(axis=0) + np.array([name in row for name in self.names])
        often = 2 * present > len(X) + 1
        named = [name for name, keep in zip(self.names, often, strict=True) if keep] or [""]
        start = type(self)(named, self.limits, len(named), self.limits.room)
        return start.with_late([name for name in (*self.names, *new) if name not in start.index])

    def shared_name(self, name: Hashable) -> str:
        """The name of the column that a feature shares with others."""
        code = zlib.crc32(str(name).encode(errors="surrogatepass"))
        return f"shared {code % self.limits.shared}"

    def place(self, name: Hashable) -> int | None:
        """The column of a feature; None if it has none."""
        if (place := self.index.get(name)) is None and self.full and not self._has_own(name):
            place = self.index.get(self.shared_name(name))
        return place

    def fill(self, row: Matrix, names: Iterable[Hashable], values: Iterable[float | Vector]) -> None:
        """Write the values of the known features to a row, or to the columns of rows; sums where they share one."""
        taken = set()
        for name, value in zip(names, values, strict=True):
            if (place := self.place(name)) is not None:
                row[place] = added(row[place], value) if place in taken else value
                taken.add(place)

    def rows_of(self, names: Sequence[Hashable], X: Matrix, missing: float) -> Matrix:
        """Rows with a value for each column, from rows of these features, of which those not known are left out."""
        known = len(self.names)
        if not self.room and tuple(names[:known]) == self.names:
            return np.ascontiguousarray(X[:, :known])
        rows = np.full((len(X), self.number), missing)
        self.fill(rows.T, names, X.T)
        return rows


def is_statistic(name: Hashable) -> bool:
    """Whether a feature is called like a statistic of a column of many categories."""
    return isinstance(name, str) and name.startswith(ID_PARTS)


def added(first: Vector, second: float | Vector) -> Vector:
    """The sums of values where NaN is a missing one; NaN where both are missing."""
    both: Vector = np.where(np.isnan(first), second, np.where(np.isnan(second), first, first + second))
    return both


def limits_of(learner: str) -> Limits:
    """How many features a learner may have."""
    return OF_OTHERS if algorithms.get(learner).widened is None else OF_SPARSE


def drawn(learner: str, columns: Columns) -> int:
    """How many columns have random frequencies; sparse inputs have none."""
    return columns.number if algorithms.get(learner).widened is None else columns.named


def problem_of(learner: str, settings: AlgorithmSettings, columns: Columns, seed: int) -> Any:
    """The problem with these columns: those that are not named are sparse inputs where the algorithm has any."""
    texts, widened = [str(name) for name in columns.names[: columns.named]], algorithms.get(learner).widened
    if widened is None:
        texts += [f"late {k}" for k in range(columns.room)]
    problem = algorithms.problem(learner, settings, names=texts, seed=seed)
    return problem if widened is None or not columns.room else widened(problem, columns.room)
