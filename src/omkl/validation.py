"""Checks of what users pass in: arguments, rows, targets and weights, with messages that say what to do."""

import math
import numbers
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, SupportsFloat

import numpy as np
from numpy.typing import ArrayLike

from omkl.arrays import Array, Mask, Matrix, Vector
from omkl.engine import first_above, first_not_finite

if TYPE_CHECKING:
    import narwhals as nw

LARGEST_TARGET, LARGEST_WEIGHT = 1e100, 1e30  # whose squares and products are still finite
LARGEST_WHOLE = 2**62  # which the engine's integers hold, and one more than that
LONGEST_INTEGER = 1024  # bits of a label; Python refuses to write integers of some thousand digits
LARGEST_SAFE = 1e30  # learners that are stable in themselves cannot diverge on values of at most this
NUMERIC = "biuf"  # kinds of NumPy's types
UNCHANGED = "(no row of this chunk was learned)"


# Arguments


def is_number(value: object) -> bool:
    """Whether `value` is a finite real number; booleans are not numbers here."""
    try:
        return isinstance(value, numbers.Real) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:  # a whole number beyond the largest double
        return False


def is_whole(value: object) -> bool:
    """Whether `value` is a whole number; booleans are not numbers here."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def is_missing(cell: object) -> bool:
    """Whether a cell is empty: None, NaN, NaT or pandas.NA."""
    try:
        return cell is None or bool(cell != cell)
    except (TypeError, ValueError):  # neither pandas.NA nor an array has a truth value
        return type(cell).__name__ == "NAType"


def refuse_options(given: dict[str, object], of: str) -> None:
    """Refuse options of a method whose signature, another library's, takes any."""
    if given:
        raise TypeError(f"{next(iter(given))!r} is no option of {of}")


def require(holds: bool, name: str, wanted: str, got: object) -> None:
    """Raise ValueError unless `holds`.

    >>> require(False, "ridge", "a positive number", -1)
    Traceback (most recent call last):
    ValueError: ridge must be a positive number, got -1
    """
    if not holds:
        raise ValueError(f"{name} must be {wanted}, got {got!r}")


def require_whole(name: str, value: object, least: int = 1) -> None:
    whole = is_whole(value)
    require(whole and int(value) >= least, name, f"a whole number of at least {least}", value)  # type: ignore[call-overload]  # is_whole has looked
    require(int(value) < LARGEST_WHOLE, name, "below 2**62", value)  # type: ignore[call-overload]  # the same


# Rows


def one_row(x: ArrayLike, d: int) -> Vector:
    """One sample as an array of d finite numbers."""
    x = np.asarray(x, dtype=np.float64, order="C")
    if x.shape != (d,):
        raise ValueError(
            f"x must be one sample of {d} values, got an array of shape {x.shape}; "
            "give many samples to run or predict_rows"
        )
    if (bad := first_not_finite(x)) >= 0:
        raise ValueError(f"x[{bad}] must be a finite number, got {x[bad]}; impute or drop the sample")
    return x


def many_rows(X: ArrayLike, d: int) -> Matrix:
    """Samples as a table of d finite columns."""
    X = np.ascontiguousarray(X, dtype=np.float64)
    if X.ndim != 2 or X.shape[1] != d:
        raise ValueError(
            f"X must be a table of samples with {d} columns, got an array of shape {X.shape}; "
            "give one sample to predict or learn"
        )
    if (bad := first_not_finite(X)) >= 0:
        row, column = divmod(bad, d)
        raise ValueError(
            f"X must be finite, got {X[row, column]} in row {row}, column {column}; impute or drop it {UNCHANGED}"
        )
    return X


# Labels


def is_label(value: object) -> bool:
    """Whether `value` can be a label, and stay one in a model file: a string, a finite number, True or False.

    Labels are compared as Python does it, so that 1, 1.0 and True are the same label. Objects of derived types, such as
    those of enum, are no labels: a file could not say what they are.
    """
    if type(value) is int:
        return value.bit_length() <= LONGEST_INTEGER
    return type(value) in (str, bool) or (type(value) is float and math.isfinite(value))


def label(value: object, where: str = "") -> str | int | float | bool:
    """A label, NumPy's scalars as Python's.

    >>> label(np.int64(3)), label("red")
    (3, 'red')
    >>> label(None)
    Traceback (most recent call last):
    ValueError: a label must be a string, a finite number or a boolean, got None; drop the row, or use a string
    """
    value = value.item() if isinstance(value, np.generic) else value
    if not is_label(value):
        raise ValueError(
            f"a label must be a string, a finite number or a boolean, got {value!r}{where}; drop the row, or use a "
            "string"
        )
    return value  # type: ignore[return-value]  # is_label has looked


# Targets: numbers, signs (-1 or 1), or labels (0, ..., outputs - 1)


