"""A fleet gives the results of separate models, one for each key."""

import inspect
import pickle
import subprocess
import sys
import threading
import tracemalloc
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import is_classifier
from streams import arrays_of

import omkl
from omkl.errors import DivergenceError, ModelFileError
from omkl.estimators.sklearn import ESTIMATORS
from omkl.fleet import Fleet
from omkl.fleet import records as fleet_records
from omkl.fleet.groups import Groups
from omkl.fleet.packed import PackedStorage
from omkl.fleet.records import RecordStorage
from omkl.fleet.separate import EstimatorStorage
from omkl.fleet.template import Template, key_generator

FILES = Path(__file__).parent / "files"
LABELS = ["calm", "gust", "storm"]
SMALL = {"n_features": 8}


def learners():
    """Every estimator with few features, and options that take another path through the code."""
    for kind in ESTIMATORS.values():
        options = dict(SMALL) if "n_features" in inspect.signature(kind).parameters else {}
        if kind in (omkl.GraphMKLRegressor, omkl.GraphMKLClassifier):
            options |= {"kernels": [omkl.Gaussian(0.5), omkl.Gaussian(2.0)], "out_degree": 1, "warm_up": 5}
            yield f"small {kind.__name__}", kind(**options, budget="small")
        yield kind.__name__, kind(**options)
    yield "SFG-MKL-R", omkl.SFGMKLRegressor(refine=True, **SMALL)
    yield "not scaled", omkl.SFGMKLRegressor(scale="none", **SMALL)
    yield "classes, not scaled", omkl.SFGMKLClassifier(scale="none", **SMALL)


LEARNERS = dict(learners())


def classifies(learner):
    return learner is not None and is_classifier(learner)


def stream(learner, rows, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, (rows, 3))
    y = np.sin(X[:, 0]) + X[:, 1]
    if classifies(learner):
        return X, np.array(LABELS)[np.digitize(y, [-1, 1])]
    return X, y


def fleet_of(learner, **options):
    return Fleet(learner, seed=3, classes=LABELS if classifies(learner) else None, **options)


def separate_models(fleet, keys, X, y):
    """One estimator for every key, which learns its rows one by one; and the predictions."""
    models = {key: fleet.fresh(key, X.shape[1]) for key in keys}
    predictions = []
    for key, x, target in zip(keys, X, y, strict=True):
        more = {"classes": LABELS} if fleet.classes is not None else {}
        predictions.append(models[key].predict_then_learn(x[None], np.array([target]), **more)[0])
    return models, np.array(predictions)


# Results are those of separate models


@pytest.mark.parametrize("name", LEARNERS)
@settings(max_examples=8)
@given(data=st.data())
def test_rows_of_keys_in_any_order_give_the_results_of_separate_models_to_the_last_bit(name, data):
    learner = LEARNERS[name]
    keys = data.draw(st.lists(st.sampled_from(["a", "b", 7, "7", -1]), min_size=1, max_size=40))
    cuts = sorted(data.draw(st.sets(st.integers(0, len(keys)), max_size=4)) | {0, len(keys)})
    X, y = stream(learner, len(keys), seed=len(keys))
    fleet = fleet_of(learner, threads=data.draw(st.sampled_from([1, 3])))
    parts = [slice(a, b) for a, b in pairwise(cuts)]
    predictions = np.concatenate([fleet.learn_rows(keys[part], X[part], y[part]) for part in parts])
    models, expected = separate_models(fleet, keys, X, y)
    assert predictions.tolist() == expected.tolist()
    assert list(fleet) == list(dict.fromkeys(keys))
    for key, model in models.items():
        assert omkl.to_bytes(fleet[key]) == omkl.to_bytes(model)
    assert fleet.predict_rows(keys, X).tolist() == [
        models[key].predict(x[None])[0] for key, x in zip(keys, X, strict=True)
    ]


