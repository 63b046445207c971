"""The algorithms in C++: chooses the instruction set, and binds problems and states to the compiled code.

`OMKL_ISA` (baseline, avx2, avx512) overrides the choice; the fastest that the machine runs is the default.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from omkl.arrays import LANES, Index, Matrix, Vector, is_padded, mapped, padded, padded_copy, updater
from omkl.engine import _native
from omkl.engine._native import (
    Engine,
    first_above,
    first_not_finite,
    gather,
    gather_indexed,
    gather_scaled,
    id_rows,
    standardise_each,
    standardise_rows,
    standardise_target,
    standardise_targets,
    supported,
    target_map,
)
from omkl.engine.native import Native, P

__all__ = [
    "COMPILER",
    "DIVERGED",
    "NO_ROOM",
    "NO_UNIFORMS",
    "REFUSED",
    "Engine",
    "GrowingRunner",
    "Native",
    "Runner",
    "compile_problem",
    "cores",
    "first_above",
    "first_not_finite",
    "gather",
    "gather_indexed",
    "gather_scaled",
    "id_rows",
    "instruction_set",
    "run_several",
    "runner",
    "standardise_each",
    "standardise_rows",
    "standardise_target",
    "standardise_targets",
    "supported",
    "supports",
    "target_map",
]

COMPILER = _native.compiler.strip()
DIVERGED, NO_UNIFORMS, REFUSED, NO_ROOM = -1, -2, -3, -4  # what `learn` returns instead of a number of kernels


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def instruction_set() -> str:
    """The instruction set that new learners run on."""
    return os.environ.get("OMKL_ISA") or supported()[-1]


def supports(name: str, native: Native[P], problem: P) -> bool:
    """Whether there is a C++ implementation for this problem of the algorithm `name`."""
    return name in _native.engines and native.supports(problem)


def compile_problem(name: str, native: Native[P], problem: P, isa: str | None = None) -> Engine:
    """The problem as C++ sees it. It may be shared by any number of states and threads."""
    return _native.engines[name](native.view(problem), isa or instruction_set())


def runner(
    engine: Engine, native: Native[P], problem: P, state: NamedTuple, *, fresh: bool = False, budget: int | None = None
) -> "Runner | GrowingRunner":
    """What runs the algorithm on this state; `budget` is the most columns that an array that grows may have."""
    return (
        GrowingRunner(engine, native, state, budget) if native.grows else Runner(engine, native, problem, state, fresh)
    )


class Runner:
    """One state, bound to the engine that runs it. The arrays stay NumPy's."""

    learn: Callable[[Vector, float, float], int]  # kernels evaluated, or why there was no round
    predict: Callable[[Vector], float]
    predict_rows: Callable[[Matrix, Vector], None]

    def __init__(self, engine: Engine, native: Native[P], problem: P, state: NamedTuple, fresh: bool = False) -> None:
        """`fresh`: nothing else uses the state's arrays, so that those with the right layout need not be copied."""
        self._engine, self._padded = engine, native.padded
        self._enlarged = partial(native.enlarged, problem)
        self._bind(state, fresh)

    def _bind(self, state: NamedTuple, fresh: bool) -> None:
        def laid_out(name: str, leaf: object) -> object:
            if not isinstance(leaf, np.ndarray):
                return leaf
            if name.rpartition(".")[2] in self._padded:
                return leaf if fresh and is_padded(leaf) else padded_copy(leaf)
            return leaf if fresh and leaf.flags.c_contiguous else np.array(leaf)

        engine = self._engine
        bound: NamedTuple = mapped(laid_out, state)
        self._memory = engine.memory(bound)
        self._state = bound
        self._updated: Callable[[Mapping[str, object]], Any] | None = None  # made when it is needed
        self.learn = partial(engine.learn, self._memory)
        self._run = partial(engine.run, self._memory)
        self.extra = partial(engine.extra, self._memory)
        self.predict = partial(engine.predict, self._memory)
        self.predict_rows = partial(engine.predict_rows, self._memory)

    def make_room(self) -> None:
        """Larger arrays, where the engine has returned because the next row does not fit into what there is."""
        left = self._supplied[len(self._supplied) - self.unused :] if self.unused else np.empty(0)
        self._bind(self._enlarged(self.state), fresh=True)
        self.supply(left)

    def pack(self, inputs: Vector, target: Vector, words: Index) -> Vector:
        """The state, and what a fleet has beside it, as one array without what is not used."""
        return self._engine.pack(self._memory, inputs, target, words)

    def unpack(self, packed: Vector, inputs: Vector, target: Vector, words: Index) -> None:
        """Take over what `pack` returned."""
        self._engine.unpack(packed, self._memory, inputs, target, words)

    def supply(self, uniforms: Vector) -> None:
        self._supplied = uniforms
        self._memory.supply(uniforms)

    def run(
        self,
        X: Matrix,
        y: Vector,
        uniforms: Vector,
        weight: Vector | None,
        out: Vector,
        extra: Vector | None = None,
    ) -> tuple[int, int]:
        """Rows learned, all unless a round diverged, and kernels evaluated."""
        done, evaluated = self._run(X, y, uniforms, weight, out, extra)
        while done < len(X) and not self._engine.has_room(self._memory):
            self.make_room()
            drawn, outputs = len(uniforms) // len(X), len(out) // len(X)
            more, kernels = self._run(
                X[done:], y[done:], uniforms[done * drawn :], None if weight is None else weight[done:],
                out[done * outputs :], None if extra is None else extra[done * (len(extra) // len(X)) :],
            )  # fmt: skip
            done, evaluated = done + more, evaluated + kernels
        return done, evaluated

    @property
    def unused(self) -> int:
        """Uniform numbers that `supply` brought and no round has taken yet."""
        return self._memory.unused

    @property
    def t(self) -> int:
        return self._memory.t

    @property
    def state(self) -> NamedTuple:
        """The state as NumPy's implementation has it; its arrays are still those that the engine writes to."""
        numbers = self._engine.numbers(self._memory)
        if self._updated is None:
            self._updated = updater(self._state, numbers)
        state: NamedTuple = self._updated(numbers)
        return state


def run_several(
    runners: Sequence[Runner],
    X: Matrix,
    Y: Matrix,
    uniforms: Matrix,
    weight: Vector | None,
    out: Matrix,
    extra: Matrix | None,
) -> Index:
    """(runners, 2): rows learned, all unless a round diverged, and kernels evaluated, of states of one problem.

    Y, `uniforms`, `out` and `extra` have a row for each of them, of what `Runner.run` is given.
    """
    compiled = runners[0]._engine
    progress = np.zeros((len(runners), 2), dtype=np.int64)
    while True:
        memories = [runner._memory for runner in runners]
        compiled.run_several(memories, X, Y, uniforms, weight, out, extra, progress)
        behind = [runner for runner, done in zip(runners, progress[:, 0], strict=True) if done < len(X)]
        full = [runner for runner in behind if not compiled.has_room(runner._memory)]
        if not full:
            return progress
        for runner in full:
            runner.make_room()


class GrowingRunner:
    """A Runner for a state with arrays that get longer: their capacity is doubled when it is used up."""

    unused = 0  # such an algorithm takes no uniform numbers

    def __init__(self, engine: Engine, native: Native[P], state: NamedTuple, budget: int | None) -> None:
        self._engine, self._grows, self._budget = engine, native.grows, budget
        self._bind(state, 0)

    def _bind(self, state: NamedTuple, least: int) -> None:
        n = getattr(state, self._grows[0]).shape[-1]
        capacity = -(-max(least, n, 1) // LANES) * LANES

        def laid_out(name: str, leaf: object) -> object:
            if not isinstance(leaf, np.ndarray):
                return leaf
            if name not in self._grows:
                return np.array(leaf)
            longer = padded(*leaf.shape[:-1], capacity)
            longer[..., :n] = leaf
            return longer

        longer: NamedTuple = mapped(laid_out, state)
        memory = self._engine.memory(SimpleNamespace(**longer._asdict(), n=n))
        # only now that there was enough memory: the engine writes to as many columns as it is told there are
        self._state, self._memory, self._capacity = longer, memory, capacity
        self._free = capacity - n  # columns, or fewer: rows may have come that needed none

    def _reserve(self, rows: int) -> None:
        self._free -= rows
        if self._free >= 0 or (self._budget is not None and self._capacity >= self._budget):
            return
        n = int(self._engine.numbers(self._memory)["n"])
        need = n + rows if self._budget is None else min(n + rows, self._budget)
        if self._capacity < need:
            self._bind(self.state, max(need, 2 * n))
        self._free = self._capacity - n - rows

    def supply(self, uniforms: Vector) -> None:
        pass

    def learn(self, x: Vector, y: float, weight: float) -> int:
        self._reserve(1)
        return self._engine.learn(self._memory, x, y, weight)

    def run(
        self,
        X: Matrix,
        y: Vector,
        uniforms: Vector,
        weight: Vector | None,
        out: Vector,
        extra: Vector | None = None,
    ) -> tuple[int, int]:
        self._reserve(len(X))
        return self._engine.run(self._memory, X, y, uniforms, weight, out, extra)

    def extra(self, out: Vector) -> None:
        self._engine.extra(self._memory, out)

    def predict(self, x: Vector) -> float:
        return self._engine.predict(self._memory, x)

    def predict_rows(self, X: Matrix, out: Vector) -> None:
        self._engine.predict_rows(self._memory, X, out)

    @property
    def t(self) -> int:
        return self._memory.t

    @property
    def state(self) -> NamedTuple:
        numbers = self._engine.numbers(self._memory)
        n = int(numbers.pop("n"))
        grown = {name: getattr(self._state, name)[..., :n] for name in self._grows}
        return self._state._replace(**grown, **numbers)
