"""Predictions that need no learning: the mean, and the most frequent label, of all targets before each row."""

from collections.abc import Sequence

import numpy as np

from omkl.arrays import Vector
from omkl.stream.predictions import Labels, Targets, as_numbers


def running_means(so_far: Vector, y_true: Vector) -> Vector:
    """The mean of all targets before each; `so_far` is their count and sum, and is updated.

    >>> so_far = np.zeros(2)
    >>> running_means(so_far, np.array([2.0, 4.0, 9.0])), so_far
    (array([0., 2., 3.]), array([ 3., 15.]))
    """
    sums = np.cumsum(np.concatenate((so_far[1:], y_true)))
    counts = so_far[0] + np.arange(len(y_true))
    so_far[:] = counts[-1] + 1, sums[-1]
    means: Vector = np.divide(sums[:-1], counts, out=np.zeros(len(y_true)), where=counts > 0)
    return means


def most_frequent(counts: dict[str, int], y_true: Labels) -> Labels:
    """The label seen most often before each row, None before the first; `counts` is updated.

    >>> most_frequent({}, np.array(["a", "b", "b", "a"], dtype=object)).tolist()
    [None, 'a', 'a', 'b']
    """
    y_pred = np.full(len(y_true), None, dtype=object)
    best = max(counts, key=lambda label: counts[label], default=None)
    for k, label in enumerate(y_true):
        y_pred[k] = best
        counts[label] = counts.get(label, 0) + 1
        if best is None or counts[label] > counts[best]:
            best = label
    return y_pred


class Typical:
    """The mean of the targets so far, or the most frequent of these labels, the first of those that are as frequent.

    >>> numbers, words = Typical(()), Typical(("no", "yes"))
    >>> numbers.before([0, 2, 3], [0, 1, 2], np.array([2.0, 4.0, 9.0])), numbers.now()
    ([0.0, 3.0, 5.0], 5.0)
    >>> words.before([0, 1, 2], [0, 1, 2], np.array(["yes", "no", "no"])), words.now()
    ([None, 'yes', 'no'], 'no')
    """

    def __init__(self, labels: tuple[str, ...]) -> None:
        self.labels = labels
        self.sums = np.zeros(len(labels) or 2)  # how many of each label, or how many numbers and their sum

    def now(self) -> float | str | None:
        """0 or None before the first target."""
        if self.labels:
            return self.labels[int(self.sums.argmax())] if self.sums.any() else None
        count, total = self.sums.tolist()
        return float(total / count) if count else 0.0

    def before(self, rows: Sequence[int], known_from: Sequence[int], y: Targets) -> list[float | str | None]:
        """What is typical before each of these rows; targets become known after the rows `known_from`, in order."""
        out, start = [], 0
        for stop in (*np.searchsorted(known_from, rows), len(y)):
            self._learn(y[start:stop])
            out.append(self.now())
            start = stop
        return out[:-1]

    def _learn(self, y: Targets) -> None:
        if self.labels:
            self.sums += np.bincount(np.searchsorted(self.labels, y.astype(str)), minlength=len(self.labels))
        else:  # added one after the other, so that the sum does not depend on pieces
            self.sums[:] = self.sums[0] + len(y), np.cumsum([self.sums[1], *as_numbers(y)])[-1]
