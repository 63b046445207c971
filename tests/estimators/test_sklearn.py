"""The scikit-learn API: its own checks, and what its users rely on."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_dataframe_column_names_consistency, estimator_checks_generator
from streams import in_raw_units, labels_of

import omkl
import omkl.river
from omkl.estimators.sklearn import ESTIMATORS

ALL = list(ESTIMATORS.values())
REGRESSORS = [kind for kind in ALL if kind.task == "regression"]
CLASSIFIERS = [kind for kind in ALL if kind.task == "classification"]
VARIANTS = [*(kind() for kind in ALL), omkl.SFGMKLRegressor(refine=True), omkl.SFGMKLClassifier(refine=True)]
CHECKS = [pair for model in VARIANTS for pair in estimator_checks_generator(model)]


def label(pair):
    model, check = pair
    return f"{model}-{check.func.__name__}-{check.keywords}"


@pytest.mark.filterwarnings("ignore")  # the checks pass data that warrants warnings
@pytest.mark.parametrize("pair", CHECKS, ids=label)
def test_estimator_passes_scikit_learns_check(pair):
    model, check = pair
    check(model)


@pytest.mark.parametrize("model", VARIANTS, ids=str)
def test_column_names_are_kept_and_enforced(model):
    check_dataframe_column_names_consistency(type(model).__name__, clone(model))


def stream(rows=300, labels=None):
    X, y = in_raw_units(rows, 3)
    return X, (y if labels is None else labels_of(rows, labels))


def learn(model, X, y):
    """Prequential predictions, whatever the kind of model."""
    if type(model) in REGRESSORS:
        return model.predict_then_learn(X, y)
    return model.predict_then_learn(X, y, classes=list("abc"))


@pytest.mark.parametrize("kind", ALL, ids=lambda c: c.__name__)
def test_a_chunk_equals_its_rows_one_at_a_time(kind):
    X, y = stream(labels=None if kind in REGRESSORS else "abc")
    chunk, rows = kind(random_state=1), kind(random_state=1)
    whole = learn(chunk, X, y)
    single = np.concatenate([learn(rows, X[k : k + 1], y[k : k + 1]) for k in range(len(X))])
    np.testing.assert_array_equal(whole, single)


@pytest.mark.parametrize("kind", ALL, ids=lambda c: c.__name__)
def test_predict_then_learn_predicts_what_predict_does_just_before(kind):
    X, y = stream(labels=None if kind in REGRESSORS else "abc")
    model = kind(random_state=1)
    learn(model, X[:100], y[:100])
    for k in range(100, 120):
        before = model.predict(X[k : k + 1])
        assert before == learn(model, X[k : k + 1], y[k : k + 1])


def test_fit_in_the_order_of_time_is_one_partial_fit_from_scratch():
    X, y = stream()
    fitted = omkl.SFGMKLRegressor(random_state=1, shuffle=False).fit(X[:50], y[:50]).fit(X, y)
    parts = omkl.SFGMKLRegressor(random_state=1).partial_fit(X[:120], y[:120]).partial_fit(X[120:], y[120:])
    np.testing.assert_array_equal(fitted.predict(X), parts.predict(X))
    assert fitted.n_samples_seen_ == len(X)


def test_units_of_inputs_and_target_do_not_matter():
    X, y = stream()
    plain = omkl.RakerRegressor(random_state=1).predict_then_learn(X, y)
    scaled = omkl.RakerRegressor(random_state=1).predict_then_learn(X * 2.0**20 - 2.0**10, y * 2.0**-30)
    np.testing.assert_allclose(scaled * 2.0**30, plain, rtol=1e-7)


def test_scale_none_leaves_the_data_as_they_are():
    X, y = stream()
    X, y = X / np.linalg.norm(X, axis=1).max(), (y - y.min()) / np.ptp(y)
    model = omkl.SFGMKLRegressor(random_state=1, scale="none", horizon=300, stabiliser="none", commit="first")
    settings = omkl.Settings.practical(horizon=300, stabiliser="none", commit="first")
    online = omkl.Online.make("sfg-mkl", settings, d=3, seed=1)
    np.testing.assert_array_equal(model.predict_then_learn(X, y), online.run(X, y))


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "arrow"])
@pytest.mark.parametrize("columns", [["height", "weight", "age"], ["2", "10", "1"]])
def test_frames_of_every_kind_give_what_river_gives(frame, columns):
    X, y = stream()
    table = frame(dict(zip(columns, X.T, strict=True)))
    model, rows = omkl.SFGMKLRegressor(random_state=1), omkl.river.SFGMKLRegressor(seed=1)
    river = []
    for values, target in zip(X.tolist(), y.tolist(), strict=True):
        x = dict(zip(columns, values, strict=True))
        river.append(rows.predict_one(x))
        rows.learn_one(x, target)
    np.testing.assert_array_equal(model.predict_then_learn(table, y), river)
    assert list(model.feature_names_in_) == columns


def test_attributes_describe_the_learner():
    X, y = stream()
    model = omkl.SFGMKLRegressor(refine=True, random_state=1).fit(X, y)
    assert len(model.kernels_) == 11
    for weights in (model.kernel_weights_, model.node_weights_):
        assert weights.shape == (11,)
        assert weights.sum() == pytest.approx(1, abs=1e-12)
    assert model.graph_.shape == (11, 11)
    assert (model.graph_.sum(axis=1) == 7).all()
    assert model.graph_[model.dominating_set_].any(axis=0).all()
    assert not (model.graph_ & ~model.refined_graph_).any()
    assert (model.n_samples_seen_, model.n_features_in_) == (300, 3)


def test_many_labels_have_a_row_of_weights_each():
    X, y = stream(labels="abcd")
    assert omkl.SFGMKLClassifier(random_state=1).fit(X, y).kernel_weights_.shape == (4, 11)


def test_weight_zero_teaches_nothing_about_the_target():
    X, y = stream()
    wrong = np.where(np.arange(300) % 2, y, -1000.0)
    weight = (np.arange(300) % 2).astype(float)
    model = omkl.RakerRegressor(random_state=1, scale="none", learning_rate=0.1)
    other = clone(model)
    model.partial_fit(X, wrong, sample_weight=weight)
    other.partial_fit(X, y, sample_weight=weight)
    np.testing.assert_array_equal(model.predict(X), other.predict(X))


def test_it_learns_in_a_pipeline_under_grid_search():
    X, y = load_diabetes(return_X_y=True)
    search = GridSearchCV(
        make_pipeline(StandardScaler(), omkl.SFGMKLRegressor(random_state=0)),
        {"sfgmklregressor__out_degree": [3, 7], "sfgmklregressor__kernels": ["paper", [omkl.Gaussian(1.0)] * 7]},
        cv=2,
    )
    search.fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_estimator_.score(X, y) > 0.2


def test_set_params_reaches_the_next_fit():
    X, y = stream()
    model = omkl.SFGMKLRegressor(random_state=0).set_params(out_degree=3).fit(X, y)
    assert (model.graph_.sum(axis=1) == 3).all()


def test_classifier_scores_probabilities_and_labels_agree():
    X, y = load_iris(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))
    model = omkl.RakerClassifier(random_state=0).fit(X[order], y[order])
    p = model.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_array_equal(model.classes_[p.argmax(axis=1)], model.predict(X))
    np.testing.assert_array_equal(model.decision_function(X).argmax(axis=1), p.argmax(axis=1))
    assert model.score(X, y) > 0.8


def test_which_label_comes_first_does_not_matter():
    X, y = stream(labels=["no", "yes"])
    flipped = np.where(y == "yes", "no", "yes")
    p = omkl.SFGMKLClassifier(random_state=1).fit(X, y).predict_proba(X)
    q = omkl.SFGMKLClassifier(random_state=1).fit(X, flipped).predict_proba(X)
    np.testing.assert_array_equal(p, q[:, ::-1])


def test_a_label_that_comes_late_has_learned_that_it_was_absent():
    """Declared from the start or appearing late, the learners of three labels are the same."""
    X, y = stream(labels="ab")
    y[250:260] = "c"
    late = omkl.SFGMKLClassifier(random_state=1)
    late.partial_fit(X[:250], y[:250], classes=list("abc"))
    late.partial_fit(X[250:], y[250:])
    whole = omkl.SFGMKLClassifier(random_state=1, shuffle=False).fit(X, y)
    np.testing.assert_array_equal(late.predict_proba(X), whole.predict_proba(X))
    one = omkl.Online.make("sfg-mkl", omkl.Settings.practical(loss="logistic"), d=3, seed=1)
    one.run(late.core_.inputs.__class__(3).learn(X), np.where(y == "c", 1.0, -1.0))
    np.testing.assert_array_equal(late.core_.each[2].state.theta, one.state.theta)


def test_the_first_partial_fit_of_a_classifier_needs_classes():
    X, y = stream(labels="ab")
    with pytest.raises(ValueError, match="classes must be given in the first call"):
        omkl.SFGMKLClassifier().partial_fit(X, y)


def test_a_label_that_is_not_in_classes_is_named_and_nothing_is_learned():
    X, y = stream(labels="ab")
    model = omkl.SFGMKLClassifier(random_state=0).partial_fit(X, y, classes=["a", "b"])
    with pytest.raises(ValueError, match="got \\['z'\\]"):
        model.partial_fit(X, np.full(len(X), "z"))
    assert model.n_samples_seen_ == len(X)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"out_degree": 50}, "out_degree must be between 1 and 11, got 50"),
        ({"kernels": []}, "dictionary of kernels is empty"),
        ({"kernels": "rbf"}, "kernels must be one of paper"),
        ({"n_features": 0}, "n_features must be a whole number of at least 1, got 0"),
        ({"stabiliser": "magic"}, "stabiliser must be one of none, aware, floor, project, got 'magic'"),
        ({"scale": "minmax"}, "scale must be online or none, got 'minmax'"),
        ({"refine": True, "beta": 0.5}, "beta must be at most 1/N"),
    ],
)
def test_the_message_about_bad_parameters_has_what_was_wanted(parameters, message):
    X, y = stream()
    with pytest.raises(ValueError, match=message):
        omkl.SFGMKLRegressor(**parameters).fit(X, y)


def test_plots_are_drawn_over_length_scales(tmp_path):
    import matplotlib

    matplotlib.use("Agg")
    X, y = stream()
    model = omkl.SFGMKLRegressor(refine=True, random_state=1).fit(X, y)
    for ax in (model.plot_weights(), model.plot_graph()):
        assert ax.get_xlabel() == "length scale"
        assert ax.has_data()
        ax.figure.savefig(tmp_path / "plot.png")
