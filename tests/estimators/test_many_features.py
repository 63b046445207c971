"""Features that come one row after another, sparse rows, and more names than have columns of their own."""

import json
import warnings
import zlib

import numpy as np
import pandas as pd
import pytest
from command import invoke
from river import linear_model

import omkl
import omkl.river
from omkl.errors import SharedFeaturesWarning
from omkl.estimators import columns
from omkl.estimators.columns import MAX_NAMED, OF_OTHERS, OF_SPARSE, Columns, Limits
from omkl.estimators.cores import new_number_core
from omkl.online import Online

SMALL = {"kernels": [omkl.Gaussian(0.5), omkl.Gaussian(2.0)], "n_features": 5}
MODELS = {
    "GraphMKLRegressor": lambda **more: omkl.river.GraphMKLRegressor(seed=1, **SMALL, **more),
    "GraphMKLClassifier": lambda **more: omkl.river.GraphMKLClassifier(seed=1, **SMALL, **more),
    "RakerRegressor": lambda **more: omkl.river.RakerRegressor(seed=1, **SMALL, **more),
    "RakerClassifier": lambda **more: omkl.river.RakerClassifier(seed=1, **SMALL, **more),
}
EVERY = pytest.mark.parametrize("name", MODELS)


def words(rows, vocabulary=200, seed=0, start=0):
    """Rows with counts of about eight words, and a sum of the effects of some of them."""
    rng = np.random.default_rng(seed)
    effect = np.where(np.arange(vocabulary) % 5 == 0, rng.normal(size=vocabulary), 0.0)
    for _ in range(rows):
        drawn = rng.integers(vocabulary, size=8)
        x = {f"w{start + k}": float(n) for k, n in zip(*np.unique(drawn, return_counts=True), strict=True)}
        yield x, float(effect[drawn].sum() + 0.1 * rng.normal())


def target(name, y):
    return bool(y > 0) if name.endswith("Classifier") else y


def learned(name, rows, model=None):
    model = model or MODELS[name]()
    for x, y in rows:
        model.learn_one(x, target(name, y))
    return model


def predictions(model, rows):
    call = model.predict_proba_one if hasattr(model, "predict_proba_one") else model.predict_one
    return [call(x) for x, _ in rows]


@EVERY
def test_most_new_features_change_no_problem(name, monkeypatch):
    changed = []
    change = Online.change_problem
    monkeypatch.setattr(Online, "change_problem", lambda self, new: (changed.append(self), change(self, new))[1])
    model = learned(name, words(150))
    known = len(model._core.names)
    assert known > 150
    assert len(changed) <= 2 * np.log2(known)


@EVERY
def test_names_are_bounded_and_share_columns_beyond_with_one_warning(name, monkeypatch):
    for limits in ("OF_SPARSE", "OF_OTHERS"):
        monkeypatch.setattr(columns, limits, Limits(own=40, shared=8, room=16))
    model = MODELS[name]()
    with pytest.warns(SharedFeaturesWarning, match="40 features are known.*share 8 columns") as told:
        learned(name, words(120), model)
    assert len(told) == 1
    core = model._core
    assert len(core.names) <= 48
    assert core.columns.number <= 48 + MAX_NAMED
    before = omkl.to_bytes(model)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        learned(name, words(40, start=10**6, vocabulary=10**5), model)
        predictions(model, words(5, start=10**8))
    assert abs(len(omkl.to_bytes(model)) - len(before)) < 0.2 * len(before)


def test_the_shared_column_of_a_name_is_the_same_everywhere():
    assert Columns(["a"], OF_SPARSE).shared_name("abc") == f"shared {0x352441C2 % OF_SPARSE.shared}"
    assert zlib.crc32(b"abc") == 0x352441C2


def test_features_of_one_row_that_share_a_column_are_added(monkeypatch):
    monkeypatch.setattr(columns, "OF_SPARSE", Limits(own=20, shared=1, room=16))
    model = omkl.river.GraphMKLRegressor(seed=1, **SMALL)
    rows = list(words(60))
    with pytest.warns(SharedFeaturesWarning):
        learned("GraphMKLRegressor", rows, model)
    assert model.predict_one({"never": 1.0, "seen": 2.0}) == model.predict_one({"before": 3.0})
    assert model.predict_one({"never": 1.0, "seen": 2.0}) != model.predict_one({"before": 1.0})


@EVERY
def test_what_is_saved_continues_exactly(name, tmp_path):
    rows = list(words(90))
    model = learned(name, rows[:60])
    omkl.save(model, tmp_path / "m.omkl")
    loaded = omkl.load(tmp_path / "m.omkl")
    assert loaded._core.names == model._core.names
    for each in (model, loaded):
        learned(name, rows[60:], each)
    assert predictions(loaded, rows) == predictions(model, rows)


