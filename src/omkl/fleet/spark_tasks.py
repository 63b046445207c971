"""What Spark's workers do with the rows of a bucket, or with its states."""

import atexit
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark import TaskContext

from omkl.fleet.buckets import Bucket, Held, empty_like
from omkl.fleet.local import Fleet
from omkl.fleet.spark_columns import BUCKET, Columns, pieces
from omkl.fleet.state_folder import States, batch_time, check_query, first_fleet

HELD = Held()  # a worker process serves many micro-batches
STATES = "key {}, state BINARY, seen BIGINT"
KEYS_PER_PIECE = 100  # whose states are sent at once

atexit.register(HELD.clear)  # objects of the engine must be freed before the interpreter ends
atexit.register(first_fleet.cache_clear)

Batches = Iterator[pa.RecordBatch]


def tables_by_bucket(batches: Batches) -> Iterator[tuple[int, pa.Table]]:
    """The rows of each bucket of a partition."""
    parts = list(batches)
    if not parts:
        return
    table = pa.Table.from_batches(parts)
    numbers = table[BUCKET].to_numpy()
    table = table.drop_columns([BUCKET])
    found = np.unique(numbers)
    for number in found.tolist():
        yield number, table if len(found) == 1 else table.filter(pa.array(numbers == number))


@dataclass(frozen=True)
class LearnStream:
    """Learns the rows of a micro-batch, and adds them to the files of their buckets."""

    states: States
    columns: Columns
    forget_after: int | None  # milliseconds
    memory: int  # bytes of the buckets that are held

    def __call__(self, batches: Batches) -> Batches:  # pragma: no cover  (runs in Spark's workers)
        task = TaskContext.get()
        assert task is not None
        query, batch = task.getLocalProperty("sql.streaming.queryId"), task.getLocalProperty("streaming.sql.batchId")
        run = task.getLocalProperty("spark.jobGroup.id") or ""
        check_query(self.states.checkpoint, query)
        self.states.require_current()
        for number, table in tables_by_bucket(batches):
            yield from pieces(self.learn(number, table, int(batch), f"{query} {run}"))

    def learn(self, number: int, table: pa.Table, batch: int, run: str) -> pa.Table:
        """The table's rows with predictions; `run` is the one of the query, whose buckets may be held."""
        files = self.states.bucket(number)
        path = self.states.checkpoint / str(self.states.generation) / str(number)
        rows, places = self.columns.sorted_rows(table, batch, batch_time(self.states.checkpoint, batch))
        bucket = files.before(batch, HELD.take(path, run))
        files.tidy(bucket)
        if self.forget_after is not None:
            rows = rows._replace(forgotten=bucket.idle_since(rows.time - self.forget_after))
        bucket, learned, predictions, reasons = bucket.learn_what_can_be(rows, lambda: files.before(batch))
        files.write(learned)
        HELD.put(path, run, bucket, self.memory)
        return self.columns.result(table, places, rows, predictions, reasons)


@dataclass(frozen=True)
class LearnTable:
    """Learns the rows of a table, from the states of before if there are any, and writes new ones where wanted."""

    columns: Columns
    start: bytes
    time: int
    old: States | None = None
    new: States | None = None
    results: bool = True  # or states

    def __call__(self, batches: Batches) -> Batches:  # pragma: no cover  (as above)
        for number, table in tables_by_bucket(batches):
            yield from self.learn(number, table)

    def learn(self, number: int, table: pa.Table) -> Batches:
        batch = 0 if self.new is None else self.new.batch
        rows, places = self.columns.sorted_rows(table, batch, self.time)

        def before() -> Bucket:
            if self.old is None:
                return Bucket(empty_like(first_fleet(self.start)), batch)
            return self.old.bucket(number).before(batch)

        bucket, _, predictions, reasons = before().learn_what_can_be(rows, before)
        if self.new is not None:
            bucket.batch = batch  # what comes next is the batch of that number
            self.new.bucket(number).write_states(bucket)
        if self.results:
            yield from pieces(self.columns.result(table, places, rows, predictions, reasons))
        else:
            yield from packed(bucket)


@dataclass(frozen=True)
class ReadStates:
    """The states of all keys of some buckets before a batch."""

    states: States
    batch: int

    def __call__(self, batches: Batches) -> Batches:  # pragma: no cover  (as above)
        for part in batches:
            for number in part.column(0).to_pylist():
                yield from packed(self.states.bucket(number).before(self.batch))


@dataclass(frozen=True)
class WriteStates:
    """Writes the states of keys as the first of a new generation."""

    states: States

    def __call__(self, batches: Batches) -> Batches:  # pragma: no cover  (as above)
        buckets: dict[int, Bucket] = {}
        for part in batches:
            columns = (part.column(name).to_pylist() for name in (BUCKET, "key", "state", "seen"))
            for number, key, state, seen in zip(*columns, strict=True):
                bucket = buckets.setdefault(number, Bucket(self.states.first(), self.states.batch))
                bucket.fleet.restore([(key, state)], feature_names(bucket.fleet))
                bucket.seen[key] = seen
        for number, bucket in buckets.items():
            self.states.bucket(number).write_states(bucket)
            yield pa.RecordBatch.from_pydict({"keys": [len(bucket.fleet)]})


def feature_names(fleet: Fleet) -> list[str]:
    return list(fleet._feature_names or ())


def packed(bucket: Bucket) -> Batches:
    """The states of a bucket's keys as Spark takes them."""
    keys = list(bucket.fleet)
    for start in range(0, len(keys), KEYS_PER_PIECE):
        some = keys[start : start + KEYS_PER_PIECE]
        states = pa.array([bucket.fleet.pack(key) for key in some], type=pa.binary())
        yield pa.RecordBatch.from_arrays(
            [pa.array(some), states, pa.array([bucket.seen[key] for key in some])], names=["key", "state", "seen"]
        )
