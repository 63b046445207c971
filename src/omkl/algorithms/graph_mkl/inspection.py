"""What there is to see of GraphMKL's state: rows that it keeps, experts that use no kernel, and the last change."""

import numpy as np

from omkl.algorithms.base import Replaced
from omkl.algorithms.graph_mkl import archive, large, selection
from omkl.algorithms.graph_mkl.constants import FIRST_ROWS, WINDOW
from omkl.algorithms.graph_mkl.problem import Problem
from omkl.algorithms.graph_mkl.scaling import Scaling
from omkl.algorithms.graph_mkl.state import ExpertSet, State
from omkl.algorithms.weights import normalised
from omkl.arrays import Mask, Matrix, Vector

MOVED, WIDENED = 1.0, 2.0  # an input has changed if its mean moved so many deviations, or its deviation so many times
MOVED_SHARE = 0.25  # and labels if the share of one moved so far


def recent_rows(problem: Problem, state: State, n: int) -> Matrix:
    """(rows, inputs): at most n of the rows learned last, unscaled; sparse inputs are missing from them."""
    part = state.sets[state.incumbent]
    if state.large.archive.rows and len(state.large.archive.y):
        kept = min(n, state.large.archive.rows, len(state.large.archive.y))
        X = archive.newest(state.large.archive, kept)[0]
    elif part.age <= FIRST_ROWS:
        X = part.first.X[: part.age][-n:]
    else:
        places = np.arange(part.age - min(n, part.age, WINDOW), part.age) % WINDOW
        X = unscaled(part.scaling, part.window.X[:, places].T)
    return np.hstack((X, np.full((len(X), problem.sparse), np.nan)))


def unscaled(scaling: Scaling, X: Matrix) -> Matrix:
    """Rows of the window in the units of the inputs; what was missing is the mean."""
    deviation = np.divide(1.0, scaling.scale, out=np.zeros(len(scaling.scale)), where=scaling.scale > 0)
    out: Matrix = scaling.mean + np.sqrt(X.shape[1]) * X * deviation
    return out


def expert_weights(problem: Problem, state: State) -> Vector:
    """(E,): of every expert in the incumbent's mixture; they sum to 1."""
    part = state.sets[state.incumbent]
    share, ready = selection.row_share(state.weights), large.ready(problem, state.large)
    mask = selection.counted(problem, part.selection, part.age, True, share, ready, part.noise.rounds)
    weight = np.zeros(problem.experts)
    weight[mask] = normalised(part.evidence[mask])
    return weight


def kernel_weights(problem: Problem, state: State) -> Vector:
    """(N,): of every kernel in the incumbent's mixture; experts on no kernel have the rest to 1."""
    weight = expert_weights(problem, state)
    out: Vector = weight[: problem.on_kernels].reshape(len(problem.V), -1).sum(axis=1)
    return out


def other_experts(problem: Problem, state: State) -> dict[str, float]:
    """The weights of the experts that use no kernel, by what they are."""
    weight = expert_weights(problem, state)
    linear, memory, first = problem.on_kernels, problem.first_memory, problem.first_large
    model = "linear model" if problem.task == "regression" else "logistic model"
    out = {model: float(weight[linear])}
    if problem.on_inputs > 1:
        out[f"{model} with squares"] = float(weight[linear + 1])
    if problem.widths:
        out["average of similar recent rows"] = float(weight[memory:first].sum())
    if problem.trees:
        out["boosted trees"] = float(weight[first])
    if problem.wide_experts:
        out["least squares on many random features"] = float(weight[problem.experts - problem.wide_experts :].sum())
    return out


def replaced(problem: Problem, state: State) -> Replaced | None:
    """When the incumbent took the place of other experts: when it began to learn, and what differed from before."""
    part, before = state.sets[state.incumbent], state.sets[1 - state.incumbent]
    began = state.t - part.age
    if began <= 0 or before.age >= 0 or not has_learned(problem, before) or not has_learned(problem, part):
        return None
    shift, unit = np.abs(part.scaling.shift - before.scaling.shift), before.scaling.unit
    if problem.task == "regression":
        target = bool(shift[0] > MOVED * unit) or differ(part.scaling.unit, unit)
    else:
        target = bool((shift > MOVED_SHARE).any())
    return Replaced(began, moved(part.scaling, before.scaling), target)


def has_learned(problem: Problem, part: ExpertSet) -> bool:
    """Whether the set has, or had, a scaling of its own."""
    return part.scaling.unit > 0 if problem.task == "regression" else bool(part.scaling.shift.any())


def moved(now: Scaling, before: Scaling) -> Mask:
    """(d,): inputs whose location or scale differs much; one that is not known in either has not moved."""
    known = ~np.isnan(now.mean) & ~np.isnan(before.mean)
    far = np.abs(now.mean - before.mean) * before.scale > MOVED
    constant = (now.scale == 0) | (before.scale == 0)
    ratio = np.divide(now.scale, before.scale, out=np.ones(len(now.scale)), where=~constant)
    began = (now.scale == 0) != (before.scale == 0)
    out: Mask = known & (far | (ratio > WIDENED) | (ratio < 1 / WIDENED) | began)
    return out


def differ(one: float, other: float) -> bool:
    return bool(one > WIDENED * other or other > WIDENED * one)
