"""What the engine must know about an algorithm's Problem and State to hand them to C++."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from omkl.arrays import is_padded, padded_copy

P = TypeVar("P", bound=tuple[Any, ...])


def padded_frequencies(problem: Any) -> Any:
    """A Problem of the paper's algorithms, its frequencies laid out for C++."""
    return problem if is_padded(problem.V) else problem._replace(V=padded_copy(problem.V))


def every(problem: Any) -> bool:
    return True


@dataclass(frozen=True)
class Native(Generic[P]):
    """How Python's Problem and State are handed to the C++ counterpart of the same name in `omkl/engine`.

    view
        The object whose attributes C++ reads, made from the Problem; unless given, the Problem with its frequencies V laid out for C++.
    supports
        Whether the C++ implementation covers this Problem; it does unless given.
    padded
        Names of the state's arrays whose rows C++ reads in whole registers (`omkl.arrays.padded`).
    grows
        Names of the state's arrays that get longer along their last axis as rows are learned.
    """

    view: Callable[[P], Any] = padded_frequencies
    supports: Callable[[P], bool] = every
    padded: tuple[str, ...] = ("theta",)
    grows: tuple[str, ...] = ()
