"""From a piece of text to columns: pyarrow reads it, and rows that pyarrow cannot read are skipped and reported."""

import csv
import io
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.json

from omkl.arrays import Index
from omkl.encoder.cells import NULLS
from omkl.encoder.table import Batch
from omkl.notices import Notify
from omkl.stream.names import NamedColumns
from omkl.stream.raw import DataError, Stop

Format = Literal["csv", "tsv", "jsonl", "parquet", "arrow"]
FORMATS: tuple[Format, ...] = ("csv", "tsv", "jsonl", "parquet", "arrow")
_LONE_CR = re.compile(rb"\r(?!\n)")
MAX_DEPTH = 200
MAX_COLUMNS = 100_000


class Piece(NamedTuple):
    """Records that were cut off but not parsed yet."""

    name: str
    records: int
    first: int  # records before it in its file
    before: int  # and in all files
    content: bytes | pa.RecordBatch
    parse: Callable[..., Batch]


@dataclass
class Reading:
    """How data is to be read, and where notices about it go."""

    format: Format | None = None
    delimiter: str | None = None
    encoding: str | None = None
    header: bool = True
    wanted: Callable[[str], bool] = lambda name: True
    notify: Notify = lambda about, text: None
    numbers: set[str] = field(default_factory=set)  # columns that may be parsed as numbers at once
    stop: Stop = field(default_factory=Stop)
    skipped: int = 0
    columns: NamedColumns = field(default_factory=NamedColumns)  # those that must be there


class CsvParser:
    def __init__(self, reading: Reading, name: str, head: bytes, kind: Format) -> None:
        self.reading = reading
        given = {"\\t": "\t", "tab": "\t"}.get(reading.delimiter or "", reading.delimiter)
        self.delimiter = given or ("\t" if kind == "tsv" else _delimiter(head))
        if len(self.delimiter) != 1 or not self.delimiter.isascii() or self.delimiter in '"\r\n':
            raise DataError(f"--delimiter must be one ASCII character other than a quote, got {self.delimiter!r}")
        if given is None and self.delimiter != "," and kind == "csv":
            reading.notify("delimiter", f"fields are separated by {self.delimiter!r}")
        if b"\x00" in head:
            raise DataError(f"{name}: binary, not text; wanted CSV, TSV, JSON lines, Parquet or Arrow")
        if _LONE_CR.search(head.rstrip()):
            raise DataError(f"{name}: its lines end in CR alone; convert them: tr '\\r' '\\n' < {name} > new.csv")
        if head.count(self.delimiter.encode()) >= MAX_COLUMNS:
            raise too_many_columns(name)
        try:
            cells = next(csv.reader(io.StringIO(head.decode()), delimiter=self.delimiter), [])
        except UnicodeDecodeError:
            raise DataError(f"{name}: its first line is not UTF-8; pass --encoding, latin-1 for instance") from None
        except csv.Error as error:
            raise DataError(f"{name}: its first line is not a header ({error})") from None
        self.names = self._header(name, cells) if reading.header else [str(k + 1) for k in range(len(cells))]

    def _header(self, name: str, cells: list[str]) -> list[str]:
        names = [cell.strip() for cell in cells]
        if names and all(_number(cell) for cell in names):
            raise DataError(
                f"{name}: the first line holds only numbers, so it is not a header; pass --no-header "
                "(columns are then called 1, 2, 3, ...)"
            )
        names = [text or f"column {k + 1}" for k, text in enumerate(names)]
        check_unique(name, names)
        return names

    def parse(self, piece: Piece) -> Batch:
        reading = self.reading
        wanted = [name for name in self.names if reading.wanted(name)]
        types = {name: pa.float64() if name in reading.numbers else pa.string() for name in wanted}
        content = self._as_utf8(piece)
        if b"\r" in content:  # to pyarrow a lone CR ends a row
            content = _LONE_CR.sub(b" ", content)
        try:
            table, bad = self._table(content, types)
        except pa.ArrowInvalid:  # a cell that is not a number: read all as text, to be parsed cell by cell
            table, bad = self._table(content, dict.fromkeys(wanted, pa.string()))
        columns = {name: whole(table[name]) for name in wanted}
        if bad:
            reading.skipped += len(bad)
            row = bad[0]
            reading.notify(
                "ragged",
                f"row {piece.first + row.number} of {piece.name} has {row.actual_columns} fields instead of "
                f"{row.expected_columns}; such rows are skipped",
            )
        rows = np.arange(1, piece.records + 1)
        return Batch(piece.before + np.delete(rows, [row.number - 1 for row in bad]), columns)

    def _as_utf8(self, piece: Piece) -> bytes:
        content: bytes = piece.content
        if content.isascii():
            return content
        try:
            content.decode()
        except UnicodeDecodeError as error:
            row = piece.first + content.count(b"\n", 0, error.start) + 1
            self.reading.notify(
                "encoding",
                f"row {row} of {piece.name}: byte {content[error.start]:#x} is not UTF-8; such characters are lost "
                "(pass --encoding, latin-1 for instance)",
            )
            content = content.decode(errors="replace").encode()
        return content

    def _table(self, content: bytes, types: dict[str, pa.DataType]) -> tuple[pa.Table, list[pa.csv.InvalidRow]]:
        bad: list[pa.csv.InvalidRow] = []

        def skip(row: pa.csv.InvalidRow) -> str:
            bad.append(row)
            return "skip"

        table = pa.csv.read_csv(
            io.BytesIO(content),
            pa.csv.ReadOptions(use_threads=False, block_size=len(content) + 16, column_names=self.names),
            pa.csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True, invalid_row_handler=skip),
            pa.csv.ConvertOptions(
                column_types=types, include_columns=list(types), null_values=NULLS, strings_can_be_null=True
            ),
        )
        return table, bad