@pytest.mark.parametrize("name", ["SFGMKLRegressor", "SFG-MKL-R", "OMKLGFRegressor", "RakerRegressor"])
def test_large_batches_in_many_threads_give_the_same_results(name):
    learner = LEARNERS[name]
    X, y = stream(learner, 6000)
    keys = np.random.default_rng(1).integers(300, size=6000)
    keys[2000:4000] = 5  # one key with more rows than the engine processes at a time
    fleet = fleet_of(learner, threads=4)
    predictions = fleet.learn_rows(keys, X, y)
    for key in (5, 17, 299):
        model = fleet.fresh(key)
        assert (predictions[keys == key] == model.predict_then_learn(X[keys == key], y[keys == key])).all()
        assert omkl.to_bytes(model) == omkl.to_bytes(fleet[key])
    assert len(fleet) == 300


def test_the_engine_draws_the_random_numbers_of_numpy():
    fleet = Fleet(omkl.SFGMKLRegressor(**SMALL), seed=9)
    X, y = stream(fleet.learner, 1000)
    fleet.learn_rows(["k"] * 1000, X, y)
    rng = key_generator(9, "k")
    rng.random(1001)  # one for the first node, and one for every row
    assert fleet["k"].core_.online.checkpoint().generator == rng.bit_generator.state


def test_regressors_of_fixed_size_are_stored_as_records_small_graph_mkl_packed_and_the_others_as_estimators():
    for name, learner in LEARNERS.items():
        fleet = fleet_of(learner)
        fleet.learn_rows([1, 2], *stream(learner, 2))
        growing = "OMKRRegressor", "GraphMKLRegressor"
        fast = not classifies(learner) and name not in growing
        kind = PackedStorage if name.startswith("small") else RecordStorage if fast else EstimatorStorage
        assert isinstance(fleet._models._storage, kind), name


def test_a_new_record_holds_the_whole_first_state():
    for name in ("SFGMKLRegressor", "SFG-MKL-R", "OMKLGFRegressor", "RakerRegressor", "RFOMKRRegressor", "not scaled"):
        template = Template.make(LEARNERS[name], 3, 3, None, None)
        kept = RecordStorage(template)
        for slot, key in enumerate(("a", 1, "b")):
            kept.add(slot, key)
            assert template.pack(template.model_with(kept.core(slot))) == template.pack(template.fresh(key)), name


@pytest.mark.parametrize("name", ["SFGMKLRegressor", "SFG-MKL-R", "RakerRegressor"])
@pytest.mark.parametrize("records", [0, 1, 2.5])
def test_blocks_of_few_records_give_the_results_of_separate_models(name, records, monkeypatch):
    learner = LEARNERS[name]
    X, y = stream(learner, 60)
    keys = np.arange(60) % 7
    record = RecordStorage(Template.make(learner, 3, 3, None, None)).nbytes(1)
    monkeypatch.setattr(fleet_records, "BLOCK_BYTES", int(records * record))
    fleet = fleet_of(learner)
    models, expected = separate_models(fleet, keys.tolist(), X, y)
    parts = [fleet.learn_rows(keys[part], X[part], y[part]) for part in (slice(30), slice(30, 60))]
    assert np.concatenate(parts).tolist() == expected.tolist()
    del fleet[3]
    models |= {key: fleet.fresh(key) for key in (3, "new")}
    for key, model in models.items():
        assert fleet.predict_rows([key] * 5, X[:5]).tolist() == model.predict(X[:5]).tolist()


def test_few_keys_of_large_models_take_little_memory():
    fleet = Fleet(omkl.RakerRegressor(kernels=[omkl.Gaussian(1.0)], n_features=250_000), seed=0)
    tracemalloc.start()
    fleet.learn_rows(["a", "b"], np.zeros((2, 1)), np.zeros(2))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 300 << 20  # a block of as many records as small models have would take 1 GB


def test_groups_preserve_the_order_of_rows_within_a_key():
    slots = np.random.default_rng(0).integers(20, size=500)
    groups = Groups.by(slots)
    assert (np.sort(groups.order) == np.arange(500)).all()
    for g, slot in enumerate(groups.slots):
        rows = groups.order[groups.starts[g] : groups.starts[g + 1]]
        assert (slots[rows] == slot).all()
        assert (np.diff(rows) > 0).all()
    parts = groups.parts(7)
    assert np.concatenate([part.slots for part in parts]).tolist() == groups.slots.tolist()


# Keys


