"""check_problem and check_state refuse what cannot be, without help from the file format or the engine."""

from typing import Any

import numpy as np
import pytest
from streams import CASES, EVERY_CASE, Case, as_targets, stream

from omkl.algorithms.invariants import LARGEST_COUNT
from omkl.arrays import leaves, mapped

NO_COUNT = [-2, LARGEST_COUNT, 0.5, None, "1", True]
NO_NUMBER = [None, "1", True, float("nan"), float("inf")]


def trained(case: Case) -> Any:
    online = case.online(3)
    if case.algorithm.widened is not None:  # so that no array of its state is empty
        online.change_problem(case.algorithm.widened(online.problem, 2))
    X, y = stream(80, online.shape.inputs)
    online.run(X, as_targets(y, online.shape))
    return online


def parts_of(online: Any) -> dict[str, Any]:
    """The leaves of its state; arrays of large experts only where there are some, since others are empty."""
    found = leaves(online.state)
    without = getattr(online.problem, "large", 0) == 0
    return {name: leaf for name, leaf in found.items() if not (without and name.startswith("large."))}


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
    for name, leaf in parts_of(online).items():
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
    for name, leaf in parts_of(online).items():
        if isinstance(leaf, np.ndarray) and leaf.dtype.kind == "i":
            assert refuses(check, online.problem, replaced(state, name, with_entry(leaf, -1))), name
            if name.rpartition(".")[2] != "rounds":  # which are counts
                assert refuses(check, online.problem, replaced(state, name, with_entry(leaf, 10**6))), name


@EVERY_CASE
def test_a_problem_with_a_value_that_cannot_be_is_refused(case: Case):
    problem, check = case.problem(3), case.algorithm.check_problem
    check(problem)
    check(case.problem(1))
    for name, leaf in leaves(problem).items():
        if isinstance(leaf, np.ndarray):
            assert refuses(check, replaced(problem, name, leaf[None])), name
            assert refuses(check, replaced(problem, name, leaf[:0])), name
            if leaf.dtype.kind == "i":
                assert refuses(check, replaced(problem, name, with_entry(leaf, -1))), name
        elif name.partition(".")[0] != "kernels":
            for wrong in ("nonsense", -1, [1]):
                assert refuses(check, replaced(problem, name, wrong)), (name, wrong)


@pytest.mark.parametrize("given", [{"levels": 1, "shortest": 1}, {"levels": 40, "shortest": 2**20}])
def test_the_fewest_and_the_most_levels_are_accepted(given: dict[str, int]):
    case = Case("adaraker", given)
    case.algorithm.check_problem(case.problem(3))


@EVERY_CASE
def test_a_state_of_another_problem_is_refused(case: Case):
    """One feature per kernel more, or one kernel less."""
    online = trained(case)
    if "V" in online.problem._fields:
        other = online.problem._replace(V=np.concatenate((online.problem.V, online.problem.V), axis=2))
        assert refuses(case.algorithm.check_state, other, online.state)
    if len(kernels := case.settings().all_kernels) > 1:
        assert refuses(case.algorithm.check_state, case.problem(3, kernels=list(kernels)[:-1]), online.state)


@pytest.mark.parametrize("learner", ["sfg-mkl", "sfg-mkl-r"])
def test_a_node_that_does_not_exist_is_refused(learner: str):
    online = trained(Case(learner, {}))
    for node in (-1, 5, 2**40):
        assert refuses(online.algorithm.check_state, online.problem, online.state._replace(node=node))


# One edit for each invariant that no edit above breaks


def first(array: np.ndarray, value: Any) -> np.ndarray:
    changed = array.copy()
    changed.flat[0] = value
    return changed


def swapped(array: np.ndarray) -> np.ndarray:
    """The first two entries of every row in the other order."""
    return np.concatenate((array[..., 1::-1], array[..., 2:]), axis=-1)


