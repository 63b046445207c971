"""What a fleet keeps for every key, within a limit of memory: what was used last, and the rest on disk.

On disk means in a temporary database of SQLite, which is part of Python, bounds its own memory and finds room for
values whose sizes change. It has no name, so that the system removes it when the process ends, whatever way it does;
the environment variable TMPDIR says where it is. A fleet is stored for good by `omkl.save`.
"""

import os
import sqlite3
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from omkl.arrays import Vector
from omkl.fleet.storage import FirstRows

PAGE_BYTES, CACHE_KILOBYTES = 65536, 4096  # of the database; a model takes a few pages


class OnDisk(NamedTuple):
    """In place of a packed model that was written to disk."""

    nbytes: int


def size_of(value: FirstRows | Vector | OnDisk) -> int:
    return int(value.X.nbytes + value.y.nbytes) if isinstance(value, FirstRows) else value.nbytes


class Shelf:
    """Rows or packed models by slot. Without a limit all of them are in memory."""

    def __init__(self, limit: int | None) -> None:
        self.limit = limit
        self._values: list[FirstRows | Vector | OnDisk] = []
        self._used: OrderedDict[int, None] = OrderedDict()  # slots of packed models in memory, the last used last
        self._in_memory = self._all = 0  # bytes
        self._disk: Disk | None = None

    def __len__(self) -> int:
        return len(self._values)

    @property
    def nbytes(self) -> int:
        """Of all values."""
        return self._all

    @property
    def in_memory(self) -> int:
        """Bytes of the values that are not on disk."""
        return self._in_memory

    def size(self, slot: int) -> int:
        return size_of(self._values[slot])

    def is_on_disk(self, slot: int) -> bool:
        return isinstance(self._values[slot], OnDisk)

    def get(self, slot: int) -> FirstRows | Vector:
        """The value; what is read from disk stays there."""
        value = self._values[slot]
        return self._open_disk().read(slot) if isinstance(value, OnDisk) else value

    def put(self, slot: int, value: FirstRows | Vector) -> None:
        """In place of what there was, or behind all others; it counts as used last."""
        if slot == len(self._values):
            self._values.append(value)
        else:
            self._count(slot, -1)
            self._values[slot] = value
        self._count(slot, 1)

    def load(self, slots: Iterable[int]) -> None:
        """Have all of these in memory, as used last."""
        for slot in slots:
            if isinstance(self._values[slot], OnDisk):
                self.put(slot, self.get(slot))
            elif slot in self._used:
                self._used.move_to_end(slot)

    def trim(self, room: int = 0) -> None:
        """Write to disk what has not been used for longest, until so many bytes more are within the limit."""
        if self.limit is None:
            return
        written: list[tuple[int, Vector]] = []
        left = self._in_memory
        for slot in self._used:
            if left + room <= self.limit:
                break
            value = self._values[slot]
            assert isinstance(value, np.ndarray)
            written.append((slot, value))
            left -= value.nbytes
        if written:
            self._open_disk().write(written)
        for slot, value in written:
            self._count(slot, -1)
            self._values[slot] = OnDisk(value.nbytes)
            self._count(slot, 1)

    def move(self, source: int, target: int) -> None:
        """The value of the last slot into another one."""
        self.put(target, self.get(source))

    def free(self, start: int) -> None:
        """All slots from this one on."""
        for slot in range(start, len(self._values)):
            self._count(slot, -1)
        del self._values[start:]

    def _count(self, slot: int, sign: int) -> None:
        value = self._values[slot]
        nbytes = sign * size_of(value)
        self._all += nbytes
        if isinstance(value, OnDisk):
            return
        self._in_memory += nbytes
        if sign < 0:
            self._used.pop(slot, None)
        elif not isinstance(value, FirstRows):
            self._used[slot] = None

    def _open_disk(self) -> "Disk":
        if self._disk is None:
            self._disk = Disk()
        return self._disk


class Disk:
    """Packed models in a temporary database."""

    def __init__(self) -> None:
        self._process = os.getpid()
        self._database = sqlite3.connect("", check_same_thread=False, isolation_level=None)  # whose caller has a lock
        for setting in (f"page_size={PAGE_BYTES}", f"cache_size=-{CACHE_KILOBYTES}", "journal_mode=OFF"):
            self._database.execute(f"PRAGMA {setting}")
        self._database.execute("CREATE TABLE models (slot INTEGER PRIMARY KEY, packed BLOB NOT NULL)")

    def write(self, models: Sequence[tuple[int, Vector]]) -> None:
        self._require_own()
        rows: Iterator[tuple[int, memoryview]] = ((slot, packed.data) for slot, packed in models)
        self._database.execute("BEGIN")
        try:
            self._database.executemany("INSERT OR REPLACE INTO models VALUES (?, ?)", rows)
        finally:
            self._database.execute("COMMIT")

    def read(self, slot: int) -> Vector:
        self._require_own()
        (packed,) = self._database.execute("SELECT packed FROM models WHERE slot = ?", (slot,)).fetchone()
        return np.frombuffer(packed, dtype=np.float64).copy()

    def _require_own(self) -> None:
        if os.getpid() != self._process:
            raise RuntimeError(
                "models of this fleet are in a temporary file of the process that it was forked from; save the fleet "
                "before the fork, and load it in the new process"
            )
