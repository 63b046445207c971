"""Where rows come from: files or standard input, in pieces, each the same whenever it is read.

Text (CSV, TSV, JSON lines) is cut into pieces of whole records and each piece is parsed by
pyarrow; where the cuts fall depends on the content alone, not on how a pipe happened to deliver
it. A piece is handed on as soon as its last record is complete, so a slow pipe stays live.
"""

import csv
import errno
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
_OTHERS = {  # what people hand over by mistake, by its first bytes
    b"PK\x03\x04": "a ZIP archive or an Excel workbook; unpack it, or save it as CSV",
    b"\xd0\xcf\x11\xe0": "an Excel workbook; save it as CSV",
    b"\x89PNG": "a picture", b"\xff\xd8\xff": "a picture", b"GIF8": "a picture", b"%PDF": "a PDF",
    b"\xfd7zXZ": "compressed with xz; unpack it first, or use gzip or zstd",
    b"SQLite": "an SQLite database; export the table as CSV",
    b"\x89HDF": "an HDF5 file; export the table as CSV or Parquet", b"\x93NUMPY": "a NumPy array; save it as CSV",
    b"ORC": "an ORC file; convert it to Parquet", b"Obj\x01": "an Avro file; convert it to Parquet",
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
    records: int
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
    needed: tuple[str, ...] = ()  # columns that count as empty where a JSON record lacks them


class Source:
    """The rows of one or more files, in order.

    `digest` covers everything handed out so far, so that a later run can tell whether it reads the
    same data.
    """

    def __init__(self, paths: Iterable[str], reading: Reading, piece_rows: int) -> None:
        self.paths, self.reading, self.piece_rows = list(paths), reading, piece_rows
        for path in self.paths:  # the last as well, before the first is learned
            if path == "-":
                if self.paths.count("-") > 1:
                    raise DataError("standard input (-) is named twice, and can be read once")
            elif not os.path.exists(path):
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
            elif os.path.isdir(path):
                raise DataError(f"{path}: a folder; name the files in it")
        self.digest = hashlib.sha256()
        self.records = self.rows = 0
        self.files = 0
        self._json = _JsonParser(reading)
        self._skipped = False
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
        self._skipped = True
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
                except (EOFError, OSError, pa.ArrowException) as error:
                    if isinstance(error, OSError) and error.errno is not None:
                        raise
                    if self.reading.stop.asked:  # it is not damaged: it was not read to its end
                        return
                    raise DataError(f"{name}: damaged or cut off ({_first_line(error)})") from None
                raw.check()
        if self.reading.needed and not self._skipped and not self.reading.stop.asked:
            self._json.check(self._named())

    def _cut_one(self, name: str, raw: "_Watched") -> Iterator[Piece]:
        start = raw.peek(8)
        stem = name
        stream: Any = raw
        if (compression := _compression(start)) is not None:
            stream = _Decompressed(raw, compression, name)
            stem = stem[: stem.rfind(".")] if "." in stem else stem
            start = stream.peek(8)
            if _compression(start) is not None:
                raise DataError(f"{name}: compressed twice; unpack it once")
        if not start:
            self._nothing_in(name)
            return
        for magic, what in _OTHERS.items():
            if start.startswith(magic):
                raise DataError(f"{name}: {what}; wanted CSV, TSV, JSON lines, Parquet or Arrow")
        kind = self.reading.format or _guess(stem, start)
        if kind in ("parquet", "arrow"):
            yield from self._cut_binary(name, raw, kind, compressed=stream is not raw)
        else:
            yield from self._cut_text(name, _decoded(stream, start, self.reading.encoding, name), kind)

    def _nothing_in(self, name: str) -> None:
        """An empty file is a mistake, unless it is one of many."""
        if self.reading.stop.asked:
            return
        if len(self.paths) == 1:
            raise DataError(f"{name}: empty; wanted a header line and rows")
        self.reading.tell(f"empty {name}", f"{name}: empty; passed over")

    # Text

    def _cut_text(self, name: str, stream: Any, kind: Format) -> Iterator[Piece]:
        header = self.reading.header and kind != "jsonl"
        cutter = _Cutter(stream, name, self.reading, quoted=kind != "jsonl", header=header)
        head = cutter.look()
        if head is None:
            self._nothing_in(name)
            return
        if kind == "jsonl":
            parse: Callable[..., Batch] = self._json.parse
        else:
            parser = _CsvParser(self.reading, name, head, kind)
            parse, cutter.delimiter = parser.parse, parser.delimiter.encode()
            if header:
                cutter.next(1)
                self.digest.update(head)
            cutter.again()
        rows = 0
        while (piece := cutter.next(self._limit)) is not None:
            records, content = piece
            self.digest.update(content)
            before, self.records = self.records, self.records + records
            yield Piece(name, records, rows, before, content, parse)
            rows += records

    # Parquet and Arrow

    def _cut_binary(self, name: str, raw: "_Watched", kind: Format, compressed: bool) -> Iterator[Piece]:
        if compressed:
            raise DataError(f"{name}: {kind} inside of another compression; unpack it first")
        raw.whole = True
        if raw.seekable():
            self.digest.update(raw.fingerprint())
        if kind == "parquet":
            if not raw.seekable():
                raise DataError(f"{name}: Parquet cannot be read from a pipe; give the file, or pipe Arrow or CSV")
            batches: Iterable[Any] = pa.parquet.ParquetFile(raw).iter_batches(batch_size=self.piece_rows)
        elif raw.seekable() and raw.peek(6) == b"ARROW1":
            reader = pa.ipc.open_file(raw)
            batches = (reader.get_batch(k) for k in range(reader.num_record_batches))
        else:
            if raw.peek(6) == b"ARROW1":
                raw.read(8)  # behind its mark a file is a stream
            batches = pa.ipc.open_stream(raw)
        rows = 0
        for batch in batches:
            if kind == "arrow":
                batch.validate(full=True)  # what a damaged file says about itself would be believed
            start = 0
            while start < len(batch):
                part = batch.slice(start, self._limit)
                start += len(part)
                before, self.records = self.records, self.records + len(part)
                yield Piece(name, len(part), rows, before, part, self._parse_binary)
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
        self._path = path
        if path == "-" and sys.stdin is None:
            raise DataError("standard input is closed; pipe data into it, or name a file")
        self._file: BinaryIO = sys.stdin.buffer if path == "-" else open(path, "rb")  # noqa: SIM115  closed in close
        self.whole = False  # whether a read waits until it has all it was asked for
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
        n = min(n, 64 * READ)  # a damaged file may ask for more than there can be
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
        while self.whole and len(out) < n and (more := self._read(n - len(out))):
            out += more
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
        # of a pipe, what is there; of a file, all that was asked for
        live = compression == "gzip" and not raw.seekable()
        self._read_inner: Callable[[int], bytes] = self._inner.read1 if live else self._inner.read
        self._ahead = b""
        self._name, self._compression = name, compression

    def peek(self, n: int) -> bytes:
        while len(self._ahead) < n and (more := self._read(n - len(self._ahead))):
            self._ahead += more
        return self._ahead[:n]

    def _read(self, n: int) -> bytes:
        import zlib

        try:
            out: bytes = self._read_inner(n)
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
            info = codecs.lookup(encoding)
        except LookupError:
            info = None
        if info is None or not info._is_text_encoding:  # hex, zip and their like are called encodings too
            raise DataError(f"encoding {encoding!r} is not known; try utf-8, latin-1 or utf-16")
        self._decoder = info.incrementaldecoder()
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
        encoding = "utf-32" if start[2:4] == b"\x00\x00" else "utf-16"
    if encoding is None or encoding.lower().replace("_", "-") in ("utf-8", "utf8"):
        if b"\x00" in start:
            hint = "; if it is UTF-16 text, pass --encoding utf-16-le or utf-16-be" if start.count(0) >= 3 else ""
            raise DataError(f"{name}: binary, not text; wanted CSV, TSV, JSON lines, Parquet or Arrow{hint}")
        if start.startswith(b"\xef\xbb\xbf"):
            stream.read(3)
        return stream
    return _Transcoded(stream, encoding, name)


class _Cutter:
    """Whole records off the front of a stream of bytes; blank lines are no records.

    A quote counts where a field begins; up to its partner everything is content, ends of lines too.
    """

    def __init__(self, stream: Any, name: str, reading: Reading, *, quoted: bool, header: bool) -> None:
        self._stream, self._name, self._reading, self._quoted = stream, name, reading, quoted
        self._buffer = b""
        self._begins: Index = np.empty(0, dtype=np.int64)  # of records in the buffer
        self._ends = self._begins
        self._at = 0  # of those, the first that was not handed out
        self._cut = 0  # the buffer is cut up to here
        self._awaited: bytes | None = None  # without it there is no end in what follows
        self._over = False
        self._count = -1 if header else 0  # rows handed out
        self.delimiter = b","

    def look(self) -> bytes | None:
        """The first record, which stays."""
        while not len(self._ends) and not self._over:
            self._read()
        return self._buffer[self._begins[0] : self._ends[0]] if len(self._ends) else None

    def next(self, records: int) -> tuple[int, bytes] | None:
        """At most so many records and their bytes; None at the end."""
        while len(self._ends) - self._at < records and not self._over:
            if self._at < len(self._ends) and self._ends[-1] - self._begins[self._at] >= LARGEST_PIECE:
                break
            self._read()
        ends = self._ends[self._at : self._at + records]
        if not len(ends):
            return None
        begin = self._begins[self._at]
        ends = ends[: max(int(np.searchsorted(ends, begin + LARGEST_PIECE, side="right")), 1)]
        begins = self._begins[self._at : self._at + len(ends)]
        self._at += len(ends)
        self._count += len(ends)
        if (begins[1:] == ends[:-1]).all():
            return len(ends), self._buffer[begin : ends[-1]]
        return len(ends), b"".join(self._buffer[b:e] for b, e in zip(begins, ends, strict=True))

    def again(self) -> None:
        """Cut anew what was not handed out, as the delimiter is known now."""
        if b'"' in self._buffer:
            self._cut = int(self._ends[self._at - 1]) if self._at else 0
            self._begins, self._ends = self._begins[: self._at], self._ends[: self._at]
            self._scan()

    def _read(self) -> None:
        more = self._stream.read(READ)
        start = int(self._begins[self._at]) if self._at < len(self._begins) else self._cut
        self._begins, self._ends = self._begins[self._at :] - start, self._ends[self._at :] - start
        self._at, self._cut = 0, self._cut - start
        self._buffer = self._buffer[start:] + more
        begun = len(self._buffer) - self._cut
        if not more:
            self._over = True
            if not begun or self._reading.stop.asked:  # the pipe has not ended, and half a record is none
                return
            if not self._buffer.endswith(b"\n"):
                self._buffer += b"\n"  # the last line may do without
        elif self._awaited is not None and self._awaited not in more and begun <= LONGEST_RECORD:
            return
        self._scan()

    def _scan(self) -> None:
        """Cut what has come."""
        while True:
            ends, opened = self._find()
            begins = np.concatenate(([self._cut], ends))
            lengths = np.diff(np.concatenate((begins, [len(self._buffer)])))
            long = int(np.argmax(lengths > LONGEST_RECORD)) if lengths.max() > LONGEST_RECORD else None
            if long is None and (opened is None or not self._over):
                break
            k = len(ends) if long is None else long
            row = self._count + len(self._ends) - self._at + k + 1
            where = f"row {row} of {self._name}" if row > 0 else f"the header of {self._name}"
            quote = opened if long is None else self._longest_quoted(int(begins[k]))
            if quote is None:
                raise DataError(f"{where}: longer than {LONGEST_RECORD >> 20} MiB; is this a table, one row per line?")
            self._reading.tell("quote", f"{where}: a quote is opened and not closed; it is left out")
            self._buffer = self._buffer[:quote] + b" " + self._buffer[quote + 1 :]
        self._awaited = b"\n" if opened is None else b'"'
        self._cut = int(ends[-1]) if len(ends) else self._cut
        begins, lengths = begins[:-1], lengths[:-1]
        marks = np.frombuffer(self._buffer, dtype=np.uint8)
        blank = (lengths == 1) | ((lengths == 2) & (marks[ends - 2] == 13))
        self._begins = np.concatenate((self._begins, begins[~blank]))
        self._ends = np.concatenate((self._ends, ends[~blank]))

    def _find(self) -> tuple[Index, int | None]:
        """Where records end, and where a quote was opened that is not closed yet."""
        marks = np.frombuffer(self._buffer, dtype=np.uint8)[self._cut :]
        lines: Index = np.flatnonzero(marks == 10)
        quotes: Index = np.flatnonzero(marks == 34) if self._quoted else lines[:0]
        if not len(quotes):
            return self._cut + lines + 1, None
        # quotes open and close by turns, unless one stands where it can do neither
        before, after = marks[quotes[0::2] - 1], marks[np.minimum(quotes[1::2] + 1, len(marks) - 1)]
        opens = (before == 10) | (before == 34) | (before == self.delimiter[0]) | (quotes[0::2] == 0)
        closes = (after == 10) | (after == 13) | (after == 34) | (after == self.delimiter[0])
        if opens.all() and closes.all():
            outside = np.searchsorted(quotes, lines) % 2 == 0
            last = len(quotes) - 1
            while last > 0 and quotes[last - 1] == quotes[last] - 1:
                last -= 2  # a pair inside of a field stands for one quote
            return self._cut + lines[outside] + 1, int(self._cut + quotes[last]) if len(quotes) % 2 else None
        found, opened = [], None
        for m in self._fields().finditer(self._buffer, self._cut):
            if m.group() == b"\n":
                found.append(m.end())
            elif m.group(1) is None:
                opened = m.start()
        return np.array(found, dtype=np.int64), opened

    def _fields(self) -> re.Pattern[bytes]:
        return re.compile(
            rb"(?:^|(?<=[\n" + re.escape(self.delimiter) + rb']))"[^"]*(?:""[^"]*)*(?:(")(?!")|\Z)|\n', re.DOTALL
        )

    def _longest_quoted(self, begin: int) -> int | None:
        """Where, in a record that is too long, the field begins that made it so."""
        some = self._fields().finditer(self._buffer, begin, begin + LONGEST_RECORD)
        found = [m for m in some if b"\n" in m.group()[1:]]
        return max(found, key=lambda m: m.end() - m.start()).start() if found else None


# Parsers


class _CsvParser:
    def __init__(self, reading: Reading, name: str, head: bytes, kind: Format) -> None:
        self.reading = reading
        given = {"\\t": "\t", "tab": "\t"}.get(reading.delimiter or "", reading.delimiter)
        self.delimiter = given or ("\t" if kind == "tsv" else _delimiter(head))
        if len(self.delimiter) != 1 or not self.delimiter.isascii() or self.delimiter in '"\r\n':
            raise DataError(f"--delimiter must be one ASCII character and no quote, got {self.delimiter!r}")
        if given is None and self.delimiter != "," and kind == "csv":
            reading.tell("delimiter", f"fields are separated by {self.delimiter!r}")
        if b"\x00" in head:
            raise DataError(f"{name}: binary, not text; wanted CSV, TSV, JSON lines, Parquet or Arrow")
        if _LONE_CR.search(head.rstrip()):
            raise DataError(f"{name}: its lines end in CR alone; convert them: tr '\\r' '\\n' < {name} > new.csv")
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
        content = self._as_utf8(piece)
        if b"\r" in content:  # to pyarrow a lone CR ends a row
            content = _LONE_CR.sub(b" ", content)
        try:
            table, bad = self._table(content, types)
        except pa.ArrowInvalid:  # a cell that is no number; read everything as text and let the columns sort it out
            table, bad = self._table(content, dict.fromkeys(wanted, pa.string()))
        columns = {name: _one(table[name]) for name in wanted}
        if bad:
            reading.skipped += len(bad)
            row = bad[0]
            reading.tell(
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
            self.reading.tell(
                "encoding",
                f"row {row} of {piece.name}: byte {content[error.start]:#x} is not UTF-8; such letters are lost "
                "(pass --encoding, latin-1 for instance)",
            )
            content = content.decode(errors="replace").encode()
        return content

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
        self.texts: set[str] = set()  # columns of text that pyarrow would take for moments
        self.met: dict[str, None] = {}  # every name, in order

    def parse(self, piece: Piece) -> Batch:
        columns = self._fast(piece)
        rows = np.arange(1, piece.records + 1)
        if columns is None:
            columns, rows = self._slow(piece)
        self.met.update(dict.fromkeys(columns))
        for name in self.reading.needed:
            if name not in columns:
                columns[name] = pa.nulls(len(rows), pa.string())
        wanted = {name: array for name, array in columns.items() if self.reading.wanted(name)}
        return Batch(piece.before + rows, wanted)

    def check(self, name: str) -> None:
        """At the end: a needed column that no record had was misspelt."""
        for column in self.reading.needed:
            if self.met and column not in self.met:
                there = ", ".join(repr(name) for name in list(self.met)[:20])
                raise DataError(f"{name}: no record has {column!r}; they have {there}")

    def _fast(self, piece: Piece) -> dict[str, pa.Array] | None:
        """All records at once, or None if one of them is not as it should be."""
        if not _safe(piece.content):
            return None
        schema = {name: pa.float64() for name in sorted(self.reading.numbers)}
        schema |= {name: pa.string() for name in sorted(self.texts)}
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
        moments = {name for name in table.column_names if pa.types.is_timestamp(table.schema.field(name).type)}
        if moments:
            self.texts |= moments
            again = self._fast(piece)
            return None if again is None else {name: again[name] for name in table.column_names}
        return {name: _one(table[name]) for name in table.column_names}

    def _slow(self, piece: Piece) -> tuple[dict[str, pa.Array], Index]:
        records: list[dict[str, Any]] = []
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
                    self.reading.tell("json", f"{where} is not a JSON object ({error}); such rows are skipped")
                continue
            records.append({_clean(name): value for name, value in record.items()})
            rows.append(row)
        names = dict.fromkeys(name for record in records for name in record)
        columns = {name: pa.array([_text(record.get(name)) for record in records], pa.string()) for name in names}
        for name in names:
            if any(isinstance(record.get(name), (list, dict)) for record in records):
                self.reading.tell(f"nested {name}", f"field {name!r} holds lists or objects, which are not used")
        return columns, np.array(rows, dtype=np.int64)


_LONE_CR = re.compile(rb"\r(?!\n)")
DEEPEST = 200


def _safe(content: bytes) -> bool:
    """Whether pyarrow may read these JSON lines: it dies of deep nesting and of lines that are no objects."""
    marks = np.frombuffer(content, dtype=np.uint8)
    ends = np.flatnonzero(marks == 10)
    if not (marks[np.concatenate(([0], ends[:-1] + 1))] == ord("{")).all():
        return False
    deeper = np.cumsum((marks == ord("{")) | (marks == ord("[")))[ends]
    if np.diff(deeper, prepend=0).max() > DEEPEST:
        return False
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


def _clean(text: str) -> str:
    """Without halves of letters, which JSON allows."""
    return text if text.isascii() else text.encode(errors="surrogatepass").decode(errors="replace")


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, (list, dict)):
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    return _clean(value) if isinstance(value, str) else repr(value)


def _compression(start: bytes) -> str | None:
    return next((name for magic, name in _COMPRESSED.items() if start.startswith(magic)), None)


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
    head = re.sub(rb'"[^"]*"', b"", head)
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
    if re.match(rb"\s*\[\s*(\{|$)" if by_name != "jsonl" else rb"\s*\[", start):
        raise DataError(f"{name}: one JSON array; wanted JSON lines, one object per line (jq -c '.[]' makes them)")
    return by_name or "csv"


def _first_line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]
