"""Tables with cells of any kind, for an estimator: features are added with the row that first needs them."""

import copy
from collections.abc import Callable, Hashable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

import numpy as np

from omkl.algorithms.base import Task
from omkl.arrays import Matrix
from omkl.estimators.core import Core
from omkl.estimators.rows import encoder_after, in_order

if TYPE_CHECKING:
    from omkl.encoder import Batch, Encoded, Encoder

R = TypeVar("R")


class TableRows(NamedTuple):
    """Rows as features, in the order in which these are added."""

    X: Matrix  # (n, features known in the end)
    new: dict[int, list[Hashable]]  # features to add, by the row before which to add them
    encoder: "Encoder | None"  # that has seen these rows; None where all cells are numbers

    def features(self, first: int, last: int, known: int) -> Matrix:
        """Some of the rows, with the features known then."""
        return np.ascontiguousarray(self.X[first:last, :known])

    @property
    def start(self) -> int:
        """The first row, of a table that is the first, that has a feature."""
        return min(self.new, default=len(self.X))


def learnable(core: Core | None, batch: "Batch", task: Task) -> TableRows:
    """The rows of a table; what is new in them becomes known with `learn_table`."""
    names = () if core is None else core.names
    encoder = encoder_after(names, task) if core is None or core.encoder is None else core.encoder.copy()
    encoded = encoder.encode(batch)
    new: dict[int, list[Hashable]] = {}
    for name, row in encoded.arrivals.items():
        new.setdefault(row, []).append(name)
    new = {row: in_order(set(new[row])) for row in sorted(new)}
    names = (*names, *(name for some in new.values() for name in some))
    return TableRows(matrix(encoded, names, len(batch.rows)), new, encoder)


class Calls(NamedTuple, Generic[R]):
    """What to do with rows of features."""

    predict: Callable[[Matrix], R]
    learn: Callable[[Matrix, slice], R]  # predict each row, and learn it


def learn_table(core: Core, rows: TableRows, calls: Calls[R], start: int = 0) -> list[R]:
    """What the calls return for the rows, in parts; all rows are learned, or none.

    The prediction for a row is made before its new features are known, as it is if it is predicted and then learned.
    """
    edges = sorted({start, *rows.new, len(rows.X)})
    with core.lock:
        kept: dict[str, object] = {"names": core.names, "encoder": core.encoder}
        if rows.new:
            kept = {**copy.deepcopy(core).__dict__, **kept, "_lock": core.lock}
        try:
            if rows.encoder is not None:
                core.names, core.encoder = tuple(str(name) for name in core.names), rows.encoder
            parts = []
            for first, last in pairwise(edges):
                before = core.names
                if not set(new := rows.new.get(first, ())) <= set(before):
                    parts.append(calls.predict(rows.features(first, first + 1, len(before))))
                    core.add_features(new, rows.encoder is not None)
                    calls.learn(rows.features(first, first + 1, len(core.names)), slice(first, first + 1))
                    first += 1
                if first < last:
                    parts.append(calls.learn(rows.features(first, last, len(core.names)), slice(first, last)))
        except BaseException:  # also too little memory, or Ctrl-C
            core.__dict__.update(kept)
            raise
    return parts


def features_of(core: Core, batch: "Batch") -> Matrix:
    """The rows of a table for a prediction: nothing becomes known."""
    encoder = encoder_after(core.names, core.task) if core.encoder is None else core.encoder
    return matrix(encoder.encode(batch, learn=False), core.names, len(batch.rows))


def matrix(encoded: "Encoded", names: Sequence[Hashable], rows: int) -> Matrix:
    X = np.empty((rows, len(names)))
    for k, name in enumerate(names):
        X[:, k] = encoded.features[str(name)]
    return X


def first_names(rows: TableRows) -> Sequence[Hashable]:
    """The features of the first row that has any."""
    return rows.new[rows.start]
