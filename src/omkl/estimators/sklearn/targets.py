"""Targets of several columns."""

from collections.abc import Hashable

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.utils import check_array

from omkl.arrays import Array, Matrix
from omkl.features import column_names


def several_columns(y: ArrayLike) -> bool:
    """Whether a target has more than one column; one that is alone is learned as a vector."""
    shape = getattr(y, "shape", None) or np.asarray(y).shape
    return len(shape) == 2 and shape[1] != 1


def checked_columns(y: ArrayLike) -> Matrix:
    """(rows, outputs): finite numbers."""
    if issparse(y):
        raise ValueError("y must be dense, got a sparse matrix; use y.toarray()")
    targets: Matrix = check_array(y, dtype=np.float64, order="C", input_name="y")
    return targets


def output_names(y: object, targets: Array) -> list[Hashable] | None:
    """The names of the columns of y, as checked; None for a vector."""
    if targets.ndim == 1:
        return None
    frame = nw.from_native(y, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        return list(column_names(targets.shape[1]))
    return list(frame.columns)


def require_same(known: list[Hashable] | None, given: list[Hashable] | None, y: object) -> None:
    """Targets that are learned later have the columns that the first ones had."""
    if known is None and given is None:
        return
    if known is None or given is None or len(known) != len(given):
        wanted, got = (f"{len(names)} columns" if names else "one column" for names in (known, given))
        raise ValueError(f"y must have {wanted}, as in the first call, got {got}")
    named = isinstance(nw.from_native(y, eager_only=True, pass_through=True), nw.DataFrame)
    if named and known != list(column_names(len(known))) and known != given:
        raise ValueError(f"the columns of y must be {known}, in this order, as in the first call, got {given}")
