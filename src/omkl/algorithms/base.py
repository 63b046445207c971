"""What an algorithm is to the rest of the library: one record of types and functions, and nothing else.

Every module of `omkl.algorithms` that implements an algorithm ends in `ALGORITHM = Algorithm(...)`. `Online`,
model files, estimators, fleets and the command line work with this record; none of them knows an algorithm by name.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, NamedTuple, Protocol, TypeVar

from omkl.arrays import Index, Vector

P = TypeVar("P", bound=tuple[Any, ...])  # the algorithm's Problem, a NamedTuple
S = TypeVar("S", bound=tuple[Any, ...])  # its State, a NamedTuple of arrays, numbers and further NamedTuples

Task = Literal["regression", "classification"]


class Info(Protocol):
    """What a step reports about its round."""

    @property
    def prediction(self) -> Any:
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


class Settings(Protocol):
    """What a user may choose: a frozen dataclass."""

    @property
    def all_kernels(self) -> tuple[Any, ...]: ...


@dataclass(frozen=True)
class Native(Generic[P]):
    """How Python's Problem and State are handed to the C++ counterpart of the same name in `omkl/engine`.

    view
        The object whose attributes C++ reads, made from the Problem; the Problem itself unless given.
    supports
        Whether the C++ implementation covers this Problem; it does unless given.
    padded
        Names of the state's arrays whose rows C++ reads in whole registers (`omkl.arrays.padded`).
    grows
        Names of the state's arrays that get longer along their last axis as rows are learned.
    """

    view: Callable[[P], Any] = lambda problem: problem
    supports: Callable[[P], bool] = lambda problem: True
    padded: tuple[str, ...] = ("theta",)
    grows: tuple[str, ...] = ()


@dataclass(frozen=True)
class Algorithm(Generic[P, S]):
    """An online algorithm.

    A round is `predict`, then `step`. Both are pure functions: a step returns a new state, and randomness comes in
    as uniform numbers, `uniforms(problem)` of them in every round.

    name
        As users write it, for instance "sfg-mkl".
    settings
        The dataclass of what a user may choose.
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
    check_problem, check_state
        What a model file may claim: raise ValueError where a Problem, or a State of it, cannot be.
    weights
        (problem, state, name) -> (N,) weights of the kernels, or of what `name` says, that sum to at most 1.
    fixed_size
        Whether a state has one size for ever, so that a fleet can keep it as a record.
    growing_memory
        Whether the state gets longer with the rows learned, up to the problem's `budget`.
    native
        Its C++ counterpart.
    """

    name: str
    settings: type[Any]
    Problem: type[P]
    State: type[S]
    build: Callable[[Any, Sequence[str], int], P]
    init: Callable[[P, Vector], S]
    predict: Callable[[P, S, Vector], Any]
    step: Callable[..., tuple[S, Any]]
    uniforms: Callable[[P], int]
    shape: Callable[[P], Shape]
    check_problem: Callable[[P], None]
    check_state: Callable[[P, S], None]
    grow: Callable[[P, S], S] = lambda problem, state: state
    fixed_size: bool = True
    native: Native[P] = field(default_factory=Native)
