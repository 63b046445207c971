"""The study of regret, against oracles that are computed in another way."""

import math

import numpy as np
import pytest
from rich.console import Console

from omkl import algorithms
from omkl.algorithms.vaw2 import VAW2Settings
from omkl.kernels import Gaussian
from omkl_lab import regret
from omkl_lab.reproduce.theory import hindsight


def ridge_loss(Z, y, ridge):
    """Sum of squares plus ridge |theta|^2 at its minimum, by least squares with the ridge as rows."""
    rows = np.vstack((Z, math.sqrt(ridge) * np.eye(Z.shape[1])))
    targets = np.append(y, np.zeros(Z.shape[1]))
    theta = np.linalg.lstsq(rows, targets, rcond=None)[0]
    return float(np.sum((rows @ theta - targets) ** 2))


def losses_of(V, X, y, ridge):
    return [ridge_loss(np.hstack((np.sin(X @ v), np.cos(X @ v))) / math.sqrt(v.shape[1]), y, ridge) for v in V]


@pytest.mark.parametrize("power", [0.25, 0.5, 1.0])
def test_the_exponent_of_a_power_is_found(power):
    points = [{"T": T, "loss": 7 + 3 * T**power, "best": 7.0} for T in regret.horizons(4000)]
    assert regret.slope(points) == pytest.approx(power, rel=1e-9)
    points[0]["best"] = 1e9
    assert regret.slope(points) is None


def test_the_regret_of_a_forecaster_of_noise_grows_as_a_logarithm():
    """At one x, VAW predicts the sum of targets over t + ridge; the regret against their mean is variance log T."""
    algorithm, x, T, runs = algorithms.get("vaw2"), np.array([0.3]), 1000, 12
    problem = algorithms.problem("vaw2", VAW2Settings(kernels=[Gaussian(1.0)], n_features=1, ridge=1.0), 1)
    rng, regrets = np.random.default_rng(0), []
    for _ in range(runs):
        y, v = rng.choice([-1.0, 1.0], T), np.empty(T)
        state = algorithm.init(problem, np.empty(0))
        for t in range(T):
            state, info = algorithm.step(problem, state, x, y[t], np.empty(0), 1.0)
            v[t] = info.v[0]
        np.testing.assert_allclose(v[1:], np.cumsum(y)[:-1] / (np.arange(1, T) + 2), rtol=1e-9, atol=1e-12)
        regrets.append([np.sum((v[:n] - y[:n]) ** 2) - n * np.var(y[:n]) for n in regret.horizons(T)])
    mean, T = np.mean(regrets, axis=0), np.array(regret.horizons(T))
    assert np.polyfit(np.log(T), mean, 1)[0] == pytest.approx(1, abs=0.4)  # per unit of log T: the variance of y
    assert regret.slope([{"T": n, "loss": r, "best": 0.0} for n, r in zip(T, mean, strict=True)]) < 0.35


@pytest.mark.parametrize("name", ["raker", "fogd", "vaw2"])
@pytest.mark.parametrize("stream", ["stationary", "adversarial"])
def test_losses_in_hindsight_are_those_of_ridge_regression(name, stream):
    X, y, f = regret.played(name, stream, 60, 1)
    (record,) = regret.measure(name, stream, 60, 1)
    V = regret.learner_of("raker", 3, 1).problem.V
    own = regret.learner_of(name, 3, 1).problem.V
    for point in record["points"]:
        T = point["T"]
        assert point["best"] == pytest.approx(min(losses_of(V, X[:T], y[:T], T * regret.RIDGE)), rel=1e-6)
        assert point["own"] == pytest.approx(min(losses_of(own, X[:T], y[:T], T * regret.RIDGE)), rel=1e-6)
        assert point["loss"] == pytest.approx(np.sum((f[:T] - y[:T]) ** 2))
        exact = min(fit.loss for fit in hindsight.exact(regret.dictionary("gaussian"), X[:T], y[:T], regret.RIDGE))
        assert point["exact"] == pytest.approx(exact)


@pytest.mark.parametrize("name", ["raker", "fogd", "vaw2"])
def test_bounds_hold_against_the_kernels_that_a_learner_has(name):
    """FOGD has one kernel: that it is not the best is no regret that its theorem bounds."""
    last = [regret.measure(name, "stationary", 250, seed)[0]["points"][-1] for seed in range(2)]
    shown = regret.bound(name, 250, last)
    assert shown >= np.mean([p["loss"] - p["best"] for p in last])
    moved = [p | {"own": p["own"] + 5.0} for p in last]
    assert regret.bound(name, 250, moved) == pytest.approx(shown + 5)
    assert regret.bound("doebe", 250, last) is None
    assert set(regret.BOUNDED) <= set(algorithms.names())


def test_learners_have_the_names_of_the_journal_version_too():
    found = regret.study(["omkl-sfg"], 100, 2, 1, Console(quiet=True))
    assert {line["learner"] for line in found["lines"]} == {"sfg-mkl"}


@pytest.mark.parametrize("name", ["raker", "fogd"])
def test_gradients_and_losses_in_the_bound_are_the_largest_of_any_kernel(name):
    X, y, _ = regret.played(name, "stationary", 40, 0)
    online = regret.learner_of(name, 3, 0)
    reached = regret.reach(name, online.problem, X, y)
    for x, target, (gradient, loss) in zip(X, y, reached, strict=True):
        slopes, losses = [], []
        for V, theta in zip(online.problem.V, online.state.theta, strict=True):
            z = np.stack((np.sin(x @ V), np.cos(x @ V))) / math.sqrt(V.shape[1])
            gap, ridge = np.vdot(theta, z) - target, online.problem.descent.lam
            slopes.append(np.linalg.norm(2 * gap * z + 2 * ridge * theta))
            losses.append(gap**2 + ridge * np.vdot(theta, theta))
        assert max(slopes) <= gradient * (1 + 1e-9)
        assert gradient <= max(slopes) + 0.01
        assert loss == pytest.approx(max(losses), rel=1e-9)
        online.learn(x, target)


def test_the_bound_of_vaw_depends_on_the_largest_prediction_of_a_kernel():
    X, y, _ = regret.played("vaw2", "adversarial", 40, 0)
    problem = regret.learner_of("vaw2", 3, 0).problem
    reached = regret.reach("vaw2", problem, X, y)[:, 0]
    assert reached[0] == 0
    assert 0 < reached.max() < 2
    small, large = (regret.forecaster_bound(100, 0.1, 0.1, 3, 10, V) for V in (1.0, 2.0))
    assert large - small == pytest.approx(3 * math.log((1 + 4000) / (1 + 1000)))
