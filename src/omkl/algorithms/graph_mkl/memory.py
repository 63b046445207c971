"""GraphMKL's memory experts: averages of the last targets, weighted by an exact Gaussian kernel around the new row."""

from typing import NamedTuple

import numpy as np

from omkl.algorithms.graph_mkl.constants import MIN_WEIGHT, RANGE_MARGIN, WINDOW
from omkl.algorithms.graph_mkl.problem import Problem
from omkl.arrays import Index, Matrix, Vector


class Window(NamedTuple):
    """The last rows, scaled, one a column: that of the set's row n stands in column n mod WINDOW."""

    X: Matrix  # (d, WINDOW)
    Y: Matrix  # (K, WINDOW)
    weight: Vector  # (WINDOW,)  with that of its copies
    key: Index  # (WINDOW,)  of the row and its target, unscaled; 0: none
    met: Index  # (WINDOW,)  the last round in which the row came
    returned: Index  # (WINDOW,)  1: the row has come more than once


def init(problem: Problem) -> Window:
    X, Y = np.zeros((problem.V.shape[1], WINDOW)), np.zeros((problem.K, WINDOW))
    return Window(X, Y, np.zeros(WINDOW), *(np.zeros(WINDOW, np.intp) for _ in range(3)))


def append_memory(window: Window, row: int, xs: Vector, Y: Vector, weight: float) -> Window:
    """With one more row, in place of the oldest."""
    window = window._replace(X=window.X.copy(), Y=window.Y.copy(), weight=window.weight.copy())
    j = row % WINDOW
    window.X[:, j], window.Y[:, j], window.weight[j] = xs, Y, max(weight, MIN_WEIGHT)
    return window


def predict_from_memory(window: Window, age: int, xs: Vector, width: float) -> tuple[Vector, float]:
    """(K,) average of the targets under a Gaussian of this width; the leverage is one over their effective number."""
    n = min(age, WINDOW)
    if n == 0:
        return np.zeros(len(window.Y)), 1.0
    square = ((window.X[:, :n] - xs[:, None]) ** 2).sum(axis=0)
    near = np.exp((square.min() - square) / (2 * width**2))  # (G11)
    share = window.weight[:n] * near / (window.weight[:n] @ near)  # (G11)
    return window.Y[:, :n] @ share, float(share @ near / (window.weight[:n] @ near))  # (G12)


def within_range(window: Window, age: int, mean: Vector) -> Vector:
    """A number no further from the targets in the window than RANGE_MARGIN times their range."""
    targets = window.Y[0, : min(age, WINDOW)]
    if len(targets) == 0:
        return mean
    margin = RANGE_MARGIN * (targets.max() - targets.min())  # (G10)
    return np.clip(mean, targets.min() - margin, targets.max() + margin)  # (G10)
