"""Rows of numbers skip scikit-learn's validation once something is learned, and are learned and refused as with it."""

import numpy as np
import pandas as pd
import pytest

from omkl import GraphMKLRegressor, SFGMKLClassifier, SFGMKLRegressor
from omkl.estimators.sklearn import inputs

RNG = np.random.default_rng(0)
X = RNG.integers(-3, 4, (60, 3)).astype(float)
Y = X[:, 0] - 2 * X[:, 1]
FRAME = pd.DataFrame(X, columns=["a", "b", "c"])

FORMS = {
    "array": (lambda rows: X[rows], lambda rows: Y[rows]),
    "columns": (lambda rows: np.asfortranarray(X)[rows], lambda rows: Y[rows]),
    "integers": (lambda rows: X[rows].astype(int), lambda rows: Y[rows].astype(int)),
    "single precision": (lambda rows: X[rows].astype(np.float32), lambda rows: Y[rows].astype(np.float32)),
    "lists": (lambda rows: X[rows].tolist(), lambda rows: Y[rows].tolist()),
    "series": (lambda rows: X[rows], lambda rows: pd.Series(Y[rows])),
}
FRAMES = {
    "frame": FRAME,
    "frame of several types": FRAME.astype({"a": int, "b": np.float32}),
}


def never(*args, **kwargs):
    raise AssertionError("the rows were validated")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", [SFGMKLRegressor, GraphMKLRegressor])
def test_numbers_are_not_validated_and_learned_as_validated_ones(kind, form, monkeypatch):
    models = [kind(random_state=0).partial_fit(X[:20], Y[:20]) for _ in range(2)]
    models[0].partial_fit(*(np.ascontiguousarray(part[20:40]) for part in (X, Y)))
    rows, targets = FORMS[form]
    monkeypatch.setattr(inputs, "validate_data", never)
    models[1].partial_fit(rows(slice(20, 40)), targets(slice(20, 40)))
    np.testing.assert_array_equal(models[1].predict(rows(slice(40, 60))), models[0].predict(X[40:]))


@pytest.mark.parametrize("form", FRAMES)
def test_frames_of_numbers_are_not_validated(form, monkeypatch):
    frame = FRAMES[form]
    models = [SFGMKLRegressor(random_state=0).partial_fit(FRAME[:20], Y[:20]) for _ in range(2)]
    models[0].partial_fit(FRAME[20:40], Y[20:40])
    monkeypatch.setattr(inputs, "validate_data", never)
    models[1].partial_fit(frame[20:40], pd.Series(Y[20:40]))
    np.testing.assert_array_equal(models[1].predict(frame[40:]), models[0].predict(FRAME[40:]))


def test_labels_in_lists_and_arrays_are_the_same():
    labels = np.where(Y > 0, "up", "down")
    models = [SFGMKLClassifier(random_state=0).partial_fit(X[:20], labels[:20], ["down", "up"]) for _ in range(2)]
    models[0].partial_fit(X[20:], labels[20:])
    models[1].partial_fit(X[20:].tolist(), labels[20:].tolist())
    np.testing.assert_array_equal(models[1].predict_proba(X), models[0].predict_proba(X))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (FRAME[["b", "a", "c"]], "feature names"),
        (FRAME.rename(columns={"a": "z"}), "feature names"),
        (FRAME[["a", "b"]], "feature names"),
    ],
    ids=["another order", "another name", "a column less"],
)
def test_frames_with_other_columns_are_refused(rows, message):
    model = SFGMKLRegressor(random_state=0).partial_fit(FRAME, Y)
    with pytest.raises(ValueError, match=message):
        model.predict(rows)


@pytest.mark.parametrize(
    "rows",
    [
        [[1.0, 2.0, 3.0], [1.0]],
        [[1.0, 2.0]],
        [["a", "b", "c"]],
        [[1.0, None, 2.0]],
        [[1.0, np.inf, 2.0]],
        [1.0, 2.0, 3.0],
    ],
    ids=["ragged", "too few", "text", "none", "infinite", "one row"],
)
def test_lists_that_hold_anything_else_are_refused(rows):
    model = SFGMKLRegressor(random_state=0).partial_fit(X, Y)
    with pytest.raises((ValueError, TypeError)):
        model.predict(rows)


def test_a_frame_of_numbers_is_a_table_for_a_model_that_has_learned_one():
    table = FRAME.assign(c=np.where(X[:, 2] > 0, "x", "y"))
    model = GraphMKLRegressor(random_state=0).partial_fit(table, Y)
    alone = [model.predict_one(row) for row in FRAME.to_dict("records")]
    np.testing.assert_array_equal(model.predict(FRAME), alone)
