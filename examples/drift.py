"""Concept drift: four learners on a stream whose target function changes half-way.

Usage: python examples/drift.py
"""

import numpy as np

import omkl

ROWS, CHANGE = 8000, 4000

# Five inputs; the function from inputs to target is replaced half-way. The noise has a standard deviation of 0.05.
rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (ROWS, 5))
before = np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2]
after = np.cos(3 * X[:, 1]) - X[:, 0] * X[:, 3]
y = np.where(np.arange(ROWS) < CHANGE, before, after) + 0.05 * rng.normal(size=ROWS)

learners = {
    "GraphMKL": omkl.GraphMKLRegressor(random_state=0),
    "GraphMKL, adapt=False": omkl.GraphMKLRegressor(random_state=0, adapt=False),
    "Raker": omkl.RakerRegressor(random_state=0),
    "Raker, constant rate": omkl.RakerRegressor(random_state=0, horizon=ROWS, learning_rate=0.3),
}

# Each row is predicted before it is learned. Root mean squared error in windows that start at these rows:
starts = [CHANGE - 500, CHANGE, CHANGE + 250, CHANGE + 500, CHANGE + 1000, CHANGE + 3000]
ends = [*starts[1:], ROWS]
print(f"{'rows after the change':24}" + "".join(f"{start - CHANGE:>8}" for start in starts))
for name, model in learners.items():
    errors = (model.predict_then_learn(X, y) - y) ** 2
    print(f"{name:24}" + "".join(f"{np.sqrt(errors[a:b].mean()):8.3f}" for a, b in zip(starts, ends, strict=True)))

print("GraphMKL starts a second set of experts when its error doubles, and keeps the better of the two sets.")
print("Raker's learning rate decreases with time, so that it adapts slowly; with a constant rate it adapts faster.")