def test_a_number_and_its_string_are_different_keys():
    fleet = Fleet(omkl.SFGMKLRegressor(**SMALL), seed=0)
    fleet.learn_rows([1, "1"], [[0.0], [1.0]], [0.0, 1.0])
    assert len(fleet) == 2
    assert 1 in fleet
    assert True not in fleet
    assert 1.0 not in fleet
    assert key_generator(0, 1).random() != key_generator(0, "1").random()


def test_the_random_numbers_of_a_key_are_the_same_in_every_process():
    code = "from omkl.fleet.template import key_generator; print(key_generator(4, 'meter').random())"
    seen = {subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True,
                           env={"PYTHONHASHSEED": seed}).stdout.strip() for seed in "01"}  # fmt: skip
    assert seen == {str(key_generator(4, "meter").random())}


@pytest.mark.parametrize(("key", "error", "message"), [
    (None, ValueError, "row 1: the key must not be missing, got None"),
    (float("nan"), ValueError, "row 1: the key must not be missing, got nan"),
    (1.5, TypeError, "row 1: a key must be a string or an integer, got 1.5"),
    (True, TypeError, "got True"),
])  # fmt: skip
def test_an_invalid_key_is_refused_and_the_message_names_its_row(key, error, message):
    fleet = Fleet(omkl.SFGMKLRegressor(**SMALL), seed=0)
    with pytest.raises(error, match=message):
        fleet.learn_rows(["a", key], [[0.0], [1.0]], [0.0, 1.0])
    assert len(fleet) == 0


def test_the_model_of_a_key_is_a_copy_that_learns_independently():
    for name in ("SFGMKLRegressor", "GraphMKLRegressor", "RakerClassifier"):
        fleet = fleet_of(LEARNERS[name])
        X, y = stream(fleet.learner, 30)
        fleet.learn_rows(["a"] * 30, X, y)
        before = omkl.to_bytes(fleet["a"])
        model = fleet["a"]
        model.partial_fit(X, y)
        assert omkl.to_bytes(fleet["a"]) == before != omkl.to_bytes(model)
    with pytest.raises(KeyError, match="no row of key 'b'"):
        fleet["b"]


def test_an_unknown_key_is_predicted_by_its_model_at_the_start_and_is_not_added():
    for name in ("SFGMKLRegressor", "GraphMKLRegressor", "RakerClassifier"):
        fleet = fleet_of(LEARNERS[name])
        X, y = stream(fleet.learner, 30)
        fleet.learn_rows(["a"] * 30, X, y)
        predictions = fleet.predict_rows(["a", "new", "newer"], X[:3]).tolist()
        assert predictions == [fleet["a"].predict(X[:1])[0], fleet.fresh("new").predict(X[1:2])[0],
                        fleet.fresh("newer").predict(X[2:3])[0]]  # fmt: skip
        assert list(fleet) == ["a"]


# Frames


FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.table}


@pytest.mark.parametrize("kind", FRAMES)
def test_frames_of_every_kind_give_the_results_of_arrays(kind):
    X, y = stream(None, 200)
    keys = [f"meter {k}" for k in np.random.default_rng(0).integers(5, size=200)]
    columns = {"meter": keys, "load": y, "hour": X[:, 0], "wind": X[:, 1], "rain": np.round(X[:, 2]).astype(int)}
    fleet, arrays = (Fleet(omkl.SFGMKLRegressor(**SMALL), seed=1) for _ in range(2))
    whole = np.column_stack((X[:, :2], np.round(X[:, 2])))
    frame = FRAMES[kind](columns)
    assert (fleet.learn_many(frame, key="meter", target="load") == arrays.learn_rows(keys, whole, y)).all()
    shuffled = FRAMES[kind]({name: columns[name] for name in ("rain", "wind", "meter", "hour", "load")} | {"more": y})
    assert (fleet.predict_many(shuffled, key="meter") == arrays.predict_rows(keys, whole)).all()
    assert list(fleet["meter 0"].feature_names_in_) == ["hour", "wind", "rain"]


def test_a_classifier_learns_from_a_frame():
    X, y = stream(LEARNERS["RakerClassifier"], 100)
    frame = pl.DataFrame({"k": [0, 1] * 50, "y": y, "a": X[:, 0], "b": X[:, 1]})
    fleet = fleet_of(LEARNERS["RakerClassifier"])
    predictions = fleet.learn_many(frame, key="k", target="y", features=["b", "a"])
    model = fleet.fresh(1)
    assert predictions[1::2].tolist() == model.predict_then_learn(frame.select("b", "a")[1::2], y[1::2]).tolist()
    assert set(predictions) <= set(LABELS)


