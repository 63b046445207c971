"""OMKR (Sahoo, Hoi, Li 2014): exact kernels, every past sample is a support point.

Its memory grows with the stream by definition; `budget` bounds it. When the budget is used up, OMKR goes on
predicting and updating the weights of its kernels, but adds no support points.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from omkl.algorithms.base import Algorithm, Kernels, Shape
from omkl.algorithms.descent import require_bounded, require_finite
from omkl.algorithms.invariants import check_schedule, check_shapes, demand, is_count
from omkl.algorithms.schedule import Schedule
from omkl.algorithms.settings import Settings
from omkl.algorithms.weights import normalised
from omkl.arrays import Index, Matrix, Vector
from omkl.engine import Native
from omkl.kernels import Cauchy, Gaussian, Kernel, Laplacian, Matern
from omkl.validation import require

HEDGE = 0.5  # w_i is multiplied by HEDGE ** loss


class Problem(NamedTuple):
    kernels: tuple[Kernel, ...]
    d: int
    schedule: Schedule
    budget: int | None = None  # the largest number of support points


class State(NamedTuple):
    S: Matrix  # (d, n)      support points, one per column
    alpha: Matrix  # (N, n)  their coefficients for every kernel
    log_w: Vector  # (N,)
    t: int  # rounds so far


class Info(NamedTuple):
    prediction: float
    evaluated: Index


def require_squared_loss(settings: Settings, name: str) -> None:
    require(settings.loss == "squared", "loss", f"squared for {name}", settings.loss)


def build(settings: Settings, names: Sequence[str], seed: int) -> Problem:
    require_squared_loss(settings, "omkr")
    return Problem(settings.all_kernels, len(names), settings.schedule, settings.budget)


def uniforms(problem: Problem) -> int:
    return 0


def shape(problem: Problem) -> Shape:
    return Shape(inputs=problem.d, budget=problem.budget)


def init(problem: Problem, r: Vector) -> State:
    N = len(problem.kernels)
    return State(np.zeros((problem.d, 0)), np.zeros((N, 0)), np.zeros(N), 0)


def grow(problem: Problem, state: State) -> State:
    """The state for a problem with more features: stored samples get zeros for the features they did not have."""
    return state._replace(S=np.pad(state.S, ((0, problem.d - len(state.S)), (0, 0))))


def step_length(schedule: Schedule, t: int, weight: float) -> float:
    """eta times the weight, at most 1: a step never passes the target."""
    return min(1.0, weight * schedule.eta_at(t))


def _outputs(problem: Problem, state: State, x: Vector) -> Vector:
    S = state.S.T
    return np.array([a @ k.value(S, x[None])[:, 0] for k, a in zip(problem.kernels, state.alpha, strict=True)])


def predict(problem: Problem, state: State, x: Vector) -> float:
    return float(normalised(state.log_w) @ _outputs(problem, state, x))  # (6)


def step(problem: Problem, state: State, x: Vector, y: float, r: Vector, weight: float = 1.0) -> tuple[State, Info]:
    t = state.t + 1
    f = _outputs(problem, state, x)
    require_bounded(f)
    y_hat = float(normalised(state.log_w) @ f)  # (6)

    log_w = state.log_w + weight * np.log(HEDGE) * (f - y) ** 2
    require_finite(log_w)
    S, alpha = state.S, state.alpha
    if problem.budget is None or S.shape[1] < problem.budget:
        new = -step_length(problem.schedule, t, weight) * (f - y)
        S, alpha = np.column_stack((S, x)), np.column_stack((alpha, new))
    return State(S, alpha, log_w, t), Info(y_hat, np.arange(len(f)))


def check_problem(problem: Problem) -> None:
    demand(is_count(problem.d) and problem.d >= 1 and len(problem.kernels) >= 1, "no features or no kernels")
    demand(problem.budget is None or is_count(problem.budget), "the budget must be a count")
    check_schedule(problem.schedule)


def check_state(problem: Problem, state: State) -> None:
    N, n = len(problem.kernels), state.S.shape[-1]
    check_shapes(state, {"S": (problem.d, n), "alpha": (N, n), "log_w": (N,)})
    demand(problem.budget is None or n <= problem.budget, "more support points than the budget")
    demand(n <= state.t, "more support points than rounds")


# C++ knows the kernels of the library by a code and a rate, and no others

_MATERN_CODE = {0.5: 2, 1.5: 3, 2.5: 4}


def kernel_code(kernel: Kernel) -> tuple[int, float] | None:
    """(family, rate) as engine/algorithms/omkr.hpp has them; None for a kernel that C++ does not know."""
    if type(kernel) is Gaussian:
        return 0, 1 / (2 * kernel.length_scale**2)
    if type(kernel) is Laplacian:
        return 1, 1 / kernel.length_scale
    if type(kernel) is Matern:
        return _MATERN_CODE[kernel.nu], kernel.rate
    if type(kernel) is Cauchy:
        return 5, 1 / kernel.length_scale
    return None


def supports(problem: Any) -> bool:
    return all(kernel_code(kernel) for kernel in problem.kernels)


def view(problem: Any) -> SimpleNamespace:
    codes = [kernel_code(kernel) or (0, 0.0) for kernel in problem.kernels]
    families, rates = [code for code, _ in codes], np.array([rate for _, rate in codes])
    return SimpleNamespace(**problem._asdict(), families=families, rates=rates)


@dataclass(kw_only=True, eq=False, repr=False)
class Parameters:
    """What the estimators let a user choose.

    kernels : str or list of Kernel, default="paper-omkr"
        The dictionary, "paper-omkr" or your own list.
    learning_rate : float, default=None
        c / sqrt(t) with c = 1 by default; with a `horizon`, 1 / sqrt(horizon) or the constant given.
    horizon : int, default=None
        Number of rows, where it is known beforehand.
    budget : int, default=None
        The largest number of rows stored as support points; a warning says when it is reached.
    """

    kernels: Kernels = "paper-omkr"
    learning_rate: float | None = None
    horizon: int | None = None
    budget: int | None = None

    @property
    def algorithm_name(self) -> str:
        return "omkr"


ALGORITHM: Algorithm[Problem, State] = Algorithm(
    name="omkr",
    settings=Settings,
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
    fixed_size=False,
    native=Native(view=view, supports=supports, padded=(), grows=("S", "alpha")),
)
