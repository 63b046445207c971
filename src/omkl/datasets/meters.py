"""Readings of many meters: a stream with a key, for a model per key."""

from typing import Any

import numpy as np

from omkl.datasets.frames import frame_and_series
from omkl.validation import require_whole


def make_meters(n_samples: int = 4000, *, n_meters: int = 20, random_state: int = 0) -> tuple[Any, Any]:
    """Heat consumption of buildings, each of which has a meter and habits of its own.

    All buildings need more heat when it is cold, each to its own degree, and each has a level and an hour of the day of
    its own at which it needs most.

    Parameters
    ----------
    n_samples : int, default=4000
        Number of rows; every row is a reading of one meter, drawn at random.
    n_meters : int, default=20
        Number of meters.
    random_state : int, default=0
        Seed of buildings, weather and noise.

    Returns
    -------
    X : pandas.DataFrame
        `meter`, the key; `hour`; and `temperature` in degrees Celsius.
    y : pandas.Series
        The consumption in kW. The noise has a standard deviation of 1.

    Examples
    --------
    >>> from omkl.datasets import make_meters
    >>> X, y = make_meters(500, n_meters=3)
    >>> sorted(X["meter"].unique())
    ['m0', 'm1', 'm2']
    """
    require_whole("n_samples", n_samples)
    require_whole("n_meters", n_meters)
    rng = np.random.default_rng(random_state)
    level, slope, favourite = rng.uniform(5, 30, n_meters), rng.uniform(0.2, 2, n_meters), rng.uniform(0, 24, n_meters)
    meter = rng.integers(n_meters, size=n_samples)
    hour, temperature = rng.integers(24, size=n_samples), rng.normal(8, 6, n_samples).round(1)
    daily = 5 * np.cos(2 * np.pi * (hour - favourite[meter]) / 24)
    y = level[meter] + slope[meter] * np.maximum(16 - temperature, 0) + daily + rng.normal(size=n_samples)
    columns = {"meter": np.char.add("m", meter.astype(str)).astype(object), "hour": hour, "temperature": temperature}
    return frame_and_series(columns, y, "heat")
