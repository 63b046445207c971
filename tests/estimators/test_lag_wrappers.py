"""Lags for users of river and of scikit-learn."""

import copy
import json
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from command import invoke
from river import checks, compose, datasets, evaluate, linear_model, metrics, preprocessing

import omkl
import omkl.river
from omkl.river import GraphMKLRegressor, Lags


def y_of(n: int = 200, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return 10 + np.sin(np.arange(n) * np.pi / 6) + 0.1 * rng.normal(size=n)


@pytest.mark.parametrize(
    "model",
    [
        Lags(preprocessing.StandardScaler() | linear_model.LinearRegression()),
        Lags(GraphMKLRegressor(n_features=5, seed=1), lags=[1, 3], horizon=2),
    ],
    ids=["linear", "graph-mkl"],
)
def test_lags_pass_the_checks_of_river(model):
    for check in checks.yield_checks(model):
        check(model.clone())


def test_lags_take_any_regressor_of_river():
    model = Lags(compose.Pipeline(preprocessing.StandardScaler(), linear_model.LinearRegression()), range(1, 13))
    error = evaluate.progressive_val_score([({}, y) for y in y_of(2000)], model, metrics.MAE())
    assert error.get() < 0.5


def test_forecasters_are_evaluated_by_river():
    data = [({"month": x["month"].month}, y) for x, y in datasets.AirlinePassengers()]
    model = Lags(GraphMKLRegressor(seed=1), lags=[1, 2, 12], horizon=12)
    error = evaluate.evaluate(data, model, metrics.MAE(), horizon=12)
    assert len(error.metrics) == 12


def test_a_forecast_changes_nothing_and_a_copy_forecasts_the_same():
    model = Lags(GraphMKLRegressor(seed=1), lags=[1, 12], horizon=12)
    for y in y_of():
        model.learn_one({}, y)
    found = model.forecast(12)
    assert model.forecast(12) == found
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert other.forecast(12) == found
        other.learn_one({}, 11.0)
        model_after = model.forecast(12)
        assert model_after == found
    with pytest.warns(UserWarning, match="make it with horizon=13"):
        assert model.forecast(13)[:12] == found


def test_a_target_that_comes_late_is_learned_by_its_key_and_not_used_before():
    """The same as a model to which the target had come in time, from the row on that may know it."""
    y = y_of(60)
    late, in_time = (Lags(linear_model.LinearRegression(), range(1, 9), horizon=2) for _ in range(2))
    for k, target in enumerate(y):
        if k == 40:
            late.predict_one({}, key="a")
        else:
            late.learn_one({}, target)
        in_time.learn_one({}, target)
        if k == 45:
            late.learn_key("a", y[40])
        if k in (45, 46):  # it is known two rows ahead of row 47
            assert np.isnan(late._past.next_row()).any() == (k == 45)
    assert late._past.late == in_time._past.late
    np.testing.assert_array_equal(late._past.values[""], in_time._past.values[""])
    with pytest.raises(KeyError, match="under the key 'a'"):
        late.learn_key("a", 1.0)


def test_rows_that_wait_are_limited():
    model = Lags(linear_model.LinearRegression(), max_waiting=2)
    model.predict_one({}, key=0)
    model.predict_one({}, key=1)
    with pytest.warns(UserWarning, match="max_waiting=2"):
        model.predict_one({}, key=2)
    with pytest.raises(KeyError):
        model.learn_key(0, 1.0)
    model.learn_key(1, 1.0)


def test_fit_forgets_and_partial_fit_continues():
    y = y_of()
    arguments = {"lags": [1, 12], "horizon": 3}
    whole = omkl.Lags(omkl.GraphMKLRegressor(random_state=0), **arguments).fit(None, y)
    parts = omkl.Lags(omkl.GraphMKLRegressor(random_state=0), **arguments).fit(None, y_of(seed=9))
    parts.fit(None, y[:77]).partial_fit(None, y[77:])
    np.testing.assert_array_equal(whole.forecast(5), parts.forecast(5))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(whole)).forecast(5), parts.forecast(5))
    assert whole.estimator_.n_samples_seen_ == 198  # two are not known three rows ahead of the next