PROBLEM_EDITS = {
    "V": [lambda V: first(V, np.nan), lambda V: first(V, np.inf)],
    "graph.order": [swapped],
    "graph.A": [lambda A: A & ~np.eye(len(A), dtype=bool)],
    "graph.cover": [lambda c: 2 * c, lambda c: first(c, -1.0), lambda c: first(c, np.nan), lambda c: np.eye(len(c))[0]],
    "beta": [lambda _: 0.0, lambda _: 0.9],
    "schedule.eta": [lambda _: 0.0, lambda _: np.inf, lambda _: np.nan],
    "schedule.xi": [lambda _: 1.5],
    "descent.lam": [lambda _: np.inf, lambda _: np.nan],
    "descent.radius": [lambda _: 0.0, lambda _: np.inf],
    "M": [lambda _: 0, lambda _: 10**7],
    "budget": [lambda _: LARGEST_COUNT],
    "J": [lambda _: 0, lambda _: 101],
    "least_q": [lambda _: 1.0, lambda _: np.nan],
    "least_p": [lambda _: 1.0, lambda _: np.nan],
    "levels": [lambda _: 0, lambda _: 41],
    "shortest": [lambda _: 0, lambda _: 2**20 + 1],
    "rate": [lambda _: 0.0, lambda _: np.inf],
    "ridge": [lambda _: 0.0, lambda _: np.nan],
    "mixing_ridge": [lambda _: 0.0, lambda _: np.inf],
    "rank": [lambda _: 0, lambda _: 13],
    "noise": [lambda _: 0.0, lambda _: np.inf],
    "forgetting": [lambda _: 0.0, lambda _: 1.1],
    "walk": [lambda _: np.nan],
    "d": [lambda _: 0],
    "active": [lambda _: 1, lambda _: 10**6],
    "warm_up": [lambda _: 0, lambda _: LARGEST_COUNT],
    "trial": [lambda _: LARGEST_COUNT],
    "discount": [lambda _: 1.0],
    "memory": [lambda _: 1.0],
    "min_leverage": [lambda _: 1.0],
    "steps.0": [lambda _: 0.0, lambda _: 1.5],
    "widths.0": [lambda _: 0.0, lambda _: 1e-200, lambda _: 1e200],
    "sparse": [lambda _: 10**6],
    "trees": [lambda _: 1001],
    "archive": [lambda _: 10**6],
    "V_wide": [lambda V: np.full((1, V.shape[1], 3), 1.0), lambda V: np.full((1, V.shape[1], 4), np.nan)],
    "ridges.0": [lambda _: 0.0, lambda _: 5e-324, lambda _: 1e305],
}
NOT_FINITE = [lambda a: first(a, np.nan), lambda a: first(a, np.inf)]
STATE_EDITS = {
    **dict.fromkeys(["theta", "log_w", "log_u", "S", "alpha", "log_h", "c", "P"], NOT_FINITE),
    **dict.fromkeys(["beta", "inverse", "mu", "Sigma", "Q"], NOT_FINITE),
    "R": [*NOT_FINITE, lambda R: R + 1],
    "C": [*NOT_FINITE, lambda C: C + 1],
    "n": [lambda _: 81],
    "log_score": [lambda _: np.nan],
    "q": [*NOT_FINITE, lambda q: first(q, -0.1), lambda q: first(q, 1.1)],
    "chosen": [np.zeros_like],
    "d": [lambda d: np.roll(np.arange(len(d)), 1)],
    "calibration.half_widths": [*NOT_FINITE, lambda w: first(w, 0.0), swapped, lambda w: 20 * w],
    "calibration.evidence": [*NOT_FINITE, lambda a: a - 1, lambda a: 1 - np.sign(a)],
    "calibration.since": [*NOT_FINITE, lambda a: -1 - a, lambda a: a + 0.5, lambda a: a + 1e19],
    "calibration.total": [*NOT_FINITE, lambda a: -1 - a, lambda a: a + 1e300],
    "calibration.scale": [lambda _: -1.0, lambda _: np.nan, lambda _: np.inf, lambda _: 1e300],
    "calibration.rows": [lambda _: -1, lambda _: 2001, lambda _: 1.5, lambda _: LARGEST_COUNT],
    "trend.fast": [lambda _: -1.0],
    "trial.incumbent": [lambda _: -1.0],
    **{f"sets.0.{name}": NOT_FINITE for name in (
        "coefficients.R", "coefficients.theta", "coefficients.R_linear", "coefficients.theta_linear", "evidence",
        "coefficients.R_sparse", "coefficients.theta_sparse",
        "stack.R", "stack.theta", "window.X",
    )},
    "sets.0.noise.level": [*NOT_FINITE, lambda a: first(a, -1.0)],
    "sets.0.noise.rounds": [lambda a: first(a, LARGEST_COUNT), lambda a: first(a, 2**63 - 1)],
    "sets.0.selection.rank": [lambda a: first(a, a[1])],
    "sets.0.selection.explorer": [lambda _: 10**6],
    "sets.0.scaling.mean": [lambda a: first(a, np.inf), lambda a: first(a, 1e92)],
    "sets.0.scaling.shift": [*NOT_FINITE, lambda a: first(a, -1e92)],
    "sets.0.scaling.scale": [*NOT_FINITE, lambda a: first(a, -1.0)],
    "sets.0.scaling.sparse": [*NOT_FINITE, lambda a: first(a, -1.0)],
    "sets.0.scaling.unit": [lambda _: -1.0, lambda _: 1e92],
    "sets.0.first.X": [lambda a: first(a, np.inf), lambda a: first(a, 1e95)],
    "sets.0.first.Y": [*NOT_FINITE, lambda a: first(a, 1e95)],
    "sets.0.first.weight": [*NOT_FINITE, lambda a: first(a, -1.0), lambda a: first(a, 1e31)],
    "sets.0.first.sparse": [*NOT_FINITE, lambda a: first(a, 1e95)],
    "sets.0.window.Y": [*NOT_FINITE, lambda a: first(a, 1e95)],
    "sets.0.window.weight": [*NOT_FINITE, lambda a: first(a, -1.0), lambda a: first(a, 1e31), lambda a: first(a, 0.0)],
    "sets.0.window.met": [lambda a: first(a, -1), lambda a: first(a, 82)],
    "sets.0.window.returned": [lambda a: first(a, -1), lambda a: first(a, 2)],
    "sets.0.judged.gain": NOT_FINITE,
    "sets.0.judged.signal": NOT_FINITE,
    "sets.0.judged.step": NOT_FINITE,
    "repeats": [lambda _: -1.0, lambda _: 9.0, lambda _: np.nan],
    "weights.mean": [lambda _: -1.0, lambda _: 1e6, lambda _: 1e200, lambda _: np.nan],
    "weights.square": [lambda _: -1.0, lambda _: 1e61, lambda _: np.inf],
    "sets.0.block.rows": [lambda a: first(a, -1), lambda a: first(a, 81)],
    "sets.0.block.mean": [*NOT_FINITE, lambda a: first(a, 1e95)],
    "sets.0.block.square": [*NOT_FINITE, lambda a: first(a, -1.0)],
    "sets.0.age": [lambda _: 81, lambda _: LARGEST_COUNT - 1, lambda _: LARGEST_COUNT, lambda _: 2**63 - 1],
    "sets.1.age": [lambda _: 10**4],
}  # fmt: skip


