"""Types and components shared by the generated streams."""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.signal import lfilter

from omkl.arrays import Matrix, Vector

ROWS = 2000
Rng = np.random.Generator
Pair = tuple[Matrix, Vector]
Maker = Callable[[Rng], Pair]

DAY, YEAR = 24, 365


def columns(*parts: Any) -> Matrix:
    return np.column_stack([np.asarray(part, float) for part in parts])


def slow(rng: Rng, keep: float) -> Vector:
    """A first-order autoregressive series with coefficient `keep`, mean 0 and variance 1."""
    return lfilter([np.sqrt(1 - keep**2)], [1, -keep], rng.standard_normal(ROWS + 500))[500:]


def late(series: Vector, by: int) -> Vector:
    """The series delayed by that many rows."""
    return np.concatenate((np.full(by, series[0]), series[:-by]))


def wave(t: Any, period: float) -> Vector:
    return np.sin(2 * np.pi * np.asarray(t, float) / period)


def drawn(rng: Rng, probabilities: Matrix) -> Vector:
    """A random label for each row, with these probabilities."""
    at = rng.random((len(probabilities), 1))
    return np.asarray(np.sum(at > np.cumsum(probabilities, axis=1)[:, :-1], axis=1), float)


def sticky(rng: Rng, labels: int, leave: float) -> Any:
    """Labels that stay the same for a while; each row changes with probability `leave`."""
    start = np.maximum.accumulate(np.where(rng.random(ROWS) < leave, np.arange(ROWS), 0))
    return rng.integers(labels, size=ROWS)[start]
