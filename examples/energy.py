"""Electricity consumption of a household, predicted ten minutes ahead with prediction intervals.

Without an argument the series is synthetic. The argument may be the file of the data set `energy` (Candanedo and
others, 2017) that `omkl-lab data fetch energy` downloads.

Usage: python examples/energy.py [energy.csv]
"""

import gzip
import sys
from pathlib import Path

import numpy as np

import omkl

DAY = 144  # readings, one every ten minutes (the data set lacks those above 300 Wh, so its days are shorter)


def read(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Weather and indoor sensors, and the consumption of the appliances in Wh."""
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt") as file:
        table = np.loadtxt(file, delimiter=",", skiprows=1)
    return table[:, :-1], 10 + 290 * table[:, -1]  # the file has the consumption scaled to [0, 1]


def synthetic(days: int = 60) -> tuple[np.ndarray, np.ndarray]:
    """Hour, weekend, outdoor and indoor temperature; consumption with morning and evening peaks and a boiler."""
    rng = np.random.default_rng(0)
    t = np.arange(days * DAY)
    hour, weekend = t % DAY / 6, (t // DAY % 7 >= 5).astype(float)
    outside = 8 + 6 * np.sin(2 * np.pi * (hour - 9) / 24) + np.cumsum(rng.normal(0, 0.08, len(t)))
    inside = 20 + 0.1 * outside + rng.normal(0, 0.2, len(t))
    morning, evening = np.exp(-((hour - 7 - 2 * weekend) ** 2) / 2), np.exp(-((hour - 19) ** 2) / 6)
    boiler, on = np.zeros(len(t)), False
    for k in range(len(t)):  # the boiler tends to stay on, or off
        on = rng.random() < (0.85 if on else 0.02 + 0.1 * evening[k])
        boiler[k] = on
    heating = 6 * np.maximum(0, 12 - outside)
    load = 40 + 90 * morning + 120 * evening + heating + 100 * boiler + rng.gamma(2, 5, len(t))
    return np.column_stack((hour, weekend, outside, inside)), load


X, y = read(Path(sys.argv[1])) if len(sys.argv) > 1 else synthetic()

# Features known ten minutes ahead: the sensors' values, and the last three readings of the meter.
features = np.column_stack((X[2:-1], y[2:-1], y[1:-2], y[:-3]))
target = y[3:]

# Prequential evaluation, one day per call.
model = omkl.GraphMKLRegressor(random_state=0)
days = [slice(start, start + DAY) for start in range(0, len(target), DAY)]
out = np.vstack([model.predict_interval_then_learn(features[day], target[day], coverage=0.9) for day in days])
y_pred, low, high = out.T


def rmse(predictions: np.ndarray) -> float:
    """Root mean squared error after the first week."""
    return float(np.sqrt(np.mean((predictions - target)[7 * DAY :] ** 2)))


print(f"{len(target)} readings, {target.mean():.0f} Wh on average")
print(f"RMSE {rmse(y_pred):.1f} Wh; of the previous reading {rmse(y[2:-1]):.1f}, "
      f"of the mean {rmse(np.full(len(target), target.mean())):.1f}")  # fmt: skip
inside = (low < target) & (target < high)
print(f"90 % intervals contained {inside.mean():.1%} of the readings, and at least "
      f"{min(inside[day].mean() for day in days):.0%} of each of the {len(days)} chunks")  # fmt: skip

# Mean width of the intervals after the first week, by quarters of the previous reading.
width, previous = (high - low)[7 * DAY :], y[2:-1][7 * DAY :]
for quarter in np.array_split(np.argsort(previous), 4):
    w, least, most = width[quarter].mean(), previous[quarter].min(), previous[quarter].max()
    print(f"  after {least:3.0f} to {most:3.0f} Wh: {w:4.0f} Wh wide {'#' * round(w / 4)}")
