"""OMKL-GF (Ghari, Shen 2020) with one selective node, as this paper compares with it.

`M` kernels are drawn with replacement and the distinct ones are evaluated. The paper's column is reproduced by the
frozen form (the subset of round `freeze_after` and its probabilities are kept) whose step of theta is not divided by
q; all four forms are implemented.
"""

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
from omkl.algorithms.invariants import (
    check_descent,
    check_frequencies,
    check_schedule,
    check_shapes,
    demand,
    is_count,
)
from omkl.algorithms.outputs import outputs
from omkl.algorithms.schedule import Schedule
from omkl.algorithms.settings import MOST_DRAWS, Settings
from omkl.algorithms.weights import draw, normalised
from omkl.arrays import Index, Mask, Tensor, Vector
from omkl.features import Draw

ROUNDING = 1e-9  # of a probability in a file


class Problem(NamedTuple):
    V: Tensor  # (N, d, D)
    descent: Descent
    schedule: Schedule
    M: int  # draws with replacement
    freeze_after: int | None = None  # rounds after which the subset is kept
    weighted: bool = True  # theta's step divided by q


class State(NamedTuple):
    theta: Tensor  # (N, 2, D)
    log_w: Vector  # (N,)
    chosen: Mask  # (N,)  evaluated in the next round
    q: Vector  # (N,)     probabilities of being drawn
    t: int  # rounds so far


class Info(NamedTuple):
    prediction: float
    evaluated: Index
    q: Vector


def build(settings: Settings, names: Sequence[str], seed: int) -> Problem:
    V = settings.frequencies(names, seed)
    return Problem(V, settings.descent, settings.schedule, settings.draws, settings.freeze_after, settings.weighted)


def uniforms(problem: Problem) -> int:
    return problem.M


def shape(problem: Problem) -> Shape:
    return Shape(inputs=problem.V.shape[1], target="number" if problem.descent.loss == "squared" else "sign")


def choose(problem: Problem, log_w: Vector, t: int, r: Vector) -> tuple[Mask, Vector]:
    """The subset of round t and the probability of every kernel to be in it."""
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
    evaluated = np.flatnonzero(state.chosen)
    _, f = outputs(problem.V[evaluated], state.theta[evaluated], x)
    return float(normalised(state.log_w[evaluated]) @ f)  # (6)


def step(problem: Problem, state: State, x: Vector, y: float, r: Vector, weight: float = 1.0) -> tuple[State, Info]:
    V, descent, schedule, _, freeze_after, weighted = problem
    t = state.t + 1
    eta = schedule.eta_at(t)
    evaluated = np.flatnonzero(state.chosen)
    z, f = outputs(V[evaluated], state.theta[evaluated], x)
    require_bounded(f)
    y_hat = float(normalised(state.log_w[evaluated]) @ f)  # (6)

    theta, log_w = state.theta.copy(), state.log_w.copy()
    for i, z_i, f_i in zip(evaluated, z, f, strict=True):
        h = importance(descent, state.q[i], eta, weight)
        loss = losses.value(descent.loss, f_i, y) + descent.lam * np.vdot(theta[i], theta[i])  # (5)
        log_w[i] -= eta * h * loss
        g = h if weighted else importance(descent, 1.0, eta, weight)
        require_finite_step(descent, theta[i], f_i, y, eta * g)
        theta[i] = descend(descent, theta[i], z_i, f_i, y, eta * g)
    require_finite(y, log_w)

    if freeze_after is not None and t >= freeze_after:
        chosen, q = state.chosen, state.q
    else:
        chosen, q = choose(problem, log_w, t + 1, r)
    return State(theta, log_w, chosen, q, t), Info(y_hat, evaluated, state.q)


def check_problem(problem: Problem) -> None:
    check_frequencies(problem.V)
    check_descent(problem.descent)
    check_schedule(problem.schedule)
    demand(is_count(problem.M) and 1 <= problem.M <= MOST_DRAWS, "the number of draws is out of range")
    demand(problem.freeze_after is None or is_count(problem.freeze_after), "`freeze_after` must be a count")
    demand(isinstance(problem.weighted, bool), "`weighted` must be true or false")


def check_state(problem: Problem, state: State) -> None:
    N, _, D = problem.V.shape
    check_shapes(state, {"theta": (N, 2, D), "log_w": (N,), "chosen": (N,), "q": (N,)})
    demand(bool(state.chosen.any()), "no kernel is chosen")
    demand(bool(((state.q >= 0) & (state.q <= 1 + ROUNDING)).all()), "a probability is not between 0 and 1")


@dataclass(kw_only=True, eq=False, repr=False)
class Parameters:
    """What the estimators let a user choose.

    kernels : str or list of Kernel, default="paper"
        The dictionary: "paper" (41 Gaussians), "gaussian", "mixed", "families", or your own list.
    n_features : int, default=50
        Random features per kernel.
    draws : int, default=10
        Draws with replacement per row; the distinct kernels among them are evaluated.
    freeze_after : int, default=None
        Rows after which the drawn subset is kept.
    weighted : bool, default=True
        Divide a kernel's step by its probability of being drawn.
    ridge : float, default=1e-3
        Weight of the squared norm of each kernel's coefficients.
    learning_rate, exploration : float, default=None
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
    draws: int = 10
    freeze_after: int | None = None
    weighted: bool = True
    ridge: float = 1e-3
    learning_rate: float | None = None
    exploration: float | None = None
    horizon: int | None = None
    stabiliser: Stabiliser = "aware"
    draw: Draw = "independent"

    @property
    def algorithm_name(self) -> str:
        return "omkl-gf"


ALGORITHM: Algorithm[Problem, State] = Algorithm(
    name="omkl-gf",
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
