"""A model for every key on Spark (pip install omkl[spark], and Java 17), kept in the folder of Spark's checkpoint.

`learn_stream` turns a streaming DataFrame with a key, an order, features and a target into one with
predictions, each made before its row was learned; `learn_history` and `learned_states` do the same for a table.
A key's model equals that of `Fleet` bit for bit, provided that the rows of a key arrive in order from one
micro-batch to the next; within a micro-batch they are sorted by the order column, because a shuffle does not
preserve their order. Rows that cannot be learned are returned with the others, with the reason.

Keys are hashed into buckets. All rows of a bucket's keys are learned by one call; `omkl.fleet.buckets` says what is
written.
"""

import os
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Required, TypedDict, Unpack

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from omkl import persist, validation
from omkl.estimators.sklearn.base import Estimator
from omkl.fleet.inputs import Key, check_keys, plain_keys
from omkl.fleet.local import Fleet
from omkl.fleet.spark_columns import BUCKET, REASON, Label, Prepared, bucket_of, hashed, prepared
from omkl.fleet.spark_tasks import LearnStream, LearnTable, ReadStates, WriteStates
from omkl.fleet.state_folder import States, check_buckets

GIGABYTE = 1 << 30
PER_CORE = 2  # buckets, so that a core that is done early takes another
REFUSED = "omkl_refused"  # a column of the files of a micro-batch while they are written


class Columns(TypedDict, total=False):
    """Names of columns and further options, as `learn_stream` has them; key, order and target are required."""

    key: Required[str]
    order: Required[str]
    target: Required[str]
    features: Sequence[str] | None
    seed: int
    classes: Sequence[Label] | None


def learn_stream(
    stream: DataFrame,
    learner: Estimator | str,
    *,
    key: str,
    order: str,
    target: str,
    checkpoint: str | os.PathLike[str],
    features: Sequence[str] | None = None,
    seed: int = 0,
    classes: Sequence[Label] | None = None,
    buckets: int | None = None,
    forget_after: timedelta | None = None,
    memory: int = 4 * GIGABYTE,
) -> DataFrame:
    """A streaming DataFrame of (key, order, target, prediction, reason), with a row for every row of the stream.

    A row that cannot be learned (a null, NaN or infinite value, a label that is not in `classes`) has no prediction
    but a reason; the other rows of its key are learned. Write the result with output mode "append".

    Parameters
    ----------
    stream
        A streaming DataFrame.
    learner, seed, classes
        As for `Fleet`.
    key, order, target, features
        Names of columns: the key is a string or an integer; the order, by which the rows of a key are sorted, a
        number, a string, a date or a time; the target a number (a label for a classifier); the features are
        numbers, by default all other columns.
    checkpoint
        The query's `checkpointLocation`, a folder in a file system that the driver and all workers have mounted at the
        same place. The states are in its subfolder `fleet`, and continue from what `learn_history` has left there.
    buckets
        Into which keys are hashed; by default twice as many as Spark has cores when the states are made. A bucket is
        learned by one core at a time.
    forget_after
        A key that had no row for so long, by the times of the micro-batches, is forgotten before rows of its bucket are
        learned; if it comes again, its model starts from the beginning.
    memory
        Bytes of models that a worker process keeps between micro-batches; what exceeds them is read again.
    """
    if not stream.isStreaming:
        raise ValueError("learn_stream needs a streaming DataFrame; for the other kind use learn_history")
    validation.require_whole("memory", memory)
    if forget_after is not None and forget_after <= timedelta(0):
        raise ValueError(f"forget_after must be a time above 0, got {forget_after}; leave it out to keep all keys")
    table = prepared(stream, learner, key, order, target, features, seed, classes)
    states = _states_for(stream.sparkSession, checkpoint, table, buckets)
    wait = None if forget_after is None else int(forget_after.total_seconds() * 1000)
    task = LearnStream(states, table.columns, wait, memory)
    return table.by_bucket(states.buckets).mapInArrow(lambda batches: task(batches), table.result)


