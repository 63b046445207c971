"""One round of RFOMKR: OMKR's step and weights on the random features."""

from typing import NamedTuple

import numpy as np

from omkl.algorithms.descent import require_bounded
from omkl.algorithms.omkr import HEDGE, step_length
from omkl.algorithms.outputs import outputs
from omkl.algorithms.schedule import Schedule
from omkl.algorithms.weights import normalised
from omkl.arrays import Index, Tensor, Vector


class Problem(NamedTuple):
    V: Tensor  # (N, d, D)
    schedule: Schedule


class State(NamedTuple):
    theta: Tensor  # (N, 2, D)
    log_w: Vector  # (N,)
    t: int


class Info(NamedTuple):
    prediction: float
    heard: Index


def draws(problem: Problem) -> int:
    return 0


def init(problem: Problem, r: Vector) -> State:
    N, _, D = problem.V.shape
    return State(np.zeros((N, 2, D)), np.zeros(N), 0)


def predict(problem: Problem, state: State, x: Vector) -> float:
    _, f = outputs(problem.V, state.theta, x)
    return float(normalised(state.log_w) @ f)  # (6)


def step(problem: Problem, state: State, x: Vector, y: float, r: Vector, weight: float = 1.0) -> tuple[State, Info]:
    t = state.t + 1
    z, f = outputs(problem.V, state.theta, x)
    require_bounded(f)
    y_hat = float(normalised(state.log_w) @ f)  # (6)

    log_w = state.log_w + weight * np.log(HEDGE) * (f - y) ** 2
    alpha = -step_length(problem.schedule, t, weight) * (f - y)
    theta = state.theta + alpha[:, None, None] * z
    return State(theta, log_w, t), Info(y_hat, np.arange(len(f)))
