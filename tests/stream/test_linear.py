"""The linear baseline: it is what other libraries compute from the rows before, and depends on nothing else."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal
from sklearn.linear_model import Ridge
from sklearn.preprocessing import StandardScaler

from omkl.algorithms.base import Task
from omkl.errors import ModelFileError
from omkl.stream.linear import GROWTH, MARGIN, MAX_FULL, MAX_WAIT, LinearModel

ROWS = 90


def data(task: Task, d: int = 3, rows: int = ROWS, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(3, 2, (rows, d))
    score = X @ rng.normal(size=d) + rng.normal(size=rows)
    y = np.array(["low", "mid", "high"], dtype=object)[np.digitize(score, np.quantile(score, [0.3, 0.8]))]
    return X, score if task == "regression" else y


def new(task: Task, d: int) -> LinearModel:
    model = LinearModel(task)
    model.extend([np.nan] * d)
    return model


def fitted_rows() -> list[int]:
    """For each row, how many rows are behind the fit that predicts it."""
    out, fitted, waiting = [], 0, 0
    for _ in range(ROWS):
        out.append(fitted)
        waiting += 1
        if waiting >= min(max(fitted // GROWTH, 1), MAX_WAIT):
            fitted, waiting = fitted + waiting, 0
    return out


def test_numbers_are_predicted_by_ridge_regression_of_the_rows_before():
    X, y = data("regression")
    predicted = new("regression", 3).learn(X, y)
    for t, n in enumerate(fitted_rows()):
        if n < 2:
            assert predicted[t] == (y[0] if n else 0.0)
            continue
        scaler = StandardScaler().fit(X[:n])
        wanted = Ridge(1.0).fit(scaler.transform(X[:n]), y[:n]).predict(scaler.transform(X[t : t + 1]))[0]
        margin = MARGIN * np.ptp(y[:n])
        assert predicted[t] == pytest.approx(np.clip(wanted, y[:n].min() - margin, y[:n].max() + margin), abs=1e-9)


def test_labels_are_predicted_by_gaussians_that_share_a_covariance():
    X, y = data("classification")
    predicted = new("classification", 3).learn(X, y)
    assert predicted[0] is None
    for t, n in enumerate(fitted_rows()):
        if n < 2:
            continue
        scaler = StandardScaler().fit(X[:n])
        Z, z = scaler.transform(X[:n]), scaler.transform(X[t : t + 1])[0]
        labels = list(dict.fromkeys(y[:n]))
        means = {label: Z[y[:n] == label].mean(axis=0) for label in labels}
        rest = Z - np.array([means[label] for label in y[:n]])
        covariance = (rest.T @ rest + np.eye(3)) / n
        scores = [np.log((y[:n] == k).mean()) + multivariate_normal(means[k], covariance).logpdf(z) for k in labels]
        assert predicted[t] == labels[int(np.argmax(scores))]


WIDTHS = [3, MAX_FULL + 1]


@pytest.mark.parametrize("d", WIDTHS)
@pytest.mark.parametrize("task", ["regression", "classification"])
@settings(max_examples=20)
@given(cuts=st.lists(st.integers(1, ROWS - 1), max_size=6))
def test_predictions_do_not_depend_on_pieces_or_files(task: Task, d: int, cuts: list[int]):
    X, y = data(task, d)
    X[::7, 1] = np.nan
    whole = new(task, d).learn(X, y)
    model, parts = new(task, d), []
    for start, stop in zip([0, *sorted(cuts)], [*sorted(cuts), ROWS], strict=True):
        parts.append(model.learn(X[start:stop], y[start:stop]))
        arrays: dict[str, Any] = {}
        body = json.loads(json.dumps(model.encode(arrays), allow_nan=False))
        model = LinearModel.decode(task, body, arrays)
    assert np.concatenate(parts).tolist() == whole.tolist()


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_a_prediction_depends_on_nothing_that_comes_later(task: Task):
    X, y = data(task)
    before = new(task, 3).learn(X, y)
    X[50:], y[51:] = -X[50:], y[:39]
    assert new(task, 3).learn(X, y)[:50].tolist() == before[:50].tolist()


def test_a_feature_that_comes_later_was_what_its_fill_says_before():
    X, y = data("regression", 2)
    X[:40, 1] = 0.0
    late = LinearModel("regression")
    late.extend([np.nan])
    first = late.learn(X[:40, :1], y[:40])
    late.extend([0.0])
    both = LinearModel("regression")
    both.extend([np.nan, 0.0])
    np.testing.assert_allclose(np.concatenate((first, late.learn(X[40:], y[40:]))), both.learn(X, y), atol=1e-9)


def test_a_missing_value_is_the_mean_and_a_feature_may_be_missing_for_long():
    X, y = data("regression")
    X[:30, 2] = np.nan
    model = new("regression", 3)
    model.learn(X, y)
    at_mean = X[:1].copy()
    at_mean[0, 2] = model.centre[2]
    assert model.predict(X[:1]) == model.predict(at_mean)
    assert abs(model.centre[2] - np.nanmean(X[:, 2])) < 0.5 * np.nanstd(X[:, 2])


def test_many_features_are_learned_in_little_memory():
    d = MAX_FULL + 72
    X, y = data("regression", d, 3000)
    model = new("regression", d)
    predicted = model.learn(X, y)
    assert np.mean((predicted - y)[-1000:] ** 2) < 0.1 * y.var()
    assert (
        sum(getattr(model, name).size for name in vars(model) if isinstance(getattr(model, name), np.ndarray)) < 50 * d
    )


def test_it_stays_useful_when_features_become_many():
    X, y = data("regression", MAX_FULL + 10, 2500)
    model = new("regression", MAX_FULL - 10)
    model.learn(X[:1500, : MAX_FULL - 10], y[:1500])
    model.extend([np.nan] * 20)
    predicted = model.learn(X[1500:], y[1500:])
    assert np.mean((predicted - y[1500:])[-500:] ** 2) < 0.1 * y.var()


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_values_of_any_size_leave_predictions_finite(task: Task):
    X, y = data(task)
    X[5] = 1e100
    if task == "regression":
        y[7] = 1e90
    model = new(task, 3)
    predicted = model.learn(X, y)
    assert np.isfinite(predicted).all() if task == "regression" else set(predicted[1:]) <= {"low", "mid", "high"}


@pytest.mark.parametrize("name", ["mean", "moments", "slope", "scale", "rows", "targets"])
def test_a_baseline_that_does_not_fit_its_file_is_refused(name: str):
    model = new("classification", 3)
    model.learn(*data("classification"))
    arrays: dict[str, Any] = {}
    body = model.encode(arrays)
    for wrong in (arrays[f"linear.{name}"][:-1], np.append(arrays[f"linear.{name}"], 1.0)):
        with pytest.raises(ModelFileError):
            LinearModel.decode("classification", body, arrays | {f"linear.{name}": wrong})
