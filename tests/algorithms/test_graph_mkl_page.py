"""The library computes what docs/graph_mkl.md states: compared with an implementation written from that page alone."""

import re
from pathlib import Path
from typing import NamedTuple

import numpy as np
from graph_mkl_from_the_page import GraphMKL

from omkl import Gaussian, GraphSettings, Online, algorithms

TOLERANCE = 1e-8  # rounding makes about 1e-11
SMALL = {"budget": "small", "n_features": 8, "warm_up": 60, "evaluate": 6}


class Run(NamedTuple):
    predictions: list
    half_widths: list
    trend: tuple  # the means of the error and their number
    shares: tuple  # the sums of the weights of incumbent and challenger, (G38)


def number_stream(rows, change):
    """Raw units, and a function that becomes another one at row `change`."""
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(rows, 3))
    before, after = np.sin(2 * Z[:, 0]) + Z[:, 1] * Z[:, 2], 2 + Z[:, 1] ** 2 - 2 * np.sin(2 * Z[:, 0])
    y = np.where(np.arange(rows) < change, before, after) + 0.04 * rng.normal(size=rows)
    return Z * [3, 0.1, 20] + [5, 0, -100], 1000 + 50 * y


def label_stream(rows, change):
    rng = np.random.default_rng(1)
    Z = rng.normal(size=(rows, 3))
    y = np.where(Z[:, 0] ** 2 + Z[:, 1] ** 2 > 3, 2, Z[:, 0] > 0.1)
    y[change:] = (y[change:] + 1) % 3
    return Z * [1, 10, 100], y.astype(float)


def page_and_library(settings, X, y, weight=None, trial=500, sparse=0):
    """What both predict and how they end, and the learner of the page."""
    problem = algorithms.problem("graph-mkl", settings, d=X.shape[1] - sparse, seed=1)
    problem = problem._replace(trial=trial, sparse=sparse)
    online = Online("graph-mkl", problem, rng=3)
    half_widths = np.empty((len(X), online.shape.extras))
    predictions = online.run_unchecked(X, y, weight, half_widths)  # `run` refuses missing inputs
    page, rng = GraphMKL(problem, settings), np.random.default_rng(3)
    uniforms = rng.random((1 + len(X), algorithms.get("graph-mkl").uniforms(problem)))[1:]
    expected, expected_half_widths = [], []
    for x, target, w, r in zip(X, y, np.ones(len(X)) if weight is None else weight, uniforms, strict=True):
        expected_half_widths.append(page.errors.h)
        expected.append(page.round(x, target, w, r))
    trend = page.fast, page.slow, page.counted
    state = online.state
    library = Run(predictions, half_widths, tuple(state.trend), tuple(state.trial))
    return Run(expected, expected_half_widths, trend, page.shares), library, page


def assert_same_numbers(page, library):
    """Differences are in predicted standard deviations: where zero lies has no meaning."""
    expected = np.array(page.predictions)
    assert (np.abs(library.predictions - expected) / expected[:, 1:]).max() < TOLERANCE
    np.testing.assert_allclose(library.half_widths, page.half_widths, rtol=TOLERANCE)
    np.testing.assert_allclose(library.trend, page.trend, rtol=TOLERANCE)


def test_numbers_that_change_until_the_challenger_has_replaced_the_incumbent():
    X, y = number_stream(800, change=210)  # the means are over the threshold when they first may raise the alarm
    X[:40, 1] = 0.0
    X[:20, 0] = 1.1
    expected, actual, page = page_and_library(GraphSettings(**SMALL), X, y)
    assert_same_numbers(expected, actual)
    assert page.sets[0].age == 800 - 233
    assert len(page.sets) == 1


