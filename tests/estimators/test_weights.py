"""Weights of rows: those that no state could hold are refused before anything changes, all others keep it finite."""

import math

import numpy as np
import pandas as pd
import pytest

import omkl
import omkl.river
from omkl import algorithms
from omkl.arrays import leaves
from omkl.errors import DivergenceError
from omkl.estimators.river import ESTIMATORS as RIVER
from omkl.estimators.sklearn import ESTIMATORS as SKLEARN
from omkl.validation import LARGEST_WEIGHT

REFUSED = [1e300, 1.0001 * LARGEST_WEIGHT, math.inf, math.nan, -1.0, -5e-324]
LEARNED = [LARGEST_WEIGHT, 1e12, 1e-300, 5e-324, 0.0]


def data(kind, rows=60):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, 3))
    y = X[:, 0] + np.sin(X[:, 1])
    return X, (y > 0).astype(int) if kind.task == "classification" else y


def first_call(kind):
    return {"classes": [0, 1]} if kind.task == "classification" else {}


def assert_finite(learners):
    for online in learners:
        for name, leaf in leaves(online.state).items():
            if not isinstance(leaf, bool):
                assert np.isfinite(leaf).all(), name


@pytest.mark.parametrize("kind", SKLEARN.values(), ids=SKLEARN)
def test_a_chunk_with_a_weight_out_of_range_is_refused_whole(kind):
    X, y = data(kind)
    model = kind(random_state=0).partial_fit(X, y, **first_call(kind))
    before = omkl.to_bytes(model)
    for weight in REFUSED:
        given = np.ones(len(X))
        given[40] = weight
        with pytest.raises(ValueError, match=r"(?i)sample_weight|sample weights|negative"):
            model.partial_fit(X, y, sample_weight=given)
        with pytest.raises(ValueError, match=r"(?i)sample_weight|sample weights|negative"):
            model.predict_then_learn(X, y, sample_weight=given)
        assert omkl.to_bytes(model) == before


@pytest.mark.parametrize("kind", SKLEARN.values(), ids=SKLEARN)
def test_weights_within_range_leave_a_finite_state(kind):
    X, y = data(kind)
    for weight in filter(None, LEARNED):  # scikit-learn refuses weights that are all 0
        for every in (1, 2, 41):
            given = np.ones(len(X))
            given[::every] = weight
            model = kind(random_state=0).partial_fit(X, y, sample_weight=given, **first_call(kind))
            model.partial_fit(X[:1], y[:1], sample_weight=[weight])
            assert_finite(model.core_.learners)
            assert np.isfinite(np.asarray(model.predict(X), dtype=float)).all()


@pytest.mark.parametrize("kind", RIVER.values(), ids=RIVER)
def test_river_refuses_a_weight_out_of_range_and_learns_the_others(kind):
    X, y = data(kind, rows=30)
    model = kind(seed=0)
    rows = [{"a": x[0], "b": x[1]} for x in X.tolist()]
    for row, target in zip(rows, y.tolist(), strict=True):
        model.learn_one(row, target)
    before = omkl.to_bytes(model)
    for weight in REFUSED:
        with pytest.raises(ValueError, match=r"^w must be a finite number of at least 0"):
            model.learn_one({"a": 1.0, "new": 2.0}, y[0], w=weight)
        assert omkl.to_bytes(model) == before
    for weight in LEARNED:
        model.learn_one(rows[0], y[0].item(), w=weight)
        model.learn_one(rows[1], y[1].item())
        assert_finite(model._core.learners)


@pytest.mark.parametrize("learner", algorithms.names())
def test_online_refuses_a_weight_out_of_range_and_learns_the_others(learner):
    online = omkl.Online.make(learner, algorithms.get(learner).settings(), d=3, seed=0)
    X, y = data(SKLEARN["GraphMKLRegressor"], rows=30)
    online.run(X, y)
    for weight in REFUSED:
        with pytest.raises(ValueError, match="weight must be"):
            online.learn(X[0], y[0], weight)
        with pytest.raises(ValueError, match="weight must be"):
            online.run(X, y, np.where(np.arange(30) == 20, weight, 1.0))
        assert online.t == 30
    for weight in LEARNED:
        online.learn(X[0], y[0], weight)
        online.run(X, y, np.where(np.arange(30) % 3 == 0, weight, 1.0))
        assert_finite([online])


# A chunk that diverges


def leaves_of(core):
    """Copies of all that has been learned; a file would refuse so small a ridge."""
    found = [{name: np.array(leaf) for name, leaf in leaves(online.state).items()} for online in core.learners]
    return list(core.labels), found


def test_a_chunk_of_numbers_on_which_graph_mkl_diverges_is_refused_whole():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(340, 2)), np.round(rng.normal(size=340))
    model = omkl.GraphMKLRegressor(random_state=0, n_features=4, ridge=1e-300)
    model.partial_fit(X[:300], y[:300])
    before = leaves_of(model.core_)
    with pytest.raises(DivergenceError):
        model.partial_fit(X[300:], 1e8 * y[300:])
    np.testing.assert_equal(leaves_of(model.core_), before)
    with pytest.raises(DivergenceError):
        model.predict_interval_then_learn(X[300:], 1e8 * y[300:])
    np.testing.assert_equal(leaves_of(model.core_), before)


def test_a_chunk_of_labels_on_which_graph_mkl_diverges_is_refused_whole(monkeypatch):
    X, y = data(SKLEARN["GraphMKLClassifier"])
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = omkl.river.GraphMKLClassifier(seed=0, n_features=4, ridge=1e-300)
    model.learn_many(frame, y)
    before = leaves_of(model._core)
    learned = omkl.Online.run_unchecked

    def diverging(self, X, y, weight=None, extra=None):
        if y[0] == 3:
            raise DivergenceError("diverged")
        return learned(self, X, y, weight, extra)

    monkeypatch.setattr(omkl.Online, "run_unchecked", diverging)
    with pytest.raises(DivergenceError):
        model.learn_many(frame, ["new"] * 20 + ["newer"] * 40)  # labels 2 and 3
    np.testing.assert_equal(leaves_of(model._core), before)


def test_the_state_is_not_copied_for_rows_that_cannot_diverge(monkeypatch):
    X, y = data(SKLEARN["GraphMKLRegressor"])
    model = omkl.GraphMKLRegressor(random_state=0).partial_fit(X, y)
    assert model.core_.online.cannot_diverge(X, y)
    assert not model.core_.online.cannot_diverge(X * 1e40, y)
    assert not model.core_.online.cannot_diverge(X, y * 1e40)
    gaps = np.where(X > 1, np.nan, X)
    assert model.core_.online.cannot_diverge(gaps, y)
    fragile = omkl.GraphMKLRegressor(random_state=0, ridge=1e-30).partial_fit(X, y)
    assert not fragile.core_.online.cannot_diverge(X, y)
    monkeypatch.setattr(omkl.Online, "checkpoint", None)
    model.partial_fit(X, y)