def learn_history(
    table: DataFrame,
    learner: Estimator | str,
    *,
    checkpoint: str | os.PathLike[str] | None = None,
    **columns: Unpack[Columns],
) -> DataFrame:
    """As `learn_stream`, for a table; all rows of a bucket must fit into a worker's memory.

    With `checkpoint`, the rows are learned at once, on top of the states that are there, and a query on that checkpoint
    continues from the new ones. It must not run meanwhile. Call it once for each table: rows that are given again are
    learned again.
    """
    rows = _table(table, learner, columns)
    start, now = persist.to_bytes(rows.start), time.time_ns() // 1_000_000
    if checkpoint is None:
        task = LearnTable(rows.columns, start, now)
        return rows.by_bucket(_buckets(table)).mapInArrow(lambda batches: task(batches), rows.result)
    old = _states_for(table.sparkSession, checkpoint, rows, None)
    with old.rewritten(keep=True) as new:
        writing = LearnTable(rows.columns, start, now, old, new)
        out = rows.by_bucket(new.buckets).mapInArrow(lambda batches: writing(batches), rows.result)
        return out.localCheckpoint()  # computed here, and never again


def learned_states(table: DataFrame, learner: Estimator | str, **columns: Unpack[Columns]) -> DataFrame:
    """The state of every key after all rows of a table: a DataFrame of (key, state, seen)."""
    rows = _table(table, learner, columns)
    task = LearnTable(rows.columns, persist.to_bytes(rows.start), time.time_ns() // 1_000_000, results=False)
    return rows.by_bucket(_buckets(table)).mapInArrow(lambda batches: task(batches), _state_schema(rows.key))


def stream_states(spark: SparkSession, checkpoint: str | os.PathLike[str]) -> DataFrame:
    """The state of every key of a stream after the last micro-batch of its checkpoint, as (key, state, seen).

    `seen` is the time of the micro-batch with the key's last row, in milliseconds since 1970.
    """
    states = _open(checkpoint)
    return _read(spark, states, states.next_batch())


def to_fleet(
    states: DataFrame,
    learner: Estimator | str,
    *,
    features: Sequence[str],
    seed: int = 0,
    classes: Sequence[Label] | None = None,
) -> Fleet:
    """A local Fleet that continues from the states of keys; learner, features, seed and classes must be the same."""
    fleet = Fleet(learner, seed=seed, classes=None if classes is None else list(classes))
    fleet.restore(((plain_keys(row)[0], bytes(row[1])) for row in states.toLocalIterator()), features)
    return fleet


def rebucket(spark: SparkSession, checkpoint: str | os.PathLike[str], buckets: int) -> None:
    """Divide the keys of a checkpoint among another number of buckets; its query must not run meanwhile.

    The number of workers needs no such change: any worker can learn any bucket.
    """
    check_buckets(buckets)
    _rewrite(spark, _open(checkpoint), buckets, [])


def forget(spark: SparkSession, checkpoint: str | os.PathLike[str], keys: Iterable[Key]) -> None:
    """Forget keys of a checkpoint, and delete the files with their rows; its query must not run meanwhile.

    Keys that are not there are ignored. If a key comes again, its model starts from the beginning.
    """
    states = _open(checkpoint)
    if isinstance(keys, str):
        raise TypeError(f"keys must be a list of keys, got the text {keys!r}; give [{keys!r}]")
    gone = plain_keys(keys)
    check_keys(gone)
    kind = str if states.key == "string" else int
    if wrong := [key for key in gone if type(key) is not kind]:
        raise TypeError(f"the keys of this checkpoint are of type {kind.__name__}, got {wrong[0]!r}")
    _rewrite(spark, states, states.buckets, gone)


class Sink:
    """For `writeStream.foreachBatch`: writes Parquet files of the rows that were learned, and of those refused.

    Every micro-batch has its own folders, such as `learned/batch=7` and `refused/batch=7`. A micro-batch that is
    repeated after a crash overwrites them with the same rows.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)

    def __call__(self, batch: DataFrame, number: int) -> None:
        # one job writes both kinds of rows: a second one would learn the rows again, or need a copy of them in memory
        written = self.folder / f"_batch={number}"
        rows = batch.withColumn(REFUSED, F.col(REASON).isNotNull())
        rows.write.mode("overwrite").partitionBy(REFUSED).parquet(str(written))
        path, files = _hadoop(batch.sparkSession, self.folder)
        for name, value in (("learned", "false"), ("refused", "true")):
            source, target = written / f"{REFUSED}={value}", self.folder / name / f"batch={number}"
            if not files.exists(path(source)):  # there are no such rows
                batch.limit(0).write.mode("overwrite").parquet(str(target))  # evaluates nothing
                continue
            files.create(path(source / "_SUCCESS"), True).close()  # as Spark marks a folder that is complete
            files.mkdirs(path(target.parent))
            files.delete(path(target), True)
            if not files.rename(path(source), path(target)):
                raise OSError(f"{source} could not be renamed to {target}")
        files.delete(path(written), True)


def _hadoop(spark: SparkSession, folder: Path) -> tuple[Callable[[Path], Any], Any]:
    """How paths become those of Hadoop, and the file system that a folder is in, as Spark sees both."""
    jvm: Any = spark._jvm

    def path(name: Path) -> Any:
        return jvm.org.apache.hadoop.fs.Path(str(name))

    return path, path(folder).getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())


def _table(table: DataFrame, learner: Estimator | str, columns: Columns) -> Prepared:
    wanted = ("key", "order", "target")
    missing, unknown = set(wanted) - set(columns), set(columns) - {*wanted, "features", "seed", "classes"}
    if missing or unknown:
        raise TypeError(
            f"columns must be named: {', '.join(wanted)}; missing {sorted(missing)}, unknown {sorted(unknown)}"
        )
    if table.isStreaming:
        raise ValueError("learn_history needs a DataFrame that is not streaming; for the other kind use learn_stream")
    return prepared(table, learner, **columns)


def _buckets(table: DataFrame) -> int:
    """As many as Spark makes partitions of: fewer rows are in a worker's memory at a time than with fewer buckets."""
    return int(table.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1)


def _states_for(
    spark: SparkSession, checkpoint: str | os.PathLike[str], table: Prepared, buckets: int | None
) -> States:
    default = PER_CORE * spark.sparkContext.defaultParallelism
    return States.open_for(checkpoint, table.start, table.key, buckets, default)


def _open(checkpoint: str | os.PathLike[str]) -> States:
    states = States.open(checkpoint)
    if states is None:
        raise FileNotFoundError(f"there are no states in {checkpoint}; give the folder that learn_stream was given")
    return states


def _state_schema(key: str) -> str:
    return f"key {'STRING' if key == 'string' else 'BIGINT'}, state BINARY, seen BIGINT"


def _read(spark: SparkSession, states: States, batch: int) -> DataFrame:
    task = ReadStates(states, batch)
    numbers = spark.range(0, states.buckets, 1, states.buckets)
    return numbers.mapInArrow(lambda batches: task(batches), _state_schema(states.key))


def _rewrite(spark: SparkSession, states: States, buckets: int, without: list[Any]) -> None:
    with states.rewritten(buckets) as new:
        rows = _read(spark, states, new.batch)
        if without:
            rows = rows.where(~F.col("key").isin(without))
        rows = rows.withColumn(BUCKET, bucket_of("key", states.key, buckets))
        task = WriteStates(new)
        rows.repartition(buckets, hashed("key", states.key)).mapInArrow(
            lambda batches: task(batches), "keys BIGINT"
        ).collect()


__all__ = ["Sink", "forget", "learn_history", "learn_stream", "learned_states", "rebucket", "stream_states", "to_fleet"]
