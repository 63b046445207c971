"""Streaming peers of the benchmark and of further streams: no learner sees a target early, failures are reported."""

from typing import Any

import numpy as np
import pytest

from omkl_lab.peers import job
from omkl_lab.peers.evaluation import Outcome, accuracy, calibration_error, log_loss, predict_then_learn, recovery
from omkl_lab.peers.learners import LEARNERS, Learner
from omkl_lab.peers.streams import drifting_stream, evaluation_stream, task_of

QUICK = [name for name, learner in LEARNERS.items() if learner.package != "capymoa"]
JAVA = [name for name, learner in LEARNERS.items() if learner.package == "capymoa"]
ROWS = 30


def small(task: str) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, (ROWS, 3)) / 2
    y = X[:, 0] + X[:, 1] ** 2
    return X, np.where(y > 0.1, 1.0, -1.0) if task == "labels" else (y - y.min()) / np.ptp(y)


def predictions_of(name: str, X: np.ndarray, y: np.ndarray, task: Any) -> np.ndarray:
    learner = LEARNERS[name]
    if learner.absent:
        pytest.skip(learner.absent)
    return learner.run(X, y, 0, task).predictions


@pytest.mark.filterwarnings("ignore")  # warnings of other libraries
@pytest.mark.parametrize("name", [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in JAVA)])
def test_no_learner_predicts_from_a_target_that_has_not_come(name: str):
    task = LEARNERS[name].tasks[0]
    X, y = small(task)
    changed = y.copy()
    changed[-5:] = -y[-5:] if task == "labels" else y[-5:][::-1]
    whole, other = predictions_of(name, X, y, task), predictions_of(name, X, changed, task)
    assert len(whole) == ROWS
    np.testing.assert_array_equal(whole[:-4], other[:-4])


def test_every_task_has_our_learners_and_peers():
    for task in ("numbers", "drift", "labels"):
        mine = {learner.ours for learner in LEARNERS.values() if task in learner.tasks}
        assert mine == {True, False}


# Streams


def test_the_switch_changes_in_the_middle_and_nowhere_else():
    there = drifting_stream("switch", 2000)
    assert there.changes == (1000,)
    before = np.sin(3 * there.X[:, 0]) + there.X[:, 1] * there.X[:, 2]
    gap = np.abs(there.y - before)
    assert gap[:1000].max() < 0.3
    assert gap[1000:].mean() > 0.5


def test_a_friedman_stream_is_his_function_until_its_first_change():
    pytest.importorskip("river", reason="river is a peer here")
    there = drifting_stream("friedman-lea", 4000)
    assert there.X.shape == (4000, 10)
    assert there.changes == (1000, 2000, 3000)
    a, b, c, d, e, *_ = there.X.T
    gap = np.abs(there.y - (10 * np.sin(np.pi * a * b) + 20 * (c - 0.5) ** 2 + 10 * d + 5 * e))
    assert gap[:1000].max() < 5  # noise of deviation 1
    assert gap[3000:].max() > 10


def test_a_data_set_is_truncated():
    there = evaluation_stream("diabetes", 50)
    assert (len(there.y), there.of, task_of("diabetes")) == (50, 442, "numbers")


# Measures


def test_recovery_counts_from_the_change_to_the_end_of_the_window():
    errors = np.r_[np.ones(500), np.full(50, 200.0), np.ones(500)]
    assert recovery(errors, 500, 1050) == 150
    assert recovery(np.r_[np.ones(500), np.full(500, 3.0)], 500, 1000) is None


def test_labels_are_scored_by_their_probabilities():
    p, label = np.array([0.9, 0.1, 0.5, 0.0]), np.array([1.0, 0.0, 1.0, 1.0])
    assert accuracy(p, label) == pytest.approx(2.5 / 4)
    assert log_loss(p, label) == pytest.approx(-(2 * np.log(0.9) + np.log(0.5) + np.log(1e-15)) / 4)
    assert calibration_error(np.array([1.0, 1.0]), np.array([1.0, 0.0])) == pytest.approx(0.5)


def test_a_diverging_run_is_stopped():
    y = np.linspace(0, 1, 10)
    assert len(predict_then_learn(range(10), y, lambda k: 3.0 * k, lambda k, target: None).predictions) < 10
    assert len(predict_then_learn(range(10), y, lambda k: float("nan"), lambda k, target: None).predictions) == 0


# Records


def one(monkeypatch: pytest.MonkeyPatch, learner: Learner) -> dict[str, Any]:
    monkeypatch.setitem(LEARNERS, learner.name, learner)
    return job.evaluate_by_name("diabetes", learner.name, ROWS, 1)[0]


def raising(*_: Any) -> Outcome:
    raise RuntimeError("no\nmore")


def giving_up(X: np.ndarray, y: np.ndarray, *_: Any) -> Outcome:
    return Outcome(y[:7], 0.1)


def test_a_peer_that_is_missing_raises_or_diverges_is_recorded_as_such(monkeypatch: pytest.MonkeyPatch):
    missing = one(monkeypatch, Learner("a", "surely-no-such-package", ("numbers",), raising))
    raised = one(monkeypatch, Learner("b", "omkl", ("numbers",), raising))
    diverged = one(monkeypatch, Learner("c", "omkl", ("numbers",), giving_up))
    assert (missing["status"], missing["note"]) == ("missing", "surely-no-such-package is not installed")
    assert (raised["status"], raised["note"]) == ("raised", "RuntimeError: no")
    assert (diverged["status"], diverged["note"]) == ("diverged", "gave up at row 7")


def test_a_record_of_omkl_has_the_median_of_its_seeds_and_the_coverage_of_its_intervals():
    record = job.evaluate_by_name("diabetes", "omkl GraphMKL", 200, 3)[0]
    low, high = record["mse_range"]
    assert low <= record["mse"] <= high
    assert 0.8 < record["coverage"] <= 1
    assert record["width"] > 0


def test_a_changing_stream_has_a_recovery_for_each_change():
    record = job.evaluate_by_name("switch", "running mean", 600, 1)[0]
    assert len(record["recovery"]) == 1
