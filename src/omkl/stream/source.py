"""Rows of files or standard input, in pieces that are the same whenever they are read.

Text (CSV, TSV, JSON lines) is cut into pieces of whole records and each piece is parsed by
pyarrow; where the cuts fall depends on the content alone, not on how a pipe happened to deliver
it. A piece is handed on as soon as its last record is complete, so a slow pipe stays live.
"""

import errno
import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from omkl.encoder.table import Batch
from omkl.stream import binary
from omkl.stream.json_lines import JsonParser
from omkl.stream.names import advice_about_header
from omkl.stream.parsers import CsvParser, Format, Piece, Reading, check_unique
from omkl.stream.raw import ByteStream, DataError, Decompressed, Raw, compression_of, decoded, first_line
from omkl.stream.records import Cutter

_ENDINGS: dict[str, Format] = {
    ".csv": "csv", ".txt": "csv", ".data": "csv", ".tsv": "tsv", ".tab": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl",
    ".json": "jsonl", ".parquet": "parquet", ".pq": "parquet", ".arrow": "arrow", ".feather": "arrow", ".ipc": "arrow",
}  # fmt: skip
_OTHERS = {  # files given by mistake, by their first bytes
    b"PK\x03\x04": "a ZIP archive or an Excel workbook; unpack it, or save it as CSV",
    b"\xd0\xcf\x11\xe0": "an Excel workbook; save it as CSV",
    b"\x89PNG": "a picture", b"\xff\xd8\xff": "a picture", b"GIF8": "a picture", b"%PDF": "a PDF",
    b"\xfd7zXZ": "compressed with xz; unpack it first, or use gzip or zstd",
    b"SQLite": "an SQLite database; export the table as CSV",
    b"\x89HDF": "an HDF5 file; export the table as CSV or Parquet", b"\x93NUMPY": "a NumPy array; save it as CSV",
    b"<!DOCTYP": "a web page", b"<!doctyp": "a web page", b"<html": "a web page", b"<?xml": "XML; convert it to CSV",
    b"ORC": "an ORC file; convert it to Parquet", b"Obj\x01": "an Avro file; convert it to Parquet",
    b"OMKL\r\n": "a model of omkl, which omkl inspect describes",
}  # fmt: skip


