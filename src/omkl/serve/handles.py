"""How the service reaches a model: in its own process, or in worker processes, each with a part of the keys."""

import asyncio
import contextlib
import gc
import logging
import multiprocessing
import multiprocessing.connection
import os
import signal
import threading
import time
import zlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from logging.handlers import QueueHandler
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
import pyarrow as pa

from omkl.log import logger
from omkl.serve import views
from omkl.serve.bodies import Row
from omkl.serve.commands import Command
from omkl.serve.limits import Limits, Refused
from omkl.serve.model import Answer, ServedModel
from omkl.serve.views import Importance, View, Want
from omkl.serve.writer import CLOSING, Writer
from omkl.stream.targets import labels

T = TypeVar("T")
PREDICTORS = 2  # threads that predict
YOUNG = 20_000  # objects that are new when the garbage collector looks at them
WAITS = (0.0, 1.0, 2.0, 4.0, 8.0)  # seconds before each attempt to restart a worker, after which it is given up
STEADY = 60.0  # seconds after which a worker that runs has all its attempts again
RESTARTING = "a worker process has stopped and is being restarted; send the request again, with the same id"
GONE = "a worker process has stopped again and again; see the log, and restart the service"
LOGGED = 0  # in place of a request's number: a record for the log
WORKER = "worker"  # and its number: the folder of a worker


class Handle(Protocol):
    """A model, wherever it is."""

    @property
    def trouble(self) -> str | None: ...  # why it cannot be used at present

    async def write(self, command: Command) -> Answer: ...

    async def predict(self, rows: list[Row], table: pa.Table | None, want: Want) -> list[Row]: ...

    async def view(self, importance: bool) -> View: ...

    async def call(self, name: str, *args: Any) -> list[Any]: ...

    def close(self) -> None: ...


