"""The generated streams: each is what its page says, and the same for the same seed."""

import importlib
import re

import numpy as np
import pandas as pd
import pytest

from omkl import GraphMKLRegressor, datasets
from omkl.datasets.demand import OUTAGE, hourly_demand

MAKERS = {name: getattr(datasets, name) for name in datasets.__all__}


@pytest.mark.parametrize("name", MAKERS)
def test_a_stream_depends_on_its_seed_alone(name: str):
    (X, y), (again, y_again), (other, _) = (MAKERS[name](300, random_state=seed) for seed in (1, 1, 2))
    assert len(X) == len(y) == 300
    assert pd.DataFrame(X).equals(pd.DataFrame(again))
    assert np.array_equal(y, y_again)
    assert not pd.DataFrame(X).equals(pd.DataFrame(other))


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("wrong", [0, -1, 2.5, "many"])
def test_a_number_of_rows_that_is_none_is_refused(name: str, wrong: object):
    with pytest.raises(ValueError, match="n_samples must be a whole number of at least 1"):
        MAKERS[name](wrong)


@pytest.mark.parametrize("name", [name for name in MAKERS if name in ("make_hourly_demand", "make_meters")])
def test_without_pandas_a_frame_is_refused_with_what_to_install(name: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(importlib.sys.modules, "pandas", None)
    with pytest.raises(ModuleNotFoundError, match="pip install pandas"):
        MAKERS[name](10)


# Hourly demand


def test_the_demand_of_the_hour_and_of_the_day_before_is_known_with_each_row():
    X, y = datasets.make_hourly_demand(400)
    np.testing.assert_array_equal(X["demand_hour_before"][1:], y[:-1])
    np.testing.assert_array_equal(X["demand_day_before"][24:], y[:-24])
    assert (X["time"].diff()[1:] == pd.Timedelta(hours=1)).all()


def test_the_thermometer_fails_once_and_other_cells_are_missing_here_and_there():
    X, _ = datasets.make_hourly_demand(4000)
    stream = hourly_demand(4000)
    missing = np.flatnonzero(X["temperature"].isna())
    assert missing.tolist() == list(range(*stream.outage))
    assert len(missing) == OUTAGE
    for column in ("wind", "sky"):
        assert 0.005 < X[column].isna().mean() < 0.015


def test_days_off_have_no_peak_in_the_morning():
    X, y = datasets.make_hourly_demand(4000)
    rise = y - X["demand_hour_before"]
    morning = X["time"].dt.hour.isin([6, 7, 8]) & (X.index < hourly_demand(4000).change)
    off = (X["time"].dt.day_of_week > 4) | (X["holiday"] == "yes")
    assert rise[morning & ~off].mean() > 2
    assert rise[morning & off].mean() < 1
    assert set(X["time"][X["holiday"] == "yes"].dt.strftime("%m-%d")) == {"10-03", "11-01", "12-25", "12-26", "01-01"}


def test_after_the_change_nights_of_working_days_have_a_peak():
    X, y = datasets.make_hourly_demand(4000)
    rise = y - X["demand_hour_before"]
    night = X["time"].dt.hour.isin([1, 2]) & (X["time"].dt.day_of_week < 5)
    late = X.index >= hourly_demand(4000).change
    assert rise[night & ~late].mean() < 0.5
    assert rise[night & late].mean() > 3


# The others


def friedman(a, b, c, d, e):
    return 10 * np.sin(np.pi * a * b) + 20 * (c - 0.5) ** 2 + 10 * d + 5 * e


def test_the_roles_of_friedmans_inputs_move_on_at_each_change():
    X, y = datasets.make_friedman_drift(1000, noise=0.0, changes=[0.5, 0.8], n_features=7)
    for rows, roles in [(slice(0, 500), [0, 1, 2, 3, 4]), (slice(500, 800), [3, 4, 5, 6, 0]),
                        (slice(800, 1000), [6, 0, 1, 2, 3])]:  # fmt: skip
        np.testing.assert_allclose(y[rows], friedman(*X[rows].T[roles]))
    still, same = datasets.make_friedman_drift(200, noise=0.0, changes=())
    np.testing.assert_allclose(same, friedman(*still.T[:5]))


@pytest.mark.parametrize("changes", [[1.5], [-0.1], ["half"]])
def test_changes_are_shares(changes: list[object]):
    with pytest.raises(ValueError, match="changes must be shares from 0 to 1"):
        datasets.make_friedman_drift(100, changes=changes)


def test_faults_are_as_rare_as_asked_for_and_can_be_told_apart_mostly():
    X, y = datasets.make_rare_faults(20_000, rate=0.05)
    fault = y == "fault"
    assert abs(fault.mean() - 0.05) < 0.01
    assert X[fault, 0].mean() - X[~fault, 0].mean() > 10
    with pytest.raises(ValueError, match=r"rate must be between 0 and 1, got 1\.5"):
        datasets.make_rare_faults(rate=1.5)


def test_every_meter_has_a_line_of_its_own():
    X, y = datasets.make_meters(6000, n_meters=3)
    assert set(X["meter"]) == {"m0", "m1", "m2"}
    errors = []
    for meter in ("m0", "m1", "m2"):
        own = X["meter"] == meter
        angle = 2 * np.pi * X["hour"][own] / 24
        terms = np.column_stack(
            (np.maximum(16 - X["temperature"][own], 0), np.cos(angle), np.sin(angle), np.ones(own.sum()))
        )
        rest = y[own] - terms @ np.linalg.lstsq(terms, y[own], rcond=None)[0]
        errors.append(float(rest.std()))
    np.testing.assert_allclose(errors, 1.0, atol=0.1)


def test_the_estimators_take_the_frames_as_they_are():
    X, y = datasets.make_hourly_demand(600)
    y_pred = GraphMKLRegressor(random_state=0).predict_then_learn(X, y)
    assert np.abs(y_pred - y)[168:].mean() < np.abs(X["demand_hour_before"] - y)[168:].mean()


def test_every_maker_says_what_it_takes_and_returns():
    for maker in MAKERS.values():
        text = maker.__doc__
        assert all(re.search(rf"^ *{part}$", text, re.MULTILINE) for part in ("Parameters", "Returns", "Examples"))
