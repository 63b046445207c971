"""States that `check_state` accepts can be used: several fields at once are changed, which single edits do not reach.

A file may claim any state. What the invariants accept, the engine must accept too, and both implementations must
predict and learn from it without an exception other than DivergenceError.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from large_states import large_states
from streams import EVERY_CASE, Case, as_targets, stream

from omkl import DivergenceError, Online
from omkl.arrays import leaves, mapped

EDITS, SOAK_EDITS = 60, 1000
ENGINE_ROWS, NUMPY_ROWS = 70, 4
COUNTS = [-1, 0, 1, 2, 3, 63, 64, 65, 127, 128, 255, 256, 257, 511, 512, 10**6, 2**31, 2**61 - 1, 2**62 - 1, 2**63 - 1]
NUMBERS = [0.0, -0.0, -1.0, 1.0, 1e-320, 1e-150, 1e-30, 1e30, 1e90, -1e90, 1e150, 1e300, 1.7e308]


def edited(leaf: Any, others: dict[str, Any], rng: np.random.Generator) -> Any:
    if isinstance(leaf, bool):
        return not leaf
    if isinstance(leaf, int):
        counts = [n for n in others.values() if isinstance(n, int)]
        return int(rng.choice([leaf - 1, leaf + 1, rng.choice(COUNTS), rng.choice(np.array(counts, dtype=object))]))
    if isinstance(leaf, float):
        return float(rng.choice([*NUMBERS, -leaf, 1e10 * leaf, 1e-10 * leaf]))
    array = leaf.copy()
    if not array.size or rng.random() < 0.1:
        return np.zeros((int(rng.integers(2 * len(array) + 3)), *array.shape[1:]), array.dtype)
    if rng.random() < 0.2:
        return rng.permuted(array.reshape(-1)).reshape(array.shape)
    where = slice(None) if rng.random() < 0.3 else rng.integers(array.size, size=2)
    info = np.iinfo(array.dtype) if array.dtype.kind in "iu" else None
    array.flat[where] = rng.choice(NUMBERS) if info is None else np.clip(rng.choice(COUNTS), info.min, info.max)
    return array


def edited_state(state: Any, rng: np.random.Generator) -> Any:
    """One to four fields differ, most often neighbours; arrays beside one of another length may follow it."""
    found = leaves(state)
    name = rng.choice(list(found))
    beside = [other for other in found if other.rpartition(".")[0] == name.rpartition(".")[0]]
    names = {name, *rng.choice(beside if rng.random() < 0.7 else list(found), size=rng.integers(4))}
    new = {name: edited(found[name], found, rng) for name in names}
    first = new[name]
    if isinstance(first, np.ndarray) and first.ndim and len(first) != len(found[name]) and rng.random() < 0.7:
        for other in beside:
            leaf = found[other]
            if isinstance(leaf, np.ndarray) and leaf.ndim and len(leaf) == len(found[name]):
                new[other] = np.zeros((len(first), *leaf.shape[1:]), leaf.dtype)
    return mapped(lambda at, leaf: new.get(at, leaf), state)


def accepted(online: Online, edits: int, seed: int) -> Iterator[Any]:
    rng = np.random.default_rng(seed)
    for _ in range(edits):
        state = edited_state(online.state, rng)
        try:
            online.algorithm.check_state(online.problem, state)
        except ValueError:
            continue
        yield state


def use(online: Online, state: Any) -> None:
    X, y = stream(ENGINE_ROWS, online.shape.inputs)
    y, weight = as_targets(y, online.shape), np.where(np.arange(ENGINE_ROWS) % 3, 1.0, 1e30)
    for backend, n in (("engine", ENGINE_ROWS), ("numpy", NUMPY_ROWS)):
        at = online.checkpoint()._replace(state=state)
        other = Online(online.algorithm.name, online.problem, backend=backend, checkpoint=at)  # type: ignore[arg-type]  # any backend
        try:
            other.predict_rows(X[:3])
            other.run(X[:n], y[:n])
            other.run(X[:n], y[:n], weight[:n])
        except DivergenceError:
            pass


@EVERY_CASE
@pytest.mark.parametrize("rows", [0, 80])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_state_that_is_accepted_can_be_used(case: Case, rows: int):
    online = case.online(2)
    if rows:
        online.run(*case.stream(rows))
    for state in accepted(online, EDITS, seed=rows):
        use(online, state)


@pytest.mark.soak
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_many_states_of_large_experts_that_are_accepted_can_be_used():
    for k, (_, online) in enumerate(large_states()):
        for state in accepted(online, SOAK_EDITS, seed=k):
            use(online, state)
