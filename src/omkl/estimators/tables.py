"""Tables with cells of any kind, for an estimator: features are added with the row that first needs them."""

import copy
from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import numpy as np

from omkl.algorithms.base import Task
from omkl.arrays import Matrix
from omkl.estimators.core import Core
from omkl.estimators.rows import encoder_after, in_order

if TYPE_CHECKING:
    from omkl.encoder import Batch, Encoded, Encoder

R = TypeVar("R")


class TableRows(NamedTuple):
    """Rows as features."""

    names: Sequence[Hashable]  # of the features; if some are new, in the order in which they are added
    X: Matrix  # (n, features)
    new: Mapping[int, Sequence[Hashable]]  # features to add unless they are known, by the row before which to add them
    encoder: "Encoder | None"  # that has seen these rows; None where all cells are numbers

    def part(self, core: Core, first: int, last: int) -> Matrix:
        """Some of the rows, with the features that the core knows."""
        return core.rows_of(self.names, self.X[first:last])

    def known_with(self, core: Core, row: int) -> tuple[list[Hashable], Mapping[Any, float]]:
        """The features of a row, those that are new included, and what they are where nothing is known."""
        if self.encoder is None:
            return list(self.new[row]), {}
        present = [name for name, there in zip(self.names, ~np.isnan(self.X[row]), strict=True) if there]
        known = [name for name in present if core.columns.place(name) is not None]
        return [*known, *self.new[row]], self.encoder.features

    @property
    def start(self) -> int:
        """The first row, of a table that is the first, that has a feature."""
        return min(self.new, default=len(self.X))


def learnable(core: Core | None, batch: "Batch", task: Task, whole: bool = False) -> TableRows:
    """The rows of a table, maybe the `whole` of all rows; what is new in them becomes known with `learn_table`."""
    known = () if core is None else core.columns.own
    encoder = encoder_after(known, task) if core is None or core.encoder is None else core.encoder.copy()
    encoded = encoder.encode_whole(batch) if whole else encoder.encode(batch)
    new: dict[int, list[Hashable]] = {}
    for name, row in encoded.arrivals.items():
        new.setdefault(row, []).append(name)
    new = {row: in_order(set(new[row])) for row in sorted(new)}
    names = features_in_order(encoded, (*known, *(name for some in new.values() for name in some)))
    return TableRows(names, matrix(encoded, names, len(batch.rows)), new, encoder)


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
        kept: dict[str, object] = {"columns": core.columns, "encoder": core.encoder}
        if rows.new:
            kept = {**copy.deepcopy(core).__dict__, **kept, "_lock": core.lock}
        try:
            if rows.encoder is not None:
                core.columns, core.encoder = core.columns.as_text(), rows.encoder
            parts = []
            for first, last in pairwise(edges):
                new = rows.new.get(first, ())
                if any(core.columns.place(name) is None for name in new):
                    parts.append(calls.predict(rows.part(core, first, first + 1)))
                    core.add_features(*rows.known_with(core, first))
                    calls.learn(rows.part(core, first, first + 1), slice(first, first + 1))
                    first += 1
                if first < last:
                    parts.append(calls.learn(rows.part(core, first, last), slice(first, last)))
        except BaseException:  # also too little memory, or Ctrl-C
            core.__dict__.update(kept)
            raise
    return parts


def features_of(core: Core, batch: "Batch") -> Matrix:
    """The rows of a table for a prediction: nothing becomes known."""
    encoder = encoder_after(core.columns.own, core.task) if core.encoder is None else core.encoder
    encoded = encoder.encode(batch, learn=False)
    names = features_in_order(encoded, core.columns.own)
    return core.rows_of(names, matrix(encoded, names, len(batch.rows)))


def features_in_order(encoded: "Encoded", first: Sequence[Hashable]) -> tuple[Hashable, ...]:
    """All features of encoded rows: these, then others, which share columns or are not known."""
    texts = {str(name) for name in first}
    return (*first, *(name for name in encoded.features if name not in texts))


def matrix(encoded: "Encoded", names: Sequence[Hashable], rows: int) -> Matrix:
    X = np.empty((rows, len(names)))
    for k, name in enumerate(names):
        X[:, k] = encoded.features[str(name)]
    return X


def first_names(rows: TableRows) -> Sequence[Hashable]:
    """The features of the first row that has any."""
    return rows.new[rows.start]