def valid_frame(**changes):
    frame = {"k": ["a", "b", "a"], "y": [1.0, 2.0, 3.0], "u": [0.1, 0.2, 0.3], "v": [3.0, 2.0, 1.0]}
    return frame | changes


@pytest.mark.parametrize(("changes", "error", "message"), [
    ({"u": [0.1, float("nan"), 0.3]}, ValueError, r"row 1 \(key 'b'\): feature 'u' must be a finite number, got nan"),
    ({"v": [0.1, 0.2, float("inf")]}, ValueError, r"row 2 \(key 'a'\): feature 'v' must be a finite number, got inf"),
    ({"u": [1, None, 2]}, ValueError, r"row 1 \(key 'b'\): feature 'u' must be a finite number, got nan"),
    ({"u": ["0.1", "hot", "0.3"]}, ValueError, r"row 0 \(key 'a'\): feature 'u' must be a number, got '0.1'"),
    ({"y": [1.0, float("-inf"), 0.0]}, ValueError, r"row 1 \(key 'b'\): the target must be a finite number, got -inf"),
    ({"y": ["a", "b", "c"]}, ValueError, r"row 0 \(key 'a'\): the target must be a number, got 'a'"),
    ({"k": ["a", None, "a"]}, ValueError, "row 1: the key must not be missing"),
])  # fmt: skip
@pytest.mark.parametrize("kind", FRAMES)
def test_an_invalid_row_is_named_in_the_message_and_nothing_of_its_batch_is_learned(kind, changes, error, message):
    fleet = Fleet(omkl.SFGMKLRegressor(**SMALL), seed=1)
    fleet.learn_many(FRAMES[kind](valid_frame()), key="k", target="y")
    before = omkl.to_bytes(fleet)
    with pytest.raises(error, match=message):
        fleet.learn_many(FRAMES[kind](valid_frame(**changes)), key="k", target="y")
    assert omkl.to_bytes(fleet) == before


def test_missing_or_wrong_columns_are_named_in_the_message():
    fleet = Fleet(omkl.SFGMKLRegressor(**SMALL), seed=1)
    frame = pl.DataFrame(valid_frame())
    with pytest.raises(ValueError, match=r"the key column 'meter' is not in the frame, which has \['k', 'y'"):
        fleet.learn_many(frame, key="meter", target="y")
    with pytest.raises(ValueError, match="the target column 'z' is not"):
        fleet.learn_many(frame, key="k", target="z")
    with pytest.raises(ValueError, match="nothing has been learned yet"):
        fleet.predict_many(frame, key="k")
    fleet.learn_many(frame, key="k", target="y")
    with pytest.raises(ValueError, match="the feature column 'v' is not"):
        fleet.learn_many(frame.drop("v"), key="k", target="y")
    with pytest.raises(ValueError, match="features must stay what they were"):
        fleet.learn_many(frame, key="k", target="y", features=["v"])
    with pytest.raises(ValueError, match="X must have 2 columns"):
        fleet.learn_rows(["a"], [[1.0, 2.0, 3.0]], [1.0])
    with pytest.raises(ValueError, match="y must have one value for each of the 1 rows"):
        fleet.learn_rows(["a"], [[1.0, 2.0]], [1.0, 2.0])
    with pytest.raises(TypeError, match="arrays go to learn_rows"):
        fleet.learn_many([1, 2], key="k", target="y")


def test_labels_outside_classes_and_wrong_learners_are_refused():
    fleet = fleet_of(LEARNERS["RakerClassifier"])
    with pytest.raises(ValueError, match=r"row 1 \(key 'b'\): the target must be a label out of .*, got 'hail'"):
        fleet.learn_rows(["a", "b"], [[0.0], [1.0]], ["calm", "hail"])
    with pytest.raises(ValueError, match="classes must be given for a classifier"):
        Fleet(omkl.RakerClassifier())
    with pytest.raises(ValueError, match="classes are for classifiers"):
        Fleet(omkl.RakerRegressor(), classes=[0, 1])
    with pytest.raises(TypeError, match="learner must be an estimator of omkl's scikit-learn API"):
        Fleet({})


