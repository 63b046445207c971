"""A model as its explanations see it: predictions for rows of features."""

from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple

import numpy as np

from omkl.arrays import Matrix, Vector
from omkl.explain.columns import InputColumn


class View(NamedTuple):
    """What explanations need of a model."""

    predict: Callable[[Matrix], Matrix]  # rows of features -> (rows, outputs)
    columns: Sequence[InputColumn]
    background: Matrix  # (rows, features)
    outputs: Sequence[Hashable] = ()  # labels, or names of several targets; none for one number
    labels: bool = False  # whether these are labels, and predictions their probabilities

    def column(self, name: Hashable) -> InputColumn:
        """The column with this name, which may also be given as text."""
        for column in self.columns:
            if column.name == name or str(column.name) == str(name):
                return column
        known = ", ".join(repr(column.name) for column in self.columns[:12])
        raise ValueError(f"there is no column {name!r}; the columns are {known}"
                         f"{', ...' if len(self.columns) > 12 else ''}")  # fmt: skip

    def named(self, values: Matrix) -> Matrix | Vector:
        """Without the axis of the outputs, the last, where there is one number."""
        out: Matrix = values if len(self.outputs) else values[..., 0]
        return out


def same(a: Matrix, b: Matrix) -> Matrix:
    """Whether values are the same; two that are missing are."""
    out: Matrix = (a == b) | (np.isnan(a) & np.isnan(b))
    return out
