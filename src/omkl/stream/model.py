"""A learner together with the columns it learns from: what `omkl run` makes, saves and continues."""

from collections.abc import Callable, Sequence
from copy import copy, deepcopy
from operator import itemgetter

import numpy as np

from omkl.algorithms.base import Task
from omkl.arrays import Index, Matrix, Vector
from omkl.encoder.columns import Encoder
from omkl.encoder.table import Batch
from omkl.estimators.cores import core_class
from omkl.estimators.label_order import LabelOrder
from omkl.kernels import Kernel
from omkl.lags import ONE_SERIES, AheadIntervals, DeferredRow, DeferredRows, waves
from omkl.notices import Notices
from omkl.persist import Json
from omkl.stream.learner import Learner, check_parameters, new_learner
from omkl.stream.linear import LinearModel
from omkl.stream.pieces import Observer, pieces
from omkl.stream.predictions import (
    DEFAULT_COVERAGE,
    Forecast,
    LateTargets,
    Outputs,
    Predictions,
    Targets,
    Threshold,
    as_numbers,
    concatenated,
    with_targets,
)
from omkl.stream.prepare import Prepared, Preparer
from omkl.stream.raw import DataError
from omkl.stream.waiting import LATE, LEARN, PREDICT, WaitingRows

NO_TARGETS: Vector = np.empty(0)


