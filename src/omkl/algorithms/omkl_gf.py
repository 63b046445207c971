"""One round of OMKL-GF (Ghari, Shen 2020) with one selective node, as this paper compares with it.

`draws` kernels are drawn with replacement; the different ones among them are heard. The paper's
column comes out frozen (the subset of round `freeze_after` and its chances are kept) and with
theta's step not divided by q; all four forms are here.
"""

from typing import NamedTuple

import numpy as np

from omkl import losses
from omkl.algorithms.descent import Descent, descend, importance, require_bounded
from omkl.algorithms.outputs import outputs
from omkl.algorithms.schedule import Schedule
from omkl.algorithms.weights import draw, normalised
from omkl.arrays import Index, Mask, Tensor, Vector


class Problem(NamedTuple):
    V: Tensor  # (N, d, D)
    descent: Descent
    schedule: Schedule
    M: int  # draws with replacement
    freeze_after: int | None = None  # rounds after which the subset stays
    weighted: bool = True  # theta's step divided by q


class State(NamedTuple):
    theta: Tensor  # (N, 2, D)
    log_w: Vector  # (N,)
    chosen: Mask  # (N,)  heard in the next round
    q: Vector  # (N,)     chances they were chosen with
    t: int


class Info(NamedTuple):
    prediction: float
    heard: Index
    q: Vector


def draws(problem: Problem) -> int:
    return problem.M


def choose(problem: Problem, log_w: Vector, t: int, r: Vector) -> tuple[Mask, Vector]:
    """The subset of round t and the chance of every kernel to be in it."""
    xi = problem.schedule.xi_at(t)
    p = (1 - xi) * normalised(log_w) + xi / len(log_w)
    q = -np.expm1(problem.M * np.log1p(-np.minimum(p, 1 - 1e-16)))
    chosen = np.zeros(len(p), dtype=bool)
    chosen[[draw(p, r_m) for r_m in r]] = True
    return chosen, q


def init(problem: Problem, r: Vector) -> State:
    N, _, D = problem.V.shape
    chosen, q = choose(problem, np.zeros(N), 1, r)
    return State(np.zeros((N, 2, D)), np.zeros(N), chosen, q, 0)


def predict(problem: Problem, state: State, x: Vector) -> float:
    heard = np.flatnonzero(state.chosen)
    _, f = outputs(problem.V[heard], state.theta[heard], x)
    return float(normalised(state.log_w[heard]) @ f)  # (6)


def step(problem: Problem, state: State, x: Vector, y: float, r: Vector, weight: float = 1.0) -> tuple[State, Info]:
    V, descent, schedule, _, freeze_after, weighted = problem
    t = state.t + 1
    eta = schedule.eta_at(t)
    heard = np.flatnonzero(state.chosen)
    z, f = outputs(V[heard], state.theta[heard], x)
    require_bounded(f)
    y_hat = float(normalised(state.log_w[heard]) @ f)  # (6)

    theta, log_w = state.theta.copy(), state.log_w.copy()
    for i, z_i, f_i in zip(heard, z, f, strict=True):
        h = importance(descent, state.q[i], eta, weight)
        loss = losses.value(descent.loss, f_i, y) + descent.lam * np.vdot(theta[i], theta[i])  # (5)
        log_w[i] -= eta * h * loss
        g = h if weighted else importance(descent, 1.0, eta, weight)
        theta[i] = descend(descent, theta[i], z_i, f_i, y, eta * g)

    if freeze_after is not None and t >= freeze_after:
        chosen, q = state.chosen, state.q
    else:
        chosen, q = choose(problem, log_w, t + 1, r)
    return State(theta, log_w, chosen, q, t), Info(y_hat, heard, state.q)
