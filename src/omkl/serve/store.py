"""The log of what a model has accepted: an SQLite file, in which a record is there whole or not at all."""

import os
import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from omkl.errors import naming
from omkl.serve.limits import Limits, Refused
from omkl.stream.raw import DataError

SCHEMA = """
CREATE TABLE IF NOT EXISTS records (seq INTEGER PRIMARY KEY, crc INTEGER NOT NULL, body BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS ids (seq INTEGER, place INTEGER, id TEXT NOT NULL, digest INTEGER NOT NULL, answer BLOB,
                                PRIMARY KEY (seq, place)) WITHOUT ROWID;
"""
WAL_BYTES = 16 << 20


class RequestId(NamedTuple):
    """The id that a client has given a request, and a digest of what it asked for."""

    id: str
    digest: int


class Known(NamedTuple):
    """Where a request with an id is in the log."""

    seq: int
    place: int  # among the requests of the record
    digest: int
    size: int  # bytes of its answer


class Store:
    """Records in the order in which they were accepted, and the ids of requests with their answers.

    One thread writes. `append` returns when the record is on the disk.
    """

    def __init__(self, path: str, limits: Limits) -> None:
        self.path, self.limits = path, limits
        try:
            self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=0.5)
            # one process alone has the file; every commit is flushed to the disk
            for pragma in ("locking_mode=EXCLUSIVE", "journal_mode=WAL", "synchronous=FULL", "fullfsync=ON",
                           f"journal_size_limit={WAL_BYTES}"):  # fmt: skip
                self._db.execute(f"PRAGMA {pragma}")
            self._db.executescript(SCHEMA)
            self._db.execute("BEGIN EXCLUSIVE")
            self._db.execute("COMMIT")
            self._load()
        except sqlite3.Error as error:
            if error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise DataError(f"{path}: another server is using it; stop that one, or give another --state") from None
            raise DataError(f"{path}: the log cannot be used ({error})") from error

    def _load(self) -> None:
        rows = self._db.execute(
            "SELECT id, seq, place, digest, coalesce(length(answer), 0) FROM ids ORDER BY seq, place"
        )
        self.known = {name: Known(*rest) for name, *rest in rows}
        self._answer_bytes = sum(known.size for known in self.known.values())
        self._unwritten: dict[tuple[int, int], bytes] = {}  # answers that the next transaction writes
        self._forgotten: list[tuple[int, int]] = []  # ids that it removes
        (self.bytes,) = self._db.execute("SELECT coalesce(sum(length(body)), 0) FROM records").fetchone()

    def append(self, seq: int, body: bytes, ids: Sequence[tuple[int, RequestId]]) -> None:
        """Add a record and the ids of its requests, and return when they are on the disk."""
        if self.bytes + len(body) > self.limits.log:
            raise Refused(507, f"the log has {self.limits.log >> 20} MiB because checkpoints cannot be written: "
                          "learning goes on when they can")  # fmt: skip
        with self._transaction():
            self._db.execute("INSERT INTO records VALUES (?, ?, ?)", (seq, zlib.crc32(body), body))
            if ids:
                self._db.executemany("INSERT INTO ids VALUES (?, ?, ?, ?, NULL)",
                                     [(seq, place, *given) for place, given in ids])  # fmt: skip
            self._write_answers()
        self.bytes += len(body)
        self._written()
        for place, given in ids:
            self.known[given.id] = Known(seq, place, given.digest, 0)
        self._forget()

    def remove(self, seq: int) -> None:
        """Take back the last record, of which nothing was acknowledged."""
        with self._transaction():
            self._db.execute("DELETE FROM records WHERE seq >= ?", (seq,))
            self._db.execute("DELETE FROM ids WHERE seq >= ?", (seq,))
        self._load()

    def records(self, after: int) -> Iterator[tuple[int, bytes]]:
        """The records after this one, in order."""
        try:
            for seq, crc, body in self._db.execute("SELECT * FROM records WHERE seq > ? ORDER BY seq", (after,)):
                if zlib.crc32(body) != crc:
                    raise DataError(f"{self.path}: record {seq} is damaged; restore the folder from a copy")
                yield seq, body
        except sqlite3.Error as error:
            raise DataError(f"{self.path}: the log is damaged ({error}); restore the folder from a copy") from error

    def last(self) -> int:
        """The number of the last record; 0 where there is none."""
        (seq,) = self._db.execute("SELECT coalesce(max(seq), 0) FROM records").fetchone()
        return int(seq)

    def truncate(self, seq: int) -> None:
        """Remove the records up to this one, which a checkpoint contains."""
        with self._transaction():
            self._db.execute("DELETE FROM records WHERE seq <= ?", (seq,))
            self._write_answers()
        self._written()
        (self.bytes,) = self._db.execute("SELECT coalesce(sum(length(body)), 0) FROM records").fetchone()

    # Ids and their answers

    def keep_answer(self, seq: int, given: RequestId, answer: bytes) -> None:
        """Remember the answer to a request of this record, unless its id was forgotten; the next transaction writes it.

        A crash before that loses nothing: the record is replayed, and has the same answer. So no checkpoint may contain
        the record before its answers are written.
        """
        known = self.known.get(given.id)
        if known is None or known.seq != seq:  # forgotten while the log still has its record
            return
        self._unwritten[known.seq, known.place] = answer
        self.known[given.id] = known._replace(size=len(answer))
        self._answer_bytes += len(answer) - known.size

    def answer(self, given: str) -> bytes | None:
        """The answer to an earlier request; None while it is being learned."""
        known = self.known[given]
        waiting = self._unwritten.get((known.seq, known.place))
        if waiting is not None:
            return waiting
        found = self._db.execute(
            "SELECT answer FROM ids WHERE seq = ? AND place = ?", (known.seq, known.place)
        ).fetchone()
        return None if found is None else found[0]

    def write_answers(self) -> None:
        """Write what `keep_answer` has left to the next transaction."""
        if self._unwritten or self._forgotten:
            with self._transaction():
                self._write_answers()
            self._written()

    def _write_answers(self) -> None:
        if self._forgotten:
            self._db.executemany("DELETE FROM ids WHERE seq = ? AND place = ?", self._forgotten)
        if self._unwritten:
            self._db.executemany("UPDATE ids SET answer = ? WHERE seq = ? AND place = ?",
                                 [(answer, *key) for key, answer in self._unwritten.items()])  # fmt: skip

    def _written(self) -> None:
        self._unwritten.clear()
        self._forgotten.clear()

    def _forget(self) -> None:
        """Forget the oldest ids where there are too many, or their answers too large."""
        while len(self.known) > self.limits.ids or self._answer_bytes > self.limits.answers:
            known = self.known.pop(next(iter(self.known)))
            self._answer_bytes -= known.size
            self._unwritten.pop((known.seq, known.place), None)
            self._forgotten.append((known.seq, known.place))

    # The file

    def _transaction(self) -> "Transaction":
        return Transaction(self._db, self.path)

    @property
    def size(self) -> int:
        """Bytes on the disk."""
        return sum(os.path.getsize(path) for path in (self.path, f"{self.path}-wal") if os.path.exists(path))

    def close(self) -> None:
        """Write what is left, and let go of the file."""
        try:
            self.write_answers()
        except Refused:  # nothing is lost: see `keep_answer`
            pass
        finally:
            self._db.close()


class Transaction:
    """Changes that are on the disk in the end, all or none."""

    def __init__(self, db: sqlite3.Connection, path: str) -> None:
        self._db, self._path = db, path

    def __enter__(self) -> None:
        self._run("BEGIN IMMEDIATE")

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if error is None:
            self._run("COMMIT")
            return
        self._undo()
        if isinstance(error, sqlite3.Error):
            raise self._refused(error) from error

    def _run(self, statement: str) -> None:
        try:
            self._db.execute(statement)
        except sqlite3.Error as error:
            self._undo()
            raise self._refused(error) from error

    def _undo(self) -> None:
        if self._db.in_transaction:
            with naming(self._path):
                self._db.execute("ROLLBACK")

    def _refused(self, error: sqlite3.Error) -> Refused:
        full = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_FULL
        why = "the disk is full" if full else f"the log cannot be written ({error})"
        return Refused(507 if full else 503, f"{why}: nothing was learned from this request; predictions go on")
