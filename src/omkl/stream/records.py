"""Cuts a stream of text into whole records, the same way however the bytes arrive."""

import re

import numpy as np

from omkl.arrays import Index
from omkl.stream.parsers import Reading
from omkl.stream.raw import READ, ByteStream, DataError

MAX_PIECE = 8 << 20  # bytes; a piece ends here even if it has fewer rows than wanted
MAX_RECORD = 16 << 20


class Cutter:
    """Takes whole records off the front of a stream of bytes; blank lines are not records.

    A quote at the beginning of a field opens it; up to the closing quote everything is content, line ends too.
    """

    def __init__(self, stream: ByteStream, name: str, reading: Reading, *, quoted: bool, header: bool) -> None:
        self._stream, self._name, self._reading, self._quoted = stream, name, reading, quoted
        self._buffer = b""
        self._begins: Index = np.empty(0, dtype=np.int64)  # of records in the buffer
        self._ends = self._begins
        self._at = 0  # of those, the first that was not handed out
        self._cut = 0  # the buffer is cut up to here
        self._awaited: bytes | None = None  # bytes without which no record can end
        self._over = False
        self._count = -1 if header else 0  # rows handed out
        self.delimiter = b","

    def peek(self) -> bytes | None:
        """The first record, which is not taken."""
        while not len(self._ends) and not self._over:
            self._read()
        return self._buffer[self._begins[0] : self._ends[0]] if len(self._ends) else None

    def next(self, records: int) -> tuple[int, bytes] | None:
        """At most so many records and their bytes; None at the end."""
        while len(self._ends) - self._at < records and not self._over:
            if self._at < len(self._ends) and self._ends[-1] - self._begins[self._at] >= MAX_PIECE:
                break
            self._read()
        ends = self._ends[self._at : self._at + records]
        if not len(ends):
            return None
        begin = self._begins[self._at]
        ends = ends[: max(int(np.searchsorted(ends, begin + MAX_PIECE, side="right")), 1)]
        begins = self._begins[self._at : self._at + len(ends)]
        self._at += len(ends)
        self._count += len(ends)
        if (begins[1:] == ends[:-1]).all():
            return len(ends), self._buffer[begin : ends[-1]]
        return len(ends), b"".join(self._buffer[b:e] for b, e in zip(begins, ends, strict=True))

    def recut(self) -> None:
        """Cut again what was not handed out, once the delimiter is known."""
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
            if not begun or self._reading.stop.requested:  # the pipe has not ended, and half a record is not a record
                return
            if not self._buffer.endswith(b"\n"):
                self._buffer += b"\n"  # the last line may lack it
        elif self._awaited is not None and self._awaited not in more and begun <= MAX_RECORD:
            return
        self._scan()

    def _scan(self) -> None:
        """Cut what has come."""
        while True:
            ends, opened = self._find()
            begins = np.concatenate(([self._cut], ends))
            lengths = np.diff(np.concatenate((begins, [len(self._buffer)])))
            long = int(np.argmax(lengths > MAX_RECORD)) if lengths.max() > MAX_RECORD else None
            if long is None and (opened is None or not self._over):
                break
            k = len(ends) if long is None else long
            row = self._count + len(self._ends) - self._at + k + 1
            where = f"row {row} of {self._name}" if row > 0 else f"the header of {self._name}"
            quote = opened if long is None else self._longest_quoted(int(begins[k]))
            if quote is None:
                raise DataError(f"{where}: longer than {MAX_RECORD >> 20} MiB; is this a table, one row per line?")
            self._reading.notify("quote", f"{where}: a quote is opened and not closed; it is ignored")
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
        # quotes open and close in turn, unless one stands where it can do neither
        before, after = marks[quotes[0::2] - 1], marks[np.minimum(quotes[1::2] + 1, len(marks) - 1)]
        opens = (before == 10) | (before == 34) | (before == self.delimiter[0]) | (quotes[0::2] == 0)
        closes = (after == 10) | (after == 13) | (after == 34) | (after == self.delimiter[0])
        if opens.all() and closes.all():
            outside = np.searchsorted(quotes, lines) % 2 == 0
            last = len(quotes) - 1
            while last > 0 and quotes[last - 1] == quotes[last] - 1:
                last -= 2  # a pair inside a field stands for one quote
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
        """Where the longest quoted field of a record that is too long begins."""
        some = self._fields().finditer(self._buffer, begin, begin + MAX_RECORD)
        found = [m for m in some if b"\n" in m.group()[1:]]
        return max(found, key=lambda m: m.end() - m.start()).start() if found else None
