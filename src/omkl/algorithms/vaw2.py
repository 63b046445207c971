"""VAW^2 (Rokhlin, Gurtovaya 2025): a Vovk-Azoury-Warmuth forecaster for every kernel, and one over the kernels.

A Vovk-Azoury-Warmuth forecaster is ridge regression that counts the row it predicts, with a target of 0. The box of
the paper, with features z_i of kernel i. In round t:

    1. every kernel predicts:       A_i = lambda I + sum_(s <= t) z_i z_i',  b_i = sum_(s < t) y z_i         (V1)
                                    v_i = b_i' A_i^-1 z_i(x)                                                 (V2)
    2. so does the combination,     B = mu I + sum_(s <= t) v v',  c = sum_(s < t) y v                       (V3)
       with v as its features:      f(x) = c' B^-1 v                                                         (V4)

What is stored is ridge regression without the current row: theta = A^-1 b and the Cholesky factor R of A^-1 = R' R.
With the current row the prediction is theta' z / (1 + |R z|^2), by the formula of Sherman and Morrison.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from omkl.algorithms.base import Algorithm, Kernels, Shape
from omkl.algorithms.descent import require_bounded, require_finite
from omkl.algorithms.graph_mkl.least_squares import P_times, downdated, factor_times
from omkl.algorithms.invariants import check_frequencies, check_shapes, demand, is_real
from omkl.algorithms.omkr import require_squared_loss
from omkl.algorithms.settings import Settings
from omkl.arrays import Index, Matrix, Tensor, Vector
from omkl.engine import Native
from omkl.features import Draw, features
from omkl.validation import is_number, require


@dataclass(frozen=True)
class VAW2Settings(Settings):
    """What a user may choose for VAW^2; of what the paper's algorithms have, kernels, features and ridge.

    Parameters
    ----------
    ridge
        lambda, of the forecasters of the kernels.
    mixing_ridge
        mu, of the forecaster over the kernels.
    """

    n_features: int = 25
    ridge: float = 1e-2
    mixing_ridge: float = 1e-2

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("ridge", "mixing_ridge"):
            value = getattr(self, name)
            require(is_number(value) and value > 0, name, "a positive number", value)

    def size(self, d: int, outputs: int = 1) -> int:
        """About how many numbers it takes to make a model for d features and so many outputs."""
        N, n = len(self.all_kernels), 2 * self.n_features
        return super().size(d, outputs) + outputs * N * (n * n + N)


class Problem(NamedTuple):
    V: Tensor  # (N, d, D)
    ridge: float  # lambda
    mixing_ridge: float  # mu


class State(NamedTuple):
    theta: Tensor  # (N, 2, D)  A_i^-1 b_i
    R: Tensor  # (N, 2D, 2D)    factors of A_i^-1
    c: Vector  # (N,)           B^-1 c, the weights of the kernels
    C: Matrix  # (N, N)         factor of B^-1
    t: int  # rounds so far


class Info(NamedTuple):
    prediction: float
    evaluated: Index
    v: Vector  # (N,)  predictions of the kernels


class Forecast(NamedTuple):
    """One forecaster and one row: phi = R z, ridge regression's prediction f, and q = |phi|^2."""

    phi: Vector
    f: float
    q: float

    @property
    def prediction(self) -> float:
        return self.f / (1 + self.q)  # (V2) (V4)


def forecast(R: Matrix, theta: Vector, z: Vector) -> Forecast:
    phi = factor_times(R, z)
    return Forecast(phi, float(theta.ravel() @ z), float(phi @ phi))


def learned(R: Matrix, theta: Matrix, row: Forecast, y: float, weight: float) -> tuple[Matrix, Matrix]:
    """R and theta of ridge regression after a row: of (V1) and (V3), after t."""
    gain = weight * (y - row.f) / (1 + weight * row.q)
    return downdated(R, row.phi, weight), theta + gain * P_times(R, row.phi).reshape(theta.shape)  # (V1) (V3)


def build(settings: VAW2Settings, names: Sequence[str], seed: int) -> Problem:
    require_squared_loss(settings, "vaw2")
    return Problem(settings.frequencies(names, seed), float(settings.ridge), float(settings.mixing_ridge))


