"""Runs work in parallel through joblib and records the results in a journal, so that finished work is not repeated."""

import json
import os
import threading
import warnings
from collections.abc import Callable, Generator, Iterable, Mapping
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple, Self

import joblib

Record = dict[str, Any]
STOP = threading.Event()  # checked by units in threads; units in processes end with their process
IDLE = threading.Condition()
STOP_TIMEOUT = 10.0  # seconds that units get to stop
_busy: set[int] = set()  # threads of this process that are running a unit


class Stopped(BaseException):
    """Ctrl-C was pressed. A BaseException like KeyboardInterrupt, so that no `except Exception` swallows it."""


def raise_if_stopped() -> None:
    if STOP.is_set():
        raise Stopped


class Unit(NamedTuple):
    """A call that returns one record for each key, in the order of the keys."""

    keys: tuple[str, ...]
    work: Callable[..., list[Record]]
    arguments: Mapping[str, Any]

    def __call__(self) -> tuple[tuple[str, ...], list[Record]]:
        with IDLE:
            _busy.add(threading.get_ident())
        try:
            raise_if_stopped()
            return self.keys, self.work(**self.arguments)
        except Stopped:
            return self.keys, []  # an exception would keep the learners in its frames alive
        finally:
            with IDLE:
                _busy.discard(threading.get_ident())
                IDLE.notify_all()


def run_parallel(
    units: Iterable[Unit], jobs: int, prefer: Literal["threads", "processes"] = "threads"
) -> Generator[tuple[tuple[str, ...], list[Record]]]:
    """Results of the units in the order in which they finish. Close the generator if not all are consumed.

    A surrounding `joblib.parallel_config` chooses the backend. The engine releases the GIL, so threads
    suffice; work that is mostly Python should prefer processes.
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
        with IDLE:  # a thread that outlives the interpreter would leak its learners
            IDLE.wait_for(lambda: not _busy, timeout=STOP_TIMEOUT)
        raise
    finally:
        with warnings.catch_warnings():  # joblib's, about work that was cancelled
            warnings.simplefilter("ignore")
            results.close()


class Journal:
    """Records by key in a JSON Lines file, each written as soon as it is available.

    A process that is killed leaves at most one incomplete line, the last; the next run truncates it.
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
    """Allow one process at a time; the system releases the lock when the process ends for whatever reason."""
    try:
        import fcntl
    except ImportError:  # not available on Windows, where concurrent processes are not detected
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise OSError(f"another omkl-lab is writing to {folder}; wait for it or choose another --out") from None
