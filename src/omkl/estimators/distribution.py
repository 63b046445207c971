"""Estimators' cores for algorithms that predict distributions and scale their inputs themselves, such as GraphMKL."""

from collections.abc import Hashable, Sequence
from typing import Protocol, Self

import numpy as np

from omkl.algorithms.base import AlgorithmSettings
from omkl.algorithms.graph_mkl.constants import ONE_SIGMA
from omkl.algorithms.graph_mkl.intervals import check_coverage, half_width, interval
from omkl.arrays import Matrix, Vector
from omkl.estimators.classification import LEAST_PROBABILITY, split_at_new_labels, stacked
from omkl.estimators.core import Intervals, LabelCore, NumberCore, Scale, only
from omkl.estimators.rows import Cells
from omkl.online import Online
from omkl.persist import Arrays, Json, demand, plain


class LabelSettings(AlgorithmSettings, Protocol):
    """Settings of an algorithm with an output for each label."""

    outputs: int

    def with_outputs(self, outputs: int) -> Self:
        """The same settings for another number of labels."""


class DistributionRegressionCore(NumberCore):
    intervals = True

    def __init__(
        self,
        learner: str,
        settings: AlgorithmSettings,
        seed: int,
        names: Sequence[Hashable],
        scale: Scale = "none",
        classes: Sequence[Hashable] | None = None,
    ) -> None:
        super().__init__(learner, settings, seed, names, "none")

    def predict(self, X: Matrix) -> Vector:
        with self._lock:
            return self.online.predict_rows_unchecked(self.with_ids(X))[:, 0].copy()

    def predict_std(self, X: Matrix) -> Matrix:
        """(rows, 2): mean, and half width of the interval that holds 68 % of the targets."""
        with self._lock:
            return self._std(self.with_ids(X))

    def _std(self, X: Matrix) -> Matrix:
        out = self.online.predict_rows_unchecked(X)
        out[:, 1] *= half_width(self.online.extra, ONE_SIGMA)
        return out

    def predict_interval(self, X: Matrix, coverage: float) -> Matrix:
        with self._lock:
            return self._interval(self.with_ids(X), coverage)

    def _interval(self, X: Matrix, coverage: float) -> Matrix:
        return interval(self.online.predict_rows_unchecked(X), half_width(self.online.extra, coverage))

    def learn_features(self, X: Matrix, y: Vector, weight: Vector | None = None) -> Vector:
        with self._lock:
            return self.online.run_whole(X, y, weight)[:, 0].copy()

    def learn_rows_interval(self, X: Matrix, y: Vector, coverage: float) -> Matrix:
        out = self.learn_rows_intervals(X, y, (coverage,))
        return np.column_stack((out.y_pred, out.lower, out.upper))

    def predict_intervals(self, X: Matrix, coverages: Sequence[float]) -> Intervals:
        with self._lock:
            out = self.online.predict_rows_unchecked(self.with_ids(X))
            return intervals(out, self.online.extra, coverages)

    def learn_rows_intervals(self, X: Matrix, y: Vector, coverages: Sequence[float]) -> Intervals:
        with self._lock, self.learning_ids(X, y, None) as X:
            for coverage in coverages:  # before anything is learned
                check_coverage(coverage)
            half_widths = np.empty((len(X), self.online.shape.extras))
            out = self.online.run_whole(X, y, extra=half_widths)
        return intervals(out, half_widths, coverages)

    def predict_row(self, x: Cells) -> float:
        with self._lock:
            return self.online.predict_rows_unchecked(self.row(x, learn=False)[None]).item(0)

    def predict_std_row(self, x: Cells) -> tuple[float, float]:
        with self._lock:
            mean, deviation = self._std(self.row(x, learn=False)[None])[0]
            return float(mean), float(deviation)

    def predict_interval_row(self, x: Cells, coverage: float) -> tuple[float, float]:
        with self._lock:
            lower, upper = self._interval(self.row(x, learn=False)[None], coverage)[0]
            return float(lower), float(upper)

    def learn_row(self, x: Cells, y: float, weight: float) -> None:
        with self._lock:
            self.online.learn_unchecked(self.row(x, learn=True), y, weight)
            if self.ids is not None:
                self._learn_ids(y, weight)

    def encode_own(self, arrays: Arrays) -> dict[str, Json]:
        return {}

    def decode_own(self, body: Json, arrays: Arrays, learners: list[Online]) -> None:
        self.online = only(learners)


