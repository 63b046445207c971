"""GraphMKL's selection: warm-up, leaders and explorers."""

import numpy as np
import pytest
from streams import graph_settings as small
from streams import raw_and_turning as stream

import omkl
from omkl import algorithms
from omkl.algorithms.graph_mkl import selection
from omkl.algorithms.graph_mkl.constants import RANK_EVERY, SILENT_ROUNDS
from omkl.algorithms.graph_mkl.repeats import Weights
from omkl.algorithms.graph_mkl.selection import Selection

NONE, ROUNDS = np.zeros(0, bool), np.zeros(0, np.intp)  # of large experts, in problems without any


def evaluated(*arguments, **named):
    return selection.evaluated(*arguments, **named, ready=NONE)


def counted(*arguments, **named):
    return selection.counted(*arguments, **named, ready=NONE, rounds=ROUNDS)


def problem_of(**changes):
    return algorithms.problem("graph-mkl", small(**changes), d=2)


def test_only_a_quarter_is_evaluated_after_the_warm_up():
    X, y = stream(900)
    settings = omkl.GraphSettings(budget="small", adapt=False)
    online = omkl.Online.make("graph-mkl", settings, d=3, seed=0)
    online.run(X[:600], y[:600])
    before = online.evaluations
    online.run(X[600:], y[600:])
    assert (online.evaluations - before) / 300 == settings.active
    assert 4 * settings.active <= settings.experts


@pytest.mark.parametrize(("incumbent", "warm_up"), [(True, 60), (False, 30)])
def test_a_challenger_has_half_the_warm_up(incumbent, warm_up):
    problem = problem_of()
    chosen = Selection(np.arange(problem.experts), 5)
    assert evaluated(problem, chosen, warm_up - 1, incumbent, share=1.0).all()
    assert np.flatnonzero(evaluated(problem, chosen, warm_up, incumbent, share=1.0)).tolist() == [0, 1, 2, 5]


def test_rows_count_towards_the_warm_up_as_far_as_their_weights_do():
    """Of twenty rows, one of weight 39 and the others of weight 1, the sum of the weights counts for 2.2."""
    weights = np.append(np.ones(19), 39.0)
    share = selection.row_share(Weights(weights.mean(), (weights**2).mean()))
    assert share == pytest.approx(weights.sum() ** 2 / (weights**2).sum() / 20)
    problem = problem_of()
    chosen = Selection(np.arange(problem.experts), 5)
    assert evaluated(problem, chosen, int(60 / share) - 1, True, share).all()
    assert not evaluated(problem, chosen, int(60 / share) + 1, True, share).all()
    assert selection.row_share(Weights()) == selection.row_share(Weights(0.3, 0.3**2)) == 1
    assert selection.row_share(Weights(1e27, 1e57)) == 1 / 16


def test_an_explorer_is_no_part_of_the_mixture():
    problem = problem_of()
    chosen = Selection(np.arange(problem.experts), 5)
    assert np.flatnonzero(counted(problem, chosen, 100, incumbent=True, share=1.0)).tolist() == [0, 1, 2]


@pytest.mark.parametrize(("age", "counts"), [(SILENT_ROUNDS - 1, False), (SILENT_ROUNDS, True)])
def test_a_challenger_counts_after_some_rounds(age, counts):
    problem = problem_of()
    chosen = selection.init(problem)
    assert counted(problem, chosen, age, incumbent=False, share=1.0).all() == counts
    assert counted(problem, chosen, age, incumbent=True, share=1.0).all()


def test_a_set_that_is_not_there_is_not_evaluated():
    problem = problem_of()
    assert not evaluated(problem, selection.init(problem), -1, incumbent=False, share=1.0).any()


def test_experts_are_ranked_by_evidence_now_and_then():
    problem = problem_of()
    evidence = np.random.default_rng(0).normal(size=problem.experts)
    before = selection.init(problem)
    after = selection.update(problem, before, evidence, 60 + RANK_EVERY, True, 0.5)
    assert (np.diff(evidence[after.rank]) <= 0).all()
    between = selection.update(problem, before, evidence, 61, True, 0.5)
    np.testing.assert_array_equal(between.rank, before.rank)


def test_explorers_do_not_lead_and_are_no_neighbours_of_leaders():
    problem = problem_of(evaluate=3)
    B, E = problem.learners, problem.experts
    for seed in range(20):
        rank = np.random.default_rng(seed).permutation(E)
        leaders = set(rank[: problem.active - 1].tolist())
        on_kernels = [e for e in leaders if e < problem.on_kernels]
        near = {j * B + e % B for e in on_kernels for j in np.flatnonzero(problem.graph.A[e // B])}
        explorers = {selection.explore(problem, rank, r) for r in np.linspace(0, 0.999, 500)}
        assert explorers == set(range(E)) - leaders - near


def test_explorers_are_neighbours_where_there_are_no_other_experts():
    problem = problem_of(widths=(), steps=(), out_degree=3, evaluate=3)
    rank = np.array([0, 3, 1, 2])
    assert {selection.explore(problem, rank, r) for r in np.linspace(0, 0.999, 50)} == {1, 2}
