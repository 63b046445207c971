"""The related algorithms beside scikit-learn and formulas that share no code with them, by both implementations."""

import math

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, DotProduct
from sklearn.kernel_approximation import Nystroem
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge, SGDRegressor
from streams import gaussians, small, small_for, stream, weights_of

from omkl.kernels import Gaussian
from omkl.online import Online

pytestmark = pytest.mark.parametrize("backend", ["numpy", "engine"])


def features_of(V, X):
    """(rows, 2 D): sines, then cosines."""
    phase = X @ V
    return np.hstack((np.sin(phase), np.cos(phase))) / math.sqrt(V.shape[1])


@pytest.mark.parametrize("loss", ["squared", "logistic", "hinge"])
@pytest.mark.parametrize("stabiliser", ["aware", "none"])
def test_adaraker_with_one_interval_is_raker_to_the_last_bit(backend, loss, stabiliser):
    X, y = stream(300, 3, loss=loss)
    shared = {"kernels": gaussians(5), "n_features": 13, "loss": loss, "stabiliser": stabiliser, "learning_rate": 0.3}
    one = Online.make("adaraker", small_for("adaraker", levels=1, **shared), 3, 4, backend=backend)
    other = Online.make("raker", small(**shared), 3, 4, backend=backend)
    np.testing.assert_array_equal(one.run(X, y, weights_of(300)), other.run(X, y, weights_of(300)))
    np.testing.assert_array_equal(one.state.theta[0], other.state.theta)
    np.testing.assert_array_equal(one.state.log_w[0], other.state.log_w)