def test_numbers_with_weights_missing_inputs_outliers_and_a_target_that_begins_constant():
    X, y = number_stream(750, change=300)
    weight = np.random.default_rng(2).choice([0.0, 0.3, 1.0, 2.5], size=750)
    y[:12] = 1024.0
    y[300:] += 600
    y[110::90] += 3000
    y[np.flatnonzero(weight)[65]] += 3000  # the first error that is capped
    X[np.random.default_rng(4).random(X.shape) < 0.05] = np.nan
    X[:30, 2] = np.nan
    X[100::40, 0] *= 50
    expected, actual, page = page_and_library(GraphSettings(**SMALL | {"warm_up": 71}), X, y, weight)
    assert_same_numbers(expected, actual)
    np.testing.assert_allclose(actual.shares, expected.shares, rtol=TOLERANCE)
    assert page.counted == np.count_nonzero(weight) - 32 > 500
    assert len(page.sets) == 2


def test_labels_that_change_until_the_challenger_has_replaced_the_incumbent():
    X, y = label_stream(520, change=270)
    settings = GraphSettings(task="classification", outputs=3, **SMALL)
    expected, actual, page = page_and_library(settings, X, y, trial=150)
    np.testing.assert_allclose(actual.predictions, expected.predictions, rtol=TOLERANCE)
    np.testing.assert_allclose(actual.trend, expected.trend, rtol=TOLERANCE)
    assert page.sets[0].age < 250
    assert len(page.sets) == 1


def test_a_rare_label_of_heavy_rows_makes_the_warm_up_longer():
    """One row in twenty has most of the weight: the rows count for about a tenth of their number."""
    X, y = label_stream(420, change=500)
    y = (y == 2) * (np.arange(420) % 4 == 0) * 1.0
    weight = np.where(y == 1, 20.0, 0.5)
    settings = GraphSettings(task="classification", outputs=2, **SMALL | {"warm_up": 30})
    expected, actual, _ = page_and_library(settings, X, y, weight)
    np.testing.assert_allclose(actual.predictions, expected.predictions, rtol=TOLERANCE)
    online = Online.make("graph-mkl", settings, d=3, seed=1)
    evaluated = []
    for row in zip(X, y, weight, strict=True):
        before = online.evaluations
        online.learn(*row)
        evaluated.append(online.evaluations - before)
    all_experts = evaluated[0]
    assert set(evaluated[:150]) == {all_experts}
    assert all_experts not in evaluated[-20:]


def wide_stream(rows, inputs=1030):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(rows, inputs)) * np.geomspace(0.1, 100, inputs)
    return X, X[:, ::7].sum(axis=1) / 100


def test_numbers_of_more_inputs_than_a_full_covariance_is_kept_for():
    X, y = wide_stream(70)
    settings = GraphSettings(kernels=[Gaussian(1.0)], n_features=6, evaluate="all", adapt=False)
    weight = np.random.default_rng(2).choice([0.3, 1.0, 2.5], size=70)
    expected, actual, _ = page_and_library(settings, X, y, weight)
    assert_same_numbers(expected, actual)


def test_labels_of_more_inputs_than_a_full_covariance_is_kept_for():
    X, y = wide_stream(70)
    settings = GraphSettings(task="classification", outputs=2, kernels=[Gaussian(1.0)], n_features=6, evaluate="all")
    expected, actual, _ = page_and_library(settings, X, (y > 0).astype(float))
    np.testing.assert_allclose(actual.predictions, expected.predictions, rtol=TOLERANCE)


def test_numbers_whose_target_is_constant_for_more_rows_than_refits():
    X, y = number_stream(620, change=0)
    y[:300] = 0.1  # whose mean rounds
    expected, actual, page = page_and_library(GraphSettings(**SMALL), X, y, trial=150)
    assert_same_numbers(expected, actual)
    assert page.sets[0].age < 620 - 300


def test_numbers_whose_scaling_is_spoiled_until_a_challenger_has_replaced_the_incumbent():
    X, y = number_stream(600, change=0)
    X[200:, 2] = np.where(np.random.default_rng(3).uniform(size=400) < 0.3, np.nan, X[200:, 2])
    y[3] = 1e12
    expected, actual, page = page_and_library(GraphSettings(**SMALL), X, y, trial=150)
    assert_same_numbers(expected, actual)
    assert page.sets[0].age == 600 - 384


