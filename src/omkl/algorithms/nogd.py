"""NOGD (Lu, Hoi, Wang, Zhao, Liu 2016): gradient descent on features of one kernel that the first B rows span.

The box of the paper. While fewer than B rows are stored, in round t:

    1. predict:   f(x) = sum_s beta_s kappa(x_s, x)                                                          (N1)
    2. learn:     store x, with the coefficient -eta C'(f(x), y)                                             (N2)

With B rows stored, K = kappa(x_r, x_s) has its k largest eigenvalues D, and all that equal the k-th, and their
eigenvectors V, and

    3. features:  z(x) = D^(-1/2) V' k(x), k(x)_s = kappa(x_s, x), from which theta starts so that f is
                  the projection of what it was on their span:  beta <- V V' beta                            (N3)
    4. predict:   f(x) = theta . z(x)                                                                        (N4)
    5. learn:     theta <- theta - eta C'(f(x), y) z(x)                                                      (N5)

Stored are the coefficients beta = V D^(-1/2) theta of the rows, and K+ = V D^-1 V': then f(x) = beta . k(x), and a step
moves beta along K+ k(x). Predictions are the same, and no sign of an eigenvector matters.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from omkl.algorithms.base import Algorithm, Kernels, Shape
from omkl.algorithms.descent import (
    Descent,
    Stabiliser,
    descend,
    divergence_advice,
    importance,
    require_bounded,
    require_finite,
)
from omkl.algorithms.fogd import DEFAULT, FOGDSettings
from omkl.algorithms.invariants import check_descent, check_schedule, check_shapes, demand, is_count
from omkl.algorithms.omkr import supports, view
from omkl.algorithms.schedule import Schedule
from omkl.arrays import Index, Matrix, Vector
from omkl.engine import Native
from omkl.kernels import Kernel
from omkl.validation import require, require_whole

LEAST_EIGENVALUE = 1e-4  # of the largest: with less, a direction is not worth its rounding errors
TIED = 1e-9  # eigenvalues that differ by less of themselves are equal: no order tells them apart
MOST_ROWS = 2000  # an eigendecomposition of more takes minutes


@dataclass(frozen=True)
class NOGDSettings(FOGDSettings):
    """What a user may choose for NOGD.

    Parameters
    ----------
    budget
        Rows that are stored, B.
    rank
        Eigenvalues that are used, k; fewer where they are too small.
    """

    budget: int = 100
    rank: int = 50

    def __post_init__(self) -> None:
        super().__post_init__()
        require_whole("rank", self.rank)
        require(self.budget <= MOST_ROWS, "budget", f"at most {MOST_ROWS}", self.budget)
        require(self.rank <= self.budget, "rank", f"at most the budget, {self.budget} (lower rank too)", self.rank)
        require(self.stabiliser != "project", "stabiliser", "aware, floor or none for nogd", self.stabiliser)

    def size(self, d: int, outputs: int = 1) -> int:
        """About how many numbers it takes to make a model for d features and so many outputs."""
        return outputs * self.budget * (d + self.budget)


class Problem(NamedTuple):
    kernels: tuple[Kernel, ...]  # one
    d: int
    descent: Descent
    schedule: Schedule
    budget: int  # B
    rank: int  # k


class State(NamedTuple):
    S: Matrix  # (d, B)       rows stored, one per column
    beta: Vector  # (B,)      their coefficients
    inverse: Matrix  # (B, B)  K+, once there are B rows
    n: int  # rows stored
    t: int  # rounds so far


class Info(NamedTuple):
    prediction: float
    evaluated: Index


def build(settings: NOGDSettings, names: Sequence[str], seed: int) -> Problem:
    limits = settings.budget, settings.rank
    return Problem(settings.all_kernels, len(names), settings.descent, settings.schedule, *limits)


def uniforms(problem: Problem) -> int:
    return 0


def shape(problem: Problem) -> Shape:
    return Shape(inputs=problem.d, target="number" if problem.descent.loss == "squared" else "sign")


def init(problem: Problem, r: Vector) -> State:
    B = problem.budget
    return State(np.zeros((problem.d, B)), np.zeros(B), np.zeros((B, B)), 0, 0)


def grow(problem: Problem, state: State) -> State:
    """The state for a problem with more features: stored rows get zeros for the features they did not have."""
    return state._replace(S=np.pad(state.S, ((0, problem.d - len(state.S)), (0, 0))))


def kernel_values(kernel: Kernel, S: Matrix, n: int, x: Vector) -> Vector:
    """k(x), and zeros where no row is stored yet."""
    k = np.zeros(S.shape[1])
    k[:n] = kernel.value(S[:, :n].T, x[None])[:, 0]
    return k


def predict(problem: Problem, state: State, x: Vector) -> float:
    return float(state.beta @ kernel_values(problem.kernels[0], state.S, state.n, x))  # (N1) (N4)


def spectral_inverse(K: Matrix, rank: int) -> tuple[Matrix, Matrix]:
    """K+ and V V' of the largest eigenvalues."""
    values, vectors = np.linalg.eigh(K)
    kept = (values >= (1 - TIED) * values[-rank]) & (values > LEAST_EIGENVALUE * values[-1])
    V = vectors[:, kept]
    return V / values[kept] @ V.T, V @ V.T


