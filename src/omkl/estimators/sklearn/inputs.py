"""What users pass to scikit-learn's methods, checked: arrays of numbers, and frames with cells of any kind."""

import datetime
import sys
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import assert_all_finite, check_consistent_length, column_or_1d
from sklearn.utils.validation import validate_data

from omkl import validation
from omkl.arrays import Array, Matrix
from omkl.engine import first_not_finite
from omkl.estimators.core import Core
from omkl.estimators.rows import in_order
from omkl.estimators.sklearn.targets import checked_columns, several_columns
from omkl.estimators.tables import Calls, features_of, first_names, learn_table, learnable
from omkl.features import column_names
from omkl.names import clash

if TYPE_CHECKING:
    from omkl.encoder import Batch


Rows: TypeAlias = "Matrix | Batch"  # numbers, or cells of any kind


class Fitted(Protocol):
    """What inputs depend on."""

    core_: Core
    n_features_in_: int
    target_name_: str

    @property
    def accepts_missing(self) -> bool: ...
    @property
    def codes(self) -> int: ...
    def new_core(self, names: Sequence[Hashable] | None = None) -> Core: ...


def rows(estimator: Fitted, X: ArrayLike) -> Matrix:
    """The rows of X for a prediction, as features."""
    checked_rows = checked(estimator, X, reset=False)
    if isinstance(checked_rows, np.ndarray):
        return arranged(estimator, checked_rows)
    return features_of(estimator.core_, checked_rows)


def note_target(estimator: "Fitted", y: object) -> None:
    """Remember the target's name, where it has one: the command line looks for that column."""
    name = getattr(y, "name", None)
    if isinstance(name, str):
        estimator.target_name_ = name


def learn(
    estimator: Fitted,
    rows: Rows,
    first: bool,
    predict_features: Callable[[Matrix], Matrix],
    learn_features: Callable[[Matrix, slice], Matrix],
    unknown: Matrix,
) -> Matrix:
    """What `learn_features` returns for the rows; `unknown` for each that came before there was any feature."""
    if isinstance(rows, np.ndarray):
        if first:
            estimator.core_ = estimator.new_core(names(estimator))
        return learn_features(arranged(estimator, rows), slice(None))
    table = learnable(None if first else estimator.core_, rows, estimator.codes)
    start = table.start if first else 0
    parts: list[Matrix] = []
    if first and table.new:
        estimator.core_ = estimator.new_core(first_names(table))
    if not first or table.new:
        parts = learn_table(estimator.core_, table, Calls(predict_features, learn_features), start)
    return np.concatenate([np.repeat(unknown, start, axis=0), *parts])


def start(estimator: Fitted, rows: Rows) -> Matrix:
    """The rows as features, and a core that knows all of these and has learned nothing."""
    if isinstance(rows, np.ndarray):
        estimator.core_ = estimator.new_core(names(estimator))
        return arranged(estimator, rows)
    table = learnable(None, rows, estimator.codes, whole=True)
    if not table.new:
        what = "every cell of X is empty" if len(rows.rows) else "X has 0 rows"
        raise ValueError(f"{what}; give at least one column with a value")
    estimator.core_ = estimator.new_core([name for new in table.new.values() for name in new])
    estimator.core_.encoder = table.encoder
    return table.X


def checked(estimator: Fitted, X: ArrayLike, reset: bool) -> Rows:
    """A matrix, its columns in the order of X, or a table where X is a frame that holds more than numbers."""
    if not reset and (plain := _plain_rows(estimator, X)) is not None:
        return plain
    X = _named(X)
    frame = _table(estimator, X, reset)
    if frame is not None:
        return _checked_table(estimator, X, frame, reset)
    with _advice_about_text():
        rows: Matrix = validate_data(estimator, X, reset=reset, dtype=np.float64, order="C", **_finite(estimator))
    return _under_names(estimator, rows, reset)