@pytest.mark.parametrize("horizon", [1, 3])
def test_a_coverage_that_is_refused_changes_nothing(horizon):
    y = y_of()
    model = omkl.Lags(omkl.GraphMKLRegressor(random_state=0), [1, 2], horizon=horizon).fit(None, y[:100])
    with pytest.raises(ValueError, match="coverage must be"):
        model.predict_interval_then_learn(None, y[100:], coverage=2.0)
    other = omkl.Lags(omkl.GraphMKLRegressor(random_state=0), [1, 2], horizon=horizon).fit(None, y[:100])
    np.testing.assert_array_equal(model.forecast(5), other.forecast(5))
    with pytest.raises(NotImplementedError, match="use graph-mkl"):
        omkl.Lags(omkl.RakerRegressor(random_state=0), [1], horizon=horizon).predict_interval_then_learn(None, y)


def test_arrays_have_columns_by_their_place():
    y, X = y_of(), np.random.default_rng(0).normal(size=(200, 2))
    model = omkl.Lags(omkl.GraphMKLRegressor(random_state=0), [1], columns=["1"]).fit(X, y)
    assert model.estimator_.core_.names == ("0", "1 lag 1", "target lag 1")
    model.predict(X[:3])
    with pytest.raises(ValueError, match="2 features"):
        model.predict(X[:, :1])


def test_what_cannot_be_fitted_is_refused():
    y = y_of(20)
    with pytest.raises(TypeError, match="must be a regressor of omkl"):
        omkl.Lags(linear_model.LinearRegression()).fit(None, y)
    with pytest.raises(ValueError, match="columns must be among the columns"):
        omkl.Lags(omkl.GraphMKLRegressor(), columns=["x"]).fit(np.zeros((20, 1)), y)
    with pytest.raises(ValueError, match="y must be one number for each"):
        omkl.Lags(omkl.GraphMKLRegressor()).fit(np.zeros((20, 1)), y[:3])
    with pytest.raises(ValueError, match="has the name of a lag"):
        Lags(linear_model.LinearRegression()).learn_one({"target lag 1": 2.0}, 1.0)
    with pytest.raises(ValueError, match="inputs of all 2 rows"):
        Lags(linear_model.LinearRegression()).forecast(2, [{}])


# Inputs of any kind, and model files


