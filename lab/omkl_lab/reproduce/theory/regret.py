"""Tracks a learner round by round: its expected loss, and the quantities in the regret bounds.

The expectation E_t is over the node of round t given the past. For SFG-MKL and SFG-MKL-R the nodes
are enumerated; Raker has no randomness; OMKL-GF's subsets (10 draws among 41 kernels) are too many to
enumerate and are sampled, SUBSETS at a time.

The loss of a combination sum_j w_j f_j is C(f, y) + lambda sum_j w_j |theta_j|^2: the norm is that of
the space of the kernel sum_j w_j kappa_j, and (a37) holds for it as printed.
"""

from typing import Any

import numpy as np

from omkl.algorithms import sfg_mkl, sfg_mkl_r
from omkl.algorithms.weights import normalised
from omkl.arrays import Mask, Matrix, Tensor, Vector
from omkl.errors import DivergenceError
from omkl.graph import refined
from omkl.online import Online

SUBSETS = 16
AS2_GRADIENT = 2.0  # for |f - y| <= 1, the norm of the gradient of the unregularised loss is at most this


class RegretTracker:
    """One learner on the first `horizon` rows."""

    def __init__(self, learner: str, problem: Any, horizon: int, seed: int) -> None:
        self.learner, self.problem, self.horizon = learner, problem, horizon
        self.online = Online(learner, problem, seed)
        self.diverged = False
        self.loss = 0.0  # sum of E_t[L]
        N = len(problem.V)
        self.inverse_q = np.zeros(N)  # sum over t of 1 / q_i
        self.inverse_q_bar = np.zeros(N)  # sum over t of 1 / q_bar_i
        self.least_q = 1.0
        self.gradient2 = 0.0  # largest |grad L|^2
        self.losses_out_of_range = self.large_gradients = self.pairs = (
            0  # violations of (as2), and (round, kernel) pairs in total
        )
        self._rng = np.random.default_rng(seed)

    @property
    def running(self) -> bool:
        return not self.diverged and self.online.t < self.horizon

    def round(self, z: Tensor, x: Vector, y: float) -> None:
        """One row; z are its features for every kernel."""
        state = self.online.state
        lam = self.problem.descent.lam
        f = np.einsum("nij,nij->n", state.theta, z)
        norms = np.einsum("nij,nij->n", state.theta, state.theta)
        self.loss += self._expected(state, f, norms, y, lam)
        self._record_gradients(f, norms, y, lam)
        try:
            self.online.learn_unchecked(x, y)
        except DivergenceError:
            self.diverged = True

    def _expected(self, state: Any, f: Vector, norms: Vector, y: float, lam: float) -> float:
        if self.learner in ("sfg-mkl", "sfg-mkl-r"):
            p, A = node_distribution(self.learner, self.problem, state)
            W = neighbour_weights(A, state.log_w)
            inverse = 1 / (p @ A)
            self.inverse_q += inverse
            self.inverse_q_bar += W @ inverse
            self.least_q = min(self.least_q, 1 / float(inverse.max()))
            return float(p @ ((W @ f - y) ** 2 + lam * (W @ norms)))
        if self.learner == "raker":
            w = normalised(state.log_w)
            return float((w @ f - y) ** 2 + lam * (w @ norms))
        p = -np.expm1(np.log1p(-np.minimum(state.q, 1 - 1e-16)) / self.problem.M)  # q = 1 - (1 - p)^M
        drawn = np.searchsorted(np.cumsum(p), self._rng.random((SUBSETS, self.problem.M)) * p.sum(), side="right")
        A = np.zeros((SUBSETS, len(p)), dtype=bool)
        np.put_along_axis(A, np.minimum(drawn, len(p) - 1), True, axis=1)
        W = neighbour_weights(A, state.log_w)
        return float(np.mean((W @ f - y) ** 2 + lam * (W @ norms)))

    def _record_gradients(self, f: Vector, norms: Vector, y: float, lam: float) -> None:
        loss = (f - y) ** 2 + lam * norms
        gradient2 = 4 * (f - y) ** 2 + 8 * lam * (f - y) * f + 4 * lam**2 * norms  # |z| = 1 and z . theta = f
        self.gradient2 = max(self.gradient2, float(gradient2.max()))
        self.losses_out_of_range += int((loss > 1).sum())
        self.large_gradients += int((gradient2 > AS2_GRADIENT**2).sum())
        self.pairs += len(f)


def node_distribution(learner: str, problem: Any, state: Any) -> tuple[Vector, Mask]:
    """The distribution of the node of the next round, and the graph of that round."""
    t = state.t + 1
    if learner == "sfg-mkl":
        return sfg_mkl.node_probabilities(problem, state.log_u, t), problem.graph.A
    return sfg_mkl_r.node_probabilities(problem, state.log_u, state.d, t), refined(problem.graph.A, state.d)


def neighbour_weights(A: Mask, log_w: Vector) -> Matrix:
    """Row i: w_j / W_i for the out-neighbours j of node i, 0 elsewhere.

    >>> neighbour_weights(np.array([[True, False, True], [False, True, False]]), np.log([1.0, 5.0, 3.0])).round(6)
    array([[0.25, 0.  , 0.75],
           [0.  , 1.  , 0.  ]])
    """
    logs = np.where(A, log_w, -np.inf)
    W: Matrix = np.exp(logs - logs.max(axis=1, keepdims=True))
    W /= W.sum(axis=1, keepdims=True)
    return W


def track(trackers: list[RegretTracker], V: Tensor, X: Matrix, y: Vector, chunk: int = 100) -> None:
    """Run all trackers over the rows together, so that the features are computed once."""
    D = V.shape[2]
    flat = np.ascontiguousarray(np.moveaxis(V, 1, 0)).reshape(V.shape[1], -1)  # (d, N D)
    for start in range(0, max(f.horizon for f in trackers), chunk):
        rows = X[start : start + chunk]
        phase = (rows @ flat).reshape(len(rows), len(V), D)
        z = np.stack((np.sin(phase), np.cos(phase)), axis=2) / np.sqrt(D)
        for tracker in trackers:
            for k in range(len(rows)):
                if not tracker.running:
                    break
                tracker.round(z[k], rows[k], float(y[start + k]))
