"""`stats()`: how good predictions were that were made before their rows were learned."""

import numpy as np
import pytest

from omkl import GraphMKLClassifier, GraphMKLRegressor, SFGMKLClassifier, persist, river
from omkl.fleet import Fleet

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (400, 2))
Y = np.sin(3 * X[:, 0]) + 0.1 * RNG.standard_normal(400)
LABELS = np.where(X[:, 0] + X[:, 1] > 0, "up", "down")


def rmse(y_pred: np.ndarray, y: np.ndarray) -> float:
    return float(np.sqrt(np.mean((np.asarray(y_pred) - y) ** 2)))


def test_numbers() -> None:
    model = GraphMKLRegressor(random_state=0)
    first = model.predict_then_learn(X[:150], Y[:150])
    found = model.stats()
    assert (found["rows"], found["scored"]) == (150, 150)
    assert found["rmse"] == pytest.approx(rmse(first, Y[:150]))
    assert found["accuracy"] is found["coverage"] is None
    before = model.predict_then_learn(X[150:], Y[150:])
    assert model.stats()["rmse"] == pytest.approx(rmse(np.concatenate((first, before)), Y))


def test_labels() -> None:
    model = GraphMKLClassifier(random_state=0)
    model.partial_fit(X[:1], LABELS[:1], classes=["down", "up"])
    right = sum((model.predict_then_learn(X[k : k + 50], LABELS[k : k + 50]) == LABELS[k : k + 50]).sum()
                for k in range(1, 351, 50))  # fmt: skip
    found = model.stats()
    assert found["rmse"] is None
    assert round(found["accuracy"] * 351) in (right, right + 1)  # the first row: either label
    assert (found["rows"], found["scored"]) == (351, 351)


def test_intervals_are_counted() -> None:
    model = GraphMKLRegressor(random_state=0)
    ends = model.predict_interval_then_learn(X, Y, coverage=0.8)
    lower, upper = ends[..., -2], ends[..., -1]
    assert model.stats()["coverage"] == pytest.approx(float(((lower <= Y) & (upper >= Y)).mean()))


def test_fit_begins_anew_and_scores_nothing() -> None:
    model = GraphMKLRegressor(random_state=0).partial_fit(X, Y).fit(X[:100], Y[:100])
    assert model.stats()["scored"] == 0
    assert model.stats()["rmse"] is None
    assert model.stats()["rows"] > 0


def test_a_change_is_reported() -> None:
    rng = np.random.default_rng(1)
    inputs = rng.uniform(-1, 1, (6000, 2))
    y = np.where(np.arange(6000) < 3000, 3 * inputs[:, 0], -3 * inputs[:, 0] + 2) + 0.05 * rng.standard_normal(6000)
    model = GraphMKLRegressor(random_state=0)
    for start in range(0, 6000, 100):
        model.partial_fit(inputs[start : start + 100], y[start : start + 100])
    changes = model.stats()["changes"]
    assert changes, "the rule was turned round"
    assert all(3000 - 100 <= row < 6000 for row in changes)


def test_what_was_counted_is_not_part_of_a_file() -> None:
    model = GraphMKLRegressor(random_state=0).partial_fit(X, Y)
    content = persist.to_bytes(model)
    model.stats()
    assert persist.to_bytes(model) == content
    loaded = persist.from_bytes(content).stats()
    assert (loaded["rows"], loaded["scored"], loaded["rmse"]) == (400, 0, None)


def test_rows_of_river() -> None:
    model = river.GraphMKLRegressor(seed=0)
    errors = []
    for x, y in zip(X[:100].tolist(), Y[:100].tolist(), strict=True):
        row = {"a": x[0], "b": x[1]}
        errors.append(model.predict_one(row) - y)
        model.learn_one(row, y)
    model.learn_one({"a": 0.0, "b": 0.0}, 0.0)  # not predicted, so not scored
    found = model.stats()
    assert (found["rows"], found["scored"]) == (101, 100)
    assert found["rmse"] == pytest.approx(float(np.sqrt(np.mean(np.square(errors)))))


@pytest.mark.parametrize("labels", [False, True])
def test_fleets(labels: bool) -> None:
    keys = [f"k{k % 3}" for k in range(400)]
    fleet = Fleet(SFGMKLClassifier(), seed=0, classes=["down", "up"]) if labels else Fleet(seed=0)
    y = LABELS if labels else Y
    out = np.concatenate([fleet.learn_rows(keys[k : k + 100], X[k : k + 100], y[k : k + 100])
                          for k in range(0, 400, 100)])  # fmt: skip
    found = fleet.stats()
    assert (found["rows"], found["keys"]) == (400, 3)
    if labels:
        assert found["accuracy"] == pytest.approx(float((out == y).mean()))
    else:
        assert found["rmse"] == pytest.approx(rmse(out.astype(float), Y))