@EVERY_CASE
def test_a_problem_that_breaks_one_invariant_is_refused(case: Case):
    problem, check = case.problem(3), case.algorithm.check_problem
    if "beta" in problem._fields:
        problem = problem._replace(beta=0.01)
    check(problem)
    for name, edits in PROBLEM_EDITS.items():
        if name in leaves(problem):
            for k, edit in enumerate(edits):
                assert refuses(check, replaced(problem, name, edit(leaves(problem)[name]))), (name, k)


@EVERY_CASE
def test_a_state_that_breaks_one_invariant_is_refused(case: Case):
    online = trained(case)
    state, found = online.state, leaves(online.state)
    for name, edits in STATE_EDITS.items():
        if name in found:
            for k, edit in enumerate(edits):
                bad = replaced(state, name, edit(found[name]))
                assert refuses(case.algorithm.check_state, online.problem, bad), (name, k)


def test_an_explorer_that_leads_is_refused():
    online = trained(Case("graph-mkl", {"warm_up": 20}))
    leader = int(online.state.sets[0].selection.rank[0])
    assert refuses(
        online.algorithm.check_state, online.problem, replaced(online.state, "sets.0.selection.explorer", leader)
    )


def test_every_part_of_a_problem_and_a_state_has_an_edit():
    """A new field must be given its invariant."""
    for case in CASES.values():
        online = trained(case)
        for edits, value in ((PROBLEM_EDITS, online.problem), (STATE_EDITS, online.state)):
            for name in leaves(value):
                if name.startswith("large."):
                    continue  # test_graph_mkl_large.py
                same = name.replace("sets.1", "sets.0").partition("kernels")[0]
                general = same.rpartition(".")[2] in COVERED_ABOVE or not same
                list_of = same.partition(".")[0] in ("steps", "widths", "ridges")
                assert same in edits or general or list_of, name


COVERED_ABOVE = {  # by the tests of counts, words and flags
    "t", "node", "rounds", "incumbent", "loss", "stabiliser", "anytime", "commit", "commit_after", "freeze_after",
    "weighted", "d", "task", "K", "key", "stack", "slow", "challenger", "beta", "warm", "mixing",
}  # fmt: skip
