"""One round of OMKR (Sahoo, Hoi, Li 2014): exact kernels, every past sample a support point.

Its memory grows with the stream by definition; `budget` bounds it. A full learner goes on
predicting and weighing its kernels, and adds no support point any more.
"""

from typing import NamedTuple

import numpy as np

from omkl.algorithms.descent import require_bounded
from omkl.algorithms.schedule import Schedule
from omkl.algorithms.weights import normalised
from omkl.arrays import Index, Matrix, Vector
from omkl.kernels import Kernel

HEDGE = 0.5  # w_i is multiplied by HEDGE ** loss


class Problem(NamedTuple):
    kernels: tuple[Kernel, ...]
    d: int
    schedule: Schedule
    budget: int | None = None  # most support points kept


class State(NamedTuple):
    S: Matrix  # (d, n)      support points, one a column
    alpha: Matrix  # (N, n)  their coefficients for every kernel
    log_w: Vector  # (N,)
    t: int


class Info(NamedTuple):
    prediction: float
    heard: Index


def draws(problem: Problem) -> int:
    return 0


def init(problem: Problem, r: Vector) -> State:
    N = len(problem.kernels)
    return State(np.zeros((problem.d, 0)), np.zeros((N, 0)), np.zeros(N), 0)


def widen(problem: Problem, state: State) -> State:
    """The state for a problem with more features: support points get zeros for those they did not have."""
    return state._replace(S=np.pad(state.S, ((0, problem.d - len(state.S)), (0, 0))))


def step_length(schedule: Schedule, t: int, weight: float) -> float:
    """eta, never past the target however heavy the sample."""
    return min(1.0, weight * schedule.eta_at(t))


def _outputs(problem: Problem, state: State, x: Vector) -> Vector:
    S = state.S.T
    return np.array([a @ k.value(S, x[None])[:, 0] for k, a in zip(problem.kernels, state.alpha, strict=True)])


def predict(problem: Problem, state: State, x: Vector) -> float:
    return float(normalised(state.log_w) @ _outputs(problem, state, x))  # (6)


def step(problem: Problem, state: State, x: Vector, y: float, r: Vector, weight: float = 1.0) -> tuple[State, Info]:
    t = state.t + 1
    f = _outputs(problem, state, x)
    require_bounded(f)
    y_hat = float(normalised(state.log_w) @ f)  # (6)

    log_w = state.log_w + weight * np.log(HEDGE) * (f - y) ** 2
    S, alpha = state.S, state.alpha
    if problem.budget is None or S.shape[1] < problem.budget:
        new = -step_length(problem.schedule, t, weight) * (f - y)
        S, alpha = np.column_stack((S, x)), np.column_stack((alpha, new))
    return State(S, alpha, log_w, t), Info(y_hat, np.arange(len(f)))
