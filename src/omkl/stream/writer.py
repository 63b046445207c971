"""Files of predictions: CSV, TSV or JSON lines, written as a run goes on and continued from a checkpoint."""

import csv
import io
import json
import os
import stat
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import BinaryIO, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.csv

from omkl.arrays import Array, Matrix
from omkl.encoder.cells import as_strings
from omkl.errors import naming
from omkl.stream.predictions import Predictions
from omkl.stream.raw import DataError

Column: TypeAlias = Array | Sequence[str] | pa.Array
WRITTEN = (".csv", ".tsv", ".jsonl")


class Writer:
    """A file of predictions, or standard output."""

    def __init__(self, where: str, written: int | None, partial: bool | None) -> None:
        """Open a new file, or one to continue.

        `written` is the number of bytes written before the checkpoint, and anything after them is cut off;
        `partial` says whether they are in the .part file. Both are None for a new file.
        """
        self.path, self.name = where, "standard output" if where == "-" else where
        suffix = Path(where).suffix.lower() if where != "-" else ".csv"
        self.json, self.tab = suffix == ".jsonl", suffix == ".tsv"
        self.regular = where != "-" and (not os.path.exists(where) or stat.S_ISREG(os.stat(where).st_mode))
        self.partial = self.regular and (os.path.exists(where) if partial is None else partial)
        self.size = 0
        self._file: BinaryIO
        if not self.regular:
            self._file = sys.stdout.buffer if where == "-" else open(where, "wb")  # noqa: SIM115  closed by finish
            self.size = written or 0
            return
        if self.partial and written == _size(self.path) and _size(self.current_path) is None:
            self.partial = False  # it was killed just after the .part file had been renamed
        name = self.current_path
        if written is None:
            self._file = open(name, "wb")  # noqa: SIM115  as above
            return
        if (_size(name) or -1) < written:
            raise DataError(
                f"{name}: shorter than when the checkpoint was written, or gone; "
                "put it back, or remove the checkpoint to start from the beginning"
            )
        self._file = open(name, "r+b")  # noqa: SIM115  as above
        self._file.truncate(written)
        self._file.seek(written)
        self.size = written

    @property
    def current_path(self) -> str:
        """The file that is being written."""
        return partial_path(self.path) if self.partial else self.path

    def write(
        self, predictions: Predictions, kept: Mapping[str, pa.Array] = MappingProxyType({}), probabilities: bool = False
    ) -> None:
        """Append rows, with these columns of the data, and with the probabilities of all labels if wanted."""
        columns = table(predictions)
        if probabilities and predictions.probabilities is not None:
            columns |= self._probabilities(predictions.labels, predictions.probabilities)
        for name, array in kept.items():
            if name in columns:
                raise DataError(f"--keep: predictions have a column {name!r} of their own; rename that of the data")
            if pa.types.is_nested(array.type):
                raise DataError(f"--keep: column {name!r} holds {array.type}, which has no place in a line")
        columns |= {name: as_written(array) for name, array in kept.items()}
        if self.json:
            names, rows = list(columns), zip(*(_as_list(values) for values in columns.values()), strict=True)
            text = "".join(json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in rows)
            self._put(text.encode())
            return
        sink = pa.BufferOutputStream()
        mark = "\t" if self.tab else ","
        if not self.size:
            sink.write(header(columns, mark).encode())
        options = pa.csv.WriteOptions(include_header=False, delimiter=mark, quoting_style="needed")
        pa.csv.write_csv(pa.table(columns), sink, options)
        self._put(sink.getvalue().to_pybytes())

    def _probabilities(self, labels: tuple[str, ...], probabilities: Matrix) -> dict[str, Column]:
        """A column for each label; in JSON lines one object."""
        if not self.json:
            return {f"probability of {label}": probabilities[:, k] for k, label in enumerate(labels)}
        # labels of probability 0 are left out: most of them come after the row, and may or may not be known by now
        rows = [{label: p for label, p in zip(labels, row, strict=True) if p > 0} for row in probabilities.tolist()]
        return {"probabilities": np.array([*rows, None], dtype=object)[:-1]}

    def _put(self, data: bytes) -> None:
        with naming(self.name):
            self._file.write(data)
            self._file.flush()
        self.size += len(data)

    def sync(self) -> None:
        """Make sure that everything is on the disk."""
        if self._file.closed:
            return
        with naming(self.name):
            self._file.flush()
            if self.regular:
                os.fsync(self._file.fileno())

    def finish(self) -> None:
        """Close the file; a .part file replaces the earlier one."""
        self.sync()
        self.close()
        if self.partial:
            with naming(self.name):
                os.replace(self.current_path, self.path)
            self.partial = False

    def close(self) -> None:
        if self.path != "-" and not self._file.closed:
            with naming(self.name):
                self._file.close()


def header(names: Iterable[str], mark: str) -> str:
    """A line of names, in quotes where they need it: labels and columns that are kept have names of the data.

    >>> header(["row", "probability of a,b"], ",")
    'row,"probability of a,b"\\n'
    """
    line = io.StringIO()
    csv.writer(line, delimiter=mark, lineterminator="\n").writerow(names)
    return line.getvalue()


def partial_path(path: str) -> str:
    """The file that is written first where `path` exists already, to replace it when it is complete."""
    return f"{path}.part"


def _size(path: str) -> int | None:
    return os.path.getsize(path) if os.path.exists(path) else None


def table(p: Predictions) -> dict[str, Column]:
    """The columns of a prediction file."""
    columns: dict[str, Column] = {"row": p.rows}
    if p.keys is not None:
        columns["key"] = p.keys
    labels = p.y_pred.dtype == object
    columns["prediction"] = pa.array(p.y_pred.tolist(), pa.string()) if labels else p.y_pred
    if p.lower is not None and p.upper is not None:
        for k, coverage in enumerate(p.coverages):
            which = "" if len(p.coverages) == 1 else f"_{coverage}"
            columns |= {f"lower{which}": p.lower[:, k], f"upper{which}": p.upper[:, k]}
    if p.probability is not None:
        columns["probability"] = p.probability
    columns["target"] = pa.array(p.y_true.tolist(), pa.string()) if labels else pa.array(p.y_true, from_pandas=True)
    return columns


def as_written(array: pa.Array) -> pa.Array:
    """Numbers, booleans and text as they are, all else as text."""
    simple = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_string)
    return array if any(holds(array.type) for holds in simple) else as_strings(array)


def _as_list(values: Column) -> list[int | float | str | None]:
    out = values.to_pylist() if isinstance(values, pa.Array) else list(np.asarray(values).tolist())
    return [None if isinstance(v, float) and v != v else v for v in out]
