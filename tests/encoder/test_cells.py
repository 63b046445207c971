"""Cells of a table as numbers, timestamps and text, one by one."""

import datetime

import numpy as np
import pyarrow as pa
import pytest

from omkl.encoder.cells import calendar_features, commas, numbers, timestamps
from omkl.stream.targets import labels

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


# Numbers


@pytest.mark.parametrize(
    ("cells", "meaning"),
    [
        (["1,200", "3,400"], "thousands"),
        (["1,2", "3,45"], "decimal"),
        (["1,200", "0,5"], "decimal"),  # both can be decimal points
        (["1,200,300", "0,5"], "thousands"),  # no meaning fits both: the first decides
        (["0,5", "1,200,300"], "decimal"),
        (["1,200"] * 1000 + ["0,5"], "thousands"),  # the first thousand decide
        (["1,200"] * 999 + ["0,5"], "decimal"),
        (["red, blue", "7"], None),
        (["0,200"], "decimal"),  # a number begins with no zero before its thousands
        (["-1,200.5", "+12,345"], "thousands"),
        (["1,20,000"], None),
    ],
)
def test_what_commas_mean_follows_from_the_cells_that_have_them(cells: list[str], meaning: str | None):
    assert commas(pa.array(cells)) == meaning


@pytest.mark.parametrize(
    ("value", "text"),
    [(3.0, "3"), (-0.0, "0"), (2.5, "2.5"), (1e300, "1e+300"), (2.0**62, str(2**62)),
     (2.0**63, "9.223372036854776e+18"), (float("nan"), None), (None, None)],
)  # fmt: skip
def test_a_label_that_is_a_whole_number_has_no_decimal_point(value: float | None, text: str | None):
    assert labels(pa.array([value], pa.float64())) == [text]


@pytest.mark.parametrize("cell", ["", " ", "NaN", "nan", "NULL", "n/a", "+nan"])
def test_words_for_nothing_are_no_labels(cell: str):
    assert labels(pa.array([cell, " yes "])) == [None, "yes"]


def test_the_first_cell_that_is_no_number_is_named_and_shortened():
    long = "x" * 41
    assert numbers(pa.array(["1", None, "x" * 40, "y"]))[1] == "x" * 40
    assert numbers(pa.array(["1", None, long, "y"]))[1] == "x" * 37 + "..."
    assert numbers(pa.array(["1", None, "", "2"]))[1] in (None, "")


# Timestamps


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("1970-01-01", 0.0),
        ("1969-12-31", -1.0),
        ("2000-03-01T06:00:00Z", 11017.25),
        ("2000-03-01 06:00:00+06:00", 11017.0),
        ("1970-01-01T00:00:00.000001", 1 / 86_400_000_000),
        ("2000-13-01", np.nan),
        ("20000301", np.nan),  # a number
    ],
)
def test_a_timestamp_is_its_day_since_1970_in_utc(text: str, day: float):
    values, invalid = timestamps(pa.array([text, "1970-01-03"]))
    assert values[0] == pytest.approx(day, abs=1e-15, nan_ok=True)
    assert values[1] == 2
    assert invalid == (text if np.isnan(day) else None)


def test_with_a_format_of_dates_a_number_stays_a_number():
    values, _ = timestamps(pa.array(["03.1970", "1.5", "1970-01-02"]), "%m.%Y")
    np.testing.assert_array_equal(values, [np.nan, np.nan, 1.0])
    values, _ = timestamps(pa.array(["2/3/1970", "1,200"]), "%d/%m/%Y")
    np.testing.assert_array_equal(values, [60.0, np.nan])
