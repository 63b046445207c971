"""Learning one row at a time with the river API: pipelines, metrics, changing features, delayed labels.

Usage: python examples/river_api.py
"""

from river import compose, datasets, evaluate, metrics, preprocessing

from omkl.river import RakerRegressor, SFGMKLClassifier, SFGMKLRegressor

# The estimators take raw units, and the defaults need no tuning.
metric = evaluate.progressive_val_score(datasets.TrumpApproval(), RakerRegressor(seed=0), metrics.MAE())
print("TrumpApproval", metric)

# They can be combined with river's transformers; scale="none" turns the built-in scaling off.
model = compose.Pipeline(preprocessing.StandardScaler(), SFGMKLClassifier(seed=0, scale="none"))
print("Phishing", evaluate.progressive_val_score(datasets.Phishing(), model, metrics.ROCAUC()))

# Features may appear and disappear: the model grows by new ones, and missing values are replaced by the mean.
model = SFGMKLRegressor(seed=0)
for hour in range(200):
    x = {"outside": 10 + hour % 24}
    if hour >= 100:
        x["wind"] = (hour * 7) % 13  # a second sensor is installed
    model.learn_one(x, 3 * x["outside"] + x.get("wind", 0))
print(f"with both sensors {model.predict_one({'outside': 20, 'wind': 5}):.1f}, "
      f"with one {model.predict_one({'outside': 20}):.1f}")  # fmt: skip

# Delayed labels: predict with a key, and learn by that key when the label arrives.
for order in range(5):
    model.predict_one({"outside": 15, "wind": order}, key=f"order {order}")
model.learn_key("order 3", 48.0)
