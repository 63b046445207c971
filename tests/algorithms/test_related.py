"""What makes each of the related algorithms what it is, against oracles that are computed in another way."""

import math
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq, minimize
from scipy.special import expit, logsumexp
from scipy.stats import multivariate_normal, norm
from streams import gaussians, small, small_for, stream, weights_of

from omkl import algorithms
from omkl.algorithms import adaraker, doebe, fogd, nogd, omkl_gf, raker
from omkl.algorithms.settings import Settings
from omkl.algorithms.weights import normalised
from omkl.features import features
from omkl.kernels import Gaussian, Laplacian, dictionary
from omkl.online import Online

NONE = np.empty(0)


def rounds(name, X, y, weights=None, **changes):
    """Yields (problem, state before, info, state after) of each row."""
    algorithm = algorithms.get(name)
    problem = algorithms.problem(name, small_for(name, **changes), X.shape[1])
    uniforms = np.random.default_rng(2).random((len(X) + 1, algorithm.uniforms(problem)))
    state = algorithm.init(problem, uniforms[0])
    for t, (x, target) in enumerate(zip(X, y, strict=True)):
        after, info = algorithm.step(problem, state, x, target, uniforms[t + 1], 1.0 if weights is None else weights[t])
        yield problem, state, info, after
        state = after


# AdaRaker


@pytest.mark.parametrize("horizon", [None, 60])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_adaraker_with_one_level_is_raker(horizon, loss):
    X, y = stream(60, 2, loss=loss)
    shared = {"kernels": gaussians(3), "n_features": 7, "horizon": horizon, "loss": loss}
    one = Online.make("adaraker", small_for("adaraker", levels=1, **shared), 2, 0, backend="numpy")
    other = Online.make("raker", small(**shared), 2, 0, backend="numpy")
    np.testing.assert_array_equal(one.run(X, y, weights_of(60)), other.run(X, y, weights_of(60)))
    np.testing.assert_array_equal(one.state.theta[0], other.state.theta)


@pytest.mark.parametrize("warm", [True, False])
def test_a_level_of_adaraker_is_a_raker_on_each_of_its_intervals(warm):
    """Level 1 of 3, with intervals of 8 rounds and the step min(1/2, 1 / sqrt(8))."""
    X, y = stream(40, 2)
    settings = small_for("adaraker", warm=warm)
    eta = 1 / math.sqrt(8)
    inner = raker.build(Settings(kernels=settings.kernels, n_features=7, learning_rate=eta, horizon=1), ["0", "1"], 0)
    level = raker.init(inner, NONE)
    for t, (_, _, _, after) in enumerate(rounds("adaraker", X, y, warm=warm)):
        level, _ = raker.step(inner, level, X[t], y[t], NONE)
        if (t + 1) % 8 == 0:
            assert after.log_h[1] == math.log(eta)
            if not warm:
                level = raker.init(inner, NONE)
        np.testing.assert_allclose(after.theta[1], level.theta, rtol=0, atol=1e-14)
        np.testing.assert_allclose(after.log_w[1], level.log_w, rtol=0, atol=1e-13)


def test_levels_of_adaraker_gain_by_what_they_lose_less_than_the_combination():
    X, y = stream(3, 2)
    for t, (problem, before, info, after) in enumerate(rounds("adaraker", X, y)):
        _, _, level = adaraker.predictions(problem, before, X[t])
        assert info.prediction == pytest.approx(normalised(before.log_h) @ level, rel=1e-15)
        etas = adaraker.rates(problem, t + 1)
        gains = [eta * ((info.prediction - y[t]) ** 2 - (f - y[t]) ** 2) for eta, f in zip(etas, level, strict=True)]
        np.testing.assert_allclose(after.log_h - before.log_h, gains, rtol=1e-12, atol=1e-15)


def test_adaraker_follows_a_change_that_raker_does_not():
    X, y = stream(1200, 2)
    y[600:] = -y[600:]
    settings = {"kernels": gaussians(5), "n_features": 20}
    one = Online.make("adaraker", adaraker.AdaRakerSettings(**settings, levels=5, shortest=16), 2).run(X, y)
    other = Online.make("raker", Settings(**settings), 2).run(X, y)
    after = slice(650, 900)
    assert np.mean((one[after] - y[after]) ** 2) < 0.7 * np.mean((other[after] - y[after]) ** 2)


# VAW^2


