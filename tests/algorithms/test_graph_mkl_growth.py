"""Inputs and labels that come late to GraphMKL. Both implementations share this code, so it has oracles of its own."""

import numpy as np
import pytest
from streams import graph_settings as small
from streams import raw_and_turning as stream

from omkl import Online, algorithms
from omkl.algorithms.graph_mkl.state import grow, start_set
from omkl.arrays import leaves


def problem_of(names, **changes):
    return algorithms.problem("graph-mkl", small(**changes), names=list(names))


def trained(rows, names="abc", **changes):
    X, y = stream(rows)
    online = Online("graph-mkl", problem_of(names, **changes), 0)
    online.run(X[:, : len(names)], y)
    return online


def with_covariances(part):
    """The leaves of a set, with P = R R' in place of its factor, whose signs are arbitrary."""
    return {
        name: leaf @ np.swapaxes(leaf, -1, -2) if name.rpartition(".")[2].startswith("R") else leaf
        for name, leaf in leaves(part).items()
    }


def run_row(online, x, y):
    online.run_unchecked(np.array([x], dtype=float), np.array([float(y)]))


@pytest.mark.parametrize("orders", [(None,), (2,)])
def test_a_set_that_has_learned_nothing_grows_into_a_new_set_of_the_larger_problem(orders):
    small_one, large = problem_of("abc", orders=orders), problem_of("abcde", orders=orders)
    online = Online("graph-mkl", small_one, 0)
    grown, fresh = (with_covariances(part) for part in (grow(large, online.state).sets[0], start_set(large)))
    assert grown.keys() == fresh.keys()
    for name in fresh:
        if name not in ("scaling.mean", "first.X"):  # where the values are said to be unknown
            np.testing.assert_allclose(grown[name], fresh[name], rtol=1e-12, atol=1e-12, err_msg=name)
    for name in ("scaling.mean", "first.X"):
        assert np.isnan(grown[name][..., 3:]).all()
        np.testing.assert_array_equal(grown[name][..., :3], fresh[name][..., :3])


def test_a_set_of_labels_that_has_learned_nothing_grows_into_a_new_set_with_more_labels():
    few, many = (problem_of("abc", task="classification", outputs=outputs) for outputs in (2, 4))
    grown, fresh = leaves(grow(many, Online("graph-mkl", few, 0).state).sets[0]), leaves(start_set(many))
    for name in fresh:
        np.testing.assert_array_equal(grown[name], fresh[name], err_msg=name)


def test_the_linear_expert_has_the_prior_of_a_new_input_and_keeps_what_it_knows():
    online = trained(300)
    before = online.state.sets[0].coefficients
    online.change_problem(problem_of("abcd"))
    now = online.state.sets[0].coefficients
    P = now.R_linear @ now.R_linear.T
    np.testing.assert_allclose(P[:4, :4], before.R_linear @ before.R_linear.T, rtol=1e-12)
    np.testing.assert_array_equal(P[4, :4], 0)
    assert P[4, 4] == pytest.approx(1 / 3e-3)  # the default ridge
    np.testing.assert_array_equal(now.theta_linear, np.pad(before.theta_linear, ((0, 0), (0, 1))))


def test_the_mean_of_a_new_input_is_its_first_value_and_its_scale_the_first_difference():
    """(G4): an input that has been missing is centred at its first value, and scaled by the first change."""
    online = trained(300)
    online.change_problem(problem_of("abcd"))
    old = online.state.sets[0].scaling
    for x, mean, scale in [(np.nan, np.nan, 0), (7.0, 7.0, 0), (7.0, 7.0, 0), (np.nan, 7.0, 0), (9.5, 7.0, 1 / 2.5),
                           (50.0, 7.0, 1 / 2.5)]:  # fmt: skip
        run_row(online, [41.0, 39.0, 40.0, x], 130.0)
        now = online.state.sets[0].scaling
        np.testing.assert_array_equal(now.mean, [*old.mean[:3], mean])
        np.testing.assert_allclose(now.scale, [*old.scale[:3], scale])


def test_an_input_that_comes_while_first_rows_are_stored_counts_from_there_on():
    """At the next refit its mean is that of the rows that have it."""
    online = trained(40)
    online.change_problem(problem_of("abcd"))
    X, y = stream(64)
    late = np.arange(24.0)
    online.run(np.column_stack((X[40:], late)), y[40:])
    scaling = online.state.sets[0].scaling
    assert scaling.mean[3] == pytest.approx(late.mean())
    assert scaling.scale[3] == pytest.approx(1 / late.std())
    np.testing.assert_allclose(scaling.mean[:3], X.mean(axis=0))


@pytest.mark.parametrize(
    ("rows", "names", "changes", "challenger"),
    [
        (256, "abcd", {}, -1),  # the first rows are still stored: the incumbent is fitted again
        (257, "abcd", {}, 0),
        (400, "abc", {}, -1),  # no new input
        (400, "abcd", {"adapt": False}, -1),
    ],
)
def test_a_new_input_starts_a_challenger_after_the_first_rows_if_there_may_be_one(rows, names, changes, challenger):
    online = trained(rows, **changes)
    online.change_problem(problem_of(names, **changes))
    assert [part.age for part in online.state.sets] == [rows, challenger]


def test_a_challenger_that_is_there_grows_and_its_trial_goes_on():
    online = trained(300)
    online.change_problem(problem_of("abcd"))
    for k in range(30):
        run_row(online, [40 + k % 7, 39.0, 40.0, k], 130.0 + k)
    trial = online.state.trial
    assert trial.incumbent > 0
    online.change_problem(problem_of("abcde"))
    assert [part.age for part in online.state.sets] == [330, 30]
    assert online.state.trial == trial
    assert [len(part.scaling.mean) for part in online.state.sets] == [5, 5]


def test_a_new_label_starts_no_challenger():
    X, y = stream(400)
    labels = (y > np.median(y)).astype(float)
    online = Online("graph-mkl", problem_of("abc", task="classification", outputs=2), 0)
    online.run(X, labels)
    theta = online.state.sets[0].coefficients.theta
    online.change_problem(problem_of("abc", task="classification", outputs=3))
    assert [part.age for part in online.state.sets] == [400, -1]
    now = online.state.sets[0].coefficients.theta
    np.testing.assert_array_equal(now[:, :, :2], theta)
    np.testing.assert_array_equal(now[:, :, 2], 0)
