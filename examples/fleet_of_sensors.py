"""A model for each of many sensors: one call per batch, all of them on one machine.

Run it: python examples/fleet_of_sensors.py
"""

import tempfile
from pathlib import Path

import numpy as np
import polars as pl

import omkl
from omkl.fleet import Fleet

# Readings of 200 sensors come mixed, as a queue delivers them; every sensor has a curve of its own.
rng = np.random.default_rng(0)


def readings(rows):
    who = rng.integers(200, size=rows)
    hour, wind = rng.uniform(0, 24, rows), rng.gamma(2.0, 3.0, rows)
    load = 100 + who + 30 * np.sin((hour + who % 24) / 4) - 2 * wind + rng.normal(size=rows)
    return pl.DataFrame({"sensor": [f"sensor {k}" for k in who], "hour": hour, "wind": wind, "load": load})


fleet = Fleet(omkl.SFGMKLRegressor(), seed=0)
for minute in range(6):
    frame = readings(20_000)
    said = fleet.learn_many(frame, key="sensor", target="load")  # each row predicted before it was learned
    error = np.sqrt(np.mean((said - frame["load"].to_numpy()) ** 2))
    print(f"minute {minute}: {len(fleet)} sensors, error {error:5.1f}, load varies by {frame['load'].std():.1f}")
print(f"{fleet.nbytes / len(fleet):,.0f} bytes per sensor")

# A row that cannot be learned is refused with its name, and nothing of its batch is learned.
broken = readings(3).with_columns(wind=pl.Series([1.0, float("nan"), 2.0]))
try:
    fleet.learn_many(broken, key="sensor", target="load")
except ValueError as error:
    print(error)

# Any sensor's model is an estimator like any other.
model = fleet["sensor 17"]
print(f"sensor 17 has seen {model.n_samples_seen_} readings; at six o'clock with no wind it says", end=" ")
print(model.predict(pl.DataFrame({"hour": [6.0], "wind": [0.0]})).round(1)[0])

# Stop today, go on tomorrow: the whole fleet is one file.
with tempfile.TemporaryDirectory() as folder:
    omkl.save(fleet, Path(folder) / "fleet.omkl")
    tomorrow = omkl.load(Path(folder) / "fleet.omkl")
frame = readings(1000)
assert (tomorrow.predict_many(frame, key="sensor") == fleet.predict_many(frame, key="sensor")).all()
