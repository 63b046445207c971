"""GraphMKL's scaling: inputs and targets in raw units become standardised ones."""

from typing import NamedTuple

import numpy as np

from omkl.algorithms.base import Task
from omkl.algorithms.graph_mkl.constants import (
    BLOCK_CLIP,
    BLOCK_DIVISOR,
    BLOCK_ROWS,
    BLOCK_VALUES,
    CLIP,
    CLIP_LINEAR,
    FIRST_CHANGE_MISFIT,
    FIRST_ROWS,
    LARGEST_VALUE,
    MIN_DEVIATION,
    MIN_RELATIVE_DEVIATION,
    MISFIT,
)
from omkl.algorithms.graph_mkl.problem import Problem
from omkl.arrays import Gappy, Index, Matrix, Vector


class Scaling(NamedTuple):
    """Location and scale of inputs and targets; a missing value is NaN."""

    mean: Gappy  # (d,)   of the inputs; NaN: not known yet
    scale: Vector  # (d,)  1 / standard deviation of the inputs; 0: constant so far
    shift: Vector  # (K,)  mean of the target
    unit: float  #         its standard deviation; 0: not known yet; 1 for labels
    sparse: Vector = np.zeros(0)  # (S,)  1 / root mean square of the sparse inputs; 0: have been 0 so far


class FirstRows(NamedTuple):
    """The first rows of a set of experts, from which scaling and experts are fitted again."""

    X: Gappy  # (FIRST_ROWS, d)
    Y: Matrix  # (FIRST_ROWS, K)
    weight: Vector  # (FIRST_ROWS,)
    sparse: Matrix = np.zeros((FIRST_ROWS, 0))  # (FIRST_ROWS, S)  0 where a value is missing


class Block(NamedTuple):
    """Statistics of the latest rows, the target's first and then the inputs', by which the scaling is judged."""

    rows: Index  # (1 + d,)  in which there is a value
    mean: Vector  # (1 + d,)
    square: Vector  # (1 + d,)  sum of squared deviations from the mean


def init(problem: Problem) -> tuple[Scaling, FirstRows]:
    d, K, S = problem.V.shape[1], problem.K, problem.sparse
    unit = 0.0 if problem.task == "regression" else 1.0
    scaling = Scaling(np.zeros(d), np.zeros(d), np.zeros(K), unit, np.zeros(S))
    return scaling, FirstRows(
        np.zeros((FIRST_ROWS, d)), np.zeros((FIRST_ROWS, K)), np.zeros(FIRST_ROWS), np.zeros((FIRST_ROWS, S))
    )


def fresh_block(d: int) -> Block:
    return Block(np.zeros(1 + d, np.intp), np.zeros(1 + d), np.zeros(1 + d))


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


def split(problem: Problem, x: Vector) -> tuple[Vector, Vector]:
    """The inputs of the kernels, and the sparse ones, of which those that are missing are 0."""
    d = problem.V.shape[1]
    return x[:d], np.nan_to_num(x[d:], nan=0.0)


def scaled_sparse(scaling: Scaling, x: Vector) -> Vector:
    """Sparse inputs in units of their root mean square, clipped."""
    return np.clip(x * scaling.sparse, -CLIP_LINEAR, CLIP_LINEAR)  # (G58)


def standardised(scaling: Scaling, Y: Vector) -> Vector:
    """The target in the units that the experts' coefficients are learned in."""
    return (Y - scaling.shift) / (scaling.unit or 1.0)  # (G3)


def append_first(first: FirstRows, row: int, x: Vector, sparse: Vector, Y: Vector, weight: float) -> FirstRows:
    """The first rows with one more; nothing is added once they are full."""
    if row >= FIRST_ROWS:
        return first
    first = FirstRows(*(a.copy() for a in first))
    first.X[row], first.Y[row], first.weight[row], first.sparse[row] = x, Y, weight, sparse
    return first


