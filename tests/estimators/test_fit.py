"""fit as users of scikit-learn expect it: the order of rows does not matter, weights are counts, epochs are passes."""

import numpy as np
import pytest
from sklearn.datasets import load_iris, load_wine
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_score

import omkl
from omkl.estimators.river import ESTIMATORS as RIVER
from omkl.estimators.sklearn import ESTIMATORS
from omkl.estimators.sklearn.fitting import FitRows, without_order

ALL = pytest.mark.parametrize("kind", ESTIMATORS.values(), ids=ESTIMATORS)


def data(kind, rows=160, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(rows, 3))
    y = np.sin(5 * X[:, 0]) + X[:, 1] * X[:, 2]
    return X, np.where(y > y.mean(), "more", "less") if kind.task == "classification" else y


@pytest.mark.parametrize("seed", [0, 1, None])  # with one pass, 1 is below on iris
@pytest.mark.parametrize("load", [load_iris, load_wine])
def test_labels_in_the_order_of_classes_are_learned(load, seed):
    X, y = load(return_X_y=True)
    assert cross_val_score(omkl.GraphMKLClassifier(random_state=seed), X, y, cv=5).mean() >= 0.95


@ALL
def test_the_order_of_the_rows_does_not_matter_to_fit_unless_told_so(kind):
    X, y = data(kind)
    order = np.random.default_rng(1).permutation(len(X))
    one, other = (kind(random_state=0).fit(X[rows], y[rows]) for rows in (slice(None), order))
    np.testing.assert_array_equal(one.predict(X), other.predict(X))
    one, other = (kind(random_state=0, shuffle=False).fit(X[rows], y[rows]) for rows in (slice(None), order))
    assert omkl.to_bytes(one.core_.online) != omkl.to_bytes(other.core_.online)


@ALL
def test_a_weight_in_fit_is_as_many_copies(kind):
    X, y = data(kind)
    weight = np.random.default_rng(0).integers(0, 4, size=len(X))
    heavy = kind(random_state=0).fit(X, y, sample_weight=weight)
    copied = kind(random_state=0).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_array_equal(heavy.predict(X), copied.predict(X))


@pytest.mark.parametrize("kind", RIVER.values(), ids=RIVER)
def test_a_weight_is_about_as_many_copies_on_a_stream(kind):
    """For labels the error is that of the probabilities; river's estimators share their cores with scikit-learn's."""
    X, y = data(kind, 700)
    labels = kind.task == "classification"
    weight = np.random.default_rng(0).choice([1, 4], size=400, p=[0.8, 0.2])
    heavy, copied = kind(seed=0), kind(seed=0)
    rows = [dict(zip("abc", x, strict=True)) for x in X.tolist()]
    for row, target, w in zip(rows, y.tolist(), weight.tolist(), strict=False):
        heavy.learn_one(row, target, w=float(w))
        for _ in range(w):
            copied.learn_one(row, target)

    def error(model):
        if labels:
            return np.mean([(1 - model.predict_proba_one(r)[t]) ** 2 for r, t in zip(rows[400:], y[400:], strict=True)])
        return np.mean([(model.predict_one(r) - t) ** 2 for r, t in zip(rows[400:], y[400:], strict=True)]) + 0.01

    assert error(heavy) == pytest.approx(error(copied), rel=0.02)


