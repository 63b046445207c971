"""How `fit` goes through the rows: which of them, with which weights, in which order."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import _check_sample_weight

from omkl import validation
from omkl.arrays import Array, Index, Matrix, Vector


class FitRows(NamedTuple):
    """What `fit` learns."""

    X: Matrix
    y: Array  # numbers or labels; (rows, outputs) for a target of several columns
    weight: Vector | None


def checked_weights(sample_weight: ArrayLike, rows: Array) -> Vector:
    weight: Vector = _check_sample_weight(sample_weight, rows, dtype=np.float64, ensure_non_negative=True)
    return validation.many_weights(weight, len(rows), "sample_weight")


def without_order(rows: FitRows) -> FitRows:
    """The same rows whatever order they were in, with copies merged into one row that has all their weight.

    Copies stay rows of their own where the same inputs come with other targets too: then inputs are discrete, and
    each row is an observation.
    """
    weight = np.ones(len(rows.X)) if rows.weight is None else rows.weight
    columns = np.atleast_2d(rows.y.T)
    order = np.lexsort((*(np.unique(y, return_inverse=True)[1] for y in columns), *rows.X.T[::-1]))
    order = order[weight[order] > 0]
    X, y, weight = rows.X[order], rows.y[order], weight[order]
    same_inputs = ((X[1:] == X[:-1]) | (np.isnan(X[1:]) & np.isnan(X[:-1]))).all(axis=1)
    first = np.append(True, ~same_inputs)
    if np.any(same_inputs & np.atleast_2d((y[1:] != y[:-1]).T).any(axis=0)):
        first[:] = True
    weight = np.add.reduceat(weight, np.flatnonzero(first)) if len(weight) else weight
    all_one = bool((weight == 1).all())
    return FitRows(np.ascontiguousarray(X[first]), y[first], None if all_one else weight)


def passes(
    rows: FitRows,
    shuffle: bool,
    epochs: Callable[[int], int],
    seed: int,
    with_statistics: Callable[[FitRows], Matrix],
) -> Iterator[FitRows]:
    """The rows of each pass, in the order in which they are learned; `epochs` passes over so many different rows.

    The statistics in a row, of columns of many categories, are those of the rows before it in the first pass. Later
    passes have the same: statistics of all rows would hold the target of the row itself.
    """
    if shuffle:
        rows = without_order(rows)
    rng = np.random.default_rng(seed)
    for epoch in range(epochs(len(rows.X))):
        order = rng.permutation(len(rows.X)) if shuffle else np.arange(len(rows.X))
        part = taken(rows, order)
        if epoch == 0 and (X := with_statistics(part)) is not part.X:
            part, rows = part._replace(X=X), rows._replace(X=X[np.argsort(order)])
        yield part


def taken(rows: FitRows, order: Index) -> FitRows:
    weight = None if rows.weight is None else rows.weight[order]
    return FitRows(np.ascontiguousarray(rows.X[order]), rows.y[order], weight)


@contextmanager
def unchanged_on_error(estimator: object) -> Iterator[None]:
    """After an error the estimator has the attributes that it had before."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        for name in set(vars(estimator)) - set(before):
            delattr(estimator, name)
        estimator.__dict__.update(before)
        raise
