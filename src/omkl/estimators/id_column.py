"""Columns of many categories: what is known about the targets of each, in the place of its number.

An encoder gives each value of such a column a bucket, the hash of its text, and writes it to every feature that
`omkl.names.id_features` lists. A core replaces these by statistics of the rows of that bucket that it has learned: how
many there were, the mean of their targets, and what a linear model of them predicts from the other features. Only rows
before a row count for it. Memory is bounded: there are only so many buckets.
"""

import math
from collections.abc import Hashable, Iterable, Sequence

import numpy as np

from omkl.arrays import Vector
from omkl.names import ID_PARTS, id_features

INPUTS = 16  # features that the linear models of a column use
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

    A bucket is (count, mean of the codes, linear model of each code, variances of the weights). Its model starts at 0
    with variance 1, around the mean of all targets, and takes a Kalman filter's step for each row, of which only the
    variances, not the covariances, are kept; the noise has variance 1, and inputs are standardised.
    """

    def __init__(self, own: str, codes: int) -> None:
        self.own, self.codes = own, codes
        self.names = id_features(own, codes)
        self.inputs: list[str] = []  # features of the linear models
        self.scaling = np.zeros((3, INPUTS))
        self.overall = np.zeros(1 + codes)  # count and mean of the codes of all rows
        self.buckets: dict[int, Vector] = {}

    @property
    def start(self) -> Vector:
        """A bucket without rows."""
        bucket = np.zeros(bucket_size(self.codes))
        bucket[-1 - INPUTS :] = 1.0
        return bucket

    def add_inputs(self, names: Sequence[Hashable]) -> None:
        """Let the linear models use features that have become known, as long as there is room."""
        made = (f"{self.own}=", *ID_PARTS)
        texts = [str(name) for name in names]
        new = [text for text in texts if not text.startswith(made) and text not in self.inputs]
        self.inputs += new[: INPUTS - len(self.inputs)]

    def _standardised(self, x: Vector) -> Vector:
        """1, and the inputs, 0 where one is missing or has not varied."""
        count, mean, squares = self.scaling[:, : len(x)]
        z = np.zeros(1 + INPUTS)
        z[0] = 1.0
        known = (squares > 0) & ~np.isnan(x)
        deviation = np.sqrt(np.divide(squares, count, out=np.ones(len(x)), where=known))
        np.divide(x - mean, deviation, out=z[1 : 1 + len(x)], where=known)
        return np.clip(z, -FARTHEST, FARTHEST, out=z)

    def _predicted(self, bucket: Vector, z: Vector) -> Vector:
        """What the models of a bucket predict, for each code."""
        weights = bucket[1 + self.codes : -1 - INPUTS].reshape(self.codes, -1)
        out: Vector = self.overall[1:] + (weights * z).sum(axis=1)
        return out

    def values(self, number: float, x: Vector) -> list[float]:
        """The features of a row in the order of `names`; one without a bucket is like one whose bucket is new."""
        bucket = self.buckets.get(-1 if number != number else int(number))
        bucket = self.start if bucket is None else bucket
        count, means = bucket[0], bucket[1 : 1 + self.codes]
        means = (count * means + self.overall[1:]) / (count + 1)
        fits = self._predicted(bucket, self._standardised(x))
        out = [math.log1p(count)]
        for pair in zip(means.tolist(), fits.tolist(), strict=True):
            out += pair
        return out

    def learn(self, number: float, x: Vector, code: Vector, weight: float) -> None:
        """Learn a row."""
        if weight == 0:
            return
        if number == number:
            place = int(number)
            bucket = self.start if place not in self.buckets else self.buckets[place].copy()
            z = self._standardised(x)
            error = code - self._predicted(bucket, z)
            variances = bucket[-1 - INPUTS :]
            gain = variances * z
            step = gain / ((gain * z).sum() + 1 / weight)
            weights = bucket[1 + self.codes : -1 - INPUTS].reshape(self.codes, -1)
            weights += error[:, None] * step
            variances -= step * gain
            _add_to_mean(bucket[: 1 + self.codes], code, weight)
            self.buckets[place] = bucket
        _add_to_mean(self.overall, code, weight)
        known = ~np.isnan(x)
        count, mean, squares = self.scaling[:, : len(x)]
        count += weight * known
        difference = np.where(known, x - mean, 0.0)
        mean += np.divide(weight * difference, count, out=np.zeros(len(x)), where=known)
        squares += weight * difference * np.where(known, x - mean, 0.0)


def _add_to_mean(record: Vector, code: Vector, weight: float) -> None:
    record[0] += weight
    record[1:] += (weight / record[0]) * (code - record[1:])


def bucket_size(codes: int) -> int:
    return 1 + codes + (codes + 1) * (1 + INPUTS)
