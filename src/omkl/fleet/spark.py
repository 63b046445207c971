"""A model for every key on Spark (pip install omkl[spark], and Java 17), kept in Spark's checkpointed state.

`learn_stream` turns a streaming DataFrame with a key, an order, features and a target into one with
predictions, each made before its row was learned; `learn_history` and `learned_states` do the same for a table.
A key's model equals that of `Fleet` bit for bit, provided that the rows of a key arrive in order from one
micro-batch to the next; within a micro-batch they are sorted by the order column, because a shuffle does not
preserve their order. Rows that cannot be learned are returned with the others, with the reason.
"""

import atexit
import os
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple, Required, TypedDict, Unpack

import numpy as np
import pandas as pd
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

from omkl import persist
from omkl.arrays import Array
from omkl.errors import DivergenceError
from omkl.estimators.sklearn.base import Estimator
from omkl.fleet.inputs import Key, plain_keys
from omkl.fleet.local import Fleet
from omkl.fleet.template import Template, checked_classes, checked_learner

Label = bool | int | float | str
INTEGERS = (T.ByteType, T.ShortType, T.IntegerType, T.LongType)
KEYS = (T.StringType, *INTEGERS)
TIMES = (T.TimestampType, T.TimestampNTZType, T.DateType)
STATE = "state BINARY"
NO_KEY, NO_ORDER, NO_TARGET = "the key is null", "the order is null", "the target is null"


class Columns(TypedDict, total=False):
    """Names of columns and further options, as `learn_stream` has them; key, order and target are required."""

    key: Required[str]
    order: Required[str]
    target: Required[str]
    features: Sequence[str] | None
    seed: int
    classes: Sequence[Label] | None


class Plan(NamedTuple):
    """What the workers need: the learner as bytes, and the roles of the columns."""

    learner: bytes
    seed: int
    labels: tuple[Label, ...] | None
    key: str
    order: str
    target: str
    features: tuple[str, ...]

    def template(self) -> Template:
        return _template(self.learner, self.seed, self.labels, self.features)

    def learn(self, key: Key, state: bytes | None, rows: pd.DataFrame) -> tuple[bytes | None, pd.DataFrame]:
        """The key's state after the rows that can be learned, and for every row its prediction or the reason.

        Rows with the same order are sorted by their values, so that a repeated run gives the same result.
        Columns are arrays here: a key has few rows, and pandas would take longer than the learning.
        """
        order, target, reason = (rows[name].to_numpy() for name in (self.order, self.target, "reason"))
        X = np.column_stack([rows[feature].to_numpy() for feature in self.features])
        by = np.lexsort((*(sortable(a) for a in (target, *X.T[::-1])), sortable(order)))
        order, target, reason, X = order[by], target[by], reason[by].astype(object), X[by]
        valid = pd.isna(reason)
        predictions = np.full(len(rows), None if self.labels else np.nan, dtype=object if self.labels else np.float64)
        if valid.any():
            template = self.template()
            model = template.fresh(key) if state is None else template.unpack(state)
            try:
                predictions[valid] = template.learn(model, X[valid], target[valid])
                state = template.pack(model)
            except DivergenceError as error:
                reason[valid] = f"the model diverged, nothing of this batch was learned: {error}"
        columns = {self.key: [key] * len(rows), self.order: order, self.target: target}
        return state, pd.DataFrame(columns | {"prediction": predictions, "reason": reason})


def sortable(values: Array) -> Array:
    """Numbers and times as they are, for `np.lexsort`; everything else as ranks."""
    return values if values.dtype.kind in "biufmM" else np.unique(values.astype(object), return_inverse=True)[1]


@lru_cache(maxsize=4)  # a Python worker serves many keys; the problem is drawn and compiled once in each
def _template(learner: bytes, seed: int, labels: tuple[Label, ...] | None, features: tuple[str, ...]) -> Template:
    classes = None if labels is None else np.array(labels)
    return Template.make(persist.from_bytes(learner), seed, len(features), list(features), classes)


atexit.register(_template.cache_clear)  # objects of the engine must be freed before the interpreter ends


# On the driver


