"""Rows of a batch grouped by key, and the threads that work on the groups."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from itertools import pairwise
from typing import NamedTuple, TypeVar

import numpy as np

from omkl.arrays import Index

T = TypeVar("T")

FEW_ROWS = 64  # a batch below this runs in one thread, because starting more would take longer
PARTS_PER_THREAD = 8  # keys differ in their numbers of rows, so that a thread that is done early takes another part


class Groups(NamedTuple):
    """Rows by key: group g belongs to the model in slot slots[g], its rows are order[starts[g] : starts[g + 1]]."""

    slots: Index
    starts: Index
    order: Index

    @classmethod
    def by(cls, slots: Index) -> "Groups":
        """Group rows by the slot of each; -1 is a slot too. Rows of a group stay in their order.

        >>> Groups.by(np.array([7, 3, 7]))
        Groups(slots=array([3, 7]), starts=array([0, 1, 3]), order=array([1, 0, 2]))
        """
        order = np.argsort(slots, kind="stable")
        ranked = slots[order]
        starts = np.flatnonzero(np.diff(ranked, prepend=-2))
        return cls(ranked[starts], np.append(starts, len(slots)), order)

    def parts(self, number: int) -> "list[Groups]":
        """At most `number` parts of whole groups, with about equally many rows."""
        wanted = np.linspace(0, len(self.order), number + 1)
        cuts = np.unique(np.searchsorted(self.starts, wanted))
        return [Groups(self.slots[a:b], self.starts[a : b + 1], self.order) for a, b in pairwise(cuts)]


class Threads:
    """Runs a job on all parts of a batch, in `count` threads."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._pool: ThreadPoolExecutor | None = None

    def map(self, job: Callable[[Groups], T], groups: Groups) -> list[T]:
        if self.count == 1 or len(groups.order) < FEW_ROWS:
            return [job(groups)]
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.count, thread_name_prefix="omkl-fleet")
        parts = [self._pool.submit(job, part) for part in groups.parts(PARTS_PER_THREAD * self.count)]
        try:
            return [part.result() for part in parts]
        finally:
            wait(parts)  # also after Ctrl-C: no thread may change a model after this
