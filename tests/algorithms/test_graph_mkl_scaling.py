"""GraphMKL's scaling: raw units, refits by the first rows, and columns that are constant or missing at first."""

import numpy as np
import pytest
from streams import graph_settings as small
from streams import raw_and_turning as stream

import omkl
from omkl.algorithms.graph_mkl import scaling
from omkl.algorithms.graph_mkl.constants import (
    BLOCK_CLIP,
    BLOCK_DIVISOR,
    BLOCK_ROWS,
    BLOCK_VALUES,
    CLIP,
    FIRST_CHANGE_MISFIT,
    FIRST_ROWS,
    MISFIT,
)
from omkl.algorithms.graph_mkl.scaling import FirstRows, Scaling
from omkl.algorithms.graph_mkl.upgrade import upgrade


def test_rows_are_scaled_by_the_mean_and_deviation_of_those_that_are_there():
    X = np.random.default_rng(0).normal(size=(200, 3)) * [1e-3, 1.0, 1e3] + 7
    X[:150, 1] = np.nan
    start = Scaling(np.zeros(3), np.zeros(3), np.zeros(1), 0.0)
    s = scaling.estimated("regression", start, X, np.arange(200.0)[:, None], np.ones(200))
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


# A target that is constant at first


@pytest.mark.parametrize("constant", [0.0, 0.1, 1e8 + 0.1, -1 / 3])
def test_the_rounding_of_the_mean_of_a_constant_target_is_no_unit(constant):
    start = Scaling(np.zeros(1), np.zeros(1), np.zeros(1), 0.0)
    Y = np.full((FIRST_ROWS, 1), constant)
    for rows in range(1, FIRST_ROWS + 1):
        assert scaling.estimated("regression", start, np.zeros((rows, 1)), Y[:rows], np.ones(rows)).unit == 0


@pytest.mark.parametrize("backend", ["engine", "numpy"])
@pytest.mark.parametrize("rows", [10, FIRST_ROWS + 3])
def test_the_first_change_of_a_constant_target_is_its_unit(backend, rows):
    X, _ = stream(rows + 1)
    y = np.full(rows + 1, 0.1)
    y[-1] = -6.9
    online = omkl.Online.make("graph-mkl", small(), d=3, seed=0, backend=backend)
    online.run(X[:-1], y[:-1])
    assert online.state.sets[0].scaling.unit == 0
    online.learn(X[-1], y[-1])
    now = online.state.sets[0]
    assert now.scaling.unit == pytest.approx(7.0)
    assert np.abs(now.coefficients.theta[:, 1]).max() < 1  # gradient experts have learned the row in the new unit


# Whether the scaling fits


def judged(column, task="regression", scale=1.0, center=0.0, constant=False):
    """Whether the scaling fits after these values of one input, or of the target where the task is `target`."""
    target = task == "target"
    first = FirstRows(
        np.random.default_rng(9).normal(size=(FIRST_ROWS, 1)), np.zeros((FIRST_ROWS, 1)), np.ones(FIRST_ROWS)
    )
    if constant:
        first.X[:] = center
    scale_ = Scaling(np.array([center]), np.array([scale]), np.zeros(1), 1.0)
    if target:
        scale_, task = Scaling(np.zeros(1), np.ones(1), np.array([center]), 1 / scale if scale else 0.0), "regression"
    block = scaling.fresh_block(1)
    for k, value in enumerate(column):
        x, y = (0.3 * (k % 2), value) if target else (value, 0.3 * (k % 2))
        block = scaling.update_block(block, task, scale_, np.array([x]), y)
    return scaling.fits(block, task, scale_, first)


