"""Lags: past values of the target and of inputs as features of a row that is predicted some rows ahead.

Rows are time steps. With horizon h the prediction for row t is made when row t - h has come, from what is known by
then: lag 1 is the value of row t - h, the last one, and lag k that of row t - h - k + 1. A value that is not known by
then is NaN: it lies before the first row, it is missing, or its target came later. For the same reason the target of
row t is learned just before row t + h is predicted, and a target that comes after row a just before row a + h.

A learner calibrates its intervals by predictions one row ahead, which are better than those h rows ahead.
`AheadIntervals` calibrates them by the errors that predictions h rows ahead turn out to have.
"""

from collections import deque
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, Self, TypeVar

import numpy as np

from omkl.algorithms.graph_mkl.constants import LEVELS, START_HALF_WIDTHS
from omkl.algorithms.graph_mkl.intervals import half_width
from omkl.arrays import Index, Matrix, Vector
from omkl.persist import Arrays, Json, claims, demand, float_array
from omkl.validation import is_whole, require

LARGEST_LAG = 10_000  # and horizon: so many values are stored for each series
MOST_LAGS = 1_000
MOST_VALUES = 10**6  # stored for a series
LARGEST_HALF_WIDTH = 1e6  # in units of the learner's own
GAIN_ROWS, LEAST_GAIN, MOST_GAIN = 2.0, 0.005, 0.05  # of the tracking of half widths: the first over the rows so far
X = TypeVar("X")  # the features of a row: an array, or a dictionary
ONE_SERIES = ""  # the name of the series where there is only one


class Lag(NamedTuple):
    """A feature: the value of a column some rows back."""

    name: str
    column: int  # 0 for the target, k for the k-th column
    lag: int


@dataclass(frozen=True)
class LagSettings:
    """Which past values are features, and how far ahead rows are predicted.

    Parameters
    ----------
    lags
        Lags of the target.
    columns
        Lags of inputs, by the name of the column. The value of the row itself is used only if 0 is among them.
    horizon
        How many rows ahead predictions are made.
    """

    lags: tuple[int, ...] = ()
    columns: dict[str, tuple[int, ...]] = field(default_factory=dict)
    horizon: int = 1

    @classmethod
    def make(cls, lags: object, columns: object = None, horizon: object = 1) -> Self:
        """From what a user gives; columns without lags of their own have those of the target.

        >>> LagSettings.make([2, 1], ["temp"]).columns
        {'temp': (1, 2)}
        """
        own = _whole("lags", lags if lags is not None else (), 1)
        given: dict[str, object] = {}
        if isinstance(columns, Mapping):
            given.update(columns)
        else:
            given.update(dict.fromkeys(_names(columns), own))
        for name in given:
            require(isinstance(name, str) and name != "target", "columns", "names of columns other than 'target'", name)
            require(bool(given[name] is not own or own), "lags", f"given, or those of column {name!r}", lags)
        settings = {name: _whole(f"lags of {name!r}", each, 0) for name, each in given.items()}
        require(bool(own or settings), "lags", "at least one whole number, such as [1, 2, 24]", lags)
        require(is_whole(horizon) and 1 <= int(horizon) <= LARGEST_LAG, "horizon",  # type: ignore[call-overload]  # is_whole has looked
                f"a whole number from 1 to {LARGEST_LAG}", horizon)  # fmt: skip
        made = cls(own, settings, int(horizon))  # type: ignore[call-overload]  # the same
        require(len(made.features) <= MOST_LAGS, "lags", f"at most {MOST_LAGS} features", len(made.features))
        stored = made.size * (1 + len(settings))
        require(stored <= MOST_VALUES, "lags", f"so few that a series stores at most {MOST_VALUES} values, those of "
                "the largest lag and the horizon for the target and each lagged column", stored)  # fmt: skip
        return made

    @property
    def features(self) -> tuple[Lag, ...]:
        """The features, by column and lag."""
        target = [Lag(f"target lag {k}", 0, k) for k in self.lags]
        others = [Lag(f"{name} lag {k}", c, k)
                  for c, (name, lags) in enumerate(self.columns.items(), 1) for k in lags if k]  # fmt: skip
        return (*target, *others)

    @property
    def replaced(self) -> list[str]:
        """The columns whose value in the row itself is not used."""
        return [name for name, lags in self.columns.items() if 0 not in lags]

    @property
    def size(self) -> int:
        """How many rows back the features of the next row reach."""
        return self.horizon + max((feature.lag for feature in self.features), default=1) - 1

    def body(self) -> Json:
        """As JSON, for model files."""
        columns = [[name, list(lags)] for name, lags in self.columns.items()]
        return {"lags": list(self.lags), "columns": columns, "horizon": self.horizon}

    @classmethod
    def from_body(cls, body: Json) -> Self:
        return cls.make(body["lags"], dict(body["columns"]), body["horizon"])


