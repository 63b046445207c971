"""What a fleet keeps for every key, within a limit of memory: what was used last, and the rest on disk.

On disk means in a temporary file that has no name, so that the system removes it when the process ends, whatever way it
does. The environment variable TMPDIR says where it is, else it is in /var/tmp, because /tmp is in memory on many
systems. It is never flushed: a fleet is stored for good by `omkl.save`.
"""

import os
import tempfile
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from omkl.arrays import Vector
from omkl.fleet.storage import FirstRows

BLOCK_BYTES = 1 << 16  # of the file; a model takes a few
LARGE_FILES = "/var/tmp"


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
        return self._open_disk().read(slot, value.nbytes) if isinstance(value, OnDisk) else value

    def put(self, slot: int, value: FirstRows | Vector | OnDisk) -> None:
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
        while self._used and self._in_memory + room > self.limit:
            slot = next(iter(self._used))
            value = self._values[slot]
            assert isinstance(value, np.ndarray)
            self._open_disk().write(slot, value)
            self._count(slot, -1)
            self._values[slot] = OnDisk(value.nbytes)
            self._count(slot, 1)

    def move(self, source: int, target: int) -> None:
        """The value of the last slot into another one; what is on disk stays there."""
        value = self._values[source]
        if isinstance(value, OnDisk):
            self._open_disk().move(source, target)
        self.put(target, value)

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
    """Packed models in a temporary file, each in blocks of one size, wherever there is room."""

    def __init__(self) -> None:
        self._process = os.getpid()
        folder = os.environ.get("TMPDIR") or (LARGE_FILES if os.access(LARGE_FILES, os.W_OK) else None)
        self._file = tempfile.TemporaryFile(buffering=0, dir=folder)  # noqa: SIM115  # open as long as the shelf is there
        weakref.finalize(self, self._file.close)
        if hasattr(os, "posix_fadvise"):  # or the system would read several times as much as a model takes
            os.posix_fadvise(self._file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
        self._places: dict[int, list[int]] = {}  # blocks of each slot
        self._free: list[int] = []
        self._blocks = 0  # of the file

    def write(self, slot: int, packed: Vector) -> None:
        """In place of what the slot had."""
        self._require_own()
        places, wanted = self._places.setdefault(slot, []), -(-packed.nbytes // BLOCK_BYTES)
        self._free += places[wanted:]
        del places[wanted:]
        while len(places) < wanted:
            if not self._free:
                self._free.append(self._blocks)
                self._blocks += 1
            places.append(self._free.pop())
        self._transfer(places, packed, self._file.write)

    def read(self, slot: int, nbytes: int) -> Vector:
        self._require_own()
        packed = np.empty(nbytes // 8)
        self._transfer(self._places[slot], packed, self._file.readinto)
        return packed

    def move(self, source: int, target: int) -> None:
        """What one slot has becomes that of another."""
        self._free += self._places.pop(target, [])
        self._places[target] = self._places.pop(source)

    def _transfer(self, places: Sequence[int], packed: Vector, move: Callable[[memoryview], int | None]) -> None:
        data = packed.data.cast("B")
        for place, start in zip(places, range(0, len(data), BLOCK_BYTES), strict=True):
            self._file.seek(place * BLOCK_BYTES)
            part = data[start : start + BLOCK_BYTES]
            while part:
                moved = move(part)
                if not moved:
                    raise OSError("the temporary file of this fleet has lost what was written to it")
                part = part[moved:]

    def _require_own(self) -> None:
        if os.getpid() != self._process:
            raise RuntimeError(
                "models of this fleet are in a temporary file of the process that it was forked from; save the fleet "
                "before the fork, and load it in the new process"
            )
