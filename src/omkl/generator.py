"""NumPy's PCG64, the random generator of a learner: its state can be saved, and it can be turned back."""

from typing import TypedDict

import numpy as np


class PCG64Words(TypedDict):
    """The two numbers that NumPy's PCG64 consists of."""

    state: int
    inc: int


class PCG64State(TypedDict):
    """The state of NumPy's PCG64, as its attribute `state` has it."""

    bit_generator: str
    state: PCG64Words
    has_uint32: int
    uinteger: int


def pcg64(rng: np.random.Generator | int | None) -> np.random.PCG64:
    """The bit generator of `rng`: the one that can be turned back when a round does not happen."""
    bits = np.random.default_rng(rng).bit_generator
    if not isinstance(bits, np.random.PCG64):
        raise ValueError(
            f"rng must be a seed or a Generator on PCG64, as numpy.random.default_rng makes it, got {rng!r}"
        )
    return bits