def test_labels_with_an_input_that_is_scaled_by_its_first_change_alone():
    X, y = label_stream(620, change=620)
    X[:270, 0] = X[270, 0] - 0.05
    settings = GraphSettings(task="classification", outputs=3, **SMALL)
    expected, actual, page = page_and_library(settings, X, y, trial=150)
    np.testing.assert_allclose(actual.predictions, expected.predictions, rtol=TOLERANCE)
    assert page.sets[0].age == 620 - 384


def with_words(X, y, labels):
    """With five sparse inputs, of which two come late, and an input that is rare and always the same."""
    rng = np.random.default_rng(5)
    W = rng.choice([np.nan, 0.0, 1.0, 2.5], size=(len(X), 5), p=[0.6, 0.2, 0.15, 0.05])
    W[:300, 3:] = np.nan
    rare = np.where(rng.random(len(X)) < 0.3, 4.0, np.nan)
    effect = np.nan_to_num(W) @ [1.0, -2.0, 0.0, 3.0, 1.0] + np.nan_to_num(rare)
    return np.column_stack((X, rare, W)), (y + (effect > 2)) % 3 if labels else y + 20 * effect


def test_numbers_with_sparse_inputs():
    X, y = with_words(*number_stream(420, change=220), labels=False)
    weight = np.random.default_rng(2).choice([0.3, 1.0, 2.5], size=420)
    expected, actual, page = page_and_library(GraphSettings(**SMALL), X, y, weight, sparse=5)
    assert_same_numbers(expected, actual)
    assert page.sets[0].scaling.sparse.all()


def test_labels_with_sparse_inputs():
    X, y = with_words(*label_stream(400, change=250), labels=True)
    settings = GraphSettings(task="classification", outputs=3, **SMALL)
    expected, actual, page = page_and_library(settings, X, y, sparse=5)
    np.testing.assert_allclose(actual.predictions, expected.predictions, atol=TOLERANCE)
    assert page.sets[0].scaling.sparse.all()


def with_repeats(X, y):
    """Rows with copies, then some of them again in another order, then all with new ones; and weights."""
    rng = np.random.default_rng(0)
    copies = np.repeat(np.arange(120), rng.choice([1, 3], size=120))
    rows = np.concatenate([copies, rng.permutation(120), np.arange(len(X))])
    return X[rows], y[rows], rng.choice([0.0, 0.3, 1.0, 4.5], size=len(rows), p=[0.1, 0.2, 0.5, 0.2])


def test_numbers_with_copies_rows_that_are_shown_again_and_weights():
    X, y, weight = with_repeats(*number_stream(170, 170))
    page, library, learner = page_and_library(GraphSettings(**SMALL), X, y, weight)
    assert learner.sets[0].age < 250 < len(X)
    assert_same_numbers(page, library)


def test_labels_with_copies_rows_that_are_shown_again_and_weights():
    X, y, weight = with_repeats(*label_stream(170, 170))
    settings = GraphSettings(task="classification", outputs=3, **SMALL)
    page, library, learner = page_and_library(settings, X, y, weight)
    assert learner.sets[0].age < 250 < len(X)
    np.testing.assert_allclose(library.predictions, page.predictions, atol=TOLERANCE)


def test_sparse_inputs_of_copies_and_rows_that_are_shown_again():
    X, y, weight = with_repeats(*with_words(*number_stream(170, 170), labels=False))
    page, library, learner = page_and_library(GraphSettings(**SMALL), X, y, weight, sparse=5)
    assert learner.sets[0].age < 250 < len(X)
    assert_same_numbers(page, library)
    X, y, weight = with_repeats(*with_words(*label_stream(170, 170), labels=True))
    settings = GraphSettings(task="classification", outputs=3, **SMALL)
    page, library, learner = page_and_library(settings, X, y, weight, sparse=5)
    assert learner.sets[0].age < 250 < len(X)
    np.testing.assert_allclose(library.predictions, page.predictions, atol=TOLERANCE)


def test_memory_experts_have_the_length_scales_of_the_page():
    page = (Path(__file__).parents[2] / "docs" / "graph_mkl.md").read_text(encoding="utf-8")
    line = next(line for line in page.splitlines() if "length scales of the memory experts" in line)
    assert GraphSettings().widths == tuple(float(width) for width in re.findall(r"0\.\d+", line))
