"""One round of SFG-MKL-R (Algorithm 2): SFG-MKL on a graph refined by what the nodes are worth."""

from typing import NamedTuple

import numpy as np

from omkl import losses
from omkl.algorithms.descent import LEAST, Descent, descend, importance, require_bounded
from omkl.algorithms.outputs import outputs
from omkl.algorithms.schedule import Schedule
from omkl.algorithms.sfg_mkl import Commit, next_node
from omkl.algorithms.weights import normalised
from omkl.arrays import Index, Tensor, Vector
from omkl.graph import Graph, dominating_by_rank, dominating_by_threshold, nearest_dominating, refined

RANK = 10  # beta of the experiments: the tenth-largest u decides who leads


class Problem(NamedTuple):
    V: Tensor  # (N, d, D)
    graph: Graph
    descent: Descent
    schedule: Schedule
    commit: Commit = "never"
    commit_after: int = 300
    beta: float | None = None  # None: the tenth-largest rule; else a constant <= 1/N


class State(NamedTuple):
    theta: Tensor  # (N, 2, D)
    log_w: Vector  # (N,)
    log_u: Vector  # (N,)
    d: Index  # (N,)  d_i of (23); D'_t is where d_i = i
    node: int  # I_t, drawn at the end of the previous round
    t: int


class Info(NamedTuple):
    prediction: float
    heard: Index
    p: Vector
    q: Vector


def draws(problem: Problem) -> int:
    return 1


def refine(problem: Problem, log_u: Vector, t: int) -> Index:
    """d_{i,t} of round t."""
    if problem.beta is None:
        dominating = dominating_by_rank(log_u, RANK)  # (22)
    else:
        dominating = dominating_by_threshold(normalised(log_u), problem.schedule.xi_at(t), problem.beta)  # (22)
    return nearest_dominating(problem.graph.order, dominating)  # (23)


def chances(problem: Problem, log_u: Vector, d: Index, t: int) -> Vector:
    xi = problem.schedule.xi_at(t)
    dominating = d == np.arange(len(d))
    p: Vector = (1 - xi) * normalised(log_u) + xi * dominating / dominating.sum()  # (24)
    return p


def prepare(problem: Problem, log_u: Vector, before: Index | None, t: int, r: Vector) -> tuple[Index, int]:
    """d and I of round t; once a node is held the graph stays as it was."""
    held = problem.commit != "never" and t > problem.commit_after and before is not None
    d = before if held and before is not None else refine(problem, log_u, t)
    p = chances(problem, log_u, d, t)
    return d, next_node(problem.commit, problem.commit_after, log_u, p, t, r[0])


def init(problem: Problem, r: Vector) -> State:
    N, _, D = problem.V.shape
    d, node = prepare(problem, np.zeros(N), None, 1, r)
    return State(np.zeros((N, 2, D)), np.zeros(N), np.zeros(N), d, node, 0)


def predict(problem: Problem, state: State, x: Vector) -> float:
    heard = np.flatnonzero(refined(problem.graph.A, state.d)[state.node])
    _, f = outputs(problem.V[heard], state.theta[heard], x)
    return float(normalised(state.log_w[heard]) @ f)  # (25)


def step(problem: Problem, state: State, x: Vector, y: float, r: Vector, weight: float = 1.0) -> tuple[State, Info]:
    V, graph, descent, schedule, _, _, _ = problem
    t = state.t + 1
    eta = schedule.eta_at(t)
    A = refined(graph.A, state.d)
    heard = np.flatnonzero(A[state.node])
    theta, log_w, log_u = state.theta.copy(), state.log_w.copy(), state.log_u.copy()

    p = chances(problem, log_u, state.d, t)
    q = p @ A  # (15)
    z, f = outputs(V[heard], theta[heard], x)
    require_bounded(f)
    y_hat = float(normalised(log_w[heard]) @ f)  # (25)

    for i, z_i, f_i in zip(heard, z, f, strict=True):
        h = importance(descent, q[i], eta, weight)
        loss = losses.value(descent.loss, f_i, y) + descent.lam * np.vdot(theta[i], theta[i])  # (5)
        log_w[i] -= eta * h * loss  # (14) (18a)
        theta[i] = descend(descent, theta[i], z_i, f_i, y, eta * h)  # (17)
    ell_hat = weight * losses.value(descent.loss, y_hat, y) / max(p[state.node], LEAST)  # (16)
    log_u[state.node] -= eta * ell_hat  # (18b)

    d, node = prepare(problem, log_u, state.d, t + 1, r)
    return State(theta, log_w, log_u, d, node, t), Info(y_hat, heard, p, q)