def is_target(y: float | Vector, kind: str, outputs: int) -> bool | Mask:
    """Whether y, a number or an array of them, can be a target of this kind."""
    if kind == "label":
        return (y >= 0) & (y < outputs) & (y == np.floor(y))
    return np.abs(y) == 1 if kind == "sign" else np.abs(y) <= LARGEST_TARGET


def wrong_target(y: float, kind: str, outputs: int, where: str = "") -> ValueError:
    if kind == "label":
        return ValueError(f"y must be a whole number from 0 to {outputs - 1}, the label's index, got {y}{where}")
    if kind == "sign":
        return ValueError(f"y must be -1 or 1 for this loss, got {y}{where}; recode the labels")
    return ValueError(
        f"y must be a finite number, got {y}{where}; drop the sample, or scale y to at most {LARGEST_TARGET:g}"
    )


def many_targets(y: ArrayLike, rows: int, kind: str, outputs: int) -> Vector:
    """One target for each row."""
    y = np.ascontiguousarray(y, dtype=np.float64)
    if y.shape != (rows,):
        raise ValueError(f"y must have one value for each of the {rows} rows of X, got an array of shape {y.shape}")
    if kind == "number":
        bad = first_above(y, LARGEST_TARGET)
    else:
        right = np.asarray(is_target(y, kind, outputs))
        bad = -1 if right.all() else int(np.argmin(right))
    if bad >= 0:
        raise wrong_target(y[bad], kind, outputs, f" in row {bad} {UNCHANGED}")
    return y


def finite_number(y: SupportsFloat, name: str) -> float:
    """A target as a float."""
    try:
        number = float(y)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        advice = "labels are for a classifier" if isinstance(y, str) else "drop the row"
        raise ValueError(f"{name} must be a finite number, got {y!r}; {advice}")
    return number


def finite_columns(values: Array, names: Sequence[object]) -> Matrix:
    """The columns of a frame as finite numbers."""
    X = np.ascontiguousarray(values, dtype=np.float64)
    if (bad := first_not_finite(X)) >= 0:
        row, column = divmod(bad, X.shape[1])
        raise ValueError(
            f"column {names[column]!r} must be finite, got {X[row, column]} in row {row}; impute or drop it "
            "(no row of this frame was learned)"
        )
    return X


def frame_numbers(frame: "nw.DataFrame[Any]") -> Array | None:
    """The values of a frame that holds numbers only, none of which is missing; None for another one."""
    import narwhals as nw  # whoever has a frame has loaded it

    values = pandas_values(frame.to_native())
    if values is None:
        schema = frame.schema
        for kind in schema.values():
            if not (kind.is_numeric() and not isinstance(kind, nw.Decimal)) and not isinstance(kind, nw.Boolean):
                return None
        values = frame.to_numpy()
        if values.dtype.kind not in NUMERIC:  # objects, as of several types that pandas does not unite
            if any(frame[name].null_count() for name in schema):
                return None
            values = values.astype(np.float64)
    return None if has_gaps(values) else values


def pandas_values(frame: object) -> Array | None:
    """The values of a pandas frame that holds numbers only; None for anything else. It takes little time."""
    pandas = sys.modules.get("pandas")
    if pandas is None or not isinstance(frame, pandas.DataFrame):
        return None
    if frame.shape[1] == 1 and not isinstance(frame.dtypes.iloc[0], np.dtype):  # categories may be numbers
        return None
    values: Array = frame.to_numpy()  # objects where the columns have types of which one is not NumPy's
    if values.dtype.kind not in NUMERIC:
        return None
    # categories that are numbers become numbers; what pandas 3 returns without a copy, for reading, holds none
    coded = values.flags.writeable and any(isinstance(kind, pandas.CategoricalDtype) for kind in frame.dtypes)
    return None if coded else values


def has_gaps(values: Array) -> bool:
    """Whether a number is missing."""
    return values.dtype.kind == "f" and bool(np.isnan(values).any())


# Sample weights


def one_weight(weight: float, name: str = "weight") -> None:
    if not 0 <= weight <= LARGEST_WEIGHT:
        raise ValueError(
            f"{name} must be a finite number of at least 0, got {weight!r}; the largest is {LARGEST_WEIGHT:g}"
        )


def many_weights(weight: ArrayLike, rows: int, name: str = "weight") -> Vector:
    w = np.ascontiguousarray(weight, dtype=np.float64)
    if w.shape != (rows,):
        raise ValueError(f"{name} must be {rows} finite numbers of at least 0, got an array of shape {w.shape}")
    right = (w >= 0) & (w <= LARGEST_WEIGHT)
    if not right.all():
        bad = int(np.argmin(right))
        raise ValueError(
            f"{name} must be finite, at most {LARGEST_WEIGHT:g} and at least 0, got {w[bad]} in row {bad} {UNCHANGED}"
        )
    return w
