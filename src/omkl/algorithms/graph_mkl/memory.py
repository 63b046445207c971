"""GraphMKL's memory experts: averages of the last targets, weighted by an exact Gaussian kernel around the new row."""

from typing import NamedTuple

import numpy as np

from omkl.algorithms.graph_mkl.constants import RANGE_MARGIN, WINDOW
from omkl.algorithms.graph_mkl.problem import Problem
from omkl.algorithms.weights import normalised
from omkl.arrays import Matrix, Vector


class Window(NamedTuple):
    """The last rows, scaled, one a column: that of round t stands in column t mod WINDOW."""

    X: Matrix  # (d, WINDOW)
    Y: Matrix  # (K, WINDOW)


def init(problem: Problem) -> Window:
    return Window(np.zeros((problem.V.shape[1], WINDOW)), np.zeros((problem.K, WINDOW)))


def append_memory(window: Window, row: int, xs: Vector, Y: Vector) -> Window:
    window = Window(window.X.copy(), window.Y.copy())
    window.X[:, row % WINDOW], window.Y[:, row % WINDOW] = xs, Y
    return window


def predict_from_memory(window: Window, age: int, xs: Vector, width: float) -> tuple[Vector, float]:
    """(K,) average of the targets under a Gaussian of this width; the leverage is one over their effective number."""
    n = min(age, WINDOW)
    if n == 0:
        return np.zeros(len(window.Y)), 1.0
    square = ((window.X[:, :n] - xs[:, None]) ** 2).sum(axis=0)
    w = normalised(-square / (2 * width**2))  # (G11)
    return window.Y[:, :n] @ w, float(w @ w)  # (G12)


def within_range(window: Window, age: int, mean: Vector) -> Vector:
    """A number no further from the targets in the window than RANGE_MARGIN times their range."""
    targets = window.Y[0, : min(age, WINDOW)]
    if len(targets) == 0:
        return mean
    margin = RANGE_MARGIN * (targets.max() - targets.min())  # (G10)
    return np.clip(mean, targets.min() - margin, targets.max() + margin)  # (G10)