def step(problem: Problem, state: State, x: Vector, y: float, r: Vector, weight: float = 1.0) -> tuple[State, Info]:
    (kernel,), _, descent, schedule, B, rank = problem
    S, beta, inverse, n, t = state
    k = kernel_values(kernel, S, n, x)
    f = float(beta @ k)  # (N1) (N4)
    require_bounded(np.array([f]))
    eta = schedule.eta_at(t + 1)
    along = inverse @ k if n == B else np.eye(B)[n]
    moved = descend(descent, beta[None], along[None], f, y, eta * importance(descent, 1.0, eta, weight))[0]  # (N2) (N5)
    require_finite(y, moved)
    if n < B and moved[n] != 0:
        S = S.copy()
        S[:, n] = x  # (N2)
        n += 1
        if n == B:
            inverse, projection = spectral_inverse(kernel.value(S.T, S.T), rank)
            moved = projection @ moved  # (N3)
    return State(S, moved, inverse, n, t + 1), Info(f, np.arange(1))


def one_kernel(problem: object, state: object) -> Vector:
    return np.ones(1)


def check_problem(problem: Problem) -> None:
    demand(is_count(problem.d) and problem.d >= 1 and len(problem.kernels) == 1, "no features, or not one kernel")
    demand(is_count(problem.budget) and 1 <= problem.budget <= MOST_ROWS, "the budget is out of range")
    demand(is_count(problem.rank) and 1 <= problem.rank <= problem.budget, "the rank is out of range")
    check_descent(problem.descent)
    demand(problem.descent.stabiliser != "project", "no projection is known for coefficients of rows")
    check_schedule(problem.schedule)


def check_state(problem: Problem, state: State) -> None:
    B = problem.budget
    check_shapes(state, {"S": (problem.d, B), "beta": (B,), "inverse": (B, B)})
    demand(is_count(state.n) and state.n <= B, "more rows are stored than the budget")
    demand(not state.beta[state.n :].any(), "a row that is not stored has a coefficient")


@dataclass(kw_only=True, eq=False, repr=False)
class Parameters:
    """What the estimators let a user choose.

    Reference: Lu, Hoi, Wang, Zhao and Liu, Large Scale Online Kernel Learning, JMLR 17 (2016).

    kernels : list of one Kernel, default=(Gaussian(2.0),)
        The kernel, on standardised inputs.
    budget : int, default=100
        Rows that are stored.
    rank : int, default=50
        Features made of them.
    learning_rate : float, default=None
        c / sqrt(t) with c = 1 by default; with a `horizon`, 1 / sqrt(horizon) or the constant given.
    horizon : int, default=None
        Number of rows, where it is known beforehand.
    stabiliser : {"aware", "floor", "none"}, default="aware"
        "aware" cannot overshoot; "none" is the paper's step and may diverge.
    """

    kernels: Kernels = DEFAULT
    budget: int = 100
    rank: int = 50
    learning_rate: float | None = None
    horizon: int | None = None
    stabiliser: Stabiliser = "aware"

    @property
    def algorithm_name(self) -> str:
        return "nogd"


ALGORITHM: Algorithm[Problem, State] = Algorithm(
    name="nogd",
    settings=NOGDSettings,
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
    grow=grow,
    coefficients="beta",
    kernel_weights=one_kernel,
    divergence_advice=divergence_advice,
    native=Native(view=view, supports=supports, padded=("S", "inverse")),
)
