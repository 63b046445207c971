"""What an algorithm is to the rest of the library: one record of types and functions, and nothing else.

Every module of `omkl.algorithms` that implements an algorithm ends in `ALGORITHM = Algorithm(...)`. `Online`,
model files, estimators, fleets and the command line work with this record; none of them knows an algorithm by name.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import Field, dataclass, field
from typing import Any, ClassVar, Generic, Literal, NamedTuple, Protocol, Self, TypeVar

import numpy as np

from omkl.algorithms.weights import normalised
from omkl.arrays import Arrays, Index, Mask, Matrix, Vector
from omkl.engine import Native
from omkl.kernels import Kernel

P = TypeVar("P", bound=NamedTuple)  # the algorithm's Problem, a NamedTuple
S = TypeVar("S", bound=NamedTuple)  # its State, a NamedTuple of arrays, numbers and further NamedTuples
T = TypeVar("T")

Task = Literal["regression", "classification"]
Kernels = str | Sequence[Kernel]  # how a user names a dictionary of kernels


class AlgorithmSettings(Protocol):
    """What the settings of all algorithms have in common; each is a dataclass with fields of its own."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def __init__(self, **choices: Any) -> None: ...

    @classmethod
    def for_task(cls, task: Task, **choices: Any) -> Self:
        """The settings of a task, with these choices."""

    @property
    def kernels(self) -> str | Iterable[Kernel]:
        """The dictionary that was chosen; a tuple of kernels once the settings are made."""

    @property
    def all_kernels(self) -> tuple[Kernel, ...]:
        """The kernels that random features, or exact kernel values, are computed for."""

    @property
    def n_features(self) -> int:
        """Random features per kernel."""

    def size(self, d: int, outputs: int = 1) -> int:
        """About how many numbers it takes to make a model for d features and so many outputs."""


class EstimatorParameters(Protocol):
    """What the parameters of all algorithms' estimators have in common; each is a dataclass with fields of its own."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def __init__(self, **choices: Any) -> None: ...

    @property
    def algorithm_name(self) -> str:
        """The algorithm that these parameters select."""


class Info(Protocol):
    """What a step reports about its round."""

    @property
    def prediction(self) -> float | Vector:
        """The prediction that was made before learning: a number, or (outputs,)."""

    @property
    def evaluated(self) -> Index:
        """The kernels, or experts, that were evaluated."""


class Shape(NamedTuple):
    """What the rows of a problem look like."""

    inputs: int  # features of a row
    outputs: int = 1  # values of one prediction
    target: Literal["number", "sign", "label"] = "number"  # a sign is -1 or 1, a label is 0, ..., outputs - 1
    missing: bool = False  # whether an input may be missing, as NaN
    budget: int | None = None  # largest number of rows that a growing state stores
    extras: int = 0  # further values about each round that are reported on request


class Replaced(NamedTuple):
    """When the experts in use took the place of others, and what was different from before."""

    began: int  # the round in which they began to learn, because of what had changed
    inputs: Mask  # (inputs,)  whose location or scale differs; sparse ones are not judged
    target: bool  # whether that of the target does


def unchanged(problem: object, state: T) -> T:
    return state


def as_it_is(arrays: Arrays, body: dict[str, object]) -> tuple[Arrays, dict[str, object]]:
    return arrays, body


def unknown(problem: object) -> bool:
    return False


def scale_the_data(problem: object) -> str:
    return "scale y to a moderate range or lower learning_rate"


def nothing(problem: object, state: object) -> Vector:
    return np.zeros(0)


def no_rows(problem: object, state: object) -> None:
    return None


def no_recent_rows(problem: object, state: object, n: int) -> None:
    return None


def none_other(problem: object, state: object) -> dict[str, float]:
    return {}


def log_w_shares(problem: object, state: Any) -> Vector:
    """w / sum(w) of a state that has the paper's log-weights."""
    return normalised(state.log_w)


