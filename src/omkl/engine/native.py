"""What the engine must know about an algorithm's Problem and State to hand them to C++."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

P = TypeVar("P", bound=NamedTuple)


def itself(problem: P) -> P:
    return problem


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
    """

    view: Callable[[P], object] = itself
    supports: Callable[[P], bool] = every
    padded: tuple[str, ...] = ("theta",)
    grows: tuple[str, ...] = ()
