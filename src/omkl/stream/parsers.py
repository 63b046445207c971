"""From a piece of text to columns; the parser of CSV: rows that pyarrow cannot read are skipped and reported."""

import csv
import io
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv

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
MAX_CHARACTERS = 2**24  # of the names of all columns: those of fields repeat the names of the objects that they are in


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

    def check_kind(self, name: str, kind: Format) -> None:
        """Refuse options that say nothing about a file of this kind."""
        of_csv = {"--delimiter": self.delimiter is not None, "--no-header": not self.header}
        given = [option for option, chosen in of_csv.items() if chosen and kind not in ("csv", "tsv")]
        if self.encoding is not None and kind in ("parquet", "arrow"):
            given.append("--encoding")
        if given:
            wanted = "text" if given == ["--encoding"] else "CSV"
            raise DataError(f"{name}: {given[0]} is for {wanted}, and this is {kind}; leave it out")
        if kind == "tsv" and self.delimiter not in (None, "\t", "\\t", "tab"):
            raise DataError(f"{name}: the delimiter of TSV is the tab, not {self.delimiter!r} (--delimiter); "
                            "pass --format csv")  # fmt: skip


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


def whole(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def too_many_columns(name: str) -> DataError:
    return DataError(f"{name}: more than {MAX_COLUMNS} columns; is this a table, one row per line?")


def check_characters(name: str, characters: int) -> None:
    """Refuse names that are longer than all the data, before they are made."""
    if characters > MAX_CHARACTERS:
        raise DataError(
            f"{name}: the names of its columns have more than {MAX_CHARACTERS} characters, where those of fields of "
            "objects count with the names of the objects; give objects shorter names"
        )


def characters_of(schema: pa.Schema) -> int:
    """How many characters the names have of the columns, and of those that fields of structs become."""
    return sum(_characters(len(field.name), field.type, 0) for field in schema)


def _characters(length: int, kind: pa.DataType, depth: int) -> int:
    inner = kind if pa.types.is_struct(kind) and depth < MAX_DEPTH else ()
    return length + sum(_characters(length + 1 + len(field.name), field.type, depth + 1) for field in inner)


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
