"""The same on Spark (pip install omkl[spark], and Java 17): models in Spark's own checkpointed state.

`learn_stream` turns a streaming DataFrame with a key, an order, features and a target into one with
predictions, each made before its row was learned; `learn_history` and `learned_states` do it for a table.
A key's model is the one that `Fleet` would give it, to the last bit, as long as the rows of a key
arrive in order from micro-batch to micro-batch; within one they are sorted by the order column, since
a shuffle keeps no order. Rows that cannot be learned come out beside the others, with the reason.
"""

import atexit
import os
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

from omkl import persist
from omkl.errors import DivergenceError
from omkl.fleet.local import Fleet
from omkl.fleet.template import Mould, checked_classes, checked_learner

KEYS = (T.StringType, T.ByteType, T.ShortType, T.IntegerType, T.LongType)
WHOLE = (T.ByteType, T.ShortType, T.IntegerType, T.LongType)
TIMES = (T.TimestampType, T.TimestampNTZType, T.DateType)
STATE = "state BINARY"
NO_KEY, NO_ORDER, NO_TARGET = "the key is null", "the order is null", "the target is null"


class Plan(NamedTuple):
    """What the workers are told: the learner as bytes, and which column is what."""

    learner: bytes
    seed: int
    labels: tuple[Any, ...] | None
    key: str
    order: str
    target: str
    features: tuple[str, ...]

    def mould(self) -> Mould:
        return _mould(self.learner, self.seed, self.labels, self.features)

    def learned(self, name: Any, kept: bytes | None, rows: pd.DataFrame) -> tuple[bytes | None, pd.DataFrame]:
        """What the key becomes with the rows that can be learned, and for every row what was said or why not.

        Rows of one order are taken in the order of what is in them, so that a repeated run does the same.
        Columns are arrays here: a key has few rows, and pandas would take longer than the learning.
        """
        order, target, reason = (rows[name].to_numpy() for name in (self.order, self.target, "reason"))
        X = np.column_stack([rows[feature].to_numpy() for feature in self.features])
        by = np.lexsort((*(ranks(a) for a in (target, *X.T[::-1])), ranks(order)))
        order, target, reason, X = order[by], target[by], reason[by].astype(object), X[by]
        good = pd.isna(reason)
        said = np.full(len(rows), None if self.labels else np.nan, dtype=object if self.labels else np.float64)
        if good.any():
            mould = self.mould()
            model = mould.fresh(name) if kept is None else mould.unpack(kept)
            try:
                said[good] = mould.learn(model, X[good], target[good])
                kept = mould.pack(model)
            except DivergenceError as error:
                reason[good] = f"the model diverged, nothing of this batch was learned: {error}"
        columns = {self.key: [name] * len(rows), self.order: order, self.target: target}
        return kept, pd.DataFrame(columns | {"prediction": said, "reason": reason})


def ranks(values: Any) -> Any:
    """Numbers and times sort as they are; everything else by its place among the values."""
    return values if values.dtype.kind in "biufmM" else np.unique(values.astype(object), return_inverse=True)[1]


@lru_cache(maxsize=4)  # a Python worker serves many keys; the problem is drawn and compiled once in each
def _mould(learner: bytes, seed: int, labels: tuple[Any, ...] | None, features: tuple[str, ...]) -> Mould:
    classes = None if labels is None else np.array(labels)
    return Mould.make(persist.from_bytes(learner), seed, len(features), list(features), classes)


atexit.register(_mould.cache_clear)  # what the engine made must be gone before the interpreter is


# On the driver


def learn_stream(
    stream: DataFrame,
    learner: Any,
    *,
    key: str,
    order: str,
    target: str,
    features: Sequence[str] | None = None,
    seed: int = 0,
    classes: Sequence[Any] | None = None,
) -> DataFrame:
    """A streaming DataFrame of (key, order, target, prediction, reason), a row for every row that comes.

    A row that cannot be learned (a null, NaN or infinite value, a label nobody named) has no prediction
    but a reason; other rows of its key are learned. Write the result with output mode "append".

    Parameters
    ----------
    stream
        A streaming DataFrame.
    learner, seed, classes
        As for `Fleet`.
    key, order, target, features
        Columns: a string or whole number; whatever sorts the rows of a key; a number (labels for a
        classifier); numbers, all other columns unless named.
    """
    plan, rows = _prepared(stream, True, learner, key, order, target, features, seed, classes)
    kind = stream.schema

    def one_key(
        name: tuple[Any, ...], frames: Iterator[pd.DataFrame], state: GroupState
    ) -> Iterator[pd.DataFrame]:  # pragma: no cover  (runs in Spark's workers)
        before = bytes(state.get[0]) if state.exists else None
        parts = list(frames)
        rows = parts[0] if len(parts) == 1 else pd.concat(parts, ignore_index=True)
        after, said = plan.learned(_plain(name[0]), before, rows)
        if after is not None and after is not before:
            state.update((after,))
        yield said

    out = rows.groupBy(key).applyInPandasWithState(
        one_key, _said(plan, kind), STATE, "append", GroupStateTimeout.NoTimeout
    )
    return _with_nulls(plan, out)


