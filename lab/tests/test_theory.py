"""Regret, the best function in hindsight, and the bounds: properties that they must have."""

import io
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from omkl import algorithms
from omkl.algorithms import sfg_mkl, sfg_mkl_r
from omkl.algorithms.settings import Settings
from omkl.algorithms.weights import normalised
from omkl.features import column_names, frequencies
from omkl.kernels import Gaussian, dictionary
from omkl.online import Online
from omkl_lab.files import read_lines
from omkl_lab.reproduce import parameter_sweeps
from omkl_lab.reproduce.job import Options, finish
from omkl_lab.reproduce.theory import bounds, complexity, hindsight, job
from omkl_lab.reproduce.theory import report as theory_report
from omkl_lab.reproduce.theory.regret import RegretTracker, neighbour_weights, node_distribution, track
from omkl_lab.streams import Stream, mixture

LAM = 1e-3
STREAM = mixture(120, seed=3)


# The best function in hindsight


def regularised(f: np.ndarray, y: np.ndarray, norm2: float) -> float:
    """Sum over t of the loss (5)."""
    return float(np.sum((f - y) ** 2 + LAM * norm2))


def test_the_best_function_has_ridge_t_lambda_and_nothing_near_it_is_better():
    kernel = Gaussian(0.5)
    (found,) = hindsight.best([hindsight.exact([kernel], STREAM.X, STREAM.y, LAM)])
    K = kernel.value(STREAM.X, STREAM.X)
    alpha = np.linalg.solve(K + len(K) * LAM * np.eye(len(K)), STREAM.y)
    assert found.loss == pytest.approx(regularised(K @ alpha, STREAM.y, alpha @ K @ alpha))
    assert found.norm2 == pytest.approx(alpha @ K @ alpha)
    assert found.C == found.C_star == pytest.approx(np.abs(alpha).sum())
    rng = np.random.default_rng(0)
    for _ in range(20):
        other = alpha + 0.01 * rng.standard_normal(len(alpha))
        assert regularised(K @ other, STREAM.y, other @ K @ other) > found.loss


def test_the_best_kernel_is_the_one_of_least_loss():
    kernels = dictionary("paper")[5::9]
    each = [hindsight.best([hindsight.exact([kernel], STREAM.X, STREAM.y, LAM)])[0] for kernel in kernels]
    (together,) = hindsight.best([hindsight.exact(kernels, STREAM.X, STREAM.y, LAM)])
    assert together.loss == min(best.loss for best in each)
    assert together.kernel == int(np.argmin([best.loss for best in each]))
    assert max(best.C for best in each) == together.C


def test_the_best_kernel_is_one_for_all_runs_whatever_is_best_in_the_first():
    runs = [[hindsight.Fit(1.0, 5.0, 2.0), hindsight.Fit(1.1, 6.0, 3.0)],
            [hindsight.Fit(2.0, 7.0, 9.0), hindsight.Fit(1.0, 8.0, 4.0)]]  # fmt: skip
    assert hindsight.best(runs) == [hindsight.Best(1, 1.1, 6.0, 3.0, 3.0), hindsight.Best(1, 1.0, 8.0, 9.0, 4.0)]


def test_many_random_features_come_close_to_the_kernel_itself():
    kernels = [Gaussian(0.5)]
    (exact,) = hindsight.exact(kernels, STREAM.X, STREAM.y, LAM)
    V = frequencies(kernels, column_names(3), 800, 0)
    (near,) = hindsight.in_features(V, STREAM.X, STREAM.y, LAM)
    assert near.loss == pytest.approx(exact.loss, rel=0.05)
    assert near.norm2 == pytest.approx(exact.norm2, rel=0.15)
    assert pytest.approx(exact.C, rel=0.05) == near.C


# Expectation by enumeration


def tracked(learner: str, stream: Stream = STREAM, seed: int = 1, **changes: Any) -> RegretTracker:
    rows, d = stream.X.shape
    problem = algorithms.problem(learner, Settings.paper(rows, **changes), d, seed=seed)
    tracker = RegretTracker(learner, problem, rows, seed)
    track([tracker], problem.V, stream.X, stream.y)
    return tracker


@pytest.mark.parametrize("learner", ["sfg-mkl", "sfg-mkl-r"])
def test_the_enumeration_agrees_with_the_learner_s_predictions_for_every_node(learner: str):
    """The learner's own prediction, had each node been drawn, weighted by that node's probability."""
    rows, d = STREAM.X.shape
    algorithm: Any = {"sfg-mkl": sfg_mkl, "sfg-mkl-r": sfg_mkl_r}[learner]
    problem = algorithms.problem(learner, Settings.paper(rows), d, seed=1)
    online = Online(learner, problem, 1)
    expected = 0.0
    for x, y in zip(STREAM.X, STREAM.y, strict=True):
        state = online.state
        p, A = node_distribution(learner, problem, state)
        assert p.sum() == pytest.approx(1)
        norms = np.sum(state.theta**2, axis=(1, 2))
        for node in range(len(p)):
            f = algorithm.predict(problem, state._replace(node=node), x)
            neighbours = np.flatnonzero(A[node])
            expected += p[node] * ((f - y) ** 2 + LAM * normalised(state.log_w[neighbours]) @ norms[neighbours])
        online.learn(x, y)
    assert tracked(learner).loss == pytest.approx(expected, rel=1e-9)


