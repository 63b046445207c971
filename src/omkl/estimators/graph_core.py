"""What both doors stand on for GraphMKL, which scales for itself and speaks in distributions."""

import dataclasses
from collections.abc import Hashable, Sequence
from typing import Any, Self

import numpy as np

from omkl.algorithms import graph_mkl
from omkl.algorithms.graph_mkl import GAIN, LEVELS
from omkl.algorithms.weights import normalised
from omkl.arrays import Matrix, Vector
from omkl.estimators.core import Core, stacked, stretches
from omkl.losses import LossName
from omkl.settings import GraphSettings, require

ONE_SIGMA = 0.6827
FAR = 2**62
ALL_LEVELS = np.arange(len(LEVELS))
TRACKING = np.exp(GAIN * (np.array([[False], [True]]) - (1 - LEVELS)))  # what a hit and a miss make of the widths
# what the two tasks want differently
USUAL: dict[LossName, dict[str, float]] = {
    "squared": {"discount": 0.1, "memory": 0.97, "sure": 0.05},
    "logistic": {"discount": 0.01, "memory": 0.98, "sure": 0.01},
}


def half_width(reach: Matrix, coverage: float) -> Vector:
    """Predicted deviations to either side that hold `coverage` of the targets, between the levels tracked."""
    require(0 < coverage < 1, "coverage", "a number between 0 and 1", coverage)
    place = np.interp(coverage, LEVELS, np.arange(len(LEVELS)))
    low = min(int(place), len(LEVELS) - 2)
    log_low, log_high = np.log(reach[..., low]), np.log(reach[..., low + 1])
    out: Vector = np.exp(log_low + (place - low) * (log_high - log_low))
    return out


def graph_settings(model: Any, loss: LossName) -> GraphSettings:
    """The settings of an estimator; what it leaves open depends on the task."""
    given = {f.name: getattr(model, f.name) for f in dataclasses.fields(GraphSettings) if hasattr(model, f.name)}
    return GraphSettings(**(given | {name: value for name, value in USUAL[loss].items() if given[name] is None}))


class GraphCore(Core):
    """Raw rows; what is missing is NaN, which the learner knows."""

    def __init__(self, settings: GraphSettings, seed: int, names: Sequence[Hashable]) -> None:
        super().__init__("graph-mkl", settings, seed, names, "none")

    @property
    def missing(self) -> float:
        return np.nan

    def weights(self, name: str = "") -> Matrix:
        """(1, N): of every kernel in the mixture; what is left to 1 is with the experts of no kernel."""
        problem, state = self.online.problem, self.online.state
        speaks = graph_mkl.speaking(problem, state, state.incumbent)
        weight = np.zeros(len(speaks))
        weight[speaks] = normalised(state.evidence[state.incumbent][speaks])
        out: Matrix = weight[: graph_mkl.on_kernels(problem)].reshape(1, len(problem.V), -1).sum(axis=2)
        return out