class DistributionClassificationCore(LabelCore):
    """An output for each label, added when a label comes that was not announced. Its scores are probabilities."""

    unknown = 0.0
    settings: LabelSettings

    def __init__(
        self,
        learner: str,
        settings: LabelSettings,
        seed: int,
        names: Sequence[Hashable],
        scale: Scale = "none",
        classes: Sequence[Hashable] | None = None,
    ) -> None:
        labels = list(classes or ())
        super().__init__(learner, settings.with_outputs(max(len(labels), 1)), seed, names, "none")
        self._labels: list[Hashable] = labels

    def fresh_copy(self, rng: np.random.Generator) -> Self:
        other = super().fresh_copy(rng)
        other._labels = list(self._labels)  # those announced
        return other

    @property
    def labels(self) -> list[Hashable]:
        return self._labels

    def _add_label(self, label: Hashable) -> None:
        labels, settings = [*self._labels, label], self.settings
        if len(labels) > 1:
            settings = settings.with_outputs(len(labels))
            self.online.change_problem(self.online.problem._replace(K=len(labels)))
        self._labels, self.settings = labels, settings

    def scores(self, X: Matrix) -> Matrix:
        with self._lock:
            return self._normalised(self.with_ids(X))

    def _normalised(self, X: Matrix) -> Matrix:
        return normalised_rows(self.online.predict_rows_unchecked(X)[:, : len(self._labels)])

    def to_probabilities(self, scores: Matrix, learned: Vector | float) -> Matrix:
        return scores

    def to_decision(self, scores: Matrix) -> Matrix:
        log_p = np.log(np.maximum(scores, LEAST_PROBABILITY))
        return log_p[:, 1] - log_p[:, 0] if scores.shape[1] == 2 else log_p

    def learn_features(self, X: Matrix, y: Sequence[Hashable], weight: Vector | None = None) -> Matrix:
        with self._lock:
            safe = self.online.cannot_diverge(X, np.empty(0))
            before = None if safe else (self._labels, self.settings, self.online.copy())
            try:
                return self._learn_rows(X, y, weight)
            except BaseException:  # also too little memory, or Ctrl-C
                if before is not None:
                    self._labels, self.settings, self.online = before
                raise

    def _learn_rows(self, X: Matrix, y: Sequence[Hashable], weight: Vector | None) -> Matrix:
        parts = []
        for start, stop, new_label in split_at_new_labels(self._labels, y):
            before = self._normalised(X[start : start + 1])
            if new_label:
                self._add_label(y[start])
            index = {label: float(k) for k, label in enumerate(self._labels)}
            w = None if weight is None else weight[start:stop]
            targets = np.array([index[label] for label in y[start:stop]])
            part = normalised_rows(self.online.run_unchecked(X[start:stop], targets, w))
            if new_label:  # the row that brings a label is predicted before the label is known
                part[0], part[0, : before.shape[1]] = 0, before
            parts.append(part)
        return stacked(parts, len(self._labels), 0.0)

    def probabilities_row(self, x: Cells) -> list[float]:
        with self._lock:
            p = self.online.predict_rows_unchecked(self.row(x, learn=False)[None])[:, : len(self._labels)]
            probabilities: list[float] = normalised_rows(p)[0].tolist()
            return probabilities

    def learn_weighted_row(self, x: Cells, y: Hashable, weight: float) -> None:
        with self._lock:
            row = self.row(x, learn=True)
            if y not in self._labels:
                self._add_label(y)
            self.online.learn_unchecked(row, float(self._labels.index(y)), weight)
            if self.ids is not None:
                self._learn_ids(y, weight)

    def encode_own(self, arrays: Arrays) -> dict[str, Json]:
        return {"labels": [plain(label) for label in self._labels]}

    def decode_own(self, body: Json, arrays: Arrays, learners: list[Online]) -> None:
        self.online = only(learners)
        self._labels = list(body["labels"])
        demand(len(set(self._labels)) == len(self._labels), "a label comes twice")
        outputs = max(len(self._labels), 1)
        demand(outputs == self.online.shape.outputs == self.settings.outputs, "labels and outputs differ")


def intervals(prediction: Matrix, half_widths: Matrix, coverages: Sequence[float]) -> Intervals:
    """Of these coverages, from (rows, 2) means and standard deviations and the half widths of all tracked levels."""
    mean, deviation = prediction.T
    half = np.empty((len(mean), len(coverages)))
    for k, coverage in enumerate(coverages):
        half[:, k] = half_width(half_widths, coverage) * deviation
    return Intervals(mean.copy(), mean[:, None] - half, mean[:, None] + half)


def normalised_rows(p: Matrix) -> Matrix:
    """Probabilities that sum to 1 to the last digit, and none of which is 0."""
    p = np.maximum(p, LEAST_PROBABILITY)
    out: Matrix = p / p.sum(axis=1, keepdims=True)
    return out
