"""Lags for river users: a regressor that also sees past targets and inputs, and that forecasts."""

import datetime
import math
import warnings
from collections.abc import Hashable, Iterator, Mapping, Sequence
from copy import copy, deepcopy
from typing import TYPE_CHECKING, Any

import numpy as np
from river import base, compose, proba

from omkl import persist, validation
from omkl.algorithms.graph_mkl.constants import ONE_SIGMA
from omkl.arrays import Matrix, Vector
from omkl.estimators.encoders import encoder_from
from omkl.estimators.lagged import hidden_features
from omkl.estimators.river.base import Estimator
from omkl.estimators.river.distribution import DistributionRegressor, gaussian
from omkl.estimators.river.files import decode_cell, encode_cell
from omkl.estimators.rows import Cells, NotANumber, Row, check_row, encoder_after
from omkl.lags import ONE_SERIES, AheadIntervals, DeferredRow, DeferredRows, LagSettings, Past
from omkl.lock import Locked, ModelLock, locked
from omkl.persist import claims
from omkl.validation import require_whole

if TYPE_CHECKING:
    from omkl.encoder import Encoder


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
        if not _is_regressor(regressor):
            raise TypeError(f"regressor must be a regressor, since lags are past numbers, got {regressor!r}")
        require_whole("max_waiting", max_waiting)
        self._settings = LagSettings.make(lags, columns, horizon)
        self._lock = ModelLock()
        self._past = Past(self._settings)
        self._deferred: DeferredRows[Row] = DeferredRows()
        self._ahead = AheadIntervals()
        self._waiting: dict[Hashable, tuple[int, DeferredRow[Row]]] = {}
        self._encoder: Encoder | None = None  # makes features of cells, once there were others than numbers

    @property
    def _wrapped_model(self) -> base.Regressor:
        return self.regressor

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        from river.linear_model import LinearRegression

        yield {"regressor": LinearRegression()}

    def predict_one(self, x: Cells | None = None, key: Hashable = None, **options: Any) -> Any:
        """The prediction for the row that comes next; other options are those of the regressor, such as `with_dist`.

        With a key the row takes its place in the series, and its target is learned by `learn_key` when it comes.
        """
        with self._lock:
            row = self._row(self._inputs(x or {}, learn=False))
            y_pred: Any = self.regressor.predict_one(row, **options)
            if self.horizon > 1 and isinstance(y_pred, proba.Gaussian):
                y_pred = gaussian(y_pred.mu, y_pred.sigma * self._ahead.half_width(ONE_SIGMA))
            if key is not None:
                waiting = self._deferred_row(row, math.nan)
                waiting = waiting._replace(x=self._advance(x or {}, math.nan))
                self._waiting[key] = self._past.counts[ONE_SERIES] - 1, waiting
                if len(self._waiting) > self.max_waiting:
                    oldest = next(iter(self._waiting))
                    del self._waiting[oldest]
                    warnings.warn(f"more than max_waiting={self.max_waiting} rows wait for their target; the oldest, "
                                  f"{oldest!r}, is dropped", stacklevel=2)  # fmt: skip
            return y_pred

    @locked
    def learn_one(self, x: Cells | None, y: float | None) -> None:
        """Learn the row that comes next; if its target is not known (None or NaN), it only takes its place."""
        x = x or {}
        if y is None or (isinstance(y, float) and math.isnan(y)):
            self._advance(x, math.nan)
            return
        target = validation.finite_number(y, "y")
        if self.horizon == 1:
            values, row = self._known(x, target)
            self._learn(row, target)
            self._past.follow(values)
        else:
            deferred = self._deferred_row(self._row(self._inputs(x, learn=False)), target)
            values, row = self._known(x, target)
            self._deferred.add(ONE_SERIES, deferred._replace(x=row))
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

    def forecast(self, horizon: int, xs: Sequence[Cells] | None = None, **options: Any) -> list[Any]:
        """Predictions for the rows that come next, nothing is learned; `xs` are their inputs.

        Rows further ahead than the horizon of the model have no last target to be predicted from: a warning says so.
        """
        require_whole("horizon", horizon)
        rows: Sequence[Cells] = [{}] * horizon if xs is None else xs
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
            other._past.follow(other._values(other._inputs(x, learn=False), math.nan))
            other._learn_due()
        return out

    @property
    def _estimator(self) -> Estimator[Any, Any] | None:
        """The regressor, if it is one of omkl's; a pipeline, which claims to be of its last step's class, is none."""
        if not issubclass(type(self.regressor), Estimator):
            return None
        return self.regressor  # type: ignore[return-value]  # issubclass does not tell mypy

    def _inputs(self, x: Cells, learn: bool) -> Row:
        """The inputs of a row as features; for another regressor than those of omkl the inputs as they are."""
        self._check_cells(x)
        if (estimator := self._estimator) is None:
            return dict(x)  # type: ignore[arg-type]  # it may take text
        encoder = self._encoder
        if encoder is None:
            try:
                return dict(zip(x, check_row(x).tolist(), strict=True))
            except NotANumber:
                core, lags = estimator._core, [feature.name for feature in self._settings.features]
                encoder = encoder_after(
                    [] if core is None else [n for n in core.columns.own if n not in lags], estimator.codes
                )
        features: Row = encoder.row(x, learn)
        if learn and self._encoder is None:
            self._encoder, core = encoder, estimator._core
            if core is not None:
                core.columns = core.columns.as_text()
        return features

    def _check_cells(self, x: Cells) -> None:
        """Refuse a row before anything of it becomes known."""
        for feature in self._settings.features:
            if feature.name in x:
                raise ValueError(f"the feature {feature.name!r} has the name of a lag; rename it")
        for name in self._settings.columns:
            if isinstance(x.get(name), str | datetime.date):
                what = "text" if isinstance(x[name], str) else "timestamps"
                raise ValueError(f"columns must name columns of numbers; {name!r} holds {what}")

    def _row(self, inputs: Row) -> dict[Hashable, Any]:
        """The features of the row that comes next."""
        hidden = hidden_features(self._settings, self._encoder) if self._settings.replaced else ()
        row: dict[Hashable, Any] = {name: value for name, value in inputs.items() if name not in hidden}
        names = [feature.name for feature in self._settings.features]
        lagged = zip(names, self._past.next_row().tolist(), strict=True)
        return row | {name: value for name, value in lagged if not math.isnan(value)}

    def _known(self, x: Cells, target: float) -> tuple[Matrix, dict[Hashable, Any]]:
        """The values of the row that comes next that belong to the past then, and its features, which become known."""
        inputs = self._inputs(x, learn=True)
        values, row = self._values(inputs, target), self._row(inputs)
        if (estimator := self._estimator) is not None:  # it can know of features before they have a value
            lags = [feature.name for feature in self._settings.features]
            core = estimator._core or estimator._start([*row, *lags])
            if any(core.columns.place(name) is None for name in row):
                core.add_features(row, {} if self._encoder is None else self._encoder.features)
        return values, row

    def _values(self, inputs: Row, target: float) -> Matrix:
        values: Vector = np.full(1 + len(self._settings.columns), math.nan)
        values[0] = target
        for k, name in enumerate(self._settings.columns, 1):
            column = None if self._encoder is None else self._encoder.columns.get(name)
            value = inputs.get(name if column is None else column.own)
            if value is not None:
                values[k] = value
                if math.isinf(values[k]):
                    raise ValueError(f"feature {name!r} must be a finite number or missing, got {value!r}")
        return values[None]

    def _advance(self, x: Cells, target: float) -> dict[Hashable, Any]:
        values, row = self._known(x, target)
        self._past.follow(values)
        self._learn_due()
        return row

    def _learn(self, row: Row, target: float) -> None:
        if self._encoder is not None:  # features that came after the row have the values that stand for nothing known
            later = {name: fill for name, fill in self._encoder.features.items() if fill == fill and name not in row}
            hidden = hidden_features(self._settings, self._encoder)
            row = row | {name: fill for name, fill in later.items() if name not in hidden}
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


