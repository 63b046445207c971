"""The river API: river's own checks, and what its users rely on."""

import inspect
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from river import checks, compose, datasets, drift, evaluate, metrics, preprocessing
from streams import in_raw_units, labels_of

import omkl
import omkl.river
from omkl.estimators.river import ESTIMATORS

ALL = list(ESTIMATORS.values())
REGRESSORS = [kind for kind in ALL if kind.task == "regression"]
CLASSIFIERS = [kind for kind in ALL if kind.task == "classification"]
VARIANTS = [*(kind() for kind in ALL), omkl.river.SFGMKLRegressor(refine=True, seed=3)]


@pytest.mark.parametrize("model", VARIANTS, ids=lambda m: f"{m}{'-R' if getattr(m, 'refine', False) else ''}")
@pytest.mark.filterwarnings("ignore")  # the checks pass data that warrants warnings
def test_estimator_passes_all_of_rivers_checks(model):
    assert model._unit_test_skips() == set()
    passed = 0
    for check in checks.yield_checks(model):
        check(model.clone())
        passed += 1
    assert passed >= 27


def rows_of(X):
    return [{str(i): float(v) for i, v in enumerate(x)} for x in X]


def stream(rows=250, d=12):
    return *in_raw_units(rows, d), labels_of(rows, "abcd")


@pytest.mark.parametrize("kind", ALL, ids=lambda c: c.__name__)
def test_both_apis_predict_the_same_to_the_last_bit(kind, monkeypatch):
    X, y, labels = stream()
    river, sklearn = kind(seed=7), getattr(omkl, kind.__name__)(random_state=7)
    if kind not in REGRESSORS:  # labels announced have a probability from the start; river announces none
        announced = type(sklearn).new_core
        monkeypatch.setattr(type(sklearn), "new_core", lambda model, names=None: unannounced(announced(model, names)))
    if kind in REGRESSORS:
        targets, chunk = y, sklearn.predict_then_learn(X, y)
    else:
        targets, chunk = labels, sklearn.predict_proba_then_learn(X, labels, classes=np.unique(labels))
    for k, (x, target) in enumerate(zip(rows_of(X), targets, strict=True)):
        if kind in REGRESSORS:
            assert river.predict_one(x) == chunk[k]
        else:
            predictions = river.predict_proba_one(x)
            np.testing.assert_allclose([predictions.get(c, 0.0) for c in sklearn.classes_], chunk[k], rtol=1e-15)
        river.learn_one(x, target)


def unannounced(core):
    return type(core)(core.learner, core.settings, core.seed, core.names, "online")


def test_a_new_feature_keeps_what_was_learned_and_its_name_decides_its_frequencies():
    X, y, _ = stream()
    model = omkl.river.SFGMKLRegressor(seed=1)
    for x, target in zip(rows_of(X[:, :3]), y, strict=True):
        model.learn_one(x, target)
    before = model._core.online.state
    model.learn_one({"0": 1.0, "1": 2.0, "2": 3.0, "new": 4.0}, 50.0)
    after, V = model._core.online.state, model._core.online.problem.V
    assert after.t == before.t + 1
    evaluated = model._core.online.problem.graph.A[before.node]
    np.testing.assert_array_equal(after.theta[~evaluated], before.theta[~evaluated])
    alone = omkl.river.SFGMKLRegressor(seed=1)
    alone.learn_one({"new": 4.0}, 50.0)
    np.testing.assert_array_equal(V[:, 3], alone._core.online.problem.V[:, 0])


def test_a_feature_that_is_missing_counts_as_its_mean():
    X, y, _ = stream(d=2)
    model = omkl.river.RakerRegressor(seed=1)
    for x, target in zip(rows_of(X), y, strict=True):
        model.learn_one(x, target)
    mean = X[:, 1].mean()
    assert model.predict_one({"0": 105.0}) == pytest.approx(model.predict_one({"0": 105.0, "1": mean}), rel=1e-6)
    seen = model._core.inputs.stats[0].copy()
    model.learn_one({"0": 105.0}, 1.0)
    np.testing.assert_array_equal(model._core.inputs.stats[0] - seen, [1, 0])


