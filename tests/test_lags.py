"""Lags against a slow oracle: the list of what arrived, when, and for which row."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omkl.lags import AheadIntervals, DeferredRow, DeferredRows, LagSettings, Past, waves


def oracle(y, arrival, inputs, t, feature, horizon):
    """The value of a lag of row t: that of row t - horizon - lag + 1, if it has come by the end of row t - horizon."""
    row = t - horizon - feature.lag + 1
    if row < 0 or (feature.column == 0 and not arrival[row] <= t - horizon):
        return np.nan
    return y[row] if feature.column == 0 else inputs[row]


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_lags_are_what_had_come_when_the_prediction_was_made(data):
    seed = data.draw(st.integers(0, 2**32 - 1))
    lags = data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=4))
    horizon = data.draw(st.integers(1, 7))
    column_lags = data.draw(st.lists(st.integers(0, 9), min_size=1, max_size=3))
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 60))
    y, inputs = rng.normal(size=n), rng.normal(size=n)
    # a target comes with its row, after some later row, or never
    delay = rng.choice([0, 0, 0, 1, 2, 5, 20, n], size=n)
    arrival = np.arange(n) + delay.astype(float)
    past = Past(LagSettings.make(lags, {"x": column_lags}, horizon))
    found, row = [], 0
    while row < n:
        stop = min(n, row + int(rng.integers(1, 8)))
        for late in [s for s in range(n) if delay[s] and row <= arrival[s] < stop - 1]:
            stop = min(stop, int(arrival[late]) + 1)
        given_targets = np.where(delay[row:stop] == 0, y[row:stop], np.nan)
        np.testing.assert_array_equal(past.next_row(), past_next(past))
        positions, lagged = past.follow(np.column_stack((given_targets, inputs[row:stop])))
        assert positions.tolist() == list(range(row, stop))
        found.append(lagged)
        for s in range(n):
            if delay[s] and arrival[s] == stop - 1:
                assert past.arrive(s, y[s]) == stop - 1
        row = stop
    found = np.vstack(found)
    features = past.settings.features
    expected = [[oracle(y, arrival, inputs, t, feature, horizon) for feature in features] for t in range(n)]
    np.testing.assert_array_equal(found, np.reshape(expected, found.shape))


def past_next(past):
    """The lags of the next row by going there and back."""
    arrays = {}
    body = past.encode(arrays)
    other = Past(past.settings)
    other.decode(body, arrays)
    return other.follow(np.zeros((1, 2)))[1][0]


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 5))
def test_each_series_has_a_past_of_its_own_however_rows_are_cut(seed, horizon):
    rng = np.random.default_rng(seed)
    n = 50
    names, values = rng.choice(["a", "b", "c"], size=n).tolist(), rng.normal(size=(n, 1))
    settings_ = LagSettings.make([1, 3], None, horizon)
    together = Past(settings_)
    cuts = [0, *sorted(rng.choice(n, size=4).tolist()), n]
    parts = [together.follow(values[i:j], names[i:j]) for i, j in pairwise(cuts)]
    positions, lagged = np.concatenate([p for p, _ in parts]), np.vstack([x for _, x in parts])
    for name in "abc":
        own = np.array([each == name for each in names])
        alone = Past(settings_).follow(values[own])
        assert positions[own].tolist() == alone[0].tolist()
        np.testing.assert_array_equal(lagged[own], alone[1])


def test_the_past_does_not_grow():
    past = Past(LagSettings.make([1, 24], ["x"], 24))
    for _ in range(5):
        past.follow(np.zeros((1000, 2)))
        assert past.values[""].shape == (47, 2)
        assert past.values[""].base is None


def test_rows_are_learned_when_they_are_due_and_once():
    deferred: DeferredRows[int] = DeferredRows()
    for k in range(5):
        deferred.add("", DeferredRow(k + 3, k, 0.0))
    assert [row.x for row in deferred.take("", 2)] == []
    assert [row.x for row in deferred.take("", 4)] == [0, 1]
    assert [row.x for row in deferred.take("", 4)] == []
    assert len(deferred) == 3


@settings(max_examples=50, deadline=None)
@given(st.lists(st.sampled_from("abc"), max_size=20))
def test_waves_have_each_row_once_and_each_series_in_its_order(names):
    groups = list(waves(names, len(names)))
    order = [row for group in groups for row in group]
    assert sorted(order) == list(range(len(names)))
    for name in "abc":
        rows = [row for row in order if names[row] == name]
        assert rows == sorted(rows)
    assert all(len({names[row] for row in group}) == len(group) for group in groups)


@pytest.mark.parametrize(
    ("lags", "columns", "horizon", "message"),
    [
        ([0], None, 1, "lags must be whole numbers from 1 to 10000"),
        ([-1], None, 1, "lags must be whole numbers from 1"),
        ([1.5], None, 1, "lags must be whole numbers"),
        ([True], None, 1, "lags must be whole numbers"),
        (24, None, 1, r"such as \[1, 2, 24\], got 24"),
        ("1,2", None, 1, "got '1,2'"),
        ([], None, 1, "lags must be at least one"),
        ([10_001], None, 1, "from 1 to 10000"),
        (range(1, 1002), None, 1, "at most 1000 features"),
        ([1], None, 0, "horizon must be a whole number from 1"),
        ([1], None, 2.0, "horizon must be a whole number"),
        ([1], "temp", 1, "columns must be a list"),
        ([1], {"temp": [-1]}, 1, "lags of 'temp' must be whole numbers from 0"),
        ([1], ["target"], 1, "other than 'target'"),
        ([], ["temp"], 1, "lags must be given"),
        ([9_000], [f"c{k}" for k in range(200)], 10_000, "a series stores at most 1000000 values"),
    ],
)
def test_what_lags_cannot_be_is_refused(lags, columns, horizon, message):
    with pytest.raises(ValueError, match=message):
        LagSettings.make(lags, columns, horizon)


@pytest.mark.parametrize("coverage", [0.5, 0.8, 0.9, 0.95])
def test_intervals_ahead_hold_their_coverage_whatever_the_learner_believes(coverage):
    rng = np.random.default_rng(0)
    ahead, inside = AheadIntervals(), []
    for _ in range(4000):
        scale, error = 0.2 * rng.uniform(0.5, 2), rng.standard_t(3)
        inside.append(abs(error) <= scale * ahead.half_width(coverage))
        ahead.update(DeferredRow(0, None, error, 0.0, scale))
    assert np.mean(inside[500:]) == pytest.approx(coverage, abs=0.02)
    widths = ahead.half_widths.copy()
    ahead.update(DeferredRow(0, None, 1.0, 0.0, 0.0))  # of a learner without intervals
    np.testing.assert_array_equal(ahead.half_widths, widths)
