"""What makes each of the related algorithms what it is, against oracles that are computed in another way."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp
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


# Settings


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("adaraker", {"levels": 41}, "levels must be at most 40"),
        ("adaraker", {"shortest": 0}, "shortest"),
        ("adaraker", {"warm": "yes"}, "warm must be True or False"),
        ("vaw2", {"ridge": 0.0}, "ridge must be a positive number"),
        ("vaw2", {"mixing_ridge": -1.0}, "mixing_ridge must be a positive number"),
        ("fogd", {"kernels": gaussians(2)}, "kernels must be one kernel"),
        ("nogd", {"rank": 13}, "rank must be at most the budget"),
        ("nogd", {"stabiliser": "project"}, "stabiliser must be aware, floor or none"),
        ("krls-t", {"noise": 0.0}, "noise must be a positive number"),
        ("krls-t", {"forgetting": 1.1}, "forgetting must be a positive number of at most 1"),
        ("doebe", {"mixing": "voting"}, "mixing must be one of averaging, stacking"),
        ("doebe", {"walk": -1.0}, "walk must be a number of at least 0"),
        ("omkl-gf", {"nodes": 101}, "nodes must be at most 100"),
        ("sfg-mkl", {"least_q": 1.0}, "least_q must be a number from 0 to below 1"),
    ],
)
def test_settings_that_cannot_be_are_refused(name, changes, message):
    with pytest.raises(ValueError, match=message):
        small_for(name, **changes)


@pytest.mark.parametrize("name", ["vaw2", "krls-t", "doebe"])
def test_algorithms_for_numbers_refuse_losses_of_labels(name):
    with pytest.raises(ValueError, match=f"loss must be squared for {name}"):
        algorithms.problem(name, small_for(name, loss="logistic"), 2)


STATES = {
    "vaw2": lambda state: state._replace(C=state.C + 1),
    "nogd": lambda state: state._replace(n=0),
    "krls-t": lambda state: state._replace(n=0),
    "adaraker": lambda state: state._replace(n=state.t + 1),
    "doebe": lambda state: state._replace(log_score=math.nan),
}


@pytest.mark.parametrize("name", STATES)
def test_states_that_cannot_be_are_refused(name):
    X, y = stream(20, 2)
    *_, (problem, _, _, after) = rounds(name, X, y)
    algorithms.get(name).check_state(problem, after)
    with pytest.raises(ValueError):  # each has a message of its own
        algorithms.get(name).check_state(problem, STATES[name](after))
