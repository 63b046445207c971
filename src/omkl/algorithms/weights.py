"""Weights stored as logarithms, and the probabilities that follow from them."""

import numpy as np

from omkl.arrays import Vector


def normalised(log_w: Vector) -> Vector:
    """w / sum(w), computed without overflow.

    >>> normalised(np.array([-1e6, -1e6 + np.log(3.0)])).round(6)
    array([0.25, 0.75])
    """
    w: Vector = np.exp(log_w - log_w.max())
    w /= w.sum()
    return w


def draw(p: Vector, r: float) -> int:
    """The index drawn with probabilities p by one uniform number r from [0, 1).

    >>> draw(np.array([0.5, 0.3, 0.2]), 0.6)
    1
    """
    return min(int(np.searchsorted(np.cumsum(p), r, side="right")), len(p) - 1)
