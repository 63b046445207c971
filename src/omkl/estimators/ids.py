"""Columns of many categories in the rows of a core."""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np

from omkl.algorithms.invariants import is_count
from omkl.arrays import Matrix, Vector
from omkl.estimators.columns import Columns
from omkl.estimators.id_column import COUNT, INPUTS, SQUARES, Before, IdColumn, bucket_size, has_ids
from omkl.estimators.rows import Row
from omkl.names import BUCKETS, ID_PARTS, id_features
from omkl.persist import Arrays, Json, claims, demand, float_array


class IdStatistics:
    """The columns of many categories of one core, which knows its features by `names`."""

    def __init__(self, codes: int) -> None:
        self.codes = codes
        self.columns: list[IdColumn] = []

    def add_features(self, new: Sequence[Hashable], columns: Columns) -> None:
        """Features have become known; some of them may be those of a column of many categories."""
        texts = {str(name) for name in new if name in columns.index}
        for first in sorted(text for text in texts if text.startswith(ID_PARTS[0])):
            own = first.removeprefix(ID_PARTS[0])
            if texts >= set(id_features(own, self.codes)):
                self.columns.append(IdColumn(own, self.codes))
        for column in self.columns:
            column.add_inputs(columns.own)

    def fresh(self) -> "IdStatistics":
        """The same columns, of which nothing is known."""
        other = IdStatistics(self.codes)
        for column in self.columns:
            other.columns.append(IdColumn(column.own, self.codes))
            other.columns[-1].inputs = list(column.inputs)
        return other

    def features(self, x: Mapping[Hashable, float]) -> dict[Hashable, float]:
        """A row of features with the statistics in it."""
        out = dict(x)
        for column in self.columns:
            out.update(zip(column.names, column.values(*_of_row(column, x))[0].tolist(), strict=True))
        return out

    def learn_features(self, x: Mapping[Hashable, float], code: Matrix, weight: float) -> None:
        """Learn a row of features as it was before the statistics came in."""
        for column in self.columns:
            column.learn(*_of_row(column, x), code, np.array([weight], dtype=np.float64))

    def rows(self, X: Matrix, columns: Columns) -> Matrix:
        """Rows with the statistics in them."""
        out = X.copy()
        for column in self.columns:
            out[:, _places(column.names, columns)] = column.values(*_of_rows(column, X, columns))
        return out

    def learn_rows(self, X: Matrix, columns: Columns, codes: Matrix, weight: Vector | None) -> Matrix:
        """The same, each row being learned before the next."""
        out = X.copy()
        for column in self.columns:
            out[:, _places(column.names, columns)] = column.learn(*_of_rows(column, X, columns), codes, weight)
        return out

    def before(self, X: Matrix, columns: Columns) -> list[Before]:
        """What `restore` needs to undo `learn_rows`."""
        return [column.before(_of_rows(column, X, columns)[0]) for column in self.columns]

    def restore(self, before: list[Before]) -> None:
        for column, part in zip(self.columns, before, strict=True):
            column.restore(part)

    # Model files

    def encode(self, arrays: Arrays) -> Json:
        for k, column in enumerate(self.columns):
            arrays[f"ids.{k}.scaling"], arrays[f"ids.{k}.overall"] = column.scaling, column.overall
            arrays[f"ids.{k}.buckets"] = column.records[: column.used]
        return [[column.own, column.inputs, list(column.buckets)] for column in self.columns]

    @classmethod
    def decode(cls, body: Json, arrays: Arrays, codes: int, columns: Columns) -> "IdStatistics":
        self = cls(codes)
        demand(isinstance(body, list), "the columns of many categories must be a list")
        for k, (own, inputs, places) in enumerate(body):
            column = IdColumn(claims.string(own, "a column of many categories"), codes)
            demand(
                {*column.names, *claims.strings(inputs, "inputs")} <= set(columns.own), "statistics of unknown features"
            )
            demand(len(set(inputs)) == len(inputs) <= INPUTS, "inputs of a linear model come twice, or are too many")
            demand(not any(name.startswith(ID_PARTS) for name in inputs), "statistics are no inputs of a linear model")
            column.inputs = list(inputs)
            column.scaling = float_array(arrays, f"ids.{k}.scaling")
            column.overall = float_array(arrays, f"ids.{k}.overall")
            records = float_array(arrays, f"ids.{k}.buckets")
            demand(all(is_count(place) and place < BUCKETS for place in places), "there is no such bucket")
            demand(len(set(places)) == len(places), "a bucket comes twice")
            shapes = (column.scaling.shape, column.overall.shape, records.shape)
            wanted = ((3, INPUTS), (1 + codes,), (len(places), bucket_size(codes)))
            demand(shapes == wanted, "statistics of a column do not fit its features")
            demand(all(np.isfinite(array).all() for array in (column.scaling, column.overall, records)),
                   "statistics of a column are not finite")  # fmt: skip
            variances = records[:, -1 - INPUTS :]
            counts = (column.scaling[[COUNT, SQUARES]], column.overall[:1], records[:, :1], variances)
            demand(all((part >= 0).all() for part in counts) and bool((variances <= 1).all()),
                   "a count or a variance of a column cannot be")  # fmt: skip
            column.fill(dict(zip(places, records, strict=True)))
            self.columns.append(column)
        demand(len({column.own for column in self.columns}) == len(self.columns), "a column comes twice")
        return self


