"""Lags for river users: a regressor that also sees past targets and inputs, and that forecasts."""

import math
import warnings
from collections.abc import Hashable, Iterator, Mapping, Sequence
from copy import copy, deepcopy
from typing import Any

import numpy as np
from river import base, proba

from omkl import validation
from omkl.algorithms.graph_mkl.constants import ONE_SIGMA
from omkl.arrays import Matrix, Vector
from omkl.estimators.river.base import DistributionRegressor, Estimator, gaussian
from omkl.estimators.rows import Row
from omkl.lags import ONE_SERIES, AheadIntervals, DeferredRow, DeferredRows, LagSettings, Past
from omkl.lock import Locked, ModelLock, locked
from omkl.validation import require_whole


class Lags(Locked, base.Wrapper[base.Regressor], base.Regressor):
    """A regressor with past targets and inputs as features: a forecaster for rows that come in the order of time.

    With horizon h the prediction for a row is made h rows ahead, from what is known by then: lag 1 is the target of h
    rows before, the last one known, lag 2 the one before it. A target is learned when the row h after it comes next.
    Lags that are not known are left out of the row. Rows count as time steps: `learn_one` with y=None stands for a row
    whose target is not known.

    Parameters
    ----------
    regressor : Regressor
        The river regressor that learns, such as `omkl.river.GraphMKLRegressor()`.
    lags : sequence of int, default=(1,)
        Lags of the target, each at least 1.
    columns : list of str or dict, default=None
        Inputs whose past values are used instead of the value of the row itself: their names, for the same lags, or a
        mapping from names to lags, where 0 is the value of the row itself.
    horizon : int, default=1
        How many rows ahead predictions are made.
    max_waiting : int, default=1000
        The largest number of rows stored for targets that come late.

    Examples
    --------
    >>> from river import datasets
    >>> from omkl.river import GraphMKLRegressor, Lags
    >>> model = Lags(GraphMKLRegressor(seed=1), lags=[1, 12], horizon=12)
    >>> for x, y in datasets.AirlinePassengers():
    ...     model.learn_one({"month": x["month"].month}, y)
    >>> [round(y) for y in model.forecast(3, [{"month": 1}, {"month": 2}, {"month": 3}])]
    [437, 406, 434]
    """

    def __init__(
        self,
        regressor: base.Regressor,
        lags: Sequence[int] = (1,),
        columns: Sequence[str] | Mapping[str, Sequence[int]] | None = None,
        horizon: int = 1,
        max_waiting: int = 1000,
    ) -> None:
        self.regressor, self.lags, self.columns, self.horizon = regressor, lags, columns, horizon
        self.max_waiting = max_waiting
        require_whole("max_waiting", max_waiting)
        self._settings = LagSettings.make(lags, columns, horizon)
        self._lock = ModelLock()
        self._past = Past(self._settings)
        self._deferred: DeferredRows[Row] = DeferredRows()
        self._ahead = AheadIntervals()
        self._waiting: dict[Hashable, tuple[int, DeferredRow[Row]]] = {}

    @property
    def _wrapped_model(self) -> base.Regressor:
        return self.regressor

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        from river.linear_model import LinearRegression

        yield {"regressor": LinearRegression()}

    def predict_one(self, x: Row | None = None, key: Hashable = None, **options: Any) -> Any:
        """The prediction for the row that comes next; other options are those of the regressor, such as `with_dist`.

        With a key the row takes its place in the series, and its target is learned by `learn_key` when it comes.
        """
        with self._lock:
            row = self._row(x or {})
            y_pred: Any = self.regressor.predict_one(row, **options)
            if self.horizon > 1 and isinstance(y_pred, proba.Gaussian):
                y_pred = gaussian(y_pred.mu, y_pred.sigma * self._ahead.half_width(ONE_SIGMA))
            if key is not None:
                waiting = self._deferred_row(row, math.nan)
                self._advance(x or {}, math.nan)
                self._waiting[key] = self._past.counts[ONE_SERIES] - 1, waiting
                if len(self._waiting) > self.max_waiting:
                    oldest = next(iter(self._waiting))
                    del self._waiting[oldest]
                    warnings.warn(f"more than max_waiting={self.max_waiting} rows wait for their target; the oldest, "
                                  f"{oldest!r}, is dropped", stacklevel=2)  # fmt: skip
            return y_pred

    @locked
    def learn_one(self, x: Row | None, y: float | None) -> None:
        """Learn the row that comes next; if its target is not known (None or NaN), it only takes its place."""
        row = self._row(x or {})
        if y is None or (isinstance(y, float) and math.isnan(y)):
            self._advance(x or {}, math.nan)
            return
        target = validation.finite_number(y, "y")
        values = self._values(x or {}, target)  # refuses bad values before anything is learned
        if self.horizon == 1:
            self._learn(row, target)
        else:
            self._deferred.add(ONE_SERIES, self._deferred_row(row, target))
        self._past.follow(values)
        self._learn_due()

    @locked
    def learn_key(self, key: Hashable, y: float) -> None:
        """Learn the row that was given to `predict_one` with this key, now that its target is known."""
        if key not in self._waiting:
            raise KeyError(f"no row is waiting for its target under the key {key!r}")
        target = validation.finite_number(y, "y")
        position, row = self._waiting[key]
        if self.horizon == 1:
            self._learn(row.x, target)
        del self._waiting[key]
        last = self._past.arrive(position, target)
        if self.horizon > 1:
            self._deferred.add(ONE_SERIES, row._replace(due=last + self.horizon, y=target))

    def forecast(self, horizon: int, xs: Sequence[Row] | None = None, **options: Any) -> list[Any]:
        """Predictions for the rows that come next, nothing is learned; `xs` are their inputs.

        Rows further ahead than the horizon of the model have no last target to be predicted from: a warning says so.
        """
        require_whole("horizon", horizon)
        rows: Sequence[Row] = [{}] * horizon if xs is None else xs
        if len(rows) != horizon:
            raise ValueError(f"xs must have the inputs of all {horizon} rows, got {len(rows)}")
        if horizon > self.horizon:
            warnings.warn(f"rows more than {self.horizon} ahead, the horizon of this model, are predicted without the "
                          f"last targets; make it with horizon={horizon}", stacklevel=2)  # fmt: skip
        other = copy(self)
        with self._lock:
            other._past = deepcopy(self._past)
            if len(self._deferred):  # rows whose targets are known already are learned when their turn comes
                other.regressor, other._deferred = deepcopy(self.regressor), deepcopy(self._deferred)
                other._ahead = deepcopy(self._ahead)
        out = []
        for x in rows:
            out.append(other.predict_one(x, **options))
            other.learn_one(x, None)
        return out

    def _row(self, x: Row) -> dict[Hashable, Any]:
        """The features of the row that comes next."""
        row: dict[Hashable, Any] = {name: value for name, value in x.items() if name not in self._settings.replaced}
        names = [feature.name for feature in self._settings.features]
        for name in names:
            if name in row:
                raise ValueError(f"the feature {name!r} has the name of a lag; rename it")
        lagged = zip(names, self._past.next_row().tolist(), strict=True)
        return row | {name: value for name, value in lagged if not math.isnan(value)}

    def _values(self, x: Row, target: float) -> Matrix:
        values: Vector = np.full(1 + len(self._settings.columns), math.nan)
        values[0] = target
        for k, name in enumerate(self._settings.columns, 1):
            value = x.get(name)
            if value is not None:
                values[k] = value
                if math.isinf(values[k]):
                    raise ValueError(f"feature {name!r} must be a finite number or missing, got {value!r}")
        return values[None]

    def _advance(self, x: Row, target: float) -> None:
        self._past.follow(self._values(x, target))
        self._learn_due()

    def _learn(self, row: Row, target: float) -> None:
        if isinstance(self.regressor, Estimator):  # it can know of features before they have a value
            self.regressor._start([*row, *(feature.name for feature in self._settings.features)])
        self.regressor.learn_one(dict(row), target)

    def _learn_due(self) -> None:
        for due in self._deferred.take(ONE_SERIES, self._past.counts[ONE_SERIES]):
            self._learn(due.x, due.y)
            self._ahead.update(due)

    def _deferred_row(self, row: Row, target: float) -> DeferredRow[Row]:
        """The row that comes next, with its prediction."""
        due = self._past.counts.get(ONE_SERIES, 0) + self.horizon
        if self.horizon == 1 or not isinstance(self.regressor, DistributionRegressor):
            return DeferredRow(due, row, target)
        y_pred = self.regressor.predict_one(row, with_dist=True)
        return DeferredRow(due, row, target, y_pred.mu, y_pred.sigma)
