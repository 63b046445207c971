"""Where rows come from: files or standard input, in pieces, each the same whenever it is read.

Text (CSV, TSV, JSON lines) is cut into pieces of whole records and each piece is parsed by
pyarrow; where the cuts fall depends on the content alone, not on how a pipe happened to deliver
it. A piece is handed on as soon as its last record is complete, so a slow pipe stays live.
"""

import csv
import hashlib
import io
import json
import os
import re
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet

from omkl.arrays import Index

Format = Literal["csv", "tsv", "jsonl", "parquet", "arrow"]
FORMATS: tuple[Format, ...] = ("csv", "tsv", "jsonl", "parquet", "arrow")
READ = 1 << 20
LARGEST_PIECE = 8 << 20  # bytes; a piece ends here even if it has fewer rows than asked for
LONGEST_RECORD = 16 << 20
EDGE = 1 << 20  # of a binary file: so much of either end tells it from others
NULLS = ["", "NA", "N/A", "NaN", "nan", "-nan", "-NaN", "NULL", "null", "None", "none", "#N/A", "?", "<NA>"]
_ENDINGS: dict[str, Format] = {
    ".csv": "csv", ".txt": "csv", ".data": "csv", ".tsv": "tsv", ".tab": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl",
    ".json": "jsonl", ".parquet": "parquet", ".pq": "parquet", ".arrow": "arrow", ".feather": "arrow", ".ipc": "arrow",
}  # fmt: skip
_COMPRESSED = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bz2", b"\x04\x22\x4d\x18": "lz4"}


class DataError(ValueError):
    """Data that cannot be used, with the place named."""


class Stop:
    """Ctrl-C or SIGTERM: stop after the piece at hand; a second one, or one while waiting for a pipe, stops at once."""

    def __init__(self) -> None:
        self.asked = self.waiting = False

    def __enter__(self) -> "Stop":
        pa.enable_signal_handlers(False)  # pyarrow would catch them while it parses, and break off in the middle
        signals = (signal.SIGINT, signal.SIGTERM)
        self._before = {s: signal.signal(s, self._handle) for s in signals}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _handle(self, number: int, frame: object) -> None:
        again, self.asked = self.asked, True
        if again or self.waiting:
            raise KeyboardInterrupt

    def read(self, descriptor: int, n: int) -> bytes:
        """What is there, waiting if there is nothing; nothing once a stop was asked for."""
        try:
            self.waiting = True
            return b"" if self.asked else os.read(descriptor, n)
        except KeyboardInterrupt:
            return b""
        finally:
            self.waiting = False


class Batch(NamedTuple):
    """Rows as they were parsed: text, numbers or whatever the file holds."""

    rows: Index  # (n,) their numbers, from 1
    columns: dict[str, pa.Array]


class Piece(NamedTuple):
    """Records that were cut off but not parsed yet."""

    name: str
    first: int  # records before it in its file
    before: int  # and in all files
    content: Any
    parse: Callable[..., Batch]


@dataclass
class Reading:
    """How data is to be read, and what to do with news about it."""

    format: Format | None = None
    delimiter: str | None = None
    encoding: str | None = None
    header: bool = True
    wanted: Callable[[str], bool] = lambda name: True
    tell: Callable[[str, str], None] = lambda about, news: None  # news are told once for each `about`
    numbers: set[str] = field(default_factory=set)  # columns that may be parsed as numbers at once
    stop: Stop = field(default_factory=Stop)
    skipped: int = 0


