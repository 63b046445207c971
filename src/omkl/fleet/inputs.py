"""Batches as users give them (frames of any kind, or arrays), checked and turned into keys, numbers and targets."""

from collections.abc import Iterable, Sequence

import narwhals as nw
import numpy as np
from narwhals.typing import IntoDataFrame, IntoSeries
from numpy.typing import ArrayLike

from omkl import validation
from omkl.arrays import Array, Matrix, Vector
from omkl.engine import first_not_finite

Key = str | int
Frame = nw.DataFrame[IntoDataFrame]
Column = nw.Series[IntoSeries]
UNCHANGED = "nothing of this batch was learned"

# Keys


def plain_keys(keys: Iterable[Key | np.generic]) -> list[Key]:
    """Keys as Python strings and integers instead of NumPy's."""
    if isinstance(keys, np.ndarray):
        return list(keys.tolist())
    return [key.item() if isinstance(key, np.generic) else key for key in keys]


def check_keys(keys: Sequence[Key]) -> None:
    if set(map(type, keys)) <= {str, int}:
        return
    row, key = next((row, key) for row, key in enumerate(keys) if type(key) not in (str, int))
    if key is None or key != key:
        raise ValueError(f"row {row}: the key must not be missing, got {key}; drop the row ({UNCHANGED})")
    raise TypeError(f"row {row}: a key must be a string or an integer, got {key!r}; convert it to a string")


# Features


def as_rows(X: ArrayLike, rows: int) -> Matrix:
    X = np.ascontiguousarray(X, dtype=np.float64)
    if X.ndim != 2 or len(X) != rows:
        raise ValueError(f"X must be a table with a row for each of the {rows} keys, got an array of shape {X.shape}")
    return X


def check_features(X: Matrix, keys: Sequence[Key], d: int | None, names: Sequence[str] | None, gaps: bool) -> None:
    """Refuse a table that has not `d` columns, where that is known, or a value that is not finite."""
    columns = X.shape[1]
    if columns != (columns if d is None else d) or columns == 0:
        raise ValueError(f"X must have {d or 'some'} columns, one for each feature, got {columns}; {UNCHANGED}")
    values = np.nan_to_num(X, nan=0.0, posinf=np.inf, neginf=-np.inf) if gaps else X
    if (bad := first_not_finite(values)) >= 0:
        row, k = divmod(bad, columns)
        name = f"column {k}" if names is None else f"{names[k]!r}"
        raise ValueError(
            f"row {row} (key {keys[row]!r}): feature {name} must be a finite number, got {X[row, k]}; "
            f"drop the row or impute the value ({UNCHANGED})"
        )


# Targets


def numeric_target(y: ArrayLike, keys: Sequence[Key]) -> Vector:
    y = np.ascontiguousarray(y, dtype=np.float64)
    if (bad := first_not_finite(y)) >= 0 and bad < len(keys):
        raise ValueError(
            f"row {bad} (key {keys[bad]!r}): the target must be a finite number, got {y.flat[bad]}; "
            f"drop the row ({UNCHANGED})"
        )
    return y


def check_labels(y: Array, classes: Array, keys: Sequence[Key]) -> None:
    known = set(classes.tolist())
    labels = y.tolist()
    for row, label in enumerate(labels):
        if not validation.is_label(label):
            validation.label(label, f" in row {row} (key {keys[row]!r}; {UNCHANGED})")
    if set(labels) <= known:
        return
    row = next(row for row, label in enumerate(labels) if label not in known)
    raise ValueError(
        f"row {row} (key {keys[row]!r}): the target must be a label out of {classes.tolist()}, got {labels[row]!r}; "
        f"give all labels as classes when the fleet is made ({UNCHANGED})"
    )


# Frames, through narwhals


def open_frame(frame: IntoDataFrame) -> Frame:
    try:
        return nw.from_native(frame, eager_only=True)
    except TypeError:
        raise TypeError(
            f"frame must be a pandas or polars DataFrame or a pyarrow Table, got {type(frame).__name__}; "
            "arrays go to learn_rows and predict_rows"
        ) from None


def column(table: Frame, name: str, role: str) -> Column:
    if name not in table.columns:
        raise ValueError(f"the {role} column {name!r} is not in the frame, which has {table.columns}; {UNCHANGED}")
    return table.get_column(name)


def choose_features(
    table: Frame, features: Sequence[str] | None, known: list[str] | None, others: tuple[str, ...]
) -> list[str]:
    """The feature columns: those of the first batch, or those named, or all but `others`."""
    if known is not None:
        if features is not None and list(features) != known:
            raise ValueError(f"features must stay what they were in the first batch, {known}, got {features}")
        return known
    if features is None:
        features = [name for name in table.columns if name not in others]
    if not features or set(features) & set(others) or len(set(features)) < len(features):
        raise ValueError(
            f"features must be one or more columns, each named once, other than {' and '.join(others)}, got {features}"
        )
    return list(features)


def feature_columns(table: Frame, names: list[str], keys: Sequence[Key]) -> Matrix:
    X = np.empty((len(table), len(names)))
    for k, name in enumerate(names):
        X[:, k] = numeric_column(column(table, name, "feature"), f"feature {name!r}", keys)
    return X


def numeric_column(values: Column, what: str, keys: Sequence[Key]) -> Vector:
    """A column as doubles, NaN where a value is missing."""
    if values.dtype.is_numeric() or values.dtype == nw.Boolean:
        return values.to_numpy().astype(np.float64)
    out = np.empty(len(values))
    for row, value in enumerate(values.to_list()):
        # a column of Python objects may hold nothing but numbers; one of strings is refused at its first row
        if value is None:
            out[row] = np.nan
        elif isinstance(value, (int, float, np.number)):
            out[row] = value
        else:
            raise ValueError(
                f"row {row} (key {keys[row]!r}): {what} must be a number, got {value!r}; the column has type "
                f"{values.dtype}: convert it, or drop the row ({UNCHANGED})"
            )
    return out
