"""Work spread over the cores through joblib, kept in a journal, so that what is done is done once."""

import json
import os
import threading
from collections.abc import Callable, Generator, Iterable, Mapping
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple, Self

import joblib

Record = dict[str, Any]
STOP = threading.Event()  # heard by units in threads; units in processes end with their process
IDLE = threading.Condition()
PATIENCE = 10.0  # seconds that units get to hear of STOP
_busy: set[int] = set()  # threads of this process that are at a unit


class Stopped(BaseException):
    """Ctrl-C was pressed; like KeyboardInterrupt no `except Exception` may swallow it."""


def stop_if_told() -> None:
    if STOP.is_set():
        raise Stopped


class Unit(NamedTuple):
    """A piece of work that makes one record for each of its keys, in their order."""

    keys: tuple[str, ...]
    work: Callable[..., list[Record]]
    given: Mapping[str, Any]

    def __call__(self) -> tuple[tuple[str, ...], list[Record]]:
        with IDLE:
            _busy.add(threading.get_ident())
        try:
            stop_if_told()
            return self.keys, self.work(**self.given)
        except Stopped:
            return self.keys, []  # an exception would keep the learners of its frames alive
        finally:
            with IDLE:
                _busy.discard(threading.get_ident())
                IDLE.notify_all()


def spread(
    units: Iterable[Unit], jobs: int, prefer: Literal["threads", "processes"] = "threads"
) -> Generator[tuple[tuple[str, ...], list[Record]]]:
    """Results as they come, in any order; to be closed by those who may not take them all.

    `joblib.parallel_config` decides the backend where it was called. The engine lets go of the GIL,
    so threads serve; work that is mostly Python prefers processes.
    """
    STOP.clear()
    parallel = joblib.Parallel(
        n_jobs=jobs, prefer=prefer, return_as="generator_unordered", batch_size=1, pre_dispatch="2*n_jobs"
    )
    results = parallel(joblib.delayed(unit)() for unit in units)
    try:
        yield from (result for result in results if result[1])
    except BaseException:
        STOP.set()
        with IDLE:  # a thread that outlived the interpreter would leave its learners behind
            IDLE.wait_for(lambda: not _busy, timeout=PATIENCE)
        raise
    finally:
        results.close()


class Journal:
    """Records by key in a file of lines, each written as soon as it is there.

    A process that is killed leaves at most one torn line, the last; it is cut off by the next one.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.records: dict[str, Record] = {}
        self._file: IO[bytes] | None = None

    def __enter__(self) -> Self:
        self._file = self.path.open("ab+")
        try:
            lock(self._file, self.path.parent)
        except BaseException:
            self._file.close()
            raise
        self._file.seek(0)
        whole = 0
        for line in self._file:
            try:
                entry = json.loads(line)
                key, record = entry["key"], entry["record"]
            except (ValueError, TypeError, KeyError):
                break
            if not line.endswith(b"\n"):
                break
            self.records[key] = record
            whole += len(line)
        self._file.truncate(whole)
        self._file.seek(0, os.SEEK_END)
        return self

    def add(self, keys: tuple[str, ...], records: list[Record]) -> None:
        assert self._file is not None
        lines = [json.dumps({"key": k, "record": r}, allow_nan=False) for k, r in zip(keys, records, strict=True)]
        self._file.write(("\n".join(lines) + "\n").encode())
        self._file.flush()
        self.records.update(zip(keys, records, strict=True))

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()


def lock(file: IO[bytes], folder: Path) -> None:
    """One process at a time; the system lets go of the lock when the process ends, however it ends."""
    try:
        import fcntl
    except ImportError:  # Windows has no such lock; there two at once are on their own
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise OSError(f"another omkl is writing to {folder}; wait for it or choose another --out") from None
