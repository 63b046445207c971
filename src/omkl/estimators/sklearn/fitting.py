"""How `fit` goes through the rows: which of them, with which weights, in which order."""

import warnings
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import _check_sample_weight

from omkl import validation
from omkl.arrays import Array, Index, Matrix, Vector

MANY_SORTED = 50  # rows; fewer may be sorted by chance, or because they are all there is


class Rows(NamedTuple):
    """What `fit` learns."""

    X: Matrix
    y: Array  # numbers or labels
    weight: Vector | None


def checked_weights(sample_weight: ArrayLike, X: Matrix) -> Vector:
    weight: Vector = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    return validation.many_weights(weight, len(X), "sample_weight")


def warn_if_sorted(labels: Array) -> None:
    """A warning where many rows are sorted by label: whoever learns them in this order forgets the first ones."""
    changes = int(np.count_nonzero(labels[1:] != labels[:-1]))
    if len(labels) >= MANY_SORTED and 0 < changes == len(np.unique(labels)) - 1:
        warnings.warn(
            f"the {len(labels)} rows are sorted by label and are learned in this order, so that the last label counts "
            "most; shuffle the rows, or use fit, which does so",
            stacklevel=5,
        )


def without_order(rows: Rows) -> Rows:
    """The same rows whatever order they were in, with copies merged into one row that has all their weight.

    Copies stay rows of their own where the same inputs come with other targets too: then inputs are discrete, and
    each row is an observation.
    """
    weight = np.ones(len(rows.X)) if rows.weight is None else rows.weight
    order = np.lexsort((np.unique(rows.y, return_inverse=True)[1], *rows.X.T[::-1]))
    order = order[weight[order] > 0]
    X, y, weight = rows.X[order], rows.y[order], weight[order]
    same_inputs = ((X[1:] == X[:-1]) | (np.isnan(X[1:]) & np.isnan(X[:-1]))).all(axis=1)
    first = np.append(True, ~same_inputs)
    if np.any(same_inputs & (y[1:] != y[:-1])):
        first[:] = True
    weight = np.add.reduceat(weight, np.flatnonzero(first)) if len(weight) else weight
    all_one = bool((weight == 1).all())
    return Rows(np.ascontiguousarray(X[first]), y[first], None if all_one else weight)


def passes(rows: Rows, shuffle: bool, epochs: int, seed: int) -> Iterator[Rows]:
    """The rows of each pass, in the order in which they are learned."""
    if shuffle:
        rows = without_order(rows)
    rng = np.random.default_rng(seed)
    for _ in range(epochs):
        yield taken(rows, rng.permutation(len(rows.X))) if shuffle else rows


def taken(rows: Rows, order: Index) -> Rows:
    weight = None if rows.weight is None else rows.weight[order]
    return Rows(np.ascontiguousarray(rows.X[order]), rows.y[order], weight)
