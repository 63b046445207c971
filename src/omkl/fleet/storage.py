"""What keeps the models of the keys of a fleet.

Every model has a slot; slots are numbered from 0 without gaps.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol

import numpy as np

from omkl.arrays import Array, Index, Matrix
from omkl.errors import DivergenceError
from omkl.estimators.core import Core
from omkl.fleet.groups import Groups, Threads
from omkl.fleet.inputs import Key
from omkl.generator import PCG64State

FIRST_ROWS = 16  # of a key with a large model: up to so many are kept in its place
GENERATOR_WORDS = ("state_high", "state_low", "inc_high", "inc_low")


class Failure(NamedTuple):
    """The row whose model diverged."""

    row: int
    error: DivergenceError | None


class FirstRows(NamedTuple):
    """All that a key has learned so far, from which its model is made again when it is needed, to the last bit."""

    key: Key
    X: Matrix
    y: Array


class Storage(Protocol):
    """The models of all keys, by slot."""

    def nbytes(self, count: int) -> int:
        """Bytes of the first `count` models, without what they share."""

    def growth(self, rows: Iterable[tuple[int | None, int]]) -> int:
        """About how many bytes more it takes to learn so many rows of each slot; None for a new key."""

    def first_rows(self, slot: int) -> FirstRows | None:
        """What is in the slot where that is rows and not a model."""

    def put_first_rows(self, slot: int, first: FirstRows) -> None:
        """Put the model of a key that has learned these rows into the slot."""

    def add(self, slot: int, key: Key) -> None:
        """Put the key's model before its first row into a slot that is free."""

    def put(self, slot: int, core: Core) -> None:
        """Put a copy of this core into the slot."""

    def core(self, slot: int) -> Core:
        """A copy of the core in the slot."""

    def run(self, groups: Groups, X: Matrix, y: Array, out: Array, threads: Threads) -> Failure | None:
        """Learn all rows; predictions made before learning go to `out`."""

    def predict(self, groups: Groups, X: Matrix, out: Array, threads: Threads) -> None:
        """Predictions go to `out`; slot -1 stands for the model before the first row."""

    def snapshot(self, slots: Index) -> Callable[[], None]:
        """Copy what is in these slots; returns a function that puts it back."""

    def move(self, source: int, target: int) -> None:
        """Put what is in one slot into another."""

    def free(self, slots: range) -> None:
        """Free the last slots."""


# The generator of a key, in the engine's terms


def generator_words(generator: PCG64State) -> dict[str, np.int64]:
    """The state of NumPy's PCG64 as the parts of a record."""
    state, inc = generator["state"]["state"], generator["state"]["inc"]
    halves = (state >> 64, state % 2**64, inc >> 64, inc % 2**64)
    return {name: np.uint64(half).astype(np.int64) for name, half in zip(GENERATOR_WORDS, halves, strict=True)}


def generator_of(words: Iterable[int]) -> PCG64State:
    """The state of NumPy's PCG64 that has these words."""
    high, low, inc_high, inc_low = (int(word) % 2**64 for word in words)
    return {
        "bit_generator": "PCG64",
        "state": {"state": high << 64 | low, "inc": inc_high << 64 | inc_low},
        "has_uint32": 0,
        "uinteger": 0,
    }
