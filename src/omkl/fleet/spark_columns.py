"""Tables of Spark as rows that a fleet learns: the roles of the columns, and a reason for each row that is refused."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from omkl.arrays import Array, Index
from omkl.estimators.sklearn.base import Estimator
from omkl.fleet.buckets import Rows
from omkl.fleet.local import Fleet
from omkl.fleet.template import checked_classes, checked_learner

Label = bool | int | float | str
INTEGERS = (T.ByteType, T.ShortType, T.IntegerType, T.LongType)
KEYS = (T.StringType, *INTEGERS)
TIMES = (T.TimestampType, T.TimestampNTZType, T.DateType)
NO_KEY, NO_TARGET = "the key is null", "the target is null"
REASON, BUCKET = "reason", "omkl bucket"


class Columns(NamedTuple):
    """The roles of the columns, and the labels of a classifier."""

    key: str
    order: str
    target: str
    features: tuple[str, ...]
    labels: tuple[Label, ...] | None

    def sorted_rows(self, table: pa.Table, batch: int, time: int) -> tuple[Rows, Index]:
        """The rows that can be learned, by key and in order, and their places in the table.

        Rows of a key with the same order are sorted by their values, so that a repeated run gives the same result.
        """
        places = np.flatnonzero(pc.is_null(table[REASON]).to_numpy())
        if len(places) < len(table):
            table = table.take(pa.array(places))
        keys = pa.chunked_array(table[self.key]).combine_chunks().dictionary_encode()
        names = keys.dictionary.to_pylist()
        by_name = sorted(range(len(names)), key=names.__getitem__)
        rank = np.empty(len(names), dtype=np.int64)
        rank[by_name] = np.arange(len(names))
        key = rank[keys.indices.to_numpy()]
        X = np.empty((len(table), len(self.features)))
        for k, name in enumerate(self.features):
            X[:, k] = table[name].to_numpy()
        if self.labels is None:
            y = table[self.target].to_numpy()
        else:
            y = pc.index_in(table[self.target], value_set=pa.array(sorted(self.labels))).to_numpy().astype(np.float64)
        order = sortable(table[self.order])
        by = np.lexsort((order, key))
        if ((key[by][1:] == key[by][:-1]) & (order[by][1:] == order[by][:-1])).any():  # infinities have no difference
            by = np.lexsort((y, *X.T[::-1], order, key))
        rows = Rows(batch, time, [], [names[place] for place in by_name], key[by], X[by], y[by])
        return rows, places[by]

    def result(self, table: pa.Table, places: Index, rows: Rows, predictions: Array, reasons: list[str]) -> pa.Table:
        """The rows with predictions in the order in which they were learned, then those that could not be."""
        failed = np.array([bool(reason) for reason in reasons], dtype=bool)[rows.key]
        kind = pa.float64() if self.labels is None else table.schema.field(self.target).type
        values = pa.array(predictions.tolist() if self.labels else predictions, type=kind, mask=failed)
        why = pa.nulls(len(places), pa.string())
        if failed.any():
            text = np.array([f"the model diverged, nothing of this batch was learned: {reason}" for reason in reasons])
            why = pa.array(text[rows.key], type=pa.string(), mask=~failed)
        names = [self.key, self.order, self.target]
        done = table.select(names).take(pa.array(places)).append_column("prediction", values).append_column(REASON, why)
        if len(places) == len(table):
            return done
        refused = table.filter(pc.is_valid(table[REASON])).select([*names, REASON])
        refused = refused.add_column(3, "prediction", pa.nulls(len(refused), kind))
        return pa.concat_tables([done, refused.cast(done.schema)])


def sortable(values: pa.ChunkedArray) -> Array:
    """Numbers and times as they are, for `np.lexsort`; everything else as ranks."""
    numbers = values if pa.types.is_primitive(values.type) else pc.rank(values, tiebreaker="dense")
    found: Array = numbers.to_numpy()
    return found


class Prepared(NamedTuple):
    """A table with the reason for each row that cannot be learned, and the fleet that learns it."""

    table: DataFrame
    columns: Columns
    start: Fleet  # before its first row
    key: str  # "string" or "integer"
    result: T.StructType

    def by_bucket(self, number: int) -> DataFrame:
        """The rows of a bucket are in the same partition."""
        return self.table.withColumn(BUCKET, bucket_of(self.columns.key, self.key, number)).repartition(
            number, hashed(self.columns.key, self.key)
        )


def hashed(key: str, kind: str) -> Column:
    """The key as what is hashed: the same number has the same hash whatever its type."""
    return F.col(key).cast("string" if kind == "string" else "long")


def bucket_of(key: str, kind: str, number: int) -> Column:
    """The bucket of a key, of so many; it is that by which Spark partitions too."""
    return F.pmod(F.hash(hashed(key, kind)), F.lit(number))


def prepared(
    table: DataFrame,
    learner: Estimator | str,
    key: str,
    order: str,
    target: str,
    features: Sequence[str] | None = None,
    seed: int = 0,
    classes: Sequence[Label] | None = None,
) -> Prepared:
    """The table that a learner and the roles of its columns make; all that is wrong with them is raised here."""
    model = checked_learner(learner, classes)
    known = checked_classes(model, classes)
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
        value = F.col(target)
    no_order = F.when(F.col(order).isNull(), "the order is null")
    if isinstance(schema[order], T.FractionalType):  # NaN is before and after nothing
        no_order = no_order.when(F.isnan(F.col(order).cast("double")), "the order is NaN")
    reasons = [F.when(F.col(key).isNull(), NO_KEY), no_order, problem]
    reasons += [_not_finite(name, f"feature {name!r}") for name in names]
    start = Fleet(model, seed=int(seed), classes=classes, threads=1)
    start.restore([], names)  # raises here what is wrong with the learner, not in a worker
    rows = table.select(
        key,
        order,
        value.alias(target),
        *(F.col(name).cast("double").alias(name) for name in names),
        F.coalesce(*reasons).alias(REASON),
    )
    kinds = [(name, rows.schema[name].dataType) for name in (key, order, target)]
    kinds += [("prediction", kinds[2][1]), (REASON, T.StringType())]
    result = T.StructType([T.StructField(name, kind) for name, kind in kinds])
    kind = "string" if isinstance(schema[key], T.StringType) else "integer"
    return Prepared(rows, Columns(key, order, target, tuple(names), labels), start, kind, result)


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


def pieces(table: pa.Table) -> Iterator[pa.RecordBatch]:
    """A table as what Spark takes."""
    yield from table.to_batches(max_chunksize=10_000)
