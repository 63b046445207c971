"""What single columns do to the predictions: their importance, and their effect."""

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from omkl.arrays import Matrix, Vector
from omkl.explain.background import spread
from omkl.explain.columns import InputColumn
from omkl.explain.view import View, same
from omkl.validation import require

MAX_PREDICTIONS = 50_000  # for the importance of all columns
MIN_ROWS = 8
POINTS = 24  # of an effect


def importance(view: View, rows: int | None = None) -> Matrix:
    """(columns, outputs): root mean square of half the change of the prediction when a column is that of another row.

    More precisely of the change divided by the square root of 2: for a column that acts alone this is the standard
    deviation of what it adds to the prediction, and for others their interactions are part of it (the total effect of
    Jansen, 1999, without its normalisation). A column that is not used has exactly 0.
    """
    most = max(MIN_ROWS, min(len(view.background), MAX_PREDICTIONS // max(len(view.columns), 1)))
    X = view.background[spread(len(view.background), most if rows is None else min(rows, most))]
    if len(X) < 2:
        return np.zeros((len(view.columns), max(len(view.outputs), 1)))
    others = np.roll(X, len(X) // 2, axis=0)
    before = view.predict(X)
    out = np.zeros((len(view.columns), before.shape[1]))
    for k, column in enumerate(view.columns):
        differ = ~same(X[:, column.places], others[:, column.places]).all(axis=1)
        if differ.any():
            swapped = X[differ]
            swapped[:, column.places] = others[differ][:, column.places]
            out[k] = np.sqrt(((view.predict(swapped) - before[differ]) ** 2).sum(axis=0) / (2 * len(X)))
    return out


@dataclass(frozen=True)
class Effect:
    """The effect of one column: mean predictions over rows of the background in which it has each of these values.

    column : str
        Its name.
    values : list
        Numbers, or text; values that came in the background, in their order.
    mean, lower, upper : ndarray of shape (values,) or (values, outputs)
        Mean prediction, and the ends of the interval that holds `coverage` of the predictions for single rows.
    coverage : float
        Share of the predictions between `lower` and `upper`.
    outputs : list
        The labels, or the names of several targets; empty for one number.
    """

    column: Hashable
    values: list[float | str]
    mean: Vector | Matrix
    lower: Vector | Matrix
    upper: Vector | Matrix
    coverage: float
    outputs: list[Hashable]


def effect(view: View, name: Hashable, coverage: float = 0.8) -> Effect:
    """The partial dependence of the prediction on a column, with the spread over the rows of the background."""
    require(0 < coverage < 1, "coverage", "between 0 and 1", coverage)
    column = view.column(name)
    patterns, values = patterns_of(column, view.background)
    curves = []
    for pattern in patterns:
        X = view.background.copy()
        X[:, column.places] = pattern
        curves.append(view.predict(X))
    tensor = np.array(curves)  # (values, rows, outputs)
    ends = np.quantile(tensor, [(1 - coverage) / 2, (1 + coverage) / 2], axis=1)
    mean, lower, upper = (view.named(part) for part in (tensor.mean(axis=1), *ends))
    return Effect(column.name, values, mean, lower, upper, coverage, list(view.outputs))


def patterns_of(column: InputColumn, X: Matrix) -> tuple[list[Vector], list[float | str]]:
    """Features that the column has in some rows, at most POINTS, in the order of their values; and these values."""
    found = {column.value(x): x[column.places] for x in X}
    numbers = sorted(value for value in found if isinstance(value, float))
    texts = sorted(value for value in found if isinstance(value, str))
    values = [*(numbers[k] for k in spread(len(numbers), POINTS)), *(texts[k] for k in spread(len(texts), POINTS))]
    return [found[value] for value in values], values
