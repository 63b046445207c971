"""GraphMKL on further streams: the streams are reproducible, no learner sees a target early, so is the page."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("river", reason="some streams come from river")

from omkl_lab.peers.showing import US, read
from omkl_lab.unseen import fresh_labels, fresh_numbers, used
from omkl_lab.unseen.__main__ import main
from omkl_lab.unseen.job import LEARNERS, MAKERS, of_labels, stream
from omkl_lab.unseen.page import RESULTS, Pair, page

ROOT = Path(__file__).parents[2]
ROWS = 40


# Streams


@pytest.mark.parametrize("name", MAKERS)
def test_a_stream_is_finite_short_enough_and_always_the_same(name: str):
    there, again = stream(name), stream.__wrapped__(name)
    assert there.X.shape[0] == len(there.y) <= 2000
    assert np.isfinite(there.X).all()
    assert np.isfinite(there.y).all()
    np.testing.assert_array_equal(there.X, again.X)
    np.testing.assert_array_equal(there.y, again.y)
    if there.task == "labels":
        assert set(there.y) == set(range(int(there.y.max()) + 1))
    else:
        assert there.y[0] == 0
        assert there.y.std() > 0


def test_stream_names_are_unique():
    assert len(MAKERS) == sum(map(len, (fresh_numbers.NUMBERS, fresh_labels.LABELS, used.NUMBERS, used.LABELS)))


# Learners


def small(task: str) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, (ROWS, 3))
    y = X[:, 0] + X[:, 1] ** 2
    return X, np.digitize(y, [0.1, 0.6]) * 1.0 if task == "labels" else y


@pytest.mark.filterwarnings("ignore")  # warnings of other libraries
@pytest.mark.parametrize(("task", "name"), [(task, name) for task, some in LEARNERS.items() for name in some])
def test_no_learner_predicts_from_a_target_that_has_not_come(task: Any, name: str):
    learner = LEARNERS[task][name]
    if learner.absent:
        pytest.skip(learner.absent)
    X, y = small(task)
    changed = y.copy()
    changed[-5:] = (y[-5:] + 1) % 3 if task == "labels" else -y[-5:]
    whole, other = (learner.run(X, targets, 0, task).predictions for targets in (y, changed))
    assert len(whole) == ROWS
    np.testing.assert_array_equal(whole[:-4], other[:-4])


def test_the_recursive_ridge_finds_a_plane():
    X, _ = small("numbers")
    y = 3 * X[:, 0] - X[:, 1] + 2
    X, y = np.tile(X, (20, 1)), np.tile(y, 20)
    out = LEARNERS["numbers"]["recursive ridge"].run(X, y, 0, "numbers").predictions
    assert np.abs(out - y)[-100:].max() < 0.1


# Measures


def test_the_first_row_of_each_label_is_not_counted_and_zeros_are_equal_probabilities():
    probabilities = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0], [2.0, 1.0, 1.0]])
    found = of_labels(probabilities, np.array([0, 1, 1, 0]))
    assert found["wrong"] == pytest.approx((2 / 3 + 0) / 2)
    assert found["log_loss"] == pytest.approx(-(np.log(1 / 3) + np.log(0.5)) / 2)


@pytest.mark.parametrize(
    ("ours", "theirs", "verdict"),
    [(1.0, 1.03, "won"), (1.0, 1.01, "level"), (1.03, 1.0, "lost"), (0.0, 0.0, "level"), (0.1, 0.0, "lost")],
)
def test_a_difference_of_two_per_cent_decides(ours: float, theirs: float, verdict: str):
    assert Pair("a", ours, theirs, "b").verdict == verdict


# Results and page


def test_finished_runs_are_not_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(LEARNERS, "labels", {US: LEARNERS["labels"][US]})
    arguments = ["--streams", "wine", "--out", str(tmp_path / "r.jsonl"), "--docs", str(tmp_path / "p.md")]
    assert main(arguments) == 0
    first = (tmp_path / "r.jsonl").read_text()
    assert main(arguments) == 0
    assert (tmp_path / "r.jsonl").read_text() == first
    assert "wine" in first


def record(name: str, learner: str, **more: Any) -> dict[str, Any]:
    base = {
        "stream": name, "task": "numbers", "learner": learner, "ours": learner == US, "status": "ok", "note": "",
        "rows": 10, "features": 2, "seeds": 1, "group": "fresh", "about": "A_b.", "microseconds": 1.0,
    }  # fmt: skip
    return base | more


def test_the_page_lists_every_loss():
    text = page({
        "1": record("tides", US, error=0.3, coverage=0.8), "2": record("tides", "river linear", error=0.2),
        "3": record("winds", US, error=0.1, coverage=0.9), "4": record("winds", "river linear", error=0.2),
        "5": record("winds", "river AMF", status="raised", note="TypeError: no"),
    })  # fmt: skip
    assert "| fresh | squared error / variance | the best | 2 | 1 | 0 | 1 | 1.00 |" in text
    assert text.index("| tides | 10 x 2 | 0.3 | **0.2** | river linear | 1.50 | lost |") < text.index(
        "| winds | 10 x 2"
    )
    assert "- tides (fresh): 80.0 %" in text
    assert "- river AMF on winds: raised, TypeError: no" in text
    assert "A\\_b." in text


def test_the_committed_results_have_every_learner_on_every_stream():
    wanted = {f"{name} | {who}" for name, (_, task, _) in MAKERS.items() for who in LEARNERS[task]}
    assert wanted <= set(read(ROOT / RESULTS))
