"""Whatever the numbers are, the engine stays within its own memory; what cannot be used is refused or undone."""

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from streams import CASES, DESCENDING, EVERY_CASE, Case, assert_finite, assert_same_state, stream

from omkl import algorithms
from omkl.arrays import leaves, mapped
from omkl.errors import DivergenceError
from omkl.online import Checkpoint, Online

BACKENDS = pytest.mark.parametrize("backend", ["engine", "numpy"])
STEPS = ({}, {"stabiliser": "none"}, {"stabiliser": "project"}, {"stabiliser": "floor"}, {"beta": 0.01})


def run_until_divergence(online: Online, X: np.ndarray, y: np.ndarray) -> int:
    """The row that diverged, checked to have changed nothing; the number of rows where none did."""
    for k, (x, target) in enumerate(zip(X, y, strict=True)):
        before = online.checkpoint()
        try:
            online.learn(x, target)
        except DivergenceError:
            after = online.checkpoint()
            assert_same_state(before.state, after.state)
            assert (before.generator, before.evaluations) == (after.generator, after.evaluations)
            return k
        assert_finite(online)
    return len(X)


LONG_STEPS = """
import numpy as np
from omkl import DivergenceError, Online, Settings
for rate, size in ((1e300, 1e10), (1e307, 1e99), (1e150, 1e99)):
    for changes in ({changes},):
        online = Online.make({learner!r}, Settings(learning_rate=rate, n_features=5, **changes), 2)
        rng = np.random.default_rng(0)
        X = rng.normal(size=(300, 2))
        for _ in range(3):
            try:
                online.run(X, size * rng.normal(size=300))
            except DivergenceError:
                pass
            online.checkpoint()
print("alive")
"""


@pytest.mark.parametrize("changes", STEPS, ids=str)
@pytest.mark.parametrize("learner", DESCENDING)
def test_a_learning_rate_that_overflows_the_weights_never_ends_the_process(learner: str, changes: dict[str, Any]):
    code = LONG_STEPS.format(learner=learner, changes=changes)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "alive\n", (done.returncode, done.stderr)


@BACKENDS
@pytest.mark.parametrize("changes", STEPS, ids=str)
@pytest.mark.parametrize("learner", DESCENDING)
def test_a_round_that_would_leave_a_weight_without_a_value_is_undone(
    learner: str, changes: dict[str, Any], backend: str
):
    X, y = stream(40, 2)
    for rate, size in ((1e300, 1e10), (1e307, 1e99), (1e150, 1e99)):
        case = Case(learner, changes)
        online = case.online(backend=backend, learning_rate=rate)
        diverged = run_until_divergence(online, X, size * y) < len(X)
        assert diverged or changes == {"stabiliser": "floor"}  # whose steps are never long
        assert_finite(online)


@pytest.mark.parametrize("changes", STEPS, ids=str)
@pytest.mark.parametrize("learner", DESCENDING)
def test_both_implementations_diverge_in_the_same_round(learner: str, changes: dict[str, Any]):
    X, y = stream(40, 2)
    for rate, size in ((1e300, 1e10), (1e307, 1e99), (1e80, 1e99), (10.0, 1e90)):
        one, other = (Case(learner, changes).online(backend=b, learning_rate=rate) for b in ("engine", "numpy"))
        assert run_until_divergence(one, X, size * y) == run_until_divergence(other, X, size * y)


@EVERY_CASE
@BACKENDS
def test_a_target_without_a_value_is_undone_where_nobody_checked_it(case: Case, backend: str):
    online = case.online(backend=backend)
    X, y = case.stream(60)
    online.run(X[:30], y[:30])
    before = online.checkpoint()
    clips = case.algorithm.distribution and online.shape.target == "number"  # infinity is the largest number
    for bad in (np.nan,) if clips else (np.nan, np.inf, -np.inf):
        with pytest.raises((DivergenceError, ValueError)):
            online.learn_unchecked(X[30], bad)
        with pytest.raises((DivergenceError, ValueError)):
            online.run_unchecked(X[30:31], np.array([bad]))
        assert_same_state(before.state, online.state)
    online.run(X[30:], y[30:])
    assert_finite(online)


