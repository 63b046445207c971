"""Where the models of the keys are: in records that one call of the engine runs, or in estimators one by one.

Every model has a slot; slots are numbered from 0 without gaps.
"""

import copy
import math
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from omkl.arrays import LANES, Array, Index, Matrix, Vector, padded
from omkl.errors import DivergenceError
from omkl.estimators.core import Core
from omkl.estimators.sklearn.base import Estimator
from omkl.fleet.groups import Groups, Threads
from omkl.fleet.inputs import Key
from omkl.fleet.template import Template, key_generator
from omkl.generator import PCG64State, pcg64
from omkl.online import Checkpoint

BLOCK, BLOCK_BYTES = 256, 1 << 26  # records of a block, at most; and as many as these bytes hold, but at least one
FIRST_ROWS = 16  # of a key with a large model: up to so many are kept in its place
LARGE_MODEL = 1 << 18  # bytes
TYPES: dict[str, type] = {"float": np.float64, "int": np.int64, "bool": np.bool_}
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


def storage_for(template: Template) -> Storage:
    """Records where there can be: a number as target, a state of fixed size, an implementation in the engine."""
    online = template.core.online
    if not template.classifies and online.algorithm.fixed_size and online.compiled is not None:
        return RecordStorage(template)
    return EstimatorStorage(template)


