"""Where the keys' models live: as records that one engine call runs, or as estimators one by one."""

import copy
import math
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from omkl.arrays import LANES, Index, Matrix, Vector, padded
from omkl.errors import DivergenceError
from omkl.estimators.core import TargetCore
from omkl.fleet.template import Key, Mould, tape
from omkl.online import ROUNDS, Checkpoint

EACH = 256  # records of a block
TYPES: dict[str, type] = {"float": np.float64, "int": np.int64, "bool": np.bool_}
DRAWN = ("node", "d", "chosen", "q")  # parts of a new state that depend on the tape
WORDS = ("state_high", "state_low", "inc_high", "inc_low")


class Groups(NamedTuple):
    """Rows of many keys: group g is the model in slot slots[g], its rows order[starts[g] : starts[g + 1]]."""

    slots: Index
    starts: Index
    order: Index

    @classmethod
    def by(cls, slots: Index) -> "Groups":
        """Rows grouped by the slot of each, in their order within each group.

        >>> Groups.by(np.array([7, 3, 7]))
        Groups(slots=array([3, 7]), starts=array([0, 1, 3]), order=array([1, 0, 2]))
        """
        order = np.argsort(slots, kind="stable")
        ranked = slots[order]
        starts = np.flatnonzero(np.diff(ranked, prepend=-2))  # -1 is a key that has not come yet
        return cls(ranked[starts], np.append(starts, len(slots)), order)

    def parts(self, number: int) -> "list[Groups]":
        """About as many rows in each of at most `number` parts, whole groups."""
        wanted = np.linspace(0, len(self.order), number + 1)
        cuts = np.unique(np.searchsorted(self.starts, wanted))
        return [Groups(self.slots[a:b], self.starts[a : b + 1], self.order) for a, b in pairwise(cuts)]


Spread = Callable[[Callable[[Groups], Any], Groups], list[Any]]  # a job on parts of the groups, in threads


class Failure(NamedTuple):
    """The row that could not be learned."""

    row: int
    error: DivergenceError | None


