"""Lags for scikit-learn users: a regressor that also sees past targets and inputs of rows in the order of time."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any, Self

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, MetaEstimatorMixin, RegressorMixin, clone
from sklearn.utils.validation import check_is_fitted, validate_data

from omkl import persist, validation
from omkl.arrays import Array, Matrix, Vector
from omkl.estimators.core import NumberCore
from omkl.estimators.lagged import LaggedSeries
from omkl.estimators.sklearn.fitting import unchanged_on_error
from omkl.estimators.sklearn.regression import Regressor
from omkl.features import column_names
from omkl.lags import LagSettings
from omkl.lock import Locked, LockOnDemand, locked
from omkl.names import clash
from omkl.persist import claims
from omkl.validation import LARGEST_TARGET, require

if TYPE_CHECKING:
    from omkl.encoder import Batch


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
        The fitted regressor; its features are the inputs, encoded where they are not numbers, and the lags.

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
    estimator_: Regressor
    series_: LaggedSeries  # the past, and what is learned later
    n_features_in_: int
    feature_names_in_: Array  # where the inputs came with names

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
        with unchanged_on_error(self):
            for name in ("estimator_", "series_"):
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

    def _rows(self, X: ArrayLike | None, n: int | None, reset: bool) -> "Matrix | Batch":
        """Numbers, NaN where one is missing; or cells of a frame that holds more than numbers, or gaps."""
        frame = None if X is None else nw.from_native(X, eager_only=True, pass_through=True)
        if isinstance(frame, nw.DataFrame) and frame.shape[1] and not self._is_plain(frame, reset):
            from omkl.encoder import of_frame  # pyarrow takes time to load, and numbers do without

            validate_data(self, X, reset=reset, skip_check_array=True)
            return of_frame(frame)
        given = np.empty((n or 0, 0)) if X is None else X
        rows: Matrix = validate_data(self, given, reset=reset, dtype=np.float64, ensure_all_finite="allow-nan",
                                     ensure_min_features=0, ensure_min_samples=0)  # fmt: skip
        return rows

    def _is_plain(self, frame: nw.DataFrame[Any], reset: bool) -> bool:
        if not all(isinstance(name, str) for name in frame.columns):
            return True
        if not reset and self.series_.encoder is not None:
            return False
        values = validation.frame_numbers(frame)
        return values is not None and not validation.has_gaps(values) and not clash(frame.columns)

    def _learn(self, X: ArrayLike | None, y: ArrayLike, coverage: float | None) -> Matrix:
        targets = np.ascontiguousarray(y, dtype=np.float64)
        first = "series_" not in self.__dict__
        if first:
            series, estimator = self._start()
        else:
            series, estimator = self.series_, self.estimator_
        rows = self._rows(X, len(targets), first)
        n = len(rows) if isinstance(rows, np.ndarray) else len(rows.rows)
        require(targets.shape == (n,), "y", f"one number for each of the {n} rows", targets.shape)
        require(not (np.abs(targets) > LARGEST_TARGET).any(), "y", "numbers, or NaN where they are not known", y)
        inputs = self._inputs()
        for name in series.past.settings.columns:
            require(name in inputs, "columns", f"among the columns {inputs}", name)
        out = series.run(inputs, rows, targets, coverage, estimator.new_number_core)
        if series.core is not None:
            estimator.take_core(series.core)
        self.series_, self.estimator_ = series, estimator
        return out

    def _predict(self, X: ArrayLike, coverage: float | None) -> Matrix:
        check_is_fitted(self, "series_")
        rows = self._rows(X, None, reset=False)
        n = len(rows) if isinstance(rows, np.ndarray) else len(rows.rows)
        return self.series_.following().run(self._inputs(), rows, np.full(n, np.nan), coverage, None)

    def _start(self) -> tuple[LaggedSeries, Regressor]:
        if not isinstance(self.estimator, Regressor):
            raise TypeError(
                "estimator must be a regressor of omkl, such as GraphMKLRegressor(), since lags are past numbers, got "
                f"{self.estimator!r}"
            )
        return LaggedSeries(LagSettings.make(self.lags, self.columns, self.horizon)), clone(self.estimator)

    def _inputs(self) -> list[str]:
        names = self.__dict__.get("feature_names_in_")
        return list(column_names(self.n_features_in_)) if names is None else [str(name) for name in names]


def _encode(model: Lags, compact: bool) -> tuple[persist.Json, persist.Arrays]:
    model = deepcopy(model)  # one moment, whatever other threads learn meanwhile
    arrays: persist.Arrays = {}
    if not isinstance(model.estimator, Regressor):
        raise TypeError(f"Lags of {model.estimator!r}, which is no regressor of omkl, cannot be saved")
    body: dict[str, persist.Json] = {
        "estimator": persist.encode_part(model.estimator, arrays, "template.", compact),
        "settings": LagSettings.make(model.lags, model.columns, model.horizon).body(),
        "fitted": None,
    }
    if "series_" in model.__dict__:
        if model.series_.core is None:
            raise ValueError("Lags that have seen no feature cannot be saved; learn a row with a value first")
        body["fitted"] = {
            "estimator": persist.encode_part(model.estimator_, arrays, "estimator.", compact),
            "inputs": model._inputs(),
            "named": "feature_names_in_" in model.__dict__,
            **model.series_.encode(arrays),
        }
    return body, arrays


def _decode(body: persist.Json, arrays: persist.Arrays) -> Lags:
    settings = LagSettings.from_body(body["settings"])
    template = persist.decode_part(body["estimator"], arrays, "template.")
    persist.demand(isinstance(template, Regressor), "lags are for a regressor")
    model = Lags(template, settings.lags, settings.columns or None, settings.horizon)
    fitted = body["fitted"]
    if fitted is None:
        return model
    estimator = persist.decode_part(fitted["estimator"], arrays, "estimator.")
    persist.demand(type(estimator) is type(template), "the estimator and its template differ")
    core = getattr(estimator, "core_", None)
    persist.demand(isinstance(core, NumberCore) and core.encoder is None, "the estimator of lags has learned nothing")
    assert isinstance(core, NumberCore)
    inputs = claims.strings(fitted["inputs"], "the columns")
    persist.demand(len(set(inputs)) == len(inputs), "two columns have the same name")
    model.n_features_in_ = len(inputs)
    if claims.flag(fitted["named"], "whether columns have names"):
        model.feature_names_in_ = np.array(inputs, dtype=object)
    else:
        persist.demand(inputs == list(column_names(len(inputs))), "columns without names are numbered")
    persist.demand(set(settings.columns) <= set(inputs), "a lagged column is none of the columns")
    series = LaggedSeries(settings)
    series.decode(fitted, arrays, core)
    lags = {feature.name for feature in settings.features}
    known = set(inputs) if series.encoder is None else set(series.encoder.features)
    persist.demand(set(series.names) - lags <= known, "the columns and the features differ")
    model.series_, model.estimator_ = series, estimator
    return model


persist.register("sklearn-lags", persist.Codec((Lags,), _encode, _decode))