class Source:
    """The rows of one or more files, in order.

    `digest` covers everything handed out so far, so that a later run can tell whether it reads the
    same data.
    """

    def __init__(self, paths: Iterable[str], reading: Reading, piece_rows: int) -> None:
        self.paths, self.reading, self.piece_rows = list(paths), reading, piece_rows
        self.digest = hashlib.sha256()
        self.records = self.rows = 0
        self.files = 0
        self._watched: _Watched | None = None
        self._pieces = self._cut()
        self._limit = piece_rows

    @property
    def size(self) -> int | None:
        """Bytes in all files, where that is known."""
        if "-" in self.paths:
            return None
        return sum(os.path.getsize(path) for path in self.paths)

    @property
    def at(self) -> int:
        """Bytes read so far, of `size`."""
        behind = sum(os.path.getsize(path) for path in self.paths[: max(self.files - 1, 0)])
        return behind + (self._watched.at if self._watched else 0)

    def __iter__(self) -> Iterator[Batch]:
        for piece in self._pieces:
            batch = piece.parse(piece)
            self.rows += len(batch.rows)
            yield batch

    def skip(self, records: int, digest: str) -> None:
        """Pass over what an earlier run has learned, and make sure that it is the same data."""
        while self.records < records:
            self._limit = min(self.piece_rows, records - self.records)
            if next(self._pieces, None) is None:
                break
        self._limit = self.piece_rows
        if self.records < records or self.digest.hexdigest() != digest:
            raise DataError(
                f"{self._named()}: not the data that the checkpoint was written for (the first {records} records "
                "differ); give the same data, or remove the checkpoint to start anew"
            )

    def check_unchanged(self) -> None:
        """Refuse to go on with a file that is being rewritten."""
        if self._watched is not None:
            self._watched.check()

    def _named(self) -> str:
        return ", ".join("standard input" if path == "-" else path for path in self.paths)

    def _cut(self) -> Iterator[Piece]:
        for path in self.paths:
            self.files += 1
            name = "standard input" if path == "-" else path
            with _Watched(path, self.reading.stop) as raw:
                self._watched = raw
                try:
                    yield from self._cut_one(name, raw)
                except (EOFError, OSError, pa.ArrowInvalid) as error:
                    if isinstance(error, OSError) and error.errno is not None:
                        raise
                    raise DataError(f"{name}: damaged or cut off ({_first_line(error)})") from None
                raw.check()

    def _cut_one(self, name: str, raw: "_Watched") -> Iterator[Piece]:
        start = raw.peek(8)
        if not start:
            raise DataError(f"{name}: empty; wanted a header line and rows")
        stem = name
        stream: Any = raw
        for magic, compression in _COMPRESSED.items():
            if start.startswith(magic):
                stream = _Decompressed(raw, compression, name)
                stem = stem[: stem.rfind(".")] if "." in stem else stem
                start = stream.peek(8)
        kind = self.reading.format or _guess(stem, start)
        if kind in ("parquet", "arrow"):
            yield from self._cut_binary(name, raw, kind, compressed=stream is not raw)
        else:
            yield from self._cut_text(name, _decoded(stream, start, self.reading.encoding, name), kind)

    # Text

    def _cut_text(self, name: str, stream: Any, kind: Format) -> Iterator[Piece]:
        cutter = _Cutter(stream, name, b'"' if kind != "jsonl" else b"", self.reading.stop)
        if kind == "jsonl":
            parse: Callable[..., Batch] = _JsonParser(self.reading).parse
        else:
            head = cutter.next(1) if self.reading.header else cutter.look(1)
            while self.reading.header and head is not None and not head[1].strip():
                head = cutter.next(1)
            if head is None:
                raise DataError(f"{name}: empty; wanted a header line and rows")
            parser = _CsvParser(self.reading, name, head[1], kind)
            cutter.delimiter = parser.delimiter.encode()
            if self.reading.header:
                self.digest.update(head[1])
            parse = parser.parse
        rows = 0
        while (piece := cutter.next(self._limit)) is not None:
            records, content = piece
            self.digest.update(content)
            before, self.records = self.records, self.records + records
            yield Piece(name, rows, before, content, parse)
            rows += records

    # Parquet and Arrow

    def _cut_binary(self, name: str, raw: "_Watched", kind: Format, compressed: bool) -> Iterator[Piece]:
        if compressed:
            raise DataError(f"{name}: {kind} inside of another compression; unpack it first")
        if kind == "parquet":
            if not raw.seekable():
                raise DataError(f"{name}: Parquet cannot be read from a pipe; give the file, or pipe Arrow or CSV")
            self.digest.update(raw.fingerprint())
            batches: Iterable[Any] = pa.parquet.ParquetFile(raw).iter_batches(batch_size=self.piece_rows)
        elif raw.seekable() and raw.peek(6) == b"ARROW1":
            self.digest.update(raw.fingerprint())
            reader = pa.ipc.open_file(raw)
            batches = (reader.get_batch(k) for k in range(reader.num_record_batches))
        else:
            batches = pa.ipc.open_stream(raw)
        rows = 0
        for batch in batches:
            start = 0
            while start < len(batch):
                part = batch.slice(start, self._limit)
                start += len(part)
                before, self.records = self.records, self.records + len(part)
                yield Piece(name, rows, before, part, self._parse_binary)
                rows += len(part)

    def _parse_binary(self, piece: Piece) -> Batch:
        names = piece.content.schema.names
        _no_twins(piece.name, names)
        columns = {name: piece.content.column(k) for k, name in enumerate(names) if self.reading.wanted(name)}
        return Batch(piece.before + np.arange(1, len(piece.content) + 1), columns)


