"""Baselines that need no learning: the mean, and the most frequent label, of all targets before each row."""

import numpy as np

from omkl.arrays import Vector
from omkl.stream.predictions import Labels


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