def test_raker_draws_nothing_so_its_expectation_is_its_loss():
    online = Online.make("raker", Settings.paper(120, ridge=0.0), 3, 1)
    errors = (online.run(STREAM.X, STREAM.y) - STREAM.y) ** 2
    assert tracked("raker", ridge=0.0).loss == pytest.approx(errors.sum(), rel=1e-9)


def test_sampling_is_exact_for_omkl_gf_with_one_kernel():
    """With one kernel all subsets are the same."""
    online = Online.make("omkl-gf", Settings.paper(120, ridge=0.0, kernels=[Gaussian(0.5)]), 3, 1)
    errors = (online.run(STREAM.X, STREAM.y) - STREAM.y) ** 2
    assert tracked("omkl-gf", ridge=0.0, kernels=[Gaussian(0.5)]).loss == pytest.approx(errors.sum(), rel=1e-9)


def test_tracking_does_not_change_the_learner():
    tracker = tracked("sfg-mkl-r")
    online = Online.make("sfg-mkl-r", Settings.paper(120), 3, 1)
    online.run(STREAM.X, STREAM.y)
    np.testing.assert_array_equal(tracker.online.state.theta, online.state.theta)


def test_with_a_complete_graph_all_kernels_are_evaluated_with_probability_1():
    tracker = tracked("sfg-mkl", out_degree=41)
    assert tracker.least_q == pytest.approx(1)
    np.testing.assert_allclose(tracker.inverse_q, 120, rtol=1e-12)
    np.testing.assert_allclose(tracker.inverse_q_bar, 120, rtol=1e-12)
    assert tracker.loss == pytest.approx(tracked("raker").loss, rel=1e-9)


def test_violations_of_as2_are_counted_and_divergence_ends_the_run():
    stable, diverging = tracked("raker"), tracked("raker", learning_rate=50.0)
    assert (stable.diverged, stable.pairs) == (False, 120 * 41)
    assert stable.losses_out_of_range < 10  # the first targets, before anything is known
    assert diverging.diverged
    assert diverging.losses_out_of_range > 0


def test_weights_are_positive_on_the_out_neighbours_only():
    A = np.random.default_rng(0).random((6, 9)) < 0.4
    A[:, 0] = True
    W = neighbour_weights(A, np.linspace(-2000, 0, 9))  # weights that underflow when taken together
    np.testing.assert_allclose(W.sum(axis=1), 1, rtol=1e-14)
    assert (W[~A] == 0).all()


# Bounds


def test_epsilon_is_where_the_probability_is_just_enough():
    for d, D, sigma2 in ((5, 50, 5.0), (15, 50, 150.0), (3, 10**6, 3.0)):
        eps = bounds.epsilon(sigma2, d, D)
        assert bounds.failure(eps, sigma2, d, D) == pytest.approx(0.05, rel=1e-6)
        assert bounds.features_needed(eps, sigma2, d) == pytest.approx(D, rel=1e-6)


@pytest.mark.parametrize("name", ["airfoil", "concrete", "naval", "wine_white"])
def test_at_d_50_the_statement_forces_epsilon_above_2(name: str):
    d = {"airfoil": 5, "concrete": 8, "naval": 15, "wine_white": 11}[name]
    for kernel in dictionary("paper")[:21]:  # length scales up to 1
        assert bounds.epsilon(d / kernel.length_scale**2, d, 50) > 2


def test_theorem_3_by_hand():
    rates = bounds.Rates(T=100, N=2, eta=0.1, xi=0.1)
    A = np.array([[True, True], [False, True]])
    q, q_bar = np.array([150.0, 100.0]), np.array([130.0, 110.0])
    common = 1.5 * 9 / 0.2 + 0.5 * 2 * 100 * 3 + (0.1 + 0.1 - 0.005) * 100 + 0.05 * 4 * 100
    first, second = math.log(4) / 0.1 + 0.05 * 130, math.log(2) / 0.1 + 0.05 * 110
    found = bounds.theorem_3(rates, A, 1, q, q_bar, eps=0.5, C=3.0, L=2.0)
    assert found == pytest.approx(common + min(first, second))
    only_first = bounds.theorem_3(rates, A, 0, q, q_bar, eps=0.5, C=3.0, L=2.0)
    assert only_first == pytest.approx(common + first + 0.05 * 4 * 50)


def test_theorem_4_by_hand():
    rates = bounds.Rates(T=100, N=4, eta=0.1, xi=0.1)
    wanted = 2 * math.log(4) / 0.1 + 1.5 * 9 / 0.2 + 300 + (0.1 + 0.05 * (4 + 0.8 + 1) / 0.2 - 0.005) * 100
    assert bounds.theorem_4(rates, 0.2, eps=0.5, C=3.0, L=2.0) == pytest.approx(wanted)