class _Watched(io.RawIOBase):
    """A file or standard input that knows how far it has been read and whether it changed underneath."""

    def __init__(self, path: str, stop: Stop) -> None:
        self._stop = stop
        self._name = "standard input" if path == "-" else path
        if path != "-" and Path(path).is_dir():
            raise DataError(f"{path}: a folder; name the files in it")
        self._path = path
        self._file: BinaryIO = sys.stdin.buffer if path == "-" else open(path, "rb")  # noqa: SIM115  closed in close
        self._ahead = b""
        self.at = 0
        self._seekable = path != "-" and self._file.seekable()
        self._stat = os.fstat(self._file.fileno()) if self._seekable else None

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return self._seekable

    def peek(self, n: int) -> bytes:
        while len(self._ahead) < n and (more := self._read(n - len(self._ahead))):
            self._ahead += more
        return self._ahead[:n]

    def _read(self, n: int) -> bytes:
        if self._seekable:
            return self._file.read(n)
        return self._stop.read(self._file.fileno(), n)  # what is there now; a pipe must not wait for a full buffer

    def read(self, n: int = -1) -> bytes:
        if n < 0:
            return b"".join(iter(lambda: self.read(READ), b""))
        if self._ahead:
            out, self._ahead = self._ahead[:n], self._ahead[n:]
        else:
            out = self._read(n)
        self.at += len(out)
        return out

    def seek(self, offset: int, whence: int = 0) -> int:
        self._ahead = b""
        self.at = self._file.seek(offset, whence)
        return self.at

    def tell(self) -> int:
        return self.at

    def fingerprint(self) -> bytes:
        """Size and both ends; in Parquet and Arrow the end holds a summary of the rest."""
        here = self.at
        size = self.seek(0, 2)
        digest = hashlib.sha256(str(size).encode())
        for start in (0, max(size - EDGE, 0)):
            self.seek(start)
            digest.update(self.read(EDGE))
        self.seek(here)
        return digest.digest()

    def check(self) -> None:
        """A file may grow while it is read; anything else is another file."""
        if self._stat is None:
            return
        try:
            now = os.stat(self._path)
        except FileNotFoundError:
            raise DataError(f"{self._name}: removed while it was read") from None
        grew = now.st_size > self._stat.st_size
        same = (now.st_ino, now.st_dev) == (self._stat.st_ino, self._stat.st_dev)
        if not same or now.st_size < self._stat.st_size or (now.st_mtime_ns != self._stat.st_mtime_ns and not grew):
            raise DataError(f"{self._name}: changed while it was read; run again when it is finished")

    def close(self) -> None:
        if self._path != "-" and not self.closed:
            self._file.close()
        super().close()


