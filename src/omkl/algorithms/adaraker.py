"""AdaRaker (Shen, Chen, Giannakis 2019): Rakers on a hierarchy of intervals, for streams that change.

The box of the paper, in the notation of Raker. Level j = 0, 1, ... divides time into intervals I of |I_j| = |I_0| 2^j
rounds, and a Raker A_j learns on each with a step of its own. In round t:

    1. every level predicts as Raker does:              f_j(x) = sum_i w_ij f_ij(x) / sum_i w_ij            (6)
    2. the levels are combined by their weights:        f(x) = sum_j h_j f_j(x) / sum_j h_j                 (A1)
    3. every level learns as Raker does, with the step: eta_j = min(1/2, c / sqrt(|I_j|))                   (A2)
    4. a level gains where it beats the combination:    h_j <- h_j exp(-eta_j (C(f_j(x), y) - C(f(x), y)))  (A3)
    5. at the end of an interval of level j:            h_j <- eta_j, and A_j starts anew unless `warm`     (A4)

The last level has one interval that never ends, and the steps of Raker: with one level AdaRaker is Raker. Rounds of
weight 0 do not count for the intervals, since nothing is learned in them.
"""

import math
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
    is_real,
)
from omkl.algorithms.outputs import outputs
from omkl.algorithms.schedule import Schedule
from omkl.algorithms.settings import Settings
from omkl.algorithms.weights import normalised
from omkl.arrays import Index, Matrix, Tensor, Vector
from omkl.engine import Native
from omkl.features import Draw
from omkl.validation import require, require_whole

MOST_LEVELS = 40  # 2^40 rounds are more than any stream has
LONGEST_SHORTEST = 2**20  # rounds of the first level; the engine's integers hold those of the last
LONGEST_STEP = 0.5


@dataclass(frozen=True)
class AdaRakerSettings(Settings):
    """What a user may choose for AdaRaker, beside what Raker has.

    Parameters
    ----------
    levels
        Lengths of intervals; the last level has one that never ends.
    shortest
        Rounds of an interval of the first level; each level doubles it.
    warm
        Whether a level goes on with what it has learned where a new interval begins, or starts anew.
    """

    levels: int = 6
    shortest: int = 32
    warm: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("levels", "shortest"):
            require_whole(name, getattr(self, name))
        require(self.levels <= MOST_LEVELS, "levels", f"at most {MOST_LEVELS}", self.levels)
        longest = f"at most {LONGEST_SHORTEST}"
        require(self.shortest <= LONGEST_SHORTEST, "shortest", longest, self.shortest)
        require(isinstance(self.warm, bool), "warm", "True or False", self.warm)

    def size(self, d: int, outputs: int = 1) -> int:
        """About how many numbers it takes to make a model for d features and so many outputs."""
        return super().size(d, outputs * self.levels)


class Problem(NamedTuple):
    V: Tensor  # (N, d, D)
    descent: Descent
    schedule: Schedule
    levels: int  # L
    shortest: int  # |I_0|
    rate: float  # c
    warm: bool = True


class State(NamedTuple):
    theta: Tensor  # (L, N, 2, D)
    log_w: Matrix  # (L, N)
    log_h: Vector  # (L,)
    n: int  # rounds so far in which something was learned
    t: int  # rounds so far


class Info(NamedTuple):
    prediction: float
    evaluated: Index


def build(settings: AdaRakerSettings, names: Sequence[str], seed: int) -> Problem:
    schedule = settings.schedule
    rate = schedule.eta * (1.0 if settings.horizon is None else math.sqrt(settings.horizon))
    V = settings.frequencies(names, seed)
    return Problem(V, settings.descent, schedule, settings.levels, settings.shortest, rate, settings.warm)


def uniforms(problem: Problem) -> int:
    return 0


def shape(problem: Problem) -> Shape:
    return Shape(inputs=problem.V.shape[1], target="number" if problem.descent.loss == "squared" else "sign")


def rates(problem: Problem, t: int) -> list[float]:
    """eta of every level in round t."""
    lengths = [problem.shortest * 2**j for j in range(problem.levels - 1)]
    steps = [min(LONGEST_STEP, problem.rate / math.sqrt(length)) for length in lengths]  # (A2)
    return [*steps, problem.schedule.eta_at(t)]


def init(problem: Problem, r: Vector) -> State:
    N, _, D = problem.V.shape
    L = problem.levels
    return State(np.zeros((L, N, 2, D)), np.zeros((L, N)), np.log(rates(problem, 1)), 0, 0)


def predictions(problem: Problem, state: State, x: Vector) -> tuple[Tensor, Matrix, Vector]:
    """z_i of every kernel, (L, N) predictions of every kernel at every level, and (L,) of every level."""
    z, _ = outputs(problem.V, state.theta[0], x)
    f = np.array([[np.vdot(theta_i, z_i) for theta_i, z_i in zip(theta, z, strict=True)] for theta in state.theta])
    return z, f, np.array([normalised(log_w) @ f_j for log_w, f_j in zip(state.log_w, f, strict=True)])  # (6)