def vaw(Z, y, ridge, weights=None):
    """Predictions of a Vovk-Azoury-Warmuth forecaster, by solving its equations anew in every round."""
    weights = np.ones(len(y)) if weights is None else weights
    out = []
    for t in range(len(y)):
        past = Z[:t] * weights[:t, None]
        A = ridge * np.eye(Z.shape[1]) + past.T @ Z[:t] + np.outer(Z[t], Z[t])
        out.append(Z[t] @ np.linalg.solve(A, past.T @ y[:t]))
    return np.array(out)


@pytest.mark.parametrize("weighted", [False, True])
def test_vaw_is_ridge_regression_with_the_current_row_and_so_is_the_one_over_the_kernels(weighted):
    X, y = stream(40, 2)
    weights = weights_of(40) if weighted else None
    went = list(rounds("vaw2", X, y, weights, ridge=0.1, mixing_ridge=0.5))
    problem, v = went[0][0], np.array([info.v for _, _, info, _ in went])
    for i, V in enumerate(problem.V):
        Z = np.array([features(V, x).ravel() for x in X])
        np.testing.assert_allclose(v[:, i], vaw(Z, y, 0.1, weights), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(
        [info.prediction for _, _, info, _ in went], vaw(v, y, 0.5, weights), rtol=1e-9, atol=1e-11
    )


def test_vaw_with_one_kernel_is_a_forecaster_of_its_forecast():
    """From scratch in every round: no factor, no update; the second forecaster has one feature, and is a quotient."""
    X, y = stream(40, 3)
    went = list(rounds("vaw2", X, y, kernels=gaussians(1), ridge=0.3, mixing_ridge=0.2))
    (V,) = went[0][0].V
    Z = np.column_stack((np.sin(X @ V), np.cos(X @ V))) / math.sqrt(V.shape[1])
    A, b, B, c = 0.3 * np.eye(Z.shape[1]), np.zeros(Z.shape[1]), 0.2, 0.0
    for (_, _, info, _), z, target in zip(went, Z, y, strict=True):
        A += np.outer(z, z)
        v = np.linalg.inv(A) @ b @ z
        B += v * v
        assert info.prediction == pytest.approx(c * v / B, rel=1e-9, abs=1e-12)
        b, c = b + target * z, c + target * v


@given(st.integers(0, 2**32), st.floats(0.01, 10))
@settings(max_examples=10)
def test_the_regret_of_vaw_is_within_its_bound(seed, ridge):
    """lambda |u|^2 + Y^2 n log(1 + T / (lambda n)) against the best u, for features of norm 1."""
    X, y = stream(60, 2, seed)
    rng = np.random.default_rng(seed)
    y = np.sign(rng.standard_normal(60)) if seed % 2 else y
    went = list(rounds("vaw2", X, y, ridge=ridge))
    for i, V in enumerate(went[0][0].V):
        Z = np.array([features(V, x).ravel() for x in X])
        n = Z.shape[1]
        u = np.linalg.solve(ridge * np.eye(n) + Z.T @ Z, Z.T @ y)
        best = np.sum((Z @ u - y) ** 2) + ridge * u @ u
        bound = np.max(np.abs(y)) ** 2 * n * np.log(1 + len(y) / (ridge * n))
        assert sum((info.v[i] - target) ** 2 for (_, _, info, _), target in zip(went, y, strict=True)) <= best + bound


# OMKL-GF


def test_omkl_gf_with_one_node_takes_no_number_for_the_node():
    problem = algorithms.problem("omkl-gf", small(), 2)
    assert (problem.J, omkl_gf.uniforms(problem)) == (1, 3)
    assert omkl_gf.uniforms(problem._replace(J=4)) == 13


def test_the_probabilities_of_omkl_gf_are_those_with_which_kernels_are_chosen():
    problem = algorithms.problem("omkl-gf", small(exploration=0.6), 2)
    log_w = np.array([0.0, -0.5, -1.0, -2.0, -4.0])
    rng = np.random.default_rng(0)
    drawn = [omkl_gf.choose(problem, log_w, 2, rng.random(3)) for _ in range(5000)]
    np.testing.assert_allclose(np.mean([chosen for chosen, _ in drawn], axis=0), drawn[0][1], atol=0.03)


def test_a_node_of_omkl_gf_is_drawn_by_the_weights_of_the_kernels_that_it_drew():
    """Two nodes of one draw each, of the first kernel and of the last: u = (w_0, w_4)."""
    problem = algorithms.problem("omkl-gf", small(nodes=2, draws=1, exploration=0.5, horizon=100), 2)
    w = normalised(log_w := np.array([0.0, -1.0, -2.0, -3.0, -4.0]))
    share = 0.5 * w[0] / (w[0] + w[4]) + 0.25
    for r, kernel in ((share - 1e-9, 0), (share + 1e-9, 4)):
        chosen, q = omkl_gf.choose(problem, log_w, 1, np.array([0.0, 1 - 1e-9, r]))
        assert np.flatnonzero(chosen).tolist() == [kernel]
        np.testing.assert_allclose(q, share * (0.5 * w + 0.1) + (1 - share) * (0.75 * w + 0.05), rtol=1e-12)


def test_nodes_of_omkl_gf_explore_by_powers_of_the_rate():
    problem = algorithms.problem("omkl-gf", small(nodes=2, draws=1, exploration=0.5, horizon=100), 2)
    w = normalised(log_w := np.array([0.0, -1.0, -2.0, -3.0, -9.0]))
    first, second = (0.5 * w + 0.1), (0.75 * w + 0.05)
    # both nodes draw the first kernel, and are then equally likely
    chosen, q = omkl_gf.choose(problem, log_w, 1, np.zeros(3))
    assert chosen.tolist() == [True, False, False, False, False]
    np.testing.assert_allclose(q, (first + second) / 2, rtol=1e-12)


def test_nodes_of_omkl_gf_that_drew_kernels_without_weight_are_equally_likely():
    """After a long stream the weight of a kernel is 0 to rounding, and exploration may draw such kernels only."""
    problem = algorithms.problem("omkl-gf", small(nodes=2, draws=1, exploration=0.5, horizon=100), 2)
    log_w = np.array([0.0, -1e4, -1e4, -1e4, -1e4])
    for r in (0.3, 0.7):
        chosen, q = omkl_gf.choose(problem, log_w, 1, np.array([0.99, 0.83, r]))
        assert np.flatnonzero(chosen).tolist() == [4 if r < 0.5 else 1]
        np.testing.assert_allclose(q, [0.7, 0.075, 0.075, 0.075, 0.075], rtol=1e-12)


@pytest.mark.parametrize("learner", ["omkl-gf", "sfg-mkl", "sfg-mkl-r"])
def test_nothing_is_divided_by_less_than_the_least_probabilities(learner):
    """With `least` near 1 a step is that of probabilities 1, however small the probabilities are."""
    X, y = stream(1, 2)
    floor = {"least_q": 1 - 1e-12} | ({} if learner == "omkl-gf" else {"least_p": 1 - 1e-12})
    ((problem, before, info, after),) = rounds(learner, X, y, **floor)
    loss, eta = y[0] ** 2, problem.schedule.eta_at(1)
    np.testing.assert_allclose(after.log_w[info.evaluated], -eta * loss, rtol=1e-9)
    if learner != "omkl-gf":
        assert after.log_u[before.node] == pytest.approx(-eta * loss, rel=1e-9)


def test_the_protocol_of_the_journal_version():
    settings = Settings.jmlr(M=15, rounds=500, least_q=0.05)
    kernels = dictionary("jmlr")
    assert kernels == list(settings.all_kernels)
    assert [type(k) for k in kernels] == [Gaussian] * 51 + [Laplacian] * 25
    assert kernels[0].length_scale ** 2 == pytest.approx(0.01)
    assert kernels[50].length_scale ** 2 == pytest.approx(100)
    assert (kernels[51].length_scale, kernels[75].length_scale) == (pytest.approx(0.01), pytest.approx(100))
    assert dictionary("jmlr-omkr")[0].length_scale ** 2 == pytest.approx(0.005)
    assert dictionary("jmlr-omkr")[51:] == kernels[51:]
    assert settings.schedule.eta_at(4) == settings.schedule.xi_at(4) == pytest.approx(0.05)
    assert (settings.out_degree, settings.draws, settings.commit, settings.commit_after) == (15, 15, "first", 500)


# FOGD, NOGD and KRLS-T


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_fogd_is_raker_with_one_kernel_and_no_ridge(loss):
    X, y = stream(50, 2, loss=loss)
    shared = {"kernels": [Gaussian(0.5)], "n_features": 7, "loss": loss}
    one = Online.make("fogd", fogd.FOGDSettings(**shared), 2)
    other = Online.make("raker", Settings(**shared, ridge=0.0), 2)
    np.testing.assert_array_equal(one.run(X, y), other.run(X, y))


def test_fogd_is_gradient_descent_on_random_features():
    X, y = stream(50, 2)
    went = list(rounds("fogd", X, y, stabiliser="none"))
    (V,) = went[0][0].V
    theta = np.zeros(2 * V.shape[1])
    for t, (_, _, info, _) in enumerate(went):
        z = np.concatenate((np.sin(X[t] @ V), np.cos(X[t] @ V))) / math.sqrt(V.shape[1])
        assert info.prediction == pytest.approx(theta @ z, rel=1e-12, abs=1e-14)
        theta -= 2 / math.sqrt(t + 1) * (theta @ z - y[t]) * z


def test_nogd_is_gradient_descent_with_every_row_until_the_budget_is_used_up():
    X, y = stream(12, 2)
    *_, (problem, before, _, _) = rounds("nogd", X, y, stabiliser="none")
    K = problem.kernels[0].value(X, X)
    alpha = np.zeros(12)
    for t in range(11):
        alpha[t] = -problem.schedule.eta_at(t + 1) * 2 * (alpha @ K[:, t] - y[t])
    np.testing.assert_allclose(before.beta, alpha, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("rank", [3, 8])
def test_nogd_is_gradient_descent_on_nystroem_features(rank):
    """z = D^(-1/2) V' k(x), with a theta of their own, as the paper has it."""
    X, y = stream(60, 2)
    went = list(rounds("nogd", X, y, rank=rank, stabiliser="none"))
    problem, first = went[0][0], went[12][1]
    kernel = problem.kernels[0]
    values, vectors = np.linalg.eigh(kernel.value(X[:12], X[:12]))
    values, vectors = values[-rank:], vectors[:, -rank:]
    assert values[0] > nogd.LEAST_EIGENVALUE * values[-1]
    unprojected = went[11][1].beta.copy()
    unprojected[11] = -problem.schedule.eta_at(12) * 2 * (went[11][2].prediction - y[11])
    theta = np.sqrt(values) * (vectors.T @ unprojected)
    np.testing.assert_allclose(vectors @ (theta / np.sqrt(values)), first.beta, atol=1e-12)
    for t in range(12, 60):
        z = vectors.T @ kernel.value(X[:12], X[t : t + 1])[:, 0] / np.sqrt(values)
        assert went[t][2].prediction == pytest.approx(theta @ z, rel=1e-10, abs=1e-12)
        theta -= problem.schedule.eta_at(t + 1) * 2 * (theta @ z - y[t]) * z


def test_eigenvalues_of_nogd_that_are_equal_are_kept_together():
    """Rows so far from each other that K is the identity: which of its eigenvectors come first is arbitrary."""
    X, y = 1e4 * stream(30, 2)[0], np.ones(30)
    after = [state for *_, state in rounds("nogd", X, y, rank=3)]
    np.testing.assert_allclose(after[12].inverse, np.eye(12), atol=1e-12)


def test_nogd_stores_rows_that_are_learned_only():
    X, y = stream(8, 2, loss="hinge")
    weights = np.array([1.0, 0.0, 1.0, 0.0, 1.0, 1.0, 0.0, 1.0])
    stored = [after.n for *_, after in rounds("nogd", X, y, weights, loss="hinge", stabiliser="none")]
    assert stored[1] == stored[0] == 1
    assert stored[3] == stored[2]
    assert stored[6] == stored[5]


def process(kernel, X, y, x, noise):
    """Mean and variance of a Gaussian process at x, given rows with noise of these variances."""
    K, k = kernel.value(X, X) + np.diag(noise), kernel.value(X, x[None])[:, 0]
    return k @ np.linalg.solve(K, y), 1 - k @ np.linalg.solve(K, k)


@pytest.mark.parametrize("weighted", [False, True])
def test_krls_t_that_forgets_nothing_and_has_room_is_a_gaussian_process(weighted):
    X, y = stream(30, 5)
    weights = np.random.default_rng(1).uniform(0.5, 3, 30) if weighted else np.ones(30)
    for t, (problem, _, info, _) in enumerate(rounds("krls-t", X, y, weights, budget=40, forgetting=1.0)):
        mean, variance = process(problem.kernels[0], X[:t], y[:t], X[t], 0.1 / weights[:t]) if t else (0.0, 1.0)
        assert info.prediction == pytest.approx(mean, rel=1e-9, abs=1e-11)
        assert info.variance == pytest.approx(variance + 0.1, rel=1e-9)


def test_krls_t_forgets_as_a_process_does_whose_rows_are_less_and_less_related():
    """Back to the prior: covariances of rows s rounds apart are multiplied by l^(s / 2)."""
    X, y = stream(20, 5)
    forgetting = 0.9
    for t, (problem, _, info, _) in enumerate(rounds("krls-t", X, y, budget=40, forgetting=forgetting)):
        if t == 0:
            continue
        kernel, age = problem.kernels[0], np.arange(t + 1)
        K = kernel.value(X[: t + 1], X[: t + 1]) * forgetting ** (np.abs(age[:, None] - age) / 2)
        past, k = K[:t, :t] + 0.1 * np.eye(t), K[t, :t]
        assert info.prediction == pytest.approx(k @ np.linalg.solve(past, y[:t]), rel=1e-8, abs=1e-10)
        assert info.variance == pytest.approx(1.1 - k @ np.linalg.solve(past, k), rel=1e-8)


def posterior_of_values(K, n, rows, y, noise):
    """Mean and covariance of the values at the first n points of K, given y at `rows` of them."""
    part, seen = K[:n, rows], K[np.ix_(rows, rows)] + noise * np.eye(len(rows))
    return part @ np.linalg.solve(seen, y), K[:n, :n] - part @ np.linalg.solve(seen, part.T)


def test_krls_t_knows_the_values_at_its_rows_as_a_gaussian_process_does():
    """Within the budget nothing is lost, and after the first row that is removed no more than is projected."""
    X, y = stream(13, 5)
    for t, (problem, _, _, after) in enumerate(rounds("krls-t", X, y, budget=12, forgetting=1.0)):
        K = problem.kernels[0].value(X, X)
        if t < 12:
            mean, covariance = posterior_of_values(K, t + 1, np.arange(t + 1), y[: t + 1], 0.1)
            np.testing.assert_allclose(after.mu[: t + 1], mean, rtol=1e-8, atol=1e-10)
            np.testing.assert_allclose(after.Sigma[: t + 1, : t + 1], covariance, rtol=1e-8, atol=1e-10)
        else:
            mean, covariance = posterior_of_values(K, 13, np.arange(13), y, 0.1)
            removed = int(np.argmin(np.abs(np.linalg.solve(K, mean)) / np.diag(np.linalg.inv(K))))
            kept = np.delete(np.arange(13), removed)
            np.testing.assert_array_equal(after.S.T, X[kept])
            np.testing.assert_allclose(after.mu, mean[kept], rtol=1e-7, atol=1e-9)
            np.testing.assert_allclose(after.Sigma, covariance[np.ix_(kept, kept)], rtol=1e-7, atol=1e-9)
            np.testing.assert_allclose(after.Q, np.linalg.inv(K[np.ix_(kept, kept)]), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("weight", [1e12, 1e30])
def test_rows_that_contradict_each_other_do_not_break_krls_t_however_much_they_weigh(weight):
    """The mean of what has come, which is what a process knows of a value that it saw so often."""
    X = np.repeat(stream(3, 2)[0], 40, axis=0)
    y = np.random.default_rng(4).standard_normal(120)
    for *_, info, after in rounds("krls-t", X, y, np.full(120, weight), forgetting=1.0):
        assert abs(info.prediction) < 10
        assert np.abs(after.Sigma).max() <= 1 + 1e-9
        assert np.linalg.eigvalsh(after.Sigma[: after.n, : after.n])[0] > -1e-9


def test_the_inverse_of_krls_t_stays_one_over_a_long_stream():
    X, y = stream(20_000, 2)
    settings = small_for("krls-t", budget=30)
    online = Online.make("krls-t", settings, 2)
    online.run(X, y)
    S, Q = online.state.S, online.state.Q
    K = online.problem.kernels[0].value(S.T, S.T)
    np.testing.assert_allclose(Q @ K, np.eye(30), atol=1e-5)


def test_krls_t_stores_no_more_than_its_budget_and_no_row_that_is_known_already():
    X, y = stream(60, 1)
    for problem, before, _, after in rounds("krls-t", X, y, budget=6):
        n = after.n
        assert before.n <= n <= 6
        K = problem.kernels[0].value(after.S[:, :n].T, after.S[:, :n].T)
        np.testing.assert_allclose(after.Q[:n, :n] @ K, np.eye(n), atol=1e-6)
    X[:] = X[0]
    assert [after.n for *_, after in rounds("krls-t", X, y)] == [1] * 60


# DOEBE and online Bayesian stacking


def test_the_log_score_of_one_expert_is_the_evidence_of_its_model():
    X, y = stream(30, 2)
    *_, (problem, _, _, after) = rounds("doebe", X, y, kernels=gaussians(1), walk=0.0)
    Z = np.array([features(problem.V[0], x).ravel() for x in X])
    evidence = multivariate_normal(np.zeros(30), Z @ Z.T + 0.1 * np.eye(30)).logpdf(y)
    assert after.log_score == pytest.approx(evidence, rel=1e-10)


def test_experts_that_move_have_the_evidence_of_a_random_walk():
    """theta_t = theta_(t - 1) + noise: Cov(y_s, y_t) = z_s . z_t (1 + walk min(s, t))."""
    X, y = stream(30, 2)
    went = list(rounds("doebe", X, y, kernels=gaussians(1), walk=0.05))
    problem, age = went[0][0], np.arange(1, 31)
    Z = np.array([features(problem.V[0], x).ravel() for x in X])
    covariance = Z @ Z.T * (1 + 0.05 * np.minimum(age[:, None], age)) + 0.1 * np.eye(30)
    moving = sum(
        norm(m[1], math.sqrt(0.1 + v[1])).logpdf(target)
        for (problem, before, _, _), x, target in zip(went, X, y, strict=True)
        for _, _, m, v in [doebe.distributions(problem, before, x)]
    )
    assert moving == pytest.approx(multivariate_normal(np.zeros(30), covariance).logpdf(y), rel=1e-9)


def test_the_weights_of_averaging_are_the_probabilities_of_the_models():
    X, y = stream(25, 2)
    *_, (problem, _, _, after) = rounds("doebe", X, y, walk=0.0)
    Z = [np.array([features(V, x).ravel() for x in X]) for V in problem.V]
    evidence = np.array([multivariate_normal(np.zeros(25), z @ z.T + 0.1 * np.eye(25)).logpdf(y) for z in Z])
    np.testing.assert_allclose(np.exp(after.log_w), normalised(evidence), rtol=1e-8)
    assert after.log_score == pytest.approx(logsumexp(evidence) - math.log(3), rel=1e-10)


def test_stacking_with_the_rate_1_is_averaging(monkeypatch):
    X, y = stream(30, 2)
    monkeypatch.setattr(doebe, "rate_at", lambda experts, t: 1.0)
    *_, (_, _, _, stacked) = rounds("doebe", X, y, mixing="stacking")
    *_, (_, _, _, averaged) = rounds("doebe", X, y)
    np.testing.assert_allclose(stacked.log_w, averaged.log_w, rtol=1e-10, atol=1e-10)


def test_stacking_is_soft_bayes_with_a_rate_that_decreases():
    """In weights instead of logarithms, where densities are moderate."""
    rng = np.random.default_rng(3)
    p = rng.uniform(0.1, 3, (60, 4))
    w, log_w = np.full(4, 0.25), np.full(4, -math.log(4))
    for t, row in enumerate(p, 1):
        rate, after = (math.sqrt(math.log(4) / (8 * s)) for s in (t, t + 1))
        w = w * (1 - rate + rate * row / (w @ row)) * after / rate + (1 - after / rate) / 4
        log_w = doebe.stacked(log_w, np.log(row / (np.exp(log_w) @ row)), t)
        np.testing.assert_allclose(np.exp(log_w), w, rtol=1e-12)


def test_the_weights_of_stacking_approach_those_of_a_convex_solver():
    """Three experts of which none is right: the best fixed mixture lies inside, and averaging goes to a corner."""
    rng = np.random.default_rng(6)
    y = np.where(rng.random(6000) < 0.7, 0.0, 3.0) + rng.standard_normal(6000)
    log_p = norm.logpdf(y[:, None], [0.0, 3.0, 8.0], 1.0)

    def loss(a):
        w = np.exp(a - logsumexp(a))
        return -logsumexp(np.log(w) + log_p, axis=1).sum() / len(y)

    best = minimize(loss, np.zeros(3), method="BFGS").x
    best = np.exp(best - logsumexp(best))
    log_w, mean = np.full(3, -math.log(3)), np.zeros(3)
    for t, row in enumerate(log_p):
        log_w = doebe.stacked(log_w, row - logsumexp(log_w + row), t + 1)
        mean += np.exp(log_w) * (t >= 3000) / 3000
    np.testing.assert_allclose(best[:2], [0.7, 0.3], atol=0.02)
    np.testing.assert_allclose(mean, best, atol=0.04)
    averaged = log_p.sum(axis=0)
    assert np.exp(averaged - logsumexp(averaged))[0] > 0.999


@given(st.integers(0, 2**32), st.integers(2, 6))
@settings(max_examples=5)
def test_the_log_score_of_stacking_is_near_that_of_the_best_fixed_mixture(seed, E):
    """Soft-Bayes: at most sqrt(2 E T log E) + log E below any fixed weights; here against all on a grid."""
    rng = np.random.default_rng(seed)
    log_p = 3 * rng.standard_normal((200, E)) * (rng.random((200, 1)) < 0.5)
    log_w, score = np.full(E, -math.log(E)), 0.0
    for t, row in enumerate(log_p):
        log_density = logsumexp(log_w + row)
        score += log_density
        log_w = doebe.stacked(log_w, row - log_density, t + 1)
        assert logsumexp(log_w) == pytest.approx(0, abs=1e-9)
    best = max(logsumexp(np.log(w) + log_p, axis=1).sum() for w in rng.dirichlet(np.ones(E), 200))
    assert score >= best - 2 * math.sqrt(2 * E * 200 * math.log(E)) - math.log(E)


@pytest.mark.parametrize("mixing", ["averaging", "stacking"])
@pytest.mark.parametrize("weight", [1.0, 1e30])
def test_doebe_stays_finite_without_noise(mixing, weight):
    X, y = stream(150, 2)
    X[::2] = X[0]
    for *_, info, after in rounds("doebe", X, y, np.full(150, weight), mixing=mixing, noise=1e-8):
        assert abs(info.prediction) < 100
        assert np.isfinite(after.log_w).all()


# DOEBE for labels


@given(st.floats(-50, 50), st.floats(0, 1e6))
@settings(max_examples=50)
def test_an_expert_of_labels_moves_to_the_most_likely_prediction(start, variance):
    slope, information = doebe.balance(start, variance)
    end = start + variance
    a = brentq(lambda a: a - start - variance * expit(-a), start, end, xtol=1e-14) if end > start else start
    assert slope == pytest.approx(expit(-a), rel=1e-6)
    assert information == pytest.approx(expit(-a) * expit(a), rel=1e-6)


def test_an_expert_of_labels_has_laplaces_approximation_of_its_posterior():
    """The first row: a prior of mean 0 and unit covariance, minimised over all coefficients, with its Hessian there."""
    X, y = stream(1, 2, loss="logistic")
    ((problem, _, _, after),) = rounds("doebe", X, y, np.array([2.0]), kernels=gaussians(1), walk=0.0, loss="logistic")
    z = features(problem.V[0], X[0]).ravel()
    found = minimize(lambda theta: 2 * np.logaddexp(0, -y[0] * theta @ z) + theta @ theta / 2, np.zeros(len(z)),
                     tol=1e-12).x  # fmt: skip
    np.testing.assert_allclose(after.theta[0].ravel(), found, atol=1e-6)
    p = expit(found @ z)
    hessian = np.eye(len(z)) + 2 * p * (1 - p) * np.outer(z, z)
    np.testing.assert_allclose(after.P[0], np.linalg.inv(hessian), atol=1e-6)


def test_the_probability_of_a_label_is_that_of_the_mixture():
    """Beside the integral of the logistic function over each expert's distribution, of which MacKay's is near."""
    X, y = stream(60, 2, loss="logistic")
    nodes, shares = np.polynomial.hermite_e.hermegauss(60)
    shares = shares / shares.sum()
    for (problem, before, info, _), x in zip(rounds("doebe", X, y, loss="logistic"), X, strict=True):
        _, _, m, v = doebe.distributions(problem, before, x)
        exact = np.exp(before.log_w) @ (expit(m[:, None] + np.sqrt(v)[:, None] * nodes) @ shares)
        assert expit(info.prediction) == pytest.approx(exact, abs=0.01)


def test_the_log_score_of_labels_is_that_of_the_probabilities():
    X, y = stream(60, 2, loss="logistic")
    went = list(rounds("doebe", X, y, loss="logistic"))
    scores = [np.log(expit(target * info.prediction)) for (_, _, info, _), target in zip(went, y, strict=True)]
    assert went[-1][3].log_score == pytest.approx(sum(scores), rel=1e-10)
    assert -went[-1][3].log_score / 60 < math.log(2)


def test_labels_the_other_way_round_change_signs_only():
    """Estimators of many labels rest on it."""
    X, y = stream(40, 2, loss="logistic")
    for one, other in zip(rounds("doebe", X, y, loss="logistic"), rounds("doebe", X, -y, loss="logistic"), strict=True):
        assert one[2].prediction == pytest.approx(-other[2].prediction, rel=1e-9, abs=1e-12)
        np.testing.assert_allclose(one[3].theta, -other[3].theta, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(one[3].log_w, other[3].log_w, rtol=1e-9, atol=1e-12)


# Settings


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("adaraker", {"levels": 41}, "levels must be at most 40"),
        ("adaraker", {"shortest": 0}, "shortest"),
        ("adaraker", {"shortest": 2**20 + 1}, "shortest must be at most 1048576"),
        ("adaraker", {"warm": "yes"}, "warm must be True or False"),
        ("vaw2", {"ridge": 0.0}, "ridge must be a positive number"),
        ("vaw2", {"mixing_ridge": -1.0}, "mixing_ridge must be a positive number"),
        ("fogd", {"kernels": gaussians(2)}, "kernels must be a list of one kernel"),
        ("nogd", {"rank": 13}, r"rank must be at most the budget, 12 \(lower rank too\), got 13"),
        ("nogd", {"stabiliser": "project"}, "stabiliser must be aware, floor or none"),
        ("krls-t", {"noise": 0.0}, "noise must be a number of at least 1e-08"),
        ("krls-t", {"forgetting": 1.1}, "forgetting must be a positive number of at most 1"),
        ("doebe", {"mixing": "voting"}, "mixing must be one of averaging, stacking"),
        ("doebe", {"walk": -1.0}, "walk must be a number of at least 0"),
        ("doebe", {"noise": 1e-9}, "noise must be a number of at least 1e-08"),
        ("omkl-gf", {"nodes": 101}, "nodes must be at most 100"),
        ("sfg-mkl", {"least_q": 1.0}, "least_q must be a number from 0 to below 1"),
    ],
)
def test_settings_that_cannot_be_are_refused(name, changes, message):
    with pytest.raises(ValueError, match=message):
        small_for(name, **changes)


@pytest.mark.parametrize(("name", "loss"), [("vaw2", "logistic"), ("krls-t", "logistic"), ("doebe", "hinge")])
def test_algorithms_refuse_losses_that_they_are_not_defined_for(name, loss):
    with pytest.raises(ValueError, match=f"loss must be squared.* for {name}, got '{loss}'"):
        algorithms.problem(name, small_for(name, loss=loss), 2)


STATES = [
    ("vaw2", lambda state: state._replace(C=state.C + 1)),
    ("nogd", lambda state: state._replace(n=0)),
    ("krls-t", lambda state: state._replace(n=0)),
    ("krls-t", lambda state: state._replace(Sigma=2 * np.sign(state.Sigma))),
    ("krls-t", lambda state: state._replace(Q=np.zeros_like(state.Q))),
    ("adaraker", lambda state: state._replace(n=state.t + 1)),
    ("doebe", lambda state: state._replace(log_score=math.nan)),
]


@pytest.mark.parametrize(("name", "edited"), STATES)
def test_states_that_cannot_be_are_refused(name, edited):
    X, y = stream(20, 2)
    *_, (problem, _, _, after) = rounds(name, X, y)
    algorithms.get(name).check_state(problem, after)
    with pytest.raises(ValueError):  # each has a message of its own
        algorithms.get(name).check_state(problem, edited(after))


@pytest.mark.parametrize(
    ("name", "edited"),
    [
        ("nogd", lambda problem: problem._replace(descent=problem.descent._replace(stabiliser="project"))),
        ("doebe", lambda problem: problem._replace(loss="hinge")),
        ("adaraker", lambda problem: problem._replace(shortest=2**20 + 1)),
    ],
)
def test_problems_that_cannot_be_are_refused(name, edited):
    problem = algorithms.problem(name, small_for(name), 2)
    algorithms.get(name).check_problem(problem)
    with pytest.raises(ValueError):  # each has a message of its own
        algorithms.get(name).check_problem(edited(problem))


@pytest.mark.parametrize("name", ["vaw2", "krls-t", "doebe"])
def test_where_predictions_diverge_parameters_are_named_that_there_are(name):
    advised = algorithms.get(name).divergence_advice(algorithms.problem(name, small_for(name), 2))
    names = {"noise", "ridge", "mixing_ridge", "learning_rate"} & set(advised.split())
    assert names
    assert names <= {f.name for f in fields(algorithms.get(name).parameters)}
