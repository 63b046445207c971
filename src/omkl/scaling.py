"""Online standardisation of inputs and target, so that learners accept data in its original units.

The statistics that standardise a row include the row itself. The first rows of a stream are therefore
harmless, no standardised value exceeds sqrt(n) after n rows, and a row is the same in a prediction and in the
learning step after it. Standardised rows are divided by sqrt(d), which makes their norm about 1 for every d:
the dictionaries of length scales assume that. A constant column becomes 0. A prediction is transformed back with
the statistics of the targets before it.

The statistics are those of all rows, but recover from rows that spoil them (`engine/scaling.hpp`): after 64 rows values
are clipped at 30 standard deviations from the mean, but no two in a row, and where the latest quarter of the rows, and
at least 64, has a standard deviation more than 50 times smaller, the statistics start again from these.
A column that has been constant counts as one value when it begins to vary.
"""

from collections.abc import Hashable

import numpy as np

from omkl import engine
from omkl.arrays import Matrix, Vector

STATISTICS = 7


class RunningStatistics:
    """Count, mean and sum of squared deviations of d columns, the same of the latest block of each, and a flag.

    They are the rows of an array (7, d); the flag says that the last value of a column was far from its mean.

    A single row is transformed first (`transform_dict`, `transform_one`) and enters the statistics with `commit`,
    after the learner has accepted it: a row that is refused changes nothing.
    """

    def __init__(self, d: int) -> None:
        self.stats, self._spare = np.zeros((STATISTICS, d)), np.zeros((STATISTICS, d))

    def __getstate__(self) -> dict[str, Matrix]:
        return {"stats": self.stats}

    def __setstate__(self, kept: dict[str, Matrix]) -> None:
        # copies, because joblib returns arrays that cannot be written to
        self.stats = with_block(np.array(kept["stats"]))
        self._spare = np.zeros_like(self.stats)

    def commit(self) -> None:
        """Take over the statistics that the last transformed row would give."""
        self.stats, self._spare = self._spare, self.stats

    def restore(self, stats: Matrix) -> None:
        """Go back to statistics of earlier."""
        self.stats = stats


def with_block(stats: Matrix) -> Matrix:
    """Statistics as they are now; those of earlier versions have no block, and one begins."""
    return stats if len(stats) == STATISTICS else np.pad(stats, ((0, STATISTICS - len(stats)), (0, 0)))


class InputScaler(RunningStatistics):
    """Inputs, standardised online.

    >>> scaler = InputScaler(1)
    >>> X = np.array([[10.0], [12.0], [10.0], [12.0]])
    >>> scaler.learn(X).ravel()
    array([ 0.        ,  1.        , -0.70710678,  1.        ])
    >>> scaler.transform(X[:1]).ravel().round(3)
    array([-0.816])
    """

    def learn(self, X: Matrix) -> Matrix:
        """Rows standardised in their order, each with the statistics of all rows up to and including it."""
        out = np.empty_like(X)
        engine.standardise_rows(self.stats, X, out)
        return out

    def transform(self, X: Matrix) -> Matrix:
        """Rows standardised each as if it were the next one; the statistics stay as they are."""
        out = np.empty_like(X)
        engine.standardise_each(self.stats, self._spare, X, out)
        return out

    def transform_dict(self, x: dict[Hashable, float], names: tuple[Hashable, ...], raw: Vector, out: Vector) -> int:
        """Write the values of x for these names to `raw`, NaN where one is missing, and standardised to `out`.

        Returns the number of values found, or -1 - i if that of names[i] is not a finite number.
        """
        return engine.gather_scaled(x, names, self.stats, self._spare, raw, out)

    def transform_row(self, x: Vector, out: Vector) -> None:
        """Write one row, NaN where a value is missing, standardised to `out`."""
        engine.standardise_each(self.stats, self._spare, x[None], out[None])

    def extended(self, columns: int) -> "InputScaler":
        """A scaler with further columns, of which no value has been seen."""
        other = InputScaler(self.stats.shape[1] + columns)
        other.stats[:, : self.stats.shape[1]] = self.stats
        return other


class TargetScaler(RunningStatistics):
    """A numeric target, standardised online.

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
        """The standardised targets, and for each the shift and scale that transform its prediction back."""
        out, shift, scale = np.empty_like(y), np.empty_like(y), np.empty_like(y)
        engine.standardise_targets(self.stats, y, out, shift, scale)
        return out, shift, scale

    def transform_one(self, y: float) -> float:
        """One target, standardised."""
        return engine.standardise_target(self.stats, self._spare, y)

    def inverse_transform(self, f: Vector) -> Vector:
        """Predictions in the units of the target."""
        shift, scale = engine.target_map(self.stats)
        out: Vector = shift + scale * f
        return out

    def inverse_transform_one(self, f: float) -> float:
        """One prediction in the units of the target."""
        shift, scale = engine.target_map(self.stats)
        return shift + scale * f