def checked_with_target(estimator: Fitted, X: ArrayLike, y: ArrayLike, reset: bool, numeric: bool) -> tuple[Rows, Any]:
    """The same, with a target for each row."""
    note_target(estimator, y)
    if not reset and (plain := _plain_rows(estimator, X)) is not None:
        targets = _plain_targets(y, len(plain), numeric)
        if targets is not None:
            return plain, targets
    _refuse_targets(estimator, y, numeric)
    X = _named(X)
    frame = _table(estimator, X, reset)
    if frame is not None:
        table = _checked_table(estimator, X, frame, reset)
        if numeric and several_columns(y):
            targets = checked_columns(y)
        else:
            targets = column_or_1d(y, warn=True)
            assert_all_finite(targets, input_name="y")
        check_consistent_length(frame, targets)
        return table, _numbers(targets) if numeric else targets
    if numeric and several_columns(y):
        rows = checked(estimator, X, reset)
        targets = checked_columns(y)
        check_consistent_length(rows, targets)
        return rows, targets
    with _advice_about_text():
        rows, targets = validate_data(
            estimator, X, y, reset=reset, dtype=np.float64, order="C", y_numeric=numeric, **_finite(estimator)
        )
    return _under_names(estimator, rows, reset), _numbers(targets) if numeric else targets


def _numbers(targets: ArrayLike) -> Matrix:
    """Finite numbers; scikit-learn's validation takes None among objects for a number that is not missing."""
    numbers = np.ascontiguousarray(targets, dtype=np.float64)
    assert_all_finite(numbers, input_name="y")
    return numbers


def _refuse_targets(estimator: Fitted, y: ArrayLike, numeric: bool) -> None:
    """Targets that are missing among objects, and those that are no numbers where numbers are learned."""
    values = np.asarray(y)
    if not values.ndim or values.dtype.kind not in "OUSTmM":
        return
    for row, value in enumerate(values.ravel().tolist() if values.dtype.kind in "OUST" else values.ravel()[:1]):
        if validation.is_missing(value):
            if not numeric:
                validation.label(value, f" in row {row} (no row was learned)")
            raise ValueError(
                f"Input y contains NaN, first at position {row} ({value!r}); leave out rows without a target"
            )
        if numeric and isinstance(value, str) and not _is_number(value):
            raise ValueError(f"y holds text such as {value!r}, and {type(estimator).__name__} predicts numbers; "
                             "a classifier predicts labels")  # fmt: skip
        if numeric and isinstance(value, (datetime.date, datetime.timedelta, np.datetime64, np.timedelta64)):
            raise ValueError(f"y holds times such as {value!r}, and {type(estimator).__name__} predicts numbers; pass "
                             "numbers, such as the seconds of y.dt.total_seconds()")  # fmt: skip


def _is_number(text: str) -> bool:
    """Whether Python reads this text as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def _plain_rows(estimator: Fitted, X: object) -> Matrix | None:
    """Rows of finite numbers, as scikit-learn's validation returns them; it takes longer than to learn a row."""
    names: Array | None = getattr(estimator, "feature_names_in_", None)
    values = _array(X) if names is None else _values_under(X, names)
    if values is None or values.ndim != 2 or not len(values) or values.shape[1] != estimator.n_features_in_:
        return None
    if estimator.core_.encoder is not None:
        return None
    rows = np.ascontiguousarray(values, dtype=np.float64)
    return None if first_not_finite(rows) >= 0 else rows


def _plain_targets(y: object, rows: int, numeric: bool) -> Any:
    """The same for targets, one for each row: numbers as such, or labels of a type that has no other values."""
    values = _array(y, validation.NUMERIC if numeric else "biuU")
    if values is None or values.shape != (rows,):
        return None
    if not numeric:
        return values
    targets = np.ascontiguousarray(values, dtype=np.float64)
    return None if first_not_finite(targets) >= 0 else targets


def _array(values: object, kinds: str = validation.NUMERIC) -> Array | None:
    """An array of these types as it is, or one of what a list or a series holds."""
    if type(values) is list:
        try:
            values = np.array(values)
        except ValueError:  # rows of different lengths
            return None
    elif (pandas := sys.modules.get("pandas")) is not None and isinstance(values, pandas.Series):
        values = values.to_numpy()
    return values if type(values) is np.ndarray and values.dtype.kind in kinds else None


def _values_under(X: Any, names: Array) -> Array | None:
    """The numbers of a frame of pandas with exactly these columns."""
    values = validation.pandas_values(X)
    return values if values is not None and np.array_equal(X.columns, names) else None