def test_unknown_features_are_ignored_by_predict_and_learned_by_learn():
    model = omkl.river.RakerRegressor(seed=1)
    model.learn_one({"a": 1.0}, 1.0)
    model.learn_one({"a": 3.0}, 2.0)
    assert model.predict_one({"a": 2.0, "b": 9.0}) == model.predict_one({"a": 2.0})
    model.learn_one({"b": 9.0, "a": 2.0}, 1.5)
    assert model._core.names == ("a", "b")


def test_a_row_without_features_is_learned_too():
    model = omkl.river.SFGMKLRegressor(seed=1)
    for _ in range(5):
        model.learn_one({}, 3.0)
    assert model.predict_one({}) == 3.0


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
@pytest.mark.parametrize("kind", ALL, ids=lambda c: c.__name__)
def test_frames_equal_their_rows(kind, frame):
    X, y, labels = stream(rows=80, d=3)
    targets = y if kind in REGRESSORS else labels
    names = ["x", "z", "y"]
    many, one = kind(seed=5), kind(seed=5)
    table = {n: X[:, i] for i, n in enumerate(names)}
    many.learn_many(frame({n: v[:50] for n, v in table.items()}), pd.Series(targets[:50]))
    for k in range(50):
        one.learn_one({n: v[k] for n, v in table.items()}, targets[k])
    rest = frame({n: v[50:] for n, v in table.items()})
    predictions = many.predict_many(rest)
    assert isinstance(predictions, pd.Series if frame is pd.DataFrame else pl.Series)
    assert list(predictions) == [one.predict_one({n: v[k] for n, v in table.items()}) for k in range(50, 80)]
    if kind in CLASSIFIERS:
        p = many.predict_proba_many(rest)
        assert list(p.columns) == list(many.predict_proba_one({n: v[50] for n, v in table.items()}))


def test_predictions_of_a_frame_keep_its_index():
    frame = pd.DataFrame({"a": [1.0, 2.0]}, index=["first", "second"])
    model = omkl.river.SFGMKLRegressor(seed=1)
    assert list(model.predict_many(frame).index) == ["first", "second"]


def test_it_learns_in_a_pipeline_of_river():
    model = compose.Pipeline(preprocessing.StandardScaler(), omkl.river.SFGMKLClassifier(seed=1))
    metric = evaluate.progressive_val_score(datasets.Phishing().take(600), model, metrics.LogLoss())
    assert metric.get() < 0.65


def test_a_drift_detector_of_river_finds_a_change_in_its_errors():
    X = np.random.default_rng(0).uniform(-1, 1, (700, 2))
    y = np.where(np.arange(700) < 600, 3, -3) * X[:, 0]
    detector, model, detected = drift.ADWIN(), omkl.river.RakerRegressor(seed=1), []
    for k, (x, target) in enumerate(zip(rows_of(X), y, strict=True)):
        detector.update(abs(model.predict_one(x) - target))
        if detector.drift_detected:
            detected.append(k)
        model.learn_one(x, target)
    assert 600 <= detected[-1] < 630


def test_a_late_label_is_learned_by_key():
    X, y, _ = stream(rows=60, d=3)
    late, prompt = omkl.river.SFGMKLRegressor(seed=2), omkl.river.SFGMKLRegressor(seed=2)
    for k, x in enumerate(rows_of(X)):
        late.predict_one(x, key=f"order {k}")
    for k, x in enumerate(rows_of(X)):
        late.learn_key(f"order {k}", y[k])
        prompt.learn_one(x, y[k])
    assert late.predict_one(rows_of(X)[0]) == prompt.predict_one(rows_of(X)[0])
    with pytest.raises(KeyError, match="no row is waiting for its label under the key 'order 3'"):
        late.learn_key("order 3", 1.0)


