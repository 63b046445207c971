"""The comparison on real sets: no learner sees a target early, scores agree with other libraries, pages are honest."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtri
from threadpoolctl import threadpool_limits

from omkl_lab.comparison import boosting, drawings, job, outcome, page, ranks, streaming
from omkl_lab.comparison.__main__ import chosen, main, settings_of
from omkl_lab.comparison.learners import LEARNERS, LIGHTGBM
from omkl_lab.comparison.outcome import LEVELS, PREFIX, Outcome
from omkl_lab.comparison.results import over_seeds, summarised
from omkl_lab.comparison.streams import RawStream, names_of
from omkl_lab.peers.showing import US

ROWS = 60
SLOW = [name for name, learner in LEARNERS.items() if learner.package == "capymoa" or name.startswith("Hist")]
QUICK = [name for name in LEARNERS if name not in SLOW]


def small(task: Any, rows: int = ROWS) -> RawStream:
    rng = np.random.default_rng(3)
    X = rng.normal(5, 3, (rows, 3))
    y = 100 + 10 * X[:, 0] + X[:, 1] ** 2
    if task == "labels":
        return RawStream("small", task, X, (y > y.mean()).astype(float) + (X[:, 2] > 8), 1.0, True)
    return RawStream("small", task, X, y, float(np.ptp(y)), True)


# Learners


@pytest.mark.filterwarnings("ignore")  # warnings of other libraries
@pytest.mark.parametrize("name", [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW)])
def test_no_learner_predicts_from_a_row_that_has_not_come(name: str):
    learner = LEARNERS[name]
    if learner.absent:
        pytest.skip(learner.absent)
    for task in learner.tasks:
        stream = small(task)
        X, y = stream.X.copy(), stream.y.copy()
        X[-4:] *= 3  # scaling by the whole stream would be noticed too
        y[-5:] = np.roll(y[-5:], 1) if task == "labels" else 2 * y[-5:]
        if task == "labels":
            assert set(y) == set(stream.y)  # the number of labels is known
        with threadpool_limits(1):
            one = learner.run(stream, 0).predictions
            other = learner.run(stream._replace(X=X, y=y), 0).predictions
        assert len(one) == ROWS
        np.testing.assert_array_equal(one[:-4], other[:-4])


def test_lagged_targets_are_those_of_the_rows_before():
    stream = small("numbers")
    Z = boosting.with_lags(stream.X, stream.y, 2)
    np.testing.assert_array_equal(Z[2:, 3], stream.y[1:-1])
    np.testing.assert_array_equal(Z[2:, 4], stream.y[:-2])


def test_a_refitted_model_sees_the_rows_of_its_window_at_its_moments():
    stream, seen = small("numbers", 300), []

    class Mean:
        def fit(self, X: np.ndarray, y: np.ndarray) -> None:
            seen.append(len(y))
            self.mean = y.mean()

        def predict(self, X: np.ndarray) -> np.ndarray:
            return np.full(len(X), self.mean)

    how = boosting.Refit(window=100, every=40)
    out = boosting.refitted(lambda *_: Mean(), lambda model: 8, how)(stream, 0)
    moments = list(how.moments(300))
    assert seen == [min(n, 100) for n in moments]
    for n, until in zip(moments, [*moments[1:], 300], strict=True):
        np.testing.assert_allclose(out.predictions[n:until], stream.y[max(0, n - 100) : n].mean())
    np.testing.assert_allclose(out.predictions[1:20], [stream.y[:n].mean() for n in range(1, 20)])
    assert out.size == 100 * 4 * 8 + 8


def test_inputs_are_standardised_by_the_rows_so_far():
    X = np.random.default_rng(0).normal(1e6, 3, (50, 2))
    X[:, 1] = 7
    Z = streaming.standardised(X)
    for t in (1, 7, 49):
        assert Z[t, 0] == pytest.approx((X[t, 0] - X[: t + 1, 0].mean()) / X[: t + 1, 0].std(), rel=1e-6)
    assert not Z[:, 1].any()


def test_targets_are_predicted_in_the_unit_of_the_rows_before():
    y = np.random.default_rng(0).normal(50, 5, 30)
    target = streaming.Target(y)
    assert target.mean[10] == pytest.approx(y[:10].mean())
    assert target.deviation[10] == pytest.approx(y[:10].std())
    assert target.scaled[10] == pytest.approx((y[10] - y[:11].mean()) / y[:11].std())


# Scores


def test_scores_agree_with_those_of_scoringrules():
    oracle = pytest.importorskip("scoringrules", reason="the oracle of these scores")
    rng = np.random.default_rng(1)
    e, s = rng.standard_t(4, 200), rng.uniform(0.5, 2, 200)
    np.testing.assert_allclose(outcome.normal_crps(e, s), oracle.crps_normal(e, 0.0, s), rtol=1e-10)
    np.testing.assert_allclose(outcome.normal_log_score(e, s), oracle.logs_normal(e, 0.0, s), rtol=1e-10)
    half = 1.6 * s
    np.testing.assert_allclose(outcome.interval_score(e, half), oracle.interval_score(e, -half, half, 0.1), rtol=1e-10)


def test_scores_of_stated_intervals_are_nearly_those_of_the_normal_distribution_that_they_come_from():
    rng = np.random.default_rng(2)
    s = rng.uniform(0.5, 2, 5000)
    e = s * rng.standard_normal(5000)
    H = np.outer(s, ndtri((1 + np.array(LEVELS)) / 2))
    assert outcome.log_score(e, H).mean() == pytest.approx(outcome.normal_log_score(e, s).mean(), abs=0.04)
    assert outcome.crps(e, H).mean() == pytest.approx(outcome.normal_crps(e, s).mean(), rel=0.01)


def test_the_density_of_stated_intervals_integrates_to_one():
    H = np.array([[0.1, 0.2, 0.5, 0.6, 0.7, 0.8, 1.0, 1.5, 2.0, 4.0]])
    x = np.concatenate((np.linspace(0, 4, 400_001), np.geomspace(4, 4e4, 400_001)[1:]))
    density = np.exp(-outcome.log_score(x, np.repeat(H, len(x), axis=0)))
    total = 2 * np.sum((density[1:] + density[:-1]) / 2 * np.diff(x))
    assert total == pytest.approx(1, abs=1e-3)


def test_measures_of_numbers_leave_out_the_first_row_and_have_the_unit_of_the_targets():
    y = np.random.default_rng(0).normal(0, 1, 400)
    found = outcome.of_numbers(Outcome(np.zeros(400), 0.1), y, unit=2.0)
    assert found["mse"] == pytest.approx(np.mean(y[1:] ** 2) / 4)
    assert 0.85 < found["coverage"] < 0.95
    assert len(found["coverage_by_window"]) == len(found["coverage_by_width"]) == 10


def test_measures_of_labels_count_a_tie_by_its_share():
    p = np.array([[1.0, 0.0], [0.5, 0.5], [0.9, 0.1], [0.2, 0.8]])
    found = outcome.of_labels(Outcome(p, 0.1), np.array([1.0, 1.0, 0.0, 1.0]))
    assert found["wrong"] == pytest.approx(0.5 / 3)
    assert found["log_loss"] == pytest.approx(-(math.log(0.5) + math.log(0.9) + math.log(0.8)) / 3)


# Ranks


@pytest.mark.slow  # the oracle takes seconds to import
def test_ranks_and_significance_agree_with_scikit_posthocs():
    oracle = pytest.importorskip("scikit_posthocs", reason="the oracle of these tests")
    rng = np.random.default_rng(0)
    errors = {
        name: np.exp(shift + 0.3 * rng.standard_normal(20)) for name, shift in zip("abcd", (0, 0.1, 1, 2), strict=True)
    }
    found = ranks.ranking({name: list(values) for name, values in errors.items()})
    logs = np.log(np.array([errors[name] for name in found.learners]))
    wanted = oracle.posthoc_wilcoxon(logs, p_adjust="holm").to_numpy()
    np.testing.assert_allclose(found.adjusted, wanted, rtol=1e-9)
    assert found.learners[-1] == "d"
    assert (2, 3) not in found.cliques


def test_bars_join_the_largest_groups_without_a_significant_pair():
    p = np.ones((4, 4))
    p[0, 2] = p[2, 0] = p[0, 3] = p[3, 0] = p[1, 3] = p[3, 1] = 0.01
    found = ranks.Ranking(list("abcd"), np.arange(1.0, 5.0), 9, 0.0, p)
    assert found.cliques == [(0, 1), (1, 2), (2, 3)]


# Records and pages


def record(learner: str, error: float, **more: Any) -> dict[str, Any]:
    scores = {"log_score": 0.1, "crps": 0.1, "interval_score": 0.2, "coverage": 0.9, "width": 0.3, "microseconds": 10.0,
              "coverage_by_window": [0.9] * 10, "coverage_by_width": [0.9] * 10}  # fmt: skip
    base = {"stream": "ames", "learner": learner, "settings": "", "seed": 0, "rows": 2930, "of": 2930, "version": "1",
            "features": 2, "task": "numbers", "package": "omkl", "status": "ok", "bytes": 1000, "mse": error,
            "mse_prefix": error}  # fmt: skip
    return base | scores | more


def test_the_page_names_losses_first_and_compares_slow_learners_on_the_rows_they_saw():
    records = [
        record(US, 0.0010, mse_prefix=0.0030), record(US, 0.0012, seed=1, mse_prefix=0.0034),
        record(US, 0.0014, seed=2, mse_prefix=0.0036),
        record(LIGHTGBM, 0.0010, package="lightgbm", log_score=0.05),
        record("VW", 0.0020, package="vowpalwabbit"),
        record("river ARF", 0.0030, rows=PREFIX, package="river"),
        record("river EWA of 5 RBF", 0.0, rows=PREFIX, package="river", status="diverged", note="gave up at row 9"),
    ]  # fmt: skip
    text = page.page(records, [])
    assert text.index("## Where GraphMKL is worse") < text.index("## Summary")
    assert "- **ames**: squared error 1.2, LightGBM, all rows 1 (20 % more)." in text
    assert f"- **ames**: squared error 3.4, river ARF on the first {PREFIX} rows 3 (13 % more)." in text
    assert "- **ames**: log score 0.1, LightGBM, all rows 0.05." in text
    assert "| real sets | 0 of 1 | 1 of 1 |" in text
    assert "| river EWA of 5 RBF | diverges |" in text
    assert "peers.svg" in drawings.drawings(records)


def test_only_the_newest_version_counts_and_a_learner_that_fails_mostly_has_failed():
    old, new = record(US, 9.0, version="old"), record(US, 1.0, version="new")
    assert summarised([old, new])["ames"][US]["mse"] == 1.0
    bad = record("VW", 0.0, status="raised", note="no")
    assert over_seeds([bad, bad, record("VW", 1.0)])["status"] == "raised"


def test_a_run_is_recorded_once_for_each_version_settings_and_seed(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    out = tmp_path / "r.jsonl"
    words = ["switch", "--rows", "120", "--out", str(out), "--peers", str(out)]
    assert main([*words, "--learners", "running mean"]) == 0
    assert main([*words, "--seeds", "2", "--set", "evaluate=all"]) == 0
    lines = out.read_text().splitlines()
    assert main([*words, "--seeds", "2", "--set", "evaluate=all"]) == 0
    assert out.read_text().splitlines() == lines
    keys = [json.loads(line)["key"] for line in lines]
    assert f"switch | {US} | evaluate=all | seed 1 | 120 rows | {job.omkl_version()}" in keys
    assert "evaluate=all" in capsys.readouterr().out


def test_what_is_not_understood_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    out = ["--out", str(tmp_path / "r.jsonl")]
    assert main(["nothing", *out]) == 1
    assert "unknown set 'nothing'" in capsys.readouterr().err
    assert main(["switch", "--learners", "nobody", *out]) == 1
    assert "unknown learner 'nobody'" in capsys.readouterr().err
    assert main(["switch", "--set", "evaluate", *out]) == 1
    assert "--set takes name=value" in capsys.readouterr().err


def test_names_of_groups_and_parts_of_names_are_enough():
    assert len(names_of(["real"])) == 15
    assert chosen(["lightgbm"]) == (LIGHTGBM, "LightGBM, last 2000", f"{LIGHTGBM} + y")
    assert settings_of(["budget=small", "n=3"]) == {"budget": "small", "n": 3}
