"""Inputs of any kind beside lags: a series whose rows are learned in their order, some rows ahead."""

from collections.abc import Callable, Sequence
from copy import copy, deepcopy
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from omkl.arrays import Matrix, Vector
from omkl.estimators.core import NumberCore
from omkl.estimators.rows import encoder_after, in_order
from omkl.lags import ONE_SERIES, AheadIntervals, DeferredRow, DeferredRows, LagSettings, Past
from omkl.persist import Arrays, Json, claims, demand

if TYPE_CHECKING:
    from omkl.encoder import Batch, Encoder


def hidden_features(settings: LagSettings, encoder: "Encoder | None") -> set[str]:
    """Features of lagged columns whose value in the row itself is not used."""
    if encoder is None:
        return set(settings.replaced)
    replaced = tuple(encoder.columns[name].own for name in settings.replaced if name in encoder.columns)
    made = tuple(f"{name}{ending}" for name in replaced for ending in ("=", " missing", " other"))
    return {name for name in encoder.features if name in replaced or (made and name.startswith(made))}


class Features(NamedTuple):
    """The rows of a series as features, as the encoder has them."""

    features: dict[str, Vector]  # (n,) each
    arrivals: dict[str, int]  # the new ones among them, and the row where each begins


def lagged_values(
    settings: LagSettings, encoder: "Encoder | None", features: dict[str, Vector], y: Vector, option: str
) -> Matrix:
    """(rows, 1 + columns): the target and the lagged columns as numbers; `option` says which columns these are."""
    columns = [y]
    for name in settings.columns:
        own = name
        if encoder is not None and (column := encoder.columns.get(name)) is not None:
            if column.kind not in (None, "number"):
                what = "timestamps" if column.kind == "time" else "text"
                raise ValueError(f"{option} must name columns of numbers; {name!r} holds {what}")
            own = column.own
        columns.append(features.get(own, np.full(len(y), np.nan)))
    return np.column_stack(columns)


