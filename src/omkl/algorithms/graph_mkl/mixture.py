"""GraphMKL's mixture: experts weighted by the evidence for them, and stacking on top of it."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from omkl.algorithms.descent import TOO_FAR
from omkl.algorithms.graph_mkl import least_squares
from omkl.algorithms.graph_mkl.constants import (
    LABEL_STACK_CLIP,
    LABEL_STACK_RIDGE,
    MIN_PROBABILITY,
    STACK_CLIP,
    STACK_RIDGE,
    STUDENT_DEGREES,
)
from omkl.algorithms.graph_mkl.experts import Evaluation, label_probabilities
from omkl.algorithms.graph_mkl.least_squares import Counting
from omkl.algorithms.graph_mkl.problem import Problem
from omkl.algorithms.weights import normalised
from omkl.arrays import Mask, Matrix, Vector, padded

Evaluations = dict[int, Evaluation]  # of one set of experts, by the experts' numbers


class Stack(NamedTuple):
    """A least squares on the experts' differences from the mixture, or for labels a logistic regression on them."""

    R: Matrix  # (E, E)   lower triangular, P = R' R
    theta: Vector  # (E,)


def fresh_stack(problem: Problem) -> Stack:
    stack = Stack(padded(problem.experts, problem.experts), padded(problem.experts))
    ridge = STACK_RIDGE if problem.task == "regression" else LABEL_STACK_RIDGE
    stack.R[...] = np.eye(problem.experts) / np.sqrt(ridge)
    return stack


# The mixture


def mixture_weights(evidence: Sequence[Vector], masks: Sequence[Mask]) -> list[Vector]:
    """(E,) for each set: the weights of the experts in its mask, which sum to 1 over the sets; 0 for the others."""
    flat = normalised(np.concatenate([e[mask] for e, mask in zip(evidence, masks, strict=True)]))  # (G25)
    weights = [np.zeros(len(e)) for e in evidence]
    start = 0
    for weight, mask in zip(weights, masks, strict=True):
        weight[mask] = flat[start : start + mask.sum()]
        start += mask.sum()
    return weights


def mix(problem: Problem, evaluations: Sequence[Evaluations], masks: Sequence[Mask], weights: list[Vector]) -> Vector:
    """(mean, standard deviation, noise) of the mixture, or the probabilities of the labels.

    The noise is the part of the standard deviation that is the same for every row.
    """
    counted = [
        (weight[e], evaluation)
        for part, mask, weight in zip(evaluations, masks, weights, strict=True)
        for e, evaluation in part.items()
        if mask[e]
    ]
    if problem.task == "classification":
        p: Vector = np.sum([w * label_probabilities(e.mean, e.variance) for w, e in counted], axis=0)  # (G26)
        return p
    mean = sum(w * e.mean[0] for w, e in counted)  # (G26)
    spread = sum(w * (e.variance + (e.mean[0] - mean) ** 2) for w, e in counted)  # (G26)
    noise = sum(w * e.variance / (1 + e.leverage) for w, e in counted)  # (G40)
    return np.array([mean, np.sqrt(spread), np.sqrt(noise)])


def log_likelihood(problem: Problem, evaluation: Evaluation, y: float) -> float:
    """Of y under one expert: a Student t, or the probability of the label."""
    mean, v = evaluation.mean, evaluation.variance
    if problem.task == "classification":
        return float(np.log(np.maximum(label_probabilities(mean, v)[int(y)], MIN_PROBABILITY)))  # (G27)
    square = min((y - mean[0]) ** 2 / (STUDENT_DEGREES * v), TOO_FAR**2)
    return float(-0.5 * np.log(v) - (STUDENT_DEGREES + 1) / 2 * np.log1p(square))  # (G27)


