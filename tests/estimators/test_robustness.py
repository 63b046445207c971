"""Raw streams with everything that real data have: no crash, no divergence, no chunk learned in part."""

import pickle
import threading

import numpy as np
import pytest

import omkl
import omkl.river
from omkl.estimators.sklearn import ESTIMATORS

ALL = list(ESTIMATORS.values())
REGRESSORS = [kind for kind in ALL if kind.task == "regression"]
CLASSIFIERS = [kind for kind in ALL if kind.task == "classification"]


def base(rows=600, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, d))
    return X, np.sin(2 * X[:, 0]) + X[:, 1]


def constant_features(X, y):
    X[:, 1], X[:, 2] = 7.0, -1e12
    return X, y


def duplicated_rows(X, y):
    return np.repeat(X[:60], 10, axis=0), np.repeat(y[:60], 10)


def the_same_row_again_and_again(X, y):
    return np.repeat(X[:1], 600, axis=0), np.repeat(y[:1], 600)


def targets_at_1e9(X, y):
    return X, y * 1e9 + 1e9


def targets_at_1e_minus_9(X, y):
    return X, y * 1e-9


def a_feature_that_jumps_by_1e6(X, y):
    X[300:, 0] += 1e6
    return X, y


def the_largest_numbers(X, y):
    X[::7, 0], X[1::7, 1], y[::5], y[1::5] = 1e300, -1e300, 1e300, -1e300
    return X, y


def the_smallest_numbers(X, y):
    return X * 1e-310, y * 1e-310


def a_target_that_never_changes(X, y):
    return X, np.full_like(y, 3.25)


def noise_alone(X, y):
    return X, np.random.default_rng(1).standard_cauchy(len(y))


STREAMS = [
    constant_features, duplicated_rows, the_same_row_again_and_again, targets_at_1e9, targets_at_1e_minus_9,
    a_feature_that_jumps_by_1e6, the_largest_numbers, the_smallest_numbers, a_target_that_never_changes, noise_alone,
]  # fmt: skip


@pytest.mark.parametrize("make", STREAMS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("kind", REGRESSORS, ids=lambda c: c.__name__)
def test_a_regressor_stays_finite_and_near_the_targets_on_every_stream(kind, make):
    X, y = make(*base())
    predictions = kind(random_state=0).predict_then_learn(X, y)
    assert np.isfinite(predictions).all()
    assert (np.abs(predictions[5:]) <= 2 * np.abs(y).max()).all()


@pytest.mark.parametrize("make", [targets_at_1e9, targets_at_1e_minus_9], ids=lambda f: f.__name__)
@pytest.mark.parametrize("kind", REGRESSORS, ids=lambda c: c.__name__)
def test_a_regressor_learns_whatever_the_units(kind, make):
    X, y = base(rows=2000)
    unit = kind(random_state=0).predict_then_learn(X, y)
    X, target = make(X, y)
    predictions = kind(random_state=0).predict_then_learn(X, target)
    quality = np.mean((unit - y)[1000:] ** 2) / np.var(y)
    assert np.mean((predictions - target)[1000:] ** 2) / np.var(target) == pytest.approx(quality, rel=1e-4)
    assert quality < 0.6


def test_a_target_that_never_changes_is_predicted_to_the_last_digits():
    X, y = a_target_that_never_changes(*base())
    for kind in REGRESSORS:
        np.testing.assert_allclose(kind(random_state=0).predict_then_learn(X, y)[1:], 3.25, rtol=1e-15)


@pytest.mark.parametrize("kind", CLASSIFIERS, ids=lambda c: c.__name__)
def test_labels_that_never_change_are_predicted(kind):
    X, y = base()
    same = np.full(len(y), "spam")
    model = kind(random_state=0)
    assert (model.predict_then_learn(X, same, classes=["ham", "spam"]) == "spam")[1:].all()
    assert np.isfinite(model.decision_function(X)).all()
    river = getattr(omkl.river, kind.__name__)(seed=0)
    for x in X[:50]:
        river.learn_one(dict(enumerate(x)), "spam")
    assert river.predict_proba_one(dict(enumerate(X[0]))) == {"spam": 1.0}


@pytest.mark.parametrize("make", [constant_features, a_feature_that_jumps_by_1e6, the_largest_numbers])
@pytest.mark.parametrize("kind", CLASSIFIERS, ids=lambda c: c.__name__)
def test_a_classifier_predicts_probabilities_on_every_stream(kind, make):
    X, y = base()
    labels = np.digitize(y, [-1, 1])
    X, _ = make(X, y.copy())
    p = kind(random_state=0).predict_proba_then_learn(X, labels, classes=[0, 1, 2])
    assert ((p >= 0) & (p <= 1)).all()
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-12)