class JsonParser:
    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.as_text: set[str] = set()  # columns of text that pyarrow would read as timestamps
        self.seen: dict[str, None] = {}  # every name, in order

    def parse(self, piece: Piece) -> Batch:
        columns = self._fast(piece)
        rows = np.arange(1, piece.records + 1)
        if columns is None:
            columns, rows = self._slow(piece)
        columns = flattened(columns)
        first = not self.seen
        self.seen.update(dict.fromkeys(columns))
        if first:
            self.reading.columns.check_learned(piece.name, self.seen)
            for what in self.reading.columns.absent(self.seen):
                self.reading.notify(f"not yet {what}", f"so far no record has {what}")
        for name in self.reading.columns.needed.values():  # a record may lack it
            if name not in columns:
                columns[name] = pa.nulls(len(rows), pa.string())
        wanted = {name: array for name, array in columns.items() if self.reading.wanted(name)}
        return Batch(piece.before + rows, wanted)

    def check(self, name: str) -> None:
        """At the end: refuse a column that must be there and that no record had."""
        if self.seen:
            self.reading.columns.check_needed(name, self.seen)
            self.reading.columns.check_named(name, self.seen)

    def _fast(self, piece: Piece) -> dict[str, pa.Array] | None:
        """All records at once, or None if pyarrow cannot read one of them."""
        if not _safe(piece.content):
            return None
        # a name with a dot is that of a field in an object, which has no place in a schema of names
        schema = {name: pa.float64() for name in sorted(self.reading.numbers) if "." not in name}
        schema |= {name: pa.string() for name in sorted(self.as_text)}
        try:
            table = pa.json.read_json(
                io.BytesIO(piece.content),
                read_options=pa.json.ReadOptions(use_threads=False, block_size=len(piece.content) + 16),
                parse_options=pa.json.ParseOptions(explicit_schema=pa.schema(schema.items()), newlines_in_values=False),
            )
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return None
        if table.num_rows != piece.records or len(set(table.column_names)) < table.num_columns:
            return None
        if any(_has_timestamps(field.type) for field in table.schema if pa.types.is_struct(field.type)):
            return None
        timestamps = {name for name in table.column_names if pa.types.is_timestamp(table.schema.field(name).type)}
        if timestamps:
            self.as_text |= timestamps
            again = self._fast(piece)
            return None if again is None else {name: again[name] for name in table.column_names}
        return {name: whole(table[name]) for name in table.column_names}

    def _slow(self, piece: Piece) -> tuple[dict[str, pa.Array], Index]:
        records: list[dict[str, object]] = []
        rows: list[int] = []
        for row, line in enumerate(piece.content.split(b"\n")[:-1], 1):
            try:
                record = json.loads(line)
                if not isinstance(record, dict):
                    raise ValueError(f"wanted {{...}}, got {type(record).__name__}")
            except (ValueError, RecursionError) as error:
                if line.strip():
                    self.reading.skipped += 1
                    where = f"row {piece.first + row} of {piece.name}"
                    self.reading.notify("json", f"{where} is not a JSON object ({error}); such rows are skipped")
                continue
            records.append(dict(_fields("", record)))
            rows.append(row)
        names = dict.fromkeys(name for record in records for name in record)
        if len(names) > MAX_COLUMNS:
            raise too_many_columns(piece.name)
        columns = {name: pa.array([_text(record.get(name)) for record in records], pa.string()) for name in names}
        for name in names:
            if any(isinstance(record.get(name), list) for record in records):
                self.reading.notify(f"nested {name}", f"field {name!r} holds lists, which are ignored")
        return columns, np.array(rows, dtype=np.int64)


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


