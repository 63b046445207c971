"""SFG-MKL (Algorithm 1): draw a node of the similarity graph, evaluate and update its out-neighbours."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from omkl import losses
from omkl.algorithms.base import Algorithm, Kernels, Shape
from omkl.algorithms.descent import (
    LEAST,
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
    check_commit,
    check_descent,
    check_frequencies,
    check_graph,
    check_schedule,
    check_shapes,
    demand,
    is_count,
    is_share,
)
from omkl.algorithms.nodes import Commit, next_node
from omkl.algorithms.outputs import outputs
from omkl.algorithms.schedule import Schedule
from omkl.algorithms.settings import Settings
from omkl.algorithms.weights import normalised
from omkl.arrays import Index, Tensor, Vector
from omkl.features import Draw
from omkl.graph import Graph


class Problem(NamedTuple):
    V: Tensor  # (N, d, D)  frequencies of every kernel
    graph: Graph
    descent: Descent
    schedule: Schedule
    commit: Commit = "never"  # which node is used after `commit_after` rounds
    commit_after: int = 300
    least_q: float = 0.0  # smallest q and p that anything is divided by
    least_p: float = 0.0


class State(NamedTuple):
    theta: Tensor  # (N, 2, D)
    log_w: Vector  # (N,)
    log_u: Vector  # (N,)
    node: int  # I_t, drawn at the end of the previous round
    t: int  # rounds so far


class Info(NamedTuple):
    prediction: float
    evaluated: Index
    p: Vector
    q: Vector


def build(settings: Settings, names: Sequence[str], seed: int) -> Problem:
    V, graph = settings.frequencies(names, seed), settings.graph(names)
    choice = settings.commit, settings.commit_after, float(settings.least_q), float(settings.least_p)
    return Problem(V, graph, settings.descent, settings.schedule, *choice)


def uniforms(problem: Problem) -> int:
    return 1


def shape(problem: Problem) -> Shape:
    return Shape(inputs=problem.V.shape[1], target="number" if problem.descent.loss == "squared" else "sign")


def node_probabilities(problem: Problem, log_u: Vector, t: int) -> Vector:
    xi = problem.schedule.xi_at(t)
    return (1 - xi) * normalised(log_u) + xi * problem.graph.cover  # (12)


def init(problem: Problem, r: Vector) -> State:
    N, _, D = problem.V.shape
    log_u = np.zeros(N)
    p = node_probabilities(problem, log_u, 1)
    node = next_node(problem.commit, problem.commit_after, log_u, p, 1, r[0])
    return State(np.zeros((N, 2, D)), np.zeros(N), log_u, node, 0)


def predict(problem: Problem, state: State, x: Vector) -> float:
    evaluated = np.flatnonzero(problem.graph.A[state.node])
    _, f = outputs(problem.V[evaluated], state.theta[evaluated], x)
    return float(normalised(state.log_w[evaluated]) @ f)  # (13)


def step(problem: Problem, state: State, x: Vector, y: float, r: Vector, weight: float = 1.0) -> tuple[State, Info]:
    V, graph, descent, schedule, commit, commit_after, least_q, least_p = problem
    t = state.t + 1
    eta = schedule.eta_at(t)
    evaluated = np.flatnonzero(graph.A[state.node])
    theta, log_w, log_u = state.theta.copy(), state.log_w.copy(), state.log_u.copy()

    p = node_probabilities(problem, log_u, t)
    q = p @ graph.A  # (15)
    z, f = outputs(V[evaluated], theta[evaluated], x)
    require_bounded(f)
    y_hat = float(normalised(log_w[evaluated]) @ f)  # (13)

    for i, z_i, f_i in zip(evaluated, z, f, strict=True):
        h = importance(descent, max(q[i], least_q), eta, weight)
        loss = losses.value(descent.loss, f_i, y) + descent.lam * np.vdot(theta[i], theta[i])  # (5)
        log_w[i] -= eta * h * loss  # (14) (18a)
        require_finite_step(descent, theta[i], f_i, y, eta * h)
        theta[i] = descend(descent, theta[i], z_i, f_i, y, eta * h)  # (17)
    ell_hat = weight * losses.value(descent.loss, y_hat, y) / max(p[state.node], least_p, LEAST)  # (16)
    log_u[state.node] -= eta * ell_hat  # (18b)
    require_finite(y, log_w, log_u)

    node = next_node(commit, commit_after, log_u, node_probabilities(problem, log_u, t + 1), t + 1, r[0])
    return State(theta, log_w, log_u, node, t), Info(y_hat, evaluated, p, q)


def check_problem(problem: Problem) -> None:
    check_frequencies(problem.V)
    check_graph(problem.graph, len(problem.V))
    check_descent(problem.descent)
    check_schedule(problem.schedule)
    check_commit(problem.commit, problem.commit_after)
    demand(is_share(problem.least_q) and is_share(problem.least_p), "`least_q` and `least_p` must lie between 0 and 1")


def check_state(problem: Problem, state: State) -> None:
    N, _, D = problem.V.shape
    check_shapes(state, {"theta": (N, 2, D), "log_w": (N,), "log_u": (N,)})
    demand(is_count(state.node) and state.node < N, "there is no such node")


@dataclass(kw_only=True, eq=False, repr=False)
class Parameters:
    """What the estimators let a user choose, for SFG-MKL and, with `refine`, SFG-MKL-R.

    Reference: Ghari and Shen, Graph-Aided Online Multi-Kernel Learning, JMLR 24 (2023); arXiv 2102.04690.

    kernels : str or list of Kernel, default="gaussian"
        The dictionary: "gaussian" (11 Gaussians), "paper" (41 of them), "mixed", "families", or your own list.
    n_features : int, default=50
        Random features per kernel.
    out_degree : int, default=None
        Kernels evaluated when a node of the graph is drawn; None for 7, or all where there are fewer. The paper has 5
        out of 41.
    delta_dimension : None or 1, default=None
        Dimension in which kernels are compared: that of the data, or 1.
    refine : bool, default=False
        Use SFG-MKL-R, which adds edges in each round so that every kernel is evaluated often enough.
    beta : float, default=None
        For `refine`: None for the tenth-largest rule, or a constant of at most 1 / number of kernels.
    ridge : float, default=1e-3
        Weight of the squared norm of each kernel's coefficients.
    learning_rate, exploration : float, default=None
        c / sqrt(t) with c = 1 by default; with a `horizon`, 1 / sqrt(horizon) or the constant given.
    horizon : int, default=None
        Number of rows, where it is known beforehand.
    commit : {"never", "argmax", "first"}, default="never"
        Which node is used after `commit_after` rows; "never" draws one in every round.
    commit_after : int, default=300
        Rows before the commit rule applies.
    stabiliser : {"aware", "floor", "project", "none"}, default="aware"
        "aware" cannot overshoot; "none" is the paper's step and may diverge.
    draw : {"independent", "shared"}, default="independent"
        Random features of its own for every kernel, or one draw for all Gaussian ones, which is faster.
    """

    kernels: Kernels = "gaussian"
    n_features: int = 50
    out_degree: int | None = None
    delta_dimension: int | None = None
    refine: bool = False
    beta: float | None = None
    ridge: float = 1e-3
    learning_rate: float | None = None
    exploration: float | None = None
    horizon: int | None = None
    commit: Commit = "never"
    commit_after: int = 300
    stabiliser: Stabiliser = "aware"
    draw: Draw = "independent"

    @property
    def algorithm_name(self) -> str:
        return "sfg-mkl-r" if self.refine else "sfg-mkl"


ALGORITHM: Algorithm[Problem, State] = Algorithm(
    name="sfg-mkl",
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
    added={"least_q": 0.0, "least_p": 0.0},
)
