"""Cells of a table as numbers, timestamps and text, one by one."""

import datetime

import numpy as np
import pytest

from omkl.stream.cells import calendar_features

FIRST = datetime.date(1970, 1, 1)


def angle(parts: dict[str, np.ndarray], cycle: str) -> np.ndarray:
    """Where in the cycle, from 0 to 1."""
    return np.mod(np.arctan2(parts[f"{cycle} sin"], parts[f"{cycle} cos"]) / (2 * np.pi), 1)


def day_of(date: datetime.date) -> float:
    return float((date - FIRST).days)


def test_the_place_in_the_day_is_the_share_of_the_day_that_has_passed():
    days = 20_000 + np.array([0.0, 0.25, 0.5, 0.75])
    np.testing.assert_allclose(angle(calendar_features(days), "day"), [0, 0.25, 0.5, 0.75], atol=1e-9)


def test_the_place_in_the_week_counts_from_monday():
    dates = [datetime.date(2024, 2, 25) + datetime.timedelta(k) for k in range(14)]
    found = angle(calendar_features(np.array([day_of(date) for date in dates])), "week")
    np.testing.assert_allclose(found, [date.weekday() / 7 for date in dates], atol=1e-9)


@pytest.mark.parametrize(("month", "share"), [(1, 0.0), (4, 90 / 365), (7, 181 / 365), (10, 273 / 365)])
def test_the_place_in_the_year_is_within_a_day_of_the_calendar(month: int, share: float):
    days = np.array([day_of(datetime.date(year, month, 1)) for year in range(1970, 2100)])
    found = angle(calendar_features(days), "year")
    assert np.abs(np.mod(found - share + 0.5, 1) - 0.5).max() < 2 / 365


def test_four_hundred_years_are_whole_cycles():
    """146,097 days: 400 years of the calendar and 20,871 weeks."""
    days = np.array([10.3, 10.3 + 146_097])
    parts = calendar_features(days)
    for name, values in parts.items():
        if name:
            assert values[0] == pytest.approx(values[1], abs=1e-9), name
    np.testing.assert_array_equal(parts[""], days)