class Part(NamedTuple):
    """An array or number within a record, as engine/record.hpp lists it: doubles start .. end, the last axis padded."""

    dtype: type
    start: int
    end: int
    padded: tuple[int, ...]
    length: int

    @classmethod
    def of(cls, kind: str, start: int, shape: tuple[int, ...]) -> "Part":
        if not shape:
            return cls(TYPES[kind], start, start + 1, (), 1)
        *rows, length = shape
        width = -(-length // LANES) * LANES
        size = math.prod(rows) * width * np.dtype(TYPES[kind]).itemsize
        return cls(TYPES[kind], start, start + -(-size // 8), (*rows, width), length)


class RecordStorage:
    """Models of one size as rows of doubles: the engine reads and writes them itself, many in one call.

    engine/record.hpp defines the layout of a record. Records are allocated in blocks of zeros as keys come; the
    system provides the memory of a record when it is first written to.
    """

    def __init__(self, template: Template) -> None:
        online = template.core.online
        assert online.compiled is not None
        self._template, self._engine, self._problem = template, online.compiled, online.problem
        self._algorithm = online.algorithm
        self._uniforms = self._algorithm.uniforms(self._problem)
        self._scaled = bool(template.core.scalers())
        self._size, parts = self._engine.record()
        self._parts = {name: Part.of(kind, start, shape) for name, kind, start, shape in parts}
        self._each = max(min(BLOCK_BYTES // (8 * self._size), BLOCK), 1)  # records of a block
        self._blocks: list[Matrix] = []
        self._start = padded(self._each, self._size)  # its first record predicts for keys that have not come yet
        self._write(self._start[0], template.core)

    def nbytes(self, count: int) -> int:
        return count * 8 * self._size

    def growth(self, rows: Iterable[tuple[int | None, int]]) -> int:
        return self.nbytes(sum(slot is None for slot, _ in rows))

    def first_rows(self, slot: int) -> FirstRows | None:
        return None

    def put_first_rows(self, slot: int, first: FirstRows) -> None:
        self.put(slot, self._template.after(first.key, first.X, first.y).core_)

    def add(self, slot: int, key: Key) -> None:
        rng = key_generator(self._template.seed, key)
        state = self._algorithm.init(self._problem, rng.random(self._uniforms))
        # a free record is all zeros, and memory that is not written to costs nothing
        not_zero = {name: value for name, value in state._asdict().items() if np.count_nonzero(value)}
        self._fill(self._record(slot), not_zero | generator_words(pcg64(rng).state))

    def put(self, slot: int, core: Core) -> None:
        self._write(self._record(slot), core)

    def core(self, slot: int) -> Core:
        record = self._record(slot)
        core = self._template.new_core(np.random.default_rng(0))
        parts = [self._part(record, name) for name in self._algorithm.State._fields]
        state = self._algorithm.State._make(part.copy() if part.ndim else part.item() for part in parts)
        high, low, inc_high, inc_low = (int(self._part(record, name)) % 2**64 for name in GENERATOR_WORDS)
        generator: PCG64State = {
            "bit_generator": "PCG64",
            "state": {"state": high << 64 | low, "inc": inc_high << 64 | inc_low},
            "has_uint32": 0,
            "uinteger": 0,
        }
        core.online.restore(Checkpoint(state, generator, int(self._part(record, "evaluations"))))
        for name, scaler in core.scalers().items():
            scaler.restore(self._part(record, name).reshape(scaler.stats.shape).astype(np.float64))
        return core

    def run(self, groups: Groups, X: Matrix, y: Array, out: Array, threads: Threads) -> Failure | None:
        targets, predictions = y.view(np.float64), out.view(np.float64)

        def run_part(part: Groups) -> int:
            """The row that could not be learned, or a negative number. Too little memory is noticed before any row."""
            return self._engine.run_keys(self._blocks, *part, X, targets, self._scaled, predictions)

        return next((Failure(row, None) for row in threads.map(run_part, groups) if row >= 0), None)

    def predict(self, groups: Groups, X: Matrix, out: Array, threads: Threads) -> None:
        predictions = out.view(np.float64)
        slots = np.where(groups.slots >= 0, groups.slots, len(self._blocks) * self._each)
        blocks = [*self._blocks, self._start]

        def predict_part(part: Groups) -> None:
            self._engine.predict_keys(blocks, *part, X, self._scaled, predictions)

        threads.map(predict_part, groups._replace(slots=slots))

    def snapshot(self, slots: Index) -> Callable[[], None]:
        before = [self._record(slot).copy() for slot in slots]

        def go_back() -> None:
            for slot, record in zip(slots, before, strict=True):
                self._record(slot)[:] = record

        return go_back

    def move(self, source: int, target: int) -> None:
        self._record(target)[:] = self._record(source)

    def free(self, slots: range) -> None:
        del self._blocks[-(-slots.start // self._each) :]
        for slot in range(slots.start, min(slots.stop, len(self._blocks) * self._each)):
            self._record(slot)[:] = 0

    def _record(self, slot: int) -> Vector:
        block, row = divmod(slot, self._each)
        while len(self._blocks) <= block:
            self._blocks.append(padded(self._each, self._size))
        record: Vector = self._blocks[block][row]
        return record

    def _part(self, record: Vector, name: str) -> Array:
        """A view of one part of a record."""
        part = self._parts[name]
        view: Array = record[part.start : part.end].view(part.dtype)
        return view.reshape(part.padded)[..., : part.length] if part.padded else view[0:1].reshape(())

    def _fill(self, record: Vector, values: Mapping[str, ArrayLike]) -> None:
        for name, value in values.items():
            self._part(record, name)[...] = value

    def _write(self, record: Vector, core: Core) -> None:
        state, generator, evaluations = core.online.checkpoint()
        self._fill(record, state._asdict() | generator_words(generator) | {"evaluations": evaluations})
        self._fill(record, {name: scaler.stats.ravel() for name, scaler in core.scalers().items()})


def generator_words(generator: PCG64State) -> dict[str, np.int64]:
    """The state of NumPy's PCG64 as the parts of a record."""
    state, inc = generator["state"]["state"], generator["state"]["inc"]
    halves = (state >> 64, state % 2**64, inc >> 64, inc % 2**64)
    return {name: np.uint64(half).astype(np.int64) for name, half in zip(GENERATOR_WORDS, halves, strict=True)}


class EstimatorStorage:
    """Models of any kind, each an estimator of its own; those of one batch run one by one, in threads.

    Where models are large, keys with few rows are kept as these: most keys of a long tail need no more.
    """

    def __init__(self, template: Template) -> None:
        self._template = template
        self._models: list[Estimator | FirstRows] = []
        self._model_bytes = self._size(template.model)

    def _size(self, model: Estimator | FirstRows) -> int:
        if isinstance(model, FirstRows):
            return int(model.X.nbytes + model.y.nbytes)
        return sum(array.nbytes for array in self._template.learned(model.core_).arrays.values())

    def nbytes(self, count: int) -> int:
        return sum(self._size(model) for model in self._models[:count])

    def growth(self, rows: Iterable[tuple[int | None, int]]) -> int:
        total = 0
        for slot, n in rows:
            kept = None if slot is None else self._models[slot]
            if kept is None or isinstance(kept, FirstRows):
                few = self._few(n if kept is None else n + len(kept.X))
                total += n * 8 * (1 + self._template.n_features) if few else self._model_bytes
        return total

    def first_rows(self, slot: int) -> FirstRows | None:
        kept = self._models[slot]
        return kept if isinstance(kept, FirstRows) else None

    def put_first_rows(self, slot: int, first: FirstRows) -> None:
        self._set(slot, first if self._few(len(first.X)) else self._template.after(*first))

    def _few(self, rows: int) -> bool:
        return self._model_bytes >= LARGE_MODEL and rows <= FIRST_ROWS

    def add(self, slot: int, key: Key) -> None:
        if self._few(0):
            self._set(slot, FirstRows(key, np.empty((0, self._template.n_features)), np.empty(0)))
        else:
            self._set(slot, self._template.fresh(key))

    def put(self, slot: int, core: Core) -> None:
        self._set(slot, self._template.model_with(core))

    def core(self, slot: int) -> Core:
        core = self._model(slot).core_
        shared = core.online.problem
        return copy.deepcopy(core, {id(shared): shared})

    def run(self, groups: Groups, X: Matrix, y: Array, out: Array, threads: Threads) -> Failure | None:
        learned: set[int] = set()  # first rows of the keys that are not to be learned again after too little memory

        def run_part(part: Groups) -> Failure | None:
            for rows, slot in self._slots_of(part):
                if rows[0] not in learned:
                    model = self._model(slot)
                    try:
                        out[rows] = self._template.learn(model, X[rows], y[rows])
                    except DivergenceError as error:
                        return Failure(int(rows[0]), error)
                    self._keep(slot, model, X[rows], y[rows])
                    learned.add(rows[0])
            return None

        return next((failure for failure in threads.map(run_part, groups) if failure), None)

    def predict(self, groups: Groups, X: Matrix, out: Array, threads: Threads) -> None:
        def predict_part(part: Groups) -> None:
            for rows, slot in self._slots_of(part):
                out[rows] = self._template.predict(self._model(slot), X[rows])

        threads.map(predict_part, groups)

    def snapshot(self, slots: Index) -> Callable[[], None]:
        before = [self.first_rows(slot) or self._template.model_with(self.core(slot)) for slot in slots]

        def go_back() -> None:
            for slot, model in zip(slots, before, strict=True):
                self._set(slot, model)

        return go_back

    def move(self, source: int, target: int) -> None:
        self._models[target] = self._models[source]

    def free(self, slots: range) -> None:
        del self._models[slots.start :]

    def _slots_of(self, part: Groups) -> Iterable[tuple[Index, int]]:
        for g, slot in enumerate(part.slots):
            yield part.order[part.starts[g] : part.starts[g + 1]], int(slot)

    def _model(self, slot: int) -> Estimator:
        kept = self._models[slot] if slot >= 0 else self._template.model
        return self._template.after(*kept) if isinstance(kept, FirstRows) else kept

    def _keep(self, slot: int, model: Estimator, X: Matrix, y: Array) -> None:
        """Put a model that has just learned these rows into its slot, or the rows where there are few."""
        kept = self._models[slot]
        if isinstance(kept, FirstRows):
            few = self._few(len(kept.X) + len(X))
            targets = np.concatenate((kept.y, y)) if len(kept.y) else y
            self._models[slot] = FirstRows(kept.key, np.vstack((kept.X, X)), targets) if few else model

    def _set(self, slot: int, model: Estimator | FirstRows) -> None:
        if slot == len(self._models):
            self._models.append(model)
        else:
            self._models[slot] = model