def _has_timestamps(kind: pa.DataType) -> bool:
    return any(pa.types.is_timestamp(field.type) or (pa.types.is_struct(field.type) and _has_timestamps(field.type))
               for field in kind)  # fmt: skip


def _fields(prefix: str, record: dict[str, object]) -> Iterator[tuple[str, object]]:
    """The fields of a record and of the objects in it; those of the record itself come last, and so have precedence."""
    for name, value in record.items():
        if isinstance(value, dict):
            yield from _fields(f"{prefix}{_clean(name)}.", value)
    for name, value in record.items():
        if not isinstance(value, dict):
            yield prefix + _clean(name), value


def _safe(content: bytes) -> bool:
    """Whether pyarrow may read these JSON lines: it crashes on deep nesting and on lines that are not objects."""
    marks = np.frombuffer(content, dtype=np.uint8)
    ends = np.flatnonzero(marks == 10)
    if not (marks[np.concatenate(([0], ends[:-1] + 1))] == ord("{")).all():
        return False
    deeper = np.cumsum((marks == ord("{")) | (marks == ord("[")))[ends]
    if np.diff(deeper, prepend=0).max() > MAX_DEPTH:
        return False
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


def _clean(text: str) -> str:
    """Without lone surrogates, which JSON allows."""
    return text if text.isascii() else text.encode(errors="surrogatepass").decode(errors="replace")


def _text(value: object) -> str | None:
    if value is None or isinstance(value, (list, dict)):
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    return _clean(value) if isinstance(value, str) else repr(value)


def whole(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def too_many_columns(name: str) -> DataError:
    return DataError(f"{name}: more than {MAX_COLUMNS} columns; is this a table, one row per line?")


def check_unique(name: str, names: list[str]) -> None:
    """Refuse a table with two columns of one name."""
    seen: set[str] = set()
    for column in names:
        if column in seen:
            raise DataError(f"{name}: two columns are called {column!r}; rename one of them")
        seen.add(column)


def _number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _delimiter(head: bytes) -> str:
    """The most frequent separator of a header line."""
    head = re.sub(rb'"[^"]*"', b"", head)
    counts = {mark: head.count(mark.encode()) for mark in (",", ";", "\t", "|")}
    best = max(counts, key=lambda mark: counts[mark])
    return best if counts[best] else ","
