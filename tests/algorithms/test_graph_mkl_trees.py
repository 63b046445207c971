"""GraphMKL's boosted trees: bins, splits, leaves, and fits that are spread over rows."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from streams import graph_settings
from trees_from_the_page import BoostedTrees

from omkl import algorithms
from omkl.algorithms.graph_mkl import archive as rows
from omkl.algorithms.graph_mkl import tree_fit, trees
from omkl.algorithms.graph_mkl.constants import (
    LARGEST_DOUBLE,
    TREE_BINS,
    TREE_DEPTH,
    TREE_GROWTH,
    TREE_INPUTS,
    TREE_LABEL_RIDGE,
    TREE_QUANTA,
    TREE_RATE,
    TREE_REFRESH,
    TREE_SPREAD,
    TREE_START,
)
from omkl.algorithms.graph_mkl.upgrade import OLD_BINS, upgrade


def make_problem(d, K=1, count=4, archive=512):
    task = "regression" if K == 1 else "classification"
    problem = algorithms.problem("graph-mkl", graph_settings(task=task, outputs=K), d=d)
    return problem._replace(trees=count, archive=archive)


class Learner:
    """Trees and their archive, as a stream of rows finds them."""

    def __init__(self, problem):
        self.problem, self.archive, self.trees = problem, rows.init(problem), trees.init(problem)

    def learn(self, x, y, weight=1.0):
        """Returns what was predicted before; None where there is no fit yet."""
        problem = self.problem
        if not rows.has_room(problem, self.archive):
            self.archive = rows.enlarged(problem, self.archive)
        if not trees.has_room(problem, self.trees, self.archive):
            self.trees = trees.enlarged(problem, self.trees, self.archive)
        before = None
        if trees.ready(self.trees):
            before = trees.predict(problem, self.trees, x)
            self.trees = trees.learn(problem, self.trees, x, y, weight)
        self.archive = rows.append(self.archive, x, y, weight)
        self.trees = trees.advance(problem, self.trees, self.archive)
        return before

    def run(self, X, y, weight=None):
        weight = np.ones(len(X)) if weight is None else weight
        found = [self.learn(x, t, w) for x, t, w in zip(X, y, weight, strict=True)]
        nothing = np.full(self.problem.K, np.nan)
        return np.array([nothing if f is None else f for f in found])


def made(n, d, K=1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = X[:, 0] * X[:, 1 % d] + np.abs(X[:, 2 % d]) + 0.1 * rng.normal(size=n)
    return X, (y if K == 1 else np.digitize(y, np.quantile(y, np.arange(1, K) / K)).astype(float))


# Bins


@given(st.lists(st.sampled_from([-2.5, -1.0, 0.0, 0.5, 3.0, 1e90, np.nan]), min_size=1, max_size=80))
def test_few_values_have_bins_of_their_own_in_their_order(values):
    values = np.array(values)
    bins = tree_fit.bin_numbers(tree_fit.cut_points(values), values)
    present = ~np.isnan(values)
    _, order = np.unique(values[present], return_inverse=True)
    some_missing = bool(present.any()) and not present.all()
    np.testing.assert_array_equal(bins[present], order + some_missing)
    assert not bins[~present].any()


def test_neighbouring_numbers_are_told_apart():
    values = np.array([1.0, np.nextafter(1.0, 2.0)])
    assert list(tree_fit.bin_numbers(tree_fit.cut_points(values), values)) == [0, 1]


@given(st.integers(1, 400), st.integers(1, 400), st.integers(0, 9))
@settings(deadline=None)
def test_thresholds_increase_and_are_no_more_than_the_bins(n, distinct, seed):
    values = np.floor(np.random.default_rng(seed).exponential(size=n) * distinct / 4)
    cuts = tree_fit.cut_points(values)
    assert len(cuts) < TREE_BINS
    assert (np.diff(cuts) > 0).all()
    assert len(np.unique(tree_fit.bin_numbers(cuts, values))) == len(cuts) + 1


@given(st.integers(200, 3000), st.integers(0, 9), st.booleans())
@settings(max_examples=25, deadline=None)
def test_many_values_are_spread_evenly_over_the_bins(n, seed, gaps):
    values = np.random.default_rng(seed).normal(size=n)
    if gaps:
        values[0] = np.nan
    cuts = tree_fit.cut_points(values)
    sizes = np.bincount(tree_fit.bin_numbers(cuts, values), minlength=TREE_BINS)
    assert (np.diff(cuts) > 0).all()
    assert len(cuts) == TREE_BINS - 1
    even = sizes[1:] if gaps else sizes
    assert even.max() - even.min() <= 1


def test_a_value_of_most_rows_takes_one_bin():
    values = np.append(np.zeros(900), np.arange(1.0, 101.0))
    cuts = tree_fit.cut_points(values)
    assert (np.diff(cuts) > 0).all()
    assert len(cuts) < TREE_BINS
    assert list(np.flatnonzero(cuts < 1)) == [0]
    assert cuts[0] > 0
    values = np.concatenate((np.arange(-100.0, 0.0), np.zeros(900), np.arange(1.0, 101.0)))
    cuts = tree_fit.cut_points(values)
    assert list(cuts[(cuts > -1) & (cuts < 1)]) == [-0.5, 0.5]


@given(st.integers(300, 3000), st.integers(0, 9), st.floats(0.5, 0.9))
@settings(max_examples=25, deadline=None)
def test_values_beside_a_frequent_one_share_nearly_all_bins(n, seed, share):
    rng = np.random.default_rng(seed)
    values = np.where(rng.random(n) < share, 0.0, rng.exponential(size=n))
    others = np.count_nonzero(values)
    sizes = np.bincount(tree_fit.bin_numbers(tree_fit.cut_points(values), values))
    assert sizes[0] == n - others
    assert len(sizes) == min(TREE_BINS - 2, others) + 1
    assert sizes[1:].max() <= max(1, -(-others // (TREE_BINS - 2)))


# Splits


def brute_force(X, residual, weight, least):
    """A tree by exact arithmetic on every threshold between two values of a node's rows: leaf of every row."""

    def gain(some):
        return Fraction(int(residual[some].sum()) ** 2, int(weight[some].sum()) + 16)

    leaf = np.zeros(len(X), int)

    def split(some, level, v):
        best, right = Fraction(0), np.zeros(len(X), bool)
        if level == TREE_DEPTH:
            leaf[some] = v
            return
        for k in range(X.shape[1]):
            for threshold in np.unique(X[:, k])[1:]:
                up = some & (X[:, k] >= threshold)
                if min(weight[up].sum(), weight[some & ~up].sum()) >= least:
                    more = gain(up) + gain(some & ~up) - gain(some)
                    if more > best:
                        best, right = more, up
        split(some & ~right, level + 1, 2 * v)
        split(right, level + 1, 2 * v + 1)

    split(np.ones(len(X), bool), 0, 0)
    return leaf


