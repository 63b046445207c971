"""Streaming regression and classification with scikit-learn's interface.

Run it: python examples/scikit_learn_door.py
"""

import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer

import omkl

# A stream in raw units: a temperature, a pressure, and a yield that bends with both.
rng = np.random.default_rng(0)
X = np.column_stack((rng.uniform(15, 35, 5000), rng.uniform(980, 1040, 5000)))
y = 300 + 40 * np.sin(X[:, 0] / 4) + 0.5 * (X[:, 1] - 1010) + rng.normal(0, 3, 5000)

# Predict, see the answer, learn: chunk by chunk, every prediction made before its row was learned.
model = omkl.SFGMKLRegressor(random_state=0)
for start in range(0, len(X), 500):
    rows = slice(start, start + 500)
    said = model.predict_then_learn(X[rows], y[rows])
    explained = 1 - np.mean((said - y[rows]) ** 2) / np.var(y[rows])
    print(f"rows {start:4d} to {start + 500:4d}: {explained:6.1%} of the variance explained")

# Which kernels did it come to trust?
best = np.argsort(model.kernel_weights_)[::-1][:3]
for i in best:
    print(f"  {model.kernels_[i]}: weight {model.kernel_weights_[i]:.2f}")

# Stop today, go on tomorrow.
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "yield.omkl"
    omkl.save(model, path)
    tomorrow = omkl.load(path)
assert np.array_equal(tomorrow.predict(X[:5]), model.predict(X[:5]))

# Labels work the same way.
X, y = load_breast_cancer(return_X_y=True)
classifier = omkl.RakerClassifier(random_state=0)
said = classifier.predict_then_learn(X, y, classes=[0, 1])
print(f"breast cancer, one pass: {np.mean(said == y):.1%} right, each row before it was learned")
