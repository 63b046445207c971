"""Targets of several columns: what each output learns is what it learns alone."""

import contextlib
import copy
import threading

import numpy as np
import pandas as pd
import polars as pl
import pytest
from command import invoke
from river import checks, compose, evaluate, metrics, preprocessing
from sklearn.exceptions import DataConversionWarning
from sklearn.metrics import r2_score
from streams import representatives

import omkl
import omkl.river
from omkl import engine
from omkl.errors import DivergenceError
from omkl.estimators.sklearn import ESTIMATORS

REGRESSORS = [kind for kind in ESTIMATORS.values() if kind.task == "regression"]
RIVER = [omkl.river.GraphMKLRegressor, omkl.river.RakerRegressor, omkl.river.SFGMKLRegressor]


def named(kind):
    return kind.__name__


def data(n=150, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    Y = np.column_stack((np.sin(2 * X[:, 0]), 1e3 * X[:, 1] + 50, X[:, 2] ** 2 + rng.normal(size=n)))
    return X, Y, rng.uniform(0, 3, n)


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@pytest.mark.parametrize("kind", representatives(REGRESSORS), ids=named)
def test_each_output_is_learned_as_if_it_were_alone(kind, method, weighted):
    X, Y, weight = data()
    w = weight if weighted else None
    several = getattr(kind(random_state=3), method)(X, Y, sample_weight=w)
    alone = [getattr(kind(random_state=3), method)(X, y, sample_weight=w) for y in Y.T]
    before = several.predict_then_learn(X, Y, sample_weight=w)
    assert before.shape == Y.shape
    for k, model in enumerate(alone):
        np.testing.assert_array_equal(before[:, k], model.predict_then_learn(X, Y[:, k], sample_weight=w))
        np.testing.assert_array_equal(several.predict(X)[:, k], model.predict(X))
    assert several.score(X, Y) == r2_score(Y, several.predict(X))
    assert several.n_samples_seen_ == alone[0].n_samples_seen_


def test_intervals_have_an_axis_of_outputs_and_are_those_of_single_outputs():
    X, Y, _ = data(300)
    several = omkl.GraphMKLRegressor(random_state=0)
    alone = [omkl.GraphMKLRegressor(random_state=0) for _ in Y.T]
    ahead = several.predict_interval_then_learn(X, Y, coverage=0.8)
    assert ahead.shape == (300, 3, 3)
    for k, model in enumerate(alone):
        np.testing.assert_array_equal(ahead[:, k], model.predict_interval_then_learn(X, Y[:, k], coverage=0.8))
        np.testing.assert_array_equal(several.predict_interval(X)[:, k], model.predict_interval(X))
        both = several.predict_interval(X, [0.5, 0.9])
        np.testing.assert_array_equal(both[:, k], model.predict_interval(X, [0.5, 0.9]))
        for mine, its in zip(several.predict(X, return_std=True), model.predict(X, return_std=True), strict=True):
            np.testing.assert_array_equal(mine[:, k], its)
    t = several.n_samples_seen_
    with pytest.raises(ValueError, match="coverage"):
        several.predict_interval_then_learn(X, Y, coverage=2.0)
    assert several.n_samples_seen_ == t
    with pytest.raises(NotImplementedError, match="use graph-mkl"):
        omkl.estimators.sklearn.RakerRegressor().fit(X, Y).core_.predict_interval(X, 0.9)


def frame_of(n=80):
    rng = np.random.default_rng(1)
    X = pd.DataFrame({"size": rng.normal(size=n), "town": np.array(["north", "south", "west"])[np.arange(n) // 30]})
    X.loc[3, "size"] = np.nan
    Y = pd.DataFrame({"price": X["size"].fillna(0) + (X["town"] == "south"), "rent": X.index * 0.1})
    return X, Y


@pytest.mark.parametrize("kind", [omkl.GraphMKLRegressor, omkl.RakerRegressor], ids=named)
def test_tables_are_encoded_once_and_outputs_keep_their_names(kind):
    """New categories come with later rows, so that features are added while all outputs learn."""
    X, Y = frame_of()
    several = kind(random_state=0).partial_fit(X, Y)
    assert several.target_names_ == ["price", "rent"]
    for k, name in enumerate(Y):
        alone = kind(random_state=0).partial_fit(X, Y[name])
        np.testing.assert_array_equal(several.predict(X)[:, k], alone.predict(X))
        row = {"size": 0.3, "town": "west"}
        assert several.predict_one(row)[name] == alone.predict_one(row)
    several.learn_one({"size": 0.3, "town": "east"}, {"rent": 2.0, "price": 1.0})
    assert several.n_samples_seen_ == len(X) + 1
    problems = [online.problem for online in several.core_.learners]
    assert all(problem is problems[0] for problem in problems)  # random features are in memory once
    polars = kind(random_state=0).partial_fit(pl.from_pandas(X), pl.from_pandas(Y))
    np.testing.assert_array_equal(polars.predict(X), kind(random_state=0).partial_fit(X, Y).predict(X))


def test_a_target_of_one_column_is_a_vector():
    X, Y, _ = data()
    with pytest.warns(DataConversionWarning):
        model = omkl.GraphMKLRegressor(random_state=0).fit(X, Y[:, :1])
    assert model.predict(X).shape == (150,)
    assert not hasattr(model, "target_names_")
    np.testing.assert_array_equal(model.predict(X), omkl.GraphMKLRegressor(random_state=0).fit(X, Y[:, 0]).predict(X))
    several = omkl.GraphMKLRegressor(random_state=0).fit(X, Y)
    assert several.fit(X, Y[:, 0]).predict(X).shape == (150,)
    assert not hasattr(several, "target_names_")


def test_targets_that_do_not_fit_are_refused_and_change_nothing():
    X, Y, _ = data()
    names = pd.DataFrame(Y, columns=["a", "b", "c"])
    model = omkl.GraphMKLRegressor(random_state=0).fit(X, names)
    before = model.predict(X)
    for wrong, message in [
        (Y[:, :2], "y must have 3 columns, as in the first call, got 2 columns"),
        (Y[:, 0], "3 columns, as in the first call, got one column"),
        (names[["b", "a", "c"]], "must be .'a', 'b', 'c'., in this order"),
        (np.where(np.arange(3) == 1, np.nan, Y), "NaN"),
        (Y[:-1], "inconsistent numbers of samples"),
    ]:
        with pytest.raises(ValueError, match=message):
            model.partial_fit(X, wrong)
    with pytest.raises(ValueError, match="one column, as in the first call, got 3 columns"):
        omkl.GraphMKLRegressor().fit(X, Y[:, 0]).partial_fit(X, Y)
    with pytest.raises(ValueError, match="unique column names"):
        omkl.GraphMKLRegressor().fit(X, pd.DataFrame(Y, columns=["a", "a", "c"]))
    with pytest.raises(ValueError, match=r"number for each of the targets .'a', 'b', 'c'."):
        model.learn_one({"0": 1.0}, 2.0)
    np.testing.assert_array_equal(model.predict(X), before)
    assert model.partial_fit(X, Y).n_samples_seen_ == 300  # an array has no names


@pytest.mark.parametrize("scale", ["none", "online"])
def test_rows_that_one_output_cannot_learn_are_learned_by_none(scale):
    X, Y, _ = data(60)
    Y[:, 0] = Y[:, 1] = 0.0  # these do not diverge
    model = omkl.RakerRegressor(scale=scale, stabiliser="none", learning_rate=1e3, random_state=0)
    model.partial_fit(X[:2], Y[:2])
    before, state = model.predict(X), copy.deepcopy(model)
    with pytest.raises(DivergenceError):
        model.partial_fit(X, Y)
    np.testing.assert_array_equal(model.predict(X), before)
    assert {online.t for online in model.core_.learners} == {2}
    few = X[:3]
    np.testing.assert_array_equal(model.partial_fit(few, few).predict(X), state.partial_fit(few, few).predict(X))


@pytest.mark.parametrize("at", [0, 1, 2])
def test_an_interrupt_leaves_no_output_behind(at):
    X, Y, _ = data()
    model = omkl.RakerRegressor(random_state=0).partial_fit(X, Y)
    expected = copy.deepcopy(model)
    core = model.core_.each[at]
    learn = core.learn_rows

    def interrupted(*args):
        core.learn_rows = learn
        raise KeyboardInterrupt

    core.learn_rows = interrupted
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(X, Y)
    np.testing.assert_array_equal(model.predict(X), expected.predict(X))
    assert {online.t for online in model.core_.learners} == {len(X)}


@pytest.mark.parametrize("budget", ["small", "standard"])
@pytest.mark.parametrize("at", ["before", "in the middle", "after"])
def test_an_interrupt_of_graph_mkl_leaves_no_output_behind(at, budget, monkeypatch):
    """It takes effect when the engine returns, which it does in the middle of a chunk where it needs more room."""
    X, Y, weight = data(600)
    model = omkl.GraphMKLRegressor(random_state=0, budget=budget, n_features=5).partial_fit(X[:100], Y[:100])
    expected = copy.deepcopy(model)
    called, make_room = (
        (engine.Runner, "run") if budget == "small" else (engine, "run_several"),
        engine.Runner.make_room,
    )

    def interrupted(*args):
        monkeypatch.undo()
        if at == "after":
            getattr(*called)(*args)
        raise KeyboardInterrupt

    def interrupted_later(self):
        if self.t > 300:
            interrupted(self)
        make_room(self)

    if at == "in the middle":
        monkeypatch.setattr(engine.Runner, "make_room", interrupted_later)
    else:
        monkeypatch.setattr(*called, interrupted)
    with expected_interrupt(budget == "standard" or at != "in the middle"):  # a small budget needs no room
        model.partial_fit(X, Y, sample_weight=weight)
    if at != "before":
        expected.partial_fit(X, Y, sample_weight=weight)
    np.testing.assert_array_equal(model.predict(X), expected.predict(X))
    assert len({online.t for online in model.core_.learners}) == 1


def expected_interrupt(comes):
    return pytest.raises(KeyboardInterrupt) if comes else contextlib.nullcontext()


@pytest.mark.parametrize("kind", representatives(REGRESSORS), ids=named)
@pytest.mark.parametrize("write", [omkl.to_bytes, "save"], ids=["bytes", "file"])
def test_a_loaded_model_continues_exactly(kind, write, tmp_path):
    X, Y, _ = data()
    Y = pd.DataFrame(Y, columns=["a", "b", "c"])
    model = kind(random_state=0).fit(X, Y)
    if write == "save":
        omkl.save(model, tmp_path / "m.omkl")
        loaded = omkl.load(tmp_path / "m.omkl")
    else:
        loaded = omkl.from_bytes(write(model))
    assert loaded.target_names_ == ["a", "b", "c"]
    np.testing.assert_array_equal(model.partial_fit(X, Y).predict(X), loaded.partial_fit(X, Y).predict(X))
    with pytest.raises(ValueError, match="columns of y must be"):
        loaded.partial_fit(X, Y.rename(columns={"a": "z"}))


def test_threads_take_turns():
    X, Y, _ = data(40)
    model = omkl.GraphMKLRegressor(random_state=0, n_features=5).partial_fit(X, Y)
    seen = []

    def learn():
        for _ in range(10):
            model.partial_fit(X, Y)
            copied = copy.deepcopy(model)
            seen.append({online.t for online in copied.core_.learners})

    threads = [threading.Thread(target=learn) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(len(each) == 1 for each in seen)
    assert model.n_samples_seen_ == 40 * 31


def test_the_command_line_has_one_target(tmp_path):
    X, Y, _ = data()
    omkl.save(omkl.GraphMKLRegressor(random_state=0).fit(X, Y), tmp_path / "m.omkl")
    pd.DataFrame(X).to_csv(tmp_path / "new.csv", index=False)
    found = invoke("predict", tmp_path / "m.omkl", tmp_path / "new.csv")
    assert found.exit_code == 2
    assert "it has 3 targets, and the command line has one" in found.stderr
    assert '"targets": [' in invoke("inspect", tmp_path / "m.omkl", "--json").stdout


# river


@pytest.mark.parametrize("kind", RIVER, ids=named)
def test_river_checks_of_regressors_with_several_targets_pass(kind):
    parameters = {"n_features": 5} if kind is omkl.river.GraphMKLRegressor else {}
    model = omkl.river.MultiTargetRegressor(kind(seed=1, **parameters))
    for check in checks.yield_checks(model):
        check(model.clone())


def rows_with_late_features(n=120, d=22):
    """Features that come later, more than are added by their names; some of them text."""
    rng = np.random.default_rng(5)
    for t in range(n):
        x = {f"x{k}": float(rng.normal()) for k in range(min(2 + t // 5, d)) if rng.random() < 0.9}
        if t > 70:
            x["town"] = "north" if rng.random() < 0.5 else "south"
        yield x, {"a": sum(v for v in x.values() if isinstance(v, float)), "b": float(rng.normal()), 3: 1e3 * t}


@pytest.mark.parametrize("kind", RIVER, ids=named)
def test_targets_of_dictionaries_are_learned_as_if_each_were_alone(kind):
    several, alone = omkl.river.MultiTargetRegressor(kind(seed=1)), {name: kind(seed=1) for name in ("a", "b", 3)}
    assert several.predict_one({"x0": 1.0}) == {}
    for t, (x, y) in enumerate(rows_with_late_features()):
        w = [1.0, 2.5, 0.0, 0.5][t % 4]
        if t:
            assert several.predict_one(x) == {name: model.predict_one(x) for name, model in alone.items()}
        several.learn_one(x, y, w)
        for name, model in alone.items():
            model.learn_one(x, y[name], w)
    loaded = omkl.from_bytes(omkl.to_bytes(several))
    for x, y in rows_with_late_features(10):
        several.learn_one(x, y)
        loaded.learn_one(x, y)
        assert loaded.predict_one(x) == several.predict_one(x)


def test_river_models_have_intervals_and_delayed_targets(tmp_path):
    several, alone = (
        omkl.river.MultiTargetRegressor(omkl.river.GraphMKLRegressor(seed=1)),
        omkl.river.GraphMKLRegressor(seed=1),
    )
    for x, y in rows_with_late_features(60):
        several.predict_one(x, key="k")
        several.learn_key("k", y)
        alone.learn_one(x, y["a"])
    found, expected = several.predict_one(x, with_interval=0.8)["a"], alone.predict_one(x, with_interval=0.8)
    assert (found.lower, found.upper) == (expected.lower, expected.upper)
    several.predict_one(x, key="late")
    omkl.save(several, tmp_path / "m.omkl")
    loaded = omkl.load(tmp_path / "m.omkl")
    loaded.learn_key("late", y)
    several.learn_key("late", y)
    assert loaded.predict_one(x) == several.predict_one(x)


def test_frames_of_targets_equal_dictionaries():
    X, Y = frame_of()
    rows, frames = (omkl.river.MultiTargetRegressor(omkl.river.GraphMKLRegressor(seed=1)) for _ in range(2))
    assert frames.predict_many(X).shape[1] == 0
    expected = []
    for x, y in zip(X.to_dict("records"), Y.to_dict("records"), strict=True):
        expected.append(list(rows.predict_one(x).values()) or [0.0, 0.0])
        rows.learn_one(x, y)
    found = frames.predict_then_learn(X, Y[["rent", "price"]])
    np.testing.assert_array_equal(found[["price", "rent"]].to_numpy(), expected)
    frames.learn_many(X, Y)
    assert list(frames.predict_many(X).columns) == ["rent", "price"]


def test_river_pipelines_and_metrics_take_several_targets():
    model = compose.Pipeline(
        preprocessing.StandardScaler(), omkl.river.MultiTargetRegressor(omkl.river.GraphMKLRegressor(seed=1))
    )
    X, Y, _ = data()
    stream = [(dict(enumerate(x)), dict(enumerate(y))) for x, y in zip(X.tolist(), Y.tolist(), strict=True)]
    metric = metrics.multioutput.MicroAverage(metrics.MAE())
    assert evaluate.progressive_val_score(stream, model, metric).get() < 200
    assert omkl.from_bytes(omkl.to_bytes(model)).predict_one(stream[0][0]) == model.predict_one(stream[0][0])


def test_targets_of_dictionaries_that_do_not_fit_are_refused():
    with pytest.raises(TypeError, match=r"must be a regressor of omkl.river"):
        omkl.river.MultiTargetRegressor(omkl.GraphMKLRegressor())
    with pytest.raises(TypeError, match=r"must be a regressor of omkl.river"):
        omkl.river.MultiTargetRegressor(preprocessing.StandardScaler() | omkl.river.GraphMKLRegressor())
    model = omkl.river.MultiTargetRegressor(omkl.river.GraphMKLRegressor(seed=1))
    for wrong in (2.0, {}, None):
        with pytest.raises(ValueError, match="y must be a dictionary"):
            model.learn_one({"x": 1.0}, wrong)
    with pytest.raises(ValueError, match="target 'b' must be a finite number, got None"):
        model.learn_one({"x": 1.0}, {"a": 1.0, "b": None})
    model.learn_one({"x": 1.0}, {"z": 1.0, "b": 2.0})  # what was refused has not fixed the targets
    for wrong in ({"z": 1.0}, {"z": 1.0, "b": 2.0, "c": 3.0}, 2.0):
        with pytest.raises(ValueError, match=r"each of the targets .'z', 'b'."):
            model.learn_one({"x": 1.0}, wrong)
    X, Y = frame_of()
    with pytest.raises(ValueError, match=r"must have the columns .'z', 'b'."):
        model.learn_many(X, Y)
    with pytest.raises(ValueError, match="a row for each of the 80 rows"):
        model.learn_many(X, pd.DataFrame({"z": [1.0], "b": [2.0]}))