class _Decompressed:
    """What is inside of a gzip, zstd, bz2 or lz4 stream."""

    def __init__(self, raw: _Watched, compression: str, name: str) -> None:
        import gzip

        # gzip files are often several members one after the other, which only Python's own reader follows
        self._inner: Any = (
            gzip.GzipFile(fileobj=raw) if compression == "gzip" else pa.CompressedInputStream(raw, compression)
        )
        self._ahead = b""
        self._name, self._compression = name, compression

    def peek(self, n: int) -> bytes:
        while len(self._ahead) < n and (more := self._read(n - len(self._ahead))):
            self._ahead += more
        return self._ahead[:n]

    def _read(self, n: int) -> bytes:
        import zlib

        try:
            out: bytes = self._inner.read(n)
        except (EOFError, OSError, zlib.error) as error:
            raise DataError(
                f"{self._name}: the {self._compression} data is damaged or cut off ({_first_line(error)}); "
                "copy or download it again"
            ) from None
        return out

    def read(self, n: int) -> bytes:
        if self._ahead:
            out, self._ahead = self._ahead[:n], self._ahead[n:]
            return out
        return self._read(n)


class _Transcoded:
    """Text of another encoding as UTF-8."""

    def __init__(self, stream: Any, encoding: str, name: str) -> None:
        import codecs

        try:
            self._decoder = codecs.getincrementaldecoder(encoding)()
        except LookupError:
            raise DataError(f"encoding {encoding!r} is not known; try utf-8, latin-1 or utf-16") from None
        self._stream, self._encoding, self._name = stream, encoding, name

    def read(self, n: int) -> bytes:
        while True:
            raw = self._stream.read(n)
            try:
                text = self._decoder.decode(raw, final=not raw)
            except UnicodeError as error:
                raise DataError(f"{self._name}: not {self._encoding} text ({error}); try another --encoding") from None
            if text or not raw:
                return text.encode()


def _decoded(stream: Any, start: bytes, encoding: str | None, name: str) -> Any:
    if encoding is None and start[:2] in (b"\xff\xfe", b"\xfe\xff"):
        encoding = "utf-16"
    if encoding is None or encoding.lower().replace("_", "-") in ("utf-8", "utf8"):
        if b"\x00" in start:
            raise DataError(f"{name}: binary, not text; wanted CSV, TSV, JSON lines, Parquet or Arrow (see --format)")
        if start.startswith(b"\xef\xbb\xbf"):
            stream.read(3)
        return stream
    return _Transcoded(stream, encoding, name)