@pytest.mark.parametrize("kind", ALL, ids=lambda c: c.__name__)
def test_a_value_in_row_500_that_is_not_finite_is_named_and_the_chunk_is_refused_whole(kind):
    X, y = base(rows=1000)
    target = y if kind in REGRESSORS else np.sign(y)
    model = kind(random_state=0).fit(X[:100], target[:100])
    before = pickle.dumps(model)
    bad = X.copy()
    accepts_missing = kind in (omkl.GraphMKLRegressor, omkl.GraphMKLClassifier)
    bad[500, 2] = np.inf if accepts_missing else np.nan
    with pytest.raises(ValueError, match="infinity" if accepts_missing else "NaN"):
        model.partial_fit(bad, target)
    assert pickle.dumps(model) == before
    online = omkl.Online.make("sfg-mkl", omkl.Settings(), d=4)
    with pytest.raises(ValueError, match="row 500, column 2"):
        online.run(bad, y)
    assert online.t == 0


@pytest.mark.parametrize("kind", ALL, ids=lambda c: c.__name__)
def test_empty_chunks_change_nothing(kind):
    X, y = base()
    target = y if kind in REGRESSORS else np.sign(y)
    model = kind(random_state=0).fit(X, target)
    before = pickle.dumps(model)
    model.partial_fit(X[:0], target[:0])
    assert len(model.predict_then_learn(X[:0], target[:0])) == 0
    assert pickle.dumps(model) == before
    assert omkl.Online.make("raker", omkl.Settings(), d=4).run(X[:0], y[:0]).shape == (0,)


def test_a_chunk_that_diverges_is_refused_whole():
    X, y = base()
    model = omkl.SFGMKLRegressor(random_state=0, stabiliser="none", learning_rate=1000.0)
    model.partial_fit(X[:3], y[:3])
    before = pickle.dumps(model)
    with pytest.raises(omkl.DivergenceError, match="stabiliser='aware'"):
        model.partial_fit(X, y)
    assert pickle.dumps(model) == before


def test_a_million_rows_of_noise_leave_a_learner_finite_and_no_larger():
    rng = np.random.default_rng(0)
    model = omkl.SFGMKLRegressor(random_state=0)
    model.partial_fit(rng.normal(size=(1000, 4)), rng.normal(size=1000))
    size = len(omkl.to_bytes(model))
    for _ in range(10):
        X, y = rng.normal(size=(100_000, 4)), rng.normal(size=100_000)
        predictions = model.predict_then_learn(X, y)
    assert np.isfinite(predictions).all()
    assert np.mean((predictions - y) ** 2) < 1.1
    assert abs(len(omkl.to_bytes(model)) - size) < 50
    state = model.core_.online.state
    assert all(np.isfinite(a).all() for a in (state.theta, state.log_w, state.log_u))


@pytest.mark.parametrize("kind", REGRESSORS, ids=lambda c: c.__name__)
def test_one_thread_may_predict_while_another_learns(kind):
    X, y = base(rows=3000)
    model, alone = kind(random_state=0), kind(random_state=0)
    for m in (model, alone):
        m.partial_fit(X[:10], y[:10])
    done, failures, calls = threading.Event(), [], []

    def keep_predicting():
        while not done.is_set():
            predictions = model.predict(X[:20])
            calls.append(1)
            if not np.isfinite(predictions).all():
                failures.append(predictions)

    thread = threading.Thread(target=keep_predicting)
    thread.start()
    for k in range(10, 3000, 130):
        model.partial_fit(X[k : k + 130], y[k : k + 130])
        alone.partial_fit(X[k : k + 130], y[k : k + 130])
    done.set()
    thread.join()
    assert not failures
    assert calls
    np.testing.assert_array_equal(model.predict(X[:100]), alone.predict(X[:100]))
