"""The library computes what docs/graph_mkl.md states: compared with an implementation written from that page alone."""

import numpy as np
from graph_mkl_from_the_page import GraphMKL

from omkl import GraphSettings, Online, algorithms

TOLERANCE = 1e-8  # rounding makes about 1e-11
SMALL = {"n_features": 8, "warm_up": 60, "evaluate": 6}


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


def random_weights(rows):
    return np.random.default_rng(2).choice([0.0, 0.3, 1.0, 2.5], size=rows)


def both(settings, X, y, weight=None, trial=500):
    """Predictions of the library and of the page, half widths of both, and the page's sets of experts per round."""
    problem = algorithms.problem("graph-mkl", settings, d=X.shape[1], seed=1)._replace(trial=trial)
    online = Online("graph-mkl", problem, rng=3)
    half_widths = np.empty((len(X), online.shape.extras))
    predictions = online.run_unchecked(X, y, weight, half_widths)  # `run` refuses missing inputs
    page, rng = GraphMKL(problem, settings), np.random.default_rng(3)
    uniforms = rng.random((1 + len(X), algorithms.get("graph-mkl").uniforms(problem)))[1:]
    expected, expected_half_widths, sets = [], [], []
    for x, target, w, r in zip(X, y, np.ones(len(X)) if weight is None else weight, uniforms, strict=True):
        expected_half_widths.append(page.half_widths)
        expected.append(page.round(x, target, w, r))
        sets.append(len(page.sets))
    return predictions, np.array(expected), half_widths, np.array(expected_half_widths), sets, page


def assert_same_numbers(predictions, expected, half_widths, expected_half_widths):
    """Differences in predicted standard deviations, which are relative to nothing else."""
    assert (np.abs(predictions - expected) / expected[:, 1:]).max() < TOLERANCE
    np.testing.assert_allclose(half_widths, expected_half_widths, rtol=TOLERANCE)


def test_numbers_that_change_until_the_challenger_has_replaced_the_incumbent():
    X, y = number_stream(860, change=270)
    X[:40, 1] = 0.0
    X[:20, 0] = 1.0
    *results, sets, page = both(GraphSettings(**SMALL), X, y)
    assert_same_numbers(*results)
    assert max(sets) == 2
    assert sets[-1] == 1
    assert page.sets[0].age < 600


def test_numbers_with_weights_missing_inputs_outliers_and_a_target_that_begins_constant():
    X, y = number_stream(450, change=300)
    y[:12] = 1024.0
    X[np.random.default_rng(4).random(X.shape) < 0.05] = np.nan
    X[:30, 2] = np.nan
    X[100::40, 0] *= 50
    y[110::50] += 3000
    *results, _, page = both(GraphSettings(**SMALL | {"warm_up": 71}), X, y, random_weights(450))
    assert_same_numbers(*results)
    assert page.sets[0].age < 400


def test_labels_that_change_until_the_challenger_has_replaced_the_incumbent():
    X, y = label_stream(520, change=270)
    settings = GraphSettings(task="classification", outputs=3, **SMALL)
    predictions, expected, _, _, sets, _ = both(settings, X, y, trial=150)
    np.testing.assert_allclose(predictions, expected, rtol=TOLERANCE)
    assert max(sets) == 2
    assert sets[-1] == 1
