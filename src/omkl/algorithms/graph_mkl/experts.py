"""GraphMKL's experts: how each predicts, and how it learns from one row.

On the random features of every kernel there are one recursive least squares and a few normalised gradient experts; on
the inputs themselves one least squares. For labels the experts on the inputs, one of them with their squares, are
logistic and learn by Newton steps. Memory experts (`memory.py`) have no coefficients.
"""

from typing import NamedTuple

import numpy as np

from omkl.algorithms.descent import TOO_FAR
from omkl.algorithms.graph_mkl import least_squares
from omkl.algorithms.graph_mkl.constants import (
    CLIP_LINEAR,
    LABEL_LEVERAGE,
    MAX_SLOPE,
    MAX_TEMPERATURE,
    MIN_CURVATURE,
    MIN_TEMPERATURE,
    MIN_VARIANCE,
    NEWTON_STEPS,
    NOISE_ROUNDS,
    SPARSE_RIDGE,
    SQUARE_SCALE,
    START_NOISE,
)
from omkl.algorithms.graph_mkl.least_squares import Counting
from omkl.algorithms.graph_mkl.memory import Window, predict_from_memory, within_range
from omkl.algorithms.graph_mkl.problem import Problem
from omkl.algorithms.graph_mkl.scaling import Scaling, scaled, scaled_sparse, split, standardised
from omkl.algorithms.weights import normalised
from omkl.arrays import Index, Mask, Matrix, Tensor, Vector, padded
from omkl.features import features


class Coefficients(NamedTuple):
    """Of the experts that have any. P = R' R is the covariance of a least squares, in units of the noise."""

    R: Tensor  # (maps, n, n)          lower triangular, n = 2D
    theta: Tensor  # (maps, B, K, n)   of the least squares, then of the gradient experts
    R_linear: Matrix  # (d + 1, d + 1), or with many inputs (1, d + 1), its diagonal
    theta_linear: Matrix  # (K, d + 1)
    R_sparse: Matrix  # (1, S)         of the linear expert too: the diagonal for the sparse inputs
    theta_sparse: Matrix  # (K, S)


class Noise(NamedTuple):
    """Of every expert."""

    level: Vector  # (E,)   variance of its errors in units of the target; for labels the temperature
    rounds: Index  # (E,)   in which it was evaluated


class Judged(NamedTuple):
    """The errors of every expert in the last row that was no copy, for its copies."""

    gain: Vector  # (E,)  its log-likelihood relative to the mixture's; 0: none
    signal: Vector  # (E,)  about the noise; -1 for numbers, or 0 for labels: none
    step: Vector  # (E + 1,)  features of the step that the stacking of labels took, and its target; 0 for numbers


class Evaluation(NamedTuple):
    """One expert's prediction, and what its update needs."""

    z: Vector  # its features; none for memory experts
    phi: Vector  # R z; none for experts without R
    leverage: float  # z' P z, 0 for gradient experts
    mean: Vector  # (K,) prediction in the target's own units
    variance: float  # of it


def fresh_coefficients(problem: Problem) -> Coefficients:
    """As before the first row: theta = 0 and P = I / ridge."""
    (_, d, D), K = problem.V.shape, problem.K
    n = 2 * D
    c = Coefficients(
        R=padded(problem.maps, n, n),
        theta=padded(problem.maps, problem.learners, K, n),
        R_linear=padded(problem.rows_linear, d + 1),
        theta_linear=padded(K, d + 1),
        R_sparse=np.full((1, problem.sparse), SPARSE_RIDGE**-0.5),  # (G60)
        theta_sparse=np.zeros((K, problem.sparse)),
    )
    for R, ridge in zip((*c.R, c.R_linear), problem.ridges, strict=True):
        # of a single row, a diagonal, np.eye makes a row of ones
        R[...] = np.eye(len(R)) / np.sqrt(ridge)  # (G9)
    return c


def fresh_noise(problem: Problem) -> Noise:
    return Noise(np.full(problem.experts, START_NOISE), np.zeros(problem.experts, np.intp))


def no_judgement(problem: Problem) -> Judged:
    E, nothing = problem.experts, -1.0 if problem.task == "regression" else 0.0
    return Judged(np.zeros(E), np.full(E, nothing), np.zeros(E + 1))


# Predictions


def with_squares(xs: Vector, n: int) -> Vector:
    """(n,): 1, the inputs, and their squares less the mean of these; as many inputs as fit."""
    z, places, root = np.zeros(n), (n - 1) // 2, np.sqrt(len(xs))
    some = xs[:places]
    z[0], z[1 : 1 + len(some)] = 1, some
    z[1 + places : 1 + places + len(some)] = (root * some**2 - 1 / root) / SQUARE_SCALE  # (G6)
    return z


