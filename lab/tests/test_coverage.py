"""Coverage of intervals on fresh rows."""

import numpy as np
import pytest

from omkl_lab import coverage, steadiness
from omkl_lab.equations import ROOT
from omkl_lab.files import read_json


def test_the_committed_results_have_every_stream_every_change_and_every_silence():
    results = read_json(ROOT / coverage.RESULTS)
    assert set(results["steady"]) == {*coverage.STEADY, *coverage.SETS.values()}
    assert set(results["change"]) == {*coverage.CHANGES, coverage.GRADUAL}
    assert set(results["silence"]) == set(coverage.SILENCES)
    for name in coverage.STEADY:
        line = results["steady"][name]
        assert line["deviation"][coverage.COVERAGES.index(0.9)] < max(0.02, line["fixed"])  # or the learner changes
    fixed, now = results["steadiness"]["fixed gain"], results["steadiness"]["as it is"]
    assert now["deviation"] < 0.02 < 0.04 < fixed["deviation"]
    assert now["rows"][0] <= fixed["rows"][0]


def test_coverage_and_score_on_fresh_rows_are_those_of_the_intervals():
    rng = np.random.default_rng(0)
    online = coverage.fresh_learner(10, 0)
    online.run_unchecked(*coverage.friedman(rng, 300))
    X, y = coverage.friedman(rng, 50)
    found, score, error = coverage.on_fresh_rows(online, X, y)
    half = coverage.half_width(online.extra, 0.8) * online.predict_rows(X)[:, 1]
    gap = np.abs(y - online.predict_rows(X)[:, 0])
    np.testing.assert_array_equal(error, gap)
    assert found[1] == pytest.approx(np.mean(gap <= half))
    assert score[1] == pytest.approx(np.mean(2 * half + 10 * np.clip(gap - half, 0, None)))


def test_coverage_is_back_where_it_stays_near():
    curve = np.full(len(coverage.MOMENTS_AFTER), 0.9)
    assert coverage.rows_until_back(curve) == 0
    curve[[0, 1, 5]] = 0.8, 0.99, 0.84
    assert coverage.rows_until_back(curve) == coverage.MOMENTS_AFTER[6]
    curve[-1] = 0.7
    assert coverage.rows_until_back(curve) is None


@pytest.mark.parametrize("name", coverage.SILENCES)
def test_a_silence_has_no_errors_to_learn_from_at_its_end(name):
    X, y = coverage.silence(name, 0)
    fit = np.linalg.lstsq(np.column_stack((np.ones(1000), X[-1000:])), y[-1000:], rcond=None)[0]
    np.testing.assert_allclose(fit[0] + X[-1000:] @ fit[1:], y[-1000:], rtol=1e-9)


def test_the_odds_of_a_change_matter_only_where_there_is_evidence_of_one():
    likely, unlikely = (steadiness.calibration(odds) for odds in ((1.0, 1.0), (1e9, 1e9)))
    assert likely(0.9) == unlikely(0.9)  # too small for a larger scale and too large for a smaller one
    assert likely(4.0) > unlikely(4.0)


def test_a_fixed_gain_widens_after_a_miss_and_narrows_after_none():
    after = steadiness.fixed_gain()
    start, inside = after(1.0), after(1.0)
    assert inside == pytest.approx(start * np.exp(-0.05 * 0.1))  # the variance stays 1
    assert after(10.0) > 1.5 * inside


def test_the_coverage_of_a_fixed_width_is_that_of_the_next_scale():
    found = steadiness.coverages(lambda: lambda error: 1.6449, np.array([1.0, 1.0, 2.0, 2.0]), 3)
    assert found.shape == (3, 4)
    np.testing.assert_allclose(found[0], [0.9, 0.5892, 0.5892, 0.5892], atol=1e-4)
