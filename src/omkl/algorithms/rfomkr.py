"""RFOMKR: the step and weights of OMKR on random features."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from omkl.algorithms.base import Algorithm, Kernels, Shape
from omkl.algorithms.descent import require_bounded, require_finite
from omkl.algorithms.invariants import check_frequencies, check_schedule, check_shapes
from omkl.algorithms.omkr import HEDGE, require_squared_loss, step_length
from omkl.algorithms.outputs import outputs
from omkl.algorithms.schedule import Schedule
from omkl.algorithms.settings import Settings
from omkl.algorithms.weights import normalised
from omkl.arrays import Index, Tensor, Vector
from omkl.features import Draw


class Problem(NamedTuple):
    V: Tensor  # (N, d, D)
    schedule: Schedule


class State(NamedTuple):
    theta: Tensor  # (N, 2, D)
    log_w: Vector  # (N,)
    t: int  # rounds so far


class Info(NamedTuple):
    prediction: float
    evaluated: Index


def build(settings: Settings, names: Sequence[str], seed: int) -> Problem:
    require_squared_loss(settings, "rfomkr")
    return Problem(settings.frequencies(names, seed), settings.schedule)


def uniforms(problem: Problem) -> int:
    return 0


def shape(problem: Problem) -> Shape:
    return Shape(inputs=problem.V.shape[1])


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
    require_finite(log_w)
    alpha = -step_length(problem.schedule, t, weight) * (f - y)
    theta = state.theta + alpha[:, None, None] * z
    return State(theta, log_w, t), Info(y_hat, np.arange(len(f)))


def check_problem(problem: Problem) -> None:
    check_frequencies(problem.V)
    check_schedule(problem.schedule)


def check_state(problem: Problem, state: State) -> None:
    N, _, D = problem.V.shape
    check_shapes(state, {"theta": (N, 2, D), "log_w": (N,)})


@dataclass(kw_only=True, eq=False, repr=False)
class Parameters:
    """What the estimators let a user choose.

    kernels : str or list of Kernel, default="paper"
        The dictionary: "paper" (41 Gaussians), "gaussian", "mixed", "families", or your own list.
    n_features : int, default=50
        Random features per kernel.
    learning_rate : float, default=None
        c / sqrt(t) with c = 1 by default; with a `horizon`, 1 / sqrt(horizon) or the constant given.
    horizon : int, default=None
        Number of rows, where it is known beforehand.
    draw : {"independent", "shared"}, default="independent"
        Random features of its own for every kernel, or one draw for all Gaussian ones, which is faster.
    """

    kernels: Kernels = "paper"
    n_features: int = 50
    learning_rate: float | None = None
    horizon: int | None = None
    draw: Draw = "independent"

    @property
    def algorithm_name(self) -> str:
        return "rfomkr"


ALGORITHM: Algorithm[Problem, State] = Algorithm(
    name="rfomkr",
    settings=Settings,
    parameters=Parameters,
    Problem=Problem,
    State=State,
    build=build,
    init=init,
    predict=predict,
    step=step,
    uniforms=uniforms,
    shape=shape,
    check_problem=check_problem,
    check_state=check_state,
    tasks=("regression",),
)
