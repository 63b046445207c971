"""Compare GraphMKL with river's regressors by prequential evaluation: error and time per row.

Usage: python examples/compare_with_river.py
"""

import itertools
import time

from river import datasets, evaluate, forest, linear_model, metrics, neighbors, preprocessing, tree
from river.datasets import synth

from omkl.river import GraphMKLRegressor

STREAMS = {
    "TrumpApproval": lambda: datasets.TrumpApproval(),
    "Friedman with drift": lambda: itertools.islice(synth.FriedmanDrift("gra", position=(800, 1600), seed=1), 2000),
}

# river's learners get standardised inputs, as its documentation recommends; GraphMKL standardises its inputs itself.
LEARNERS = {
    "linear": lambda: preprocessing.StandardScaler() | linear_model.LinearRegression(),
    "nearest neighbours": lambda: (
        preprocessing.StandardScaler() | neighbors.KNNRegressor(engine=neighbors.LazySearch())
    ),
    "Hoeffding tree": lambda: preprocessing.StandardScaler() | tree.HoeffdingAdaptiveTreeRegressor(seed=1),
    "adaptive random forest": lambda: preprocessing.StandardScaler() | forest.ARFRegressor(seed=1),
    "omkl GraphMKL": lambda: GraphMKLRegressor(seed=1),
}

for stream, rows in STREAMS.items():
    print(f"{stream:24}     MAE   microseconds per row")
    count = sum(1 for _ in rows())
    for name, make in LEARNERS.items():
        start = time.perf_counter()
        error = evaluate.progressive_val_score(rows(), make(), metrics.MAE()).get()
        print(f"  {name:24}{error:6.3f}   {1e6 * (time.perf_counter() - start) / count:8.0f}")

print("All learners with default parameters and one seed. docs/peers.md compares more learners on more streams.")