def test_an_empty_batch_changes_nothing():
    fleet = Fleet(omkl.SFGMKLRegressor(**SMALL), seed=1)
    assert fleet.learn_rows([], np.empty((0, 2)), []).shape == (0,)
    fleet.learn_rows(["a"], [[1.0, 2.0, 3.0]], [0.0])  # the empty batch did not fix the number of features
    assert fleet.predict_rows([], np.empty((0, 3))).shape == (0,)


# Divergence


DIVERGING = {
    "records": omkl.RakerRegressor(stabiliser="none", scale="none", learning_rate=50.0, horizon=1000, **SMALL),
    "models": omkl.OMKRRegressor(scale="none"),
}


@pytest.mark.parametrize("name", DIVERGING)
def test_if_one_key_diverges_no_key_learns_the_batch(name):
    fleet = Fleet(DIVERGING[name], seed=0, threads=3)
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (700, 2))
    keys = np.arange(700) % 7
    y = X[:, 0].copy()
    if name == "records":
        y[keys < 6] = 0.0  # only key 6 can diverge
    else:
        X[:, :] = 0.0
        y[keys == 6] = 1e120  # so large that predictions overflow
    fleet.learn_rows(keys[:7], X[:7], np.zeros(7))
    before = [omkl.to_bytes(fleet[key]) for key in fleet]
    more = np.where(keys == 3, "new", keys.astype(object))
    with pytest.raises(DivergenceError, match=r"the model of key 6 diverged.*nothing of this batch was learned"):
        fleet.learn_rows(list(more), X, y)
    assert list(fleet) == list(range(7))
    assert [omkl.to_bytes(fleet[key]) for key in fleet] == before
    fleet.learn_rows(["new"], X[:1], [0.0])
    assert omkl.to_bytes(fleet["new"]) == omkl.to_bytes(fleet.fresh("new").partial_fit(X[:1], [0.0]))


@pytest.mark.parametrize("name", DIVERGING)
def test_a_key_that_diverges_in_the_first_row_of_a_batch_is_noticed(name):
    fleet = Fleet(DIVERGING[name], seed=0, threads=2)
    before = b""

    def learn_until_it_diverges():
        nonlocal before
        for _ in range(100):
            fleet.learn_rows(["a", "b"], np.zeros((2, 2)), [1e120 if name == "models" else 1e90, 0.0])
            before = omkl.to_bytes(fleet["a"])

    with pytest.raises(DivergenceError, match=r"^row 0: the model of key 'a' diverged.*nothing of this batch"):
        learn_until_it_diverges()
    assert omkl.to_bytes(fleet["a"]) == before


@pytest.mark.parametrize("large", ["x", "-x", "y", "-y"])
def test_whatever_is_too_large_in_a_batch_of_a_stabilised_learner_the_batch_can_be_undone(large):
    """Below 1e30 nothing can diverge and nothing is copied; above it, in any sign and place, models are."""
    fleet = Fleet(omkl.RakerRegressor(scale="none", **SMALL), seed=0)
    X, y = np.ones((2, 2)), np.ones(2)
    fleet.learn_rows(["a", "b"], 1e29 * X, -1e29 * y)
    assert not fleet._may_diverge
    (X if large.endswith("x") else y)[1] = -1e31 if large.startswith("-") else 1e31
    fleet.learn_rows(["a", "b"], X, y)
    assert fleet._may_diverge


def test_a_prediction_that_is_not_finite_is_an_error_as_in_the_estimators():
    fleet = Fleet(omkl.SFGMKLRegressor(scale="none", **SMALL), seed=0)
    fleet.learn_rows(["a", "b"], [[0.0], [1.0]], [0.0, 1.0])
    with pytest.raises(DivergenceError, match=r"row 1 \(key 'b'\): the prediction is not finite, nan"):
        fleet.predict_rows(["a", "b"], [[0.0], [1e308]])
    with pytest.raises(DivergenceError):
        fleet["b"].predict([[1e308]])


# Files