def test_a_forecaster_of_vaw_is_ridge_regression_on_the_past_and_the_current_row_with_the_target_0(backend):
    X, y = stream(40, 3)
    settings = small_for("vaw2", kernels=gaussians(3), ridge=0.3, mixing_ridge=0.7)
    online = Online.make("vaw2", settings, 3, backend=backend)
    f = online.run(X, y)

    def forecast(Z, ridge, t):
        target = np.append(y[:t], 0.0)
        return Ridge(alpha=ridge, fit_intercept=False, tol=1e-12).fit(Z[: t + 1], target).predict(Z[t : t + 1])[0]

    Z = [features_of(V, X) for V in online.problem.V]
    v = np.array([[forecast(Z_i, 0.3, t) for Z_i in Z] for t in range(40)])
    np.testing.assert_allclose(f, [forecast(v, 0.7, t) for t in range(40)], rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("freeze_after", [None, 20])
def test_omkl_gf_with_one_node_is_the_algorithm_of_the_paper_with_which_it_is_compared(backend, weighted, freeze_after):
    """Draws from (1 - xi) w / W + xi / N, q = 1 - (1 - p)^M, and plain steps; written anew, with plain weights."""
    X, y = stream(60, 2)
    rate, xi, N, M = 0.05, 0.4, 5, 3
    settings = small(
        kernels=gaussians(N), draws=M, learning_rate=rate, exploration=xi, horizon=60, stabiliser="none",
        weighted=weighted, freeze_after=freeze_after,
    )  # fmt: skip
    online, r = Online.make("omkl-gf", settings, 2, 7, backend=backend), np.random.default_rng(7)
    V, theta, w = online.problem.V, np.zeros((N, 14)), np.ones(N)
    for t in range(60):
        if freeze_after is None or t < freeze_after:
            p = (1 - xi) * w / w.sum() + xi / N
            chosen = {int(np.searchsorted(np.cumsum(p), each, side="right")) for each in r.random(M)}
            q = 1 - (1 - p) ** M
        np.testing.assert_allclose(online.state.q, q, rtol=1e-9)
        assert set(np.flatnonzero(online.state.chosen)) == chosen
        z = [features_of(V_i, X[t : t + 1])[0] for V_i in V]
        f = {i: theta[i] @ z[i] for i in chosen}
        want = sum(w[i] * f[i] for i in chosen) / sum(w[i] for i in chosen)
        assert online.predict(X[t]) == pytest.approx(want, rel=1e-9, abs=1e-12)
        online.learn(X[t], y[t])
        for i in chosen:
            w[i] *= math.exp(-rate * ((f[i] - y[t]) ** 2 + settings.ridge * theta[i] @ theta[i]) / q[i])
            gradient = 2 * (f[i] - y[t]) * z[i] + 2 * settings.ridge * theta[i]
            theta[i] -= rate * gradient / (q[i] if weighted else 1)


def test_fogd_is_stochastic_gradient_descent_on_the_features(backend):
    X, y = stream(80, 3)
    settings = small_for("fogd", stabiliser="none", learning_rate=0.1, horizon=80)
    online = Online.make("fogd", settings, 3, backend=backend)
    Z = features_of(online.problem.V[0], X)
    sgd = SGDRegressor(penalty=None, fit_intercept=False, learning_rate="constant", eta0=0.2)  # of half the square
    want = [0.0]
    for t in range(79):
        sgd.partial_fit(Z[t : t + 1], y[t : t + 1])
        want.append(sgd.predict(Z[t + 1 : t + 2])[0])
    np.testing.assert_allclose(online.run(X, y), want, rtol=1e-9, atol=1e-12)


def test_nogd_is_stochastic_gradient_descent_on_the_nystroem_features_of_scikit_learn(backend):
    """All eigenvalues used: any square root of the inverse kernel matrix serves, as the one of scikit-learn does."""
    X, y = stream(60, 2)
    settings = small_for("nogd", rank=12, stabiliser="none", learning_rate=0.1, horizon=60)
    online = Online.make("nogd", settings, 2, backend=backend)
    f, kernel = online.run(X, y), online.problem.kernels[0]
    alpha, K = np.zeros(12), kernel.value(X, X)
    for t in range(12):
        assert f[t] == pytest.approx(alpha @ K[:12, t], rel=1e-9, abs=1e-12)
        alpha[t] = 0.2 * (y[t] - alpha @ K[:12, t])
    gamma = 1 / (2 * kernel.length_scale**2)
    nystroem = Nystroem(kernel="rbf", gamma=gamma, n_components=12, random_state=0).fit(X[:12])
    Z = nystroem.transform(X)
    theta = np.linalg.lstsq(Z[:12], K[:12, :12] @ alpha)[0]
    for t in range(12, 60):
        assert f[t] == pytest.approx(theta @ Z[t], rel=1e-6, abs=1e-9)
        theta += 0.2 * (y[t] - theta @ Z[t]) * Z[t]


def test_krls_t_that_forgets_nothing_and_has_room_is_gaussian_process_and_kernel_ridge_regression(backend):
    X, y = stream(40, 5)
    settings = small_for("krls-t", kernels=[Gaussian(0.8)], budget=50, forgetting=1.0, noise=0.2)
    online = Online.make("krls-t", settings, 5, backend=backend)
    f = online.run(X, y)
    for t in range(1, 40):
        process = GaussianProcessRegressor(RBF(0.8), alpha=0.2, optimizer=None).fit(X[:t], y[:t])
        ridge = KernelRidge(alpha=0.2, kernel="rbf", gamma=1 / (2 * 0.8**2)).fit(X[:t], y[:t])
        assert f[t] == pytest.approx(process.predict(X[t : t + 1])[0], rel=1e-8, abs=1e-10)
        assert f[t] == pytest.approx(ridge.predict(X[t : t + 1])[0], rel=1e-8, abs=1e-10)
    state, process = online.state, GaussianProcessRegressor(RBF(0.8), alpha=0.2, optimizer=None).fit(X, y)
    mean, covariance = process.predict(X, return_cov=True)
    assert state.n == 40
    np.testing.assert_allclose(state.mu[:40], mean, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(state.Sigma[:40, :40], covariance, rtol=1e-7, atol=1e-9)


def test_doebe_with_one_expert_is_bayesian_linear_regression(backend):
    """Its posterior in closed form, and each prediction and its density by a Gaussian process with a linear kernel."""
    X, y = stream(30, 3)
    settings = small_for("doebe", kernels=gaussians(1), walk=0.0, noise=0.3)
    online = Online.make("doebe", settings, 3, backend=backend)
    Z = features_of(online.problem.V[0], X)
    f, score = online.run(X, y), 0.0
    for t in range(30):
        mean, deviation = 0.0, math.sqrt(Z[t] @ Z[t])
        if t:
            process = GaussianProcessRegressor(DotProduct(0, "fixed"), alpha=0.3, optimizer=None).fit(Z[:t], y[:t])
            (mean,), (deviation,) = process.predict(Z[t : t + 1], return_std=True)
        variance = deviation**2 + 0.3
        score -= 0.5 * (math.log(2 * math.pi * variance) + (y[t] - mean) ** 2 / variance)
        assert f[t] == pytest.approx(mean, rel=1e-8, abs=1e-10)
    P = np.linalg.inv(np.eye(Z.shape[1]) + Z.T @ Z / 0.3)
    np.testing.assert_allclose(online.state.P[0], P, rtol=1e-8, atol=1e-11)
    np.testing.assert_allclose(online.state.theta[0].ravel(), P @ Z.T @ y / 0.3, rtol=1e-8, atol=1e-10)
    assert online.state.log_score == pytest.approx(score, rel=1e-9)
