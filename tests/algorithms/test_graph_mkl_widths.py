"""GraphMKL's intervals have the width of the noise. That they cover is not enough: those of any predictor would."""

import numpy as np
import pytest
from scipy import stats

import omkl
from omkl.algorithms.graph_mkl.constants import LEVELS
from omkl.algorithms.graph_mkl.intervals import half_width

NOISE = 0.5


def linear_stream(rows=3000):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, 2)) * 3 + 20
    return X, 2 * X[:, 0] - X[:, 1] + NOISE * rng.standard_normal(rows)


@pytest.mark.parametrize("coverage", [0.5, 0.8, 0.9, 0.95])
def test_an_interval_is_about_as_wide_as_that_of_the_noise(coverage):
    X, y = linear_stream()
    out = omkl.GraphMKLRegressor(random_state=0).predict_interval_then_learn(X, y, coverage)[1000:]
    half = (out[:, 2] - out[:, 1]).mean() / 2
    assert half == pytest.approx(NOISE * stats.norm.ppf((1 + coverage) / 2), rel=0.2)
    assert np.mean((out[:, 0] - y[1000:]) ** 2) < 1.2 * NOISE**2


def test_the_standard_deviation_is_about_that_of_the_noise():
    X, y = linear_stream()
    model = omkl.GraphMKLRegressor(random_state=0).fit(X, y)
    _, deviation = model.predict(X[-300:], return_std=True)
    assert deviation.mean() == pytest.approx(NOISE, rel=0.25)


def test_an_interval_of_more_coverage_contains_that_of_less():
    X, y = linear_stream(600)
    model = omkl.GraphMKLRegressor(random_state=0).fit(X, y)
    levels = [0.5, 0.55, 0.6, 0.73, 0.8, 0.85, 0.9, 0.93, 0.95, 0.97, 0.99]
    widths = [np.diff(model.predict_interval(X[:1], level))[0, 0] for level in levels]
    assert (np.diff(widths) >= 0).all()
    assert widths[0] < widths[3] < widths[-1]


@pytest.mark.parametrize("place", [0.25, 0.5, 0.9])
def test_between_two_levels_the_logarithm_of_the_half_width_is_interpolated(place):
    """(G47)"""
    widths = np.cumsum(np.arange(1.0, len(LEVELS) + 1))
    for k in range(len(LEVELS) - 1):
        coverage = (1 - place) * LEVELS[k] + place * LEVELS[k + 1]
        wanted = widths[k] ** (1 - place) * widths[k + 1] ** place
        assert half_width(widths, coverage) == pytest.approx(wanted)
