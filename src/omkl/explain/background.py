"""Rows that a model is explained with: of what it keeps, or drawn from what it knows about each column.

GraphMKL keeps rows for its trees and its averages; of the last KEPT of them BACKGROUND are taken, at equal distances.
For other learners estimators keep mean and standard deviation of each feature, from which rows are drawn: numbers from
a normal distribution, and the values of a category as often as they came. These rows know nothing of dependences
between columns. Nothing is added to a model or to its file, and no row takes longer to learn.
"""

from collections.abc import Sequence

import numpy as np

from omkl.arrays import Index, Matrix, Vector
from omkl.explain.columns import InputColumn, is_mark
from omkl.online import Online
from omkl.scaling import InputScaler

KEPT, BACKGROUND = 1024, 64
COUNT, MEAN, SQUARES = range(3)  # rows of the scaler's statistics


def background_of(online: Online, inputs: InputScaler | None, columns: Sequence[InputColumn]) -> Matrix | None:
    """(rows, features); None where the model knows nothing about its inputs."""
    kept: Matrix | None = online.look(lambda problem, state: online.algorithm.recent_rows(problem, state, KEPT))
    if kept is not None:
        return kept[spread(len(kept), BACKGROUND)]
    if inputs is None or not inputs.stats[COUNT].any():
        return None
    count, mean, squares = (inputs.stats[row] for row in (COUNT, MEAN, SQUARES))
    return drawn(np.where(count > 0, mean, np.nan), np.sqrt(squares / np.maximum(count, 1)), columns)


def spread(n: int, most: int) -> Index:
    """At most so many of n places, at equal distances.

    >>> spread(10, 4).tolist(), spread(3, 4).tolist()
    ([0, 3, 6, 9], [0, 1, 2])
    """
    return np.linspace(0, n - 1, min(n, most)).round().astype(np.intp) if n else np.empty(0, np.intp)


def drawn(mean: Vector, deviation: Vector, columns: Sequence[InputColumn]) -> Matrix:
    """Rows whose columns are independent of each other; the same for the same statistics."""
    rng = np.random.default_rng(0)
    X = np.full((BACKGROUND, len(mean)), np.nan)
    for column in columns:
        marks = np.array([is_mark(feature) for feature in column.features])
        numbers, places = column.places[~marks], column.places[marks]
        X[:, numbers] = mean[numbers] + deviation[numbers] * rng.standard_normal((BACKGROUND, len(numbers)))
        if len(places):
            share = np.clip(np.nan_to_num(mean[places]), 0, 1)
            ends = np.cumsum(share / max(float(share.sum()), 1.0))
            which = np.searchsorted(ends, rng.random(BACKGROUND), side="right")
            X[:, places] = which[:, None] == np.arange(len(places))
    return X
