"""GraphMKL's scaling: raw units, refits by the first rows, and columns that are constant or missing at first."""

import numpy as np
import pytest
from streams import graph_settings as small
from streams import raw_and_turning as stream

import omkl
from omkl.algorithms.graph_mkl import scaling
from omkl.algorithms.graph_mkl.constants import CLIP, FIRST_ROWS
from omkl.algorithms.graph_mkl.scaling import Scaling


def test_rows_are_scaled_by_the_mean_and_deviation_of_those_that_are_there():
    X = np.random.default_rng(0).normal(size=(200, 3)) * [1e-3, 1.0, 1e3] + 7
    X[:150, 1] = np.nan
    start = Scaling(np.zeros(3), np.zeros(3), np.zeros(1), 0.0)
    s = scaling.estimated("regression", start, X, np.arange(200.0)[:, None])
    np.testing.assert_allclose(s.mean, np.nanmean(X, axis=0))
    np.testing.assert_allclose(s.scale, 1 / np.nanstd(X, axis=0))
    assert s.shift[0] == pytest.approx(99.5)
    assert s.unit == pytest.approx(np.std(np.arange(200)))
    rows = np.array([scaling.scaled(s, x) for x in X])
    assert np.square(rows).sum(axis=1).mean() == pytest.approx(1, abs=0.4)
    assert not rows[:150, 1].any()


def test_inputs_far_out_are_clipped():
    s = Scaling(np.zeros(4), np.ones(4), np.zeros(1), 1.0)
    np.testing.assert_allclose(scaling.scaled(s, np.array([1e9, -1e9, 1.0, np.nan])), [CLIP / 2, -CLIP / 2, 0.5, 0])


@pytest.mark.parametrize(("deviation", "mean"), [(0.0, 0.0), (1e-160, 0.0), (1e-6, 1e9)])
def test_a_deviation_that_is_rounding_counts_as_none(deviation, mean):
    assert scaling.inverse(np.array([deviation]), np.array([mean]))[0] == 0
    assert scaling.inverse(np.array([1e-3]), np.array([1.0]))[0] == pytest.approx(1e3)


def test_units_do_not_matter():
    X, y = stream(700)
    plain = omkl.GraphMKLRegressor(random_state=0).predict_then_learn(X, y)
    moved = omkl.GraphMKLRegressor(random_state=0).predict_then_learn(X * 1e6 + 1e7, y * 1e-9 + 3e-9)
    np.testing.assert_allclose((moved[1:] - 3e-9) * 1e9, plain[1:], rtol=1e-4, atol=1e-4 * np.std(y))


def test_a_column_that_is_constant_for_long_is_used_once_it_varies():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 2))
    X[:1000, 1] = 4.0
    y = X[:, 0] + 5 * (X[:, 1] - 4.0)
    predictions = omkl.GraphMKLRegressor(random_state=0, adapt=False).predict_then_learn(X, y)
    assert np.mean((predictions - y)[2000:] ** 2) < 0.2 * np.var(y[2000:])


def test_a_column_that_begins_to_vary_between_two_refits_is_used_before_the_next():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(250, 2))
    X[:70, 1] = 4.0
    y = X[:, 0] + 5 * (X[:, 1] - 4.0)
    predictions = omkl.GraphMKLRegressor(random_state=0).predict_then_learn(X, y)
    assert np.mean((predictions - y)[150:] ** 2) < 0.1 * np.var(y[150:])


@pytest.mark.parametrize("backend", ["engine", "numpy"])
def test_a_target_that_jumps_by_all_the_powers_of_ten_leaves_a_state_of_numbers(backend):
    X, _ = stream(120)
    y = 1e-90 * np.sin(X[:, 0])
    y[40:44] *= 1e180
    online = omkl.Online.make("graph-mkl", small(), d=3, seed=0, backend=backend)
    assert np.isfinite(online.run(X, y)).all()
    assert all(np.isfinite(leaf).all() for leaf in omkl.arrays.leaves(online.state).values())


def test_the_last_refit_scales_by_all_first_rows():
    X, y = stream(FIRST_ROWS + 10)
    online = omkl.Online.make("graph-mkl", small(), d=3, seed=0)
    online.run(X, y)
    now = online.state.sets[0].scaling
    np.testing.assert_allclose(now.mean, X[:FIRST_ROWS].mean(axis=0))
    np.testing.assert_allclose(now.scale, 1 / X[:FIRST_ROWS].std(axis=0))
    np.testing.assert_allclose(now.unit, y[:FIRST_ROWS].std())
