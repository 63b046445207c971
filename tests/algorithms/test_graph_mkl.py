"""GraphMKL as a whole: settings, features and labels that come late, runs in parts, and files of earlier versions."""

import json
import runpy
from pathlib import Path

import numpy as np
import pytest
from streams import graph_settings as small
from streams import raw_and_turning as stream

import omkl
import omkl.river
from omkl import algorithms
from omkl.algorithms import graph_mkl
from omkl.algorithms.graph_mkl import constants
from omkl.algorithms.graph_mkl.state import set_shapes, start_set
from omkl.estimators.cores import new_core
from omkl.online import Online

FILES = Path(__file__).parents[1] / "persist" / "files"

# Settings


@pytest.mark.parametrize(("given", "wanted"), [
    ({"orders": ()}, "orders must be whole numbers of at least 1, or None"),
    ({"orders": (0,)}, "orders must be whole numbers of at least 1, or None"),
    ({"singles": (0.5, -1.0)}, "singles must be positive numbers"),
    ({"min_leverage": 1.0}, "min_leverage must be a number from 0 to below 1"),
    ({"discount": -0.1}, "discount must be a number from 0 to below 1"),
])  # fmt: skip
def test_settings_are_checked(given, wanted):
    with pytest.raises(ValueError, match=wanted):
        omkl.GraphSettings(**given)


def test_defaults_that_depend_on_the_task_are_taken_where_nothing_is_chosen():
    number = algorithms.problem("graph-mkl", small(), d=2)
    label = algorithms.problem("graph-mkl", small(task="classification", outputs=2, memory=0.5), d=2)
    assert (number.discount, number.memory, number.min_leverage) == (0.1, 0.97, 0.05)
    assert (label.discount, label.memory, label.min_leverage) == (0.01, 0.5, 0.01)


def test_the_estimators_have_the_defaults_of_the_settings():
    for name in graph_mkl.Parameters.__dataclass_fields__:
        assert getattr(omkl.GraphMKLRegressor(), name) == getattr(graph_mkl.GraphSettings, name)


def test_the_header_of_the_build_has_every_constant():
    script = runpy.run_path(str(Path(__file__).parents[2] / "cmake" / "constants.py"))
    header = script["header"](constants.__file__, "omkl::graph_mkl")
    for name, value in vars(constants).items():
        if name.isupper() and not isinstance(value, tuple):
            assert any(f" {name} = {value!r}{end};" in header for end in ("", "u"))
    assert "constexpr long REFIT_AGES[] = {1, 2, 3, 4, 5, 6, 7, 8, 16, 64, 256};" in header


# Predictions and runs


def test_predicting_changes_nothing_and_is_what_the_round_will_predict():
    X, y = stream(700)
    online = omkl.Online.make("graph-mkl", small(), d=3, seed=0)
    online.run(X[:650], y[:650])
    for k in range(650, 700):
        prediction = online.predict(X[k])
        np.testing.assert_array_equal(prediction, online.predict(X[k]))
        np.testing.assert_array_equal(prediction, online.run(X[k : k + 1], y[k : k + 1])[0])


def test_a_run_in_parts_is_the_run():
    X, y = stream(800, change=400)
    whole = omkl.Online.make("graph-mkl", small(), d=3, seed=0).run(X, y)
    parts = omkl.Online.make("graph-mkl", small(), d=3, seed=0)
    np.testing.assert_array_equal(
        np.concatenate([parts.run(X[a : a + 37], y[a : a + 37]) for a in range(0, 800, 37)]), whole
    )


def test_river_and_scikit_learn_predict_the_same():
    X, y = stream(700)
    sklearn, river = omkl.GraphMKLRegressor(random_state=3), omkl.river.GraphMKLRegressor(seed=3)
    chunk = sklearn.predict_then_learn(X, y)
    for x, target, prediction in zip(X, y, chunk, strict=True):
        row = {str(k): v for k, v in enumerate(x)}
        assert river.predict_one(row) == prediction
        river.learn_one(row, target)
    dist = river.predict_one(row, with_dist=True)
    mean, std = sklearn.predict(X[-1:], return_std=True)
    assert (dist.mu, dist.sigma) == pytest.approx((mean[0], std[0]))


