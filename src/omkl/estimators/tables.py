"""Tables with cells of any kind, for an estimator: features are added with the row that first needs them."""

import copy
from collections.abc import Callable, Hashable, Sequence
from itertools import pairwise
from typing import NamedTuple, TypeVar

import numpy as np

from omkl.arrays import Matrix
from omkl.encoder import Batch, Encoded, Encoder, warn
from omkl.estimators.core import Core, encoder_after, in_order

R = TypeVar("R")


class TableRows(NamedTuple):
    """Rows as features, in the order in which these are added."""

    X: Matrix  # (n, features known in the end)
    new: dict[int, list[Hashable]]  # features to add, by the row before which to add them
    encoder: Encoder  # that has seen these rows

    @property
    def start(self) -> int:
        """The first row, of a table that is the first, that has a feature."""
        return min(self.new, default=len(self.X))


def learnable(core: Core | None, batch: Batch) -> TableRows:
    """The rows of a table; what is new in them becomes known with `learn_table`."""
    if core is None:
        encoder = Encoder(warn)
    else:
        encoder = encoder_after(core.names) if core.encoder is None else core.encoder.copy()
    encoded = encoder.encode(batch)
    new: dict[int, list[Hashable]] = {}
    for name, row in encoded.arrivals.items():
        new.setdefault(row, []).append(name)
    new = {row: in_order(set(new[row])) for row in sorted(new)}
    names = [*(() if core is None else core.names), *(name for some in new.values() for name in some)]
    return TableRows(matrix(encoded, names), new, encoder)


def learn_table(core: Core, rows: TableRows, learn: Callable[[Matrix, slice], R], start: int = 0) -> list[R]:
    """What `learn` returns for the rows between two that bring new features; all rows are learned, or none."""
    edges = sorted({start, *rows.new, len(rows.X)})
    with core.lock:
        before: dict[str, object] = {"names": core.names, "encoder": core.encoder}
        if rows.new:
            before = {**copy.deepcopy(core).__dict__, **before, "_lock": core.lock}
        try:
            core.names, core.encoder = tuple(str(name) for name in core.names), rows.encoder
            parts = []
            for first, last in pairwise(edges):
                core.add_features(rows.new.get(first, ()))
                X = np.ascontiguousarray(rows.X[first:last, : len(core.names)])
                parts.append(learn(X, slice(first, last)))
        except BaseException:  # also too little memory, or Ctrl-C
            core.__dict__.update(before)
            raise
    return parts


def features_of(core: Core, batch: Batch) -> Matrix:
    """The rows of a table for a prediction: nothing becomes known."""
    encoder = encoder_after(core.names) if core.encoder is None else core.encoder
    return matrix(encoder.encode(batch, learn=False), core.names)


def matrix(encoded: Encoded, names: Sequence[Hashable]) -> Matrix:
    columns = [encoded.features[str(name)] for name in names]
    return np.ascontiguousarray(np.stack(columns, axis=1))


def first_names(rows: TableRows) -> Sequence[Hashable]:
    """The features of the first row that has any."""
    if not rows.new:
        raise ValueError("every cell is empty; give at least one column with a value")
    return rows.new[rows.start]
