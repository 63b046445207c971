"""How much each column contributes to the prediction for a row: Shapley values, from permutations of the columns.

A row of the background becomes the row that is explained, one column after another; the change of the prediction with
each column is its contribution. The average over many rows of the background and orders of the columns is an estimate
of the interventional Shapley value (Lundberg, Lee 2017; Strumbelj, Kononenko 2014). Every order is followed by its
reverse, so that there is no error from the choice of orders where columns act alone or in pairs. Whatever the orders
are, base value and contributions sum to the prediction. Columns in which the two rows agree cost nothing.
"""

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from omkl.arrays import Index, Matrix, Tensor, Vector
from omkl.explain.background import spread
from omkl.explain.view import View, same

SAMPLES = 32  # rows of the background, each with an order of the columns and its reverse
MAX_PREDICTIONS = 40_000  # for one row; where columns are many there are fewer samples
MIN_SAMPLES = 4


@dataclass(frozen=True)
class Explanation:
    """Contributions of columns to predictions.

    base : ndarray of shape (rows,) or (rows, outputs)
        The mean prediction for rows of the background; the same for all rows that one model predicts.
    contributions : ndarray of shape (rows, columns) or (rows, columns, outputs)
        They sum to the difference between prediction and base.
    predictions : ndarray of shape (rows,) or (rows, outputs)
        Of numbers, or the probability of each label.
    columns, values : list
        Names of the columns, and for each row their cells.
    outputs : list
        The labels, or the names of several targets; empty for one number.
    """

    base: Vector | Matrix
    contributions: Matrix | Tensor
    predictions: Vector | Matrix
    columns: list[Hashable]
    values: list[list[float | str]]
    outputs: list[Hashable]

    def __len__(self) -> int:
        return len(self.predictions)

    def of_row(self, row: int = 0, output: Hashable = None) -> dict[Hashable, float]:
        """The contributions of one row by column, the largest first; to the most likely label unless one is given."""
        parts = self.contributions[row]
        if self.outputs:
            parts = parts[:, self.place(row, output)]
        order = np.argsort(-np.abs(parts), kind="stable")
        return {self.columns[k]: float(parts[k]) for k in order}

    def place(self, row: int, output: Hashable = None) -> int:
        """The number of an output; that of the largest prediction if none is given."""
        if output is None:
            return int(np.argmax(self.predictions[row]))
        if output not in self.outputs:
            raise ValueError(f"output must be one of {self.outputs}, got {output!r}")
        return self.outputs.index(output)


def explain(view: View, X: Matrix) -> Explanation:
    """The contributions to the predictions for rows of features."""
    samples = max(MIN_SAMPLES, min(SAMPLES, MAX_PREDICTIONS // max(2 * len(view.columns), 1)))
    background = view.background[spread(len(view.background), samples)]
    starts, ends = view.predict(background), view.predict(X)
    parts = np.zeros((len(X), len(view.columns), ends.shape[1]))
    for x, end, part in zip(X, ends, parts, strict=True):
        rng = np.random.default_rng(0)  # a row has the same explanation whatever rows it comes with
        for b, start in zip(background, starts, strict=True):
            order = rng.permutation(len(view.columns))
            for each in (order, order[::-1]):
                add_chain(view, b, x, each, start, end, part)
    parts /= max(2 * len(background), 1)
    columns: list[Hashable] = [column.name for column in view.columns]
    values = [[column.value(x) for column in view.columns] for x in X]
    base = np.tile(starts.mean(axis=0), (len(X), 1))
    return Explanation(
        view.named(base), view.named(parts), view.named(ends), columns, values, list(view.outputs)
    )  # fmt: skip


def add_chain(view: View, start: Vector, x: Vector, order: Index, first: Vector, last: Vector, part: Matrix) -> None:
    """Add to `part`, (columns, outputs), how the prediction changes from `first` to `last` while `start` becomes x."""
    agree = same(start, x)
    moved = [k for k in order.tolist() if not agree[view.columns[k].places].all()]
    rows = np.tile(start, (max(len(moved) - 1, 0), 1))
    for step, k in enumerate(moved[:-1]):
        rows[step:, view.columns[k].places] = x[view.columns[k].places]
    between = view.predict(rows) if len(rows) else np.empty((0, len(first)))
    if moved:
        part[moved] += np.diff(np.vstack((first, between, last)), axis=0)
