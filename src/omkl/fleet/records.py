"""Models of one size as rows of doubles, which one call of the engine runs."""

import math
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from omkl.arrays import LANES, Array, Index, Matrix, Vector, padded
from omkl.estimators.core import Core, check_statistics
from omkl.fleet.groups import Groups, Threads
from omkl.fleet.inputs import Key
from omkl.fleet.storage import GENERATOR_WORDS, Failure, FirstRows, generator_of, generator_words
from omkl.fleet.template import Template, key_generator
from omkl.generator import pcg64
from omkl.online import Checkpoint
from omkl.persist import demand

BLOCK, BLOCK_BYTES = 256, 1 << 26  # records of a block, at most; and as many as these bytes hold, but at least one
TYPES: dict[str, type] = {"float": np.float64, "int": np.int64, "bool": np.bool_}


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

    def copied(self, count: int) -> Matrix:
        """The first `count` models, a row each."""
        return np.concatenate([*self._blocks, np.empty((0, self._size))])[:count]

    def put_all(self, records: Matrix) -> None:
        """Fill the first slots, which are free, with what `copied` returned. What is between parts is not taken."""
        demand(records.ndim == 2 and records.shape[1] == self._size, "records of another size")
        scalers, State = self._template.core.scalers(), self._algorithm.State
        for slot, source in enumerate(np.ascontiguousarray(records, dtype=np.float64)):
            values = {name: self._part(source, name) for name in self._parts}
            state = [values[name] if values[name].ndim else values[name].item() for name in State._fields]
            self._algorithm.check_state(self._problem, State._make(state))
            for name, scaler in scalers.items():
                check_statistics(values[name].reshape(scaler.stats.shape).astype(np.float64))
            demand(values["evaluations"].item() >= 0, "the number of evaluations must be a count")
            self._fill(self._record(slot), values)

    def core(self, slot: int) -> Core:
        record = self._record(slot)
        core = self._template.new_core(np.random.default_rng(0))
        parts = [self._part(record, name) for name in self._algorithm.State._fields]
        state = self._algorithm.State._make(part.copy() if part.ndim else part.item() for part in parts)
        generator = generator_of(int(self._part(record, name)) for name in GENERATOR_WORDS)
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
