"""The floor: a lower bound on the time of one round, from operation counts and peak rates measured in the same run.

Only the operations in the equations are counted, on D features without padding: no kernel weights, no drawing of the
node, no bookkeeping. Arithmetic and memory access may overlap, so the floor is the larger of the two, not their sum.
"""

import time
from typing import NamedTuple

from omkl.engine import instruction_set
from omkl_lab._peaks import peak

Peaks = dict[str, float]  # operation -> least measured nanoseconds
TIMES = {
    "sincos": 40,  # a sine and its cosine: the engine's polynomial on numbers in the L1 cache
    "multiply_adds": 2000,  # one multiply-add of doubles, in registers
    "bytes_read": 8,  # one byte from the L2 cache
    "least_squares": 10,  # one of GraphMKL's least-squares steps on 100 features, compared with its floor
}  # repetitions per timing, some tens of microseconds


class Floor(NamedTuple):
    """Nanoseconds per sample."""

    arithmetic: float
    memory: float

    @property
    def least(self) -> float:
        return max(self)


def measured(seconds: float) -> Peaks:
    """The shortest time of each operation among the repetitions that fit into `seconds`."""
    isa = instruction_set()
    best: Peaks = {}
    for what, times in TIMES.items():
        end = time.perf_counter() + seconds
        best[what] = float("inf")
        while best[what] == float("inf") or time.perf_counter() < end:
            begin = time.perf_counter()
            done = peak(isa, what, times)
            best[what] = min(best[what], 1e9 * (time.perf_counter() - begin) / done)
    return best


def of_round(peaks: Peaks, kernels: float, D: int, d: int) -> Floor:
    """One round that evaluates `kernels` kernels: D phases of d products, D sines and cosines, theta z, theta's step.

    The frequencies and theta are read; theta is updated in place.

    >>> of_round({"sincos": 0.8, "multiply_adds": 0.03, "bytes_read": 0.01}, kernels=5, D=50, d=15)
    Floor(arithmetic=342.5, memory=340.0)
    """
    arithmetic = kernels * D * (peaks["sincos"] + (d + 2 + 2) * peaks["multiply_adds"])
    memory = kernels * D * (d + 2) * 8 * peaks["bytes_read"]
    return Floor(arithmetic, memory)


def of_least_squares(peaks: Peaks, features: int) -> float:
    """One least-squares step: R z, R' phi and the update of the triangular R, which is read and written once."""
    half = features * (features + 1) / 2
    return max(4 * half * peaks["multiply_adds"], 2 * half * 8 * peaks["bytes_read"])
