"""Hourly electricity demand of a town: the stream of `omkl demo`."""

from typing import Any, NamedTuple

import numpy as np

from omkl.arrays import Vector
from omkl.datasets.frames import Columns, frame_and_series
from omkl.validation import require_whole

START = np.datetime64("2024-09-01T00")
HOLIDAYS = ("01-01", "05-01", "10-03", "11-01", "12-25", "12-26")  # month and day
SKIES = np.array(["clear", "cloudy", "rain"])
SENSOR_FAILS, REGIME_CHANGES = 0.35, 0.6  # shares of the rows after which they happen
OUTAGE = 120  # hours without a temperature
GAPS = 0.01  # share of the wind's and the sky's cells that are missing


class Demand(NamedTuple):
    """The stream, one row per hour, and what happens in it."""

    columns: Columns  # inputs by name; a missing number is NaN, a missing text None
    y: Vector  # demand in MW
    outage: tuple[int, int]  # the rows without a temperature: the first, and the first after them
    change: int  # the first row of the new regime


def hourly_demand(n_samples: int = 4000, random_state: int = 0) -> Demand:
    """The stream of `make_hourly_demand` as columns, with the rows at which something happens."""
    require_whole("n_samples", n_samples)
    rng = np.random.default_rng(random_state)
    t = np.arange(n_samples + 24)  # a day more, for the demand of the day before
    first, change = int(SENSOR_FAILS * n_samples), int(REGIME_CHANGES * n_samples)
    outage = (first, min(first + OUTAGE, change))
    time = START + t - 24
    hour, late = (t % 24).astype(np.float64), t - 24 >= change
    weekend = (time.astype("datetime64[D]").astype(int) + 3) % 7 > 4  # day 0 was a Thursday
    holiday = np.isin(time.astype("datetime64[D]").astype(str).astype("U10"), dates(time))

    weather, noise = np.zeros(len(t)), np.zeros(len(t))
    for k in range(1, len(t)):
        weather[k] = 0.99 * weather[k - 1] + rng.normal(scale=0.5)
        noise[k] = 0.7 * noise[k - 1] + rng.normal(scale=0.3)
    days = (time - time.astype("datetime64[Y]")) / np.timedelta64(1, "D")  # since the year began
    season = -10 * np.cos(2 * np.pi * days / 365)
    temperature = 12 + season + 4 * np.sin(2 * np.pi * (hour - 9) / 24) + weather
    wind = np.abs(rng.normal(4, 2, len(t)))
    sky = np.repeat(rng.integers(len(SKIES), size=len(t) // 6 + 1), 6)[: len(t)]  # it changes every six hours at most

    working = np.where(
        late, 6 * peak(hour, 13, 2) + 14 * peak(hour, 2, 2), 10 * peak(hour, 8, 2) + 12 * peak(hour, 19, 2)
    )
    daily = np.where(weekend | holiday, 8 * peak(hour, 13, 5), working)
    heating = np.maximum(15 - temperature, 0) * (1 + 0.05 * wind) * np.where(late, 1.5, 0.5)
    lights = np.where((hour > 6) & (hour < 20), np.array([0.0, 1.5, 3.0])[sky], 0.0)
    demand = 40 + daily + heating + lights + 0.8 * np.maximum(temperature - 22, 0) + noise

    known = temperature[24:].round(1)
    known[slice(*outage)] = np.nan
    seen = SKIES[sky[24:]].astype(object)
    columns = {
        "time": time[24:].astype("datetime64[s]"),
        "temperature": known,
        "wind": np.where(rng.random(n_samples) < GAPS, np.nan, wind[24:].round(1)),
        "sky": seen,
        "holiday": np.where(holiday[24:], "yes", "no").astype(object),
        "demand_hour_before": demand[23:-1].round(2),
        "demand_day_before": demand[:-24].round(2),
    }
    seen[rng.random(n_samples) < GAPS] = None
    return Demand(columns, demand[24:].round(2), outage, change)


def dates(time: Any) -> list[str]:
    """The holidays of all years in which there are rows."""
    years = np.unique(time.astype("datetime64[Y]").astype(str))
    return [f"{year}-{day}" for year in years for day in HOLIDAYS]


def peak(hour: Vector, at: int, width: float) -> Vector:
    """1 at an hour of the day, falling off to both sides."""
    distance = np.minimum((hour - at) % 24, (at - hour) % 24)
    return np.asarray(np.exp(-((distance / width) ** 2)))


def make_hourly_demand(n_samples: int = 4000, *, random_state: int = 0) -> tuple[Any, Any]:
    """Electricity demand of a town by hour, weather and calendar: the stream of `omkl demo`.

    Working days have a peak in the morning and one in the evening, weekends and holidays a wide one at noon. Below 15
    degrees demand grows with the cold and the wind, above 22 degrees with the heat, and by day with the clouds. The
    noise is autocorrelated. Three things go wrong, as they do in practice: after 35 % of the rows the thermometer
    fails for five days, one in a hundred cells of the wind and the sky is missing, and after 60 % of the rows a night
    tariff moves the peaks of working days while heat pumps triple the effect of the cold.

    Parameters
    ----------
    n_samples : int, default=4000
        Number of rows, one for each hour from 1 September 2024 on.
    random_state : int, default=0
        Seed of weather, noise and gaps.

    Returns
    -------
    X : pandas.DataFrame
        `time`, `temperature` in degrees Celsius, `wind` in m/s, `sky`, `holiday`, and the demand of the hour before
        and of the day before.
    y : pandas.Series
        The demand in MW.

    Examples
    --------
    >>> from omkl.datasets import make_hourly_demand
    >>> X, y = make_hourly_demand(1000)
    >>> X.shape, y.name, bool(X["temperature"][350:470].isna().all())
    ((1000, 7), 'demand', True)
    """
    stream = hourly_demand(n_samples, random_state)
    return frame_and_series(stream.columns, stream.y, "demand")
