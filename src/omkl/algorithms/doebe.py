"""DOEBE (Waxman, Djuric 2024) and online Bayesian stacking (Waxman, Llorente, Djuric 2025) on random features.

An expert is Bayesian linear regression on the features of one kernel, whose coefficients may move from row to row by a
random walk: for every kernel there is one whose coefficients stay, and one whose coefficients move. The boxes of the
papers. In round t, for every expert e:

    1. the coefficients move:     P <- P + walk_e I                                                          (B1)
    2. predict a distribution:    m = theta . z,  s^2 = noise + z' P z                                       (B2)
    3. combine, by weights w:     p(y) = sum_e w_e Normal(y; m_e, s_e^2), of which the mean is predicted     (B3)
    4. learn (Kalman's filter):   theta <- theta + P z (y - m) / s^2,  P <- P - P z z' P / s^2               (B4)
    5. the weights learn, by Bayesian model averaging (DOEBE):
                                  w_e <- w_e p_e(y) / p(y)                                                   (B5)
       or by online Bayesian stacking, as a portfolio that maximises sum_t log p(y_t); here by Soft-Bayes
       (Orseau, Lattimore, Legg 2017):
                                  w_e <- (w_e (1 - r_t + r_t p_e(y) / p(y)) r + (1 - r) / E,
                                  r_t = sqrt(log E / (2 E t)),  r = r_(t + 1) / r_t                          (B6)

With r_t = 1 stacking is averaging. `log_score` is the sum of log p(y_t), the log predictive density.

A row of weight c has the noise divided by c and its densities to the power of c. A weight above 1e6 counts as 1e6:
with less noise than that, rounding errors of P would exceed it, and P be no covariance.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import numpy as np
from scipy.special import logsumexp

from omkl.algorithms.base import Algorithm, Kernels, Shape
from omkl.algorithms.descent import require_bounded, require_finite
from omkl.algorithms.invariants import check_frequencies, check_shapes, demand, is_real
from omkl.algorithms.omkr import require_squared_loss
from omkl.algorithms.settings import Settings
from omkl.algorithms.weights import normalised
from omkl.arrays import Index, Tensor, Vector
from omkl.engine import Native
from omkl.features import Draw, features
from omkl.kernels import Kernel
from omkl.validation import is_number, require

Mixing = Literal["averaging", "stacking"]
LOG_2_PI = math.log(2 * math.pi)
MOST_WEIGHT = 1e6


@dataclass(frozen=True)
class DOEBESettings(Settings):
    """What a user may choose for DOEBE and online Bayesian stacking.

    Parameters
    ----------
    mixing
        "averaging" (DOEBE) or "stacking" (online Bayesian stacking).
    noise
        Variance of the noise, where that of the function is 1.
    walk
        Variance by which the coefficients of the experts that move do so in a row; 0 for no such experts.
    """

    kernels: str | Sequence[Kernel] = "gaussian"
    n_features: int = 25
    mixing: Mixing = "averaging"
    noise: float = 0.1
    walk: float = 1e-3

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.mixing in get_args(Mixing), "mixing", f"one of {', '.join(get_args(Mixing))}", self.mixing)
        require(is_number(self.noise) and self.noise > 0, "noise", "a positive number", self.noise)
        require(is_number(self.walk) and self.walk >= 0, "walk", "a number of at least 0", self.walk)

    def size(self, d: int, outputs: int = 1) -> int:
        """About how many numbers it takes to make a model for d features and so many outputs."""
        n, experts = 2 * self.n_features, 2 * len(self.all_kernels)
        return super().size(d, outputs) + outputs * experts * n * (n + 1)


class Problem(NamedTuple):
    V: Tensor  # (N, d, D)
    mixing: Mixing
    noise: float
    walk: float


class State(NamedTuple):
    theta: Tensor  # (E, 2, D)   E = N, or 2 N: those that stay, and those that move
    P: Tensor  # (E, 2D, 2D)
    log_w: Vector  # (E,)
    log_score: float  # sum of log p(y)
    t: int  # rounds so far


class Info(NamedTuple):
    prediction: float
    evaluated: Index
    log_density: float  # log p(y)


def walks(problem: Problem) -> Vector:
    """(E,): of every expert."""
    N = len(problem.V)
    return np.repeat([0.0, problem.walk] if problem.walk else [0.0], N)


def build(settings: DOEBESettings, names: Sequence[str], seed: int) -> Problem:
    require_squared_loss(settings, "doebe")
    V = settings.frequencies(names, seed)
    return Problem(V, settings.mixing, float(settings.noise), float(settings.walk))


def uniforms(problem: Problem) -> int:
    return 0


def shape(problem: Problem) -> Shape:
    return Shape(inputs=problem.V.shape[1])


def init(problem: Problem, r: Vector) -> State:
    D, E = problem.V.shape[2], len(walks(problem))
    P = np.tile(np.eye(2 * D), (E, 1, 1))  # a prior under which the function has the variance z' z = 1
    return State(np.zeros((E, 2, D)), P, np.full(E, -math.log(E)), 0.0, 0)


def distributions(problem: Problem, state: State, x: Vector) -> tuple[Tensor, Tensor, Vector, Vector]:
    """z of every expert, P z after the walk, and the mean and variance it predicts without the noise."""
    z = np.array([features(V_i, x).ravel() for V_i in problem.V])
    z = np.tile(z, (len(state.theta) // len(z), 1))
    Pz = np.einsum("eij,ej->ei", state.P, z) + walks(problem)[:, None] * z  # (B1)
    m = np.array([theta.ravel() @ z_e for theta, z_e in zip(state.theta, z, strict=True)])  # (B2)
    return z, Pz, m, np.maximum((z * Pz).sum(axis=1), 0.0)  # (B2)


def predict(problem: Problem, state: State, x: Vector) -> float:
    return float(normalised(state.log_w) @ distributions(problem, state, x)[2])  # (B3)


def rate_at(experts: int, t: int) -> float:
    return math.sqrt(math.log(experts) / (2 * experts * t))


def stacked(log_w: Vector, log_ratio: Vector, t: int) -> Vector:
    """log w after a row in which expert e has the density exp(log_ratio) times that of the mixture."""
    E = len(log_w)
    if E == 1:
        return log_w
    rate, next_rate = rate_at(E, t), rate_at(E, t + 1)
    w = np.exp(log_w) * (1 - rate) + rate * np.exp(log_w + log_ratio)
    out: Vector = np.log(w * next_rate / rate + (1 - next_rate / rate) / E)  # (B6)
    return out


def step(problem: Problem, state: State, x: Vector, y: float, r: Vector, weight: float = 1.0) -> tuple[State, Info]:
    weight = min(weight, MOST_WEIGHT)
    _, Pz, m, v = distributions(problem, state, x)
    require_bounded(m)
    prediction, t = float(normalised(state.log_w) @ m), state.t + 1  # (B3)
    s2 = problem.noise + v  # (B2)
    log_p = -0.5 * (LOG_2_PI + np.log(s2) + (y - m) ** 2 / s2)
    log_density = float(logsumexp(state.log_w + log_p) - logsumexp(state.log_w))  # (B3)
    info = Info(prediction, np.arange(len(problem.V)), log_density)
    if weight == 0:
        return state._replace(t=t), info

    theta, P = state.theta.copy(), state.P.copy()
    for e, walk in enumerate(walks(problem)):
        s2_e = problem.noise / weight + v[e]
        theta[e] += ((y - m[e]) / s2_e * Pz[e]).reshape(theta[e].shape)  # (B4)
        P[e] += walk * np.eye(len(P[e])) - np.outer(Pz[e], Pz[e]) / s2_e  # (B1) (B4)
    log_ratio = weight * (log_p - log_density)
    if problem.mixing == "averaging":
        log_w = state.log_w + log_ratio  # (B5)
    else:
        log_ratio = log_ratio - logsumexp(state.log_w + log_ratio) + logsumexp(state.log_w)
        log_w = stacked(state.log_w, log_ratio, t)
    log_w = log_w - log_w.max()
    log_w = log_w - math.log(np.exp(log_w).sum())
    require_finite(y, theta, log_w)
    return State(theta, P, log_w, state.log_score + weight * log_density, t), info


def kernel_weights(problem: Problem, state: State) -> Vector:
    """Of every kernel, over its experts."""
    shares: Vector = normalised(state.log_w).reshape(-1, len(problem.V)).sum(axis=0)
    return shares


def check_problem(problem: Problem) -> None:
    check_frequencies(problem.V)
    demand(problem.mixing in get_args(Mixing), "unknown way of mixing")
    demand(is_real(problem.noise) and problem.noise > 0, "the noise must be positive")
    demand(is_real(problem.walk) and problem.walk >= 0, "the variance of the random walk must not be negative")


def check_state(problem: Problem, state: State) -> None:
    E, D = len(walks(problem)), problem.V.shape[2]
    check_shapes(state, {"theta": (E, 2, D), "P": (E, 2 * D, 2 * D), "log_w": (E,)})
    demand(is_real(state.log_score), "the log score is not finite")


@dataclass(kw_only=True, eq=False, repr=False)
class Parameters:
    """What the estimators let a user choose.

    kernels : str or list of Kernel, default="gaussian"
        The dictionary: "paper" (41 Gaussians), "gaussian" (11), "mixed", "families", or your own list.
    n_features : int, default=25
        Random features per kernel; time and memory are proportional to its square.
    mixing : {"averaging", "stacking"}, default="averaging"
        How weights are learned: Bayesian model averaging (DOEBE), or online Bayesian stacking.
    noise : float, default=0.1
        Variance of the noise, where that of the target is 1.
    walk : float, default=1e-3
        Variance by which the coefficients of half of the experts move with each row; 0 for none.
    draw : {"independent", "shared"}, default="independent"
        Random features of its own for every kernel, or one draw for all Gaussian ones, which is faster.
    """

    kernels: Kernels = "gaussian"
    n_features: int = 25
    mixing: Mixing = "averaging"
    noise: float = 0.1
    walk: float = 1e-3
    draw: Draw = "independent"

    @property
    def algorithm_name(self) -> str:
        return "doebe"


ALGORITHM: Algorithm[Problem, State] = Algorithm(
    name="doebe",
    settings=DOEBESettings,
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
    kernel_weights=kernel_weights,
    native=Native(padded=("theta", "P")),
)
