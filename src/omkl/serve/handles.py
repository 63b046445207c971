"""How the service reaches a model: in its own process, or in worker processes, each with a part of the keys."""

import asyncio
import zlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
import pyarrow as pa

from omkl.serve import views
from omkl.serve.bodies import Row
from omkl.serve.commands import Command
from omkl.serve.limits import Limits, Refused
from omkl.serve.model import Answer, ServedModel
from omkl.serve.views import Importance, View, Want
from omkl.serve.workers import PREDICTORS, Worker, resolve
from omkl.serve.writer import CLOSING, Writer
from omkl.stream.targets import labels

T = TypeVar("T")
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
