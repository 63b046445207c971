"""GraphMKL beside river's own regressors, in river's own test: error and time, row by row.

Run it: python examples/beside_river.py
"""

import itertools
import time

from river import datasets, evaluate, forest, linear_model, metrics, neighbors, preprocessing, tree
from river.datasets import synth

from omkl.river import GraphMKLRegressor

STREAMS = {
    "TrumpApproval": lambda: datasets.TrumpApproval(),
    "Friedman with a change": lambda: itertools.islice(synth.FriedmanDrift("gra", position=(800, 1600), seed=1), 2000),
}

# river's learners stand behind a scaler, as they should; GraphMKL scales for itself.
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

print("Defaults everywhere, one seed each; docs/peers.md compares on twenty streams, and says where GraphMKL loses.")
