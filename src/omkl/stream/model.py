"""A learner together with the columns it learns from: what `omkl run` makes, saves and continues."""

from collections.abc import Iterator
from typing import Protocol

import numpy as np

from omkl.algorithms.base import Task
from omkl.arrays import Index, Matrix, Vector
from omkl.encoder.columns import Encoder
from omkl.encoder.table import Batch
from omkl.estimators.cores import core_class
from omkl.kernels import Kernel
from omkl.notices import Notices
from omkl.persist import Json
from omkl.stream.learner import Learner, check_parameters, new_learner
from omkl.stream.linear import LinearModel
from omkl.stream.predictions import (
    DEFAULT_COVERAGE,
    LateTargets,
    Outputs,
    Predictions,
    Targets,
    Threshold,
    concatenated,
    with_targets,
)
from omkl.stream.prepare import Prepared, Preparer
from omkl.stream.raw import DataError
from omkl.stream.waiting import LATE, LEARN, PREDICT, WaitingRows


class Observer(Protocol):
    """Looks at the model before the first row after row `due`."""

    due: int

    def observe(self, model: "StreamModel", row: int) -> None:
        """Look at the model before this row, and set `due` to a row not before it."""


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
        self, preparer: Preparer, algorithm: str, seed: int, parameters: dict[str, Json] | None = None
    ) -> None:
        self.preparer, self.algorithm, self.seed = preparer, algorithm, seed
        self.parameters = parameters or {}
        check_parameters(algorithm, preparer.target.task, self.parameters)
        self.learner: Learner | None = None  # until the task is known
        self.learned = 0
        # not part of the file: whoever predicts may choose these
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
        self, prepared: Prepared, observer: Observer | None = None, baseline: LinearModel | None = None
    ) -> tuple[Predictions, LateTargets]:
        """As `run`, from rows that this model's preparer has prepared; `baseline` predicts and learns them too."""
        rows, y, keys, roles, encoded = prepared
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
        begins = np.isin(place, list(new_features)) & (roles != LATE)
        edges = np.flatnonzero((np.diff(roles) != 0) | begins[1:] | begins[:-1]) + 1
        late = LateTargets.none()
        parts: list[Predictions] = []
        for first, last in zip([0, *edges], [*edges, len(roles)], strict=True):
            for start, stop in self._segments(rows, first, last, observer):
                here = slice(start, stop)
                keys_here = None if keys is None else keys[here]
                if roles[start] == LATE:
                    for key, target in zip(keys_here or (), y[here], strict=True):
                        self._learn_late(key, target, late, baseline)
                    continue
                columns = slice(place[start], place[stop - 1] + 1)
                before: Outputs | None = None
                if begins[start]:  # what is new in a row becomes known after the row was predicted
                    if learner.can_learn:
                        before = learner.predict(self._matrix(encoded.features, columns), keys_here, self.coverages)
                    learner.add_features(new_features[int(place[start])])
                X = self._matrix(encoded.features, columns)
                linear = self._linear(baseline, X, y[here] if roles[start] == LEARN else None)
                if learns := roles[start] == LEARN and learner.can_learn:
                    out = learner.learn(X, y[here], keys_here, self.coverages)
                    self.learned += int(stop - start)
                else:
                    out = before or learner.predict(X, keys_here, self.coverages)
                out = self._decided(before or out)
                predictions = with_targets(out, rows[here], y[here], keys_here, self.coverages)
                parts.append(predictions._replace(linear=linear))
                if not learns and self.preparer.key is not None:
                    self.waiting.add(X, parts[-1])
        if learner.budget is not None and self.learned > learner.budget:
            self.notices("budget", f"{self.algorithm} stores {learner.budget} rows; later rows only update the weights "
                         "of its kernels")  # fmt: skip
        return concatenated(parts, keys is not None), late

    def _started(self) -> Learner:
        if self.learner is None:
            assert self.task is not None
            self.learner = new_learner(
                self.algorithm, self.task, self.seed, self.preparer.by is not None, self.notices, self.parameters
            )
        return self.learner

    def _segments(self, rows: Index, start: int, stop: int, observer: Observer | None) -> Iterator[tuple[int, int]]:
        """The rows from `start` to `stop`, cut where the observer is due."""
        while start < stop:
            if observer is not None and rows[start] > observer.due:
                observer.observe(self, int(rows[start]))
            end = stop if observer is None else min(stop, int(np.searchsorted(rows, observer.due, side="right")))
            yield start, max(end, start + 1)
            start = max(end, start + 1)

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
        baseline.extend([self.encoder.features[name] for name in self.learner.names[baseline.n_features :]])
        return baseline.predict(X) if y is None else baseline.learn(X, y)

    def _learn_late(self, key: str, target: float | str, late: LateTargets, baseline: LinearModel | None) -> None:
        """Learn a waiting row whose target has come; features that came after it have their fill values."""
        assert self.learner is not None
        x = self.waiting.resolve(key, target, late)
        fills = [self.encoder.features[name] for name in self.learner.names[len(x) :]]
        X, y = (
            np.concatenate((x, fills))[None],
            np.array([target], dtype=float if self.task == "regression" else object),
        )
        linear = self._linear(baseline, X, y)
        late.linear.append(None if linear is None else linear[0])
        if self.learner.can_learn:
            self.learner.learn(X, y, None, self.coverages)
            self.learned += 1

    # Predicting only

    def predict(self, batch: Batch) -> Predictions:
        """Predict rows from the model as it is; nothing becomes known."""
        if self.learned == 0 or self.learner is None:
            raise DataError("the model has learned no row yet; there is nothing to predict from")
        batch, y, keys = self.preparer.split(batch, learn=False)
        X = self._matrix(self.encoder.encode(batch, learn=False).features, slice(0, len(batch.rows)))
        out = self._decided(self.learner.predict(X, keys, self.coverages))
        return with_targets(out, batch.rows, y, keys, self.coverages)

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
