"""GraphMKL's prediction intervals."""

import numpy as np
import pytest
from scipy import stats
from streams import raw_and_turning as stream

import omkl
from omkl.algorithms.graph_mkl import intervals
from omkl.algorithms.graph_mkl.constants import LEVELS, START_HALF_WIDTHS


def test_half_widths_start_at_those_of_a_normal_distribution():
    normal = stats.norm.ppf((1 + np.array(LEVELS)) / 2)
    np.testing.assert_allclose(START_HALF_WIDTHS, normal, atol=5e-3)


@pytest.mark.parametrize("scale", [0.2, 5.0])
def test_half_widths_hold_their_coverage_whatever_the_predicted_deviation(scale):
    y = stats.laplace(scale=scale).rvs(20_000, random_state=0)
    widths, missed = intervals.init(), np.zeros(len(LEVELS))
    for value in y:
        missed += abs(value) > widths
        widths = intervals.update(widths, np.array([0.0, 1.0]), value)
    np.testing.assert_allclose(missed / len(y), 1 - np.array(LEVELS), atol=0.01)


def test_half_widths_are_interpolated_between_the_tracked_levels():
    widths = np.array(START_HALF_WIDTHS)
    for level, width in zip(LEVELS, widths, strict=True):
        assert intervals.half_width(widths, level) == pytest.approx(width)
    assert widths[3] < intervals.half_width(widths, 0.85) < widths[4]
    assert intervals.half_width(widths, 0.3) == pytest.approx(widths[0])
    assert intervals.half_width(widths, 0.999) == pytest.approx(widths[-1])


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


@pytest.mark.parametrize("coverage", [0, 1, 1.5])
def test_a_coverage_out_of_range_is_refused_before_anything_is_learned(coverage):
    X, y = stream(50)
    model = omkl.GraphMKLRegressor(random_state=0).fit(X, y)
    with pytest.raises(ValueError, match=f"coverage must be a number between 0 and 1, got {coverage}"):
        model.predict_interval_then_learn(X, y, coverage=coverage)
    assert model.n_samples_seen_ == 50
    with pytest.raises(ValueError, match=f"coverage must be a number between 0 and 1, got {coverage}"):
        model.predict_interval(X, coverage=coverage)
