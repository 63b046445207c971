"""Prediction intervals of the scikit-learn estimators."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from omkl.arrays import Matrix, Tensor, Vector
from omkl.estimators.sklearn import inputs
from omkl.estimators.sklearn.regression import Regressor
from omkl.estimators.tally import tally_of
from omkl.lock import locked


class IntervalRegressor(Regressor):
    """A regressor with prediction intervals."""

    # a tuple on request, as scikit-learn's Gaussian processes return it
    @locked
    def predict(self, X: ArrayLike, return_std: bool = False) -> Vector | tuple[Vector, Vector]:  # type: ignore[override]  # a regressor may also return deviations
        """Predictions; with `return_std` also half the width of the interval that holds 68 % of the targets."""
        core = self._fitted().core_
        if not return_std:
            return core.predict(self._rows(X))
        out = core.predict_std(self._rows(X))
        return out[..., 0], out[..., 1]

    @locked
    def predict_interval(self, X: ArrayLike, coverage: float | Sequence[float] = 0.9) -> Matrix | Tensor:
        """(rows, 2): intervals that hold `coverage` (at most 0.99) of the targets, calibrated while learning.

        (rows, 2, coverages) for a list of coverages; a target of several columns has an axis of outputs after the rows.
        """
        core, rows = self._fitted().core_, self._rows(X)
        if isinstance(coverage, Sequence | np.ndarray):
            with core.lock:
                return np.stack([core.predict_interval(rows, each) for each in coverage], axis=-1)
        return core.predict_interval(rows, coverage)

    @locked
    def predict_interval_then_learn(self, X: ArrayLike, y: ArrayLike, coverage: float = 0.9) -> Matrix | Tensor:
        """(rows, 3): prediction, lower and upper end of each row, before that row is learned.

        (rows, outputs, 3) for a target of several columns.
        """
        first = not hasattr(self, "core_")
        rows, targets = self._validated(X, y, reset=first)

        def learn(X: Matrix, at: slice) -> Matrix:
            return self.core_.learn_rows_interval(X, targets[at], coverage)

        def predict(X: Matrix) -> Matrix:
            ends = self.core_.predict_interval(X, coverage)
            return np.concatenate((self.core_.predict(X)[..., None], ends), axis=-1)

        found = inputs.learn(self, rows, first, predict, learn, np.zeros((1, *targets.shape[1:], 3)))
        tally_of(self).numbers(found[..., 0], targets)
        tally_of(self).ends(found[..., 1], found[..., 2], targets)
        tally_of(self).follow(getattr(self, "core_", None))
        return found
