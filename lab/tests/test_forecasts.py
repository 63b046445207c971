"""Forecasts of hourly series: all methods know what is known, and no more."""

import numpy as np
import pandas as pd
import pytest

from omkl_lab import forecasts
from omkl_lab.equations import ROOT
from omkl_lab.files import read_json


def test_the_committed_results_have_every_series_method_and_horizon():
    results = read_json(ROOT / forecasts.RESULTS)
    assert set(results) == set(forecasts.SERIES)
    for entry in results.values():
        assert set(entry["errors"]) == {str(horizon) for horizon in forecasts.HORIZONS}
        for errors in entry["errors"].values():
            assert set(errors) == {*forecasts.METHODS, forecasts.TOO_EARLY}
            assert 0.85 < errors["GraphMKL with lags"]["coverage"] < 0.95


@pytest.mark.parametrize("method", forecasts.METHODS)
@pytest.mark.parametrize("horizon", [1, 24])
def test_a_forecast_does_not_depend_on_what_is_not_known(method, horizon):
    rng = np.random.default_rng(0)
    y = 10 + np.sin(np.arange(420) * np.pi / 12) + 0.1 * rng.normal(size=420)
    ahead = pd.DataFrame({"hour": np.arange(420.0) % 24, "wind": rng.normal(size=420)})
    changed, wind = y.copy(), ahead.copy()
    changed[230] += 5
    wind.loc[230, "wind"] += 5
    before, after = (forecasts.METHODS[method](forecasts.Series("", *data, ["wind"]), horizon, 0)
                     for data in ((y, ahead), (changed, wind)))  # fmt: skip
    np.testing.assert_array_equal(before[: 230 + horizon], after[: 230 + horizon])
    assert not np.array_equal(before[230 + horizon :], after[230 + horizon :])