def test_the_interval_of_the_exponent_holds_the_truth_as_often_as_it_says():
    rng = np.random.default_rng(0)
    T = np.geomspace(100, 10_000, 7)
    inside = 0
    for _ in range(400):
        fit = bounds.growth(T, T**0.6 * np.exp(0.1 * rng.standard_normal(7)))
        assert fit is not None
        inside += fit.low <= 0.6 <= fit.high
    assert 0.92 < inside / 400 < 0.98


def test_no_exponent_is_made_of_two_points_or_of_negative_regret():
    T = np.array([1.0, 2.0, 3.0, 4.0])
    assert bounds.growth(T, np.array([1.0, -1.0, np.nan, 2.0])) is None


# The command


def options(out: Path, **changes: Any) -> Options:
    out.mkdir(exist_ok=True)
    names = ["Raker", "OMKL-GF", "SFG-MKL", "SFG-MKL-R"]
    return Options(**{"datasets": ["x"], "algorithms": names, "runs": 2, "jobs": 1, "seed": 0, "out": out, **changes})


@pytest.fixture
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job, "HORIZONS", 3)
    monkeypatch.setattr(complexity, "PRINTED", {"sfg-mkl": ("O(d D M)", {"M": 1})})
    monkeypatch.setattr(complexity, "VALUES", {"M": (2, 10, 40)})
    monkeypatch.setattr(complexity, "ROWS", 50)


@pytest.mark.parametrize("exact", [2000, 10])
@pytest.mark.usefixtures("brief")
def test_theory_writes_what_the_report_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exact: int):
    monkeypatch.setattr(job, "EXACT", exact)
    console = Console(file=io.StringIO(), width=100)
    job.run([STREAM], options(tmp_path), console, console)
    first = (tmp_path / "theory.json").read_text()
    found = json.loads(first)
    (stream,) = found["streams"]
    points = stream["points"]
    assert {p["algorithm"] for p in points} == {"Raker", "OMKL-GF", "SFG-MKL", "SFG-MKL-R"}
    for p in points:
        assert p["regret"] == pytest.approx((p["average_loss"] - p["best_loss"]) * p["T"])
        assert (p["bound"] is None) == (p["algorithm"] in ("Raker", "OMKL-GF"))
        if p["bound"] is not None:
            assert p["bound"] > p["bound_without_features"] > p["regret"]
    assert found["complexity"][0]["fitted"] > 0.3
    shown = theory_report.tables_of(found)
    assert all(len(row) == len(table["head"]) for table in shown["tables"] for row in table["rows"])
    job.run([STREAM], options(tmp_path), console, console)  # from the journal
    assert json.loads((tmp_path / "theory.json").read_text())["streams"] == found["streams"]
    finish(tmp_path, console)
    assert "# Theory" in (tmp_path / "tables.md").read_text()
    assert (tmp_path / "figures" / "regret_mixture.svg").exists()


def test_horizons_grow_to_the_whole_stream():
    for rows in (1, 19, 442, 11934):
        at = job.horizons(rows)
        assert at[-1] == rows
        assert at == sorted(set(at))


# Parameter sweeps


def test_sweeps_vary_one_factor_at_a_time_and_classify(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    few = [s for s in parameter_sweeps.sweep() if s.value in ("2", "25", "11", "0.25 T", "mixed")]
    monkeypatch.setattr(parameter_sweeps, "sweep", lambda: few)
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.5, 0.5, (300, 2))
    labelled = Stream("signs", X, np.where(X[:, 0] > 0, 1.0, -1.0))
    console = Console(file=io.StringIO(), width=100)
    parameter_sweeps.run([STREAM], [labelled], options(tmp_path), console, console)
    lines = read_lines(tmp_path / "sweeps.jsonl")
    assert {line["factor"] for line in lines} == {"M", "D", "N", "horizon", "dictionary", "classification"}
    labels = [line for line in lines if line["dataset"] == "signs"]
    assert len(labels) == 2 * 4
    assert all(line["mse"] is None and 0 < line["error_rate"] < 0.4 and line["log_loss"] > 0 for line in labels)
    assert all(line["error_rate"] is None and line["mse"] > 0 for line in lines if line["dataset"] == "mixture")
    before = (tmp_path / "sweeps.jsonl").read_text()
    parameter_sweeps.run([STREAM], [labelled], options(tmp_path), console, console)
    assert (tmp_path / "sweeps.jsonl").read_text() == before
    assert all(len(r) == len(t["head"]) for t in parameter_sweeps.tables_of(lines)["tables"] for r in t["rows"])
    assert parameter_sweeps.charts_of(lines)


def test_every_factor_of_the_sweep_contains_the_paper_s_own_value():
    values: dict[str, set[str]] = {}
    for setting in parameter_sweeps.sweep():
        values.setdefault(setting.factor, set()).add(setting.value)
    for factor, own in {"M": "5", "D": "50", "N": "41", "horizon": "1 T", "dictionary": "paper"}.items():
        assert own in values[factor]