def learn_stream(
    stream: DataFrame,
    learner: Estimator,
    *,
    key: str,
    order: str,
    target: str,
    features: Sequence[str] | None = None,
    seed: int = 0,
    classes: Sequence[Label] | None = None,
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
    """
    plan, rows = _prepared(stream, True, learner, key, order, target, features, seed, classes)

    def learn_key(
        name: tuple[Key, ...], frames: Iterator[pd.DataFrame], state: GroupState
    ) -> Iterator[pd.DataFrame]:  # pragma: no cover  (runs in Spark's workers)
        before = bytes(state.get[0]) if state.exists else None
        parts = list(frames)
        rows = parts[0] if len(parts) == 1 else pd.concat(parts, ignore_index=True)
        after, predictions = plan.learn(plain_keys(name)[0], before, rows)
        if after is not None and after is not before:
            state.update((after,))
        yield predictions

    out = rows.groupBy(key).applyInPandasWithState(
        learn_key, _result_schema(plan, stream.schema), STATE, "append", GroupStateTimeout.NoTimeout
    )
    return _with_nulls(plan, out)


def learn_history(table: DataFrame, learner: Estimator, **columns: Unpack[Columns]) -> DataFrame:
    """As `learn_stream`, for a table; all rows of a key are processed at once and must fit into a worker's memory."""
    plan, rows = _prepared(table, False, learner, **_complete(columns))

    def learn_key(name: tuple[Key, ...], frame: pd.DataFrame) -> pd.DataFrame:  # pragma: no cover  (as above)
        return plan.learn(plain_keys(name)[0], None, frame)[1]

    schema = _result_schema(plan, table.schema)
    return _with_nulls(plan, rows.groupBy(columns["key"]).applyInPandas(learn_key, schema))


def learned_states(table: DataFrame, learner: Estimator, **columns: Unpack[Columns]) -> DataFrame:
    """The state of every key after all rows of a table: a DataFrame of (key, state)."""
    plan, rows = _prepared(table, False, learner, **_complete(columns))
    schema = T.StructType([table.schema[columns["key"]], T.StructField("state", T.BinaryType())])

    def learn_key(name: tuple[Key, ...], frame: pd.DataFrame) -> pd.DataFrame:  # pragma: no cover  (as above)
        (key,) = plain_keys(name)
        state, _ = plan.learn(key, None, frame)
        states = [] if state is None else [state]
        return pd.DataFrame({columns["key"]: [key] * len(states), "state": states})

    return rows.where(F.col("reason").isNull()).groupBy(columns["key"]).applyInPandas(learn_key, schema)


def stream_states(spark: SparkSession, checkpoint: str | os.PathLike[str]) -> DataFrame:
    """The state of every key of a stream after the last micro-batch of its checkpoint: a DataFrame of (key, state)."""
    store = spark.read.format("statestore").load(os.fspath(checkpoint))
    (key,) = (field.name for field in store.schema["key"].dataType.fields)
    return store.select(F.col(f"key.{key}").alias(key), F.col("value.groupState.state").alias("state"))


def to_fleet(
    states: DataFrame,
    learner: Estimator,
    *,
    features: Sequence[str],
    seed: int = 0,
    classes: Sequence[Label] | None = None,
) -> Fleet:
    """A local Fleet that continues from the states of keys; learner, features, seed and classes must be the same."""
    fleet = Fleet(learner, seed=seed, classes=None if classes is None else list(classes))
    packed = ((plain_keys(row)[0], bytes(row[1])) for row in states.toLocalIterator())
    fleet.restore(packed, features)
    return fleet


class Sink:
    """For `writeStream.foreachBatch`: writes Parquet files of the rows that were learned, and of those refused.

    Every micro-batch has its own folders, such as `learned/batch=7` and `refused/batch=7`. A micro-batch that is
    repeated after a crash overwrites them with the same rows.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)

    def __call__(self, batch: DataFrame, number: int) -> None:
        batch.persist()  # it is written twice, and must not be learned twice
        try:
            for name, rows in (("learned", F.col("reason").isNull()), ("refused", F.col("reason").isNotNull())):
                batch.where(rows).write.mode("overwrite").parquet(str(self.folder / name / f"batch={number}"))
        finally:
            batch.unpersist()


# Checks on the driver, before anything runs


def _complete(columns: Columns) -> Columns:
    wanted = ("key", "order", "target")
    missing, unknown = set(wanted) - set(columns), set(columns) - {*wanted, "features", "seed", "classes"}
    if missing or unknown:
        raise TypeError(
            f"columns must be named: {', '.join(wanted)}; missing {sorted(missing)}, unknown {sorted(unknown)}"
        )
    return {"features": None, "seed": 0, "classes": None} | columns


def _prepared(
    table: DataFrame,
    streams: bool,
    learner: Estimator,
    key: str,
    order: str,
    target: str,
    features: Sequence[str] | None,
    seed: int,
    classes: Sequence[Label] | None,
) -> tuple[Plan, DataFrame]:
    """The plan, and the rows with the reason for each that cannot be learned."""
    if table.isStreaming != streams:
        name, other = ("learn_stream", "learn_history") if streams else ("learn_history", "learn_stream")
        what = "a streaming DataFrame" if streams else "a DataFrame that is not streaming"
        raise ValueError(f"{name} needs {what}; for the other kind use {other}")
    model, known = checked_learner(learner), checked_classes(learner, classes)
    schema = {field.name: field.dataType for field in table.schema.fields}
    names = [name for name in schema if name not in (key, order, target)] if features is None else list(features)
    for name, role in ((key, "key"), (order, "order"), (target, "target"), *((name, "feature") for name in names)):
        if name not in schema:
            raise ValueError(f"the {role} column {name!r} is not in the DataFrame, which has {list(schema)}")
        if isinstance(schema[name], T.NullType):
            raise ValueError(f"the {role} column {name!r} has no type, only nulls; read it with a schema")
    if len({key, order, target, *names}) < 3 + len(names) or not names:
        raise ValueError(
            f"key, order, target and features must be different columns, got {[key, order, target, *names]}"
        )
    _want(isinstance(schema[key], KEYS), "key", key, schema, "a string or an integer")
    sorts = isinstance(schema[order], (T.NumericType, T.StringType, *TIMES))
    _want(sorts, "order", order, schema, "a number, a time, a date or a string")
    for name in names:
        _want(isinstance(schema[name], (T.NumericType, T.BooleanType)), "feature", name, schema, "a number")
    labels: tuple[Label, ...] | None = None
    if known is None:
        _want(isinstance(schema[target], T.NumericType), "target", target, schema, "a number")
        problem, value = _not_finite(target, "the target"), F.col(target).cast("double")
    else:
        labels = tuple(known.tolist())
        fits = {str: T.StringType, int: INTEGERS, bool: T.BooleanType}.get(type(labels[0]), ())
        _want(isinstance(schema[target], fits), "target", target, schema, f"of the type of its labels, {list(labels)}")
        known_label = F.col(target).isin(list(labels))
        problem = F.when(F.col(target).isNull(), NO_TARGET).when(~known_label, F.concat(
            F.lit("the target is not among the classes: "), F.col(target).cast("string")))  # fmt: skip
        value = F.coalesce(F.col(target), F.lit(labels[0]))
    reasons = [F.when(F.col(key).isNull(), NO_KEY), F.when(F.col(order).isNull(), NO_ORDER), problem]
    reasons += [_not_finite(name, f"feature {name!r}") for name in names]
    placeholder = F.lit(
        "" if isinstance(schema[order], T.StringType) else "1970-01-01" if isinstance(schema[order], TIMES) else 0
    )
    plan = Plan(persist.to_bytes(model), int(seed), labels, key, order, target, tuple(names))
    plan.template()  # raises here what is wrong with the learner, not in a worker
    return plan, table.select(
        F.col(key),
        F.coalesce(F.col(order), placeholder.cast(schema[order])).alias(order),
        value.alias(target),
        *(F.col(name).cast("double").alias(name) for name in names),
        F.coalesce(*reasons).alias("reason"),
    )


def _want(fits: bool, role: str, name: str, schema: dict[str, T.DataType], wanted: str) -> None:
    if not fits:
        raise ValueError(f"the {role} column {name!r} must be {wanted}, got {schema[name].simpleString()}; cast it")


def _not_finite(name: str, what: str) -> Column:
    """The reason why a number cannot be learned, null where it can."""
    value = F.col(name).cast("double")
    missing = NO_TARGET if what == "the target" else f"{what} is null"
    return (
        F.when(F.col(name).isNull(), missing)
        .when(F.isnan(value), f"{what} is NaN")
        .when(F.abs(value) == float("inf"), f"{what} is infinite")
    )


def _result_schema(plan: Plan, schema: T.StructType) -> T.StructType:
    """The columns of the result."""
    kinds = [(plan.key, schema[plan.key].dataType), (plan.order, schema[plan.order].dataType)]
    label = T.DoubleType() if plan.labels is None else schema[plan.target].dataType
    kinds += [(plan.target, label), ("prediction", label), ("reason", T.StringType())]
    return T.StructType([T.StructField(name, kind) for name, kind in kinds])


def _with_nulls(plan: Plan, out: DataFrame) -> DataFrame:
    """Set values to null again that were replaced by a placeholder."""

    def null_where(name: str, reason: str) -> Column:
        missing = F.coalesce(F.col("reason") == reason, F.lit(False))
        return F.when(~missing, F.col(name)).alias(name)

    return out.select(
        plan.key, null_where(plan.order, NO_ORDER), null_where(plan.target, NO_TARGET), "prediction", "reason"
    )


__all__ = ["Sink", "learn_history", "learn_stream", "learned_states", "stream_states", "to_fleet"]
