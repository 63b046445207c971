"""One round of SFG-MKL (Algorithm 1): draw a node, hear its out-neighbours, learn from them."""

from typing import Literal, NamedTuple

import numpy as np

from omkl import losses
from omkl.algorithms.descent import LEAST, Descent, descend, importance, require_bounded
from omkl.algorithms.outputs import outputs
from omkl.algorithms.schedule import Schedule
from omkl.algorithms.weights import draw, normalised
from omkl.arrays import Index, Tensor, Vector
from omkl.graph import Graph

Commit = Literal["never", "argmax", "first"]
COMMITS: tuple[Commit, ...] = ("never", "argmax", "first")


class Problem(NamedTuple):
    """What never changes during a run."""

    V: Tensor  # (N, d, D)  frequencies of every kernel
    graph: Graph
    descent: Descent
    schedule: Schedule
    commit: Commit = "never"  # which node is held after `commit_after` rounds
    commit_after: int = 300


class State(NamedTuple):
    """What one round changes."""

    theta: Tensor  # (N, 2, D)
    log_w: Vector  # (N,)
    log_u: Vector  # (N,)
    node: int  # I_t, drawn at the end of the previous round
    t: int  # rounds behind us


class Info(NamedTuple):
    """What one round tells and forgets."""

    prediction: float
    heard: Index
    p: Vector
    q: Vector


def draws(problem: Problem) -> int:
    """Uniforms one round takes."""
    return 1


def chances(problem: Problem, log_u: Vector, t: int) -> Vector:
    xi = problem.schedule.xi_at(t)
    return (1 - xi) * normalised(log_u) + xi * problem.graph.cover  # (12)


def next_node(commit: Commit, commit_after: int, log_u: Vector, p: Vector, t: int, r: float) -> int:
    """I_t for round t: drawn, or after `commit_after` rounds the one the commit rule holds."""
    if commit == "never" or t <= commit_after:
        return draw(p, r)
    return int(np.argmax(log_u)) if commit == "argmax" else 0


def init(problem: Problem, r: Vector) -> State:
    N, _, D = problem.V.shape
    log_u = np.zeros(N)
    p = chances(problem, log_u, 1)
    node = next_node(problem.commit, problem.commit_after, log_u, p, 1, r[0])
    return State(np.zeros((N, 2, D)), np.zeros(N), log_u, node, 0)


def predict(problem: Problem, state: State, x: Vector) -> float:
    heard = np.flatnonzero(problem.graph.A[state.node])
    _, f = outputs(problem.V[heard], state.theta[heard], x)
    return float(normalised(state.log_w[heard]) @ f)  # (13)


def step(problem: Problem, state: State, x: Vector, y: float, r: Vector, weight: float = 1.0) -> tuple[State, Info]:
    V, graph, descent, schedule, commit, commit_after = problem
    t = state.t + 1
    eta = schedule.eta_at(t)
    heard = np.flatnonzero(graph.A[state.node])
    theta, log_w, log_u = state.theta.copy(), state.log_w.copy(), state.log_u.copy()

    p = chances(problem, log_u, t)
    q = p @ graph.A  # (15)
    z, f = outputs(V[heard], theta[heard], x)
    require_bounded(f)
    y_hat = float(normalised(log_w[heard]) @ f)  # (13)

    for i, z_i, f_i in zip(heard, z, f, strict=True):
        h = importance(descent, q[i], eta, weight)
        loss = losses.value(descent.loss, f_i, y) + descent.lam * np.vdot(theta[i], theta[i])  # (5)
        log_w[i] -= eta * h * loss  # (14) (18a)
        theta[i] = descend(descent, theta[i], z_i, f_i, y, eta * h)  # (17)
    ell_hat = weight * losses.value(descent.loss, y_hat, y) / max(p[state.node], LEAST)  # (16)
    log_u[state.node] -= eta * ell_hat  # (18b)

    node = next_node(commit, commit_after, log_u, chances(problem, log_u, t + 1), t + 1, r[0])
    return State(theta, log_w, log_u, node, t), Info(y_hat, heard, p, q)