def _of_row(column: IdColumn, x: Mapping[Hashable, float]) -> tuple[Vector, Matrix]:
    """The number of the bucket, and the inputs of the linear models."""
    number, inputs = x.get(column.names[0], np.nan), [[x.get(name, np.nan) for name in column.inputs]]
    return np.array([number], dtype=np.float64), np.array(inputs, dtype=np.float64)


def _of_rows(column: IdColumn, X: Matrix, columns: Columns) -> tuple[Vector, Matrix]:
    """The same for rows."""
    number = X[:, columns.index[column.names[0]]]
    return np.ascontiguousarray(number), np.ascontiguousarray(X[:, _places(column.inputs, columns)])


def _places(names: Sequence[str], columns: Columns) -> list[int]:
    return [columns.index[name] for name in names]


class WithIds(ABC):
    """A core that may have columns of many categories."""

    ids: IdStatistics | None = None  # once there are any
    columns: Columns
    codes: ClassVar[int]  # numbers that describe a target; 0 where there are no statistics
    _row_before: Mapping[Hashable, float]  # the last row of features, as the encoder made it

    def _add_ids(self, new: Sequence[Hashable]) -> None:
        if self.ids is None and self.codes and has_ids(new):
            self.ids = IdStatistics(self.codes)
        if self.ids is not None:
            self.ids.add_features(new, self.columns)

    def with_ids(self, X: Matrix) -> Matrix:
        """Rows with the statistics of columns of many categories, for a prediction."""
        return X if self.ids is None else self.ids.rows(X, self.columns)

    @contextmanager
    def learning_ids(self, X: Matrix, y: Sequence[Hashable] | Vector, weight: Vector | None) -> Iterator[Matrix]:
        """The same for rows that are learned, each before the next; after an error nothing has changed."""
        if self.ids is None:
            yield X
            return
        before = self.ids.before(X, self.columns)
        try:
            yield self.ids.learn_rows(X, self.columns, self._codes(y), weight)
        except BaseException:  # also too little memory, or Ctrl-C
            self.ids.restore(before)
            raise

    def learned_ids(self, X: Matrix, y: Any, weight: Vector | None) -> Matrix:
        """The same for rows whose features are learned in one or more passes."""
        with self.learning_ids(X, y, weight) as rows:
            return rows

    @abstractmethod
    def _codes(self, y: Any) -> Matrix:
        """(rows, codes): what is known about targets of a column of many categories is the mean of these."""

    def _learn_ids(self, y: Any, weight: float) -> None:
        """Learn the target of the row that `row` returned last."""
        if self.ids is not None:  # most callers have looked, to save a call
            self.ids.learn_features(self._row_before, self._codes([y]), weight)

    def row_with_ids(self, x: Row) -> Row:
        """The same for one row of features, which may be learned next."""
        self._row_before = x
        return x if self.ids is None else self.ids.features(x)