def estimated(task: Task, scaling: Scaling, X: Matrix, Y: Matrix, weight: Vector) -> Scaling:
    """The scaling by all of these rows; the target's unit stays where the target is constant."""
    present = ~np.isnan(X)
    counts = np.maximum(present.sum(axis=0), 1)
    mean = np.where(present.any(axis=0), np.nansum(X, axis=0) / counts, np.nan)  # (G2)
    scale = inverse(np.sqrt(np.nansum((X - mean) ** 2, axis=0) / counts), mean)  # (G2)
    rms = np.sqrt(np.nansum(X**2, axis=0) / len(X))
    absent = (scale == 0) & (2 * present.sum(axis=0) <= len(X)) & (rms > MIN_DEVIATION)  # (G2)
    mean = np.where(absent, 0.0, mean)  # (G2)
    scale = np.where(absent, inverse(rms, np.zeros(len(rms))), scale)  # (G2)
    shift = Y.mean(axis=0) if task == "regression" else weight @ Y / weight.sum()  # (G3)
    unit = scaling.unit
    if task == "regression":
        deviation = np.sqrt(np.mean((Y - shift) ** 2, axis=0))
        unit = float(deviation[0]) if inverse(deviation, shift)[0] > 0 else unit  # (G3)
    return Scaling(mean, scale, shift, unit, scaling.sparse)


def estimated_sparse(scaling: Scaling, X: Matrix) -> Scaling:
    """The scaling of sparse inputs by all of these rows."""
    rms = np.sqrt((X**2).sum(axis=0) / np.maximum(np.count_nonzero(X, axis=0), 1))
    return scaling._replace(sparse=inverse(rms, np.zeros(len(rms))))  # (G58)


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


def update_sparse(scaling: Scaling, x: Vector) -> Scaling:
    """After a row between refits: a sparse input that was 0 so far has its first value."""
    return scaling._replace(
        sparse=np.where(scaling.sparse == 0, inverse(np.abs(x), np.zeros(len(x))), scaling.sparse)
    )  # (G59)


def with_unit(scaling: Scaling, y: float) -> Scaling:
    """Before a row between refits is learned: a target that was constant so far takes its first move as its unit."""
    if scaling.unit:
        return scaling
    gap = abs(y - scaling.shift)
    return scaling._replace(unit=float(gap[0]) if inverse(gap, scaling.shift)[0] > 0 else 0.0)  # (G50)


# Whether the scaling fits what has come since


def update_block(block: Block, task: Task, scaling: Scaling, x: Vector, y: float) -> Block:
    """With one more row. Labels are counted and not judged."""
    center, scale = center_and_scale(task, scaling)
    values = np.append(y if task == "regression" else 0.0, x)
    present = ~np.isnan(values)
    margin = BLOCK_CLIP / np.where(scale > 0, scale, 1.0)
    clipped = np.where(scale > 0, np.clip(values, center - margin, center + margin), values)  # (G51)
    rows = block.rows + present
    gap = np.where(present, clipped - block.mean, 0.0)
    mean = block.mean + gap / np.maximum(rows, 1)  # (G51)
    square = block.square + gap * np.where(present, clipped - mean, 0.0)  # (G51)
    return Block(rows, mean, square)


def is_over(block: Block, age: int) -> bool:
    """Whether a set of this age is to be judged by these rows."""
    return bool(block.rows[0] >= max(BLOCK_ROWS, age // BLOCK_DIVISOR))  # (G52)


def fits(block: Block, task: Task, scaling: Scaling, first: FirstRows) -> bool:
    """Whether the scale is about that of the block, and for the target the location too.

    A column that is constant in the block may have any scale. An input may move on, as a date does.
    """
    center, scale = center_and_scale(task, scaling)
    deviation = np.sqrt(block.square / np.maximum(block.rows, 1))
    ratio = deviation * scale
    varies = inverse(deviation, block.mean) > 0
    constant = np.append(False, estimated(task, scaling, first.X, first.Y, first.weight).scale == 0)
    most = np.where(constant, FIRST_CHANGE_MISFIT, MISFIT)
    wrong = varies & ((ratio > most) | (MISFIT * ratio < 1))  # (G52)
    wrong[0] |= np.abs(block.mean - center)[0] * scale[0] > MISFIT  # (G52)
    return not bool((wrong & (scale > 0) & (block.rows >= BLOCK_VALUES)).any())


def center_and_scale(task: Task, scaling: Scaling) -> tuple[Vector, Vector]:
    """(1 + d,) each: of the target and the inputs; the scale is 0 where it is not known, and for labels."""
    number = task == "regression"
    unit = scaling.unit if number else 0.0
    center = np.append(scaling.shift[0] if number else 0.0, np.nan_to_num(scaling.mean))
    return center, np.append(1 / unit if unit else 0.0, scaling.scale)