def uniforms(problem: Problem) -> int:
    return 0


def shape(problem: Problem) -> Shape:
    return Shape(inputs=problem.V.shape[1])


def init(problem: Problem, r: Vector) -> State:
    N, _, D = problem.V.shape
    R = np.tile(np.eye(2 * D) / np.sqrt(problem.ridge), (N, 1, 1))
    return State(np.zeros((N, 2, D)), R, np.zeros(N), np.eye(N) / np.sqrt(problem.mixing_ridge), 0)


def forecasts(problem: Problem, state: State, x: Vector) -> tuple[list[Forecast], Forecast]:
    """Of every kernel, and over them."""
    z = [features(V_i, x).ravel() for V_i in problem.V]
    each = [forecast(R, theta, z_i) for R, theta, z_i in zip(state.R, state.theta, z, strict=True)]
    return each, forecast(state.C, state.c, np.array([one.prediction for one in each]))


def predict(problem: Problem, state: State, x: Vector) -> float:
    return forecasts(problem, state, x)[1].prediction


def step(problem: Problem, state: State, x: Vector, y: float, r: Vector, weight: float = 1.0) -> tuple[State, Info]:
    each, over = forecasts(problem, state, x)
    require_bounded(np.array([over.f, *(one.f for one in each)]))
    require_finite(weight * np.array([over.q, *(one.q for one in each)]))
    R, theta = state.R.copy(), state.theta.copy()
    for i, one in enumerate(each):
        R[i], theta[i] = learned(R[i], theta[i], one, y, weight)
    C, c = learned(state.C, state.c, over, y, weight)
    require_finite(y, theta, c)
    v = np.array([one.prediction for one in each])
    return State(theta, R, c, C, state.t + 1), Info(over.prediction, np.arange(len(v)), v)


def kernel_weights(problem: Problem, state: State) -> Vector:
    """Shares of the weights' sizes: the weights may be negative and of any sum."""
    sizes: Vector = np.abs(state.c)
    return sizes / sizes.sum() if sizes.any() else np.full(len(sizes), 1 / len(sizes))


def divergence_advice(problem: Problem) -> str:
    return "scale y to a moderate range or raise ridge and mixing_ridge"


def check_problem(problem: Problem) -> None:
    check_frequencies(problem.V)
    for ridge in problem[1:]:
        demand(is_real(ridge) and ridge > 0, "a ridge must be positive")


def check_state(problem: Problem, state: State) -> None:
    N, _, D = problem.V.shape
    check_shapes(state, {"theta": (N, 2, D), "R": (N, 2 * D, 2 * D), "c": (N,), "C": (N, N)})
    for factor in (*state.R, state.C):
        demand(not np.triu(factor, 1).any(), "a factor is not lower triangular")


@dataclass(kw_only=True, eq=False, repr=False)
class Parameters:
    """What the estimators let a user choose.

    Reference: Rokhlin and Gurtovaya, Random feature-based double Vovk-Azoury-Warmuth algorithm for online
    multi-kernel learning, arXiv 2503.20087 (2025).

    kernels : str or list of Kernel, default="paper"
        The dictionary: "paper" (41 Gaussians), "gaussian", "mixed", "families", or your own list.
    n_features : int, default=25
        Random features per kernel; time and memory are proportional to its square.
    ridge : float, default=1e-2
        Weight of the squared norm of each kernel's coefficients.
    mixing_ridge : float, default=1e-2
        Weight of the squared norm of the weights of the kernels.
    draw : {"independent", "shared"}, default="independent"
        Random features of its own for every kernel, or one draw for all Gaussian ones, which is faster.
    """

    kernels: Kernels = "paper"
    n_features: int = 25
    ridge: float = 1e-2
    mixing_ridge: float = 1e-2
    draw: Draw = "independent"

    @property
    def algorithm_name(self) -> str:
        return "vaw2"


ALGORITHM: Algorithm[Problem, State] = Algorithm(
    name="vaw2",
    settings=VAW2Settings,
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
    divergence_advice=divergence_advice,
    native=Native(padded=("theta", "R", "C")),
)
