"""One declaration for a single model and for models per key; rows that wait; the target's task."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from command import invoke
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import is_classifier, is_regressor

from omkl import algorithms
from omkl.algorithms.base import Task
from omkl.estimators.declaration import Declaration, supports
from omkl.features import column_names
from omkl.stream.history import History
from omkl.stream.learner import BUDGET, new_learner
from omkl.stream.predictions import LateTargets, Predictions, concatenated, label_outputs, with_targets
from omkl.stream.targets import Target
from omkl.stream.waiting import LATE, LEARN, PREDICT, WaitingRows

TASKS: tuple[Task, ...] = ("regression", "classification")


def quiet(about: str, text: str) -> None:
    pass


# One declaration


@pytest.mark.parametrize("algorithm", algorithms.names())
def test_the_core_and_the_estimator_of_a_declaration_predict_the_same(algorithm: str):
    X = np.random.default_rng(0).normal(size=(150, 3)) * 10
    y = X[:, 0] + np.sin(X[:, 1])
    declaration = Declaration(algorithm, "regression")
    core = declaration.core(5, column_names(3))
    estimator = declaration.estimator()
    if "random_state" in estimator.get_params():
        estimator.set_params(random_state=5)
    np.testing.assert_array_equal(core.learn_rows(X, y), estimator.predict_then_learn(X, y))


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("algorithm", algorithms.names())
def test_a_declaration_is_refused_where_there_is_no_such_estimator(algorithm: str, task: Task):
    if supports(algorithm, task):
        core, estimator = Declaration(algorithm, task).core(0, ["a"]), Declaration(algorithm, task).estimator()
        assert (core.task, core.learner) == (task, algorithm)
        assert (is_classifier if task == "classification" else is_regressor)(estimator)
    else:
        for by_key in (False, True):
            with pytest.raises(ValueError, match="predicts numbers only, not labels; choose graph-mkl, "):
                new_learner(algorithm, task, 0, by_key, quiet, {})


@pytest.mark.parametrize("algorithm", algorithms.names())
def test_a_single_model_stores_a_bounded_number_of_rows_if_it_stores_rows(algorithm: str):
    learner = new_learner(algorithm, "regression", 0, False, quiet, {})
    assert learner.budget is None
    learner.add_features(["a"])
    assert learner.budget == (BUDGET if algorithm == "omkr" else None)


# Rows that wait


@given(st.lists(st.tuples(st.sampled_from("abcde"), st.booleans()), max_size=30), st.integers(1, 4))
def test_roles_of_a_batch_are_those_of_its_rows_one_by_one(rows: list[tuple[str, bool]], capacity: int):
    def one(keys: str, position: int) -> tuple[np.ndarray, Predictions, np.ndarray, np.ndarray]:
        n = len(keys)
        y_pred = np.zeros(n)
        out = Predictions(np.arange(n), list(keys), y_pred, None, None, None, y_pred, None)
        return np.zeros((n, 1)), out, np.full(n, position), np.zeros(n)

    at_once, origins = WaitingRows(capacity, quiet).roles(
        np.array([known for _, known in rows], bool), [key for key, _ in rows]
    )
    waiting = WaitingRows(capacity, quiet)
    one_by_one, count = [], 0
    for k, (key, known) in enumerate(rows):
        role = int(waiting.roles(np.array([known]), [key])[0][0])
        one_by_one.append(role)
        if role == PREDICT:
            waiting.add(*one(key, count))
        elif role == LATE:
            assert waiting.resolve(key, 1.0, LateTargets.none()).position == origins[k]
        count += role != LATE
    assert at_once.tolist() == one_by_one
    assert len(waiting) <= capacity
    assert {LEARN, PREDICT, LATE} >= set(one_by_one)


def test_a_late_target_is_compared_with_what_was_predicted():
    waiting, late = WaitingRows(9, quiet), LateTargets.none()
    out = Predictions(np.arange(2), ["a", "b"], np.array([1.0, 2.0]), np.array([[0.0], [1.5]]),
                      np.array([[2.0], [2.5]]), None, np.full(2, np.nan), None, coverages=(0.8,))  # fmt: skip
    waiting.add(np.array([[7.0], [8.0]]), out, np.arange(2), np.zeros(2))
    assert waiting.resolve("b", 3.0, late).x.tolist() == [8.0]
    assert waiting.resolve("a", 1.5, late).x.tolist() == [7.0]
    intervals = [{0.8: (1.5, 2.5)}, {0.8: (0.0, 2.0)}]
    assert late == LateTargets([2.0, 1.0], [3.0, 1.5], [0.0, 0.0], intervals, [{}, {}], [])


@pytest.mark.parametrize(("y", "covered"), [(1.4, False), (1.5, True), (2.0, True), (2.5, True), (2.6, False)])
def test_a_late_target_is_covered_between_both_ends_of_the_interval(y: float, covered: bool):
    waiting, late = WaitingRows(9, quiet), LateTargets.none()
    out = Predictions(np.arange(1), ["a"], np.array([2.0]), np.array([[1.5]]), np.array([[2.5]]), None,
                      np.full(1, np.nan), None, coverages=(0.8,))  # fmt: skip
    waiting.add(np.zeros((1, 1)), out, np.arange(1), np.zeros(1))
    waiting.resolve("a", y, late)
    # a run that goes on with other coverages counts those that the row was predicted with
    history = History("regression", (0.95, 0.8))
    history.update(concatenated([], keyed=True), late)
    assert history.summary()["coverages"] == {"0.8": float(covered)}


def test_a_late_target_of_a_row_without_any_feature_is_scored_and_not_learned(tmp_path: Path):
    data = tmp_path / "data.csv"
    data.write_text("id,a,y\nr1,,\nr1,,2\nr2,1,3\n")
    result = invoke("run", data, "-t", "y", "--task", "regression", "--key", "id", "--learner", "raker", "--json")
    assert result.exit_code == 0, result.output
    assert '"learned": 1, ' in result.stdout
    assert '"scored": 2, ' in result.stdout


# Predictions


def test_the_most_probable_label_is_predicted_and_the_true_one_has_its_probability():
    out = label_outputs(np.array([[0.2, 0.8], [0.6, 0.4], [0.0, 0.0]]), ("no", "yes"))
    y_true = np.array(["no", None, "other"], dtype=object)
    p = with_targets(out, np.arange(3), y_true, ["k", "l", "m"])
    assert p.y_pred.tolist() == ["yes", "no", None]
    assert p.probability is not None
    assert p.true_probability is not None
    assert p.probability.tolist() == [0.8, 0.6, 0.0]
    assert p.true_probability[[0, 2]].tolist() == [0.2, 0.0]
    assert p.probabilities_of(0) == {"no": 0.2, "yes": 0.8}


def test_parts_without_intervals_have_nan_where_others_have_them():
    y = np.zeros(1)
    without = Predictions(np.array([1]), None, y, None, None, None, y, None)
    with_interval = Predictions(np.array([2]), None, y, y[:, None] - 1, y[:, None] + 1, None, y, None, coverages=(0.9,))
    joined = concatenated([without, with_interval], keyed=False)
    assert joined.rows.tolist() == [1, 2]
    np.testing.assert_array_equal(joined.lower, [[np.nan], [-1.0]])
    assert joined.coverages == (0.9,)
    assert joined.probability is None


# The task


@pytest.mark.parametrize(
    ("cells", "task"),
    [
        (["1", "2", "x"], "regression"),
        (["x", "y", "1"], "classification"),
        (["1"] * 5 + ["x"] * 5, "regression"),  # half of them: more than half must be labels
        (["1"] * 5 + ["x"] * 6, "classification"),
        (["1"] * 9 + ["x"] * 8 + [None] * 40, "regression"),  # empty cells do not count
        (["2"] * 501 + ["x"] * 1000, "regression"),  # the first thousand decide
        (["0", "1", "1"], "classification"),
        (["1", "1", "1"], "regression"),
        (["True", "false", ""], "classification"),
        (["1,5", "2,25"], "regression"),
        (["", None], "regression"),
    ],
    ids=str,
)
def test_the_first_targets_decide_the_task(cells: list[str | None], task: Task):
    target = Target("y", None, quiet)
    target.read(pa.array(cells, pa.string()), learn=True)
    assert target.task == task
    for given_task in TASKS:
        declared = Target("y", given_task, quiet)
        declared.read(pa.array(cells, pa.string()), learn=True)
        assert declared.task == given_task
