"""Models whose sizes differ, each one packed array without what it does not use; one call of the engine runs many.

The arrays are laid out by engine/packed.hpp. A key with few rows is kept as these, from which its model is made again
when it is needed. Where memory is limited, models that have not been used for longest are on disk.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from omkl import engine
from omkl.arrays import Array, Index, Matrix, Vector
from omkl.engine import first_not_finite
from omkl.errors import DivergenceError
from omkl.estimators.core import Core, LabelCore, check_statistics
from omkl.estimators.distribution import normalised_rows
from omkl.fleet.groups import Groups, Threads
from omkl.fleet.inputs import Key
from omkl.fleet.shelf import Shelf
from omkl.fleet.storage import FIRST_ROWS, Failure, FirstRows, generator_of, generator_words
from omkl.fleet.template import Template, key_generator
from omkl.generator import pcg64
from omkl.online import Checkpoint
from omkl.scaling import STATISTICS

KEYS_AT_ONCE = 64  # that one call of the engine runs
LARGE_START = 1 << 16  # bytes of a model before its first row, from which on few rows are kept in its place
GROWN = 1100  # rows from which on a model grows no more, but for a trial
SHARE_AT_ONCE = 4  # one over the share of the limit of memory that models may take which are learned at a time


class Sizes(NamedTuple):
    """Bytes of a packed model."""

    start: int  # before its first row
    row: int  # more with a row
    full: int  # when it grows no more


def can_be_packed(template: Template) -> bool:
    """Whether the engine can learn the rows of a key from its packed model alone."""
    core = template.core
    if core.online.compiled is None or not core.online.compiled.can_be_packed:
        return False
    weighted = isinstance(core, LabelCore) and core.class_weights.given is not None
    return not weighted and (core.online.algorithm.distribution or not template.classifies)


class PackedStorage:
    """A template for which `can_be_packed`, and at most so many bytes of models in memory."""

    def __init__(self, template: Template, limit: int | None = None) -> None:
        online = template.core.online
        assert online.compiled is not None
        self._template, self._engine, self._problem = template, online.compiled, online.problem
        self._algorithm, self._outputs = online.algorithm, online.shape.outputs
        self._scaled = bool(template.core.scalers())
        self._uniforms = self._algorithm.uniforms(self._problem)
        self._classes = np.array(template.model.classes_) if template.classifies else None
        self._start = self._packed(template.core)
        self._shelf, self._putting = Shelf(limit), threading.Lock()  # between the threads of a batch
        if limit is not None and limit < SHARE_AT_ONCE * 2 * self._sizes.full:
            raise ValueError(
                f"memory must be at least {SHARE_AT_ONCE * 2 * self._sizes.full} bytes, room for the models that are "
                f"learned at a time, got {limit}"
            )

    # Sizes

    @cached_property
    def _sizes(self) -> Sizes:
        rng = np.random.default_rng(0)
        X, y = rng.random((GROWN, self._template.n_features)), rng.integers(0, self._outputs, GROWN).astype(float)
        packed, found = [self._start.copy()], []
        for rows in (slice(0, 1), slice(1, GROWN)):
            found.append(packed[0].nbytes)
            n = rows.stop - rows.start
            out = np.empty(n * self._outputs)
            self._learn(packed, np.array([0, n]), np.arange(n), X[rows], y[rows], out)
        start, one = found
        return Sizes(start, one - start, packed[0].nbytes)

    def nbytes(self, count: int) -> int:
        return self._shelf.nbytes

    @property
    def in_memory(self) -> int:
        return self._shelf.in_memory

    def size(self, slot: int) -> int:
        """Bytes of what is in the slot."""
        return self._shelf.size(slot)

    def growth(self, rows: Iterable[tuple[int | None, int]]) -> int:
        sizes, total = self._sizes, 0
        for slot, n in rows:
            first = FirstRows("", np.empty((0, 0)), np.empty(0)) if slot is None else self.first_rows(slot)
            before = 0 if slot is None else self._shelf.size(slot)
            if first is not None and self._few(len(first.X) + n):
                total += n * 8 * (1 + self._template.n_features)
            elif first is not None:
                total += min(sizes.full, sizes.start + (len(first.X) + n) * sizes.row) - before
            else:
                total += min(max(sizes.full - before, 0), n * sizes.row)
        return total

    def _few(self, rows: int) -> bool:
        return self._start.nbytes >= LARGE_START and rows <= FIRST_ROWS

    # Single models

    def first_rows(self, slot: int) -> FirstRows | None:
        kept = None if self._shelf.is_on_disk(slot) else self._shelf.get(slot)
        return kept if isinstance(kept, FirstRows) else None

    def put_first_rows(self, slot: int, first: FirstRows) -> None:
        self._shelf.put(slot, first if self._few(len(first.X)) else self._after([first])[0])
        self._shelf.trim()

    def add(self, slot: int, key: Key) -> None:
        start = FirstRows(key, np.empty((0, self._template.n_features)), self._no_targets())
        self._shelf.put(slot, start if self._few(0) else self._fresh(key))

    def put(self, slot: int, core: Core) -> None:
        self.put_packed(slot, self._packed(core))

    def core(self, slot: int) -> Core:
        return self.unpacked(self.packed(slot))

    def packed(self, slot: int) -> Vector:
        """A copy of the key's packed model."""
        kept = self._shelf.get(slot)
        return self._after([kept])[0] if isinstance(kept, FirstRows) else kept.copy()

    def put_packed(self, slot: int, packed: Vector) -> None:
        """What `packed` returned, checked before."""
        self._shelf.put(slot, packed)
        self._shelf.trim()

    def _packed(self, core: Core) -> Vector:
        """What the core has learned."""
        state, generator, evaluations = core.online.checkpoint()
        rest = self._statistics() | {name: scaler.stats.ravel() for name, scaler in core.scalers().items()}
        return self._pack(state, rest, generator_words(generator).values(), evaluations)

    def _pack(
        self, state: NamedTuple, rest: dict[str, Vector], words: Iterable[np.int64], evaluations: int = 0
    ) -> Vector:
        """The state, of which nothing else uses the arrays."""
        runner = self._runner(state)
        return runner.pack(**rest, words=np.array([evaluations, *words], dtype=np.int64))

    def unpacked(self, packed: Vector) -> Core:
        """A core that has learned what was packed."""
        core, (checkpoint, rest) = self._template.new_core(np.random.default_rng(0)), self._unpack(packed)
        core.online.restore(checkpoint)
        for name, scaler in core.scalers().items():
            scaler.restore(rest[name].reshape(scaler.stats.shape))
        return core

    def check(self, packed: Vector) -> None:
        """ValueError where this is not what `packed` returned, or not of a model like these."""
        (state, _, evaluations), rest = self._unpack(packed)
        self._algorithm.check_state(self._problem, state)
        if evaluations < 0:
            raise ValueError("the number of evaluations must be a count")
        for values in rest.values():
            check_statistics(values.reshape(STATISTICS, -1))

    def _unpack(self, packed: Vector) -> tuple[Checkpoint, dict[str, Vector]]:
        state = self._algorithm.init(self._problem, np.zeros(self._uniforms))
        runner, rest, words = self._runner(state), self._statistics(), np.zeros(5, dtype=np.int64)
        runner.unpack(packed, **rest, words=words)
        evaluations, *generator = words.tolist()
        return Checkpoint(runner.state, generator_of(generator), evaluations), rest

    def _runner(self, state: NamedTuple) -> engine.Runner:
        runner = engine.runner(self._engine, self._algorithm.native, self._problem, state, fresh=True)
        assert isinstance(runner, engine.Runner)  # such a state has no arrays that get longer
        return runner

    def _statistics(self) -> dict[str, Vector]:
        return {"inputs": np.zeros(STATISTICS * self._template.n_features), "target": np.zeros(STATISTICS)}

    @cached_property
    def _starts_alike(self) -> bool:
        """Whether a state before its first row is the same whatever uniform numbers it is given."""
        words = generator_words(pcg64(0).state).values()
        lowest, highest = (
            self._pack(self._algorithm.init(self._problem, np.full(self._uniforms, uniform)), self._statistics(), words)
            for uniform in (0.0, np.nextafter(1.0, 0.0))
        )
        return lowest.tobytes() == highest.tobytes()

    def _fresh(self, key: Key) -> Vector:
        """The packed model of a key before its first row."""
        rng = key_generator(self._template.seed, key)
        uniforms = rng.random(self._uniforms)
        words = generator_words(pcg64(rng).state).values()
        if not self._starts_alike:
            return self._pack(self._algorithm.init(self._problem, uniforms), self._statistics(), words)
        packed = self._start.copy()
        packed[-len(words) :].view(np.int64)[:] = list(words)  # which are its last numbers
        return packed

    def _after(self, kept: Sequence[FirstRows]) -> list[Vector]:
        """The packed models of keys that are kept as rows."""
        packed = [self._fresh(first.key) for first in kept]
        if packed:
            X, y = np.vstack([first.X for first in kept]), np.concatenate([self._targets(first.y) for first in kept])
            starts = np.cumsum([0, *(len(first.X) for first in kept)])
            self._learn(packed, starts, np.arange(len(X)), X, y, np.empty(len(X) * self._outputs))
        return packed

    # Batches

    def run(self, groups: Groups, X: Matrix, y: Array, out: Array, threads: Threads) -> Failure | None:
        for portion in self._portions(groups):
            self._shelf.load(portion.slots.tolist())
            learned: set[int] = set()  # slots that are not to be learned again after too little memory

            def run_part(part: Groups, learned: set[int] = learned) -> Failure | None:
                return self._run_part(part, X, y, out, learned)

            try:
                failure = next((failure for failure in threads.map(run_part, portion) if failure), None)
            finally:
                self._shelf.trim()
            if failure is not None:
                return failure
        return None

    def _portions(self, groups: Groups) -> Iterator[Groups]:
        """Groups that are learned at a time: all of them, or as many as fit into memory, those that are there first."""
        limit = self._shelf.limit
        if limit is None:
            yield groups
            return
        on_disk = [self._shelf.is_on_disk(slot) for slot in groups.slots.tolist()]
        waiting = np.argsort(on_disk, kind="stable")
        at_once = max(limit // (SHARE_AT_ONCE * self._sizes.full), 1)
        for start in range(0, len(waiting), at_once):
            self._shelf.trim(room=limit // SHARE_AT_ONCE)
            yield groups.some(waiting[start : start + at_once])

    def _run_part(self, part: Groups, X: Matrix, y: Array, out: Array, learned: set[int]) -> Failure | None:
        waiting = [g for g, slot in enumerate(part.slots.tolist()) if slot not in learned]
        for start in range(0, len(waiting), KEYS_AT_ONCE):
            some = part.some(np.array(waiting[start : start + KEYS_AT_ONCE]))
            kept = [self._shelf.get(slot) for slot in some.slots.tolist()]
            packed = self._models(kept)
            rows = some.order
            given, scores = np.ascontiguousarray(X[rows]), np.empty(len(rows) * self._outputs)
            order = np.arange(len(rows))
            done, diverged = self._learn(packed, some.starts, order, given, self._targets(y[rows]), scores)
            last = some.starts[done]
            out[rows[:last]] = self._predictions(scores)[:last]
            with self._putting:
                for i, slot in enumerate(some.slots[:done].tolist()):
                    mine = rows[some.starts[i] : some.starts[i + 1]]
                    self._shelf.put(slot, self._kept_after(kept[i], X[mine], y[mine], packed[i]))
                    learned.add(slot)
            if diverged >= 0:
                return Failure(int(rows[diverged]), None)
            if done < len(packed):
                raise MemoryError
        return None

    def _kept_after(self, before: FirstRows | Vector, X: Matrix, y: Array, packed: Vector) -> FirstRows | Vector:
        """What is kept of a key that has learned these rows."""
        if not isinstance(before, FirstRows) or not self._few(len(before.X) + len(X)):
            return packed
        return FirstRows(before.key, np.vstack((before.X, X)), np.concatenate((before.y, y)))

    def _learn(
        self, packed: list[Vector], starts: Index, order: Index, X: Matrix, y: Vector, out: Vector
    ) -> tuple[int, int]:
        """Rows of several models, which are changed; how many models learned all, and the row that diverged or -1."""
        done, diverged, resized = self._engine.run_packed(packed, starts, order, X, y, self._scaled, out)
        for place, now in resized:
            packed[place] = now
        return done, diverged

    def _models(self, kept: Sequence[FirstRows | Vector]) -> list[Vector]:
        """The packed models; those in memory themselves."""
        made = iter(self._after([value for value in kept if isinstance(value, FirstRows)]))
        return [next(made) if isinstance(value, FirstRows) else value for value in kept]

    def predict(self, groups: Groups, X: Matrix, out: Array, threads: Threads) -> None:
        on_disk = [slot >= 0 and self._shelf.is_on_disk(slot) for slot in groups.slots.tolist()]
        in_memory = groups.some(np.flatnonzero(np.logical_not(on_disk)))
        threads.map(lambda part: self._predict_part(part, X, out), in_memory)
        self._predict_part(groups.some(np.flatnonzero(on_disk)), X, out)  # the file is for one thread at a time

    def _predict_part(self, part: Groups, X: Matrix, out: Array) -> None:
        for start in range(0, len(part.slots), KEYS_AT_ONCE):
            some = part.some(np.arange(start, min(start + KEYS_AT_ONCE, len(part.slots))))
            packed = self._models([self._start if slot < 0 else self._shelf.get(slot) for slot in some.slots.tolist()])
            rows = some.order
            scores, given = np.empty(len(rows) * self._outputs), np.ascontiguousarray(X[rows])
            self._engine.predict_packed(packed, some.starts, np.arange(len(rows)), given, self._scaled, scores)
            if self._classes is not None and (bad := first_not_finite(scores)) >= 0:
                row = int(rows[bad // self._outputs])
                raise DivergenceError(f"row {row}: the prediction is not finite; scale the data")
            out[rows] = self._predictions(scores)

    def _targets(self, y: Array) -> Vector:
        numbers = y if self._classes is None else np.searchsorted(self._classes, y)
        return np.ascontiguousarray(numbers, dtype=np.float64)

    def _no_targets(self) -> Array:
        return np.empty(0) if self._classes is None else self._classes[:0]

    def _predictions(self, scores: Vector) -> Array:
        values = scores.reshape(-1, self._outputs)
        if self._classes is None:
            return values[:, 0]
        labels: Array = self._classes[np.argmax(normalised_rows(values), axis=1)]
        return labels

    # Undoing and forgetting

    def snapshot(self, slots: Index) -> Callable[[], None]:
        before = [(slot, self._shelf.get(slot)) for slot in slots.tolist()]
        before = [(slot, kept if isinstance(kept, FirstRows) else kept.copy()) for slot, kept in before]

        def go_back() -> None:
            for slot, kept in before:
                self._shelf.put(slot, kept)  # the next batch makes room: writing could fail here

        return go_back

    def move(self, source: int, target: int) -> None:
        self._shelf.move(source, target)

    def free(self, slots: range) -> None:
        self._shelf.free(slots.start)