class LaggedSeries:
    """A core that learns the rows of one series with their lags, and what it needs to go on.

    Parameters
    ----------
    settings
        Which past values are features, and how far ahead rows are predicted.
    """

    def __init__(self, settings: LagSettings) -> None:
        self.past, self.deferred, self.ahead = Past(settings), DeferredRows[Vector](), AheadIntervals()
        self.encoder: Encoder | None = None  # makes features of cells, once there were others than numbers
        self.names: tuple[str, ...] = ()  # the features, in the order in which they came
        self.core: NumberCore | None = None

    def following(self) -> Self:
        """A series that goes on from here without changing this one; it learns what is deferred, and nothing else."""
        other = copy(self)
        other.past = deepcopy(self.past)
        if len(self.deferred):
            other.core, other.deferred, other.ahead = deepcopy((self.core, self.deferred, self.ahead))
        return other

    def run(
        self,
        inputs: Sequence[str],
        rows: "Matrix | Batch",
        y: Vector,
        coverage: float | None,
        new_core: Callable[[Sequence[str]], NumberCore] | None,
    ) -> Matrix:
        """Predict each row, then learn it if its target is known: all rows, or none.

        Returns (rows, 1) predictions, or with a coverage (rows, 3) with both ends of the intervals. Without `new_core`
        nothing becomes known but the past.
        """
        kept = {**self.__dict__, "past": deepcopy(self.past), "deferred": deepcopy(self.deferred)}
        kept["ahead"] = deepcopy(self.ahead)
        try:
            encoded = self._with_lags(inputs, rows, y, learn=new_core is not None)
            values = np.column_stack([np.empty((len(y), 0)), *encoded.features.values()])
            if self.core is not None and (encoded.arrivals or not self.core.online.cannot_diverge(values, y)):
                kept["core"] = deepcopy(self.core)
            return self._run(encoded, y, coverage, new_core)
        except BaseException:  # also too little memory, or Ctrl-C
            self.__dict__.update(kept)
            raise

    def _with_lags(self, inputs: Sequence[str], rows: "Matrix | Batch", y: Vector, learn: bool) -> Features:
        """Rows as features with their lags; then their values belong to the past."""
        settings, lags = self.past.settings, [feature.name for feature in self.past.settings.features]
        encoder = self.encoder
        if isinstance(rows, np.ndarray) and encoder is None:
            new = dict.fromkeys(inputs, 0) if self.core is None else {}
            encoded = Features(dict(zip(inputs, np.ascontiguousarray(rows.T), strict=True)), new)
        else:
            from omkl.encoder import of_matrix  # pyarrow takes time to load, and numbers do without

            batch = of_matrix(rows, inputs) if isinstance(rows, np.ndarray) else rows
            began = self.past.counts.get(ONE_SERIES, 0) > 0
            encoder = encoder_after(inputs if began else (), NumberCore.codes) if encoder is None else encoder.copy()
            encoded = Features(*encoder.encode(batch, learn))
        for name in lags:
            if name in encoded.features:
                raise ValueError(f"the column {name!r} has the name of a lag; rename it")
        start = not self.past.counts
        _, lagged = self.past.follow(lagged_values(settings, encoder, encoded.features, y, "columns"))
        hidden = hidden_features(settings, encoder)
        features = {name: array for name, array in encoded.features.items() if name not in hidden}
        arrivals = {name: row for name, row in encoded.arrivals.items() if name not in hidden}
        for k, name in enumerate(lags):
            features[name] = np.ascontiguousarray(lagged[:, k])
        if start:
            arrivals |= dict.fromkeys(lags, 0)
        if learn:
            self.encoder = encoder
        return Features(features, arrivals)

    def _run(
        self,
        encoded: Features,
        y: Vector,
        coverage: float | None,
        new_core: Callable[[Sequence[str]], NumberCore] | None,
    ) -> Matrix:
        new: dict[int, list[str]] = {}
        for name, row in encoded.arrivals.items():
            new.setdefault(row, []).append(name)
        known = np.flatnonzero(np.diff(np.isnan(y))) + 1
        edges = sorted({0, *new, *(row + 1 for row in new), *known.tolist(), len(y)})
        start = self.past.counts.get(ONE_SERIES, 0) - len(y)
        out = np.zeros((len(y), 1 if coverage is None else 3))
        for first, last in pairwise(edges):
            before: tuple[Matrix, float] | None = None
            if first in new and new_core is not None:
                # what is new in a row becomes known after the row was predicted
                before = None if self.core is None else self._predict(self._part(encoded, first, first + 1), coverage)
                self._add(new[first], encoded, first, new_core)
            if self.core is None:
                continue
            if coverage is not None:  # one that there is no interval for is refused before anything is learned
                self.core.predict_interval(np.empty((0, self.core.columns.number)), coverage)
            X = self._part(encoded, first, last)
            if self.past.settings.horizon > 1:
                for row in range(first, last):
                    out[row] = self._defer(X[row - first], float(y[row]), start + row, coverage, before)
                continue
            if np.isnan(y[first]):
                out[first:last] = self._predict(X, coverage)[0]
            elif coverage is None:
                out[first:last, 0] = self.core.learn_rows(self.core.rows_of(self.names, X), y[first:last])
            else:
                out[first:last] = self.core.learn_rows_interval(
                    self.core.rows_of(self.names, X), y[first:last], coverage
                )
            if before is not None:
                out[first] = before[0][0]
        return out

    def _part(self, encoded: Features, first: int, last: int) -> Matrix:
        X = np.empty((last - first, len(self.names)))
        for k, name in enumerate(self.names):
            X[:, k] = encoded.features[name][first:last]
        return X

    def _add(
        self, names: list[str], encoded: Features, row: int, new_core: Callable[[Sequence[str]], NumberCore]
    ) -> None:
        """Features become known, with those of their row that are known already."""
        new = [str(name) for name in in_order(set(names) - set(self.names))]
        if self.core is not None:
            present = [name for name in self.names if not np.isnan(encoded.features[name][row])]
            self.core.add_features([*present, *names], {} if self.encoder is None else self.encoder.features)
        elif new:
            self.core = new_core(new)
        self.names = (*self.names, *new)

    def _predict(self, X: Matrix, coverage: float | None) -> tuple[Matrix, float]:
        """Predictions, with intervals for the horizon if there is a coverage; and half a width of the first at 68 %."""
        assert self.core is not None
        rows, scale = self.core.rows_of(self.names, X), 0.0
        y_pred = self.core.predict(rows)[:, None]
        if self.past.settings.horizon > 1 and self.core.intervals:
            scale = float(self.core.predict_std(rows)[0, 1])
        if coverage is None:
            return y_pred, scale
        if self.past.settings.horizon == 1:
            return np.hstack((y_pred, self.core.predict_interval(rows, coverage))), scale
        half = self.ahead.half_width(coverage) * scale
        return np.hstack((y_pred, y_pred - half, y_pred + half)), scale

    def _defer(
        self, x: Vector, y: float, position: int, coverage: float | None, before: tuple[Matrix, float] | None
    ) -> Vector:
        """Predict a row more than one ahead; its target is learned when the row `horizon` after it comes."""
        assert self.core is not None
        out, scale = before or self._predict(x[None], coverage)
        if not np.isnan(y):
            due = position + self.past.settings.horizon
            self.deferred.add(ONE_SERIES, DeferredRow(due, x.copy(), y, float(out[0, 0]), scale))
        if rows := self.deferred.take(ONE_SERIES, position + 1):
            X = self.core.rows_of(self.names, np.array([self._grown(row.x) for row in rows]))
            self.core.learn_rows(X, np.array([row.y for row in rows]))
            for row in rows:
                self.ahead.update(row)
        made: Vector = out[0]
        return made

    def _grown(self, x: Vector) -> Vector:
        """A row of the past; features that came after it have the values that stand for nothing known."""
        fills = {} if self.encoder is None else self.encoder.features
        return np.concatenate((x, [fills.get(name, np.nan) for name in self.names[len(x) :]]))

    # Model files

    def encode(self, arrays: Arrays) -> dict[str, Json]:
        """All but the core."""
        return {
            "encoder": None if self.encoder is None else self.encoder.body(),
            "names": list(self.names),
            "past": self.past.encode(arrays),
            "deferred": self.deferred.encode(arrays),
            "ahead": self.ahead.encode(),
        }

    def decode(self, body: Json, arrays: Arrays, core: NumberCore) -> None:
        """Go on from what `encode` returned."""
        self.names = tuple(claims.strings(body["names"], "the features"))
        own = set(core.columns.own)
        demand(len(set(self.names)) == len(self.names) and own <= set(self.names), "the features and the core differ")
        if body["encoder"] is not None:
            from omkl.encoder import Encoder, warn

            self.encoder = Encoder.from_body(body["encoder"], warn)
        lags = {feature.name for feature in self.past.settings.features}
        demand(lags <= set(self.names), "the lags are no features")
        made = set(self.names) - lags
        demand(self.encoder is None or made <= set(self.encoder.features), "the columns and the features differ")
        self.past.decode(body["past"], arrays)
        demand(list(self.past.counts) == [ONE_SERIES], "there is one series")
        self.deferred.decode(body["deferred"], arrays, len(self.names))
        demand(set(self.deferred.rows) <= {ONE_SERIES}, "there is one series")
        self.ahead.decode(body["ahead"])
        self.core = core