@EVERY
def test_rows_and_frames_give_the_same(name):
    rng = np.random.default_rng(0)
    few, many = (pd.DataFrame(rng.normal(size=(30, d)), columns=[f"c{k}" for k in range(d)]) for d in (12, 50))
    one, frames = MODELS[name](), MODELS[name]()
    for frame in (few, many):
        y = [target(name, value) for value in frame["c3"]]
        frames.learn_many(frame, y)
        for x, value in zip(frame.to_dict("records"), y, strict=True):
            one.learn_one(x, value)
    assert one._core.columns.room
    for x in many.to_dict("records"):
        assert one.predict_one(x) == frames.predict_one(x)


@pytest.mark.parametrize("at", [1, 9, 100])
def test_a_feature_that_comes_among_the_first_rows_is_learned_as_if_it_had_been_known(at):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    rows = [dict(zip("abc" if i >= at else "ab", x, strict=False)) for i, x in enumerate(X.tolist())]
    model = omkl.river.GraphMKLRegressor(seed=1, **SMALL)
    known = new_number_core("graph-mkl", omkl.GraphSettings(**SMALL), 1, "abc")
    for x, y in zip(rows, (X**2).sum(axis=1).tolist(), strict=True):
        model.learn_one(x, y)
        known.learn_row(x, y, 1.0)
    assert [model.predict_one(x) for x in rows] == [known.predict_row(x) for x in rows]


def test_features_in_most_rows_keep_a_place_in_the_kernels():
    model = omkl.river.GraphMKLRegressor(seed=1, **SMALL)
    for i in range(40):
        model.learn_one({"a": float(i % 7), f"user_{i}": 1, "b": 1.0 * (i % 3)}, float(i % 5))
    found = model._core.columns
    assert set(found.names[: found.named]) == {"a", "b"}
    assert len(found.names) == 42


@pytest.mark.parametrize("zeros", [False, True])
def test_effects_of_users_are_learned(zeros):
    """One-hot features, whether or not the rows have the zeros too."""
    rng = np.random.default_rng(0)
    effect, squares = rng.normal(scale=2, size=30), []
    model = omkl.river.GraphMKLRegressor(seed=1)
    for i in range(900):
        user, a = rng.integers(30), rng.normal()
        x = ({f"user_{k}": 0 for k in range(30)} if zeros else {}) | {"a": a, f"user_{user}": 1}
        y = effect[user] + a + 0.1 * rng.normal()
        if i >= 600:
            squares.append((model.predict_one(x) - y) ** 2)
        model.learn_one(x, y)
    assert np.mean(squares) < 0.1  # of 5, 0.01 of it noise


def test_effects_of_few_users_are_learned():
    rng = np.random.default_rng(0)
    effect, squares = [3.0, -1.0, 5.0, 0.0, -4.0], []
    model = omkl.river.GraphMKLRegressor(seed=1)
    for i in range(400):
        user = int(rng.integers(5))
        x, y = {f"user_{user}": 1}, effect[user] + 0.1 * rng.normal()
        if i >= 300:
            squares.append((model.predict_one(x) - y) ** 2)
        model.learn_one(x, y)
    assert np.mean(squares) < 0.1


def test_words_are_learned_better_than_by_a_linear_model():
    ours, linear = omkl.river.GraphMKLRegressor(seed=1), linear_model.LinearRegression()
    squares = []
    for x, y in words(1500):
        squares.append([(model.predict_one(x) - y) ** 2 for model in (ours, linear)])
        for model in (ours, linear):
            model.learn_one(x, y)
    mine, theirs = np.mean(squares[1000:], axis=0)
    assert mine < theirs


@EVERY
def test_a_row_with_a_value_that_cannot_be_used_changes_nothing(name):
    model = learned(name, words(40))
    before, x = omkl.to_bytes(model), next(words(1))[0]
    for bad in ({**x, "new": float("inf")}, {**x, next(iter(x)): float("-inf")}, {**x, "new": [1, 2]}):
        with pytest.raises(ValueError, match="must"):
            model.learn_one(bad, target(name, 1.0))
    assert omkl.to_bytes(model) == before


@EVERY
def test_features_that_are_not_known_have_no_effect_on_a_prediction(name):
    model, x = learned(name, words(40)), next(words(1, seed=3))[0]
    assert predictions(model, [({**x, "new": 5.0}, 0)]) == predictions(model, [(x, 0)])