def test_a_block_has_the_mean_and_deviation_of_its_clipped_values():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(150, 3)) * [1, 100, 1] + [1e6, 0, 0], rng.normal(size=150)
    X[rng.uniform(size=X.shape) < 0.2] = np.nan
    s = Scaling(np.array([1e6, 0, np.nan]), np.array([1.0, 1.0, 0.0]), np.array([7.0]), 0.01)
    block = scaling.fresh_block(3)
    for x, target in zip(X, y, strict=True):
        block = scaling.update_block(block, "regression", s, x, target)
    values = np.column_stack([y, X])
    values[:, 0] = np.clip(values[:, 0], 7 - BLOCK_CLIP * 0.01, 7 + BLOCK_CLIP * 0.01)
    values[:, 2] = np.clip(values[:, 2], -BLOCK_CLIP, BLOCK_CLIP)
    np.testing.assert_array_equal(block.rows, (~np.isnan(values)).sum(axis=0))
    np.testing.assert_allclose(block.mean, np.nanmean(values, axis=0), rtol=1e-12)
    np.testing.assert_allclose(np.sqrt(block.square / block.rows), np.nanstd(values, axis=0), rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("task", ["regression", "classification", "target"])
def test_a_scaling_fits_unless_it_is_far_off(task):
    values = np.random.default_rng(0).normal(size=BLOCK_ROWS)
    values /= values.std()
    assert judged(values, task)
    assert judged(values * 0.9 * MISFIT, task)
    assert not judged(values * 1.3 * MISFIT, task)
    assert judged(values / MISFIT * 1.1, task)
    assert not judged(values / MISFIT * 0.9, task)
    assert judged(values - values.mean() + 0.99 * MISFIT, task)
    moved = task != "target"  # an input may move on
    assert judged(values - values.mean() + 1.01 * MISFIT, task) == moved
    assert judged(np.full(BLOCK_ROWS, 3.0), task)  # constant now
    assert judged(np.full(BLOCK_ROWS, 2 * MISFIT), task) == moved
    assert judged(values * 1e-9, task, scale=0.0)  # not scaled yet


def test_a_few_values_or_one_outlier_do_not_show_a_misfit():
    values = np.random.default_rng(0).normal(size=BLOCK_ROWS)
    outlier = values.copy()
    outlier[7] = 1e12
    assert judged(outlier)
    few = np.full(BLOCK_ROWS, np.nan)
    few[: BLOCK_VALUES - 1] = 1e-6 * values[: BLOCK_VALUES - 1]
    assert judged(few)
    few[:BLOCK_VALUES] = 1e-6 * values[:BLOCK_VALUES]
    assert not judged(few)


@pytest.mark.parametrize("before", [1, 5, 128, 255])
@pytest.mark.parametrize("after", [0, 1, 5, 64, 127, 128])
def test_a_flag_that_becomes_rarer_or_more_frequent_fits(before, after):
    share = before / FIRST_ROWS
    flags = (np.arange(BLOCK_ROWS) < after).astype(float)
    assert judged(flags, scale=1 / np.sqrt(share * (1 - share)), center=share)


def test_an_input_scaled_by_its_first_change_is_judged_more_strictly():
    values = np.random.default_rng(0).normal(size=BLOCK_ROWS)
    values /= values.std()
    assert judged(values * 1.1 * FIRST_CHANGE_MISFIT)
    assert not judged(values * 1.1 * FIRST_CHANGE_MISFIT, constant=True)
    assert judged(values * 0.9 * FIRST_CHANGE_MISFIT, constant=True)
    assert judged((np.arange(BLOCK_ROWS) % 2).astype(float), constant=True)  # a flag


def test_blocks_are_a_share_of_all_rows():
    block = scaling.fresh_block(1)
    block.rows[0] = BLOCK_ROWS
    assert scaling.is_over(block, BLOCK_DIVISOR * BLOCK_ROWS)
    assert not scaling.is_over(block, BLOCK_DIVISOR * (BLOCK_ROWS + 1))
    block.rows[0] = BLOCK_ROWS - 1
    assert not scaling.is_over(block, FIRST_ROWS + BLOCK_ROWS - 1)


def test_a_misfit_starts_a_challenger_only_where_adapt_is_on():
    X, y = stream(FIRST_ROWS + BLOCK_ROWS)
    X[5, 1] = 1e7
    ages = []
    for adapt in (True, False):
        online = omkl.Online.make("graph-mkl", small(adapt=adapt), d=3, seed=0)
        online.run(X[:-1], y[:-1])
        assert online.state.sets[1].age == -1
        online.learn(X[-1], y[-1])
        ages.append(online.state.sets[1].age)
    assert ages == [0, -1]


def test_a_state_of_a_file_without_blocks_begins_one():
    X, y = stream(300)
    online = omkl.Online.make("graph-mkl", small(), d=3, seed=0)
    online.run(X, y)
    arrays = {name: leaf for name, leaf in omkl.arrays.leaves(online.state).items() if isinstance(leaf, np.ndarray)}
    assert arrays["sets.0.block.rows"][0] == 300 - FIRST_ROWS
    before = {name: array for name, array in arrays.items() if ".block." not in name}
    after, _ = upgrade(before, {})
    assert after.keys() == arrays.keys()
    np.testing.assert_array_equal(after["sets.0.block.rows"], np.zeros(4))
    now, _ = upgrade(arrays, {})
    assert now.keys() == arrays.keys()
    assert all(now[name] is arrays[name] for name in arrays)
