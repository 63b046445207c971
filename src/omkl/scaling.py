"""Raw units in: inputs standardised as they come, the target mapped and predictions mapped back.

The statistics by which a row is standardised include the row itself, so that the first rows of a
stream are harmless, a value can never be further than sqrt(n) out, and a prediction sees the same
row as the learning that follows it. Standardised rows are divided by sqrt(d): their length is
about 1, whatever d, which is what the dictionaries of length scales are made for. A constant
column is 0. A prediction is mapped back by the statistics of the targets before it.
"""

from typing import Any

import numpy as np

from omkl.arrays import Matrix, Vector
from omkl.engine import _native


class RunningStatistics:
    """Count, mean and sum of squared deviations of d columns, (3, d).

    A row is tried first (`try_...`) and kept when the learner has taken it (`keep`), so that one
    that is refused leaves no trace.
    """

    def __init__(self, d: int) -> None:
        self.stats, self._spare = np.zeros((3, d)), np.zeros((3, d))

    def __getstate__(self) -> dict[str, Matrix]:
        return {"stats": self.stats}

    def __setstate__(self, kept: dict[str, Matrix]) -> None:
        # copies, because joblib hands out arrays that cannot be written to
        self.stats, self._spare = np.array(kept["stats"]), np.zeros_like(kept["stats"])

    def commit(self) -> None:
        self.stats, self._spare = self._spare, self.stats

    def restore(self, stats: Matrix) -> None:
        self.stats = stats


class InputScaler(RunningStatistics):
    """Inputs standardised as they come.

    >>> scaler = InputScaler(1)
    >>> X = np.array([[10.0], [12.0], [10.0], [12.0]])
    >>> scaler.learn(X).ravel()
    array([ 0.        ,  1.        , -0.70710678,  1.        ])
    >>> scaler.transform(X[:1]).ravel().round(3)
    array([-0.816])
    """

    def learn(self, X: Matrix) -> Matrix:
        """Rows standardised one after the other, each by all up to it."""
        out = np.empty_like(X)
        _native.standardise_rows(self.stats, X, out)
        return out

    def transform(self, X: Matrix) -> Matrix:
        """Rows standardised each as if it came next; nothing is kept."""
        out = np.empty_like(X)
        _native.standardise_each(self.stats, self._spare, X, out)
        return out

    def transform_dict(self, x: dict[Any, Any], names: tuple[Any, ...], raw: Vector, out: Vector) -> int:
        """The values of x for these names, NaN where there is none, into `raw`, and standardised into `out`.

        Returns how many there were, or -1 - i where that for names[i] is not a finite number.
        """
        return _native.gather_scaled(x, names, self.stats, self._spare, raw, out)

    def extend(self, columns: int) -> None:
        """Columns that nobody has seen yet, behind the known ones."""
        self.stats = np.pad(self.stats, ((0, 0), (0, columns)))
        self._spare = np.zeros_like(self.stats)


class TargetScaler(RunningStatistics):
    """A target mapped as it comes.

    >>> scaler = TargetScaler()
    >>> y, shift, scale = scaler.learn(np.array([5.0, 7.0, 6.0]))
    >>> y, shift, scale
    (array([0., 1., 0.]), array([0., 5., 6.]), array([0., 0., 1.]))
    >>> scaler.inverse_transform(np.array([0.0, 1.0])).round(4)
    array([6.    , 6.8165])
    """

    def __init__(self) -> None:
        super().__init__(1)

    def learn(self, y: Vector) -> tuple[Vector, Vector, Vector]:
        """The targets mapped, and for each the shift and scale that its prediction is mapped back with."""
        out, shift, scale = np.empty_like(y), np.empty_like(y), np.empty_like(y)
        _native.standardise_targets(self.stats, y, out, shift, scale)
        return out, shift, scale

    def transform_one(self, y: float) -> float:
        return _native.standardise_target(self.stats, self._spare, y)

    def inverse_transform(self, f: Vector) -> Vector:
        shift, scale = _native.target_map(self.stats)
        mapped: Vector = shift + scale * f
        return mapped

    def inverse_transform_one(self, f: float) -> float:
        shift, scale = _native.target_map(self.stats)
        return shift + scale * f