class LocalModel:
    """A model in this process: a thread learns, a few predict."""

    trouble = None

    def __init__(self, folder: Path, limits: Limits, every: int, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.served = ServedModel(folder, limits)
        self.writer = Writer(self.served, self._deliver, every)
        self.importance = Importance(self.served)
        self._pool = ThreadPoolExecutor(PREDICTORS, thread_name_prefix="omkl-predict")

    async def write(self, command: Command) -> Answer:
        command.future = self._loop.create_future()
        self.writer.submit(command)
        answer: Answer = await command.future
        return answer

    def _deliver(self, answers: list[tuple[Command, Answer]]) -> None:
        self._loop.call_soon_threadsafe(resolve, [(command.future, answer) for command, answer in answers])

    async def _run(self, action: Callable[..., T], *args: Any) -> T:
        try:
            future = self._loop.run_in_executor(self._pool, action, *args)
        except RuntimeError:  # the pool takes nothing more
            raise Refused(503, CLOSING) from None
        return await future

    async def predict(self, rows: list[Row], table: pa.Table | None, want: Want) -> list[Row]:
        return await self._run(views.predict, self.served, rows, table, want)

    async def view(self, importance: bool) -> View:
        return await self._run(self._view, importance)

    def _view(self, importance: bool) -> View:
        return views.view(
            self.served, self.writer.waiting, self.writer.rollbacks, self.importance if importance else None
        )

    async def call(self, name: str, *args: Any) -> list[Any]:
        """The result of a method of the model, one for each worker."""
        return [await self._run(getattr(self.served, name), *args)]

    def close(self) -> None:
        self.writer.close()
        self._pool.shutdown()


class Worker:
    """A process with a part of the keys, and the futures of what it was asked for.

    One that stops is started again. What it has acknowledged is in its log, from which it recovers; who waits for an
    answer is told to ask again.
    """

    def __init__(self, folder: Path, limits: Limits, every: int, loop: asyncio.AbstractEventLoop) -> None:
        self._loop, self._arguments = loop, (folder, limits, every)
        self._futures: dict[int, asyncio.Future[Any]] = {}
        self._count = 0
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self.trouble: str | None = None
        self.restarts = 0
        self._start()
        self._thread = threading.Thread(target=self._run, name="omkl-worker", daemon=True)
        self._thread.start()

    def _start(self) -> None:
        """Start the process, and wait until it has recovered."""
        context = multiprocessing.get_context("spawn")
        self._pipe, other = context.Pipe()
        self.process = context.Process(target=work, args=(other, *self._arguments, logger.level), daemon=True)
        try:
            self.process.start()
        finally:
            other.close()
        self._started = time.monotonic()
        try:
            while isinstance(ready := self._pipe.recv(), list):
                self._deliver(ready)
        except (EOFError, OSError):
            ready = Refused(500, f"{self._arguments[0]}: the worker did not start")
        if isinstance(ready, Exception):
            self._stop()
            raise ready

    async def ask(self, what: str, *args: Any) -> Any:
        """What the worker answers."""
        future: asyncio.Future[Any] = self._loop.create_future()
        with self._lock:  # either before the worker is known to have stopped, or not at all
            if self.trouble is not None:
                raise Refused(503, self.trouble)
            self._count += 1
            self._futures[self._count] = future
            with contextlib.suppress(OSError):  # the other thread finds out, too
                self._pipe.send((self._count, what, args))
        return await future

    def _run(self) -> None:
        """Hand over answers, and start the process again when it stops."""
        attempts = 0
        while True:
            with contextlib.suppress(Exception):  # the worker has stopped, or has sent what is no answer
                while True:
                    self._deliver(self._pipe.recv())
            self._refuse(CLOSING if self._closing.is_set() else RESTARTING)
            self._stop()
            if time.monotonic() - self._started > STEADY:
                attempts = 0
            runs = False
            while not runs:
                if self._closing.is_set():
                    return
                if attempts == len(WAITS):
                    self._refuse(GONE)
                    logger.error("%s: the worker has stopped again and again; it is not started any more", self._name)
                    return
                runs = self._restart(WAITS[attempts])
                attempts += 1

    def _deliver(self, sent: list[tuple[int, Any]]) -> None:
        """Answers, by the number of their requests, and what the worker logs."""
        for number, record in sent:
            if number == LOGGED:
                logger.handle(record)
        found = [(self._futures.pop(number), answer) for number, answer in sent if number != LOGGED]
        if found:
            self._loop.call_soon_threadsafe(resolve, found)

    def _restart(self, wait: float) -> bool:
        """Start the process again after so many seconds; whether it runs."""
        logger.error("%s: the worker has stopped (exit code %s)", self._name, self.process.exitcode)
        if self._closing.wait(wait):
            return False
        try:
            self._start()
        except Exception as error:
            logger.error("%s: %s", self._name, error)
            return False
        with self._lock:
            self.trouble, self.restarts = None, self.restarts + 1
            if self._closing.is_set():  # meanwhile
                with contextlib.suppress(OSError):
                    self._pipe.send(None)
        logger.warning("%s: the worker runs again", self._name)
        return True

    @property
    def _name(self) -> str:
        folder = self._arguments[0]
        return f"{folder.parent.name}/{folder.name}"

    def _refuse(self, why: str) -> None:
        """Refuse what was asked for and what will be."""
        with self._lock:
            self.trouble = why
            left = [(future, Refused(503, why)) for future in self._futures.values()]
            self._futures.clear()
        if left and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(resolve, left)

    def _stop(self) -> None:
        """Let go of a process that has stopped, or is of no use any more."""
        if not self._closing.is_set():
            self.process.kill()
        self._pipe.close()
        self.process.join()

    def close(self) -> None:
        """Learn what waits, write a checkpoint, and stop."""
        with self._lock:
            self._closing.set()
            with contextlib.suppress(OSError):
                self._pipe.send(None)
        self._thread.join()


class ShardedModel:
    """A model per key in several processes; a hash of the key says in which."""

    def __init__(self, folder: Path, limits: Limits, every: int, loop: asyncio.AbstractEventLoop) -> None:
        parts = sorted(folder.glob(f"{WORKER}-*"), key=lambda part: int(part.name.rpartition("-")[2]))
        self.by = ""
        share = replace(limits, keys=-(-limits.keys // len(parts)), log=limits.log // len(parts))
        self.workers: list[Worker] = []
        try:
            for part in parts:
                self.workers.append(Worker(part, share, every, loop))
        except BaseException:
            self.close()
            raise

    @property
    def trouble(self) -> str | None:
        return next((worker.trouble for worker in self.workers if worker.trouble is not None), None)

    async def _by(self) -> str:
        if not self.by:
            self.by = (await self.workers[0].ask("view", False))["by"]
        return self.by

    async def write(self, command: Command) -> Answer:
        if command.kind == "forget":
            answer: Answer = await self.workers[shard(command.key, len(self.workers))].ask("write", command)
            return answer
        if command.kind == "labels":
            raise Refused(409, "models per key have no rows that wait")
        parts = await self._split(command.rows, command.table)
        found = await asyncio.gather(
            *(worker.ask("write", replace(command, rows=rows, columns=None, table=table, raw=None, future=None))
              for worker, (places, rows, table) in zip(self.workers, parts, strict=True) if len(places)),
            return_exceptions=True,
        )  # fmt: skip
        if errors := [error for error in found if isinstance(error, BaseException)]:
            if len(errors) < len(found) and isinstance(errors[0], Refused):
                raise Refused(errors[0].status, f"{errors[0]}; rows of keys in other workers were learned: send the "
                              "request again with the same id") from None  # fmt: skip
            raise errors[0]
        if command.targets:
            return {"learned": sum(part["learned"] for part in found if not isinstance(part, BaseException))}
        return _joined([places for places, _, _ in parts if len(places)], found)

    async def predict(self, rows: list[Row], table: pa.Table | None, want: Want) -> list[Row]:
        parts = [(k, *part) for k, part in enumerate(await self._split(rows, table)) if len(part[0])]
        found = await asyncio.gather(
            *(self.workers[k].ask("predict", rows, table, want) for k, _, rows, table in parts)
        )
        answers: list[Row] = _joined([places for _, places, _, _ in parts], found)
        return answers

    async def view(self, importance: bool) -> View:
        found = views.merged(await asyncio.gather(*(worker.ask("view", importance) for worker in self.workers)))
        return found | {"restarts": sum(worker.restarts for worker in self.workers)}

    async def call(self, name: str, *args: Any) -> list[Any]:
        return list(await asyncio.gather(*(worker.ask("call", name, *args) for worker in self.workers)))

    async def _split(self, rows: list[Row], table: pa.Table | None) -> list[tuple[Sequence[int], list[Row], pa.Table]]:
        """For each worker the places of its rows, and the rows; what has no key goes to the first, which refuses it."""
        by = await self._by()
        n = len(self.workers)
        if table is None:
            keys = [row.get(by) for row in rows]
        else:
            keys = list(labels(table[by].combine_chunks())) if by in table.column_names else [None] * table.num_rows
        at = np.array([0 if key is None else shard(key, n) for key in text_keys(keys)])
        out: list[tuple[Sequence[int], list[Row], pa.Table]] = []
        for k in range(n):
            places = np.flatnonzero(at == k)
            if table is None:
                out.append((places.tolist(), [rows[i] for i in places], None))
            else:
                out.append((places.tolist(), [], table.take(places)))
        return out

    def close(self) -> None:
        for worker in self.workers:
            worker.close()


def text_keys(keys: list[Any]) -> list[str | None]:
    """Keys as the model knows them, each as if it had come alone; None where there is none."""
    if len(set(map(type, keys))) > 1:
        return [text for key in keys for text in text_keys([key])]
    return [None if key is None else str(text) for key, text in zip(keys, labels(pa.array(keys)), strict=True)]


def shard(key: str, workers: int) -> int:
    """The worker of a key."""
    return zlib.crc32(key.encode()) % workers


def _joined(places: list[Sequence[int]], found: Sequence[Any]) -> Any:
    """Answers of workers in the order of the rows."""
    if all(isinstance(answers, pa.Table) for answers in found):
        order = np.argsort(np.concatenate(places))
        return pa.concat_tables(found, promote_options="permissive").take(order)
    out: dict[int, Row] = {}
    for own, answers in zip(places, found, strict=True):  # of a request that was sent again, some may be tables
        rows = answers.to_pylist() if isinstance(answers, pa.Table) else answers
        out |= dict(zip(own, rows, strict=True))
    return [out[k] for k in sorted(out)]


def resolve(answers: list[tuple["asyncio.Future[Any]", Any]]) -> None:
    """Hand answers to whoever still waits."""
    for future, answer in answers:
        if future.done():  # the client has gone
            continue
        if isinstance(answer, Exception):
            future.set_exception(answer)
        else:
            future.set_result(answer)


def freeze() -> None:
    """Leave less to the garbage collector, which large requests call again and again, and for nothing."""
    gc.freeze()  # modules and models
    gc.set_threshold(YOUNG)


class ToService(QueueHandler):
    """Hands records of a worker's log over to the service, which knows where the log goes."""

    def __init__(self, send: Callable[[list[tuple[int, Any]]], None]) -> None:
        logging.Handler.__init__(self)
        self._send = send

    def enqueue(self, record: logging.LogRecord) -> None:
        with contextlib.suppress(OSError):  # the service has gone
            self._send([(LOGGED, record)])


def work(
    pipe: "multiprocessing.connection.Connection", folder: Path, limits: Limits, every: int, log_level: int
) -> None:
    """The main function of a worker process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the service stops its workers
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sending = threading.Lock()

    def send(found: list[tuple[int, Any]]) -> None:
        with sending:
            pipe.send(found)

    logger.setLevel(log_level)
    logger.addHandler(ToService(send))
    try:
        served = ServedModel(folder, limits)
    except Exception as error:
        pipe.send(error)
        return
    writer = Writer(served, lambda answers: send([(command.future, answer) for command, answer in answers]), every)
    importance = Importance(served)
    pool = ThreadPoolExecutor(PREDICTORS)

    def attempt(number: int, action: Callable[..., Any], *args: Any) -> None:
        try:
            send([(number, action(*args))])
        except (ValueError, ArithmeticError) as error:  # of the model, about the rows
            send([(number, error)])
        except Exception as error:
            logger.error("%s: internal error", folder.name, exc_info=error)
            send([(number, Refused(500, "internal error"))])

    freeze()
    with sending:
        pipe.send("ready")
    while True:
        try:
            message = pipe.recv()
        except EOFError:  # the service was killed
            os._exit(1)
        if message is None:
            break
        number, what, args = message
        if what == "write":
            command: Command = args[0]
            command.future = number
            try:
                writer.submit(command)
            except Refused as refused:
                send([(number, refused)])
        elif what == "predict":
            pool.submit(attempt, number, views.predict, served, *args)
        elif what == "view":
            now = importance if args[0] else None
            pool.submit(attempt, number, lambda now=now: views.view(served, writer.waiting, writer.rollbacks, now))
        else:
            pool.submit(attempt, number, getattr(served, args[0]), *args[1:])
    writer.close()
    pool.shutdown()
    pipe.close()
