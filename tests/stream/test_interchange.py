"""Models go from the command line to Python and back."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from command import invoke
from tables import table

import omkl
import omkl.river

FILES = ["--predictions", "p.csv", "--model", "m.omkl"]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    text = table(160)
    head, *lines = text.splitlines()
    lines = [line for line in lines if not line.endswith(",")]
    for name, part in (("first.csv", lines[:90]), ("second.csv", lines[90:])):
        (tmp_path / name).write_text("\n".join([head, *part]) + "\n")
    return tmp_path


def run(*arguments: Any) -> None:
    result = invoke(*arguments)
    assert result.exit_code == 0, result.output


def predictions(name: str) -> Any:
    return pd.read_csv(name)["prediction"]


def second() -> tuple[pd.DataFrame, Any]:
    frame = pd.read_csv("second.csv")
    return frame.drop(columns="y"), frame["y"]


def as_labels() -> None:
    for name in ("first.csv", "second.csv"):
        frame = pd.read_csv(name)
        frame.assign(y=np.where(frame["y"] > 0, "up", "down")).to_csv(name, index=False)


@pytest.mark.parametrize("learner", ["graph-mkl", "raker"])
def test_what_omkl_run_saves_is_an_estimator_in_python(here: Path, learner: str):
    run("run", "first.csv", "--target", "y", "--learner", learner, *FILES)
    model, single = omkl.load("m.omkl"), omkl.load("m.omkl")
    assert type(model) is (omkl.GraphMKLRegressor if learner == "graph-mkl" else omkl.RakerRegressor)
    X, y = second()
    run("predict", "m.omkl", "second.csv", "--predictions", "q.csv")
    np.testing.assert_array_equal(model.predict(X), predictions("q.csv"))
    run("learn", "m.omkl", "second.csv", "--predictions", "q.csv", "--out", "n.omkl")
    expected = predictions("q.csv")
    np.testing.assert_array_equal(model.predict_then_learn(X, y), expected)
    for k, x in enumerate(X.to_dict("records")):
        assert single.predict_one(x) == expected[k]
        single.learn_one(x, y[k])
    learned = omkl.load("n.omkl")
    for each in (model, single, learned):
        np.testing.assert_array_equal(each.predict(X), model.predict(X))
    if learner == "graph-mkl":
        np.testing.assert_array_equal(model.predict_interval(X), learned.predict_interval(X))


def test_labels_too(here: Path):
    as_labels()
    run("run", "first.csv", "--target", "y", *FILES)
    model = omkl.load("m.omkl")
    assert model.classes_.tolist() == ["down", "up"]
    X, _ = second()
    run("predict", "m.omkl", "second.csv", "--predictions", "q.csv", "--probabilities")
    written = pd.read_csv("q.csv")
    assert model.predict(X).tolist() == written["prediction"].tolist()
    np.testing.assert_array_equal(model.predict_proba(X)[:, 1], written["probability of up"])
    assert set(model.predict_proba_one(X.to_dict("records")[0])) == {"down", "up"}
    model.learn_one(X.to_dict("records")[0], "sideways")
    assert model.classes_.tolist() == ["down", "sideways", "up"]
    assert model.predict_proba(X).shape == (len(X), 3)


@pytest.mark.parametrize("api", ["sklearn", "river"])
@pytest.mark.parametrize("labels", [False, True])
def test_what_python_saves_runs_under_the_command_line(here: Path, api: str, labels: bool):
    if labels:
        as_labels()
    kind = "RakerClassifier" if labels else "RakerRegressor"
    frame = pd.read_csv("first.csv")
    X, y = frame.drop(columns="y"), frame["y"]
    if api == "sklearn":
        model = getattr(omkl, kind)(random_state=1)
        model.partial_fit(X, y, **({"classes": ["down", "up"]} if labels else {}))
        target = []
    else:
        model = getattr(omkl.river, kind)(seed=1)
        model.learn_many(X, y)
        target = ["--target", "y"]
    omkl.save(model, "m.omkl")
    X, y = second()
    run("predict", "m.omkl", "second.csv", "--predictions", "q.csv")
    expected = model.predict(X) if api == "sklearn" else model.predict_many(X)
    assert predictions("q.csv").tolist() == expected.tolist()
    run("learn", "m.omkl", "second.csv", "--predictions", "q.csv", *target)
    assert predictions("q.csv").tolist() == list(model.predict_then_learn(X, y))
    again = omkl.load("m.omkl")
    many = model.predict(X) if api == "sklearn" else model.predict_many(X)
    assert again.predict(X).tolist() == many.tolist()


def test_an_estimator_of_numbers_reads_files_too(here: Path):
    frame = pd.read_csv("first.csv")[["c", "a", "y"]]
    model = omkl.GraphMKLRegressor(random_state=1).fit(frame[["c", "a"]], frame["y"])
    omkl.save(model, "m.omkl")
    run("predict", "m.omkl", "second.csv", "--predictions", "q.csv")
    X, _ = second()
    assert predictions("q.csv").tolist() == model.predict(X[["c", "a"]]).tolist()


def test_the_target_must_be_known_and_no_input(here: Path):
    frame = pd.read_csv("first.csv")
    omkl.save(omkl.RakerRegressor(random_state=1).fit(frame[["a", "c"]], frame["y"].tolist()), "m.omkl")
    result = invoke("learn", "m.omkl", "second.csv")
    assert result.exit_code == 2
    assert "--target" in result.stderr
    result = invoke("learn", "m.omkl", "second.csv", "--target", "a")
    assert result.exit_code == 2
    assert "is a column that it learned from" in result.stderr
    run("learn", "m.omkl", "second.csv", "--target", "y")
    result = invoke("learn", "m.omkl", "second.csv", "--target", "c")
    assert result.exit_code == 2
    assert "predicts 'y', not 'c'" in result.stderr


def test_rows_that_wait_are_named_when_a_model_is_loaded(here: Path):
    frame = pd.read_csv("first.csv").reset_index(names="id")
    frame.loc[80:, "y"] = np.nan
    frame.to_csv("w.csv", index=False)
    run("run", "w.csv", "--target", "y", "--key", "id", "--model", "m.omkl", "--learner", "raker")
    with pytest.warns(UserWarning, match="rows wait for their target in this model"):
        omkl.load("m.omkl")


def test_intervals_and_late_labels_within_a_pipeline_of_river():
    from river import compose, preprocessing

    pipe = compose.Pipeline(preprocessing.StandardScaler(), omkl.river.GraphMKLRegressor(seed=1))
    rng = np.random.default_rng(0)
    for _ in range(50):
        x = {"a": rng.normal(), "b": rng.normal()}
        pipe.learn_one(x, x["a"] + 0.1 * rng.normal())
    x = {"a": 0.5, "b": 0.0}
    interval = pipe.predict_one(x, with_interval=0.9)
    assert interval.lower < pipe.predict_one(x) < interval.upper
    wider = pipe.predict_one(x, with_interval=0.99)
    assert wider.lower <= interval.lower < interval.upper <= wider.upper
    pipe.predict_one(x, key="later")
    before = pipe["GraphMKLRegressor"]._core.online.t
    pipe["GraphMKLRegressor"].learn_key("later", 0.5)
    assert pipe["GraphMKLRegressor"]._core.online.t == before + 1