class Source:
    """The rows of one or more files, in order.

    `digest` covers everything handed out so far, so that a later run can tell whether it reads the
    same data.
    """

    def __init__(self, paths: Iterable[str], reading: Reading, piece_rows: int) -> None:
        self.paths, self.reading, self.piece_rows = list(paths), reading, piece_rows
        for path in self.paths:  # the last one too, before anything is learned
            if path == "-":
                if self.paths.count("-") > 1:
                    raise DataError("standard input (-) is named twice, and can be read once")
            elif not os.path.exists(path):
                if re.match(r"[a-z]\w+://", path):
                    raise DataError(f"{path}: an address, not a file; download it and pipe it: curl -sSL {path} | "
                                    "omkl run - --target COLUMN")  # fmt: skip
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
            elif os.path.isdir(path):
                raise DataError(f"{path}: a folder; name the files in it")
        self.digest = hashlib.sha256()
        self.records = self.rows = 0
        self.files = 0
        self._json = JsonParser(reading)
        self._skipped = False
        self._watched: Raw | None = None
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
        """Skip what an earlier run has learned, and check that it is the same data."""
        self._skipped = True
        while self.records < records:
            self._limit = min(self.piece_rows, records - self.records)
            if next(self._pieces, None) is None:
                break
        self._limit = self.piece_rows
        if self.records < records or self.digest.hexdigest() != digest:
            raise DataError(
                f"{self._named()}: not the data that the checkpoint was written for (the first {records} records "
                "differ); give the same data, or remove the checkpoint to start from the beginning"
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
            with Raw(path, self.reading.stop) as raw:
                self._watched = raw
                try:
                    yield from self._cut_one(name, raw)
                except (EOFError, OSError, pa.ArrowException) as error:
                    if isinstance(error, OSError) and error.errno is not None:
                        raise
                    if self.reading.stop.requested:  # not damaged, but not read to its end
                        return
                    raise DataError(f"{name}: damaged or cut off ({first_line(error)})") from None
                raw.check()
        if not self._skipped and not self.reading.stop.requested:
            self._json.check(self._named())

    def _cut_one(self, name: str, raw: "Raw") -> Iterator[Piece]:
        start = raw.peek(8)
        stem = name
        stream: Raw | Decompressed = raw
        if (compression := compression_of(start)) is not None:
            stream = Decompressed(raw, compression, name)
            stem = stem[: stem.rfind(".")] if "." in stem else stem
            start = stream.peek(8)
            if compression_of(start) is not None:
                raise DataError(f"{name}: compressed twice; unpack it once")
        if not start:
            self._check_empty(name)
            return
        for magic, what in _OTHERS.items():
            if start.startswith(magic):
                raise DataError(f"{name}: {what}; wanted CSV, TSV, JSON lines, Parquet or Arrow")
        kind = self.reading.format or _guess(stem, start)
        self.reading.check_kind(name, kind)
        if kind in ("parquet", "arrow"):
            yield from self._cut_binary(name, raw, kind, compressed=stream is not raw)
        else:
            yield from self._cut_text(name, decoded(stream, start, self.reading.encoding, name), kind)

    def _check_empty(self, name: str) -> None:
        """An empty file is a mistake, unless it is one of several."""
        if self.reading.stop.requested:
            return
        if len(self.paths) == 1:
            raise DataError(f"{name}: empty; wanted a header line and rows")
        self.reading.notify(f"empty {name}", f"{name}: empty; skipped")

    def _check_columns(self, name: str, present: list[str], advice: str = "") -> None:
        """Refuse a file that lacks a column, before any of its rows is learned."""
        columns = self.reading.columns
        columns.check_needed(name, present, advice)
        if self.files == 1:
            columns.check_named(name, present, advice)
            columns.check_learned(name, present)

    # Text

    def _cut_text(self, name: str, stream: ByteStream, kind: Format) -> Iterator[Piece]:
        header = self.reading.header and kind != "jsonl"
        cutter = Cutter(stream, name, self.reading, quoted=kind != "jsonl", header=header)
        head = cutter.peek()
        if head is None:
            self._check_empty(name)
            return
        if kind == "jsonl":
            parse: Callable[..., Batch] = self._json.parse
        else:
            parser = CsvParser(self.reading, name, head, kind)
            self._check_columns(name, parser.names, advice_about_header(parser.names) if header else "")
            parse, cutter.delimiter = parser.parse, parser.delimiter.encode()
            if header:
                cutter.next(1)
                self.digest.update(head)
            cutter.recut()
        rows = 0
        while (piece := cutter.next(self._limit)) is not None:
            records, content = piece
            self.digest.update(content)
            before, self.records = self.records, self.records + records
            yield Piece(name, records, rows, before, content, parse)
            rows += records

    # Parquet and Arrow

    def _cut_binary(self, name: str, raw: "Raw", kind: Format, compressed: bool) -> Iterator[Piece]:
        if compressed:
            raise DataError(f"{name}: {kind} inside another compression; unpack it first")
        raw.whole = True
        if raw.seekable():
            self.digest.update(raw.fingerprint())

        def check(present: list[str]) -> None:
            self._check_columns(name, present)

        if kind == "parquet":
            if not raw.seekable():
                raise DataError(f"{name}: Parquet cannot be read from a pipe; give the file, or pipe Arrow or CSV")
            batches = binary.parquet_batches(name, raw, self.piece_rows, self.reading.wanted, check)
        else:
            batches = binary.arrow_batches(name, raw, self.reading.wanted, check)
        rows = 0
        for batch in batches:
            for part in binary.pieces(name, batch, lambda: self._limit, rows):
                before, self.records = self.records, self.records + len(part)
                yield Piece(name, len(part), rows, before, part, self._parse_binary)
                rows += len(part)

    def _parse_binary(self, piece: Piece) -> Batch:
        batch: pa.RecordBatch = piece.content
        check_unique(piece.name, batch.schema.names)
        columns = binary.columns_of(batch, self.reading.wanted)
        return Batch(piece.before + np.arange(1, len(batch) + 1), columns)


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


def columns_of(path: str, reading: Reading) -> list[str]:
    """The columns of the first rows of a file."""
    first = next(iter(Source([path], reading, 1)), None)
    return [] if first is None else list(first.columns)
