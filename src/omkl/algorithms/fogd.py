"""FOGD (Lu, Hoi, Wang, Zhao, Liu 2016): gradient descent on the random features of one kernel.

The box of the paper. In round t:

    1. predict:   f(x) = theta . z(x)                                      (4)
    2. learn:     theta <- theta - eta grad C(f(x), y)                     (17)

That is Raker with one kernel and no ridge, and is computed by it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from omkl.algorithms import raker
from omkl.algorithms.base import Algorithm, Kernels
from omkl.algorithms.descent import Stabiliser, divergence_advice
from omkl.algorithms.invariants import demand
from omkl.algorithms.raker import Problem, State
from omkl.algorithms.settings import Settings
from omkl.kernels import Gaussian, Kernel
from omkl.validation import require

DEFAULT = (Gaussian(2.0),)  # on standardised inputs


@dataclass(frozen=True)
class FOGDSettings(Settings):
    """What a user may choose for FOGD, of what the paper's algorithms have: one kernel, and no ridge by default."""

    kernels: str | Sequence[Kernel] = DEFAULT
    n_features: int = 100
    ridge: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        require(len(self.all_kernels) == 1, "kernels", "a list of one kernel", self.all_kernels)


def build(settings: FOGDSettings, names: Sequence[str], seed: int) -> Problem:
    return raker.build(settings, names, seed)


def check_problem(problem: Problem) -> None:
    raker.check_problem(problem)
    demand(len(problem.V) == 1, "there must be one kernel")


@dataclass(kw_only=True, eq=False, repr=False)
class Parameters:
    """What the estimators let a user choose.

    Reference: Lu, Hoi, Wang, Zhao and Liu, Large Scale Online Kernel Learning, JMLR 17 (2016).

    kernels : list of one Kernel, default=(Gaussian(2.0),)
        The kernel, on standardised inputs.
    n_features : int, default=100
        Random features.
    learning_rate : float, default=None
        c / sqrt(t) with c = 1 by default; with a `horizon`, 1 / sqrt(horizon) or the constant given.
    horizon : int, default=None
        Number of rows, where it is known beforehand.
    stabiliser : {"aware", "floor", "project", "none"}, default="aware"
        "aware" cannot overshoot; "none" is the paper's step and may diverge.
    """

    kernels: Kernels = DEFAULT
    n_features: int = 100
    learning_rate: float | None = None
    horizon: int | None = None
    stabiliser: Stabiliser = "aware"

    @property
    def algorithm_name(self) -> str:
        return "fogd"


ALGORITHM: Algorithm[Problem, State] = Algorithm(
    name="fogd",
    settings=FOGDSettings,
    parameters=Parameters,
    Problem=Problem,
    State=State,
    build=build,
    init=raker.init,
    predict=raker.predict,
    step=raker.step,
    uniforms=raker.uniforms,
    shape=raker.shape,
    check_problem=check_problem,
    check_state=raker.check_state,
    divergence_advice=divergence_advice,
)