def features_of(problem: Problem, xs: Vector, xs_linear: Vector, e: int) -> Vector:
    """z of expert e, from inputs scaled for the kernels and for the linear expert; a memory expert has none.

    Those of the linear expert end with the sparse inputs.
    """
    if e < problem.on_kernels:
        return features(problem.V[e // problem.learners], xs).ravel()
    if e == problem.on_kernels:
        return np.append(1.0, xs_linear)  # (G5)
    return with_squares(xs, 2 * problem.V.shape[2]) if e < problem.first_memory else np.zeros(0)


def coefficients_of(problem: Problem, c: Coefficients, e: int) -> tuple[Matrix | None, Matrix]:
    """R and theta of expert e, views; R is None for a gradient expert."""
    if e == problem.on_kernels:
        return c.R_linear, c.theta_linear
    if e > problem.on_kernels:
        return c.R[-1], c.theta[-1, 0]
    i, b = divmod(e, problem.learners)
    return (None if b else c.R[i]), c.theta[i, b]


def evaluate(
    problem: Problem,
    c: Coefficients,
    noise: Noise,
    scaling: Scaling,
    window: Window,
    age: int,
    x: Vector,
    mask: Mask,
    large: Matrix,
) -> dict[int, Evaluation]:
    """The evaluations of the experts in `mask`, of a set that has learned `age` rows.

    `large`: what the large experts predict.
    """
    x, sparse = split(problem, x)
    xs = scaled(scaling, x)
    xs_linear = np.append(scaled(scaling, x, CLIP_LINEAR), scaled_sparse(scaling, sparse))
    unit = scaling.unit or 1.0
    out = {}
    for e in map(int, np.flatnonzero(mask)):
        z, phi, leverage = features_of(problem, xs, xs_linear, e), np.zeros(0), 0.0
        if e >= problem.first_large:
            mean = large[e - problem.first_large]
        elif e >= problem.first_memory:
            mean, leverage = predict_from_memory(window, age, xs, problem.widths[e - problem.first_memory])
        else:
            R, theta = coefficients_of(problem, c, e)
            if R is not None:
                phi = least_squares.factor_times(R, z[: theta.shape[1]])
                if e == problem.on_kernels:
                    phi = np.append(phi, c.R_sparse[0] * z[theta.shape[1] :])
                leverage = float(phi @ phi)  # (G9)
            mean = scaling.shift + unit * product(problem, c, e, z)  # (G7)
            if problem.task == "regression" and e == problem.on_kernels:
                mean = within_range(window, age, mean)
        counted = leverage if problem.task == "regression" else min(leverage, LABEL_LEVERAGE)  # (G13)
        variance = float((noise.level[e] * (1 + counted) + MIN_VARIANCE) * unit**2)  # (G13)
        out[e] = Evaluation(z, phi, leverage, mean, variance)
    return out


def product(problem: Problem, c: Coefficients, e: int, z: Vector) -> Vector:
    """(K,): theta z of expert e."""
    _, theta = coefficients_of(problem, c, e)
    out: Vector = theta @ z[: theta.shape[1]]
    return out + c.theta_sparse @ z[theta.shape[1] :] if e == problem.on_kernels else out


def label_probabilities(mean: Vector, variance: float) -> Vector:
    """Of the labels, from a Gaussian of this variance around each vector of zeros with a one."""
    return normalised(mean / variance)  # (G14)


# Learning


def update(
    problem: Problem, c: Coefficients, scaling: Scaling, evaluations: dict[int, Evaluation], Y: Vector, row: Counting
) -> Coefficients:
    """The coefficients after a row with target Y."""
    c = Coefficients(*(a.copy() for a in c))
    target = standardised(scaling, Y)
    for e, evaluation in evaluations.items():
        if e < problem.first_memory:
            R, theta = coefficients_of(problem, c, e)
            if R is None:
                step = problem.steps[e % problem.learners - 1]
                gap = target - theta @ evaluation.z
                theta += gradient_step(step, row.weight) * np.outer(gap, evaluation.z)  # (G15)
                continue
            n, q = theta.shape[1], problem.min_leverage
            own, rest = evaluation.phi[:n], evaluation.phi[n:]
            parts = [(R, theta, own, float(rest @ rest))]
            if len(rest):
                parts.append((c.R_sparse, c.theta_sparse, rest, float(own @ own)))
            predicted = product(problem, c, e, evaluation.z)
            if problem.task == "classification" and e >= problem.on_kernels:
                margin, label = scaling.shift + predicted, target + scaling.shift
                move, counted = newton_steps(margin, label, evaluation.leverage, row, q)
                for factor, coefficients, phi, others in parts:
                    coefficients += np.outer(move, least_squares.P_times(factor, phi))
                    factor[...] = least_squares.downdated(factor, phi, counted, others)
            else:
                for factor, coefficients, phi, others in parts:
                    factor[...], coefficients[...] = least_squares.update(
                        factor, coefficients, phi, target - predicted, row, q, others
                    )
    return c


def gradient_step(a: float, weight: float) -> float:
    """The part of the gap that a gradient expert of step length a closes at a row of this weight."""
    return weight * a if weight <= 1 else 1 - (1 - a) ** weight  # (G15)


def newton_steps(
    margin: Vector, label: Vector, leverage: float, row: Counting, min_leverage: float
) -> tuple[Vector, float]:
    """Logistic regression: least squares in which a row counts by the curvature of the loss.

    Returns the multiple of P z that is added to the coefficients of each label, and how often the row counts for P. A
    row of a larger weight takes several steps, in which P z only changes its length.
    """
    steps = min(np.ceil(row.weight), NEWTON_STEPS) if row.weight > 1 else 1.0
    each, move, length, counted = row.weight / steps, np.zeros(len(label)), 1.0, 0.0
    for _ in range(int(steps)):
        p = label_probabilities(margin, 1.0)  # (G21)
        curvature = max(float(p.max() * (1 - p.max())), MIN_CURVATURE)  # (G21)
        q = length * leverage
        moved = each * length * (label - p) / (1 + curvature * each * q)  # (G21)
        move, margin = move + moved, margin + moved * leverage
        now = 0.0 if row.again else least_squares.counts(q, curvature * each, min_leverage)
        counted, length = counted + now, length / (1 + now * q)
    return move, counted


def update_noise(
    problem: Problem,
    noise: Noise,
    scaling: Scaling,
    evaluations: dict[int, Evaluation],
    y: float,
    relative: float,
) -> tuple[Noise, Vector]:
    """The noise after a row of this relative weight, of the experts evaluated, and what the row adds to it.

    Nothing is learned while the target's unit is not known.
    """
    signal = no_judgement(problem).signal
    if not scaling.unit:
        return noise, signal
    noise = Noise(noise.level, noise.rounds.copy())
    for e, evaluation in evaluations.items():
        noise.rounds[e] += 1
        says = squared_error if problem.task == "regression" else temperature_slope
        signal[e] = says(evaluation, scaling.unit, y)
    return moved_noise(problem, noise, signal, relative)


def moved_noise(problem: Problem, noise: Noise, signal: Vector, relative: float) -> tuple[Noise, Vector]:
    """The noise moved by what a row, or a copy of it, says, and what is left of that for the next copy."""
    r = NOISE_ROUNDS[problem.task == "classification"]
    a = np.maximum(1 - problem.memory, r / (noise.rounds + r))  # (G22)
    share = 1 - (1 - a) ** relative  # (G22)
    if problem.task == "regression":
        level = np.where(signal >= 0, (1 - share) * noise.level + share * signal, noise.level)  # (G23)
        return noise._replace(level=level), signal
    level = np.clip(noise.level * np.exp(-share * signal), MIN_TEMPERATURE, MAX_TEMPERATURE)  # (G24)
    return noise._replace(level=level), signal * (1 - share)


def squared_error(evaluation: Evaluation, unit: float, y: float) -> float:
    gap = float(np.clip((y - evaluation.mean[0]) / unit, -TOO_FAR, TOO_FAR))
    return gap**2 / (1 + evaluation.leverage)  # (G23)


def temperature_slope(evaluation: Evaluation, unit: float, y: float) -> float:
    """Of the log-likelihood of a label, in the logarithm of the temperature.

    Squared errors in its place would make the probabilities far too extreme.
    """
    mean, v = evaluation.mean, evaluation.variance
    slope = (mean[int(y)] - label_probabilities(mean, v) @ mean) / v  # (G24)
    return float(np.clip(slope, -MAX_SLOPE, MAX_SLOPE))  # (G24)


def rescaled_noise(noise: Noise, judged: Judged, before: Scaling, now: Scaling) -> tuple[Noise, Judged]:
    """The noise, and what the last row added to it, in the target's new unit."""
    if before.unit == now.unit or not before.unit:
        return noise, judged
    ratio = (before.unit / now.unit) ** 2
    return noise._replace(level=noise.level * ratio), judged._replace(signal=judged.signal * ratio)
