"""Worker processes of a model per key, each with a part of the keys; one that stops is started again."""

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
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from logging.handlers import QueueHandler
from pathlib import Path
from typing import Any

from omkl.log import logger
from omkl.serve import views
from omkl.serve.commands import Command
from omkl.serve.limits import Limits, Refused
from omkl.serve.model import ServedModel
from omkl.serve.views import Importance
from omkl.serve.writer import CLOSING, Writer

PREDICTORS = 2  # threads that predict
YOUNG = 20_000  # objects that are new when the garbage collector looks at them
WAITS = (0.0, 1.0, 2.0, 4.0, 8.0)  # seconds before each attempt to restart a worker, after which it is given up
STEADY = 60.0  # seconds after which a worker that runs has all its attempts again
RESTARTING = "a worker process has stopped and is being restarted; send the request again, with the same id"
GONE = "a worker process has stopped again and again; see the log, and restart the service"
LOGGED = 0  # in place of a request's number: a record for the log


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
