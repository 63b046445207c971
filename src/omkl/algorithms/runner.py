"""The reference implementation behind the interface of `omkl.engine.Runner`: one state and its uniform numbers."""

from typing import Generic

import numpy as np

from omkl.algorithms.base import Algorithm, Info, P, S
from omkl.arrays import Matrix, Vector
from omkl.engine import DIVERGED, NO_UNIFORMS
from omkl.errors import DivergenceError
from omkl.validation import many_targets


class ReferenceRunner(Generic[P, S]):
    def __init__(self, algorithm: Algorithm[P, S], problem: P, state: S) -> None:
        self._algorithm, self._problem, self.state = algorithm, problem, state
        self._needed, self._shape = algorithm.uniforms(problem), algorithm.shape(problem)
        self._uniforms, self.unused = np.empty(0), 0

    @property
    def t(self) -> int:
        return int(self.state._asdict()["t"])

    def extra(self, out: Vector) -> None:
        out[:] = self._algorithm.extra(self._problem, self.state)

    def predict(self, x: Vector) -> float | Vector:
        with np.errstate(all="ignore"):
            return self._algorithm.predict(self._problem, self.state, x)

    def predict_rows(self, X: Matrix, out: Vector) -> None:
        for x, row in zip(X, _rows_of(out, len(X)), strict=True):
            row[:] = self.predict(x)

    def supply(self, uniforms: Vector) -> None:
        self._uniforms, self.unused = uniforms, len(uniforms)

    def learn(self, x: Vector, y: float, weight: float) -> int:
        self._require_labels(np.array([y]))
        if self.unused < self._needed:
            return NO_UNIFORMS
        at = len(self._uniforms) - self.unused
        info = self._step(x, y, self._uniforms[at : at + self._needed], weight)
        if info is None:
            return DIVERGED
        self.unused -= self._needed
        return len(info.evaluated)

    def run(
        self,
        X: Matrix,
        y: Vector,
        uniforms: Vector,
        weight: Vector | None,
        out: Vector,
        extra: Vector | None = None,
    ) -> tuple[int, int]:
        self._require_labels(y)
        n = self._needed
        evaluated, rows = 0, _rows_of(out, len(X))
        for k, x in enumerate(X):
            w = 1.0 if weight is None else float(weight[k])
            if extra is not None:
                self.extra(_rows_of(extra, len(X))[k])
            info = self._step(x, float(y[k]), uniforms[k * n : (k + 1) * n], w)
            if info is None:
                return k, evaluated
            rows[k] = info.prediction
            evaluated += len(info.evaluated)
        return len(X), evaluated

    def _require_labels(self, y: Vector) -> None:
        """Labels index arrays, so that they are checked whoever calls."""
        if self._shape.target == "label":
            many_targets(y, len(y), "label", self._shape.outputs)

    def _step(self, x: Vector, y: float, uniforms: Vector, weight: float) -> Info | None:
        """What the step reports; None where it diverged, and then the state is as it was."""
        try:
            with np.errstate(all="ignore"):  # what overflows is reported as a divergence
                self.state, info = self._algorithm.step(self._problem, self.state, x, y, uniforms, weight)
        except DivergenceError:
            return None
        return info


def _rows_of(out: Vector, rows: int) -> Matrix:
    return out.reshape(rows, len(out) // max(rows, 1))
