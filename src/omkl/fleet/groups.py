"""Rows of a batch grouped by key, and the threads that work on the groups."""

import _signal  # type: ignore[import-not-found]  # `signal` converts handlers to enumerations, for 20 microseconds a call
import contextlib
import os
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from queue import SimpleQueue
from types import FrameType
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

    def some(self, which: Index) -> "Groups":
        """These of the groups, with their rows alone.

        >>> Groups.by(np.array([7, 3, 7, 5])).some(np.array([2, 0]))
        Groups(slots=array([7, 3]), starts=array([0, 2, 3]), order=array([0, 2, 1]))
        """
        first, lengths = self.starts[which], np.diff(self.starts)[which]
        starts = np.concatenate(([0], np.cumsum(lengths)))
        rows = np.repeat(first - starts[:-1], lengths) + np.arange(starts[-1])
        return Groups(self.slots[which], starts, self.order[rows])

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
        self._process = 0  # the pool's; a forked process has none of its threads

    def map(self, job: Callable[[Groups], T], groups: Groups) -> list[T]:
        """The job's results; if there are errors, the first is raised when no part is being worked on any more.

        A part that had too little memory is tried once more, alone: the job must either do nothing then or continue.
        """
        if self.count == 1 or len(groups.order) < FEW_ROWS:
            return [job(groups)]
        parts = groups.parts(PARTS_PER_THREAD * self.count)
        waiting, done = deque(enumerate(parts)), SimpleQueue[tuple[int, T | BaseException]]()

        def work() -> None:
            with contextlib.suppress(IndexError):  # when no part is left
                while True:
                    number, part = waiting.popleft()
                    done.put((number, outcome(job, part)))

        if not self._start(work):
            work()
        outcomes = dict(done.get() for _ in parts)
        for number, part in enumerate(parts):
            if isinstance(outcomes[number], MemoryError):
                outcomes[number] = outcome(job, part)
        for number in range(len(parts)):
            if isinstance(error := outcomes[number], BaseException):
                raise error
        return [outcomes[number] for number in range(len(parts))]  # type: ignore[misc]  # none is an error

    def _start(self, work: Callable[[], None]) -> bool:
        """Let the threads do this; False if there is none, because the system refuses more threads."""
        if self._pool is None or self._process != os.getpid():
            self._pool, self._process = ThreadPoolExecutor(self.count, thread_name_prefix="omkl-fleet"), os.getpid()
        started = 0
        with contextlib.suppress(RuntimeError):
            for _ in range(self.count):
                self._pool.submit(work)
                started += 1
        return started > 0


def outcome(job: Callable[[Groups], T], part: Groups) -> T | BaseException:
    """What the job returns or raises."""
    try:
        return job(part)
    except BaseException as error:
        return error


class DeferredInterrupt:
    """Ctrl-C takes effect at the end of the block, because what is done in it must not remain half done."""

    _handler: Callable[[int, FrameType | None], object] | None = None

    def __enter__(self) -> None:
        self._caught: list[tuple[int, FrameType | None]] = []
        if threading.get_ident() == threading.main_thread().ident:  # signals are handled there alone
            handler = _signal.getsignal(_signal.SIGINT)
            if callable(handler):
                self._handler = handler
                _signal.signal(_signal.SIGINT, lambda number, frame: self._caught.append((number, frame)))

    def __exit__(self, *error: object) -> None:
        if self._handler is not None:
            _signal.signal(_signal.SIGINT, self._handler)
            if self._caught:
                self._handler(*self._caught[0])