def table(n: int = 130) -> pd.DataFrame:
    """Text, categories, dates, booleans, gaps, and a column and categories that begin later."""
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({
        "temp": rng.normal(size=n).round(3),
        "town": np.array(["north", "south", "west"])[np.minimum(np.arange(n) // 25, rng.integers(0, 3, n))],
        "when": pd.date_range("2024-01-01", periods=n, freq="7h"),
        "open": rng.random(n) < 0.5,
        "late": np.where(np.arange(n) < 40, np.nan, rng.normal(size=n)),
    })  # fmt: skip
    frame.loc[[20, 21, 70], "temp"] = np.nan
    frame["y"] = 5 + np.sin(np.arange(n) / 3) + (frame["town"] == "south") + 0.1 * rng.normal(size=n)
    frame.loc[[50, 51], "y"] = np.nan
    return frame


@pytest.mark.parametrize("horizon", [1, 3])
@pytest.mark.parametrize("columns", [None, {"temp": [0, 1], "late": [1]}], ids=["all", "lagged"])
def test_tables_with_lags_are_the_same_at_all_interfaces(tmp_path, horizon, columns):
    frame = table()
    frame[:110].to_csv(tmp_path / "d.csv", index=False)
    frame[110:].drop(columns="y").to_csv(tmp_path / "f.csv", index=False)
    lag_columns = [] if columns is None else ["--lag-columns", "temp=0,1", "--lag-columns", "late=1"]
    options = ["-t", "y", "--lags", "1,2", "--horizon", horizon, *lag_columns, "--model", tmp_path / "m.omkl"]
    for command, out in ((["run", tmp_path / "d.csv", *options], "p.csv"),
                         (["predict", tmp_path / "m.omkl", tmp_path / "f.csv"], "q.csv")):  # fmt: skip
        assert invoke(*command, "--predictions", tmp_path / out).exit_code == 0
    known, ahead = (pd.read_csv(tmp_path / name)[["prediction", "lower", "upper"]] for name in ("p.csv", "q.csv"))

    options = {"lags": [1, 2], "columns": columns, "horizon": horizon}
    sklearn = omkl.Lags(omkl.GraphMKLRegressor(random_state=0), **options)
    inputs, y = frame.drop(columns="y"), frame["y"]
    found = [
        sklearn.predict_interval_then_learn(X, y[at])
        for X, at in ((inputs[:60], slice(60)), (pl.from_pandas(inputs[60:61]), slice(60, 61)))
    ]
    found.append(sklearn.predict_interval_then_learn(inputs[61:110], y[61:110]))
    np.testing.assert_array_equal(np.vstack(found), known)
    future = frame[110:].drop(columns="y")
    np.testing.assert_array_equal(sklearn.predict(future), ahead["prediction"])
    np.testing.assert_array_equal(sklearn.predict_interval(future), ahead[["lower", "upper"]])

    river = Lags(GraphMKLRegressor(seed=0), **options)
    y_pred = []
    for row in frame[:110].to_dict("records"):
        target = row.pop("y")
        y_pred.append(river.predict_one(row))
        river.learn_one(row, target)
    assert y_pred == known["prediction"].tolist()
    assert river.forecast(horizon, future[:horizon].to_dict("records")) == ahead["prediction"][:horizon].tolist()


@pytest.mark.parametrize("horizon", [1, 3])
@pytest.mark.parametrize("kind", [omkl.GraphMKLRegressor, omkl.RakerRegressor], ids=lambda c: c.__name__)
def test_lags_of_scikit_learn_are_saved_and_continue_exactly(tmp_path, horizon, kind):
    frame = table()
    X, y = frame.drop(columns="y"), frame["y"]
    for given in (X, X[["temp"]].fillna(0.0), X[["temp"]].fillna(0.0).to_numpy(), None):
        model = omkl.Lags(kind(random_state=0), [1, 4], horizon=horizon)
        assert omkl.from_bytes(omkl.to_bytes(model)).get_params()["lags"] == (1, 4)
        first, rest = (None, None) if given is None else (given[:60], given[60:])
        model.fit(first, y[:60])
        omkl.save(model, tmp_path / "m.omkl")
        loaded = omkl.load(tmp_path / "m.omkl")
        np.testing.assert_array_equal(loaded.predict_then_learn(rest, y[60:]), model.predict_then_learn(rest, y[60:]))
        assert omkl.to_bytes(loaded) == omkl.to_bytes(model)
        if given is not None:
            np.testing.assert_array_equal(loaded.predict(given[:4]), model.predict(given[:4]))
    with pytest.raises(TypeError, match="no regressor of omkl"):
        omkl.to_bytes(omkl.Lags(linear_model.LinearRegression()))


@pytest.mark.parametrize("horizon", [1, 3])
@pytest.mark.parametrize("text", [True, False], ids=["table", "numbers"])
def test_lags_of_river_are_saved_and_continue_exactly(tmp_path, horizon, text):
    frame = table().drop(columns=[] if text else ["town", "when", "late"])
    rows = frame.drop(columns="y").to_dict("records")
    for regressor in (GraphMKLRegressor(seed=0), preprocessing.StandardScaler() | GraphMKLRegressor(seed=0)):
        if text and isinstance(regressor, compose.Pipeline):
            continue
        model = Lags(regressor, [1, 4], {"temp": [0, 2]} if text else None, horizon=horizon)
        for k, (x, y) in enumerate(zip(rows, frame["y"], strict=True)):
            x = x if text else {"temp": 0.0 if np.isnan(x["temp"]) else x["temp"]}
            if k == 60:
                omkl.save(model, tmp_path / "m.omkl")
                loaded = omkl.load(tmp_path / "m.omkl")
            for each in (model,) if k < 60 else (model, loaded):
                if k in (57, 80):
                    each.predict_one(x, key=k)
                else:
                    each.learn_one(x, y)
                if k == 63:
                    each.learn_key(57, 4.0)
            if k >= 60:
                assert loaded.predict_one(x) == model.predict_one(x)
        assert omkl.to_bytes(loaded) == omkl.to_bytes(model)
    with pytest.raises(TypeError, match="got LinearRegression"):
        omkl.to_bytes(Lags(linear_model.LinearRegression()))


def test_inspect_shows_what_a_model_with_lags_has_learned(tmp_path):
    frame = table()
    river = Lags(GraphMKLRegressor(seed=0), [1])
    for row in frame[:30].to_dict("records"):
        river.learn_one(row, row.pop("y"))
    sklearn = omkl.Lags(omkl.GraphMKLRegressor(random_state=0), [1]).fit(frame[:30].drop(columns="y"), frame["y"][:30])
    for model in (sklearn, river):
        omkl.save(model, tmp_path / "m.omkl")
        facts = json.loads(invoke("inspect", tmp_path / "m.omkl", "--json").stdout)
        assert facts["rows"] == 30
        assert {"town=north", "target lag 1"} <= set(facts["features"])


def test_a_pipeline_is_given_text_as_it_is():
    model = Lags(preprocessing.OneHotEncoder() | GraphMKLRegressor(seed=0), [1])
    for k, y in enumerate(y_of(30)):
        model.learn_one({"town": "north" if k % 2 else "south"}, y)
    # the encoder of the pipeline takes the lag for a category too
    assert {"town_north", "town_south"} <= set(model.regressor["GraphMKLRegressor"]._core.names)


def test_lags_are_for_numbers():
    with pytest.raises(TypeError, match=r"regressor of omkl.*since lags are past numbers"):
        omkl.Lags(omkl.GraphMKLClassifier()).fit(None, y_of())
    with pytest.raises(TypeError, match="must be a regressor, since lags are past numbers"):
        Lags(omkl.river.GraphMKLClassifier())
    frame = table()
    with pytest.raises(ValueError, match="columns must name columns of numbers; 'town' holds text"):
        omkl.Lags(omkl.GraphMKLRegressor(), columns=["town"]).fit(frame[["town"]], frame["y"])
    with pytest.raises(ValueError, match="columns must name columns of numbers; 'when' holds timestamps"):
        Lags(GraphMKLRegressor(), columns=["when"]).learn_one({"when": frame["when"][0]}, 1.0)


def test_a_table_that_is_refused_changes_nothing():
    frame = table()
    X, y = frame.drop(columns="y"), frame["y"]
    model, other = (omkl.Lags(omkl.GraphMKLRegressor(random_state=0), [1, 2]).fit(X[:60], y[:60]) for _ in range(2))
    with pytest.raises(ValueError, match="must be one number for each"):
        model.partial_fit(X[60:], y[:3])
    with pytest.raises(ValueError, match="coverage"):
        model.predict_interval_then_learn(X[60:], y[60:], coverage=3)
    with pytest.raises(ValueError, match="feature names"):
        model.fit(X[60:], y[60:]).predict(X[["temp"]])
    model = omkl.Lags(omkl.GraphMKLRegressor(random_state=0), [1, 2]).fit(X[:60], y[:60])
    with pytest.raises(ValueError, match="name of a lag"):
        omkl.Lags(omkl.GraphMKLRegressor(), [1]).fit(X.rename(columns={"late": "target lag 1"}), y)
    np.testing.assert_array_equal(
        model.partial_fit(X[60:], y[60:]).predict(X), other.partial_fit(X[60:], y[60:]).predict(X)
    )


def test_text_may_come_after_rows_of_numbers():
    y = y_of()
    rows = [{"a": float(k % 7)} | ({"town": "north" if k % 2 else "south"} if k > 50 else {}) for k in range(200)]
    model = Lags(GraphMKLRegressor(seed=0), [1])
    for x, target in zip(rows, y, strict=True):
        model.predict_one(x)
        model.learn_one(x, target)
    assert {"a", "town=north", "town=south", "target lag 1"} <= set(model.regressor._core.names)
    frame = pd.DataFrame({"a": np.arange(200) % 7.0, "b": 1.0})
    sklearn = omkl.Lags(omkl.GraphMKLRegressor(random_state=0), [1]).fit(frame[:50], y[:50])
    with pytest.warns(UserWarning, match="holds numbers and text"):
        sklearn.partial_fit(frame[50:].assign(b="text"), y[50:])
    assert "b=text" in sklearn.estimator_.core_.names


@pytest.mark.filterwarnings("ignore::UserWarning")  # there are more than 32 users
@pytest.mark.parametrize("name", ["GraphMKLRegressor", "RakerRegressor"])
def test_a_column_of_many_categories_is_learned_alike_in_both_apis(name):
    n, rng = 150, np.random.default_rng(3)
    users = rng.integers(40, size=n)
    frame = pd.DataFrame({"u": rng.normal(size=n), "user": [f"user {k}" for k in users]})
    y = users % 7 + 0.1 * rng.normal(size=n)
    lags = {"lags": [1], "columns": {"u": [0, 1]}}
    whole = omkl.Lags(getattr(omkl, name)(n_features=5, random_state=0), **lags)
    parts = omkl.river.Lags(getattr(omkl.river, name)(n_features=5, seed=0), **lags)
    predictions = []
    for row, target in zip(frame.to_dict("records"), y.tolist(), strict=True):
        predictions.append(parts.predict_one(row))
        parts.learn_one(row, target)
    found = [whole.predict_then_learn(frame[k : k + 1], y[k : k + 1])[0] for k in range(n)]
    assert predictions[60:] == found[60:]
    again = omkl.from_bytes(omkl.to_bytes(parts))
    assert again.predict_one(frame.iloc[7].to_dict()) == parts.predict_one(frame.iloc[7].to_dict())