class Past:
    """The last values of one series, or of one for each key.

    A series takes `size` values for the target and for each lagged column.
    """

    def __init__(self, settings: LagSettings) -> None:
        self.settings = settings
        self.values: dict[Hashable, Matrix] = {}  # (size, 1 + columns), the newest last
        self.counts: dict[Hashable, int] = {}  # rows so far
        self.late: deque[tuple[int, int, float]] = deque()  # from which row on, of which row, the target

    def follow(self, values: Matrix, series: Sequence[Hashable] | None = None) -> tuple[Index, Matrix]:
        """The position of each of these rows in its series, and its lags; then their values belong to the past.

        `values` has a column for the target, NaN where it is not known, and one for each lagged input.
        """
        if series is None:
            return self._follow(ONE_SERIES, values)
        positions, lagged = np.empty(len(values), dtype=np.int64), np.empty((len(values), len(self.settings.features)))
        places: dict[Hashable, list[int]] = {}
        for row, name in enumerate(series):
            places.setdefault(name, []).append(row)
        for name, rows in places.items():
            positions[rows], lagged[rows] = self._follow(name, values[rows])
        return positions, lagged

    def arrive(self, position: int, target: float) -> int:
        """A target comes after its row; returns the position of the last row before it."""
        last = self.counts.get(ONE_SERIES, 0) - 1
        self.late.append((last + self.settings.horizon, position, target))
        if ONE_SERIES in self.values:
            self._use_late(self.values[ONE_SERIES], last + 1 - self.settings.size, last + 1)
        return last

    def next_row(self, series: Hashable = ONE_SERIES) -> Vector:
        """The lags of the row that comes next."""
        past = self.values.get(series)
        if past is None:
            return np.full(len(self.settings.features), np.nan)
        h, size = self.settings.horizon, self.settings.size
        return np.array([past[size - h - lag + 1, column] for _, column, lag in self.settings.features])

    def _follow(self, name: Hashable, values: Matrix) -> tuple[Index, Matrix]:
        size, h, features = self.settings.size, self.settings.horizon, self.settings.features
        n, start = len(values), self.counts.get(name, 0)
        past = self.values.get(name)
        if past is None:
            past = np.full((size, values.shape[1]), np.nan)
        block = np.vstack((past, values))  # row i is block[size + i]
        lagged = np.empty((n, len(features)))
        row = 0
        while row < n:
            stop = min(n, self.late[0][0] - start) if self.late else n  # up to where the next late target counts
            for k, (_, column, lag) in enumerate(features):
                first = size - h - lag + 1
                lagged[row:stop, k] = block[first + row : first + stop, column]
            row = stop
            self._use_late(block, start - size, start + row)
        self.values[name], self.counts[name] = block[n:].copy(), start + n
        return start + np.arange(n), lagged

    def _use_late(self, block: Matrix, first: int, position: int) -> None:
        """Late targets that count from this row on take their places; `first` is the position of block[0]."""
        while self.late and self.late[0][0] <= position:
            _, at, target = self.late.popleft()
            if at >= first:
                block[at - first, 0] = target

    def encode(self, arrays: Arrays) -> Json:
        """As JSON and arrays, for model files."""
        if self.values:
            arrays["lags.past"] = np.array(list(self.values.values()))
        return {
            "series": [[name, self.counts[name]] for name in self.values],
            "late": [list(each) for each in self.late],
        }

    def decode(self, body: Json, arrays: Arrays) -> None:
        """Go on from what `encode` returned."""
        names = [claims.string(name, "the name of a series") for name, _ in body["series"]]
        shape = (len(names), self.settings.size, 1 + len(self.settings.columns))
        past = float_array(arrays, "lags.past") if names else np.empty(shape)
        demand(past.shape == shape and len(set(names)) == len(names), "the past does not fit the lags")
        demand(not np.isinf(past).any(), "a past value is infinite")
        self.values = {name: past[k].copy() for k, name in enumerate(names)}
        self.counts = {name: claims.count(count, "the rows of a series") for name, count in body["series"]}
        for due, position, target in body["late"]:
            claims.count(due, "the row from which a late target counts")
            claims.count(position, "the row of a late target")
            demand(names == [ONE_SERIES] and position < self.counts[ONE_SERIES] < due, "a late target has no row")
            claims.number(target, "a late target")
            self.late.append((due, position, float(target)))


class DeferredRow(NamedTuple, Generic[X]):
    """A row whose target is known, but not far enough ahead of the next row to be learned."""

    due: int  # the position of the row before which it is learned
    x: X
    y: float
    y_pred: float = 0.0  # `horizon` rows ahead
    scale: float = 0.0  # half width of the learner's interval that holds 68 %; 0 where it has none