@BACKENDS
@pytest.mark.parametrize("wrong", [-1.0, 3.0, 0.5, 1e18, -1e300, np.nan, np.inf])
def test_a_label_out_of_range_is_refused_where_nobody_checked_it(wrong: float, backend: str):
    case = CASES["graph-mkl, labels"]
    online = case.online(backend=backend)
    X, y = case.stream(60)
    online.run(X[:30], y[:30])
    before = online.state
    with pytest.raises(ValueError, match="y must be a whole number from 0 to 2"):
        online.learn_unchecked(X[30], wrong)
    with pytest.raises(ValueError, match="y must be a whole number from 0 to 2"):
        online.run_unchecked(X[30:], np.where(np.arange(30) == 7, wrong, y[30:]))
    assert_same_state(before, online.state)


@EVERY_CASE
def test_arrays_of_another_shape_or_type_are_refused_where_nobody_checked_them(case: Case):
    online = case.online()
    X, y = case.stream(20)
    online.run(X, y)
    before = online.state
    out = np.empty((20, online.shape.extras + 1))
    for arguments in (
        (X[:, :1], y), (X[:10], y), (X, y[:10]), (X.T, y), (X[0], y), (X, y[None]),
        (X, y, y[:5]), (X, y, None, out), (X, None), (None, y),
    ):  # fmt: skip
        with pytest.raises((TypeError, ValueError, AttributeError)):
            online.run_unchecked(*arguments)
    for x in (X[0, :1], X[None], None):
        with pytest.raises((TypeError, ValueError, AttributeError)):
            online.learn_unchecked(x, 1.0)
        with pytest.raises((TypeError, ValueError, AttributeError)):
            online.predict_rows_unchecked(x)
    assert_same_state(before, online.state)


# What is bound to the engine


def replaced(value: Any, name: str, new: Any) -> Any:
    return mapped(lambda at, leaf: new if at == name else leaf, value)


@EVERY_CASE
def test_the_engine_refuses_a_state_whose_numbers_would_lead_out_of_its_memory(case: Case):
    online = case.online()
    X, y = case.stream(60)
    online.run(X, y)
    state, generator, evaluations = online.checkpoint()
    for name, leaf in leaves(state).items():
        wrong: list[Any] = []
        counts = name.endswith(("rounds", "block.rows", "window.key", "window.met", "window.returned"))  # no indices
        if isinstance(leaf, np.ndarray) and leaf.dtype.kind == "i" and leaf.size and not counts:
            for value in (-1, len(leaf), 2**62):
                changed = leaf.copy()
                changed[-1] = value
                wrong.append(changed)
        elif name.rpartition(".")[2] in ("node", "explorer", "incumbent", "age") and isinstance(leaf, int):
            wrong = [-2, 2**63 - 1]
        for new in wrong:
            bad = Checkpoint(replaced(state, name, new), generator, evaluations)
            with pytest.raises(ValueError, match="state"):
                Online(online.algorithm.name, online.problem, checkpoint=bad)


@EVERY_CASE
def test_the_engine_refuses_a_problem_whose_arrays_do_not_fit_each_other(case: Case):
    problem = case.problem(2)
    for name, leaf in leaves(problem).items():
        if isinstance(leaf, np.ndarray) and leaf.size:  # there are no wide frequencies
            shorter = [np.ascontiguousarray(np.delete(leaf, 0, axis)) for axis in range(leaf.ndim)]
            for wrong in shorter if name.startswith("graph") else [leaf[:0], leaf[:, :0], leaf[:, :, :0]]:
                with pytest.raises((ValueError, TypeError)):
                    algorithms_compile(case, replaced(problem, name, wrong))
    if "graph" in problem._fields:
        for value in (-1, len(problem.V), 2**40):
            order = problem.graph.order.copy()
            order[-1, -1] = value
            with pytest.raises(ValueError, match="graph"):
                algorithms_compile(case, replaced(problem, "graph.order", order))
        for alone in (problem.graph.A.copy(), problem.graph.A.copy().T):
            alone[1] = False
            with pytest.raises(ValueError, match="graph"):
                algorithms_compile(case, replaced(problem, "graph.A", np.ascontiguousarray(alone)))


def algorithms_compile(case: Case, problem: Any) -> None:
    from omkl import engine

    engine.compile_problem(case.learner, algorithms.get(case.learner).native, problem)
