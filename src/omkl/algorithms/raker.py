"""Raker (Shen, Chen, Giannakis 2019): every kernel is evaluated and updated in every round."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from omkl import losses
from omkl.algorithms.base import Algorithm, Kernels, Shape
from omkl.algorithms.descent import (
    Descent,
    Stabiliser,
    descend,
    divergence_advice,
    importance,
    require_bounded,
    require_finite,
    require_finite_step,
)
from omkl.algorithms.invariants import check_descent, check_frequencies, check_schedule, check_shapes
from omkl.algorithms.outputs import outputs
from omkl.algorithms.schedule import Schedule
from omkl.algorithms.settings import Settings
from omkl.algorithms.weights import normalised
from omkl.arrays import Index, Tensor, Vector
from omkl.features import Draw


class Problem(NamedTuple):
    V: Tensor  # (N, d, D)
    descent: Descent
    schedule: Schedule


class State(NamedTuple):
    theta: Tensor  # (N, 2, D)
    log_w: Vector  # (N,)
    t: int  # rounds so far


class Info(NamedTuple):
    prediction: float
    evaluated: Index


def build(settings: Settings, names: Sequence[str], seed: int) -> Problem:
    return Problem(settings.frequencies(names, seed), settings.descent, settings.schedule)


def uniforms(problem: Problem) -> int:
    return 0


def shape(problem: Problem) -> Shape:
    return Shape(inputs=problem.V.shape[1], target="number" if problem.descent.loss == "squared" else "sign")


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
        require_finite_step(descent, before, f[i], y, eta * h)
        theta[i] = descend(descent, before, z[i], f[i], y, eta * h)  # (17)
    require_finite(y, log_w)
    return State(theta, log_w, t), Info(y_hat, np.arange(len(theta)))


def check_problem(problem: Problem) -> None:
    check_frequencies(problem.V)
    check_descent(problem.descent)
    check_schedule(problem.schedule)


def check_state(problem: Problem, state: State) -> None:
    N, _, D = problem.V.shape
    check_shapes(state, {"theta": (N, 2, D), "log_w": (N,)})


@dataclass(kw_only=True, eq=False, repr=False)
class Parameters:
    """What the estimators let a user choose.

    Reference: Shen, Chen and Giannakis, Random Feature-based Online Multi-kernel Learning in Environments with
    Unknown Dynamics, JMLR 20 (2019).

    kernels : str or list of Kernel, default="paper"
        The dictionary: "paper" (41 Gaussians), "gaussian", "mixed", "families", or your own list.
    n_features : int, default=50
        Random features per kernel.
    ridge : float, default=1e-3
        Weight of the squared norm of each kernel's coefficients.
    learning_rate : float, default=None
        c / sqrt(t) with c = 1 by default; with a `horizon`, 1 / sqrt(horizon) or the constant given.
    horizon : int, default=None
        Number of rows, where it is known beforehand.
    stabiliser : {"aware", "floor", "project", "none"}, default="aware"
        "aware" cannot overshoot; "none" is the paper's step and may diverge.
    draw : {"independent", "shared"}, default="independent"
        Random features of its own for every kernel, or one draw for all Gaussian ones, which is faster.
    """

    kernels: Kernels = "paper"
    n_features: int = 50
    ridge: float = 1e-3
    learning_rate: float | None = None
    horizon: int | None = None
    stabiliser: Stabiliser = "aware"
    draw: Draw = "independent"

    @property
    def algorithm_name(self) -> str:
        return "raker"


ALGORITHM: Algorithm[Problem, State] = Algorithm(
    name="raker",
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
    divergence_advice=divergence_advice,
)
