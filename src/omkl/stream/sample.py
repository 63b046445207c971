"""A uniform sample of the rows of a stream, of bounded size."""

import numpy as np
from numpy.typing import NDArray

from omkl.arrays import Index, Matrix, Vector


class RowSample:
    """Keeps the rows whose hash is a multiple of `stride`, which doubles when there are too many.

    A row's number alone decides whether it is in, so neither the pieces nor periods in the data matter.

    >>> sample = RowSample(2, 4)
    >>> sample.add(np.arange(1, 11), np.arange(10.0)[:, None])
    >>> sample.rows.tolist(), sample.stride
    ([[2.0, 1.0], [4.0, 3.0], [8.0, 7.0]], 4)
    """

    def __init__(self, width: int, max_rows: int) -> None:
        self.max_rows, self.stride = max_rows, 1
        self.rows: Matrix = np.empty((0, width))

    def add(self, numbers: Index, values: Matrix) -> None:
        """Rows with their numbers, which must increase."""
        table = np.column_stack((numbers, values))
        self.rows = np.vstack((self.rows, table[row_hash(numbers) % self.stride == 0]))
        while len(self.rows) > self.max_rows:
            self.stride *= 2
            self.rows = self.rows[row_hash(self.rows[:, 0]) % self.stride == 0]


def row_hash(numbers: Index | Vector) -> NDArray[np.uint64]:
    """A 64-bit hash of each row number: the mixing of SplitMix64."""
    z = numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        z = (z ^ (z >> np.uint64(shift))) * np.uint64(factor)
    return z ^ (z >> np.uint64(31))