def names(estimator: Fitted) -> Sequence[Hashable]:
    """The features of a matrix, in the order in which a core has them."""
    given = getattr(estimator, "feature_names_in_", None)
    return column_names(estimator.n_features_in_) if given is None else in_order(set(given.tolist()))


def arranged(estimator: Fitted, rows: Matrix) -> Matrix:
    """The rows as the core has them; the columns of arrays, and of fleets, are in the order of its features already."""
    core = estimator.core_
    given: Array | None = getattr(estimator, "feature_names_in_", None)
    if given is None and not core.columns.room and rows.shape[1] == len(core.names):
        return rows
    by_position = given is None or core.names == tuple(column_names(len(core.names)))
    return core.rows_of(core.names if given is None or by_position else given.tolist(), rows)


def _under_names(estimator: Fitted, rows: Matrix, reset: bool) -> Rows:
    """A matrix for an estimator that has learned a table is one too."""
    core: Core | None = None if reset else getattr(estimator, "core_", None)
    if core is None or core.encoder is None:
        return rows
    from omkl.encoder import of_matrix

    return of_matrix(rows, estimator.feature_names_in_)  # type: ignore[attr-defined]  # tables have names


def _named(X: Any) -> Any:
    """X with text as names where it is a frame of more than numbers whose names are of another type, as without header.

    scikit-learn knows no other names. Kinds of tables that narwhals does not know are replaced by one that it does.
    """
    kind = type(X).__name__
    if kind == "LazyFrame":
        raise TypeError("X must be a table, got a LazyFrame; call collect() first")
    if kind == "RecordBatch" and (arrow := sys.modules.get("pyarrow")) is not None:
        return arrow.Table.from_batches([X]) if isinstance(X, arrow.RecordBatch) else X
    pandas = sys.modules.get("pandas")
    if pandas is None or not isinstance(X, pandas.DataFrame) or validation.pandas_values(X) is not None:
        return X
    if X.shape[1] == 0 or any(isinstance(name, str) for name in X.columns):
        return X
    return X.set_axis([str(name) for name in X.columns], axis=1)


@contextmanager
def _advice_about_text() -> Iterator[None]:
    """Say what to do about text in an array."""
    try:
        yield
    except (ValueError, TypeError) as error:
        if not str(error).startswith(("could not convert string", "float() argument")):
            raise
        raise type(error)(f"{error}; text, categories and timestamps are accepted in the columns of a frame "
                          "(pandas, polars, Arrow)") from error  # fmt: skip


def _table(estimator: Fitted, X: object, reset: bool) -> "nw.DataFrame[Any] | None":
    """The frame of pandas, polars or Arrow that X is, if its columns have names and must be encoded."""
    core: Core | None = None if reset else getattr(estimator, "core_", None)
    if isinstance(X, (np.ndarray, list)):
        return None
    if core is not None and core.encoder is None:  # which numbers as before leave as it is
        values = validation.pandas_values(X)
        if values is not None and not validation.has_gaps(values):
            return None
    try:
        frame = nw.from_native(X, eager_only=True, pass_through=True)
    except nw.exceptions.DuplicateError as error:
        raise ValueError(f"two columns have the same name; rename one of them ({error})") from error
    if not isinstance(frame, nw.DataFrame) or not frame.shape[1]:
        return None
    if not all(isinstance(name, str) for name in frame.columns):
        return None
    if core is not None and core.encoder is not None:
        return frame
    fitted_on_arrays = core is not None and not hasattr(estimator, "feature_names_in_")
    plain = fitted_on_arrays or (not clash(frame.columns) and validation.frame_numbers(frame) is not None)
    return None if plain else frame


def _checked_table(estimator: Fitted, X: object, frame: "nw.DataFrame[Any]", reset: bool) -> "Batch":
    from omkl.encoder import of_frame  # pyarrow takes time to load, and numbers do without

    validate_data(estimator, X, reset=reset, skip_check_array=True)
    return of_frame(frame)


def _finite(estimator: Fitted) -> dict[str, object]:
    return {"ensure_all_finite": "allow-nan"} if estimator.accepts_missing else {}
