"""What every classifier's probabilities have in common, in both APIs and on the command line."""

import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import omkl
import omkl.river
from omkl.estimators.classification import LEAST_PROBABILITY, probabilities
from omkl.estimators.declaration import Declaration
from omkl.estimators.distribution import normalised_rows
from omkl.stream.learner import SingleModel

CLASSIFIERS = [omkl.GraphMKLClassifier, omkl.RakerClassifier, omkl.SFGMKLClassifier, omkl.OMKLGFClassifier]
EVERY = pytest.mark.parametrize("kind", CLASSIFIERS, ids=lambda kind: kind.__name__)
ANNOUNCED = list("abcd")

INPUTS, WEIGHTS = [-1e9, -1.5, 0.0, 0.3, 2.0], [1e-9, 0.5, 1.0, 1e3]
streams = st.lists(
    st.tuples(st.sampled_from(INPUTS), st.sampled_from("abc"), st.sampled_from(WEIGHTS)), min_size=1, max_size=30
)


def small(kind, **seed):
    return kind(kernels=[omkl.Gaussian(0.5), omkl.Gaussian(2.0)], n_features=4, **seed)


def small_graph(kind, **seed):
    """SFG-MKL needs as many kernels as a node has neighbours."""
    return small(kind, **seed, **({"out_degree": 2} if "SFG" in kind.__name__ or "Graph" in kind.__name__ else {}))


def assert_probabilities(p):
    assert ((p > 0) & (p <= 1)).all()
    np.testing.assert_allclose(p.sum(axis=-1), 1, rtol=1e-14)


@EVERY
@given(rows=streams, cut=st.integers(1, 30))
@settings(max_examples=25)
def test_rows_sum_to_1_no_announced_label_has_0_and_the_largest_is_predicted(kind, rows, cut):
    X, y, w = np.array([[x] for x, _, _ in rows]), np.array([y for _, y, _ in rows]), np.array([w for _, _, w in rows])
    model, labels = small_graph(kind, random_state=0), small_graph(kind, random_state=0)
    for k, part in enumerate([slice(0, cut), slice(cut, None)]):
        if len(X[part]) == 0:
            continue
        classes = ANNOUNCED if k == 0 else None
        p = model.predict_proba_then_learn(X[part], y[part], classes=classes, sample_weight=w[part])
        assert_probabilities(p)
        if k == 0:
            np.testing.assert_allclose(p[0], 0.25, rtol=1e-15)
        predicted = labels.predict_then_learn(X[part], y[part], classes=classes, sample_weight=w[part])
        np.testing.assert_array_equal(predicted, model.classes_[p.argmax(axis=1)])
        p = model.predict_proba(X)
        assert_probabilities(p)
        np.testing.assert_array_equal(model.predict(X), model.classes_[p.argmax(axis=1)])


@EVERY
@given(rows=streams)
@settings(max_examples=15)
def test_in_the_river_api_the_labels_seen_so_far_share_a_probability_of_1(kind, rows):
    model = small_graph(getattr(omkl.river, kind.__name__), seed=0)
    seen = []
    for x, y, w in rows:
        row = {"x": x}
        p = model.predict_proba_one(row)
        assert list(p) == seen
        if seen:
            assert_probabilities(np.array(list(p.values())))
            assert p[model.predict_one(row)] == max(p.values())
        model.learn_one(row, y, w)
        seen += [] if y in seen else [y]


@pytest.mark.parametrize("kind", CLASSIFIERS[1:], ids=lambda kind: kind.__name__)
def test_a_label_that_has_not_come_in_t_rows_has_1_over_t_plus_the_number_of_labels(kind):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(50, 2)), np.array(["a"] * 20 + ["b"] * 30)
    model = kind(random_state=0)
    p = model.predict_proba_then_learn(X, y, classes=list("abc"))
    t = np.arange(50)
    np.testing.assert_allclose(p[:, 2], 1 / (t + 3), rtol=1e-14)
    np.testing.assert_allclose(p[:21, 1], 1 / (t[:21] + 3), rtol=1e-14)
    np.testing.assert_allclose(model.predict_proba(X)[:, 2], 1 / 53, rtol=1e-14)
    seen = copy.deepcopy(model.core_)
    seen.n_classes = None
    np.testing.assert_allclose(p := model.predict_proba(X)[:, :2] / (52 / 53), seen.probabilities(X), rtol=1e-13)
    assert (p.max(axis=1) > 0.5).all()


def test_the_lowest_score_still_has_a_probability():
    p = probabilities(np.array([[-1e5, 3.0], [-1e5, -1e6], [1e308, -1e308], [-np.inf, 0.0]]))
    assert_probabilities(p[:3])
    assert p[0, 0] == pytest.approx(LEAST_PROBABILITY / probabilities(np.array([[3.0, 3.0]]))[0, 0], rel=1)
    assert p[3].tolist() == [0, 1]
    assert_probabilities(normalised_rows(np.array([[0.0, 1.0, 0.0], [0.3, 0.3, 0.4]])))


@pytest.mark.parametrize("algorithm", ["graph-mkl", "raker", "sfg-mkl", "omkl-gf"])
def test_on_the_command_line_the_labels_seen_so_far_share_a_probability_of_1(algorithm):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2)), np.array([*"aaab", *rng.choice(list("abc"), 36)], dtype=object)
    learner = SingleModel(Declaration(algorithm, "classification"), seed=0)
    learner.add_features(["u", "v"])
    out = learner.learn(X, y, None, (0.9,))
    seen = {label: list(y).index(label) for label in out.labels}
    for row, p in enumerate(out.probabilities):
        known = np.array([seen[label] < row for label in out.labels])
        assert not p[~known].any()
        if row:
            assert_probabilities(p[known])
            assert out.y_pred[row] == out.labels[int(p.argmax())]
    assert out.y_pred[0] is None
    assert_probabilities(learner.predict(X, None, (0.9,)).probabilities)