@pytest.mark.parametrize("change", [{"named": 0}, {"named": 10**6}, {"room": -1}, {"room": 10**6}, {"room": 1.5}])
def test_a_file_with_other_columns_is_refused(change, tmp_path):
    from omkl.estimators.files import decode_columns

    model = learned("GraphMKLRegressor", words(40))
    found = model._core.columns
    body = {"named": found.named, "room": found.room}
    assert decode_columns("graph-mkl", found.names, body).index == found.index
    with pytest.raises(ValueError, match=r"columns|names"):
        decode_columns("graph-mkl", found.names, body | change)


def test_limits_fit_the_algorithm():
    assert omkl.river.GraphMKLRegressor(seed=1, **SMALL)._start(["a"]).columns.limits == OF_SPARSE
    assert omkl.river.RakerRegressor(seed=1, **SMALL)._start(["a"]).columns.limits == OF_OTHERS


def staircase(rows, width, text_from):
    """Rows in which one column after another begins, one of them of text; a column that has begun stays."""
    rng = np.random.default_rng(3)
    for i in range(rows):
        x = {f"c{k:02d}": float(v) for k, v in enumerate(rng.normal(size=width)) if k <= i}
        yield x | ({"word": "ab"[i % 2]} if i >= text_from else {}), round(float(sum(x.values())), 3)


@pytest.mark.filterwarnings("ignore:column:UserWarning")  # notices are not the subject
@pytest.mark.parametrize("learner", ["graph-mkl", "raker"])
@pytest.mark.parametrize("text_from", [8, 33, 99])
def test_columns_that_begin_one_after_another_give_the_same_through_all_interfaces(learner, text_from, tmp_path):
    rows = list(staircase(40, 30, text_from))
    (tmp_path / "t.jsonl").write_text("".join(json.dumps({**x, "target": y}) + "\n" for x, y in rows))
    arguments = ["--target", "target", "--learner", learner, "--predictions", tmp_path / "p.jsonl", "--every", 11]
    result = invoke("run", tmp_path / "t.jsonl", *arguments, "--model", tmp_path / "m.omkl")
    assert result.exit_code == 0, result.output
    expected = pd.read_json(tmp_path / "p.jsonl", lines=True, precise_float=True)["prediction"].tolist()
    kind = {"graph-mkl": "GraphMKLRegressor", "raker": "RakerRegressor"}[learner]
    river, frames = (getattr(omkl.river, kind)(seed=0) for _ in range(2))
    single = []
    for x, y in rows:
        single.append(river.predict_one(x))
        river.learn_one(x, y)
    assert bool(river._core.columns.room) == (text_from > MAX_NAMED)
    assert single == expected
    table, targets = pd.DataFrame([x for x, _ in rows]), [y for _, y in rows]
    assert frames.predict_then_learn(table, targets).tolist() == expected
    model = getattr(omkl, kind)(random_state=0)
    assert model.predict_then_learn(table, targets).tolist() == expected
    assert omkl.to_bytes(model.core_.online) == omkl.to_bytes(river._core.online)
    np.testing.assert_array_equal(omkl.load(tmp_path / "m.omkl").predict(table[33:]), model.predict(table[33:]))


@pytest.mark.filterwarnings("ignore:column:UserWarning")  # notices are not the subject
@pytest.mark.filterwarnings("ignore::omkl.SharedFeaturesWarning")  # it is meant to
@pytest.mark.parametrize("name", ["GraphMKLRegressor", "RakerRegressor"])
@pytest.mark.parametrize("own", [500, 130])
def test_the_command_line_continues_a_model_with_columns_made_ahead(name, own, tmp_path, monkeypatch):
    for limits in ("OF_SPARSE", "OF_OTHERS"):
        monkeypatch.setattr(columns, limits, Limits(own, shared=8, room=16))
    model = learned(name, words(40))
    assert model._core.columns.room
    assert model._core.columns.sharing == (own == 130)
    rows = [(x | {"word": "abc"[k % 3], f"new {k}": k + 0.5}, y) for k, (x, y) in enumerate(words(6, seed=2))]
    omkl.save(model, tmp_path / "m.omkl")
    for part in (rows[:3], rows[3:]):  # the second time from the file that the command line has written
        (tmp_path / "t.jsonl").write_text("".join(json.dumps({**x, "y": y}) + "\n" for x, y in part))
        result = invoke("learn", tmp_path / "m.omkl", tmp_path / "t.jsonl", "--target", "y",
                        "--predictions", tmp_path / "p.jsonl")  # fmt: skip
        assert result.exit_code == 0, result.output
        expected = []
        for x, y in part:
            expected.append(model.predict_one(x))
            model.learn_one(x, y)
        found = pd.read_json(tmp_path / "p.jsonl", lines=True, precise_float=True)["prediction"].tolist()
        assert found == expected
