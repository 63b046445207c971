"""Rows of a table, column by column, whatever they came from: a file, a frame, or a dictionary."""

import datetime
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from omkl.arrays import Array, Index, Matrix
from omkl.encoder.cells import digits, is_usable
from omkl.validation import is_missing

if TYPE_CHECKING:
    import narwhals as nw
    from narwhals.typing import IntoDataFrame

Frame: TypeAlias = "nw.DataFrame[Any]"
NUMPY_TIMES = (np.datetime64, np.timedelta64)


class Batch(NamedTuple):
    """Rows as they were parsed: text, numbers or whatever the file holds."""

    rows: Index  # (n,) their numbers, from 1
    columns: dict[str, pa.Array]

    def only(self, wanted: Callable[[str], bool]) -> "Batch":
        """The same rows with fewer columns."""
        return Batch(self.rows, {name: array for name, array in self.columns.items() if wanted(name)})

    def at(self, rows: Index, names: Iterable[str]) -> dict[str, pa.Array]:
        """The cells of some of these rows, by their numbers, in these columns; empty where a column is absent."""
        place = pa.array(np.searchsorted(self.rows, rows))
        return {name: self.columns.get(name, pa.nulls(len(self.rows), pa.string())).take(place) for name in names}


def of_frame(X: "IntoDataFrame | Frame") -> Batch:
    """The rows of a frame of pandas, polars or Arrow.

    >>> of_frame(pa.table({"size": [1.5, 2.0], "colour": ["red", None]})).columns["colour"].to_pylist()
    ['red', None]
    """
    import narwhals as nw  # which takes time to load, and files do without

    frame: Frame = nw.from_native(X, eager_only=True)
    names = text_names(frame.columns)
    columns = flattened(
        {name: _of_series(frame.get_column(own)) for name, own in zip(names, frame.columns, strict=True)}
    )
    for name, array in columns.items():
        if not is_usable(array.type):
            raise ValueError(f"column {name!r} holds {array.type}; a column must hold numbers, text, booleans or "
                             "timestamps: drop it, or make columns of its parts")  # fmt: skip
    return Batch(np.arange(1, len(frame) + 1), columns)


def of_matrix(X: Matrix, names: Iterable[str]) -> Batch:
    """Numbers, NaN where one is missing, under these names."""
    return Batch(np.arange(1, len(X) + 1), {name: pa.array(X[:, k]) for k, name in enumerate(names)})


def of_columns(columns: Mapping[str, Array], rows: int) -> Batch:
    """Columns of numbers, of text, or of objects, under these names."""
    return Batch(np.arange(1, rows + 1), {name: of_cells(cells.tolist()) for name, cells in columns.items()})


def of_row(x: Mapping[Any, object]) -> Batch:
    """One row: a dictionary of cells.

    >>> {name: cell.to_pylist() for name, cell in of_row({"size": 1, "colour": "red", "seen": None}).columns.items()}
    {'size': [1], 'colour': ['red'], 'seen': [None]}
    """
    x = flat_row(x)
    names = text_names(x)
    cells = {name: of_cells([x[own]], f"feature {name!r}") for name, own in zip(names, x, strict=True)}
    return Batch(np.ones(1, dtype=np.intp), cells)


def of_cells(cells: list[object], what: str = "a cell") -> pa.Array:
    """Python's values as a column; where they are of several types, each as it would be written in a file."""
    try:
        array = pa.array(cells, from_pandas=True)
    except (pa.ArrowInvalid, TypeError, pa.ArrowNotImplementedError, OverflowError):
        array = None
        if any(isinstance(cell, NUMPY_TIMES) for cell in cells):  # not all of whose units Arrow takes
            return of_cells([_python_time(cell) for cell in cells], what)
    if array is None or not is_usable(array.type):
        array = pa.array([_written(cell, what) for cell in cells], pa.string())
    return array


def _python_time(cell: object) -> object:
    if isinstance(cell, np.datetime64):
        return cell.astype("datetime64[us]").item()
    return cell.astype("timedelta64[us]").item() if isinstance(cell, np.timedelta64) else cell


def flattened(columns: dict[str, pa.Array]) -> dict[str, pa.Array]:
    """The fields of objects as columns, named object.field; a column that has such a name already stays.

    >>> flattened({"a": pa.array([{"b": 1, "c": {"d": "x"}}, None])})["a.c.d"].to_pylist()
    ['x', None]
    """
    out: dict[str, pa.Array] = {}
    for name, array in columns.items():
        if pa.types.is_struct(array.type):
            parts = {f"{name}.{field.name}": part for field, part in zip(array.type, array.flatten(), strict=True)}
            out |= {part: cells for part, cells in flattened(parts).items() if part not in columns}
        else:
            out[name] = array
    return out


def flat_row(x: Mapping[Any, object]) -> Mapping[Any, object]:
    """The same for a row: cells that are dictionaries are replaced by theirs.

    >>> flat_row({"a": 1, "o": {"p": 2, "q": {"r": "x"}}, "o.p": 3})
    {'a': 1, 'o.q.r': 'x', 'o.p': 3}
    """
    if not any(isinstance(cell, dict) for cell in x.values()):
        return x
    out: dict[Any, object] = {}
    for name, cell in x.items():
        if isinstance(cell, dict):
            parts = flat_row({f"{name}.{part}": inner for part, inner in cell.items()})
            out |= {part: inner for part, inner in parts.items() if part not in x}
        else:
            out[name] = cell
    return out


def text_names(names: Iterable[Hashable]) -> list[str]:
    """Names of columns as text; no two may be the same then."""
    texts = [str(name) for name in names]
    if len(set(texts)) < len(texts):
        twice = next(text for text in texts if texts.count(text) > 1)
        raise ValueError(f"two columns are called {twice!r}; rename one of them")
    return texts


def _of_series(series: "nw.Series[Any]") -> pa.Array:
    try:
        array = series.to_arrow()
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError):  # or of several types
        return of_cells(series.to_list(), f"every cell of column {series.name!r}")
    coded = pa.types.is_dictionary(array.type)
    if isinstance(
        array.type.value_type if coded else array.type, pa.BaseExtensionType
    ):  # intervals of pandas.cut, UUIDs
        texts = pa.array([None if is_missing(cell) else str(cell) for cell in series.to_list()], pa.string())
        return texts.dictionary_encode() if coded else texts
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


def _written(cell: object, what: str) -> str | None:
    if isinstance(cell, np.generic):
        cell = cell.item()
    if isinstance(cell, float):
        return digits(cell)
    if isinstance(cell, datetime.date):  # and times, which are dates
        return cell.isoformat()
    if isinstance(cell, bool):
        return str(cell).lower()  # as in a column of nothing else
    if isinstance(cell, (str, int)):
        return str(cell)
    if is_missing(cell):
        return None
    if type(cell).__module__.partition(".")[0] == "pandas" and type(cell).__name__ in ("Period", "Interval"):
        return str(cell)  # as columns of these are read
    raise ValueError(f"{what} must be a number, text, a boolean, a timestamp or empty, got {cell!r} "
                     f"({type(cell).__name__})")  # fmt: skip
