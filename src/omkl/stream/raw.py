"""Bytes of a file or standard input: decompressed, as UTF-8, and checked for changes while they are read."""

import hashlib
import io
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any, BinaryIO, Protocol

import pyarrow as pa

READ = 1 << 20
EDGE = 1 << 20  # bytes at either end of a binary file that identify it
_COMPRESSED = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bz2", b"\x04\x22\x4d\x18": "lz4"}


class DataError(ValueError):
    """Data that cannot be used, with the place named."""


class Stop:
    """Ctrl-C or SIGTERM: stop after the current piece; a second one, or one while waiting for a pipe, stops at once."""

    def __init__(self) -> None:
        self.requested = self.waiting = False

    def __enter__(self) -> "Stop":
        pa.enable_signal_handlers(False)  # pyarrow would catch them while it parses, and break off in the middle
        signals = (signal.SIGINT, signal.SIGTERM)
        self._before = {s: signal.signal(s, self._handle) for s in signals}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _handle(self, number: int, frame: object) -> None:
        again, self.requested = self.requested, True
        if again or self.waiting:
            raise KeyboardInterrupt

    def read(self, descriptor: int, n: int) -> bytes:
        """The bytes available, waiting if there are none; nothing once a stop was requested."""
        try:
            self.waiting = True
            return b"" if self.requested else os.read(descriptor, n)
        except KeyboardInterrupt:
            return b""
        finally:
            self.waiting = False


class Raw(io.RawIOBase):
    """A file or standard input that knows how far it has been read and whether it was changed meanwhile."""

    def __init__(self, path: str, stop: Stop) -> None:
        self._stop = stop
        self._name = "standard input" if path == "-" else path
        self._path = path
        if path == "-" and sys.stdin is None:
            raise DataError("standard input is closed; pipe data into it, or name a file")
        self._file: BinaryIO = sys.stdin.buffer if path == "-" else open(path, "rb")  # noqa: SIM115  closed in close
        self.whole = False  # whether a read waits until it has all bytes requested
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
        n = min(n, 64 * READ)  # a damaged file may lead to a request for more than there can be
        if self._seekable:
            return self._file.read(n)
        return self._stop.read(self._file.fileno(), n)  # the bytes available; a pipe must not wait for a full buffer

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
        """A hash of the size and both ends; the end of Parquet and Arrow files holds a summary of the rest."""
        here = self.at
        size = self.seek(0, 2)
        digest = hashlib.sha256(str(size).encode())
        for start in (0, max(size - EDGE, 0)):
            self.seek(start)
            digest.update(self.read(EDGE))
        self.seek(here)
        return digest.digest()

    def native(self) -> Any:
        """The file as pyarrow opens it, which must be the same.

        pyarrow's readers of Parquet and Arrow files use threads of their own. If such a thread calls Python while
        Python ends, the process is aborted, so they are not given a file object of Python.
        """
        file = pa.OSFile(os.fsencode(self._path))
        self.check()
        return file

    def followed(self, batches: Iterable[Any], n: int) -> Iterator[Any]:
        """About `n` batches read by pyarrow; `at` moves on with them."""
        size = self.seek(0, 2)
        for k, batch in enumerate(batches, 1):
            self.at = size * min(k, n) // n
            yield batch

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


class ByteStream(Protocol):
    """Something that bytes are read from; none at its end."""

    def read(self, n: int) -> bytes: ...


class Decompressed:
    """The content of a gzip, zstd, bz2 or lz4 stream."""

    def __init__(self, raw: Raw, compression: str, name: str) -> None:
        import gzip

        # gzip files are often several members one after the other, which only Python's own reader follows
        self._inner: gzip.GzipFile | pa.CompressedInputStream = (
            gzip.GzipFile(fileobj=raw) if compression == "gzip" else pa.CompressedInputStream(raw, compression)
        )
        # of a pipe, the bytes available; of a file, all that were requested
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
                f"{self._name}: the {self._compression} data is damaged or cut off ({first_line(error)}); "
                "copy or download it again"
            ) from None
        return out

    def read(self, n: int) -> bytes:
        if self._ahead:
            out, self._ahead = self._ahead[:n], self._ahead[n:]
            return out
        return self._read(n)


class Transcoded:
    """Text of another encoding as UTF-8."""

    def __init__(self, stream: ByteStream, encoding: str, name: str) -> None:
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


def decoded(stream: ByteStream, start: bytes, encoding: str | None, name: str) -> ByteStream:
    if encoding is None and start[:2] in (b"\xff\xfe", b"\xfe\xff"):
        encoding = "utf-32" if start[2:4] == b"\x00\x00" else "utf-16"
    if encoding is None or encoding.lower().replace("_", "-") in ("utf-8", "utf8"):
        if b"\x00" in start:
            hint = "; if it is UTF-16 text, pass --encoding utf-16-le or utf-16-be" if start.count(0) >= 3 else ""
            raise DataError(f"{name}: binary, not text; wanted CSV, TSV, JSON lines, Parquet or Arrow{hint}")
        if start.startswith(b"\xef\xbb\xbf"):
            stream.read(3)
        return stream
    return Transcoded(stream, encoding, name)


def compression_of(start: bytes) -> str | None:
    return next((name for magic, name in _COMPRESSED.items() if start.startswith(magic)), None)


def first_line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]
