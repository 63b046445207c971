"""What the engine must know about an algorithm's Problem and State to hand them to C++."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

P = TypeVar("P", bound=NamedTuple)


def itself(problem: P) -> P:
    return problem


def as_it_is(problem: object, state: Any) -> Any:
    return state


def every(problem: object) -> bool:
    return True


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
    enlarged
        (problem, state) -> the state with room for one more row, where C++ asks for it; the state itself unless given.
    """

    view: Callable[[P], object] = itself
    supports: Callable[[P], bool] = every
    padded: tuple[str, ...] = ("theta",)
    grows: tuple[str, ...] = ()
    enlarged: Callable[[P, Any], Any] = as_it_is
