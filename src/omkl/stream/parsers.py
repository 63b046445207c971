"""From a piece of text to columns: pyarrow reads it, and rows that pyarrow cannot read are skipped and reported."""

import csv
import io
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.json

from omkl.arrays import Index
from omkl.stream.notices import Notify
from omkl.stream.raw import DataError, Stop

Format = Literal["csv", "tsv", "jsonl", "parquet", "arrow"]
FORMATS: tuple[Format, ...] = ("csv", "tsv", "jsonl", "parquet", "arrow")
NULLS = ["", "NA", "N/A", "NaN", "nan", "-nan", "-NaN", "NULL", "null", "None", "none", "#N/A", "?", "<NA>"]
_LONE_CR = re.compile(rb"\r(?!\n)")
MAX_DEPTH = 200
MAX_COLUMNS = 100_000


class Batch(NamedTuple):
    """Rows as they were parsed: text, numbers or whatever the file holds."""

    rows: Index  # (n,) their numbers, from 1
    columns: dict[str, pa.Array]


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
    needed: tuple[str, ...] = ()  # columns that count as empty where a JSON record lacks them


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
        self.seen.update(dict.fromkeys(columns))
        for name in self.reading.needed:
            if name not in columns:
                columns[name] = pa.nulls(len(rows), pa.string())
        wanted = {name: array for name, array in columns.items() if self.reading.wanted(name)}
        return Batch(piece.before + rows, wanted)

    def check(self, name: str) -> None:
        """At the end: refuse a needed column that no record had."""
        for column in self.reading.needed:
            if self.seen and column not in self.seen:
                present = ", ".join(repr(name) for name in list(self.seen)[:20])
                raise DataError(f"{name}: no record has {column!r}; they have {present}")

    def _fast(self, piece: Piece) -> dict[str, pa.Array] | None:
        """All records at once, or None if pyarrow cannot read one of them."""
        if not _safe(piece.content):
            return None
        schema = {name: pa.float64() for name in sorted(self.reading.numbers)}
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
            records.append({_clean(name): value for name, value in record.items()})
            rows.append(row)
        names = dict.fromkeys(name for record in records for name in record)
        if len(names) > MAX_COLUMNS:
            raise too_many_columns(piece.name)
        columns = {name: pa.array([_text(record.get(name)) for record in records], pa.string()) for name in names}
        for name in names:
            if any(isinstance(record.get(name), (list, dict)) for record in records):
                self.reading.notify(f"nested {name}", f"field {name!r} holds lists or objects, which are ignored")
        return columns, np.array(rows, dtype=np.int64)


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
