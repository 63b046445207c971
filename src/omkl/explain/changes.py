"""Which experts predict, by names that people understand, and when others took their place, and why."""

from collections.abc import Hashable, Sequence
from typing import NamedTuple

from omkl.arrays import Vector
from omkl.kernels import Kernel
from omkl.online import Online


class Expert(NamedTuple):
    """A part of the prediction."""

    name: str
    weight: float


class Change(NamedTuple):
    """A change of the stream that was answered by new experts.

    row : int
        The row after which it was noticed: the new experts learned from the next one on.
    what : tuple of str
        "target" and "inputs" where their location or scale is not what it was; "error" where only the error rose:
        what changed is the relation between them.
    inputs : tuple
        The names of the inputs whose location or scale is not what it was.
    """

    row: int
    what: tuple[str, ...]
    inputs: tuple[Hashable, ...]

    def __str__(self) -> str:
        """
        >>> print(Change(1506, ("target", "inputs"), ("load", "price")))
        row 1,506: the target and the inputs load, price
        >>> print(Change(1506, ("error",), ()))
        row 1,506: the relation between inputs and target (the error rose)
        """
        parts = ["the target"] if "target" in self.what else []
        if self.inputs:
            more = f" and {len(self.inputs) - 6} more" if len(self.inputs) > 6 else ""
            word = "inputs" if len(self.inputs) > 1 else "input"
            parts.append(f"the {word} {', '.join(map(str, self.inputs[:6]))}{more}")
        return f"row {self.row:,}: {' and '.join(parts) or 'the relation between inputs and target (the error rose)'}"


def experts_of(online: Online, kernels: Sequence[Kernel], weights: Vector) -> list[Expert]:
    """All experts with their weights, which sum to 1, the largest first; a kernel counts as one."""
    found = [Expert(kernel_name(kernel), float(weight)) for kernel, weight in zip(kernels, weights, strict=False)]
    others: dict[str, float] = online.look(online.algorithm.other_experts)
    found += [Expert(name, weight) for name, weight in others.items()]
    return sorted(found, key=lambda expert: -expert.weight)


def kernel_name(kernel: Kernel) -> str:
    """A kernel in words.

    >>> from omkl import Gaussian
    >>> kernel_name(Gaussian(0.8912509))
    'Gaussian kernel, length scale 0.891'
    """
    return f"{type(kernel).__name__} kernel, length scale {kernel.length_scale:.3g}"


def changes_of(online: Online, places: Sequence[Hashable]) -> list[Change]:
    """The last change, if there has been any; `places` are the names of the columns of a row."""
    found = online.look(online.algorithm.replaced)
    if found is None:
        return []
    inputs = tuple(dict.fromkeys(name for name, moved in zip(places, found.inputs, strict=False) if moved))
    what = tuple(word for word, there in (("target", found.target), ("inputs", inputs)) if there) or ("error",)
    return [Change(found.began, what, inputs)]
