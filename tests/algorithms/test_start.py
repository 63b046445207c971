"""The states before the first row, which both implementations share: what the paper says they are."""

import numpy as np
import pytest
from streams import EVERY_CASE, Case, small

from omkl import algorithms
from omkl.algorithms import omkl_gf, sfg_mkl, sfg_mkl_r
from omkl.algorithms.schedule import Schedule
from omkl.arrays import leaves

GRID = (np.arange(600) + 0.5) / 600  # random numbers at equal distances: shares of them are probabilities


def problem_of(learner, schedule, **changes):
    return algorithms.problem(learner, small(**changes), 2)._replace(schedule=schedule)


def first_nodes(algorithm, problem):
    return np.array([algorithm.init(problem, np.array([r])).node for r in GRID])


@pytest.mark.parametrize("anytime", [False, True])
def test_the_first_node_is_drawn_from_equal_weights_and_the_dominating_set(anytime):
    """(12) with u = 1 and the exploration rate of round 1."""
    problem = problem_of("sfg-mkl", Schedule(0.1, 0.4, anytime))
    nodes = first_nodes(sfg_mkl, problem)
    dominating = problem.graph.cover > 0
    assert 0 < dominating.sum() < 5
    wanted = 0.6 / 5 + 0.4 * dominating / dominating.sum()
    np.testing.assert_allclose(np.bincount(nodes, minlength=5) / len(GRID), wanted, atol=1 / len(GRID))
    assert (np.diff(nodes) >= 0).all()  # a larger random number, a later node


@pytest.mark.parametrize("beta", [None, 0.15])
def test_the_first_node_of_the_refined_graph_is_any_with_equal_probability(beta):
    """(24) with u = 1: all nodes are in D'_1."""
    problem = problem_of("sfg-mkl-r", Schedule(0.1, 0.4, anytime=True), beta=beta)
    nodes = first_nodes(sfg_mkl_r, problem)
    np.testing.assert_allclose(np.bincount(nodes) / len(GRID), 0.2, atol=1 / len(GRID))
    np.testing.assert_array_equal(sfg_mkl_r.init(problem, np.array([0.5])).d, np.arange(5))


@pytest.mark.parametrize("algorithm", [sfg_mkl, sfg_mkl_r])
def test_a_commit_rule_applies_after_so_many_rounds(algorithm):
    problem = problem_of(algorithm.ALGORITHM.name, Schedule(0.1, 0.4), commit="first", commit_after=0)
    assert algorithm.init(problem, np.array([0.9])).node == 0
    assert algorithm.init(problem._replace(commit_after=1), np.array([0.9])).node == 4


def test_the_first_subset_is_drawn_from_equal_weights():
    problem = problem_of("omkl-gf", Schedule(0.1, 0.4, anytime=True), draws=2)
    state = omkl_gf.init(problem, np.array([0.05, 0.85]))
    np.testing.assert_array_equal(state.chosen, [True, False, False, False, True])
    np.testing.assert_allclose(state.q, 1 - 0.8**2, rtol=1e-14)  # drawn at least once in two draws


@EVERY_CASE
def test_nothing_is_learned_before_the_first_row(case: Case):
    """Weights are equal, coefficients are 0, and no round has passed."""
    problem = case.problem(3)
    state = case.algorithm.init(problem, np.full(case.algorithm.uniforms(problem), 0.3))
    found = leaves(state)
    assert state.t == 0
    for name in ("theta", "sets.0.coefficients.theta", "sets.0.coefficients.theta_linear", "sets.0.evidence",
                 "sets.0.stack.theta", "sets.0.noise.rounds", "trend.rounds", "c", "beta", "mu",
                 "log_score"):  # fmt: skip
        assert not np.any(found.get(name, 0)), name
    for name in ("log_w", "log_u"):
        assert np.ptp(found.get(name, 0)) == 0, name
    for name in ("S", "alpha"):  # no row is stored: there is no place, or all places are empty
        assert np.size(found.get(name, ())) == 0 or (found["n"] == 0 and not np.any(found[name]))
