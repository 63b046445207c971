"""KRLS-T (Van Vaerenbergh, Lazaro-Gredilla, Santamaria 2012): kernel recursive least squares that forgets.

A Gaussian process that is known by its values at no more than B stored rows: their mean mu and covariance Sigma, and
Q = K^-1 for K = kappa(x_r, x_s). The box of the paper. In round t:

    1. forget, back to the prior:   Sigma <- l Sigma + (1 - l) K,  mu <- sqrt(l) mu                          (K1)
    2. predict:                     q = Q k(x),  f(x) = q . mu                                               (K2)
       with the variance            s^2 = noise + g + q' Sigma q,  g = kappa(x, x) - q . k(x)                (K3)
    3. store x:                     Q <- [Q 0; 0 0] + p p' / g,  p = (q, -1)                                 (K4)
                                    mu <- (mu, f) + p (y - f) / s^2,  p = (Sigma q, s^2 - noise)             (K5)
                                    Sigma <- [Sigma, Sigma q; (Sigma q)', s^2 - noise] - p p' / s^2          (K6)
    4. where g is small, remove the new row, and else, above the budget, the one that
       matters least:               argmin of |(Q mu)_r / Q_rr|                                              (K7)
       Q is that of the others:     Q <- Q - Q_r Q_r' / Q_rr                                                 (K8)

Forgetting comes first here, since a round ends with what the next prediction needs; it makes no difference but in the
first round, which has nothing to forget. A row of weight w has the noise noise / w, but at least 1e-8: with less,
rounding errors of Sigma would exceed it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from omkl.algorithms.base import Algorithm, Kernels, Shape
from omkl.algorithms.descent import require_bounded, require_finite
from omkl.algorithms.fogd import DEFAULT, FOGDSettings
from omkl.algorithms.invariants import check_shapes, demand, is_count, is_real
from omkl.algorithms.nogd import one_kernel
from omkl.algorithms.omkr import require_squared_loss, supports, view
from omkl.arrays import Index, Matrix, Vector
from omkl.engine import Native
from omkl.kernels import Kernel
from omkl.validation import is_number, require

LEAST_NOVELTY = 1e-3  # least g of a row that is stored: with less, Q would be dominated by rounding errors
LEAST_NOISE = 1e-8  # of a row: with less, rounding errors of its covariances would exceed it
MOST_ROWS = 2000
ROUNDING = 1e-6  # of a covariance in a file


def require_noise(noise: object) -> None:
    wanted = f"a number of at least {LEAST_NOISE:g}"
    require(is_number(noise) and noise >= LEAST_NOISE, "noise", wanted, noise)  # type: ignore[operator]  # is_number has looked


@dataclass(frozen=True)
class KRLSTSettings(FOGDSettings):
    """What a user may choose for KRLS-T.

    Parameters
    ----------
    budget
        Rows that are stored, B.
    noise
        Variance of the noise, where that of the function is 1.
    forgetting
        l: how much of what was known is kept in a round; 1 for all of it.
    """

    budget: int = 100
    noise: float = 0.1
    forgetting: float = 0.999

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.budget <= MOST_ROWS, "budget", f"at most {MOST_ROWS}", self.budget)
        require_noise(self.noise)
        keeps = is_number(self.forgetting) and 0 < self.forgetting <= 1
        require(keeps, "forgetting", "a positive number of at most 1", self.forgetting)

    def size(self, d: int, outputs: int = 1) -> int:
        """About how many numbers it takes to make a model for d features and so many outputs."""
        return outputs * self.budget * (d + 2 * self.budget)


class Problem(NamedTuple):
    kernels: tuple[Kernel, ...]  # one
    d: int
    budget: int  # B
    noise: float
    forgetting: float  # l


class State(NamedTuple):
    S: Matrix  # (d, B)      rows stored, one per column
    mu: Vector  # (B,)
    Sigma: Matrix  # (B, B)
    Q: Matrix  # (B, B)
    n: int  # rows stored
    t: int  # rounds so far


class Info(NamedTuple):
    prediction: float
    evaluated: Index
    variance: float  # of the prediction, noise included


def build(settings: KRLSTSettings, names: Sequence[str], seed: int) -> Problem:
    require_squared_loss(settings, "krls-t")
    noise, forgetting = float(settings.noise), float(settings.forgetting)
    return Problem(settings.all_kernels, len(names), settings.budget, noise, forgetting)


def uniforms(problem: Problem) -> int:
    return 0


def shape(problem: Problem) -> Shape:
    return Shape(inputs=problem.d)


def init(problem: Problem, r: Vector) -> State:
    B = problem.budget
    return State(np.zeros((problem.d, B)), np.zeros(B), np.zeros((B, B)), np.zeros((B, B)), 0, 0)


def grow(problem: Problem, state: State) -> State:
    """The state for a problem with more features: stored rows get zeros for the features they did not have."""
    return state._replace(S=np.pad(state.S, ((0, problem.d - len(state.S)), (0, 0))))


def project(problem: Problem, state: State, x: Vector) -> tuple[Vector, Vector, Vector, float]:
    """k(x), q, the mean after forgetting, and the prediction."""
    n = state.n
    k = problem.kernels[0].value(state.S[:, :n].T, x[None])[:, 0]
    q, mu = state.Q[:n, :n] @ k, np.sqrt(problem.forgetting) * state.mu[:n]  # (K1) (K2)
    return k, q, mu, float(q @ mu)  # (K2)


def predict(problem: Problem, state: State, x: Vector) -> float:
    return project(problem, state, x)[3]


def step(problem: Problem, state: State, x: Vector, y: float, r: Vector, weight: float = 1.0) -> tuple[State, Info]:
    (kernel,), _, B, noise, forgetting = problem
    n, t = state.n, state.t + 1
    k, q, mu, f = project(problem, state, x)
    S, Q = state.S[:, :n], state.Q[:n, :n]
    Sigma = forgetting * state.Sigma[:n, :n] + (1 - forgetting) * kernel.value(S.T, S.T)  # (K1)
    require_bounded(np.array([f]))
    g = max(1 - float(q @ k), 0.0)  # (K3)
    Sq = Sigma @ q
    of_function = max(g + float(q @ Sq), 0.0)  # (K3)
    info = Info(f, np.arange(1), noise + of_function)
    if weight == 0:
        return state._replace(t=t), info

    s2 = max(noise / weight, LEAST_NOISE) + of_function  # (K3)
    p = np.append(Sq, of_function)
    mu = np.append(mu, f) + p * (y - f) / s2  # (K5)
    Sigma = np.block([[Sigma, Sq[:, None]], [Sq[None], np.full((1, 1), of_function)]]) - np.outer(p, p) / s2  # (K6)
    require_finite(y, mu)
    if g < LEAST_NOVELTY:
        kept = np.arange(n)  # (K7)
    else:
        S = np.column_stack((S, x))
        p = np.append(q, -1.0)
        Q = np.pad(Q, (0, 1)) + np.outer(p, p) / g  # (K4)
        kept = np.arange(n + 1)
        if n == B:
            least = int(np.argmin(np.abs(Q @ mu / np.diag(Q))))  # (K7)
            Q = Q - np.outer(Q[:, least], Q[:, least]) / Q[least, least]  # (K8)
            kept = np.delete(kept, least)
        S, Q = S[:, kept], Q[np.ix_(kept, kept)]
    empty = init(problem, r)
    n = len(kept)
    empty.S[:, :n], empty.mu[:n] = S, mu[kept]
    empty.Sigma[:n, :n], empty.Q[:n, :n] = Sigma[np.ix_(kept, kept)], Q
    return empty._replace(n=n, t=t), info


def check_problem(problem: Problem) -> None:
    demand(is_count(problem.d) and problem.d >= 1 and len(problem.kernels) == 1, "no features, or not one kernel")
    demand(is_count(problem.budget) and 1 <= problem.budget <= MOST_ROWS, "the budget is out of range")
    demand(is_real(problem.noise) and problem.noise > 0, "the noise must be positive")
    demand(is_real(problem.forgetting) and 0 < problem.forgetting <= 1, "`forgetting` must lie between 0 and 1")


def check_state(problem: Problem, state: State) -> None:
    B = problem.budget
    check_shapes(state, {"S": (problem.d, B), "mu": (B,), "Sigma": (B, B), "Q": (B, B)})
    demand(is_count(state.n) and state.n <= B, "more rows are stored than the budget")
    for part in (state.mu, state.Sigma, state.Sigma.T, state.Q, state.Q.T):
        demand(not part[state.n :].any(), "a row that is not stored has a value")
    demand(bool((np.abs(state.Sigma) <= 1 + ROUNDING).all()), "a covariance is larger than that of the prior")
    demand(bool((state.Q.diagonal()[: state.n] >= 1 - ROUNDING).all()), "Q is no inverse of a matrix of kernel values")


def raise_noise(problem: object) -> str:
    return "scale y to a moderate range or raise noise"


@dataclass(kw_only=True, eq=False, repr=False)
class Parameters:
    """What the estimators let a user choose.

    Reference: Van Vaerenbergh, Lazaro-Gredilla and Santamaria, Kernel Recursive Least-Squares Tracker for
    Time-Varying Regression, IEEE Transactions on Neural Networks and Learning Systems 23 (2012).

    kernels : list of one Kernel, default=(Gaussian(2.0),)
        The kernel, on standardised inputs.
    budget : int, default=100
        Rows that are stored; time and memory are proportional to its square.
    noise : float, default=0.1
        Variance of the noise, where that of the target is 1.
    forgetting : float, default=0.999
        How much of what was known is kept with each row; 1 for a stream that does not change.
    """

    kernels: Kernels = DEFAULT
    budget: int = 100
    noise: float = 0.1
    forgetting: float = 0.999

    @property
    def algorithm_name(self) -> str:
        return "krls-t"


ALGORITHM: Algorithm[Problem, State] = Algorithm(
    name="krls-t",
    settings=KRLSTSettings,
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
    grow=grow,
    kernel_weights=one_kernel,
    divergence_advice=raise_noise,
    native=Native(view=view, supports=supports, padded=("S", "Sigma", "Q")),
)
