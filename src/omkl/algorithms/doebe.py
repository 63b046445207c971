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
                                  w_e <- w_e (1 - r_t + r_t p_e(y) / p(y)) r + (1 - r) / E,
                                  r_t = sqrt(log E / (2 E t)),  r = r_(t + 1) / r_t                          (B6)

For labels y = -1 or 1 (the authors' code has this form too) the density of a label is logistic, averaged over the
predicted distribution by MacKay's approximation, and an expert learns by Laplace's: the most likely prediction f, where
the logistic loss and the distance from m balance, is the new mean, and the curvature there the information of the row.
What is predicted is the log odds of the mixture.

                                  p_e(y) = sigma(y m / sqrt(1 + pi z' P z / 8))                              (B7)
                                  theta <- theta + P z y sigma(-y f),  f = m + z' P z y sigma(-y f),
                                  P <- P - P z z' P / (1 / h + z' P z),  h = sigma(f) sigma(-f)              (B8)

With r_t = 1 stacking is averaging. `log_score` is the sum of log p(y_t), the log predictive density.

A row of weight c has the noise divided by c, or sigma(-y f) times c, and its densities to the power of c. A weight
above 1e6 counts as 1e6, and the noise of a row is at least 1e-8: with less, rounding errors of P would exceed it, and P
be no covariance.
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
from omkl.algorithms.krls_t import LEAST_NOISE, raise_noise, require_noise
from omkl.algorithms.settings import Settings
from omkl.algorithms.weights import normalised
from omkl.arrays import Index, Tensor, Vector
from omkl.engine import Native
from omkl.features import Draw, features
from omkl.kernels import Kernel
from omkl.losses import LossName
from omkl.validation import is_number, require

Mixing = Literal["averaging", "stacking"]
LOG_2_PI = math.log(2 * math.pi)
MOST_WEIGHT = 1e6
LIKELIHOODS = ("squared", "logistic")  # the losses that are one: of numbers, and of labels
MOST_STEPS, ROUNDING = 100, 1e-15  # of Newton's method


@dataclass(frozen=True)
class DOEBESettings(Settings):
    """What a user may choose for DOEBE and online Bayesian stacking.

    Parameters
    ----------
    mixing
        "averaging" (DOEBE) or "stacking" (online Bayesian stacking).
    noise
        Variance of the noise of numbers, where that of the function is 1.
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
        require_noise(self.noise)
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
    loss: LossName = "squared"


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
    require(settings.loss in LIKELIHOODS, "loss", f"{' or '.join(LIKELIHOODS)} for doebe", settings.loss)
    V = settings.frequencies(names, seed)
    return Problem(V, settings.mixing, float(settings.noise), float(settings.walk), settings.loss)


def uniforms(problem: Problem) -> int:
    return 0


def shape(problem: Problem) -> Shape:
    return Shape(inputs=problem.V.shape[1], target="number" if problem.loss == "squared" else "sign")


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


def moderated(m: Vector, v: Vector) -> Vector:
    """The log odds of a label whose own are distributed with this mean and variance."""
    return m / np.sqrt(1 + math.pi / 8 * v)  # (B7)


def log_logistic(x: Vector) -> Vector:
    out: Vector = -np.logaddexp(0.0, -x)
    return out


def mixed(problem: Problem, log_w: Vector, m: Vector, v: Vector) -> float:
    """What the mixture predicts: the mean of numbers, the log odds of labels."""
    if problem.loss == "squared":
        return float(normalised(log_w) @ m)  # (B3)
    odds = moderated(m, v)
    return float(logsumexp(log_w + log_logistic(odds)) - logsumexp(log_w + log_logistic(-odds)))  # (B3)


def predict(problem: Problem, state: State, x: Vector) -> float:
    _, _, m, v = distributions(problem, state, x)
    return mixed(problem, state.log_w, m, v)


def log_densities(problem: Problem, m: Vector, v: Vector, y: float) -> Vector:
    """log p_e(y)"""
    if problem.loss == "squared":
        s2 = max(problem.noise, LEAST_NOISE) + v  # (B2)
        out: Vector = -0.5 * (LOG_2_PI + np.log(s2) + (y - m) ** 2 / s2)
        return out
    return log_logistic(y * moderated(m, v))  # (B7)


def balance(start: float, variance: float) -> tuple[float, float]:
    """sigma(-a) and sigma(a) sigma(-a) at the margin a = start + variance sigma(-a), by Newton's method in brackets.

    >>> slope, information = balance(-1.0, 2.0)
    >>> a = -1.0 + 2.0 * slope
    >>> round(slope * (1 + math.exp(a)), 12), round(slope * (1 - slope) - information, 12)
    (1.0, 0.0)
    """
    a, low, high = start, start, start + variance
    for _ in range(MOST_STEPS):
        e = math.exp(-abs(a))
        slope, information = (e if a > 0 else 1.0) / (1 + e), e / (1 + e) ** 2
        gap = a - start - variance * slope
        low, high = (a, high) if gap < 0 else (low, a)
        after = a - gap / (1 + variance * information)
        if not low < after < high:
            after = (low + high) / 2
        if abs(after - a) <= ROUNDING * (1 + abs(a)):
            break
        a = after
    return slope, information


def learned(problem: Problem, m: float, v: float, y: float, weight: float) -> tuple[float, float]:
    """By how much P z theta moves, and what P z z' P is divided by."""
    if problem.loss == "squared":
        s2 = max(problem.noise / weight, LEAST_NOISE) + v
        return (y - m) / s2, s2  # (B4)
    slope, information = balance(y * m, weight * v)
    known = weight * information
    return weight * y * slope, (1 / known if known > 0 else math.inf) + v  # (B8)


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
    prediction, t = mixed(problem, state.log_w, m, v), state.t + 1
    log_p = log_densities(problem, m, v, y)
    log_density = float(logsumexp(state.log_w + log_p) - logsumexp(state.log_w))  # (B3)
    info = Info(prediction, np.arange(len(problem.V)), log_density)
    if weight == 0:
        return state._replace(t=t), info

    theta, P = state.theta.copy(), state.P.copy()
    for e, walk in enumerate(walks(problem)):
        gain, divisor = learned(problem, m[e], v[e], y, weight)
        theta[e] += (gain * Pz[e]).reshape(theta[e].shape)  # (B4) (B8)
        P[e] += walk * np.eye(len(P[e])) - np.outer(Pz[e], Pz[e]) / divisor  # (B1) (B4) (B8)
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
    demand(problem.loss in LIKELIHOODS, "unknown loss")
    demand(is_real(problem.noise) and problem.noise > 0, "the noise must be positive")
    demand(is_real(problem.walk) and problem.walk >= 0, "the variance of the random walk must not be negative")


def check_state(problem: Problem, state: State) -> None:
    E, D = len(walks(problem)), problem.V.shape[2]
    check_shapes(state, {"theta": (E, 2, D), "P": (E, 2 * D, 2 * D), "log_w": (E,)})
    demand(is_real(state.log_score), "the log score is not finite")


@dataclass(kw_only=True, eq=False, repr=False)
class Parameters:
    """What the estimators let a user choose.

    Reference: Waxman and Djuric, Dynamic Online Ensembles of Basis Expansions, TMLR 2024; for mixing="stacking",
    Waxman, Llorente and Djuric, Bayesian Ensembling: Insights from Online Optimization and Empirical Bayes, arXiv
    2505.15638 (2025).

    kernels : str or list of Kernel, default="gaussian"
        The dictionary: "paper" (41 Gaussians), "gaussian" (11), "mixed", "families", or your own list.
    n_features : int, default=25
        Random features per kernel; time and memory are proportional to its square.
    mixing : {"averaging", "stacking"}, default="averaging"
        How weights are learned: Bayesian model averaging (DOEBE), or online Bayesian stacking.
    noise : float, default=0.1
        Variance of the noise of numbers, where that of the target is 1; labels have none.
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
    kernel_weights=kernel_weights,
    divergence_advice=raise_noise,
    added={"loss": "squared"},
    native=Native(padded=("theta", "P")),
)