class Part(NamedTuple):
    """One part of a record, as engine/record.hpp lists it: doubles at .. end, the last axis padded."""

    dtype: type
    at: int
    end: int
    padded: tuple[int, ...]
    length: int

    @classmethod
    def of(cls, kind: str, at: int, shape: tuple[int, ...]) -> "Part":
        if not shape:
            return cls(TYPES[kind], at, at + 1, (), 1)
        *rows, length = shape
        width = -(-length // LANES) * LANES
        size = math.prod(rows) * width * np.dtype(TYPES[kind]).itemsize
        return cls(TYPES[kind], at, at + -(-size // 8), (*rows, width), length)


class Records:
    """Models of one size as rows of doubles: the engine reads and writes them itself, many in one call.

    engine/fleet.hpp lays a record out; blocks of records are made as keys come, and memory is taken
    from the system as they are written to.
    """

    def __init__(self, mould: Mould) -> None:
        online = mould.core.online
        self._mould, self._engine, self._problem = mould, online.compiled, online.problem
        self._rounds = ROUNDS[online.learner]
        self._draws: int = self._rounds.draws(self._problem)
        self._scaled = mould.core.inputs is not None
        self._size, parts = self._engine.record()
        self._parts = {name: Part.of(*part) for name, *part in parts}
        self._blocks: list[Matrix] = []
        self._start = padded(EACH, self._size)  # one record that was written to, for keys that have not come yet
        self._write(self._start[0], mould.core)

    @staticmethod
    def suit(mould: Mould) -> bool:
        """Whether the models of this mould can be records: a number as target, a state of one size."""
        return isinstance(mould.core, TargetCore) and hasattr(mould.core.online.compiled, "record")

    def nbytes(self, count: int) -> int:
        return count * 8 * int(self._size)

    def add(self, slot: int, key: Key) -> None:
        """The key's model at its start. A new record is zeros, and so is all of a new state but its draws."""
        rng = tape(self._mould.seed, key)
        state = self._rounds.init(self._problem, rng.random(self._draws))
        drawn = {name: getattr(state, name) for name in DRAWN if hasattr(state, name)}
        self._fill(self._record(slot), drawn | words(rng.bit_generator.state))

    def put(self, slot: int, core: Any) -> None:
        self._write(self._record(slot), core)

    def core(self, slot: int) -> Any:
        """A core that goes its own way from where the record is."""
        record = self._record(slot)
        core = self._mould.core.anew(np.random.default_rng(0))
        fields = {name: self._part(record, name) for name in self._rounds.State._fields}
        state = self._rounds.State(**{name: a.copy() if a.ndim else a.item() for name, a in fields.items()})
        high, low, inc_high, inc_low = (int(self._part(record, name)) % 2**64 for name in WORDS)
        tape_state = {
            "bit_generator": "PCG64",
            "state": {"state": high << 64 | low, "inc": inc_high << 64 | inc_low},
            "has_uint32": 0,
            "uinteger": 0,
        }
        core.online.restore(Checkpoint(state, tape_state, int(self._part(record, "evaluations"))))
        if self._scaled:
            core.inputs.restore(self._part(record, "inputs").reshape(3, -1).copy())
            core.target.restore(self._part(record, "target").reshape(3, 1).copy())
        return core

    def run(self, groups: Groups, X: Matrix, y: Vector, out: Vector, spread: Spread) -> Failure | None:
        def one(part: Groups) -> int:
            row: int = self._engine.run_keys(self._blocks, *part, X, y, self._scaled, out)
            return row

        return next((Failure(row, None) for row in spread(one, groups) if row >= 0), None)

    def predict(self, groups: Groups, X: Matrix, out: Vector, spread: Spread) -> None:
        """A slot of -1 is a key that has not come yet."""
        slots = np.where(groups.slots >= 0, groups.slots, len(self._blocks) * EACH)
        blocks = [*self._blocks, self._start]

        def one(part: Groups) -> None:
            self._engine.predict_keys(blocks, *part, X, self._scaled, out)

        spread(one, groups._replace(slots=slots))

    def snapshot(self, slots: Index) -> list[Vector]:
        return [self._record(slot).copy() for slot in slots]

    def roll_back(self, slots: Index, before: list[Vector]) -> None:
        for slot, record in zip(slots, before, strict=True):
            self._record(slot)[:] = record

    def move(self, here: int, there: int) -> None:
        self._record(there)[:] = self._record(here)

    def forget(self, slots: range) -> None:
        """The last slots are free again."""
        for slot in slots:
            self._record(slot)[:] = 0

    def _record(self, slot: int) -> Vector:
        block, row = divmod(slot, EACH)
        while len(self._blocks) <= block:
            self._blocks.append(padded(EACH, self._size))
        record: Vector = self._blocks[block][row]
        return record

    def _part(self, record: Vector, name: str) -> NDArray[Any]:
        part = self._parts[name]
        seen: NDArray[Any] = record[part.at : part.end].view(part.dtype)
        return seen.reshape(part.padded)[..., : part.length] if part.padded else seen[0:1].reshape(())

    def _fill(self, record: Vector, values: dict[str, Any]) -> None:
        for name, value in values.items():
            self._part(record, name)[...] = value

    def _write(self, record: Vector, core: Any) -> None:
        state, tape_state, evaluations = core.online.checkpoint()
        self._fill(record, state._asdict() | words(tape_state) | {"evaluations": evaluations})
        if self._scaled:
            self._fill(record, {"inputs": core.inputs.stats.ravel(), "target": core.target.stats.ravel()})


def words(tape_state: Any) -> dict[str, np.int64]:
    """NumPy's PCG64 as the record has it."""
    state, inc = tape_state["state"]["state"], tape_state["state"]["inc"]
    halves = (state >> 64, state % 2**64, inc >> 64, inc % 2**64)
    return {name: np.uint64(half).astype(np.int64) for name, half in zip(WORDS, halves, strict=True)}


class Models:
    """Models of any kind, each an estimator; their keys run one by one, in threads."""

    def __init__(self, mould: Mould) -> None:
        self._mould = mould
        self._models: list[Any] = []

    def nbytes(self, count: int) -> int:
        total = 0
        for model in self._models:
            arrays: dict[str, Any] = self._mould.learned(model.core_).arrays
            total += sum(array.nbytes for array in arrays.values())
        return total

    def add(self, slot: int, key: Key) -> None:
        self._set(slot, self._mould.fresh(key))

    def put(self, slot: int, core: Any) -> None:
        self._set(slot, self._mould.around(core))

    def core(self, slot: int) -> Any:
        core = self._models[slot].core_
        shared = core.online.problem
        return copy.deepcopy(core, {id(shared): shared})

    def run(self, groups: Groups, X: Matrix, y: NDArray[Any], out: NDArray[Any], spread: Spread) -> Failure | None:
        def one(part: Groups) -> Failure | None:
            for rows, model in self._each(part):
                try:
                    out[rows] = self._mould.learn(model, X[rows], y[rows])
                except DivergenceError as error:
                    return Failure(int(rows[0]), error)
            return None

        return next((failure for failure in spread(one, groups) if failure), None)

    def predict(self, groups: Groups, X: Matrix, out: NDArray[Any], spread: Spread) -> None:
        def one(part: Groups) -> None:
            for rows, model in self._each(part):
                out[rows] = self._mould.predict(model, X[rows])

        spread(one, groups)

    def snapshot(self, slots: Index) -> list[Any]:
        return [self.core(slot) for slot in slots]

    def roll_back(self, slots: Index, before: list[Any]) -> None:
        for slot, core in zip(slots, before, strict=True):
            self.put(slot, core)

    def move(self, here: int, there: int) -> None:
        self._models[there] = self._models[here]

    def forget(self, slots: range) -> None:
        del self._models[slots.start :]

    def _each(self, part: Groups) -> Iterable[tuple[Index, Any]]:
        for g, slot in enumerate(part.slots):
            yield (
                part.order[part.starts[g] : part.starts[g + 1]],
                self._models[slot] if slot >= 0 else self._mould.model,
            )

    def _set(self, slot: int, model: Any) -> None:
        if slot == len(self._models):
            self._models.append(model)
        else:
            self._models[slot] = model
