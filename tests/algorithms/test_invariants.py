"""check_problem and check_state refuse what cannot be, without help from the file format or the engine."""

from typing import Any

import numpy as np
import pytest
from streams import EVERY_CASE, Case, as_targets, stream

from omkl.algorithms.invariants import LARGEST_COUNT
from omkl.arrays import leaves, mapped

NO_COUNT = [-2, LARGEST_COUNT, 0.5, None, "1", True]
NO_NUMBER = [None, "1", True, float("nan"), float("inf")]


def trained(case: Case) -> Any:
    online = case.online(3)
    X, y = stream(80, 3)
    online.run(X, as_targets(y, online.shape))
    return online


def replaced(value: Any, name: str, new: Any) -> Any:
    """The same structure with another leaf of this name."""
    return mapped(lambda at, leaf: new if at == name else leaf, value)


def with_entry(array: np.ndarray, value: Any) -> np.ndarray:
    changed = array.copy()
    changed.flat[-1] = value
    return changed


def refuses(check: Any, *arguments: Any) -> bool:
    try:
        check(*arguments)
    except ValueError:
        return True
    return False


@EVERY_CASE
def test_a_state_whose_array_has_another_shape_is_refused(case: Case):
    online = trained(case)
    state, check = online.state, case.algorithm.check_state
    check(online.problem, state)
    for name, leaf in leaves(state).items():
        if not isinstance(leaf, np.ndarray):
            continue
        shorter = [np.delete(leaf, 0, axis) for axis in range(leaf.ndim)]
        for wrong in (leaf[None], leaf.reshape(-1)[:-1], np.concatenate((leaf, leaf)), *shorter):
            assert refuses(check, online.problem, replaced(state, name, wrong)), (name, wrong.shape)


@EVERY_CASE
def test_a_state_with_a_number_that_cannot_be_is_refused(case: Case):
    online = trained(case)
    state, check = online.state, case.algorithm.check_state
    numbers = {name: leaf for name, leaf in leaves(state).items() if not isinstance(leaf, np.ndarray)}
    assert "t" in numbers
    for name, leaf in numbers.items():
        for wrong in NO_COUNT if isinstance(leaf, int) else NO_NUMBER:
            assert refuses(check, online.problem, replaced(state, name, wrong)), (name, wrong)


@EVERY_CASE
def test_a_state_with_an_index_out_of_range_is_refused(case: Case):
    online = trained(case)
    state, check = online.state, case.algorithm.check_state
    for name, leaf in leaves(state).items():
        if isinstance(leaf, np.ndarray) and leaf.dtype.kind == "i":
            assert refuses(check, online.problem, replaced(state, name, with_entry(leaf, -1))), name
            if name.rpartition(".")[2] != "rounds":  # which are counts
                assert refuses(check, online.problem, replaced(state, name, with_entry(leaf, 10**6))), name


@EVERY_CASE
def test_a_problem_with_a_value_that_cannot_be_is_refused(case: Case):
    problem, check = case.problem(3), case.algorithm.check_problem
    check(problem)
    for name, leaf in leaves(problem).items():
        if isinstance(leaf, np.ndarray):
            assert refuses(check, replaced(problem, name, leaf[None])), name
            assert refuses(check, replaced(problem, name, leaf[:0])), name
            if leaf.dtype.kind == "i":
                assert refuses(check, replaced(problem, name, with_entry(leaf, -1))), name
        elif name.partition(".")[0] != "kernels":
            for wrong in ("nonsense", -1, [1]):
                assert refuses(check, replaced(problem, name, wrong)), (name, wrong)


@EVERY_CASE
def test_a_state_of_another_problem_is_refused(case: Case):
    """One feature per kernel more, or one kernel less."""
    online = trained(case)
    if "V" in online.problem._fields:
        other = online.problem._replace(V=np.concatenate((online.problem.V, online.problem.V), axis=2))
        assert refuses(case.algorithm.check_state, other, online.state)
    fewer = case.problem(3, kernels=list(case.settings().all_kernels)[:-1])
    assert refuses(case.algorithm.check_state, fewer, online.state)


@pytest.mark.parametrize("learner", ["sfg-mkl", "sfg-mkl-r"])
def test_a_node_that_does_not_exist_is_refused(learner: str):
    online = trained(Case(learner, {}))
    for node in (-1, 5, 2**40):
        assert refuses(online.algorithm.check_state, online.problem, online.state._replace(node=node))