class StreamModel:
    """Predicts, then learns, rows of a table.

    Parameters
    ----------
    preparer
        Makes features and targets of columns; several models may share one.
    algorithm
        The name of the learner's algorithm.
    seed
        Decides random features and draws.
    parameters
        Of the learner, other than its defaults.
    """

    def __init__(
        self,
        preparer: Preparer,
        algorithm: str,
        seed: int,
        parameters: dict[str, Json] | None = None,
        pooled: bool = False,
    ) -> None:
        self.preparer, self.algorithm, self.seed, self.pooled = preparer, algorithm, seed, pooled
        self.parameters = parameters or {}
        check_parameters(algorithm, preparer.target.task, self.parameters)
        self.learner: Learner | None = None  # until the task is known
        self.learned = 0
        self.deferred: DeferredRows[Vector] = DeferredRows()  # where rows are predicted more than one ahead
        self.ahead = AheadIntervals()
        # not part of the file: of the rows of this run, and whoever predicts may choose the others
        self.order = LabelOrder()
        self.threshold: Threshold | None = None
        self.coverages: tuple[float, ...] = (DEFAULT_COVERAGE,)

    # Learning

    def run(self, batch: Batch) -> tuple[Predictions, LateTargets]:
        """Predict each row, then learn it if its target is known."""
        return self.learn(self.prepare(batch))

    def prepare(self, batch: Batch) -> Prepared:
        """Rows as features and targets."""
        return self.preparer.prepare(batch, self.learner is None or self.learner.takes_new_features)

    def learn(
        self,
        prepared: Prepared,
        observer: Observer | None = None,
        baseline: LinearModel | None = None,
        pause: Callable[[], None] | None = None,
    ) -> tuple[Predictions, LateTargets]:
        """As `run`, from rows that this model's preparer has prepared; `baseline` predicts and learns them too.

        `pause` is called between pieces of the rows, if all are alike; others may then predict, and copy the model.
        """
        rows, y, keys, roles, positions, encoded = prepared
        if not len(rows):
            return concatenated([], keys is not None), LateTargets.none()
        if self.preparer.by is not None and not encoded.features:
            raise self.preparer.no_features()
        learner = self._started()
        observer = observer if learner.observable else None
        new_features = learner.start_batch(encoded, y)
        if (learnable := learner.learnable(y)) is not None:
            roles = np.where(learnable | (roles != LEARN), roles, PREDICT)
        place = np.cumsum(roles != LATE) - 1  # of a row among those that have features
        begins = np.isin(place, list(new_features)) & (roles != LATE) if new_features else np.zeros(len(roles), bool)
        edges = np.flatnonzero((np.diff(roles) != 0) | begins[1:] | begins[:-1]) + 1
        if encoded.arrivals or (roles == LATE).any():
            pause = None  # columns are known before the learner has them, and waiting rows taken out one by one
        late = LateTargets.none()
        parts: list[Predictions] = []
        for first, last in zip([0, *edges], [*edges, len(roles)], strict=True):
            columns = slice(place[first], place[last - 1] + 1)
            for start, stop in pieces(self, rows, first, last, observer, pause):
                here = slice(start, stop)
                keys_here = None if keys is None else keys[here]
                if roles[start] == LATE:
                    for key, target, position in zip(keys_here or (), y[here], positions[here], strict=True):
                        self._learn_late(key, target, late, int(position), baseline)
                    continue
                before: Forecast | None = None
                if begins[start]:  # what is new in a row becomes known after the row was predicted
                    if learner.can_learn:
                        before = self._forecast(self._matrix(encoded.features, columns), keys_here)
                    row = [name for name in learner.names if not np.isnan(encoded.features[name][place[start]])]
                    learner.add_features(new_features[int(place[start])], row, self.preparer.fills)
                if start == first:  # the rows up to the last are alike
                    X_all, learns = self._matrix(encoded.features, columns), roles[first] == LEARN and learner.can_learn
                    linear = self._linear(baseline, X_all, y[first:last] if roles[first] == LEARN else None)
                segment = slice(start - first, stop - first)
                X = X_all[segment]
                if self.horizon > 1:
                    targets = as_numbers(y[here]) if learns else np.full(len(X), np.nan)
                    forecast = self._defer(X, targets, positions[here], keys_here, before)
                elif learns:
                    new = learner.without_model(keys_here, learned=True)
                    out = learner.learn(X, y[here], keys_here, self.coverages)
                    self._predict_new(out, new, range(len(X)), y[here])
                    if self.task == "classification":
                        self.order.update(y[here])
                    self.learned += int(stop - start)
                    forecast = before or Forecast(out)
                else:
                    forecast = before or self._forecast(X, keys_here)
                    self._predict_new(forecast.out, learner.without_model(keys_here))
                out = self._decided(forecast.out)
                predictions = with_targets(out, rows[here], y[here], keys_here, self.coverages)
                parts.append(predictions._replace(linear=None if linear is None else linear[segment]))
                if not learns and self.preparer.key is not None:
                    self.waiting.add(X, parts[-1], positions[here], forecast.scale)
        if learner.budget is not None and self.learned > learner.budget:
            self.notices("budget", f"{self.algorithm} stores {learner.budget} rows; later rows only update the weights "
                         "of its kernels")  # fmt: skip
        return concatenated(parts, keys is not None), late

    def _started(self) -> Learner:
        if self.learner is None:
            assert self.task is not None
            by_key = self.preparer.by is not None
            self.learner = new_learner(
                self.algorithm, self.task, self.seed, by_key, self.notices, self.parameters, self.pooled
            )
        return self.learner

    def _matrix(self, features: dict[str, Vector], rows: slice) -> Matrix:
        names = () if self.learner is None else self.learner.names
        X = np.empty((rows.stop - rows.start, len(names)))
        for k, name in enumerate(names):
            X[:, k] = features[name][rows]
        return X

    def _linear(self, baseline: LinearModel | None, X: Matrix, y: Targets | None) -> Targets | None:
        """What the linear baseline predicts for these rows, which it learns if their targets are known."""
        if baseline is None or self.learner is None:
            return None
        fills = self.preparer.fills
        baseline.extend([fills[name] for name in self.learner.names[baseline.n_features :]])
        return baseline.predict(X) if y is None else baseline.learn(X, y)

    def _learn_late(
        self, key: str, target: float | str, late: LateTargets, position: int, baseline: LinearModel | None
    ) -> None:
        """Learn a waiting row whose target has come after the row at this position."""
        assert self.learner is not None
        row = self.waiting.resolve(key, target, late)
        X, y = self._grown(row.x)[None], np.array([target], dtype=float if self.task == "regression" else object)
        linear = self._linear(baseline, X, y)
        late.linear.append(None if linear is None else linear[0])
        if self.horizon > 1:
            due = DeferredRow(position + self.horizon, row.x, float(target), float(row.y_pred or 0.0), row.scale)
            self.deferred.add(ONE_SERIES, due)
        elif self.learner.can_learn:
            self.learner.learn(X, y, None, self.coverages)
            self.learned += 1

    def _grown(self, x: Vector) -> Vector:
        """A row of the past; features that came after it have their fill values."""
        assert self.learner is not None
        fills = self.preparer.fills
        return np.concatenate((x, [fills[name] for name in self.learner.names[len(x) :]]))

    def _predict_new(
        self, out: Outputs, rows: list[int], known_from: Sequence[int] = (), y: Targets = NO_TARGETS
    ) -> None:
        """Predict rows of keys that had no model from the targets of all keys; y are known after rows `known_from`."""
        assert self.learner is not None
        if self.learner.typical is not None:
            out.y_pred[rows] = self.learner.typical.before(rows, known_from, y)

    def _forecast(self, X: Matrix, keys: list[str] | None) -> Forecast:
        """Predictions from the learner as it is, with intervals for the horizon."""
        assert self.learner is not None
        out = self.learner.predict(X, keys, self.coverages)
        if self.horizon == 1 or out.lower is None:
            return Forecast(out)
        y_pred, scale = as_numbers(out.y_pred)[:, None], self.learner.scale(X)
        half = scale[:, None] * [self.ahead.half_width(coverage) for coverage in self.coverages]
        return Forecast(out._replace(lower=y_pred - half, upper=y_pred + half), scale)

    def _defer(
        self, X: Matrix, y: Vector, positions: Index, keys: list[str] | None, before: Forecast | None = None
    ) -> Forecast:
        """Predict rows more than one ahead; the target of each is learned when the row `horizon` after it comes."""
        assert self.learner is not None
        series = self.preparer.series(keys)
        order: list[int] = []
        parts: list[Forecast] = []
        new: list[int] = []
        came: list[tuple[int, float]] = []  # targets that are learned, with the rows that they come in
        for rows in waves(None if self.pooled else series, len(X)):  # to a pool the order of all rows matters
            own_keys = None if keys is None else [keys[row] for row in rows]
            new += (rows[k] for k in self.learner.without_model(own_keys))
            part = before or self._forecast(X[rows], own_keys)
            parts.append(part)
            order += rows
            due: list[tuple[str, DeferredRow[Vector]]] = []
            for k, row in enumerate(rows):
                first = len(due)
                name = ONE_SERIES if series is None else series[row]
                if not np.isnan(y[row]):
                    y_pred, scale = float(part.out.y_pred[k]), float(part.scale[k]) if part.scale is not None else 0.0
                    at = int(positions[row]) + self.horizon
                    self.deferred.add(name, DeferredRow(at, X[row].copy(), float(y[row]), y_pred, scale))
                due += ((name, each) for each in self.deferred.take(name, int(positions[row]) + 1))
                came += ((row, each.y) for _, each in due[first:])
            if due:
                learned = np.array([self._grown(row.x) for _, row in due])
                names = None if series is None else [name for name, _ in due]
                self.learner.learn(learned, np.array([row.y for _, row in due]), names, self.coverages)
                self.learned += len(due)
                for _, each in due:
                    self.ahead.update(each)
        forecast = Forecast.in_order(parts, order)
        came.sort(key=itemgetter(0))
        self._predict_new(forecast.out, sorted(new), [row for row, _ in came], np.array([y for _, y in came]))
        return forecast

    # Predicting only

    def predict(self, batch: Batch) -> Predictions:
        """Predict rows from the model as it is; nothing becomes known, except past values where there are lags."""
        if self.learned == 0 or self.learner is None:
            raise DataError("the model has learned no row yet; there is nothing to predict from")
        rows, y, keys, _, positions, encoded = self.preparer.prepare_unlearned(batch)
        X = self._matrix(encoded.features, slice(0, len(rows)))
        if self.horizon > 1 and len(rows):
            out = self._defer(X, np.full(len(rows), np.nan), positions, keys).out
        else:
            out = self.learner.predict(X, keys, self.coverages)
            self._predict_new(out, self.learner.without_model(keys))
        return with_targets(self._decided(out), rows, y, keys, self.coverages)

    def following(self) -> "StreamModel":
        """The model for `predict` on one batch after another: rows continue the series, and the model itself does not.

        It learns nothing from them, but rows whose targets were known before.
        """
        lagged = self.preparer.lagged
        if lagged is None:
            return self
        other, other.preparer = copy(self), copy(self.preparer)
        other.preparer.lagged = copy(lagged)
        other.preparer.lagged.past = deepcopy(lagged.past)
        if len(self.deferred):
            other.learner, other.deferred = deepcopy(self.learner), deepcopy(self.deferred)
            other.ahead = deepcopy(self.ahead)
        return other

    def check_probabilities(self, option: str) -> None:
        """Refuse an option about probabilities where there are none, as far as that is known."""
        if self.preparer.by is not None:
            raise DataError(f"{option} needs probabilities, which models by key do not predict")
        if self.task == "regression":
            raise DataError(f"{option} is for labels, and {self.target!r} holds numbers (--task classification if "
                            "they are labels)")  # fmt: skip

    def check_intervals(self) -> None:
        """Refuse the coverages that a user has chosen where there are no intervals, as far as that is known."""
        if self.preparer.by is not None:
            raise DataError("--coverage needs prediction intervals, which models by key do not predict")
        if self.task == "classification":
            raise DataError(f"--coverage is for numbers, and {self.target!r} holds labels (--task regression if they "
                            "are numbers)")  # fmt: skip
        if not core_class(self.algorithm, "regression").intervals:
            raise DataError(
                f"--coverage needs prediction intervals, which {self.algorithm} does not predict; use graph-mkl"
            )

    def _decided(self, out: Outputs) -> Outputs:
        return out if self.threshold is None else self.threshold.applied(out)

    # What there is to look at

    @property
    def target(self) -> str:
        return self.preparer.target.name

    @property
    def task(self) -> Task | None:
        return self.preparer.target.task

    @property
    def horizon(self) -> int:
        """How many rows ahead predictions are made."""
        return 1 if self.preparer.lagged is None else self.preparer.lagged.settings.horizon

    @property
    def encoder(self) -> Encoder:
        return self.preparer.encoder

    @property
    def waiting(self) -> WaitingRows:
        return self.preparer.waiting

    @property
    def notices(self) -> Notices:
        return self.preparer.notices

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        return () if self.learner is None else self.learner.kernels

    def weights(self) -> Vector:
        """The weight of every kernel, averaged over labels."""
        return np.empty(0) if self.learner is None else self.learner.weights()
