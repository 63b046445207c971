"""One round of Raker (Shen, Chen, Giannakis 2019): every kernel, every round."""

from typing import NamedTuple

import numpy as np

from omkl import losses
from omkl.algorithms.descent import Descent, descend, importance, require_bounded
from omkl.algorithms.outputs import outputs
from omkl.algorithms.schedule import Schedule
from omkl.algorithms.weights import normalised
from omkl.arrays import Index, Tensor, Vector


class Problem(NamedTuple):
    V: Tensor  # (N, d, D)
    descent: Descent
    schedule: Schedule


class State(NamedTuple):
    theta: Tensor  # (N, 2, D)
    log_w: Vector  # (N,)
    t: int  # rounds behind us


class Info(NamedTuple):
    prediction: float
    heard: Index


def draws(problem: Problem) -> int:
    """Uniforms one round takes."""
    return 0


def init(problem: Problem, r: Vector) -> State:
    N, _, D = problem.V.shape
    return State(np.zeros((N, 2, D)), np.zeros(N), 0)


def predict(problem: Problem, state: State, x: Vector) -> float:
    _, f = outputs(problem.V, state.theta, x)
    return float(normalised(state.log_w) @ f)  # (6)


def step(problem: Problem, state: State, x: Vector, y: float, r: Vector, weight: float = 1.0) -> tuple[State, Info]:
    _, descent, schedule = problem
    t = state.t + 1
    eta = schedule.eta_at(t)
    z, f = outputs(problem.V, state.theta, x)
    require_bounded(f)
    y_hat = float(normalised(state.log_w) @ f)  # (6)

    theta, log_w = np.empty_like(state.theta), state.log_w.copy()
    h = importance(descent, 1.0, eta, weight)
    for i, before in enumerate(state.theta):
        loss = losses.value(descent.loss, f[i], y) + descent.lam * np.vdot(before, before)  # (5)
        log_w[i] -= eta * h * loss  # (18a)
        theta[i] = descend(descent, before, z[i], f[i], y, eta * h)  # (17)
    return State(theta, log_w, t), Info(y_hat, np.arange(len(theta)))
