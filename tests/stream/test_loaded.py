"""Models per key and models with lags in Python: the predictions of the command line, and methods that people try."""

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from command import invoke

import omkl

OPTIONS = {
    "by": ["--by", "who"],
    "by raker": ["--by", "who", "--learner", "raker"],
    "lags": ["--lags", "1,2", "--horizon", "2"],
    "by lags": ["--by", "who", "--lags", "1,2", "--lag-columns", "size", "--learner", "raker"],
}
ALL = pytest.mark.parametrize("options", OPTIONS.values(), ids=list(OPTIONS))


def frame(n: int = 120) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    out = pd.DataFrame({
        "size": rng.normal(size=n).round(3), "town": np.where(rng.random(n) < 0.5, "north", "south"),
        "who": [f"k{k}" for k in rng.integers(0, 3, n)],
    })  # fmt: skip
    out.loc[[7, 90], "size"] = np.nan
    return out.assign(y=(out["size"].fillna(0) + 2 * (out["who"] == "k1") + (out["town"] == "south")).round(4))


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    frame()[:80].to_csv("first.csv", index=False)
    frame()[80:].to_csv("second.csv", index=False)
    frame()[80:].drop(columns="y").to_csv("new.csv", index=False)
    return tmp_path


def run(*arguments: Any) -> pd.DataFrame:
    result = invoke(*arguments, "--predictions", "p.csv")
    assert result.exit_code == 0, result.output
    return pd.read_csv("p.csv")


@ALL
def test_predictions_are_those_of_the_command_line(here: Path, options: list[str]):
    run("run", "first.csv", "-t", "y", *options, "--model", "m.omkl")
    expected = run("predict", "m.omkl", "new.csv")
    model = omkl.load("m.omkl")
    X, y = frame()[80:].drop(columns="y"), frame()["y"][80:]
    np.testing.assert_array_equal(model.predict(X), expected["prediction"])
    np.testing.assert_array_equal(model.predict(pl.from_pandas(X)), expected["prediction"])
    assert model.predict_one(X.to_dict("records")[0]) == expected["prediction"][0]

    learned = run("learn", "m.omkl", "second.csv", "--out", "n.omkl")["prediction"]
    many, single, frames = (copy.deepcopy(model) for _ in range(3))
    np.testing.assert_array_equal(many.predict_then_learn(X, y), learned)
    for k, (x, target) in enumerate(zip(X.to_dict("records"), y, strict=True)):
        assert single.predict_one(x) == learned[k]
        single.learn_one(x, target)
    frames.partial_fit(X[:10], y[:10]).learn_many(frame()[90:])  # which has the column of the target
    after = omkl.load("n.omkl").predict(X)
    for each in (many, single, frames, pickle.loads(pickle.dumps(many))):
        np.testing.assert_array_equal(each.predict(X), after)
        assert each.n_samples_seen_ == omkl.load("n.omkl").n_samples_seen_


@ALL
def test_what_was_learned_in_python_continues_on_the_command_line(here: Path, options: list[str]):
    run("run", "first.csv", "-t", "y", *options, "--model", "m.omkl")
    model = omkl.load("m.omkl")
    model.partial_fit(frame()[80:])
    omkl.save(model, "python.omkl")
    run("learn", "m.omkl", "second.csv")
    assert run("predict", "m.omkl", "new.csv").equals(run("predict", "python.omkl", "new.csv"))
    assert type(omkl.load("python.omkl")) is type(model)


def test_intervals(here: Path):
    run("run", "first.csv", "-t", "y", *OPTIONS["lags"], "--model", "m.omkl")
    expected = run("predict", "m.omkl", "new.csv", "--coverage", "0.5,0.9")
    X = frame()[80:].drop(columns="y")
    found = omkl.load("m.omkl").predict_interval(X, [0.5, 0.9])
    np.testing.assert_array_equal(found[:, 0], expected.filter(like="lower"))
    np.testing.assert_array_equal(found[:, 1], expected.filter(like="upper"))

    run("run", "first.csv", "-t", "y", *OPTIONS["by"], "--model", "m.omkl")
    model = omkl.load("m.omkl")
    found, y_pred = model.predict_interval(X), model.predict(X)
    assert found.shape == (40, 2)
    np.testing.assert_allclose(found.mean(axis=1), y_pred)  # they lie around the predictions of the same key's model
    assert (found[:, 1] > found[:, 0]).all()
    assert model.predict_interval(X.assign(who="new")).tolist() == [[-np.inf, np.inf]] * 40
    assert model.predict_interval(X, [0.5, 0.9]).shape == (40, 2, 2)
    run("run", "first.csv", "-t", "y", *OPTIONS["by raker"], "--model", "m.omkl")
    with pytest.raises(NotImplementedError, match="models per key with the learner raker"):
        omkl.load("m.omkl").predict_interval(X)
    run("run", "first.csv", "-t", "y", *OPTIONS["lags"], "--learner", "raker", "--model", "m.omkl")
    with pytest.raises(ValueError, match="raker"):
        omkl.load("m.omkl").predict_interval(X)