@pytest.mark.parametrize("name", LEARNERS)
def test_a_fleet_that_was_saved_and_loaded_continues_with_the_same_results(name, tmp_path):
    learner = LEARNERS[name]
    X, y = stream(learner, 90)
    keys = [("a", "b", 3)[k] for k in np.random.default_rng(0).integers(3, size=90)]
    fleet = fleet_of(learner)
    fleet.learn_rows(keys[:50], X[:50], y[:50])
    omkl.save(fleet, tmp_path / "fleet.omkl")
    copies = [
        omkl.load(tmp_path / "fleet.omkl"),
        omkl.from_bytes(omkl.to_bytes(fleet)),
        pickle.loads(pickle.dumps(fleet)),
    ]
    expected = fleet.learn_rows(keys[50:], X[50:], y[50:])
    for loaded in copies:
        assert list(loaded) == list(dict.fromkeys(keys))
        assert loaded.learn_rows(keys[50:], X[50:], y[50:]).tolist() == expected.tolist()
        assert omkl.to_bytes(loaded) == omkl.to_bytes(fleet)


def test_a_pickled_fleet_can_be_loaded_in_a_process_that_has_not_imported_omkl(tmp_path):
    fleet = Fleet(omkl.SFGMKLRegressor(**SMALL), seed=1)
    fleet.learn_rows(["a", "b"], [[1.0], [2.0]], [3.0, 4.0])
    (tmp_path / "fleet.pickle").write_bytes(pickle.dumps(fleet))
    code = "import pickle, sys; print(list(pickle.load(open(sys.argv[1], 'rb'))))"
    command = [sys.executable, "-c", code, str(tmp_path / "fleet.pickle")]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == "['a', 'b']"


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize("place", [0, 2, -1])
def test_a_forgotten_key_starts_from_the_beginning_and_the_others_are_unchanged(name, place, tmp_path):
    learner = LEARNERS[name]
    X, y = stream(learner, 120)
    keys = [("a", "b", 3, "d")[k] for k in np.random.default_rng(0).integers(4, size=120)]
    fleet, other = fleet_of(learner), fleet_of(learner)
    fleet.learn_rows(keys, X, y)
    forgotten = list(fleet)[place]
    rest = [k for k, key in enumerate(keys) if key != forgotten]
    other.learn_rows([keys[k] for k in rest], X[rest], y[rest])
    del fleet[forgotten]
    assert forgotten not in fleet
    assert list(fleet) == list(other)
    omkl.save(fleet, tmp_path / "fleet.omkl")
    for remaining in (fleet, omkl.load(tmp_path / "fleet.omkl")):
        assert [remaining.pack(key) for key in remaining] == [other.pack(key) for key in other]
        assert remaining.nbytes == other.nbytes
    np.testing.assert_array_equal(fleet.learn_rows(keys, X, y), other.learn_rows(keys, X, y))
    with pytest.raises(KeyError, match="there is nothing to forget"):
        del fleet["nobody"]


def test_a_fleet_that_has_learned_nothing_can_be_saved():
    fleet = fleet_of(LEARNERS["RakerClassifier"])
    loaded = omkl.from_bytes(omkl.to_bytes(fleet))
    assert len(loaded) == 0
    assert loaded.classes.tolist() == LABELS
    assert loaded.seed == 3


def test_a_key_can_be_packed_without_what_all_keys_share():
    for name, learner in LEARNERS.items():
        fleet = fleet_of(learner)
        X, y = stream(learner, 40)
        fleet.learn_rows(["a"] * 40, X, y)
        template = Template.make(fleet.learner, 3, 3, None, fleet.classes)
        data = template.pack(fleet["a"])
        assert data == template.pack(template.unpack(data)), name
        assert omkl.to_bytes(template.unpack(data)) == omkl.to_bytes(fleet["a"])
    other = Template.make(fleet.learner, 4, 3, None, fleet.classes)
    with pytest.raises(ModelFileError, match="another seed"):
        other.unpack(data)
    with pytest.raises(ModelFileError, match="not a key of a fleet"):
        other.unpack(omkl.to_bytes(fleet["a"]))