@given(st.integers(0, 10**6))
@settings(max_examples=15, deadline=None)
def test_trees_are_those_of_an_exhaustive_search(seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 9, (60, 3)).astype(float)
    residual = rng.integers(-TREE_QUANTA, TREE_QUANTA, 60)
    residual[0] = TREE_QUANTA  # so that rounding changes nothing
    weight = rng.choice([8.0, 16.0, 24.0], 60)
    weight[-1] = 16 * 60 - weight[:-1].sum()
    if weight[-1] <= 0:
        weight[:] = 16.0
    cuts = np.zeros((3, TREE_BINS - 1))
    bins = np.zeros((60, 3), np.uint8)
    for k in range(3):
        points = tree_fit.cut_points(X[:, k])
        cuts[k, : len(points)], bins[:, k] = points, tree_fit.bin_numbers(points, X[:, k])
    counts = tree_fit.counts_of(residual[:, None].astype(float), weight, 16.0, 1.0)
    np.testing.assert_array_equal(counts.residual[:, 0], residual)
    np.testing.assert_array_equal(counts.weight, weight)
    tree = tree_fit.grow(bins, cuts, np.arange(3), counts)
    np.testing.assert_array_equal(tree.leaf, brute_force(X, residual, weight.astype(int), tree_fit.least_weight(60)))


