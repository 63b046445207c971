"""Kernel weights that a learner finds for a wiggly function, a smooth function, and their sum.

Usage: python examples/kernel_choice.py [picture.png]
"""

import sys
import tempfile
from pathlib import Path

import matplotlib as mpl
import numpy as np

import omkl

mpl.use("Agg")  # a file, no window
import matplotlib.pyplot as plt

path = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.gettempdir()) / "kernel_choice.png"

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (4000, 2))
functions = {
    "wiggly: sin(12 a)": np.sin(12 * X[:, 0]),
    "smooth: sin(a) + b": np.sin(X[:, 0]) + X[:, 1],
    "both: sin(12 a) + 4 b": np.sin(12 * X[:, 0]) + 4 * X[:, 1],
}

# Raker evaluates every kernel in every round, so that the weights of all 41 Gaussians can be compared.
figure, axes = plt.subplots(len(functions), 1, figsize=(8, 8), layout="constrained", sharex=True)
for ax, (name, values) in zip(axes, functions.items(), strict=True):
    y = values + 0.1 * rng.normal(size=len(X))
    model = omkl.RakerRegressor(random_state=0)
    errors = (model.predict_then_learn(X, y) - y) ** 2
    model.plot_weights(ax)
    ax.set(title=name)
    order = np.argsort(model.kernel_weights_)[::-1][:2]
    largest = ", ".join(
        f"{type(model.kernels_[i]).__name__} {model.kernels_[i].length_scale:.2f} ({model.kernel_weights_[i]:.0%})"
        for i in order
    )
    print(f"{name:28} {largest}; MSE {errors[-1000:].mean():.3f}, variance {y.var():.3f}")

figure.savefig(path)
print(f"figure written to {path}")