def predict(problem: Problem, state: State, x: Vector) -> float:
    return float(normalised(state.log_h) @ predictions(problem, state, x)[2])  # (A1)


def step(problem: Problem, state: State, x: Vector, y: float, r: Vector, weight: float = 1.0) -> tuple[State, Info]:
    descent, t = problem.descent, state.t + 1
    z, f, level = predictions(problem, state, x)
    require_bounded(f)
    y_hat = float(normalised(state.log_h) @ level)  # (A1)

    theta, log_w, log_h = np.empty_like(state.theta), state.log_w.copy(), state.log_h.copy()
    loss = losses.value(descent.loss, y_hat, y)
    n, etas = state.n + (weight > 0), rates(problem, t)
    for j, eta in enumerate(etas):
        h = importance(descent, 1.0, eta, weight)
        for i, before in enumerate(state.theta[j]):
            own = losses.value(descent.loss, f[j, i], y) + descent.lam * np.vdot(before, before)  # (5)
            log_w[j, i] -= eta * h * own  # (18a)
            require_finite_step(descent, before, f[j, i], y, eta * h)
            theta[j, i] = descend(descent, before, z[i], f[j, i], y, eta * h)  # (17)
        log_h[j] -= eta * weight * (losses.value(descent.loss, level[j], y) - loss)  # (A3)
    require_finite(y, log_w, log_h)
    for j, eta in enumerate(etas[:-1]):
        if weight > 0 and n % (problem.shortest * 2**j) == 0:
            log_h[j] = np.log(eta)  # (A4)
            if not problem.warm:
                theta[j], log_w[j] = 0.0, 0.0  # (A4)
    return State(theta, log_w, log_h, n, t), Info(y_hat, np.arange(len(z)))


def kernel_weights(problem: Problem, state: State) -> Vector:
    """Of every kernel, over the levels."""
    shares: Vector = normalised(state.log_h) @ np.array([normalised(log_w) for log_w in state.log_w])
    return shares


def check_problem(problem: Problem) -> None:
    check_frequencies(problem.V)
    check_descent(problem.descent)
    check_schedule(problem.schedule)
    demand(is_count(problem.levels) and 1 <= problem.levels <= MOST_LEVELS, "the number of levels is out of range")
    demand(
        is_count(problem.shortest) and 1 <= problem.shortest <= LONGEST_SHORTEST,
        "the shortest interval is out of range",
    )
    demand(is_real(problem.rate) and problem.rate > 0, "the rate must be positive")
    demand(isinstance(problem.warm, bool), "`warm` must be true or false")


def check_state(problem: Problem, state: State) -> None:
    (N, _, D), L = problem.V.shape, problem.levels
    check_shapes(state, {"theta": (L, N, 2, D), "log_w": (L, N), "log_h": (L,)})
    demand(is_count(state.n) and state.n <= state.t, "more rounds were learned than there were")


@dataclass(kw_only=True, eq=False, repr=False)
class Parameters:
    """What the estimators let a user choose.

    Reference: Shen, Chen and Giannakis, Random Feature-based Online Multi-kernel Learning in Environments with
    Unknown Dynamics, JMLR 20 (2019).

    kernels : str or list of Kernel, default="paper"
        The dictionary: "paper" (41 Gaussians), "gaussian", "mixed", "families", or your own list.
    n_features : int, default=50
        Random features per kernel.
    levels : int, default=6
        Lengths of intervals; the last level has one that never ends, so that one level is Raker.
    shortest : int, default=32
        Rows of the shortest intervals; each level doubles it.
    warm : bool, default=True
        Whether a level goes on with what it has learned where a new interval begins, or starts anew.
    ridge : float, default=1e-3
        Weight of the squared norm of each kernel's coefficients.
    learning_rate : float, default=None
        c / sqrt(length of the interval), and as for Raker on the last level; c = 1 by default. With a `horizon`, the
        constant of the last level, of which c is sqrt(horizon) times as much.
    horizon : int, default=None
        Number of rows, where it is known beforehand.
    stabiliser : {"aware", "floor", "project", "none"}, default="aware"
        "aware" cannot overshoot; "none" is the paper's step and may diverge.
    draw : {"independent", "shared"}, default="independent"
        Random features of its own for every kernel, or one draw for all Gaussian ones, which is faster.
    """

    kernels: Kernels = "paper"
    n_features: int = 50
    levels: int = 6
    shortest: int = 32
    warm: bool = True
    ridge: float = 1e-3
    learning_rate: float | None = None
    horizon: int | None = None
    stabiliser: Stabiliser = "aware"
    draw: Draw = "independent"

    @property
    def algorithm_name(self) -> str:
        return "adaraker"


ALGORITHM: Algorithm[Problem, State] = Algorithm(
    name="adaraker",
    settings=AdaRakerSettings,
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
    divergence_advice=divergence_advice,
    native=Native(padded=("theta", "log_w")),
)