def test_the_leaf_of_a_row_is_that_which_predictions_find():
    problem = make_problem(3)
    X, y = made(150, 3)
    X[::7, 1] = np.nan
    learner = Learner(problem)
    learner.run(X[:TREE_START], y[:TREE_START])
    while learner.trees.rows:
        learner.trees = trees.advance(problem, learner.trees, learner.archive)
    tree = tree_fit.grow(
        learner.trees.bins[:TREE_START], learner.trees.cuts, np.arange(3),
        tree_fit.counts_of(y[:TREE_START, None] - y[:TREE_START].mean(), np.ones(TREE_START), 1.0, 1.0),
    )  # fmt: skip
    np.testing.assert_array_equal(tree.threshold, learner.trees.threshold[0, 0])
    assert [trees.leaves_of(learner.trees, 0, x)[0] for x in X[:TREE_START]] == tree.leaf.tolist()


@given(st.integers(0, 1000), st.integers(1, 300))
@settings(deadline=None)
def test_inputs_of_a_tree_are_distinct_and_as_many_as_wanted(tree, d):
    usable = np.arange(d) * 3
    found = tree_fit.inputs_of(tree, usable)
    assert set(found) <= set(usable)
    assert (np.diff(found) > 0).all()
    assert len(found) == min(d, max(TREE_INPUTS[0], min(TREE_INPUTS[1], (d + 1) // 2)))


def test_different_trees_search_different_inputs_and_all_have_their_turn():
    found = [tree_fit.inputs_of(tree, np.arange(100)) for tree in range(40)]
    assert len({tuple(f) for f in found}) == 40
    assert set(np.concatenate(found)) == set(range(100))


@given(st.integers(0, 10**6), st.integers(4, 30))
@settings(deadline=None)
def test_no_projection_of_residuals_is_nothing_but_rounding(tree, K):
    found = tree_fit.projected(np.eye(K) - 1 / K, tree, labels=True)
    assert found.shape == (K, 3)
    assert (np.abs(found).max(axis=0) > 0.9).all()


@pytest.mark.parametrize("K", [1, 4])
def test_rounding_of_constant_targets_is_not_split(K):
    X, _ = made(TREE_START, 3)
    learner = Learner(make_problem(3, K))
    learner.run(X, np.full(TREE_START, 0.1 if K == 1 else 2.0), np.full(TREE_START, 0.3))
    while learner.trees.rows:
        learner.trees = trees.advance(learner.problem, learner.trees, learner.archive)
    assert (learner.trees.threshold[0, 0] == LARGEST_DOUBLE).all()
    found = trees.predict(learner.problem, learner.trees, X[0])
    assert found == pytest.approx(0.1) if K == 1 else np.argmax(found) == 2


# Predictions


def test_a_step_is_learned_at_the_rate_that_the_leaves_allow():
    """Within a side of the step all residuals are the same, so that no split gains anything there."""
    X = np.repeat([[0.0], [1.0]], TREE_START // 2, axis=0)
    learner = Learner(make_problem(1, count=7))
    learner.run(X, 3.0 * X[:, 0])
    while learner.trees.rows:
        learner.trees = trees.advance(learner.problem, learner.trees, learner.archive)
    n, fitted = TREE_START // 2, 1.5
    for _ in range(7):
        fitted += TREE_RATE * n * (3.0 - fitted) / (n + 1)
    assert trees.predict(learner.problem, learner.trees, np.array([1.0]))[0] == pytest.approx(fitted, rel=1e-13)
    assert trees.predict(learner.problem, learner.trees, np.array([0.4]))[0] == pytest.approx(3.0 - fitted, rel=1e-13)


def test_missing_values_are_a_side_of_their_own():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 1))
    X[rng.random(400) < 0.5] = np.nan
    y = np.where(np.isnan(X[:, 0]), 5.0, 0.0)
    learner = Learner(make_problem(1, count=40))
    assert np.abs(learner.run(X, y)[-100:, 0] - y[-100:]).max() < 0.05
    assert (learner.trees.threshold[learner.trees.active, 0] == -LARGEST_DOUBLE).any()


def test_an_increasing_transformation_of_an_input_changes_nothing():
    rng = np.random.default_rng(0)
    X, target = rng.integers(0, 6, (260, 2)).astype(float), rng.normal(size=(6, 6))
    y = target[X[:, 0].astype(int), X[:, 1].astype(int)]
    one, other = Learner(make_problem(2)), Learner(make_problem(2))
    np.testing.assert_array_equal(one.run(X, y), other.run(np.column_stack((np.exp(X[:, 0]), X[:, 1] ** 3 - 7)), y))


@pytest.mark.parametrize("K", [1, 2, 4])
def test_only_relative_weights_matter(K):
    X, y = made(220, 3, K)
    weight = np.random.default_rng(1).choice([0.5, 1.0, 2.5], 220)
    one, other = Learner(make_problem(3, K)), Learner(make_problem(3, K))
    np.testing.assert_array_equal(one.run(X, y, weight), other.run(X, y, 8 * weight))


def test_targets_in_another_unit_are_predicted_in_that_unit():
    X, y = made(220, 3)
    one, other = Learner(make_problem(3)).run(X, y), Learner(make_problem(3)).run(X, 2.0**40 * y)
    np.testing.assert_array_equal(2.0**40 * one, other)


def test_labels_of_equal_shares_are_learned():
    X, y = made(700, 3, 3)
    found = Learner(make_problem(3, 3, count=30)).run(X, y)[400:]
    assert np.mean(np.argmax(found, axis=1) == y[400:]) > 0.75


@pytest.mark.parametrize("K", [2, 3, 5])
def test_leaves_of_labels_are_newton_steps(K):
    problem = make_problem(3, K, count=1)
    X, y = made(TREE_START, 3, K)
    weight = np.random.default_rng(0).uniform(0.5, 2, TREE_START)
    learner = Learner(problem)
    learner.run(X, y, weight)
    while learner.trees.rows:
        learner.trees = trees.advance(problem, learner.trees, learner.archive)
    share = np.array([weight[y == k].sum() for k in range(K)]) / weight.sum()
    np.testing.assert_allclose(learner.trees.base[0], np.log(share), rtol=1e-12)
    leaf = np.array([trees.leaves_of(learner.trees, 0, x)[0] for x in X])
    for v in np.unique(leaf):
        w, Y = weight[leaf == v], y[leaf == v, None] == np.arange(K)
        step = (w @ (Y - share)) / (w.sum() * share * (1 - share) + TREE_LABEL_RIDGE * weight.mean())
        np.testing.assert_allclose(learner.trees.value[0, 0, v], TREE_RATE * (K - 1) / K * step, rtol=1e-10)


def test_leaves_of_numbers_learn_every_row():
    X, y = made(150, 3)
    learner = Learner(make_problem(3))
    learner.run(X, y)
    before, part = learner.trees, learner.trees.active
    after = trees.learn(learner.problem, before, X[0], y[0] + 2, 3.0)
    leaf = trees.leaves_of(before, part, X[0])
    others = np.ones(before.weight.shape, bool)
    others[part, np.arange(4), leaf] = False
    np.testing.assert_allclose(after.weight[~others] - before.weight[~others], 3.0)
    np.testing.assert_array_equal(after.value[others], before.value[others])
    first = before.total[part, 0, leaf[0]] + 3.0 * (y[0] + 2 - before.base[part, 0])
    assert after.total[part, 0, leaf[0]] == pytest.approx(first, rel=1e-12)
    ridge = before.ridge[part]
    assert after.value[part, 0, leaf[0], 0] == pytest.approx(
        TREE_RATE * first / (before.weight[part, 0, leaf[0]] + 3.0 + ridge), rel=1e-12
    )


# Fits


@pytest.mark.parametrize("K", [1, 3])
def test_a_fit_that_is_spread_over_rows_is_that_of_its_first_moment(K):
    problem = make_problem(20, K, count=12)
    X, y = made(TREE_START + 8, 20, K)
    spread, at_once = Learner(problem), Learner(problem)
    spread.run(X, y)
    at_once.run(X[:TREE_START], y[:TREE_START])
    units = 0
    while at_once.trees.rows:
        at_once.trees = trees.after_unit(problem, at_once.trees, at_once.archive)
        units += 1
    assert units > 0
    assert spread.trees.active == at_once.trees.active == 0
    np.testing.assert_array_equal(spread.trees.feature, at_once.trees.feature)
    np.testing.assert_array_equal(spread.trees.threshold, at_once.trees.threshold)
    np.testing.assert_array_equal(spread.trees.fitted, at_once.trees.fitted)
    if K > 1:  # leaves of numbers have learned the rows since
        np.testing.assert_array_equal(spread.trees.value, at_once.trees.value)


def test_rows_that_came_during_a_fit_are_learned_at_its_end():
    problem = make_problem(20, count=12)
    X, y = made(TREE_START + 8, 20)
    learner = Learner(problem)
    learner.run(X[:TREE_START], y[:TREE_START])
    alone = learner.trees
    while alone.rows:
        alone = trees.after_unit(problem, alone, learner.archive)
    for x, target in zip(X[TREE_START:], y[TREE_START:], strict=True):
        alone = trees.learn(problem, alone, x, target, 1.0)
    learner.run(X[TREE_START:], y[TREE_START:])
    np.testing.assert_allclose(learner.trees.value, alone.value, rtol=1e-13)


def test_fits_begin_and_end_when_they_should():
    learner = Learner(make_problem(2, count=3, archive=256))
    X, y = made(1500, 2)
    begun, over = [], []
    for n, (x, target) in enumerate(zip(X, y, strict=True), 1):
        started, active = learner.trees.started, learner.trees.active
        learner.learn(x, target)
        if learner.trees.started != started:
            begun.append(n)
        if learner.trees.active != active:
            over.append(n)
    assert begun[0] == TREE_START
    for last, now in itertools.pairwise(begun):
        assert now == int(np.ceil(last + min(TREE_GROWTH[0] * last, TREE_REFRESH * 256)))
    assert len(over) == len(begun)
    for start, end in zip(begun, over, strict=True):
        assert end - start <= min(start, 192) / TREE_SPREAD
    trees.check(learner.problem, learner.trees, learner.archive)


def test_a_long_stream_is_fitted_to_its_last_rows():
    X, y = made(900, 2)
    y[400:] += 50
    found = Learner(make_problem(2, count=12, archive=256)).run(X, y)
    assert np.abs(found[-200:, 0] - y[-200:]).mean() < 1


def test_nothing_is_stored_before_the_first_fit_is_near():
    learner = Learner(make_problem(3))
    learner.run(*made(TREE_START - 2, 3))
    assert sum(np.asarray(a).nbytes for a in learner.trees if isinstance(a, np.ndarray)) == 0
    learner.run(*made(2, 3))
    assert learner.trees.rows == TREE_START


def test_restarted_trees_have_learned_nothing():
    learner = Learner(make_problem(3))
    learner.run(*made(200, 3))
    fresh = trees.restarted(learner.problem, learner.trees)
    assert not trees.ready(fresh)
    assert fresh.rows == 0
    learner.trees, learner.archive = fresh, rows.cut(learner.archive, 10)
    learner.run(*made(TREE_START - 11, 3))
    assert learner.trees.rows == 0
    learner.run(*made(1, 3))
    assert learner.trees.started == TREE_START


def test_a_fit_whose_numbers_are_not_finite_is_dropped():
    learner = Learner(make_problem(3, count=40))
    for x, y in zip(*made(200, 3), strict=True):
        learner.learn(x, y)
        if trees.ready(learner.trees) and learner.trees.unit > 3:  # within a second fit, after a tree of it
            break
    assert learner.trees.rows
    before = trees.predict(learner.problem, learner.trees, np.ones(3))
    spoiled = learner.trees._replace(fitted=np.full_like(learner.trees.fitted, 1e308))
    with np.errstate(over="ignore", invalid="ignore"):
        after = trees.after_unit(learner.problem, spoiled, learner.archive)
    assert after.rows == 0
    assert trees.ready(after)
    np.testing.assert_array_equal(trees.predict(learner.problem, after, np.ones(3)), before)


@pytest.mark.parametrize(("change", "wanted"), [
    (lambda t: {"bins": t.bins + np.uint8(TREE_BINS)}, "bin that is not there"),
    (lambda t: {"feature": t.feature + 3}, "input that is not there"),
    (lambda t: {"feature": t.feature - 9}, "input that is not there"),
    (lambda t: {"cut_counts": t.cut_counts + TREE_BINS}, "too many bins"),
    (lambda t: {"threshold": t.threshold[:, :-1]}, "does not fit the problem"),
    (lambda t: {"fitted": t.fitted[:-1]}, "does not fit the problem"),
    (lambda t: {"bins": t.bins.astype(np.int64)}, "no such array"),
    (lambda t: {"value": t.value * np.inf}, "not finite"),
    (lambda t: {"weight": t.weight - 1e9}, "negative"),
    (lambda t: {"active": 2}, "two ensembles"),
    (lambda t: {"rows": 10**6}, "rows of the archive"),
    (lambda t: {"rows": 3}, "too few rows"),
    (lambda t: {"unit": 7}, "no such unit"),
    (lambda t: {"started": 10**6}, "have not come"),
    (lambda t: {"grown": -1}, "must be counts"),
])  # fmt: skip
def test_what_a_file_claims_is_checked(change, wanted):
    learner = Learner(make_problem(3))
    learner.run(*made(120, 3))
    trees.check(learner.problem, learner.trees, learner.archive)
    with np.errstate(invalid="ignore"), pytest.raises(ValueError, match=wanted):
        trees.check(learner.problem, learner.trees._replace(**change(learner.trees)), learner.archive)


# The page


@pytest.mark.parametrize(("d", "K", "n"), [(2, 1, 290), (34, 1, 78), (3, 2, 100), (3, 3, 100), (2, 6, 150)])
def test_trees_are_those_of_the_page(d, K, n):
    rng = np.random.default_rng(d + K)
    X, y = made(n, d, K)
    X[:, 0] = np.round(2 * X[:, 0])
    X[:, 1] *= X[:, 1] > -0.5
    X[rng.random((n, d)) < 0.1] = np.nan
    weight = rng.choice([0.3, 1.0, 2.0], n)
    problem = make_problem(d, K, count=3, archive=256)
    page = BoostedTrees(d, K, K > 1, 3, 256, growth=TREE_GROWTH[K > 1], rate=TREE_RATE, inputs=TREE_INPUTS)
    learner = Learner(problem)
    for i, (x, target, w) in enumerate(zip(X, y, weight, strict=True)):
        if i == 66:  # within a fit: the stream has changed 60 rows ago
            page.restart(page.rows[-60:])
            learner.trees = trees.restarted(problem, learner.trees)
            learner.archive = rows.cut(learner.archive, 60)
        expected = page.predict(x)
        page.learn(x, target, w)
        found = learner.learn(x, target, w)
        assert (found is None) == (expected is None)
        if found is not None:
            np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)


def test_trees_of_a_file_with_fewer_bins_have_room_for_more():
    learner = Learner(make_problem(3, count=40))
    X, y = made(200, 3)
    for x, t in zip(X, y, strict=True):
        learner.learn(x, t)
        if trees.ready(learner.trees) and learner.trees.unit > 1:  # within a second fit, with bins of the first inputs
            break
    old = learner.trees.cuts[:, : OLD_BINS - 1]
    arrays, _ = upgrade({"large.trees.cuts": old}, {})
    assert arrays["large.trees.cuts"].shape == learner.trees.cuts.shape
    np.testing.assert_array_equal(arrays["large.trees.cuts"][:, : OLD_BINS - 1], old)
    assert not arrays["large.trees.cuts"][:, OLD_BINS - 1 :].any()
    of_today = {"large.trees.cuts": learner.trees.cuts}
    assert upgrade(of_today, {})[0]["large.trees.cuts"] is learner.trees.cuts
