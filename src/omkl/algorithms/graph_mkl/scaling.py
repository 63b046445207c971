"""GraphMKL's scaling: inputs and targets in raw units become standardised ones."""

from typing import NamedTuple

import numpy as np

from omkl.algorithms.base import Task
from omkl.algorithms.graph_mkl.constants import (
    CLIP,
    FIRST_ROWS,
    LARGEST_VALUE,
    MIN_DEVIATION,
    MIN_RELATIVE_DEVIATION,
)
from omkl.algorithms.graph_mkl.problem import Problem
from omkl.arrays import Gappy, Matrix, Vector


class Scaling(NamedTuple):
    """Location and scale of inputs and targets; a missing value is NaN."""

    mean: Gappy  # (d,)   of the inputs; NaN: not known yet
    scale: Vector  # (d,)  1 / standard deviation of the inputs; 0: constant so far
    shift: Vector  # (K,)  mean of the target
    unit: float  #         its standard deviation; 0: not known yet; 1 for labels


class FirstRows(NamedTuple):
    """The first rows of a set of experts, from which scaling and experts are fitted again."""

    X: Gappy  # (FIRST_ROWS, d)
    Y: Matrix  # (FIRST_ROWS, K)
    weight: Vector  # (FIRST_ROWS,)


def init(problem: Problem) -> tuple[Scaling, FirstRows]:
    d, K = problem.V.shape[1], problem.K
    scaling = Scaling(np.zeros(d), np.zeros(d), np.zeros(K), 0.0 if problem.task == "regression" else 1.0)
    return scaling, FirstRows(np.zeros((FIRST_ROWS, d)), np.zeros((FIRST_ROWS, K)), np.zeros(FIRST_ROWS))


def bounded(x: Vector) -> Vector:
    """Values so large that their squares overflow are taken as LARGEST_VALUE."""
    return np.clip(x, -LARGEST_VALUE, LARGEST_VALUE)


def target_vector(problem: Problem, y: float) -> Vector:
    """The target as (K,): the number itself, or zeros with a one at the label."""
    return np.array([y]) if problem.task == "regression" else np.eye(problem.K)[int(y)]


def scaled(scaling: Scaling, x: Vector, clip: float = CLIP) -> Vector:
    """Standardised, clipped, of length about 1; a missing value is the mean."""
    out: Vector = np.clip((x - scaling.mean) * scaling.scale, -clip, clip) / np.sqrt(len(x))  # (G1)
    return np.nan_to_num(out, nan=0.0)


def standardised(scaling: Scaling, Y: Vector) -> Vector:
    """The target in the units that the experts' coefficients are learned in."""
    return (Y - scaling.shift) / (scaling.unit or 1.0)  # (G3)


def append_first(first: FirstRows, row: int, x: Vector, Y: Vector, weight: float) -> FirstRows:
    """The first rows with one more; nothing is added once they are full."""
    if row >= FIRST_ROWS:
        return first
    first = FirstRows(first.X.copy(), first.Y.copy(), first.weight.copy())
    first.X[row], first.Y[row], first.weight[row] = x, Y, weight
    return first


def estimated(task: Task, scaling: Scaling, X: Matrix, Y: Matrix) -> Scaling:
    """The scaling by all of these rows; the target's unit stays where the target is constant."""
    present = ~np.isnan(X)
    counts = np.maximum(present.sum(axis=0), 1)
    mean = np.where(present.any(axis=0), np.nansum(X, axis=0) / counts, np.nan)  # (G2)
    scale = inverse(np.sqrt(np.nansum((X - mean) ** 2, axis=0) / counts), mean)  # (G2)
    shift = Y.mean(axis=0)  # (G3)
    unit = scaling.unit
    if task == "regression":
        unit = float(np.sqrt(np.mean((Y - shift) ** 2))) or unit  # (G3)
    return Scaling(mean, scale, shift, unit)


def inverse(deviation: Vector, mean: Vector) -> Vector:
    """1 / deviation; 0 where the deviation is no more than rounding."""
    real = (deviation > MIN_RELATIVE_DEVIATION * np.abs(np.nan_to_num(mean))) & (deviation > MIN_DEVIATION)  # (G2)
    return np.where(real, 1 / np.where(real, deviation, 1.0), 0.0)


def update_scaling(scaling: Scaling, x: Vector) -> Scaling:
    """After a row between refits: a column that was constant so far takes its first move as its deviation."""
    mean = np.where(np.isnan(scaling.mean), x, scaling.mean)
    gap = np.abs(x - mean)
    scale = np.where((scaling.scale == 0) & ~np.isnan(gap), inverse(gap, mean), scaling.scale)  # (G4)
    return scaling._replace(mean=mean, scale=scale)
