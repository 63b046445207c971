"""OMKL-GF (Ghari, Shen 2020) with J selective nodes.

For each of J selective nodes `M` kernels are drawn with replacement; the nodes differ in how much they explore. One
node is drawn, and the distinct kernels of it are evaluated. The box of the paper:

    1. node j draws M kernels from         p_ij = (1 - xi^j) w_i / W + xi^j / N                             (F1)
       and is linked to the distinct ones, kernel i with the probability 1 - (1 - p_ij)^M                    (F2)
    2. a node is drawn from                (1 - xi) u_j / U + xi / J,  u_j = sum of w_i, i linked to j       (F3)
    3. kernel i is evaluated with          q_i = sum_j (probability of j) (1 - (1 - p_ij)^M)                 (F4)
    4. prediction, losses and steps are those of the kernels evaluated, as in (6), (14), (17) and (18a)

With J = 1, as in the paper of SFG-MKL, there is no node to draw. The column of that paper is reproduced by the frozen
form (the subset of round `freeze_after` and its probabilities are kept) whose step of theta is not divided by q; all
four forms are implemented.
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
    is_share,
)
from omkl.algorithms.outputs import outputs
from omkl.algorithms.schedule import Schedule
from omkl.algorithms.settings import MOST_DRAWS, MOST_NODES, Settings
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
    J: int = 1  # selective nodes
    least_q: float = 0.0  # smallest q that anything is divided by


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
    choice = settings.draws, settings.freeze_after, settings.weighted, settings.nodes, float(settings.least_q)
    return Problem(V, settings.descent, settings.schedule, *choice)


def uniforms(problem: Problem) -> int:
    return problem.M if problem.J == 1 else problem.J * problem.M + 1


def shape(problem: Problem) -> Shape:
    return Shape(inputs=problem.V.shape[1], target="number" if problem.descent.loss == "squared" else "sign")


def choose(problem: Problem, log_w: Vector, t: int, r: Vector) -> tuple[Mask, Vector]:
    """The subset of round t and the probability of every kernel to be in it."""
    M, J, N = problem.M, problem.J, len(log_w)
    xi, w = problem.schedule.xi_at(t), normalised(log_w)
    linked, q = np.zeros((J, N), dtype=bool), np.empty((J, N))
    for j in range(J):
        p = (1 - xi ** (j + 1)) * w + xi ** (j + 1) / N  # (F1)
        q[j] = -np.expm1(M * np.log1p(-np.minimum(p, 1 - 1e-16)))  # (F2)
        linked[j, [draw(p, r_m) for r_m in r[j * M : (j + 1) * M]]] = True
    if J == 1:
        return linked[0], q[0]
    u = linked @ w
    if not u.any():  # every node drew kernels only whose weights are 0 to rounding
        u = np.ones(J)
    nodes = (1 - xi) * u / u.sum() + xi / J  # (F3)
    return linked[draw(nodes, r[-1])], nodes @ q  # (F4)


def init(problem: Problem, r: Vector) -> State:
    N, _, D = problem.V.shape
    chosen, q = choose(problem, np.zeros(N), 1, r)
    return State(np.zeros((N, 2, D)), np.zeros(N), chosen, q, 0)


def predict(problem: Problem, state: State, x: Vector) -> float:
    evaluated = np.flatnonzero(state.chosen)
    _, f = outputs(problem.V[evaluated], state.theta[evaluated], x)
    return float(normalised(state.log_w[evaluated]) @ f)  # (6)


def step(problem: Problem, state: State, x: Vector, y: float, r: Vector, weight: float = 1.0) -> tuple[State, Info]:
    V, descent, schedule, _, freeze_after, weighted, _, least_q = problem
    t = state.t + 1
    eta = schedule.eta_at(t)
    evaluated = np.flatnonzero(state.chosen)
    z, f = outputs(V[evaluated], state.theta[evaluated], x)
    require_bounded(f)
    y_hat = float(normalised(state.log_w[evaluated]) @ f)  # (6)

    theta, log_w = state.theta.copy(), state.log_w.copy()
    for i, z_i, f_i in zip(evaluated, z, f, strict=True):
        h = importance(descent, max(state.q[i], least_q), eta, weight)
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
    demand(is_count(problem.J) and 1 <= problem.J <= MOST_NODES, "the number of selective nodes is out of range")
    demand(is_share(problem.least_q), "`least_q` must lie between 0 and 1")


def check_state(problem: Problem, state: State) -> None:
    N, _, D = problem.V.shape
    check_shapes(state, {"theta": (N, 2, D), "log_w": (N,), "chosen": (N,), "q": (N,)})
    demand(bool(state.chosen.any()), "no kernel is chosen")
    demand(bool(((state.q >= 0) & (state.q <= 1 + ROUNDING)).all()), "a probability is not between 0 and 1")


@dataclass(kw_only=True, eq=False, repr=False)
class Parameters:
    """What the estimators let a user choose.

    Reference: Ghari and Shen, Online Multi-Kernel Learning with Graph-Structured Feedback, ICML 2020.

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
    nodes : int, default=1
        Selective nodes, each with draws of its own, of which one is drawn for a row.
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
    nodes: int = 1
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
    added={"J": 1, "least_q": 0.0},
)