class _Cutter:
    """Whole records off the front of a stream of bytes."""

    def __init__(self, stream: Any, name: str, quote: bytes, stop: Stop) -> None:
        self._stream, self._name, self._quote, self._stop = stream, name, quote, stop
        self._buffer = b""
        self._start = 0
        self._ends: Index = np.empty(0, dtype=np.int64)  # where records end in the buffer
        self._at = 0  # of those, the first that was not handed out
        self._over = False
        self._count = 0
        self.delimiter = b","

    def look(self, records: int) -> tuple[int, bytes] | None:
        """What `next` would give, without taking it."""
        start, at, count = self._start, self._at, self._count
        found = self.next(records)
        if found is not None:
            self._start, self._at, self._count = start, at, count
        return found

    def next(self, records: int) -> tuple[int, bytes] | None:
        """At most so many records and their bytes; None at the end."""
        while len(self._ends) - self._at < records and not self._over:
            if self._at < len(self._ends) and self._ends[-1] - self._start >= LARGEST_PIECE:
                break
            self._read()
        ready = self._ends[self._at : self._at + records]
        if not len(ready):
            return None
        fit = int(np.searchsorted(ready, self._start + LARGEST_PIECE, side="right"))
        ready = ready[: max(fit, 1)]
        content = self._buffer[self._start : ready[-1]]
        self._start, self._at = int(ready[-1]), self._at + len(ready)
        self._count += len(ready)
        return len(ready), content

    def _read(self) -> None:
        more = self._stream.read(READ)
        rest = self._buffer[self._start :]
        if not more:
            self._over = True
            if self._stop.asked:  # the pipe has not ended, and half a record is none
                return
            if rest and not rest.endswith(b"\n"):
                rest += b"\n"  # the last line may do without
        elif b"\n" not in more and len(rest) + len(more) <= LONGEST_RECORD and not len(self._ends[self._at :]):
            self._buffer, self._start, self._at = rest + more, 0, 0
            self._ends = self._ends[:0]
            return
        self._buffer, self._start, self._at = rest + more, 0, 0
        self._ends = self._find_ends(self._buffer, self._over)
        last = int(self._ends[-1]) if len(self._ends) else 0
        if len(self._buffer) - last > LONGEST_RECORD:
            unclosed = b"\n" in self._buffer[last:]
            why = "a quote is opened there and not closed" if unclosed else "it has no end of line; is this a table?"
            raise DataError(
                f"{self._name}: record {self._count + len(self._ends) + 1} is longer than "
                f"{LONGEST_RECORD >> 20} MiB: {why}"
            )

    def _find_ends(self, buffer: bytes, over: bool) -> Index:
        if not self._quote or self._quote not in buffer:
            ends: Index = np.flatnonzero(np.frombuffer(buffer, dtype=np.uint8) == 10) + 1
            return ends
        # a quote counts where a field begins; up to its partner everything is content, ends of lines too
        field = rb"(?:^|(?<=[\n\r" + re.escape(self.delimiter) + rb']))"[^"]*(?:""[^"]*)*(?:"|\Z)|\n'
        found = [m.end() for m in re.finditer(field, buffer) if m.group() == b"\n"]
        if over and (not found or found[-1] < len(buffer)):
            found.append(len(buffer))  # the end of the data ends every record
        return np.array(found, dtype=np.int64)


# Parsers


class _CsvParser:
    def __init__(self, reading: Reading, name: str, head: bytes, kind: Format) -> None:
        self.reading = reading
        self.delimiter = reading.delimiter or ("\t" if kind == "tsv" else _delimiter(head))
        if len(self.delimiter) != 1 or not self.delimiter.isascii():
            raise DataError(f"delimiter must be one ASCII character, got {self.delimiter!r}")
        if reading.delimiter is None and self.delimiter != "," and kind == "csv":
            reading.tell("delimiter", f"fields are separated by {self.delimiter!r}")
        try:
            cells = next(csv.reader(io.StringIO(head.decode()), delimiter=self.delimiter), [])
        except UnicodeDecodeError:
            raise DataError(f"{name}: its first line is not UTF-8; pass --encoding, latin-1 for instance") from None
        except csv.Error as error:
            raise DataError(f"{name}: its first line is no header ({error})") from None
        self.names = self._header(name, cells) if reading.header else [str(k + 1) for k in range(len(cells))]

    def _header(self, name: str, cells: list[str]) -> list[str]:
        names = [cell.strip() for cell in cells]
        if names and all(_number(cell) for cell in names):
            raise DataError(
                f"{name}: the first line holds only numbers, so it is no header; pass --no-header "
                "(columns are then called 1, 2, 3, ...)"
            )
        names = [text or f"column {k + 1}" for k, text in enumerate(names)]
        _no_twins(name, names)
        return names

    def parse(self, piece: Piece) -> Batch:
        reading = self.reading
        wanted = [name for name in self.names if reading.wanted(name)]
        types = {name: pa.float64() if name in reading.numbers else pa.string() for name in wanted}
        try:
            table, bad = self._table(piece.content, types)
        except pa.ArrowInvalid:
            # a cell that is no number or no text; read everything as bytes and let the columns sort it out
            table, bad = self._table(piece.content, dict.fromkeys(wanted, pa.binary()))
        columns = {name: _one(table[name]) for name in wanted}
        if bad:
            reading.skipped += len(bad)
            row = bad[0]
            reading.tell(
                "ragged",
                f"row {piece.first + row.number} of {piece.name} has {row.actual_columns} fields instead of "
                f"{row.expected_columns}; such rows are skipped",
            )
        rows = np.arange(1, table.num_rows + len(bad) + 1)
        return Batch(piece.before + np.delete(rows, [row.number - 1 for row in bad if row.number]), columns)

    def _table(self, content: bytes, types: dict[str, Any]) -> tuple[pa.Table, list[Any]]:
        bad: list[Any] = []

        def skip(row: Any) -> str:
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


