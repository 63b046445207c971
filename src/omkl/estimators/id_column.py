"""Columns of many categories: what is known about the targets of each, in the place of its number.

An encoder gives each value of such a column a bucket, the hash of its text, and writes it to every feature that
`omkl.names.id_features` lists. A core replaces these by statistics of the rows of that bucket that it has learned: how
many there were, the mean of their targets, and what a linear model of them predicts from the other features. Only rows
before a row count for it. Memory is bounded: there are only so many buckets.
"""

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from omkl.arrays import Index, Matrix, Vector
from omkl.engine import id_rows
from omkl.names import BUCKETS, ID_PARTS, id_features

INPUTS = 16  # features that the linear models of a column use
DISTINCT = 64  # rows; of more it is found out how many buckets they have before memory is reserved
FARTHEST = 4.0  # standard deviations; inputs beyond count as so far, so that no single row decides a model
COUNT, MEAN, SQUARES = range(3)  # rows of the statistics of inputs
GOLDEN_ANGLE = math.pi * (3 - math.sqrt(5))
CODES = {"regression": 1, "classification": 2}  # numbers that describe a target
FIRST_CODES = ((0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0))


def label_code(index: int) -> tuple[float, float]:
    """A label as two numbers, by its place among the labels; a second label differs from the first in one alone."""
    angle = index * GOLDEN_ANGLE
    return FIRST_CODES[index] if index < len(FIRST_CODES) else (math.cos(angle), math.sin(angle))


def has_ids(names: Iterable[Hashable]) -> bool:
    """Whether there are features of a column of many categories, among those that an encoder has made."""
    return any(isinstance(name, str) and name.startswith(ID_PARTS[0]) for name in names)


class IdColumn:
    """The buckets of one column.

    A bucket's record is (count, mean of the codes, linear model of each code, variances of the weights). Its model
    starts at 0 with variance 1, around the mean of all targets, and takes a Kalman filter's step for each row, of which
    only the variances, not the covariances, are kept; the noise has variance 1, and inputs are standardised. Rows are
    learned by the engine (`engine/ids.hpp`), to which these arrays belong.
    """

    def __init__(self, own: str, codes: int) -> None:
        self.own, self.codes = own, codes
        self.names = id_features(own, codes)
        self.inputs: list[str] = []  # features of the linear models
        self.scaling = np.zeros((3, INPUTS))
        self.overall = np.zeros(1 + codes)  # count and mean of the codes of all rows
        self.fill({})

    def fill(self, buckets: Mapping[int, Vector]) -> None:
        """Let these be all buckets that have rows."""
        self.used = len(buckets)
        self.records = np.array(list(buckets.values()), dtype=np.float64).reshape(-1, bucket_size(self.codes))
        self.places = np.array(list(buckets), dtype=np.int64)  # the bucket of each record
        self.slots = np.full(BUCKETS, -1, dtype=np.int64)  # the record of each bucket, -1 for none
        self.slots[self.places] = np.arange(self.used)

    @property
    def buckets(self) -> dict[int, Vector]:
        """The records by their buckets, in the order in which these came."""
        return dict(zip(self.places[: self.used].tolist(), self.records[: self.used], strict=True))

    def add_inputs(self, names: Sequence[Hashable]) -> None:
        """Let the linear models use features that have become known, as long as there is room."""
        made = (f"{self.own}=", *ID_PARTS)
        texts = [str(name) for name in names]
        new = [text for text in texts if not text.startswith(made) and text not in self.inputs]
        self.inputs += new[: INPUTS - len(self.inputs)]

    def values(self, numbers: Vector, X: Matrix) -> Matrix:
        """(rows, names): the features of rows; one without a bucket is like one whose bucket is new."""
        return self._rows(numbers, X, None, None)

    def learn(self, numbers: Vector, X: Matrix, codes: Matrix, weight: Vector | None) -> Matrix:
        """The same for rows of which each is learned before the next."""
        new = len(numbers) if len(numbers) < DISTINCT else len(np.unique(numbers))
        if (least := min(self.used + new, BUCKETS)) > len(self.records):
            more = min(max(least, 2 * len(self.records)), BUCKETS) - len(self.records)
            records, places = np.pad(self.records, ((0, more), (0, 0))), np.pad(self.places, (0, more))
            self.records, self.places = records, places
        return self._rows(numbers, X, codes, weight)

    def _rows(self, numbers: Vector, X: Matrix, codes: Matrix | None, weight: Vector | None) -> Matrix:
        out = np.empty((len(numbers), len(self.names)))
        self.used = id_rows(
            numbers, X, codes, weight, FARTHEST, self.scaling, self.overall, self.slots, self.places, self.records,
            self.used, out,
        )  # fmt: skip
        return out

    def before(self, numbers: Vector) -> "Before":
        """What learning rows of these buckets will change, as it is now."""
        places = numbers[(numbers >= 0) & (numbers < BUCKETS)].astype(np.int64)
        slots = np.unique(self.slots[places])
        slots = slots[slots >= 0]
        return Before(self.scaling.copy(), self.overall.copy(), self.used, slots, self.records[slots])

    def restore(self, before: "Before") -> None:
        """Forget rows that were learned since."""
        self.scaling, self.overall, self.used = before.scaling, before.overall, before.used
        self.records[before.slots] = before.records
        self.slots[self.slots >= self.used] = -1


class Before(NamedTuple):
    """A column of many categories before rows were learned."""

    scaling: Matrix
    overall: Vector
    used: int
    slots: Index  # of the records that changed
    records: Matrix


def bucket_size(codes: int) -> int:
    return 1 + codes + (codes + 1) * (1 + INPUTS)