def gains(problem: Problem, evaluations: Sequence[Evaluations], weights: list[Vector], y: float) -> list[Vector]:
    """(E,) of each set: log-likelihoods of y relative to that of the mixture; 0 for experts not evaluated."""
    scores = [{e: log_likelihood(problem, evaluation, y) for e, evaluation in part.items()} for part in evaluations]
    counted = [
        (score, weight[e])
        for part, weight in zip(scores, weights, strict=True)
        for e, score in part.items()
        if weight[e] > 0
    ]
    score, share = np.array([s for s, _ in counted]), np.array([w for _, w in counted])
    joint = score.max() + np.log(share @ np.exp(score - score.max()))  # (G28)
    out = [np.zeros(problem.experts) for _ in evaluations]
    for part, gain in zip(scores, out, strict=True):
        for e, own in part.items():
            gain[e] = own - joint  # (G28)
    return out


def moved_evidence(problem: Problem, evidence: Vector, gain: Vector, relative: float, mask: Mask) -> Vector:
    """The evidence after a row of this relative weight, a discounted sum of gains, for the experts in the mask."""
    kept = (1 - problem.discount) ** relative  # (G28)
    rate = (1 - problem.discount) * (1 - kept) / problem.discount if problem.discount > 0 else relative  # (G28)
    return np.where(mask, kept * evidence + rate * gain, evidence)  # (G28)


# Residual stacking


def differences(problem: Problem, evaluations: Evaluations, mask: Mask, mixed: Vector) -> Vector:
    """(E,): how far the experts in the mask are from the mixture, in its standard deviations; 0 for the others."""
    z = np.zeros(problem.experts)
    for e in map(int, np.flatnonzero(mask)):
        z[e] = (evaluations[e].mean[0] - mixed[0]) / (mixed[1] or np.inf)  # (G29)
    return np.clip(z, -STACK_CLIP, STACK_CLIP)


def stacked(stack: Stack, z: Vector, mixed: Vector) -> float:
    """The mixture, corrected by the residual stacking on the incumbent's experts."""
    correction = np.clip(stack.theta @ z, -STACK_CLIP, STACK_CLIP)  # (G30)
    return float(mixed[0] + mixed[1] * correction)  # (G30)


def update_stack(problem: Problem, stack: Stack, z: Vector, mixed: Vector, y: float, weight: float) -> Stack:
    """The stacking after y: its target is the mixture's residual."""
    row = Counting(min(weight, 1.0))
    target = np.clip((y - mixed[0]) / (mixed[1] or np.inf), -STACK_CLIP, STACK_CLIP)  # (G31)
    theta = stack.theta[None]
    R, theta = least_squares.update(stack.R, theta, stack.R @ z, target - theta @ z, row, problem.min_leverage)
    return Stack(R, theta[0])


# Stacking of labels


def label_differences(problem: Problem, evaluations: Evaluations, mask: Mask, mixed: Vector) -> Matrix:
    """(E, K): how far the log-probabilities of the experts in the mask are from the mixture's; 0 for the others."""
    Z = np.zeros((problem.experts, problem.K))
    for e in map(int, np.flatnonzero(mask)):
        own = np.log(np.maximum(label_probabilities(evaluations[e].mean, evaluations[e].variance), MIN_PROBABILITY))
        Z[e] = own - np.log(np.maximum(mixed, MIN_PROBABILITY))  # (G61)
    return np.clip(Z, -LABEL_STACK_CLIP, LABEL_STACK_CLIP)  # (G61)


def stacked_labels(stack: Stack, Z: Matrix, mixed: Vector) -> Vector:
    """The mixture, corrected by the stacking on the incumbent's experts."""
    return normalised(np.log(np.maximum(mixed, MIN_PROBABILITY)) + stack.theta @ Z)  # (G62)


def label_step(stack: Stack, Z: Matrix, p: Vector, y: int) -> Vector:
    """(E + 1,): features and target of the step after label y, to which the stacking gave the probabilities p."""
    z = Z[:, y] - Z @ p  # (G63)
    return np.append(z, stack.theta @ z + 1)


def move_label_stack(problem: Problem, stack: Stack, step: Vector, relative: float) -> Stack:
    """The stacking of labels after a row of this relative weight, or a copy of it; for numbers a step is 0."""
    z, target = step[:-1], step[-1:]
    if not z.any():
        return stack
    theta = stack.theta[None]
    R, theta = least_squares.update(
        stack.R, theta, stack.R @ z, target - theta @ z, Counting(relative), problem.min_leverage
    )
    return Stack(R, theta[0])
