"""A household's electricity, ten minutes ahead, with intervals: learned as it comes, some 144 readings at a time.

Uses the data set `energy` (Candanedo and others, 2017) where it is at hand (`omkl data list` says), and
otherwise a series that is made up to look like it.

Run it: python examples/energy.py
"""

import gzip

import numpy as np
from omkl_lab.data.sets import locate

import omkl

DAY = 144  # readings, one every ten minutes (the data set lacks those above 300 Wh, so its days are shorter)


def measured() -> tuple[np.ndarray, np.ndarray] | None:
    """Weather and rooms, and the appliances' consumption in Wh; None where the file is not at hand."""
    path = locate("energy")
    if path is None:
        return None
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt") as file:
        table = np.loadtxt(file, delimiter=",", skiprows=1)
    return table[:, :-1], 10 + 290 * table[:, -1]


def made_up(days: int = 60) -> tuple[np.ndarray, np.ndarray]:
    """Hour, weekend, outside and inside temperature; consumption with mornings, evenings, and a boiler's on and off."""
    rng = np.random.default_rng(0)
    t = np.arange(days * DAY)
    hour, weekend = t % DAY / 6, (t // DAY % 7 >= 5).astype(float)
    outside = 8 + 6 * np.sin(2 * np.pi * (hour - 9) / 24) + np.cumsum(rng.normal(0, 0.08, len(t)))
    inside = 20 + 0.1 * outside + rng.normal(0, 0.2, len(t))
    morning, evening = np.exp(-((hour - 7 - 2 * weekend) ** 2) / 2), np.exp(-((hour - 19) ** 2) / 6)
    boiler, on = np.zeros(len(t)), False
    for k in range(len(t)):  # it stays on or off for a while
        on = rng.random() < (0.85 if on else 0.02 + 0.1 * evening[k])
        boiler[k] = on
    heating = 6 * np.maximum(0, 12 - outside)
    load = 40 + 90 * morning + 120 * evening + heating + 100 * boiler + rng.gamma(2, 5, len(t))
    return np.column_stack((hour, weekend, outside, inside)), load


found = measured()
print("the data set energy" if found else "the data set energy is not at hand; a series made up to look like it")
X, y = found or made_up()

# What is known ten minutes before: the sensors then, and the last three readings of the meter.
known = np.column_stack((X[2:-1], y[2:-1], y[1:-2], y[:-3]))
target = y[3:]

# Day by day the model says what it expects, sees what came, and learns it.
model = omkl.GraphMKLRegressor(random_state=0)
days = [slice(start, start + DAY) for start in range(0, len(target), DAY)]
out = np.vstack([model.predict_interval_then_learn(known[day], target[day], coverage=0.9) for day in days])
said, low, high = out.T


def rmse(predictions: np.ndarray) -> float:
    """Over all but the first week."""
    return float(np.sqrt(np.mean((predictions - target)[7 * DAY :] ** 2)))


print(f"{len(target)} readings, {target.mean():.0f} Wh on average")
print(f"error, as RMSE: {rmse(said):.1f} Wh; the last reading again {rmse(y[2:-1]):.1f}, "
      f"the mean {rmse(np.full(len(target), target.mean())):.1f}")  # fmt: skip
inside = (low < target) & (target < high)
print(f"90 % intervals held {inside.mean():.1%} of the readings; in the worst of {len(days)} pieces "
      f"{min(inside[day].mean() for day in days):.0%}")  # fmt: skip

# When is it least sure? Mean width of the intervals by how much was used just before, after the first week.
width, last = (high - low)[7 * DAY :], y[2:-1][7 * DAY :]
for share in np.array_split(np.argsort(last), 4):
    w = width[share].mean()
    print(f"  after {last[share].min():3.0f} to {last[share].max():3.0f} Wh: {w:4.0f} Wh wide {'#' * round(w / 4)}")
