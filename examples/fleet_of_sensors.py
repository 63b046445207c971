"""One model per sensor for many sensors on one machine, with one call per batch.

Usage: python examples/fleet_of_sensors.py
"""

import tempfile
from pathlib import Path

import numpy as np
import polars as pl

import omkl
from omkl.fleet import Fleet

# Readings of 200 sensors arrive interleaved; the load is a different function of the inputs for every sensor.
rng = np.random.default_rng(0)


def readings(rows):
    sensor = rng.integers(200, size=rows)
    hour, wind = rng.uniform(0, 24, rows), rng.gamma(2.0, 3.0, rows)
    load = 100 + sensor + 30 * np.sin((hour + sensor % 24) / 4) - 2 * wind + rng.normal(size=rows)
    return pl.DataFrame({"sensor": [f"sensor {k}" for k in sensor], "hour": hour, "wind": wind, "load": load})


fleet = Fleet(omkl.SFGMKLRegressor(), seed=0)
for minute in range(6):
    frame = readings(20_000)
    y_pred = fleet.learn_many(frame, key="sensor", target="load")  # each row is predicted before it is learned
    error = np.sqrt(np.mean((y_pred - frame["load"].to_numpy()) ** 2))
    print(f"minute {minute}: {len(fleet)} sensors, RMSE {error:5.1f}, standard deviation {frame['load'].std():.1f}")
print(f"{fleet.nbytes / len(fleet):,.0f} bytes per sensor")

# An invalid row raises an error that names the row and its key, and no row of the batch is learned.
broken = readings(3).with_columns(wind=pl.Series([1.0, float("nan"), 2.0]))
try:
    fleet.learn_many(broken, key="sensor", target="load")
except ValueError as error:
    print(error)

# fleet[key] is an ordinary estimator.
model = fleet["sensor 17"]
print(f"sensor 17 has learned {model.n_samples_seen_} readings; at six o'clock without wind it predicts", end=" ")
print(model.predict(pl.DataFrame({"hour": [6.0], "wind": [0.0]})).round(1)[0])

# Save and load: the whole fleet is one file.
with tempfile.TemporaryDirectory() as folder:
    omkl.save(fleet, Path(folder) / "fleet.omkl")
    loaded = omkl.load(Path(folder) / "fleet.omkl")
frame = readings(1000)
assert (loaded.predict_many(frame, key="sensor") == fleet.predict_many(frame, key="sensor")).all()