class DeferredRows(Generic[X]):
    """Rows to be learned later, by series, the oldest first: up to the horizon, and those whose target came late."""

    def __init__(self) -> None:
        self.rows: dict[Hashable, deque[DeferredRow[X]]] = {}

    def __len__(self) -> int:
        return sum(map(len, self.rows.values()))

    def add(self, series: Hashable, row: DeferredRow[X]) -> None:
        self.rows.setdefault(series, deque()).append(row)

    def take(self, series: Hashable, position: int) -> list[DeferredRow[X]]:
        """The rows to be learned before the row at this position is predicted."""
        rows, due = self.rows.get(series, deque()), []
        while rows and rows[0].due <= position:
            due.append(rows.popleft())
        return due

    def encode(self: "DeferredRows[Vector]", arrays: Arrays) -> Json:
        """As JSON and arrays, for model files."""
        rows = [(series, row) for series, rows in self.rows.items() for row in rows]
        if rows:
            width = max(len(row.x) for _, row in rows)
            table = arrays["deferred.rows"] = np.zeros((len(rows), width))  # rows may come before some features do
            for k, (_, row) in enumerate(rows):
                table[k, : len(row.x)] = row.x
        return [[series, len(row.x), row.due, row.y, row.y_pred, row.scale] for series, row in rows]

    def decode(self: "DeferredRows[Vector]", body: Json, arrays: Arrays, d: int) -> None:
        """Go on from what `encode` returned; there are `d` features."""
        table = float_array(arrays, "deferred.rows") if body else np.empty((0, 0))
        demand(table.ndim == 2 and len(table) == len(body), "the rows to be learned differ in number")
        demand(table.shape[1] <= d, "a row to be learned does not fit the features")
        demand(not np.isinf(table).any(), "a row to be learned has an infinite value")
        for x, (series, length, *row) in zip(table, body, strict=True):
            demand(claims.count(length, "the features of a row") <= len(x), "a row to be learned is too short")
            due, y, y_pred, scale = row
            claims.count(due, "when a row is to be learned")
            for value in (y, y_pred, scale):
                claims.number(value, "a target to be learned")
            known = DeferredRow(due, x[:length].copy(), float(y), float(y_pred), float(scale))
            self.add(claims.string(series, "the series of a row"), known)


class AheadIntervals:
    """Half widths of intervals for predictions more than one row ahead, in units of the learner's own, by coverage.

    A target outside an interval widens it and one inside narrows it, in the ratio that holds the coverage.
    """

    def __init__(self) -> None:
        self.half_widths: Vector = np.array(START_HALF_WIDTHS)
        self.rows = 0

    def update(self, row: DeferredRow[X]) -> None:
        """After the target of a row has come."""
        error = abs(row.y - row.y_pred)
        if not (row.scale > 0 and error < np.inf):
            return
        self.rows += 1
        gain = min(max(GAIN_ROWS / self.rows, LEAST_GAIN), MOST_GAIN)
        missed = error / row.scale > self.half_widths
        moved = self.half_widths * np.exp(gain * (missed - (1 - np.array(LEVELS))))
        self.half_widths = np.maximum.accumulate(np.clip(moved, 1 / LARGEST_HALF_WIDTH, LARGEST_HALF_WIDTH))

    def half_width(self, coverage: float) -> float:
        """That of an interval, in units of the learner's half width that holds 68 %."""
        return float(half_width(self.half_widths, coverage))

    def encode(self) -> Json:
        """As JSON, for model files."""
        return {"half_widths": self.half_widths.tolist(), "rows": self.rows}

    def decode(self, body: Json) -> None:
        """Go on from what `encode` returned."""
        widths = np.array([claims.number(width, "a half width") for width in body["half_widths"]], dtype=np.float64)
        demand(widths.shape == self.half_widths.shape, "the half widths are not those of the coverages")
        demand(bool((widths >= 1 / LARGEST_HALF_WIDTH).all() and (widths <= LARGEST_HALF_WIDTH).all()),
               "a half width is out of range")  # fmt: skip
        demand(bool((np.diff(widths) >= 0).all()), "half widths of a larger coverage are smaller")
        self.half_widths, self.rows = widths, claims.count(body["rows"], "the rows behind the half widths")


def waves(series: Sequence[Hashable] | None, n: int) -> Iterator[list[int]]:
    """The rows in groups without two of one series, each series in its order.

    >>> list(waves(["a", "b", "a", "a"], 4)), list(waves(None, 2))
    ([[0, 1], [2], [3]], [[0], [1]])
    """
    if series is None:
        yield from ([row] for row in range(n))
        return
    seen: dict[Hashable, int] = {}
    groups: list[list[int]] = []
    for row, name in enumerate(series):
        turn = seen[name] = seen.get(name, -1) + 1
        if turn == len(groups):
            groups.append([])
        groups[turn].append(row)
    yield from groups


def _names(columns: object) -> list[str]:
    if columns is None:
        return []
    if isinstance(columns, str) or not isinstance(columns, Iterable):
        raise ValueError(f"columns must be a list of columns, or a mapping from columns to their lags, got {columns!r}")
    return list(columns)


def _whole(name: str, lags: object, least: int) -> tuple[int, ...]:
    """Lags in order, each once."""
    wanted = f"whole numbers from {least} to {LARGEST_LAG}, such as [1, 2, 24]"
    if isinstance(lags, str) or not isinstance(lags, Iterable):
        raise ValueError(f"{name} must be {wanted}, got {lags!r}")
    given = list(lags)
    for lag in given:
        require(is_whole(lag) and least <= lag <= LARGEST_LAG, name, wanted, lag)
    return tuple(sorted({int(lag) for lag in given}))