# Features and labels that come late


def test_features_of_a_new_input_start_from_nothing_and_gradient_experts_keep_the_others():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    y = X[:, 0] * X[:, 1] + X[:, 2]
    s = small(orders=(2,))
    online = omkl.Online("graph-mkl", algorithms.problem("graph-mkl", s, names=list("abcd")), 0)
    online.run(X, y)
    before, theta = online.problem, online.state.sets[0].coefficients.theta.copy()
    online.change_problem(algorithms.problem("graph-mkl", s, names=list("abcde")))
    now = online.state.sets[0].coefficients.theta
    moved = np.tile(online.problem.V[:, 4] != 0, 2)
    assert moved.any()
    assert not moved.all()
    for i in range(len(moved)):
        np.testing.assert_array_equal(now[i, ..., moved[i]], 0)
        # least squares are in test_least_squares.py
        np.testing.assert_array_equal(now[i, 1:][..., ~moved[i]], theta[i, 1:][..., ~moved[i]])
    kept = ~moved[:, : before.V.shape[2]]
    for old, new, same in zip(before.V, online.problem.V, kept, strict=True):  # the inputs are divided by sqrt(d)
        np.testing.assert_allclose(new[:4, same] / np.sqrt(5), old[:, same] / np.sqrt(4), rtol=1e-12)


@pytest.mark.parametrize(("rows", "challenger"), [(200, -1), (400, 0)])
def test_a_new_input_starts_a_challenger_once_the_incumbent_is_fitted(rows, challenger):
    X, y = stream(rows)
    online = omkl.Online("graph-mkl", algorithms.problem("graph-mkl", small(), names=list("abc")), 0)
    online.run(X, y)
    online.change_problem(algorithms.problem("graph-mkl", small(), names=list("abcd")))
    assert [part.age for part in online.state.sets] == [rows, challenger]


@pytest.mark.parametrize("seed", range(4))
def test_a_feature_that_comes_late_does_not_upset_the_predictions(seed: int):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(1600, 7))
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(1600)
    core = new_core("graph-mkl", "regression", omkl.GraphSettings(), seed, list("abcdef"))
    core.learn_rows(np.ascontiguousarray(X[:1500, :6]), y[:1500])
    core.add_features(["g"])
    after = (core.learn_rows(np.ascontiguousarray(X[1500:]), y[1500:]) - y[1500:]) ** 2
    assert after.mean() < y.var()  # better than having learned nothing


def test_a_label_that_comes_late_is_learned():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 2))
    y = np.where(X[:, 0] > 0, "right", "left")
    y[1000:][np.abs(X[1000:, 1]) > 1] = "far"
    model = omkl.GraphMKLClassifier(random_state=0)
    predictions = model.predict_then_learn(X, y, classes=["far", "left", "right"])
    assert np.mean(predictions[1500:] == y[1500:]) > 0.9
    p = model.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-9)


def test_a_label_that_was_announced_has_a_probability_before_it_comes():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    p = omkl.GraphMKLClassifier(random_state=0).predict_proba_then_learn(X, ["a"] * 40, classes=["a", "b", "c"])
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-9)
    assert (p > 0).all()
    assert p[-1, 0] > 0.9


# Model files


def test_a_regressor_of_format_version_1_predicts_and_learns_as_it_did():
    model = omkl.load(FILES / "version1-graph-mkl-regressor.omkl")
    wanted = json.loads((FILES / "version1-graph-mkl-regressor.json").read_text())
    X, y = np.array(wanted["X"]), np.array(wanted["y"])
    assert model.min_leverage == model.core_.online.problem.min_leverage == 0.04
    assert [part.age for part in model.core_.online.state.sets] == [420, 84]  # a trial is under way
    np.testing.assert_allclose(model.predict(X), wanted["predictions"], rtol=1e-12)
    np.testing.assert_allclose(model.predict_interval(X, 0.8), wanted["intervals"], rtol=1e-12)
    np.testing.assert_allclose(model.predict_then_learn(X, y), wanted["prequential"], rtol=1e-12)


