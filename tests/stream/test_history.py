"""Scores of a run: those that scikit-learn computes from the same predictions."""

import numpy as np
import pytest
from sklearn import metrics

from omkl.stream.history import History
from omkl.stream.predictions import LateTargets, Predictions

ROWS = 700  # more than there are bins


def in_pieces(history: History, make: type[Predictions], *columns: np.ndarray | None) -> History:
    for start in range(0, ROWS, 90):
        part = slice(start, start + 90)
        history.update(make(*(None if c is None else c[part] for c in columns)), LateTargets.none())
    return history


def test_scores_of_labels_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    names = np.array(["calm", "gust", "storm"])
    p = rng.dirichlet([2, 1, 1], ROWS)
    y_true = names[rng.integers(3, size=ROWS)]
    y_pred = names[p.argmax(axis=1)]
    of_truth = p[np.arange(ROWS), np.searchsorted(names, y_true)]
    history = in_pieces(History("classification"), Predictions, np.arange(1, ROWS + 1), None, y_pred.astype(object),
                        None, None, p.max(axis=1), y_true.astype(object), of_truth)  # fmt: skip
    summary = history.summary()
    assert summary["scored"] == ROWS
    assert summary["accuracy"] == pytest.approx(metrics.accuracy_score(y_true, y_pred))
    assert summary["log_loss"] == pytest.approx(metrics.log_loss(y_true, p, labels=names))
    np.testing.assert_array_equal(
        history.confusion[:3, :3], metrics.confusion_matrix(y_true, y_pred, labels=list(history.places))
    )


def test_scores_of_numbers_are_those_of_scikit_learn_and_intervals_are_closed():
    rng = np.random.default_rng(1)
    y_true = rng.normal(size=ROWS).round(1)
    y_pred = y_true + rng.normal(size=ROWS).round(1)
    lower, upper = y_pred[:, None] - [0.5, 1.0], y_pred[:, None] + [1.0, 2.0]
    history = in_pieces(History("regression", (0.8, 0.95)), Predictions, np.arange(1, ROWS + 1), None,
                        y_pred, lower, upper, None, y_true, None)  # fmt: skip
    summary = history.summary()
    assert summary["mse"] == pytest.approx(metrics.mean_squared_error(y_true, y_pred))
    assert summary["rmse"] == pytest.approx(metrics.root_mean_squared_error(y_true, y_pred))
    assert summary["mae"] == pytest.approx(metrics.mean_absolute_error(y_true, y_pred))
    inside = np.mean((lower <= y_true[:, None]) & (y_true[:, None] <= upper), axis=0)
    assert summary["coverages"] == dict(zip(("0.8", "0.95"), inside, strict=True))
    assert "coverage" not in summary
    so_far = np.concatenate(([0.0], np.cumsum(y_true)[:-1] / np.arange(1, ROWS)))
    assert summary["baseline_mse"] == pytest.approx(metrics.mean_squared_error(y_true, so_far))


def test_a_probability_of_0_for_the_true_label_costs_no_more_than_1e_15():
    history = History("classification")
    one = np.array(["a"], dtype=object)
    history.update(Predictions(np.array([1]), None, one, None, None, np.array([1.0]), np.array(["b"], dtype=object),
                               np.array([0.0])), LateTargets.none())  # fmt: skip
    assert history.summary()["log_loss"] == pytest.approx(-np.log(1e-15))
