"""Lags for scikit-learn users: a regressor that also sees past targets and inputs of rows in the order of time."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from itertools import pairwise
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, MetaEstimatorMixin, RegressorMixin, clone
from sklearn.utils.validation import check_is_fitted, validate_data

from omkl.arrays import Matrix, Vector
from omkl.estimators.core import NumberCore
from omkl.estimators.cores import new_number_core, settings_of
from omkl.estimators.sklearn.regression import Regressor
from omkl.features import column_names
from omkl.lags import ONE_SERIES, AheadIntervals, DeferredRow, DeferredRows, LagSettings, Past
from omkl.lock import Locked, LockOnDemand, locked
from omkl.validation import LARGEST_TARGET, require


class Lags(Locked, MetaEstimatorMixin, RegressorMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A regressor with past targets and inputs as features, for rows in the order of time.

    With horizon h the prediction for a row is made h rows ahead, from what is known by then: lag 1 is the target of h
    rows before, the last one known, lag 2 the one before it. A target is learned when the row h after it comes next.
    `predict` continues where the rows learned ended: its rows are those that come next.

    Parameters
    ----------
    estimator : Regressor
        The regressor of omkl that learns, such as `GraphMKLRegressor()`.
    lags : sequence of int, default=(1,)
        Lags of the target, each at least 1.
    columns : list of str or dict, default=None
        Inputs whose past values are used instead of the value of the row itself: their names, for the same lags, or a
        mapping from names to lags, where 0 is the value of the row itself. The columns of an array are called "0", "1",
        and so on.
    horizon : int, default=1
        How many rows ahead predictions are made.

    Attributes
    ----------
    estimator_ : Regressor
        The fitted regressor; its features are the inputs and the lags, in alphabetical order.

    Examples
    --------
    >>> import numpy as np
    >>> from omkl import GraphMKLRegressor, Lags
    >>> hours = np.arange(2000)
    >>> y = 10 + np.sin(hours * np.pi / 12)
    >>> model = Lags(GraphMKLRegressor(random_state=0), lags=[1, 24], horizon=24).fit(None, y)
    >>> following = 10 + np.sin(np.arange(2000, 2024) * np.pi / 12)
    >>> bool(np.abs(model.forecast(24) - following).max() < 0.1)
    True
    """

    _lock = LockOnDemand()

    def __init__(
        self,
        estimator: Regressor,
        lags: Sequence[int] = (1,),
        columns: Sequence[str] | Mapping[str, Sequence[int]] | None = None,
        horizon: int = 1,
    ) -> None:
        self.estimator, self.lags, self.columns, self.horizon = estimator, lags, columns, horizon

    @locked
    def fit(self, X: ArrayLike | None, y: ArrayLike) -> Self:
        """Forget what was learned and learn the rows in their order; X is None where there are no inputs.

        A target of NaN is not known: its row is not learned.
        """
        for name in ("estimator_", "past_", "deferred_", "ahead_"):
            self.__dict__.pop(name, None)
        self._learn(X, y, None)
        return self

    @locked
    def partial_fit(self, X: ArrayLike | None, y: ArrayLike) -> Self:
        """Learn the rows that come next."""
        self._learn(X, y, None)
        return self

    @locked
    def predict_then_learn(self, X: ArrayLike | None, y: ArrayLike) -> Vector:
        """The predictions of the rows that come next, each made `horizon` rows ahead; then they are learned."""
        return self._learn(X, y, None)[:, 0]

    @locked
    def predict_interval_then_learn(self, X: ArrayLike | None, y: ArrayLike, coverage: float = 0.9) -> Matrix:
        """(rows, 3): prediction, lower and upper end of the rows that come next; then they are learned."""
        return self._learn(X, y, coverage)

    @locked
    def predict(self, X: ArrayLike) -> Vector:
        """Predictions for the rows that come next; nothing is learned."""
        return self._predict(X, None)[:, 0]

    @locked
    def predict_interval(self, X: ArrayLike, coverage: float = 0.9) -> Matrix:
        """(rows, 2): intervals for the rows that come next that hold `coverage` of the targets."""
        return self._predict(X, coverage)[:, 1:]

    @locked
    def forecast(self, n: int) -> Vector:
        """Predictions for the next n rows of a series without inputs."""
        return self._predict(np.empty((n, 0)), None)[:, 0]

    def _rows(self, X: ArrayLike | None, n: int | None, reset: bool) -> Matrix:
        given = np.empty((n or 0, 0)) if X is None else X
        rows: Matrix = validate_data(self, given, reset=reset, dtype=np.float64, ensure_all_finite="allow-nan",
                                     ensure_min_features=0, ensure_min_samples=0)  # fmt: skip
        return rows

    def _learn(self, X: ArrayLike | None, y: ArrayLike, coverage: float | None) -> Matrix:
        targets = np.ascontiguousarray(y, dtype=np.float64)
        first = "estimator_" not in self.__dict__
        rows = self._rows(X, len(targets), first)
        require(targets.shape == (len(rows),), "y", f"one number for each of the {len(rows)} rows", targets.shape)
        require(not (np.abs(targets) > LARGEST_TARGET).any(), "y", "numbers, or NaN where they are not known", y)
        if first:
            self._start()
        return self._run(rows, targets, coverage, self._core, self.past_, self.deferred_, self.ahead_)

    def _predict(self, X: ArrayLike, coverage: float | None) -> Matrix:
        check_is_fitted(self, "estimator_")
        rows = self._rows(X, None, reset=False)
        core, deferred, ahead = self._core, self.deferred_, self.ahead_
        if len(deferred):  # rows whose targets are known already are learned when their turn comes
            core, deferred, ahead = deepcopy(core), deepcopy(deferred), deepcopy(ahead)
        unknown = np.full(len(rows), np.nan)
        return self._run(rows, unknown, coverage, core, deepcopy(self.past_), deferred, ahead)

    def _start(self) -> None:
        if not isinstance(self.estimator, Regressor):
            raise TypeError(
                f"estimator must be a regressor of omkl, such as GraphMKLRegressor(), got {self.estimator!r}"
            )
        settings = LagSettings.make(self.lags, self.columns, self.horizon)
        inputs = self._inputs()
        for name in settings.columns:
            require(name in inputs, "columns", f"among the columns {inputs}", name)
        names = sorted({*inputs} - {*settings.replaced} | {feature.name for feature in settings.features})
        estimator: Regressor = clone(self.estimator)
        estimator.n_features_in_ = len(names)
        estimator.core_ = new_number_core(
            estimator.algorithm_name, settings_of(estimator, "regression"), estimator.seed(), names, estimator._scale
        )
        self.estimator_, self.past_, self.deferred_ = estimator, Past(settings), DeferredRows[Vector]()
        self.ahead_ = AheadIntervals()

    @property
    def _core(self) -> NumberCore:
        core = self.estimator_.core_
        assert isinstance(core, NumberCore)  # as _start makes it
        return core

    def _inputs(self) -> list[str]:
        names = self.__dict__.get("feature_names_in_")
        return list(column_names(self.n_features_in_)) if names is None else [str(name) for name in names]

    def _run(
        self, rows: Matrix, y: Vector, coverage: float | None, core: NumberCore, past: Past,
        deferred: DeferredRows[Vector], ahead: AheadIntervals,
    ) -> Matrix:  # fmt: skip
        settings, inputs = past.settings, self._inputs()
        lagged_inputs = [inputs.index(name) for name in settings.columns]
        if coverage is not None:  # one that there is no interval for is refused before anything changes
            core.predict_interval(np.empty((0, len(core.names))), coverage)
        start = past.counts.get(ONE_SERIES, 0)
        _, lagged = past.follow(np.column_stack((y, rows[:, lagged_inputs])))
        columns = dict(zip(inputs, rows.T, strict=True))
        columns |= {feature.name: lagged[:, k] for k, feature in enumerate(settings.features)}
        X = np.empty((len(rows), len(core.names)))
        for k, name in enumerate(core.names):
            X[:, k] = columns[str(name)]
        out = np.empty((len(rows), 1 if coverage is None else 3))
        if settings.horizon == 1:
            known = ~np.isnan(y)
            edges = [0, *(np.flatnonzero(np.diff(known)) + 1).tolist(), len(y)]
            for first, last in pairwise(edges):
                if first < last:
                    here = slice(first, last)
                    out[here] = _learned(core, X[here], y[here], coverage) if known[first] else \
                        _predicted(core, X[here], coverage)  # fmt: skip
            return out
        for row in range(len(X)):
            x, scale = X[row : row + 1], 0.0
            out[row, 0] = y_pred = float(core.predict(x)[0])
            if core.intervals:
                scale = float(core.predict_std(x)[0, 1])
            if coverage is not None:
                half = ahead.half_width(coverage) * scale
                out[row, 1:] = y_pred - half, y_pred + half
            if not np.isnan(y[row]):
                at = start + row + settings.horizon
                deferred.add(ONE_SERIES, DeferredRow(at, X[row].copy(), float(y[row]), y_pred, scale))
            if due := deferred.take(ONE_SERIES, start + row + 1):
                core.learn_rows(np.array([each.x for each in due]), np.array([each.y for each in due]))
                for each in due:
                    ahead.update(each)
        return out


def _learned(core: NumberCore, X: Matrix, y: Vector, coverage: float | None) -> Matrix:
    return core.learn_rows(X, y)[:, None] if coverage is None else core.learn_rows_interval(X, y, coverage)


def _predicted(core: NumberCore, X: Matrix, coverage: float | None) -> Matrix:
    y_pred = core.predict(X)[:, None]
    return y_pred if coverage is None else np.hstack((y_pred, core.predict_interval(X, coverage)))
