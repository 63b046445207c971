"""Lags for users of river and of scikit-learn."""

import copy
import pickle

import numpy as np
import pytest
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
