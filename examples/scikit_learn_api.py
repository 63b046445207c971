"""Regression and classification on a stream with the scikit-learn API.

Usage: python examples/scikit_learn_api.py
"""

import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer

import omkl

# A stream in raw units: the yield of a reactor is a nonlinear function of temperature and pressure, plus noise.
rng = np.random.default_rng(0)
X = np.column_stack((rng.uniform(15, 35, 5000), rng.uniform(980, 1040, 5000)))
y = 300 + 40 * np.sin(X[:, 0] / 4) + 0.5 * (X[:, 1] - 1010) + rng.normal(0, 3, 5000)

# Prequential evaluation in chunks: every row is predicted before it is learned.
model = omkl.SFGMKLRegressor(random_state=0)
for start in range(0, len(X), 500):
    rows = slice(start, start + 500)
    y_pred = model.predict_then_learn(X[rows], y[rows])
    explained = 1 - np.mean((y_pred - y[rows]) ** 2) / np.var(y[rows])
    print(f"rows {start:4d} to {start + 500:4d}: {explained:6.1%} of the variance explained")

# The kernels with the largest mixture weights.
best = np.argsort(model.kernel_weights_)[::-1][:3]
for i in best:
    print(f"  {model.kernels_[i]}: weight {model.kernel_weights_[i]:.2f}")

# Save and load: the loaded model predicts the same and can go on learning.
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "yield.omkl"
    omkl.save(model, path)
    loaded = omkl.load(path)
assert np.array_equal(loaded.predict(X[:5]), model.predict(X[:5]))

# Classification works the same way; all labels are named in the first call.
X, y = load_breast_cancer(return_X_y=True)
classifier = omkl.RakerClassifier(random_state=0)
y_pred = classifier.predict_then_learn(X, y, classes=[0, 1])
print(f"breast cancer, one pass: prequential accuracy {np.mean(y_pred == y):.1%}")
