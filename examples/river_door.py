"""Streaming one row at a time with river: pipelines, metrics, features that come and go, late labels.

Run it: python examples/river_door.py
"""

from river import compose, datasets, evaluate, metrics, preprocessing

from omkl.river import RakerRegressor, SFGMKLClassifier, SFGMKLRegressor

# A drop-in regressor: raw units in, nothing to tune.
metric = evaluate.progressive_val_score(datasets.TrumpApproval(), RakerRegressor(seed=0), metrics.MAE())
print("TrumpApproval", metric)

# It composes with river's own parts.
model = compose.Pipeline(preprocessing.StandardScaler(), SFGMKLClassifier(seed=0, scale="none"))
print("Phishing", evaluate.progressive_val_score(datasets.Phishing(), model, metrics.ROCAUC()))

# Features may appear and vanish: a new one widens the model, a missing one counts as its mean.
model = SFGMKLRegressor(seed=0)
for hour in range(200):
    x = {"outside": 10 + hour % 24}
    if hour >= 100:
        x["wind"] = (hour * 7) % 13  # a second sensor is put up
    model.learn_one(x, 3 * x["outside"] + x.get("wind", 0))
print(f"with both sensors {model.predict_one({'outside': 20, 'wind': 5}):.1f}, "
      f"with one {model.predict_one({'outside': 20}):.1f}")  # fmt: skip

# Labels that come late are learned by key.
for order in range(5):
    model.predict_one({"outside": 15, "wind": order}, key=f"order {order}")
model.learn_key("order 3", 48.0)
