"""The same rounds, compiled: picks the instruction set and lays the state out for C++.

`OMKL_ISA` (baseline, avx2, avx512) overrides the choice; the best that the machine runs is the default.
"""

import os
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from omkl.arrays import LANES, Matrix, Vector, is_padded, padded, padded_copy
from omkl.engine import _native
from omkl.engine._native import first_beyond, first_not_finite, gather, peak, supported
from omkl.engine.native import Native

__all__ = [
    "GrowingRunner",
    "Runner",
    "compile_problem",
    "cores",
    "first_beyond",
    "first_not_finite",
    "gather",
    "instruction_set",
    "peak",
    "runs",
    "supported",
]

_ENGINES: dict[str, type[_native.Engine]] = {
    "omkr": _native.OmkrEngine,
    "rfomkr": _native.RfomkrEngine,
    "raker": _native.RakerEngine,
    "omkl-gf": _native.OmklGfEngine,
    "sfg-mkl": _native.SfgMklEngine,
    "sfg-mkl-r": _native.SfgMklREngine,
    "graph-mkl": _native.GraphMklEngine,
}
Compiled = _native.Engine
DIVERGED, NO_UNIFORMS, REFUSED = -1, -2, -3  # what `learn` returns instead of a number of kernels
ROWS_PADDED = ("theta", "R", "R_lin", "theta_lin", "R_mix", "theta_mix")  # state that C++ reads in whole registers
_MATERN_CODE = {0.5: 2, 1.5: 3, 2.5: 4}


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def instruction_set() -> str:
    """The instruction set that new learners run on."""
    return os.environ.get("OMKL_ISA") or supported()[-1]


def compile_problem(name: str, native: Native[Any], problem: Any, isa: str | None = None) -> Compiled:
    """The problem as C++ sees it. It may be shared by any number of states and threads."""
    seen = native.view(problem)
    if isinstance(seen, tuple) and not is_padded(seen.V):
        seen = seen._replace(V=padded_copy(seen.V))
    return _ENGINES[name](seen, isa or instruction_set())


def runner(compiled: Compiled, native: Native[Any], state: Any, fresh: bool) -> Any:
    return GrowingRunner(compiled, state, None) if native.grows else Runner(compiled, state, fresh)


class Runner:
    """One state, bound to the engine that runs it. The arrays stay NumPy's."""

    learn: Callable[[Vector, float, float], int]  # kernels heard, or why there was no round
    run: Callable[[Matrix, Vector, Vector, Vector | None, Vector], tuple[int, int]]  # rows done, kernels heard
    predict: Callable[[Vector], float]
    predict_rows: Callable[[Matrix, Vector], None]

    def __init__(self, engine: _native.Engine, state: Any, fresh: bool = False) -> None:
        """`fresh`: the state belongs to nobody else, so what is laid out well need not be copied."""
        arrays = {name: a for name, a in state._asdict().items() if isinstance(a, np.ndarray)}
        for name, a in arrays.items():
            if not (fresh and (is_padded(a) if name in ROWS_PADDED else a.flags.c_contiguous)):
                arrays[name] = padded_copy(a) if name in ROWS_PADDED else np.array(a)
        self._state = state._replace(**arrays)
        self._memory = engine.memory(self._state)
        self.learn = partial(engine.learn, self._memory)
        self.run = partial(engine.run, self._memory)
        self.predict = partial(engine.predict, self._memory)
        self.predict_rows = partial(engine.predict_rows, self._memory)
        self.supply = self._memory.feed

    @property
    def unused(self) -> int:
        """Uniforms that `feed` brought and no round has taken yet."""
        return self._memory.left

    @property
    def t(self) -> int:
        return self._memory.t

    @property
    def state(self) -> Any:
        """The state as the rounds have it, its arrays still those the engine writes to."""
        now: dict[str, int] = {"t": self._memory.t}
        for name in ("node", "incumbent"):
            if hasattr(self._state, name):
                now[name] = self._memory.node
        return self._state._replace(**now)


class GrowingRunner:
    """A Runner for OMKR, whose state gets longer: room for support points is doubled when it runs out."""

    def __init__(self, engine: _native.Engine, state: Any, budget: int | None) -> None:
        self._engine, self._budget, self._type = engine, budget, type(state)
        self._lay_out(state, 0)

    def _lay_out(self, state: Any, capacity: int) -> None:
        n = state.S.shape[1]
        capacity = -(-max(capacity, n, 1) // LANES) * LANES
        S, alpha = padded(len(state.S), capacity), padded(len(state.alpha), capacity)
        S[:, :n], alpha[:, :n] = state.S, state.alpha
        self._arrays = SimpleNamespace(S=S, alpha=alpha, log_w=np.array(state.log_w), n=n, t=state.t)
        self._memory = self._engine.memory(self._arrays)

    def _make_room(self, rows: int) -> None:
        n = self._memory.n
        need = n + rows if self._budget is None else min(n + rows, self._budget)
        if self._arrays.S.shape[1] < need:
            self._lay_out(self.state, max(need, 2 * n))

    unused = 0

    def supply(self, tape: Vector) -> None:
        pass

    def learn(self, x: Vector, y: float, weight: float) -> int:
        self._make_room(1)
        return self._engine.learn(self._memory, x, y, weight)

    def run(self, X: Matrix, y: Vector, r: Vector, weight: Vector | None, out: Vector) -> tuple[int, int]:
        self._make_room(len(X))
        return self._engine.run(self._memory, X, y, r, weight, out)

    def predict(self, x: Vector) -> float:
        return self._engine.predict(self._memory, x)

    def predict_rows(self, X: Matrix, out: Vector) -> None:
        self._engine.predict_rows(self._memory, X, out)

    @property
    def t(self) -> int:
        return self._memory.t

    @property
    def state(self) -> Any:
        n, a = self._memory.n, self._arrays
        return self._type(a.S[:, :n], a.alpha[:, :n], a.log_w, self._memory.t)