@dataclass(frozen=True)
class Algorithm(Generic[P, S]):
    """An online algorithm.

    A round is `predict`, then `step`. Both are pure functions: a step returns a new state, and randomness comes in
    as uniform numbers, `uniforms(problem)` of them in every round.

    name
        As users write it, for instance "sfg-mkl".
    settings
        The dataclass of what a user may choose.
    parameters, tasks
        The dataclass of what its estimators let a user choose, and which tasks there are estimators for.
    for_keys
        Parameters that models for thousands of keys have unless they are chosen.
    preset
        Parameters that tell this algorithm from another one with the same estimators.
    Problem, State
        NamedTuples: what never changes during a run, and what one round changes.
    build
        (settings, feature names, seed) -> Problem; the seed decides the random features and nothing else.
    init
        (problem, uniforms) -> State before the first row.
    predict
        (problem, state, x) -> prediction, without side effects.
    step
        (problem, state, x, y, uniforms, weight) -> (State, Info).
    uniforms
        problem -> how many uniform numbers `init` and every `step` take.
    shape
        problem -> Shape: features, values of a prediction, which targets and whether inputs may be missing.
    grow
        (problem, state) -> the state for a problem with more features or labels than it was made for.
    widened
        (problem, number) -> the problem with room for so many sparse inputs behind its features, where
        there are any: of these few are present in a row, and those that are missing are 0 and cost nothing.
    first_rows
        (problem, state) -> (X, y, weights) of all rows learned so far, as long as the state has them; None later.
    check_problem, check_state
        What a model file may claim: raise ValueError where a Problem, or a State of it, cannot be.
    coefficients
        The array of the State that changes its sign where the signs of all targets do; for labels learned as signs.
    kernel_weights
        (problem, state) -> (N,) weights of the kernels in the prediction; they sum to at most 1.
    other_experts
        (problem, state) -> weights in the prediction of experts that use no kernel, by what they are.
    recent_rows
        (problem, state, n) -> at most n of the rows learned last, unscaled, where the state has them.
    started
        (problem, state) -> the round in which what predicts now began to learn, where the algorithm replaces it when
        the stream changes.
    replaced
        (problem, state) -> that round and what was different from before; None if nothing was replaced.
    extra
        (problem, state) -> (extras,) further values about the next round, beside its prediction, such as the half
        widths of intervals.
    stable
        problem -> whether predictions stay finite on any values of at most `validation.LARGEST_SAFE`.
    divergence_advice
        problem -> what a user can do where predictions diverge.
    distribution
        Whether predictions are distributions, (mean, standard deviation) or probabilities of labels, made from raw
        inputs that the algorithm scales itself; otherwise a prediction is one number, a score where the target is
        a sign, and estimators scale inputs and target.
    fixed_size
        Whether a state never changes its size, so that a fleet can store it as a record.
    renamed
        Names of settings and fields of the Problem that files of earlier versions have, and today's.
    of_inputs
        Fields of the Problem, beside arrays, that depend on what the features and the kernels are; all others follow
        from the settings alone.
    added
        Fields of the Problem that files of earlier versions do not have, and their values there.
    before
        Settings and parameters that files of earlier versions do not have, and what was done then.
    upgrade
        (arrays, body) of a state in a file, of this or an earlier version -> as they are written today.
    native
        How its C++ counterpart sees Problem and State.
    """

    name: str
    settings: type[AlgorithmSettings]
    parameters: type[EstimatorParameters]
    Problem: type[P]
    State: type[S]
    build: Callable[[Any, Sequence[str], int], P]
    init: Callable[[P, Vector], S]
    predict: Callable[[P, S, Vector], float | Vector]
    step: Callable[[P, S, Vector, float, Vector, float], tuple[S, Info]]
    uniforms: Callable[[P], int]
    shape: Callable[[P], Shape]
    check_problem: Callable[[P], None]
    check_state: Callable[[P, S], None]
    tasks: tuple[Task, ...] = ("regression", "classification")
    for_keys: Mapping[str, Any] = field(default_factory=dict)
    preset: Mapping[str, object] = field(default_factory=dict)
    grow: Callable[[P, S], S] = unchanged
    widened: Callable[[P, int], P] | None = None
    first_rows: Callable[[P, S], tuple[Matrix, Vector, Vector] | None] = no_rows
    coefficients: str = "theta"
    kernel_weights: Callable[[P, S], Vector] = log_w_shares
    other_experts: Callable[[P, S], dict[str, float]] = none_other
    recent_rows: Callable[[P, S, int], Matrix | None] = no_recent_rows
    started: Callable[[P, S], int] | None = None
    replaced: Callable[[P, S], Replaced | None] = no_rows
    extra: Callable[[P, S], Vector] = nothing
    stable: Callable[[P], bool] = unknown
    divergence_advice: Callable[[P], str] = scale_the_data
    distribution: bool = False
    fixed_size: bool = True
    renamed: Mapping[str, str] = field(default_factory=dict)
    of_inputs: tuple[str, ...] = ("d", "kernels")
    added: Mapping[str, object] = field(default_factory=dict)
    before: Mapping[str, object] = field(default_factory=dict)
    upgrade: Callable[[Arrays, dict[str, object]], tuple[Arrays, dict[str, object]]] = as_it_is
    native: Native[P] = field(default_factory=Native)
