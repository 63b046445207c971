"""SFG-MKL-R (Algorithm 2): SFG-MKL on a graph that is refined in every round by the weights of the nodes."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from omkl import losses
from omkl.algorithms import sfg_mkl
from omkl.algorithms.base import Algorithm, Shape
from omkl.algorithms.descent import (
    LEAST,
    Descent,
    descend,
    divergence_advice,
    importance,
    require_bounded,
    require_finite,
    require_finite_step,
)
from omkl.algorithms.invariants import demand, is_real
from omkl.algorithms.nodes import Commit, next_node
from omkl.algorithms.outputs import outputs
from omkl.algorithms.schedule import Schedule
from omkl.algorithms.settings import Settings
from omkl.algorithms.weights import normalised
from omkl.arrays import Index, Tensor, Vector
from omkl.graph import Graph, dominating_by_rank, dominating_by_threshold, nearest_dominating, refined
from omkl.validation import require

RANK = 10  # beta of the experiments: the nodes of the ten largest u form D'_t


class Problem(NamedTuple):
    V: Tensor  # (N, d, D)
    graph: Graph
    descent: Descent
    schedule: Schedule
    commit: Commit = "never"
    commit_after: int = 300
    least_q: float = 0.0
    least_p: float = 0.0
    beta: float | None = None  # None: the tenth-largest rule; else a constant <= 1/N


class State(NamedTuple):
    theta: Tensor  # (N, 2, D)
    log_w: Vector  # (N,)
    log_u: Vector  # (N,)
    d: Index  # (N,)  d_i of (23); D'_t is where d_i = i
    node: int  # I_t, drawn at the end of the previous round
    t: int  # rounds so far


class Info(NamedTuple):
    prediction: float
    evaluated: Index
    p: Vector
    q: Vector


def build(settings: Settings, names: Sequence[str], seed: int) -> Problem:
    N, beta = len(settings.all_kernels), settings.beta
    require(beta is None or beta <= 1 / N, "beta",
            f"at most 1/N = {1 / N:.6g} for {N} kernels, or None (the tenth-largest rule)", beta)  # fmt: skip
    return Problem(*sfg_mkl.build(settings, names, seed), beta)


def uniforms(problem: Problem) -> int:
    return 1


def shape(problem: Problem) -> Shape:
    return Shape(inputs=problem.V.shape[1], target="number" if problem.descent.loss == "squared" else "sign")


def refine(problem: Problem, log_u: Vector, t: int) -> Index:
    """d_{i,t} of round t."""
    if problem.beta is None:
        dominating = dominating_by_rank(log_u, RANK)  # (22)
    else:
        dominating = dominating_by_threshold(normalised(log_u), problem.schedule.xi_at(t), problem.beta)  # (22)
    return nearest_dominating(problem.graph.order, dominating)  # (23)


def node_probabilities(problem: Problem, log_u: Vector, d: Index, t: int) -> Vector:
    xi = problem.schedule.xi_at(t)
    dominating = d == np.arange(len(d))
    p: Vector = (1 - xi) * normalised(log_u) + xi * dominating / dominating.sum()  # (24)
    return p


def prepare(problem: Problem, log_u: Vector, before: Index | None, t: int, r: Vector) -> tuple[Index, int]:
    """d and I of round t; once the commit rule applies the graph is no longer refined."""
    committed = problem.commit != "never" and t > problem.commit_after and before is not None
    d = before if committed and before is not None else refine(problem, log_u, t)
    p = node_probabilities(problem, log_u, d, t)
    return d, next_node(problem.commit, problem.commit_after, log_u, p, t, r[0])


def init(problem: Problem, r: Vector) -> State:
    N, _, D = problem.V.shape
    d, node = prepare(problem, np.zeros(N), None, 1, r)
    return State(np.zeros((N, 2, D)), np.zeros(N), np.zeros(N), d, node, 0)


def predict(problem: Problem, state: State, x: Vector) -> float:
    evaluated = np.flatnonzero(refined(problem.graph.A, state.d)[state.node])
    _, f = outputs(problem.V[evaluated], state.theta[evaluated], x)
    return float(normalised(state.log_w[evaluated]) @ f)  # (25)


def step(problem: Problem, state: State, x: Vector, y: float, r: Vector, weight: float = 1.0) -> tuple[State, Info]:
    V, graph, descent, schedule, _, _, least_q, least_p, _ = problem
    t = state.t + 1
    eta = schedule.eta_at(t)
    A = refined(graph.A, state.d)
    evaluated = np.flatnonzero(A[state.node])
    theta, log_w, log_u = state.theta.copy(), state.log_w.copy(), state.log_u.copy()

    p = node_probabilities(problem, log_u, state.d, t)
    q = p @ A  # (15)
    z, f = outputs(V[evaluated], theta[evaluated], x)
    require_bounded(f)
    y_hat = float(normalised(log_w[evaluated]) @ f)  # (25)

    for i, z_i, f_i in zip(evaluated, z, f, strict=True):
        h = importance(descent, max(q[i], least_q), eta, weight)
        loss = losses.value(descent.loss, f_i, y) + descent.lam * np.vdot(theta[i], theta[i])  # (5)
        log_w[i] -= eta * h * loss  # (14) (18a)
        require_finite_step(descent, theta[i], f_i, y, eta * h)
        theta[i] = descend(descent, theta[i], z_i, f_i, y, eta * h)  # (17)
    ell_hat = weight * losses.value(descent.loss, y_hat, y) / max(p[state.node], least_p, LEAST)  # (16)
    log_u[state.node] -= eta * ell_hat  # (18b)
    require_finite(y, log_w, log_u)

    d, node = prepare(problem, log_u, state.d, t + 1, r)
    return State(theta, log_w, log_u, d, node, t), Info(y_hat, evaluated, p, q)


def check_problem(problem: Problem) -> None:
    sfg_mkl.check_problem(sfg_mkl.Problem(*problem[:-1]))
    beta, N = problem.beta, len(problem.V)
    demand(beta is None or (is_real(beta) and 0 < beta <= 1 / N), "beta must be positive, and at most 1 / kernels")


def check_state(problem: Problem, state: State) -> None:
    N = len(problem.V)
    sfg_mkl.check_state(
        sfg_mkl.Problem(*problem[:-1]), sfg_mkl.State(state.theta, state.log_w, state.log_u, state.node, state.t)
    )
    fits = state.d.shape == (N,) and bool(((state.d >= 0) & (state.d < N)).all())
    demand(fits and bool((state.d[state.d] == state.d).all()), "d does not name dominating nodes")


ALGORITHM: Algorithm[Problem, State] = Algorithm(
    name="sfg-mkl-r",
    settings=Settings,
    parameters=sfg_mkl.Parameters,
    preset={"refine": True},
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