def learn_history(table: DataFrame, learner: Any, **columns: Any) -> DataFrame:
    """As `learn_stream`, for a table: back-fills predictions, all rows of a key in one go (they must fit a worker)."""
    plan, rows = _prepared(table, False, learner, **_complete(columns))

    def one_key(name: tuple[Any, ...], frame: pd.DataFrame) -> pd.DataFrame:  # pragma: no cover
        return plan.learned(_plain(name[0]), None, frame)[1]

    return _with_nulls(plan, rows.groupBy(columns["key"]).applyInPandas(one_key, _said(plan, table.schema)))


def learned_states(table: DataFrame, learner: Any, **columns: Any) -> DataFrame:
    """What every key has become after all rows of a table: a DataFrame of (key, state)."""
    plan, rows = _prepared(table, False, learner, **_complete(columns))
    schema = T.StructType([table.schema[columns["key"]], T.StructField("state", T.BinaryType())])

    def one_key(name: tuple[Any, ...], frame: pd.DataFrame) -> pd.DataFrame:  # pragma: no cover
        state, _ = plan.learned(_plain(name[0]), None, frame)
        states = [] if state is None else [state]
        return pd.DataFrame({columns["key"]: [_plain(name[0])] * len(states), "state": states})

    return rows.where(F.col("reason").isNull()).groupBy(columns["key"]).applyInPandas(one_key, schema)


def stream_states(spark: SparkSession, checkpoint: str | os.PathLike[str]) -> DataFrame:
    """What every key of a stream had become at the last micro-batch of its checkpoint: (key, state)."""
    kept = spark.read.format("statestore").load(os.fspath(checkpoint))
    (key,) = (field.name for field in kept.schema["key"].dataType.fields)
    return kept.select(F.col(f"key.{key}").alias(key), F.col("value.groupState.state").alias("state"))


def to_fleet(
    states: DataFrame, learner: Any, *, features: Sequence[str], seed: int = 0, classes: Sequence[Any] | None = None
) -> Fleet:
    """A local Fleet that goes on from the states of keys; learner, features, seed and classes as they were."""
    fleet = Fleet(learner, seed=seed, classes=None if classes is None else list(classes))
    fleet.restore(((_plain(row[0]), bytes(row[1])) for row in states.toLocalIterator()), features)
    return fleet


