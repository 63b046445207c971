"""How good predictions were that were made before their rows were learned: counted as rows come, not part of files."""

from collections.abc import Sequence
from typing import Protocol, TypedDict

import numpy as np

from omkl.arrays import Array, Matrix
from omkl.explain.changes import Change
from omkl.online import Online

MAX_CHANGES = 1000
LOOK_EVERY = 250  # rows between looks for new experts, whose trial takes twice as many; to look costs some rows


class Stats(TypedDict):
    """What `stats` returns."""

    rows: int  # learned
    scored: int  # of them, those that were predicted before, in this process
    rmse: float | None  # of numbers
    accuracy: float | None  # of labels
    coverage: float | None  # of the intervals that were asked for, where there are any
    changes: list[int]  # rows at which experts began to learn that replaced others, as far as that was looked at


class Learned(Protocol):
    """What has learned rows."""

    @property
    def online(self) -> Online: ...
    def last_changes(self) -> list[Change]: ...


class Tally:
    """Sums of errors.

    >>> tally = Tally()
    >>> tally.numbers(np.array([1.0, 2.0]), np.array([1.0, 4.0]))
    >>> tally.stats(None)["rmse"] == 2 ** 0.5
    True
    """

    def __init__(self) -> None:
        self.scored = self.inside = self.intervals = 0
        self.squares = 0.0
        self.right: int | None = None  # None for numbers
        self.changes: list[int] = []
        self.events: list[Change] = []  # the same, with what had changed
        self._start: int | None = None  # of the experts in use
        self._looked = -LOOK_EVERY  # the row at which they were looked at

    def numbers(self, y_pred: Matrix, y: Matrix) -> None:
        """Predictions of numbers, (rows,) or (rows, outputs)."""
        self.scored += len(y)
        if len(y):
            with np.errstate(over="ignore", invalid="ignore"):  # the largest numbers have an infinite error
                errors = np.subtract(y_pred, y)
                self.squares += float(np.vdot(errors, errors)) * len(errors) / errors.size

    def number(self, y_pred: float, y: float) -> None:
        """One prediction of a number."""
        self.scored += 1
        self.squares += (y_pred - y) * (y_pred - y)  # a power would raise OverflowError

    def label(self, y_pred: object, y: object) -> None:
        """One prediction of a label."""
        self.scored += 1
        self.right = (self.right or 0) + bool(y_pred == y)

    def labels(self, y_pred: Sequence[object] | Array, y: Sequence[object] | Array) -> None:
        """Predictions of labels."""
        self.scored += len(y)
        self.right = (self.right or 0) + sum(bool(a == b) for a, b in zip(y_pred, y, strict=True))

    def ends(self, lower: Matrix, upper: Matrix, y: Matrix) -> None:
        """Intervals."""
        self.intervals += y.size
        self.inside += int(((lower <= y) & (y <= upper)).sum())

    def follow(self, core: Learned | None, least: int = LOOK_EVERY) -> None:
        """Notice whether other experts have taken over, if so many rows were learned since that was looked at last."""
        if core is None or 0 <= core.online.t - self._looked < least:
            return
        self._looked, start = core.online.t, core.online.started
        if start is not None and start != self._start:
            if self._start is not None:
                self.changes = [*self.changes, start][-MAX_CHANGES:]
            if self._start is not None or start:  # of a model that came from a file, the last one
                self.events = [*self.events, *core.last_changes()][-MAX_CHANGES:]
            self._start = start

    def stats(self, core: Learned | None) -> Stats:
        """All of it."""
        self.follow(core, least=1)
        n, labels = self.scored, self.right is not None
        return {
            "rows": 0 if core is None else core.online.t, "scored": n,
            "rmse": None if labels or not n else float(np.sqrt(self.squares / n)),
            "accuracy": None if self.right is None or not n else self.right / n,
            "coverage": self.inside / self.intervals if self.intervals else None, "changes": list(self.changes),
        }  # fmt: skip


def tally_of(estimator: object) -> Tally:
    """The tally of an estimator, made when it is first needed: constructors set parameters alone."""
    found: Tally | None = estimator.__dict__.get("_tally")
    return found or estimator.__dict__.setdefault("_tally", Tally())
