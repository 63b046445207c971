"""GraphMKL's prediction intervals."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from streams import raw_and_turning as stream

import omkl
from omkl.algorithms.graph_mkl import intervals
from omkl.algorithms.graph_mkl.constants import (
    HALF_WIDTH_RANGE,
    LEVELS,
    MIN_SCALE,
    SCALE_OF_MEAN,
    START_HALF_WIDTHS,
)
from omkl.algorithms.graph_mkl.intervals import Deviation
from omkl.algorithms.graph_mkl.upgrade import of_all_levels

AS_EVERY_ROW = Deviation(mixed=1.0, noise=1.0)


def calibrated(errors, start=None, deviation=AS_EVERY_ROW):
    calibration = start or intervals.init()
    for error in errors:
        calibration = intervals.update(calibration, deviation, float(error))
    return calibration


def half_widths_of(calibration):
    """In the units of the errors."""
    return intervals.reported(calibration, AS_EVERY_ROW) * calibration.half_widths


# The calibration


def test_half_widths_start_at_those_of_a_normal_distribution():
    normal = stats.norm.ppf((1 + np.array(LEVELS)) / 2)
    np.testing.assert_allclose(START_HALF_WIDTHS, normal, atol=5e-3)


@pytest.mark.parametrize("scale", [0.2, 5.0])
def test_half_widths_hold_their_coverage_whatever_the_predicted_deviation(scale):
    calibration, missed = intervals.init(), np.zeros(len(LEVELS))
    errors = stats.laplace(scale=scale).rvs(20_000, random_state=0)
    for error in errors:
        missed += abs(error) > half_widths_of(calibration)
        calibration = intervals.update(calibration, AS_EVERY_ROW, error)
    np.testing.assert_allclose(missed / len(errors), 1 - np.array(LEVELS), atol=0.01)


@given(st.lists(st.one_of(st.sampled_from([0.0, 1.0, -1e-200, 1e90, 1e-20]), st.floats(-1e90, 1e90)), max_size=60))
def test_half_widths_never_cross_and_keep_their_range_whatever_the_errors(errors):
    start, calibration = np.array(START_HALF_WIDTHS), intervals.init()
    for error in errors * 5:
        calibration = intervals.update(calibration, AS_EVERY_ROW, error)
        assert (np.diff(calibration.half_widths) >= 0).all()
        assert (np.abs(np.log(calibration.half_widths / start)) <= np.log(HALF_WIDTH_RANGE) + 1e-9).all()
        intervals.check(calibration)


def test_errors_of_one_size_would_make_half_widths_cross():
    """All levels have the same quantile then, around which trackers of their own would wander past each other."""
    calibration = intervals.init()
    for _ in range(3000):
        calibration = intervals.update(calibration, AS_EVERY_ROW, 1.0)
        assert (np.diff(calibration.half_widths) >= 0).all()
    assert half_widths_of(calibration)[2:7] == pytest.approx(np.ones(5), rel=0.3)


def test_the_reported_deviation_does_not_follow_the_restless_noise_of_the_experts():
    rng = np.random.default_rng(0)
    errors, restless = rng.normal(size=1000), intervals.init()
    for error, noise in zip(errors, rng.uniform(0.5, 2, 1000), strict=True):
        restless = intervals.update(restless, Deviation(noise, noise), float(error))
    for noise in (0.5, 2.0):
        assert intervals.reported(restless, Deviation(noise, noise)) == intervals.current_scale(restless)
    assert restless.scale == pytest.approx(calibrated(errors).scale, rel=1e-3)


def test_the_reported_deviation_follows_the_spread_of_a_row():
    calibration = calibrated(np.random.default_rng(0).normal(size=1000))
    usual, unusual = (intervals.reported(calibration, Deviation(s, 0.1)) for s in (0.1, 0.3))
    assert unusual == pytest.approx(3 * usual)


def true_coverage(calibration, scale, level=0.9):
    return 2 * stats.norm.cdf(half_widths_of(calibration)[LEVELS.index(level)] / scale) - 1


@pytest.fixture(scope="module")
def settled():
    """Calibrations after 500 errors of a normal distribution."""
    return [calibrated(np.random.default_rng(seed).normal(size=500)) for seed in range(24)]


@pytest.mark.parametrize(("factor", "rows", "low", "high"), [
    (3.0, 8, 0.7, 0.9), (3.0, 24, 0.85, 0.95), (1 / 3, 32, 0.85, 0.935), (1 / 3, 48, 0.85, 0.95),
    (1.5, 16, 0.82, 0.9), (1.5, 24, 0.84, 0.95), (1 / 1.5, 24, 0.9, 0.968), (1 / 1.5, 48, 0.85, 0.95),
])  # fmt: skip
def test_coverage_is_back_soon_after_a_change_of_the_noise(settled, factor, rows, low, high):
    found = []
    for seed, before in enumerate(settled):
        errors = factor * np.random.default_rng(1000 + seed).normal(size=rows)
        found.append(true_coverage(calibrated(errors, before), factor))
    assert abs(np.mean([true_coverage(before, factor) for before in settled]) - 0.9) > 0.05  # it was not there at once
    assert low < np.mean(found) < high


def test_coverage_is_steady_where_nothing_changes(settled):
    found = []
    for seed, calibration in enumerate(settled[:6]):
        for errors in np.random.default_rng(2000 + seed).normal(size=(60, 20)):
            calibration = calibrated(errors, calibration)
            found.append(true_coverage(calibration, 1.0))
    assert np.mean(found) == pytest.approx(0.9, abs=0.01)
    assert np.std(found) < 0.02


def test_the_current_scale_moves_with_the_evidence_and_stays_between_the_old_and_the_new_one():
    before = calibrated(np.random.default_rng(0).normal(size=500))._replace(
        evidence=np.zeros(2), since=np.zeros(2), total=np.zeros(2)
    )
    assert intervals.current_scale(before) == before.scale
    for side, mean in ((0, 3.0), (1, 0.3)):
        seen = []
        for evidence in (0.5, 2.0, 4.0, 7.0):
            pair = np.eye(2)[side]
            doubted = before._replace(evidence=evidence * pair, since=20 * pair, total=20 * mean * before.scale * pair)
            seen.append(intervals.current_scale(doubted))
        order = [before.scale, *seen, SCALE_OF_MEAN * mean * before.scale]
        assert order == sorted(order, reverse=bool(side))


def test_more_evidence_is_asked_for_a_smaller_scale_than_for_a_larger_one():
    """Half the weight at a likelihood ratio of 26 and of 201."""
    before = calibrated(np.random.default_rng(0).normal(size=500))
    for side, ratio in ((0, 26.0), (1, 201.0)):
        pair, new = np.eye(2)[side], (2.0, 0.5)[side]
        total = ((96 + 4) * new - 4) / SCALE_OF_MEAN * before.scale  # with the four rows of the old scale: `new`
        doubted = before._replace(evidence=np.log(ratio) * pair, since=96 * pair, total=total * pair)
        assert intervals.current_scale(doubted) == pytest.approx(before.scale * np.sqrt(new))


@pytest.mark.parametrize("silent", [0.0, 1e-17])
def test_the_scale_comes_back_after_errors_of_nothing(silent):
    rng = np.random.default_rng(0)
    before = calibrated(np.append(rng.normal(size=300), np.full(3000, silent)))
    assert before.scale <= max(2 * silent, MIN_SCALE)
    after = calibrated(rng.normal(size=100), before)
    assert after.scale == pytest.approx(1, abs=0.3)


def test_half_widths_are_interpolated_between_the_tracked_levels():
    widths = np.array(START_HALF_WIDTHS)
    for level, width in zip(LEVELS, widths, strict=True):
        assert intervals.half_width(widths, level) == pytest.approx(width)
    between = intervals.half_width(widths, 0.85)
    assert between == pytest.approx(np.sqrt(widths[LEVELS.index(0.8)] * widths[LEVELS.index(0.9)]))
    assert intervals.half_width(widths, 0.05) == pytest.approx(widths[0] / 2)


def test_half_widths_of_older_files_get_all_levels_in_order():
    found = of_all_levels(np.array([2.0, 1.5, 1.6, 1e-9, 2.1, 1e9, 3.0]))
    assert len(found) == len(LEVELS)
    assert (np.diff(found) >= 0).all()
    intervals.check(intervals.init()._replace(half_widths=found))
    assert found[:3] == pytest.approx([2.0 * 0.13 / 0.67, 2.0 * 0.39 / 0.67, 2.0])


# Those of a learner


def linear_stream(rng, rows):
    X = rng.normal(size=(rows, 4))
    return X, X @ np.arange(4.0) + rng.normal(size=rows)


def test_intervals_of_a_model_as_it_stands_are_steady_on_a_stream_that_does_not_change():
    interval, one_sigma = [], []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X, y = linear_stream(rng, 3000)
        model = omkl.GraphMKLRegressor(random_state=seed).fit(X[:1000], y[:1000])
        for start in range(1000, 3000, 100):
            model.partial_fit(X[start : start + 100], y[start : start + 100])
            fresh, target = linear_stream(rng, 600)
            low, high = model.predict_interval(fresh, 0.9).T
            mean, deviation = model.predict(fresh, return_std=True)
            interval.append(np.mean((low <= target) & (target <= high)))
            one_sigma.append(np.mean(np.abs(target - mean) <= deviation))
    assert abs(np.mean(interval) - 0.9) < 0.02
    assert np.std(interval) < 0.027  # .012 of it are the 600 rows
    assert abs(np.mean(one_sigma) - 0.6827) < 0.03
    assert np.std(one_sigma) < 0.05


@pytest.mark.parametrize("silence", ["target", "target and inputs", "noise"])
def test_intervals_recover_after_a_stretch_without_errors(silence):
    covered = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X, y = linear_stream(rng, 5000)
        if silence == "noise":
            y[:4000] = X[:4000] @ np.arange(4.0)
        else:
            y[500:4000] = 3.7
        if silence == "target and inputs":
            X[500:4000] = 1.0
        out = omkl.GraphMKLRegressor(random_state=seed).predict_interval_then_learn(X, y, 0.9)
        inside = (out[:, 1] <= y) & (y <= out[:, 2])
        covered += [inside[4300:4650].mean(), inside[4650:].mean()]
    assert min(covered) > 0.8
    assert max(covered) < 0.97


def test_a_larger_coverage_has_a_larger_interval():
    X, y = stream(1200, change=600)
    model = omkl.GraphMKLRegressor(random_state=0).fit(X, y)
    widths = [np.ptp(model.predict_interval(X[:1], c)) for c in np.linspace(0.01, 0.99, 50)]
    assert (np.diff(widths) > 0).all()


@pytest.mark.parametrize("coverage", [0.5, 0.8, 0.9, 0.95])
def test_intervals_hold_their_coverage_on_a_stream_that_changes(coverage):
    X, y = stream(5000, change=2500)
    out = omkl.GraphMKLRegressor(random_state=0).predict_interval_then_learn(X, y, coverage)
    inside = (out[:, 1] <= y) & (y <= out[:, 2])
    assert abs(inside[100:].mean() - coverage) < 0.03
    assert abs(inside[2700:3200].mean() - coverage) < 0.07


def test_prequential_intervals_are_those_that_predict_interval_gives():
    X, y = stream(400)
    model = omkl.GraphMKLRegressor(random_state=0)
    model.predict_interval_then_learn(X[:300], y[:300])
    for k in range(300, 330):
        before = model.predict_interval(X[k : k + 1])[0]
        prequential = model.predict_interval_then_learn(X[k : k + 1], y[k : k + 1])[0]
        np.testing.assert_array_equal(prequential[1:], before)
    mean, std = model.predict(X, return_std=True)
    assert (std > 0).all()
    np.testing.assert_array_equal(mean, model.predict(X))


@pytest.mark.parametrize("coverage", [0.5, 0.8, 0.9, 0.93])
def test_intervals_are_the_same_in_chunks_and_row_by_row_even_where_the_target_is_constant(coverage):
    X, y = stream(3000, change=900)
    y[:20], y[1000:2200] = 1.0, 2.0
    at_once = omkl.GraphMKLRegressor(random_state=0).predict_interval_then_learn(X, y, coverage)
    one = omkl.GraphMKLRegressor(random_state=0)
    rows = [one.predict_interval_then_learn(X[k : k + 1], y[k : k + 1], coverage) for k in range(len(X))]
    np.testing.assert_array_equal(at_once, np.vstack(rows))


@pytest.mark.parametrize("backend", ["engine", "numpy"])
def test_a_run_reports_the_half_widths_before_each_row(backend):
    X, y = stream(120)
    settings = omkl.GraphSettings(n_features=5)
    online = omkl.Online.make("graph-mkl", settings, d=3, seed=0, backend=backend)
    one = omkl.Online.make("graph-mkl", settings, d=3, seed=0, backend=backend)
    widths = np.empty((120, online.shape.extras))
    online.run_unchecked(X, y, extra=widths)
    for x, target, row in zip(X, y, widths, strict=True):
        np.testing.assert_array_equal(one.extra, row)
        one.learn(x, target)
    np.testing.assert_array_equal(online.extra, one.extra)
    assert (widths[-1] != widths[0]).all()


def test_labels_have_no_half_widths():
    online = omkl.Online.make("graph-mkl", omkl.GraphSettings(task="classification", outputs=2), d=2)
    assert online.shape.extras == len(online.extra) == 0


@pytest.mark.parametrize("coverage", [0, -0.1, 0.991, 0.999, 1, 1.5, float("nan")])
def test_a_coverage_out_of_range_is_refused_before_anything_is_learned(coverage):
    X, y = stream(50)
    model = omkl.GraphMKLRegressor(random_state=0).fit(X, y)
    with pytest.raises(ValueError, match=rf"coverage must be a number above 0, at most 0.99 .*, got {coverage}"):
        model.predict_interval_then_learn(X, y, coverage=coverage)
    assert model.n_samples_seen_ == 50
    with pytest.raises(ValueError, match=rf"coverage must be a number above 0, at most 0.99 .*, got {coverage}"):
        model.predict_interval(X, coverage=coverage)