def _is_regressor(model: object) -> bool:
    """Whether a model, or the last step of a pipeline, predicts numbers."""
    last = list(model.steps.values())[-1] if isinstance(model, compose.Pipeline) and model.steps else model
    return isinstance(last, base.Regressor)


# Model files


def _encode(model: Lags, compact: bool) -> tuple[persist.Json, persist.Arrays]:
    model = deepcopy(model)  # one moment, whatever other threads learn meanwhile
    arrays: persist.Arrays = {}
    body = {
        "regressor": persist.encode_part(model.regressor, arrays, "regressor.", compact),
        "settings": model._settings.body(),
        "max_waiting": model.max_waiting,
        "encoder": None if model._encoder is None else model._encoder.body(),
        "past": model._past.encode(arrays),
        "deferred": [_encode_row(row) for row in model._deferred.rows.get(ONE_SERIES, ())],
        "waiting": [[persist.plain(key), at, _encode_row(row)] for key, (at, row) in model._waiting.items()],
        "ahead": model._ahead.encode(),
    }
    return body, arrays


def _encode_row(row: DeferredRow[Row]) -> persist.Json:
    cells = [[persist.plain(name), encode_cell(value)] for name, value in row.x.items()]
    return [row.due, cells, None if math.isnan(row.y) else row.y, row.y_pred, row.scale]


def _decode(body: persist.Json, arrays: persist.Arrays) -> Lags:
    settings = LagSettings.from_body(body["settings"])
    regressor = persist.decode_part(body["regressor"], arrays, "regressor.")
    persist.demand(_is_regressor(regressor), "lags are for a regressor")
    columns = settings.columns or None
    model = Lags(regressor, settings.lags, columns, settings.horizon, claims.count(body["max_waiting"], "max_waiting"))
    model._encoder = None if body["encoder"] is None else encoder_from(body["encoder"])
    model._past.decode(body["past"], arrays)
    persist.demand(set(model._past.counts) <= {ONE_SERIES}, "there is one series")
    for row in body["deferred"]:
        model._deferred.add(ONE_SERIES, _decode_row(row, known=True))
    for key, at, row in body["waiting"]:
        claims.count(at, "the row of a target that comes late")
        persist.demand(at < model._past.counts.get(ONE_SERIES, 0), "a row that waits has not come")
        model._waiting[persist.plain(key)] = at, _decode_row(row, known=False)
    persist.demand(len(model._waiting) <= model.max_waiting, "more rows are waiting than max_waiting allows")
    model._ahead.decode(body["ahead"])
    return model


def _decode_row(body: persist.Json, known: bool) -> DeferredRow[Row]:
    due, cells, y, y_pred, scale = body
    claims.count(due, "when a row is to be learned")
    persist.demand((y is not None) == known, "the target of a row is known, or it waits")
    for value in (y_pred, scale, *([y] if known else [])):
        claims.number(value, "a target to be learned")
    x: dict[Hashable, Any] = {persist.plain(name): decode_cell(cell) for name, cell in cells}
    return DeferredRow(due, x, float(y) if known else math.nan, float(y_pred), float(scale))


persist.register("river-lags", persist.Codec((Lags,), _encode, _decode))
