"""Predictions on their way out, as CSV, TSV or JSON lines."""

import json
import os
import stat
import sys
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.csv

from omkl.stream.model import Said
from omkl.stream.raw import DataError

WRITTEN = (".csv", ".tsv", ".jsonl")


class Writer:
    """A file of predictions, or standard output."""

    def __init__(self, where: str, keep: int | None, beside: bool | None) -> None:
        """`keep`: bytes written before the checkpoint; what comes after them is cut off."""
        self.path = where
        suffix = Path(where).suffix.lower() if where != "-" else ".csv"
        self.json, self.tab = suffix == ".jsonl", suffix == ".tsv"
        self.regular = where != "-" and (not os.path.exists(where) or stat.S_ISREG(os.stat(where).st_mode))
        self.beside = self.regular and (os.path.exists(where) if beside is None else beside)
        self.size = 0
        self._file: BinaryIO
        if not self.regular:
            self._file = sys.stdout.buffer if where == "-" else open(where, "wb")  # noqa: SIM115  closed by finish
            self.size = keep or 0
            return
        if self.beside and keep == _size(self.path) and _size(self.place) is None:
            self.beside = False  # it was killed just after it had moved them
        name = self.place
        if keep is None:
            self._file = open(name, "wb")  # noqa: SIM115  as above
            return
        if (_size(name) or -1) < keep:
            raise DataError(
                f"{name}: shorter than when the checkpoint was written, or gone; "
                "put it back, or remove the checkpoint to start anew"
            )
        self._file = open(name, "r+b")  # noqa: SIM115  as above
        self._file.truncate(keep)
        self._file.seek(keep)
        self.size = keep

    @property
    def place(self) -> str:
        """Where the bytes are now."""
        return f"{self.path}.part" if self.beside else self.path

    def write(self, said: Said) -> None:
        columns = table(said)
        if self.json:
            names, rows = list(columns), zip(*(_plain(values) for values in columns.values()), strict=True)
            text = "".join(json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in rows)
            self._put(text.encode())
            return
        sink = pa.BufferOutputStream()
        mark = "\t" if self.tab else ","
        if not self.size:
            sink.write((mark.join(columns) + "\n").encode())
        options = pa.csv.WriteOptions(include_header=False, delimiter=mark, quoting_style="needed")
        pa.csv.write_csv(pa.table(columns), sink, options)
        self._put(sink.getvalue().to_pybytes())

    def _put(self, data: bytes) -> None:
        self._file.write(data)
        self._file.flush()
        self.size += len(data)

    def settle(self) -> None:
        """Make sure that the disk has it."""
        if self._file.closed:
            return
        self._file.flush()
        if self.regular:
            os.fsync(self._file.fileno())

    def finish(self) -> None:
        """All is written: take the place of an earlier file."""
        self.settle()
        self.close()
        if self.beside:
            os.replace(self.place, self.path)
            self.beside = False

    def close(self) -> None:
        if self.path != "-" and not self._file.closed:
            self._file.close()


def _size(path: str) -> int | None:
    return os.path.getsize(path) if os.path.exists(path) else None


def table(said: Said) -> dict[str, Any]:
    """What a prediction file holds, column by column."""
    columns: dict[str, Any] = {"row": said.rows}
    if said.keys is not None:
        columns["key"] = said.keys
    labels = said.mean.dtype == object
    columns["prediction"] = pa.array(said.mean.tolist(), pa.string()) if labels else said.mean
    if said.lower is not None:
        columns |= {"lower": said.lower, "upper": said.upper}
    if said.chance is not None:
        columns["chance"] = said.chance
    columns["target"] = pa.array(said.truth.tolist(), pa.string()) if labels else pa.array(said.truth, from_pandas=True)
    return columns


def _plain(values: Any) -> list[Any]:
    out = values.to_pylist() if isinstance(values, pa.Array) else list(np.asarray(values).tolist())
    return [None if isinstance(v, float) and v != v else v for v in out]