def test_rows_that_wait_are_bounded():
    model = omkl.river.SFGMKLClassifier(seed=2, max_waiting=3)
    for k in range(3):
        model.predict_proba_one({"a": float(k)}, key=k)
    with pytest.warns(UserWarning, match="the oldest, 0, is dropped"):
        model.predict_one({"a": 9.0}, key=3)
    with pytest.raises(KeyError, match="max_waiting=3"):
        model.learn_key(0, "yes")
    model.learn_key(1, "yes")
    assert model.predict_one({"a": 0.0}) == "yes"


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        ({"a": float("inf")}, 1.0, "feature 'a' must be a finite number, got inf"),
        ({"a": [1, 2]}, 1.0, r"feature 'a' must be a number, text, a boolean, a timestamp or empty, got \[1, 2\]"),
        ({"a": 1.0}, float("inf"), "y must be a finite number, got inf"),
        ({"a": 1.0}, "high", "y must be a finite number, got 'high'"),
    ],
)
def test_a_bad_row_is_named_and_changes_nothing(x, y, message):
    model = omkl.river.SFGMKLRegressor(seed=2)
    for k in range(20):
        model.learn_one({"a": float(k), "b": 1.0}, float(k))
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match=message):
        model.learn_one(x, y)
    assert pickle.dumps(model) == before


def test_a_bad_cell_of_a_frame_is_named_and_no_row_is_learned():
    model = omkl.river.SFGMKLRegressor(seed=2)
    model.learn_many(pd.DataFrame({"a": np.arange(9.0)}), pd.Series(np.arange(9.0)))
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match="column 'a' must be finite, got inf in row 2"):
        model.learn_many(pd.DataFrame({"a": [1.0, 2.0, np.inf]}), pd.Series([1.0, 2.0, 3.0]))
    with pytest.raises(ValueError, match="column 'a' holds list"):
        model.learn_many(pd.DataFrame({"a": [[1], [2]]}), pd.Series([1.0, 2.0]))
    assert pickle.dumps(model) == before


@pytest.mark.parametrize("kind", ALL, ids=lambda c: c.__name__)
def test_a_row_that_is_refused_adds_no_feature(kind):
    """A feature that becomes known moves random features, and may let GraphMKL start a second set of experts."""
    targets = ["low", "high"] if "Classifier" in kind.__name__ else [0.0, 1.0]
    new = kind(seed=2)
    for bad in ({"a": [1]}, {"a": 1.0, "b": float("inf")}):
        with pytest.raises(ValueError, match=r"must be a finite number|must be a number, text"):
            new.learn_one(bad, targets[0])
    with pytest.raises(ValueError, match="column 'b' holds"):
        new.learn_many(pd.DataFrame({"a": [1.0], "b": [[1]]}), pd.Series(targets[:1]))
    assert new._core is None
    model = kind(seed=2)
    for k in range(300):
        model.learn_one({"a": float(k % 7)}, targets[k % 2])
    before = omkl.to_bytes(model)
    with pytest.raises(ValueError, match="feature 'b' must be a finite number"):
        model.learn_one({"a": 1.0, "b": float("inf")}, targets[0])
    with pytest.raises(ValueError, match="w must be a finite number"):
        model.learn_one({"a": 1.0, "b": "red"}, targets[0], w=-1.0)
    with pytest.raises(ValueError, match="w must be a finite number"):
        model.learn_one({"a": 1.0, "b": 1.0}, targets[0], w=-1.0)
    with pytest.raises(ValueError, match="column 'b' must be finite"):
        model.learn_many(pd.DataFrame({"a": [1.0, 2.0], "b": [1.0, np.inf]}), pd.Series(targets))
    assert omkl.to_bytes(model) == before


def test_both_apis_have_the_same_parameters():
    for kind in ALL:
        ours = set(inspect.signature(kind).parameters) - {"seed", "max_waiting"}
        theirs = set(inspect.signature(getattr(omkl, kind.__name__)).parameters) - {"random_state", "shuffle", "epochs"}
        assert ours == theirs
        for name in ours:
            default = inspect.signature(kind).parameters[name].default
            assert default == inspect.signature(getattr(omkl, kind.__name__)).parameters[name].default