def test_a_fleet_can_be_restored_from_packed_keys():
    X, y = stream(None, 60)
    frame = pl.DataFrame({"k": [k % 3 for k in range(60)], "y": y, "u": X[:, 0], "v": X[:, 1]})
    fleet, restored = (Fleet(omkl.SFGMKLRegressor(**SMALL), seed=3) for _ in range(2))
    fleet.learn_many(frame[:40], key="k", target="y")
    restored.restore([(key, fleet.pack(key)) for key in fleet], features=["u", "v"])
    assert (
        restored.learn_many(frame[40:], key="k", target="y") == fleet.learn_many(frame[40:], key="k", target="y")
    ).all()
    restored.restore([(1, fleet.pack(0))], features=["u", "v"])  # a known key is replaced
    assert (len(restored), restored.pack(1)) == (3, fleet.pack(0))


def test_an_inconsistent_fleet_file_is_refused():
    fleet = Fleet(omkl.SFGMKLRegressor(**SMALL), seed=0)
    fleet.learn_rows(["a", "b"], [[0.0], [1.0]], [0.0, 1.0])
    data = omkl.to_bytes(fleet)
    with pytest.raises(ModelFileError, match="truncated or corrupted"):
        omkl.from_bytes(data[:-40] + data[-32:])
    fleet._models._slots = {"a": 0, 1.5: 1}
    with pytest.raises(ModelFileError, match=r"key 1.5 is not valid"):
        omkl.from_bytes(omkl.to_bytes(fleet))


def test_files_of_the_first_version_can_still_be_read():
    X = np.random.default_rng(0).uniform(-1, 1, (12, 2))
    fleet = omkl.load(FILES / "version1-fleet.omkl")
    assert list(fleet) == ["a", 7, "b"]
    np.testing.assert_allclose(
        fleet.predict_rows(fleet, X[:3]), [0.33199675503600207, 0.045517338279302114, 0.7393605961722328], rtol=1e-12
    )
    expected = fleet.pack(7)
    del fleet[7]
    fleet.restore([(7, (FILES / "version1-fleet-key.omkl").read_bytes())], features=2)
    assert fleet.pack(7) == expected


# Size and threads


def test_a_key_of_sfg_mkl_takes_at_most_40_kilobytes():
    fleet = Fleet(omkl.SFGMKLRegressor(), seed=0)
    fleet.learn_rows([1, 2], np.zeros((2, 8)), np.zeros(2))
    assert fleet.nbytes / len(fleet) <= 40_000


def test_the_size_of_a_fleet_of_models_counts_the_arrays_of_each():
    fleet = fleet_of(LEARNERS["GraphMKLRegressor"])
    for keys in (1, 2):
        fleet.learn_rows([keys] * 40, *stream(None, 40))  # more rows than are kept in the place of a model
        size = sum(array.nbytes for array in arrays_of(fleet[keys].core_.online.state).values())
        assert 0.99 * keys * size <= fleet.nbytes <= 1.1 * keys * size  # numbers are no arrays


def test_one_thread_may_predict_while_another_learns():
    fleet = Fleet(omkl.SFGMKLRegressor(**SMALL), seed=0)
    X, y = stream(None, 400)
    keys = np.arange(400) % 9
    fleet.learn_rows(keys, X, y)
    learning = threading.Thread(target=lambda: [fleet.learn_rows(keys, X, y) for _ in range(20)])
    learning.start()
    while learning.is_alive():
        assert np.isfinite(fleet.predict_rows(keys, X)).all()
    learning.join()
    assert fleet[0].n_samples_seen_ == 21 * 45


def test_the_engine_refuses_slots_and_rows_that_do_not_exist():
    fleet = Fleet(omkl.SFGMKLRegressor(**SMALL), seed=0)
    fleet.learn_rows([0], np.zeros((1, 2)), np.zeros(1))
    kept = fleet._models._storage
    one, two = np.zeros(1, np.intp), np.array([0, 1])
    for wrong in (
        (kept._blocks, one + 9999, two, one),
        (kept._blocks, one - 1, two, one),
        (kept._blocks, one, two + 1, one),
        (kept._blocks, one, two, one + 1),
        ([kept._blocks[0][:, :-8].copy()], one, two, one),
        ([], one, two, one),
    ):
        with pytest.raises(ValueError, match="do not fit each other"):
            kept._engine.run_keys(*wrong, np.zeros((1, 2)), np.zeros(1), True, np.zeros(1))