def test_a_classifier_of_format_version_1_predicts_as_it_did_and_learns_as_models_do_today():
    model = omkl.load(FILES / "version1-graph-mkl-classifier.omkl")
    wanted = json.loads((FILES / "version1-graph-mkl-classifier.json").read_text())
    assert model.stack is False
    for row, p in zip(wanted["rows"], wanted["probabilities"], strict=True):
        assert model.predict_proba_one(row) == pytest.approx(p, rel=1e-12)
    core = model._core
    online = core.online
    reference = Online("graph-mkl", online.problem, checkpoint=online.checkpoint(), backend="numpy")
    for row, label in zip(wanted["rows"], wanted["labels"], strict=True):
        x, code = core.row(row, learn=True), core.labels.index(label)
        wanted_now = reference.run_unchecked(x[None], np.array([code], float))[0]
        assert list(model.predict_proba_one(row).values()) == pytest.approx(wanted_now, rel=1e-9)
        model.learn_one(row, label)
    assert online.t == reference.t


def calibrated(state, **changes):
    return state._replace(calibration=state.calibration._replace(**changes))


@pytest.mark.parametrize(("change", "complaint"), [
    (lambda s: s._replace(incumbent=1), "there is no incumbent"),
    (lambda s: calibrated(s, half_widths=0 * s.calibration.half_widths), "a half width is out of range"),
    (lambda s: calibrated(s, half_widths=20 * s.calibration.half_widths), "a half width is out of range"),
    (lambda s: calibrated(s, half_widths=s.calibration.half_widths[[1, 0, *range(2, 9)]]), "larger coverage are"),
    (lambda s: calibrated(s, half_widths=s.calibration.half_widths[1:]), "half_widths does not fit the problem"),
    (lambda s: calibrated(s, evidence=np.zeros(3)), "evidence does not fit the problem"),
    (lambda s: calibrated(s, evidence=np.ones(2)), "without rows"),
    (lambda s: calibrated(s, total=-np.ones(2)), "cannot be negative"),
    (lambda s: calibrated(s, scale=-1.0), "the scale of the errors is out of range"),
    (lambda s: calibrated(s, rows=8), "the scale of the errors is out of range"),
    (lambda s: calibrated(s, rows=2001, scale=1.0), "the number of rows must be a count"),
    (lambda s: calibrated(s, evidence=np.full(2, 8.1), since=np.ones(2)), "evidence .* is out of range"),
    (lambda s: s._replace(sets=(s.sets[0]._replace(evidence=np.zeros(2)), s.sets[1])), "sets.0.evidence does not fit"),
    (lambda s: s._replace(sets=(s.sets[0], s.sets[1]._replace(age=-2))), "the age of a set must be a count"),
    (lambda s: s._replace(sets=(s.sets[0], s.sets[1]._replace(age=-1.0))), "the age of a set must be a count"),
    (lambda s: s._replace(incumbent=2), "there are two sets of experts"),
    (lambda s: s._replace(trend=s.trend._replace(rounds=-1)), "the number of rounds must be a count"),
])  # fmt: skip
def test_a_state_that_cannot_be_is_refused(change, complaint):
    problem = algorithms.problem("graph-mkl", small(), d=2)
    state = graph_mkl.init(problem, np.zeros(2))
    graph_mkl.check_state(problem, state)
    with pytest.raises(ValueError, match=complaint):
        graph_mkl.check_state(problem, change(state))


def test_the_shapes_that_a_file_must_have_are_those_of_a_new_state():
    problem = algorithms.problem("graph-mkl", small(task="classification", outputs=3), d=2)
    arrays = {
        name: leaf for name, leaf in omkl.arrays.leaves(start_set(problem)).items() if isinstance(leaf, np.ndarray)
    }
    assert {name: array.shape for name, array in arrays.items()} == set_shapes(problem)


def test_a_state_is_checked_without_memory_for_the_problem_that_a_file_claims():
    problem = algorithms.problem("graph-mkl", small(task="classification", outputs=2), d=2)
    state = graph_mkl.init(problem, np.zeros(2))
    with pytest.raises(ValueError, match=r"sets.0.coefficients.theta does not fit the problem"):
        graph_mkl.check_state(problem._replace(K=2**50), state)