class GraphTargetCore(GraphCore):
    """GraphMKL for a number."""

    def dist(self, X: Matrix) -> Matrix:
        """(rows, 2): mean, and half width of the interval that holds 68 %."""
        with self._lock:
            out = self.online.ask_rows(X)
            out[:, 1] *= half_width(self.online.peek("reach"), ONE_SIGMA)
            return out

    def predict(self, X: Matrix) -> Vector:
        with self._lock:
            return self.online.ask_rows(X)[:, 0].copy()

    def interval(self, X: Matrix, coverage: float) -> Matrix:
        """(rows, 2): lower and upper end."""
        with self._lock:
            out = self.online.ask_rows(X)
            return ends(out, half_width(self.online.peek("reach"), coverage))

    def run(self, X: Matrix, y: Vector, weight: Vector | None = None) -> Vector:
        with self._lock:
            return self.online.tell_rows(X, y, weight)[:, 0].copy()

    def run_interval(self, X: Matrix, y: Vector, coverage: float) -> Matrix:
        """(rows, 3): mean, lower and upper end, each row's before it was learned."""
        half_width(self.online.peek("reach"), coverage)  # refuses before anything is learned
        with self._lock:
            out, reach = np.empty((len(X), 2)), np.empty((len(X), len(LEVELS)))
            start = 0
            while start < len(X):
                tracked, rows = self._foresight()
                stop = min(start + rows, len(X))
                reach[start] = self.online.peek("reach")
                out[start:stop] = self.online.tell_rows(X[start:stop], y[start:stop])
                for k in range(start, stop - 1):
                    mean, deviation = out[k]
                    moves = TRACKING[(abs(y[k] - mean) > reach[k] * deviation).astype(np.intp), ALL_LEVELS]
                    reach[k + 1] = reach[k] * moves if tracked else reach[k]
                start = stop
        return np.column_stack((out[:, 0], ends(out, half_width(reach, coverage))))

    def _foresight(self) -> tuple[bool, int]:
        """Whether the next rows move the widths of intervals, and for how many rows that is certain.

        They do where the incumbent knows its target's unit, which it never unlearns; and none can take its place
        before it has been on trial.
        """
        age, incumbent = self.online.peek("age"), int(self.online.peek("incumbent"))
        if not self.online.peek("unit")[incumbent]:
            return False, 1
        trial: int = self.online.problem.trial
        return True, trial - max(0, int(age[1 - incumbent])) if trial else FAR

    def predict_row(self, x: dict[Hashable, Any]) -> float:
        with self._lock:
            return float(self.online.ask(self.row(x, keep=False))[0])

    def dist_row(self, x: dict[Hashable, Any]) -> tuple[float, float]:
        with self._lock:
            mean, deviation = self.dist(self.row(x, keep=False)[None])[0]
            return float(mean), float(deviation)

    def learn_row(self, x: dict[Hashable, Any], y: float, weight: float) -> None:
        with self._lock:
            self.online.tell(self.row(x, keep=True), y, weight)


class GraphLabelCore(GraphCore):
    """GraphMKL for labels: an output for each, added when a label comes that was not announced."""

    def __init__(
        self, settings: GraphSettings, seed: int, names: Sequence[Hashable], labels: Sequence[Hashable] = ()
    ) -> None:
        outputs = max(len(labels), 1)
        super().__init__(dataclasses.replace(settings, task="classification", outputs=outputs), seed, names)
        self.labels: list[Hashable] = list(labels)

    def anew(self, rng: np.random.Generator) -> Self:
        twin = super().anew(rng)
        twin.labels = list(self.labels)  # those announced
        return twin

    def _welcome(self, label: Hashable) -> None:
        self.labels.append(label)
        if len(self.labels) > 1:
            self.settings = dataclasses.replace(self.settings, outputs=len(self.labels))
            self.online.move_to(self.online.problem._replace(K=len(self.labels)))

    def chances(self, X: Matrix) -> Matrix:
        """(rows, labels)"""
        with self._lock:
            return whole(self.online.ask_rows(X)[:, : len(self.labels)])

    def run(self, X: Matrix, y: Sequence[Hashable], weight: Vector | None = None) -> Matrix:
        """Prequential chances, (rows, labels known in the end)."""
        with self._lock:
            parts = []
            for start, stop, arrives in stretches(self.labels, y):
                unseen = self.chances(X[start : start + 1])
                if arrives:
                    self._welcome(y[start])
                place = {label: float(k) for k, label in enumerate(self.labels)}
                w = None if weight is None else weight[start:stop]
                part = self.online.tell_rows(X[start:stop], np.array([place[label] for label in y[start:stop]]), w)
                if arrives:  # the row that brings a label is predicted before the label is known
                    part[0], part[0, : unseen.shape[1]] = 0, unseen
                parts.append(part)
            return whole(stacked(parts, len(self.labels), 0.0))

    run_chances = run

    def chances_row(self, x: dict[Hashable, Any]) -> list[float]:
        with self._lock:
            p = whole(self.online.ask(self.row(x, keep=False))[None, : len(self.labels)])
            return [float(chance) for chance in p[0]]

    def learn_row(self, x: dict[Hashable, Any], label: Hashable, weight: float) -> None:
        with self._lock:
            row = self.row(x, keep=True)
            if label not in self.labels:
                self._welcome(label)
            self.online.tell(row, float(self.labels.index(label)), weight)


def whole(p: Matrix) -> Matrix:
    """Chances that sum to 1 to the last digit, where there are any."""
    total = p.sum(axis=1, keepdims=True)
    out: Matrix = np.divide(p, total, out=np.zeros_like(p), where=total > 0)
    return out


def ends(out: Matrix, width: Vector) -> Matrix:
    return np.column_stack((out[:, 0] - width * out[:, 1], out[:, 0] + width * out[:, 1]))