def test_labels_too(here: Path):
    for name in ("first.csv", "second.csv"):
        table = pd.read_csv(name)
        table.assign(y=np.where(table["y"] > 1, "up", "down")).to_csv(name, index=False)
    run("run", "first.csv", "-t", "y", *OPTIONS["by raker"], "--model", "m.omkl")
    expected = run("predict", "m.omkl", "new.csv")["prediction"].tolist()
    model, X = omkl.load("m.omkl"), frame()[80:].drop(columns="y")
    assert model.predict(X).tolist() == expected
    assert model.classes_.tolist() == ["down", "up"]
    assert set(model.keys_) == {"k0", "k1", "k2"}
    with pytest.raises(ValueError, match="labels out of 'down', 'up', got 'sideways'"):
        model.learn_one(X.to_dict("records")[0], "sideways")
    with pytest.raises(NotImplementedError, match="with labels"):
        model.predict_interval(X)


def test_what_cannot_be_used_is_refused_and_changes_nothing(here: Path):
    run("run", "first.csv", "-t", "y", *OPTIONS["by"], "--model", "m.omkl")
    model, X = omkl.load("m.omkl"), frame()[80:].drop(columns="y")
    before = model.predict(X)
    without = X.drop(columns="who")
    for call in (lambda: model.predict(without), lambda: model.predict_one({"size": 1.0, "town": "north"}),
                 lambda: model.learn_one({"size": 1.0}, 2.0), lambda: model.partial_fit(without, before),
                 lambda: model.predict_interval(without)):  # fmt: skip
        with pytest.raises(ValueError, match="there is no column 'who', the key of this model; the columns are"):
            call()
    with pytest.raises(ValueError, match="'who', the key of this model, is empty in row 2"):
        model.predict(X.assign(who=[None if k == 2 else "k1" for k in range(40)]))
    with pytest.raises(ValueError, match="none of the columns 'size', 'town'"):
        model.predict(X[["who"]].assign(other=1.0))
    with pytest.raises(ValueError, match="y must be given, or X must have the column 'y'"):
        model.partial_fit(X)
    with pytest.raises(ValueError, match="a value for each of the 40 rows"):
        model.partial_fit(X, [1.0])
    with pytest.raises(ValueError, match="must hold numbers, got None in row 3"):
        model.partial_fit(X, [None if k == 3 else 1.0 for k in range(40)])
    with pytest.raises(ValueError, match="must hold numbers, got 'a' in row 0"):
        model.learn_one({"size": 1.0, "who": "k1"}, "a")
    with pytest.raises(AttributeError, match="holds numbers"):
        model.classes_  # noqa: B018  # it raises
    np.testing.assert_array_equal(model.predict(X), before)
    assert "key='who', 3 keys" in repr(model)


@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt])
@ALL
def test_a_batch_that_fails_in_the_middle_changes_nothing(
    here: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], error: type[BaseException]
):
    run("run", "first.csv", "-t", "y", *options, "--model", "m.omkl")
    model, other = omkl.load("m.omkl"), omkl.load("m.omkl")
    more = frame()[80:].assign(who=[f"k{k}" for k in range(40)], late="new column", y=1.0)
    learner = type(model.model.learner)
    learn, calls = learner.learn, iter(range(100))

    def fail(self: Any, *rows: Any) -> Any:
        out = learn(self, *rows)
        if next(calls) == 2 or "--horizon" not in options:
            raise error
        return out

    monkeypatch.setattr(learner, "learn", fail)
    with pytest.raises(error):
        model.partial_fit(more)
    monkeypatch.undo()
    X = frame()[80:].drop(columns="y")
    assert (model.n_samples_seen_, model.keys_) == (other.n_samples_seen_, other.keys_)
    np.testing.assert_array_equal(model.predict(X), other.predict(X))
    for each in (model, other):
        each.partial_fit(frame()[80:])
    np.testing.assert_array_equal(model.predict(X), other.predict(X))