class _JsonParser:
    def __init__(self, reading: Reading) -> None:
        self.reading = reading

    def parse(self, piece: Piece) -> Batch:
        try:
            columns = self._fast(piece.content)
            n = len(next(iter(columns.values()))) if columns else 0
            rows = np.arange(1, n + 1)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, DataError):
            columns, rows = self._slow(piece)
        wanted = {name: array for name, array in columns.items() if self.reading.wanted(name)}
        return Batch(piece.before + rows, wanted)

    def _fast(self, content: bytes) -> dict[str, pa.Array]:
        schema = pa.schema([(name, pa.float64()) for name in sorted(self.reading.numbers)])
        table = pa.json.read_json(
            io.BytesIO(content),
            read_options=pa.json.ReadOptions(use_threads=False, block_size=len(content) + 16),
            parse_options=pa.json.ParseOptions(explicit_schema=schema, newlines_in_values=False),
        )
        _no_twins("", table.column_names)
        return {name: _one(table[name]) for name in table.column_names}

    def _slow(self, piece: Piece) -> tuple[dict[str, pa.Array], Index]:
        records: list[dict[str, Any]] = []
        rows: list[int] = []
        row = 0
        for line in piece.content.splitlines():
            if not line.strip():
                continue
            row += 1
            try:
                record = json.loads(line)
                if not isinstance(record, dict):
                    raise ValueError(f"wanted an object like {{...}}, got {type(record).__name__}")
            except (ValueError, RecursionError) as error:
                self.reading.skipped += 1
                where = f"row {piece.first + row} of {piece.name}"
                self.reading.tell("json", f"{where} is not a JSON object ({error}); such rows are skipped")
                continue
            records.append(record)
            rows.append(row)
        names = dict.fromkeys(name for record in records for name in record)
        columns = {name: pa.array([_text(record.get(name)) for record in records], pa.string()) for name in names}
        return columns, np.array(rows, dtype=np.int64)


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, (list, dict)):
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else repr(value)


def _one(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _no_twins(name: str, names: list[str]) -> None:
    if len(set(names)) < len(names):
        twin = next(column for column in names if names.count(column) > 1)
        raise DataError(f"{name}: two columns are called {twin!r}; rename one of them")


def _number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _delimiter(head: bytes) -> str:
    """The likeliest separator of a header line."""
    counts = {mark: head.count(mark.encode()) for mark in (",", ";", "\t", "|")}
    best = max(counts, key=lambda mark: counts[mark])
    return best if counts[best] else ","


def _guess(name: str, start: bytes) -> Format:
    if start.startswith(b"PAR1"):
        return "parquet"
    if start.startswith((b"ARROW1", b"\xff\xff\xff\xff")):
        return "arrow"
    by_name = _ENDINGS.get(Path(name).suffix.lower())
    if by_name in ("parquet", "arrow"):
        raise DataError(f"{name}: not {by_name}, its first bytes are {start!r}")
    if start.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
        return "jsonl"
    if by_name == "jsonl" and start.lstrip().startswith(b"["):
        raise DataError(f"{name}: one JSON array; wanted JSON lines, one object per line (jq -c '.[]' makes them)")
    return by_name or "csv"


def _first_line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]