class Sink:
    """For `writeStream.foreachBatch`: Parquet files of what was learned, and of what was refused.

    Every micro-batch has a folder of its own, `learned/batch=7` and `refused/batch=7`, which is written
    whole. A micro-batch that is run again after a crash writes the same rows to the same folder.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)

    def __call__(self, batch: DataFrame, number: int) -> None:
        batch.persist()  # two files, learned once
        try:
            for name, rows in (("learned", F.col("reason").isNull()), ("refused", F.col("reason").isNotNull())):
                batch.where(rows).write.mode("overwrite").parquet(str(self.folder / name / f"batch={number}"))
        finally:
            batch.unpersist()


# Checks, before anything runs


def _complete(columns: dict[str, Any]) -> dict[str, Any]:
    wanted = ("key", "order", "target")
    missing, strange = set(wanted) - set(columns), set(columns) - {*wanted, "features", "seed", "classes"}
    if missing or strange:
        raise TypeError(
            f"columns must be named: {', '.join(wanted)}; missing {sorted(missing)}, strange {sorted(strange)}"
        )
    return {"features": None, "seed": 0, "classes": None} | columns


def _prepared(
    table: DataFrame,
    streams: bool,
    learner: Any,
    key: str,
    order: str,
    target: str,
    features: Sequence[str] | None,
    seed: int,
    classes: Sequence[Any] | None,
) -> tuple[Plan, DataFrame]:
    """The plan, and the rows with a reason beside each that cannot be learned."""
    if table.isStreaming != streams:
        name, other = ("learn_stream", "learn_history") if streams else ("learn_history", "learn_stream")
        what = "a streaming DataFrame" if streams else "a DataFrame that is not streaming"
        raise ValueError(f"{name} wants {what}; for the other kind there is {other}")
    model, known = checked_learner(learner), checked_classes(learner, classes)
    schema = {field.name: field.dataType for field in table.schema.fields}
    names = [name for name in schema if name not in (key, order, target)] if features is None else list(features)
    for name, what in ((key, "key"), (order, "order"), (target, "target"), *((name, "feature") for name in names)):
        if name not in schema:
            raise ValueError(f"the {what} column {name!r} is not in the DataFrame, which has {list(schema)}")
        if isinstance(schema[name], T.NullType):
            raise ValueError(f"the {what} column {name!r} is all null; read it with its type")
    if len({key, order, target, *names}) < 3 + len(names) or not names:
        raise ValueError(
            f"key, order, target and features must be columns of their own, got {[key, order, target, *names]}"
        )
    _want(isinstance(schema[key], KEYS), "key", key, schema, "a string or a whole number")
    sorts = isinstance(schema[order], (T.NumericType, T.StringType, *TIMES))
    _want(sorts, "order", order, schema, "a number, a time, a date or a string")
    for name in names:
        _want(isinstance(schema[name], (T.NumericType, T.BooleanType)), "feature", name, schema, "a number")
    labels: tuple[Any, ...] | None = None
    if known is None:
        _want(isinstance(schema[target], T.NumericType), "target", target, schema, "a number")
        right, told = _finite(target, "the target"), F.col(target).cast("double")
    else:
        labels = tuple(known.tolist())
        fits: Any = {str: T.StringType, int: WHOLE, bool: T.BooleanType}.get(type(labels[0]), ())
        _want(isinstance(schema[target], fits), "target", target, schema, f"as its labels are, {list(labels)}")
        asked = F.col(target).isin(list(labels))
        right = F.when(F.col(target).isNull(), NO_TARGET).when(~asked, F.concat(
            F.lit("the target is no label that was named: "), F.col(target).cast("string")))  # fmt: skip
        told = F.coalesce(F.col(target), F.lit(labels[0]))
    reasons = [F.when(F.col(key).isNull(), NO_KEY), F.when(F.col(order).isNull(), NO_ORDER), right]
    reasons += [_finite(name, f"feature {name!r}") for name in names]
    early = F.lit(
        "" if isinstance(schema[order], T.StringType) else "1970-01-01" if isinstance(schema[order], TIMES) else 0
    )
    plan = Plan(persist.to_bytes(model), int(seed), labels, key, order, target, tuple(names))
    plan.mould()  # what is wrong with the learner is said here
    return plan, table.select(
        F.col(key),
        F.coalesce(F.col(order), F.lit(early).cast(schema[order])).alias(order),
        told.alias(target),
        *(F.col(name).cast("double").alias(name) for name in names),
        F.coalesce(*reasons).alias("reason"),
    )


def _want(right: bool, what: str, name: str, schema: dict[str, T.DataType], wanted: str) -> None:
    if not right:
        raise ValueError(f"the {what} column {name!r} must be {wanted}, got {schema[name].simpleString()}; cast it")


def _finite(name: str, what: str) -> Any:
    value = F.col(name).cast("double")
    missing = NO_TARGET if what == "the target" else f"{what} is null"
    return (
        F.when(F.col(name).isNull(), missing)
        .when(F.isnan(value), f"{what} is NaN")
        .when(F.abs(value) == float("inf"), f"{what} is infinite")
    )


def _said(plan: Plan, schema: T.StructType) -> T.StructType:
    """The columns of the result."""
    kinds = [(plan.key, schema[plan.key].dataType), (plan.order, schema[plan.order].dataType)]
    label = T.DoubleType() if plan.labels is None else schema[plan.target].dataType
    kinds += [(plan.target, label), ("prediction", label), ("reason", T.StringType())]
    return T.StructType([T.StructField(name, kind) for name, kind in kinds])


def _with_nulls(plan: Plan, out: DataFrame) -> DataFrame:
    """Values that stood in for a null are null again."""

    def null_where(name: str, reason: str) -> Any:
        missing = F.coalesce(F.col("reason") == reason, F.lit(False))
        return F.when(~missing, F.col(name)).alias(name)

    return out.select(
        plan.key, null_where(plan.order, NO_ORDER), null_where(plan.target, NO_TARGET), "prediction", "reason"
    )


def _plain(key: Any) -> Any:
    return key.item() if isinstance(key, np.generic) else key


__all__ = ["Sink", "learn_history", "learn_stream", "learned_states", "stream_states", "to_fleet"]