@pytest.mark.parametrize("seed", range(3))
def test_a_weight_is_about_as_many_copies_for_trees_and_wide_least_squares(seed):
    """Steps and many rows, so that these are what predicts."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (2000, 4))
    y = np.sin(4 * X[:, 0]) + (X[:, 1] > 0) + X[:, 2] * X[:, 3] + 0.2 * rng.standard_normal(2000)
    weight = rng.choice([1, 4], size=1000, p=[0.8, 0.2])
    copies = np.repeat(np.arange(1000), weight)
    heavy, copied = (omkl.GraphMKLRegressor(random_state=0, budget="standard") for _ in range(2))
    heavy.partial_fit(X[:1000], y[:1000], sample_weight=weight)
    copied.partial_fit(X[copies], y[copies])
    errors = [np.mean((model.predict(X[1000:]) - y[1000:]) ** 2) for model in (heavy, copied)]
    assert errors[0] == pytest.approx(errors[1], rel=0.02)


def test_epochs_are_passes_and_refused_where_they_are_none():
    X, y = data(omkl.RakerRegressor)
    scores = [omkl.RakerRegressor(random_state=0, epochs=epochs).fit(X, y).score(X, y) for epochs in (1, 5)]
    assert scores[1] > scores[0]
    assert omkl.RakerRegressor(random_state=0, epochs=3).fit(X, y).n_samples_seen_ == 3 * len(X)
    for parameters in ({"epochs": 0}, {"epochs": 1.5}, {"epochs": 10_001}, {"epochs": "few"}, {"shuffle": "yes"}):
        with pytest.raises(ValueError, match=r"epochs|shuffle"):
            omkl.RakerRegressor(**parameters).fit(X, y)


def test_labels_of_few_rows_are_learned_twice_by_default():
    X, y = np.arange(1001.0)[:, None], np.arange(1001) % 2
    for rows, parameters, epochs in ((1000, {}, 2), (1001, {}, 1), (1000, {"shuffle": False}, 1)):
        auto, given = (
            omkl.RakerClassifier(random_state=0, **parameters, **more).fit(X[:rows], y[:rows])
            for more in ({}, {"epochs": epochs})
        )
        assert auto.n_samples_seen_ == epochs * rows
        assert omkl.to_bytes(auto.core_.online) == omkl.to_bytes(given.core_.online)
    weight = np.repeat([1.0, 0.0], [1000, 1])  # a row without weight does not count
    assert omkl.RakerClassifier(random_state=0).fit(X, y, sample_weight=weight).n_samples_seen_ == 2000
    assert omkl.RakerRegressor(random_state=0).fit(X[:100], y[:100]).n_samples_seen_ == 100


def test_rows_sorted_by_label_are_warned_about(recwarn):
    X, y = load_iris(return_X_y=True)
    omkl.RakerClassifier(random_state=0).fit(X, y)
    order = np.random.default_rng(0).permutation(150)
    omkl.RakerClassifier(random_state=0).partial_fit(X[order], y[order], classes=range(3)).partial_fit(X[:40], y[:40])
    assert not recwarn
    with pytest.warns(UserWarning, match="sorted by label"):
        omkl.RakerClassifier(random_state=0).partial_fit(X, y, classes=range(3))


def test_copies_are_merged_unless_the_same_inputs_come_with_other_targets():
    X, y = np.array([[2.0], [1.0], [2.0], [3.0]]), np.array([5.0, 4.0, 5.0, 6.0])
    rows = without_order(FitRows(X, y, np.array([1.0, 2.0, 3.0, 0.0])))
    np.testing.assert_array_equal(rows.X[:, 0], [1, 2])
    np.testing.assert_array_equal(rows.weight, [2, 4])
    y[2] = 7.0
    rows = without_order(FitRows(X, y, None))
    np.testing.assert_array_equal(rows.X[:, 0], [1, 2, 2, 3])
    assert rows.weight is None


@pytest.mark.parametrize("epochs", [2, 10])
def test_epochs_keep_intervals_honest(epochs):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(2000, 4))
    y = np.sin(5 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=2000)
    once, often = (omkl.GraphMKLRegressor(random_state=0, epochs=n).fit(X[:600], y[:600]) for n in (1, epochs))
    assert often.score(X[600:], y[600:]) > once.score(X[600:], y[600:]) - 0.02
    low, high = often.predict_interval(X[600:], coverage=0.9).T
    assert 0.85 <= np.mean((low < y[600:]) & (y[600:] < high)) <= 0.95


def test_weights_for_a_rare_class_find_more_of_it_and_rank_no_worse():
    found = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(6000, 6))
        y = (rng.random(6000) < 1 / (1 + np.exp(5.6 - X @ [1.5, -1.0, 0.8, 0, 0, 0]))).astype(int)
        for weight in (1.0, 25.0):
            model = omkl.GraphMKLClassifier(random_state=seed)
            model.partial_fit(X[:3000], y[:3000], classes=[0, 1], sample_weight=np.where(y[:3000], weight, 1.0))
            p = model.predict_proba(X[3000:])[:, 1]
            found.append((weight, roc_auc_score(y[3000:], p), np.mean(p[y[3000:] == 1] > 0.5)))
    auc, recall = ({w: np.mean([f[k] for f in found if f[0] == w]) for w in (1.0, 25.0)} for k in (1, 2))
    assert auc[25.0] > auc[1.0] - 0.03
    assert recall[25.0] > recall[1.0] + 0.3


def test_several_coverages_and_logarithms_of_probabilities():
    X, y = data(omkl.GraphMKLRegressor)
    model = omkl.GraphMKLRegressor(random_state=0).fit(X, y)
    both = model.predict_interval(X, coverage=[0.5, 0.9])
    assert both.shape == (len(X), 2, 2)
    for k, coverage in enumerate((0.5, 0.9)):
        np.testing.assert_array_equal(both[:, :, k], model.predict_interval(X, coverage))
    X, y = data(omkl.GraphMKLClassifier)
    classifier = omkl.GraphMKLClassifier(random_state=0).fit(X, y)
    np.testing.assert_array_equal(classifier.predict_log_proba(X), np.log(classifier.predict_proba(X)))
