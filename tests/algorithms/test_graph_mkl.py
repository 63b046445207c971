"""GraphMKL: laws of its parts, and what it promises its users."""

import numpy as np
import pytest
from omkl.estimators.graph_core import GraphTargetCore
from streams import graph_settings as small
from streams import raw_and_turning as stream

import omkl
import omkl.river
from omkl.algorithms import graph_mkl


def test_sure_least_squares_go_on_learning():
    """A plane that turns once, with nobody but least squares to see it."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 3))
    y = X @ [1.0, 2.0, 0.0] + 0.1 * rng.normal(size=6000)
    y[4000:] = X[4000:] @ [2.0, 1.0, 0.0]
    given = {"adapt": False, "steps": (), "widths": (), "correct": False}
    awake, asleep = (
        omkl.Online.make("graph-mkl", small(sure=sure, **given), d=3, seed=0).run(X, y)[:, 0] for sure in (0.05, 0.0)
    )
    assert np.mean((awake - y)[4500:] ** 2) < 0.2 * np.mean((asleep - y)[4500:] ** 2)
    assert np.mean((awake - y)[2000:4000] ** 2) < 1.1 * np.mean((asleep - y)[2000:4000] ** 2)


def test_the_correction_is_the_ridge_regression_on_what_experts_say_beyond_the_mixture():
    X, y = stream(50)
    problem = small(sure=0.0, adapt=False).problem("graph-mkl", d=3)
    state = graph_mkl.init(problem, np.zeros(2))
    Z, gaps = [], []
    for x, target in zip(X, y, strict=True):
        voices = graph_mkl.hear(problem, state, x)
        mixed, _ = graph_mkl.mixture(problem, state, voices)
        z = graph_mkl.beyond(problem, state, 0, voices[0], mixed)
        more = np.clip(z @ state.theta_mix[0], -graph_mkl.MIX_CLIP, graph_mkl.MIX_CLIP)
        state, info = graph_mkl.step(problem, state, x, float(target), np.zeros(2))
        np.testing.assert_allclose(info.prediction, [mixed[0] + more * mixed[1], mixed[1]], rtol=1e-12)
        Z.append(z)
        gaps.append(np.clip((target - mixed[0]) / mixed[1], -graph_mkl.MIX_CLIP, graph_mkl.MIX_CLIP))
    Z, gaps = np.array(Z), np.array(gaps)
    wanted = np.linalg.solve(Z.T @ Z + graph_mkl.MIX_RIDGE * np.eye(Z.shape[1]), Z.T @ gaps)
    np.testing.assert_allclose(state.theta_mix[0], wanted, rtol=1e-8, atol=1e-12)
    assert np.abs(wanted).max() > 1e-3


def test_without_a_correction_the_mixture_speaks():
    X, y = stream(300)
    online = omkl.Online.make("graph-mkl", small(correct=False), d=3, seed=0)
    online.run(X, y)
    voices = graph_mkl.hear(online.problem, online.state, X[0])
    np.testing.assert_allclose(
        online.predict(X[0]), graph_mkl.mixture(online.problem, online.state, voices)[0], rtol=1e-10
    )
    assert not online.state.theta_mix.any()


def test_random_features_look_at_so_many_inputs_whatever_their_order():
    names = ["a", "b", "c", "d"]
    s = small(orders=(2, 3, None), singles=(0.5,))
    problem = s.problem("graph-mkl", names=names, seed=5)
    assert [set(np.count_nonzero(V, axis=0)) for V in problem.V] == [{2}, {3}, {4}, {1}]
    turned = s.problem("graph-mkl", names=names[::-1], seed=5)
    np.testing.assert_array_equal(turned.V, problem.V[:, ::-1])


def test_the_phase_of_few_inputs_varies_as_that_of_all():
    X = np.random.default_rng(0).normal(size=(2000, 20)) / np.sqrt(20)
    s = omkl.GraphSettings(kernels=[omkl.Gaussian(1.0)] * 2, n_features=400, orders=(2, None), singles=())
    pairs, whole = (np.var(X @ V, axis=0).mean() for V in s.problem("graph-mkl", d=20).V)
    assert pairs == pytest.approx(whole, rel=0.15)


def test_what_looks_at_a_new_input_starts_from_nothing_and_gradient_experts_keep_the_rest():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    y = X[:, 0] * X[:, 1] + X[:, 2]
    s = small(orders=(2,))
    online = omkl.Online("graph-mkl", s.problem("graph-mkl", names=list("abcd")), 0)
    online.run(X, y)
    before, theta = online.problem, online.state.theta.copy()
    online.move_to(s.problem("graph-mkl", names=list("abcde")))
    moved = np.tile(online.problem.V[:, 4] != 0, 2)
    assert moved.any()
    assert not moved.all()
    for i in range(len(moved)):
        np.testing.assert_array_equal(online.state.theta[0, i, ..., moved[i]], 0)
        # least squares are in tests/test_least_squares.py
        np.testing.assert_array_equal(online.state.theta[0, i, 1:][..., ~moved[i]], theta[0, i, 1:][..., ~moved[i]])
    kept = ~moved[:, : before.V.shape[2]]
    for old, new, same in zip(before.V, online.problem.V, kept, strict=True):  # the inputs are divided by sqrt(d)
        np.testing.assert_allclose(new[:4, same] / np.sqrt(5), old[:, same] / np.sqrt(4), rtol=1e-12)


def test_two_inputs_among_many_are_found():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (3000, 20))
    y = np.sin(3 * X[:, 3]) + X[:, 7] * X[:, 11]
    few, whole = (
        omkl.GraphMKLRegressor(random_state=0, orders=orders).predict_then_learn(X, y)
        for orders in ((2, 2, None), (None,))
    )
    assert np.mean((few - y)[1000:] ** 2) < 0.8 * np.mean((whole - y)[1000:] ** 2)


@pytest.mark.parametrize(("given", "wanted"), [
    ({"orders": ()}, "orders must be whole numbers of at least 1, or None"),
    ({"orders": (0,)}, "orders must be whole numbers of at least 1, or None"),
    ({"singles": (0.5, -1.0)}, "singles must be positive numbers"),
    ({"sure": 1.0}, "sure must be a number from 0 to below 1"),
])  # fmt: skip
def test_orders_singles_and_sure_are_checked(given, wanted):
    with pytest.raises(ValueError, match=wanted):
        omkl.GraphSettings(**given)


def test_only_a_quarter_is_evaluated_after_the_warm_up():
    X, y = stream(900)
    online = omkl.Online.make("graph-mkl", omkl.GraphSettings(adapt=False), d=3, seed=0)
    online.run(X[:600], y[:600])
    before = online.evaluations
    online.run(X[600:], y[600:])
    assert (online.evaluations - before) / 300 == omkl.GraphSettings().active
    assert 4 * omkl.GraphSettings().active <= omkl.GraphSettings().experts


def test_explorers_sleep_and_are_no_neighbours_of_leaders():
    problem = small(evaluate=3).problem("graph-mkl", d=2)
    B, E = 3, graph_mkl.experts(problem)
    for seed in range(20):
        rank = np.random.default_rng(seed).permutation(E)
        leaders = set(rank[: problem.active - 1].tolist())
        on_kernels = [e for e in leaders if e < graph_mkl.on_kernels(problem)]
        near = {j * B + e % B for e in on_kernels for j in np.flatnonzero(problem.graph.A[e // B])}
        sent = {graph_mkl.explore(problem, rank, r) for r in np.linspace(0, 0.999, 500)}
        assert sent == set(range(E)) - leaders - near


def test_explorers_are_neighbours_where_there_is_nobody_else():
    problem = small(widths=(), steps=(), out_degree=3, evaluate=3).problem("graph-mkl", d=2)
    rank = np.array([0, 3, 1, 2])
    assert {graph_mkl.explore(problem, rank, r) for r in np.linspace(0, 0.999, 50)} == {1, 2}


def test_predicting_changes_nothing_and_says_what_the_round_will_say():
    X, y = stream(700)
    online = omkl.Online.make("graph-mkl", small(), d=3, seed=0)
    online.run(X[:650], y[:650])
    for k in range(650, 700):
        asked = online.predict(X[k])
        np.testing.assert_array_equal(asked, online.predict(X[k]))
        np.testing.assert_array_equal(asked, online.run(X[k : k + 1], y[k : k + 1])[0])


def test_a_run_in_parts_is_the_run():
    X, y = stream(800, change=400)
    whole = omkl.Online.make("graph-mkl", small(), d=3, seed=0).run(X, y)
    parts = omkl.Online.make("graph-mkl", small(), d=3, seed=0)
    np.testing.assert_array_equal(
        np.concatenate([parts.run(X[a : a + 37], y[a : a + 37]) for a in range(0, 800, 37)]), whole
    )


def test_a_row_of_weight_two_counts_as_two_rows_for_least_squares():
    rng = np.random.default_rng(0)
    problem = small(steps=(), widths=()).problem("graph-mkl", d=2)
    voice = graph_mkl.Voice(z := rng.normal(size=12), np.zeros(1), 0.0, np.zeros(0))
    once, twice = graph_mkl.init(problem, np.zeros(2)), graph_mkl.init(problem, np.zeros(2))
    for state, weights in ((once, [2.0]), (twice, [1.0, 1.0])):
        for w in weights:
            told = voice._replace(phi=state.R[0, 0] @ z)
            graph_mkl.improve(problem, state, 0, 0, told, np.array([1.5]), w)
    np.testing.assert_allclose(once.theta[0, 0], twice.theta[0, 0], rtol=1e-12)
    np.testing.assert_allclose(once.R[0, 0].T @ once.R[0, 0], twice.R[0, 0].T @ twice.R[0, 0], rtol=1e-9, atol=1e-12)


def test_units_do_not_matter():
    X, y = stream(700)
    plain = omkl.GraphMKLRegressor(random_state=0).predict_then_learn(X, y)
    moved = omkl.GraphMKLRegressor(random_state=0).predict_then_learn(X * 1e6 + 1e7, y * 1e-9 + 3e-9)
    np.testing.assert_allclose((moved[1:] - 3e-9) * 1e9, plain[1:], rtol=1e-4, atol=1e-4 * np.std(y))


def test_a_change_is_noticed_and_followed():
    X, y = stream(6000, change=3000)
    adapting = omkl.GraphMKLRegressor(random_state=0).predict_then_learn(X, y)
    stubborn = omkl.GraphMKLRegressor(random_state=0, adapt=False).predict_then_learn(X, y)
    after = slice(3500, 6000)
    assert np.mean((adapting - y)[after] ** 2) < 0.7 * np.mean((stubborn - y)[after] ** 2)
    assert np.mean((adapting - y)[after] ** 2) < 0.2 * np.var(y[after])


def test_there_is_no_second_set_of_experts_without_a_change():
    X, y = stream(4000)
    model = omkl.GraphMKLRegressor(random_state=0).fit(X, y)
    assert model.core_.online.peek("incumbent") == 0
    assert model.core_.online.peek("age")[0] == 4000


@pytest.mark.parametrize("coverage", [0.5, 0.8, 0.9, 0.95])
def test_intervals_hold_what_they_promise(coverage):
    X, y = stream(5000, change=2500)
    said = omkl.GraphMKLRegressor(random_state=0).predict_interval_then_learn(X, y, coverage)
    inside = (said[:, 1] <= y) & (y <= said[:, 2])
    assert abs(inside[100:].mean() - coverage) < 0.03
    assert abs(inside[2700:3200].mean() - coverage) < 0.07


def test_prequential_intervals_are_those_that_predict_interval_gives():
    X, y = stream(400)
    model = omkl.GraphMKLRegressor(random_state=0)
    model.predict_interval_then_learn(X[:300], y[:300])
    for k in range(300, 330):
        asked = model.predict_interval(X[k : k + 1])[0]
        said = model.predict_interval_then_learn(X[k : k + 1], y[k : k + 1])[0]
        np.testing.assert_allclose(said[1:], asked, rtol=1e-12)
    mean, std = model.predict(X, return_std=True)
    assert (std > 0).all()
    np.testing.assert_array_equal(mean, model.predict(X))


def test_intervals_are_the_same_in_chunks_and_row_by_row_even_where_the_target_stands_still():
    X, y = stream(3000, change=900)
    y[:20], y[1000:2200] = 1.0, 2.0
    model = omkl.GraphMKLRegressor(random_state=0)
    at_once = model.predict_interval_then_learn(X, y)
    one = omkl.GraphMKLRegressor(random_state=0)
    one_by_one = np.vstack([one.predict_interval_then_learn(X[k : k + 1], y[k : k + 1]) for k in range(len(X))])
    np.testing.assert_array_equal(at_once, one_by_one)


def test_a_coverage_that_is_none_is_refused_before_anything_is_learned():
    X, y = stream(50)
    model = omkl.GraphMKLRegressor(random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="coverage must be a number between 0 and 1, got 0"):
        model.predict_interval_then_learn(X, y, coverage=0)
    assert model.n_samples_seen_ == 50


def test_coverage_between_0_and_1_is_asked_for():
    X, y = stream(50)
    with pytest.raises(ValueError, match=r"coverage must be a number between 0 and 1, got 1\.5"):
        omkl.GraphMKLRegressor(random_state=0).fit(X, y).predict_interval(X, coverage=1.5)


@pytest.mark.parametrize("rows", [1_500, pytest.param(10_000_000, marks=pytest.mark.soak)])
def test_least_squares_stay_definite_on_an_ill_conditioned_stream(rows):
    """Rank-deficient, duplicated and constant features, and targets that are a combination of them."""
    rng = np.random.default_rng(0)
    online = omkl.Online.make("graph-mkl", omkl.GraphSettings(), d=6, seed=0)
    start = None
    for _ in range(max(1, rows // 100_000)):
        base = rng.normal(size=(min(rows, 100_000), 2))
        X = np.column_stack((base, base[:, 0], base @ [1, -1], np.full(len(base), 7.0), base[:, 1] * 1e6))
        y = base @ [2.0, -3.0] + 1e-3 * rng.normal(size=len(base))
        said = online.run(X, y)
        assert np.isfinite(said).all()
        start = start if start is not None else len(omkl.to_bytes(online))
    state = online.state
    for R in state.R[state.incumbent]:
        assert (np.diagonal(R) > 0).all()
        assert np.isfinite(R).all()
    assert np.mean((said[-500:, 0] - y[-500:]) ** 2) < 1e-2
    assert abs(len(omkl.to_bytes(online)) - start) < 1000


def test_a_column_that_wakes_up_late_is_used():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 2))
    X[:1000, 1] = 4.0
    y = X[:, 0] + 5 * (X[:, 1] - 4.0)
    said = omkl.GraphMKLRegressor(random_state=0, adapt=False).predict_then_learn(X, y)
    assert np.mean((said - y)[2000:] ** 2) < 0.2 * np.var(y[2000:])


def test_a_column_that_wakes_up_between_two_refits_is_used_before_the_next():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(250, 2))
    X[:70, 1] = 4.0
    y = X[:, 0] + 5 * (X[:, 1] - 4.0)
    said = omkl.GraphMKLRegressor(random_state=0).predict_then_learn(X, y)
    assert np.mean((said - y)[150:] ** 2) < 0.1 * np.var(y[150:])


def test_a_line_is_followed_far_out_but_not_beyond_what_was_seen():
    rng = np.random.default_rng(0)
    X = rng.lognormal(sigma=2.0, size=(2000, 3))
    y = X @ [1.0, -2.0, 3.0]
    model = omkl.GraphMKLRegressor(random_state=0)
    said = model.predict_then_learn(X, y)
    assert np.mean((said - y)[1000:] ** 2) < 0.1 * np.var(y[1000:])
    told = y[-graph_mkl.WINDOW :]
    reach = graph_mkl.STRETCH * np.ptp(told)
    online = model.core_.online
    for far in (1e6, -1e6):
        line = graph_mkl.hear(online.problem, online.state, np.full(3, far))[online.state.incumbent]
        assert told.min() - reach <= line[graph_mkl.on_kernels(online.problem)].mu[0] <= told.max() + reach


def test_a_logistic_step_is_a_step_of_newtons_method_on_the_penalised_loss():
    """From theta = 0 on two labels: P is the inverse Hessian, and theta moves against the gradient by it."""
    rng = np.random.default_rng(0)
    ridge, z = 0.5, rng.normal(size=5)
    R, theta, label = np.eye(5) / np.sqrt(ridge), np.zeros((2, 5)), np.array([0.0, 1.0])
    voice = graph_mkl.Voice(z, np.zeros(2), 0.0, R @ z)
    graph_mkl.newton(R, theta, voice, np.zeros(2), label, 1.0, sure=0.0)
    P = np.linalg.inv(ridge * np.eye(5) + 0.25 * np.outer(z, z))
    np.testing.assert_allclose(R.T @ R, P, rtol=1e-12)
    np.testing.assert_allclose(theta, np.outer(label - 0.5, P @ z), rtol=1e-12)


def test_inputs_with_squares_have_one_place_each_however_many_come():
    x = np.array([0.5, -1.0, 2.0]) / np.sqrt(3)
    z = graph_mkl.with_squares(x, 12)
    assert z[0] == 1
    np.testing.assert_array_equal(z[1:4], x)
    np.testing.assert_allclose(z[6:9] * graph_mkl.SQUARE * np.sqrt(3), [0.5**2 - 1, 0.0, 2.0**2 - 1], atol=1e-12)
    assert not z[[4, 5, 9, 10, 11]].any()
    np.testing.assert_array_equal(graph_mkl.with_squares(np.ones(9), 12)[1:6], np.ones(5))


def test_labels_that_the_length_of_a_row_decides_are_soon_learned():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 10))
    y = (np.square(X).sum(axis=1) > 9.34).astype(int)
    said = omkl.GraphMKLClassifier(random_state=0).predict_then_learn(X, y, classes=[0, 1])
    assert np.mean(said[500:] == y[500:]) > 0.9


def test_a_challenger_has_half_the_warm_up():
    problem = small().problem("graph-mkl", d=2)
    state = graph_mkl.init(problem, np.zeros(2))
    state.age[:], state.explorer[:] = (59, 29), 5
    assert graph_mkl.awake(problem, state, 0).all()
    assert graph_mkl.awake(problem, state, 1).all()
    state.age[:] = 60, 30
    assert [graph_mkl.awake(problem, state, g).sum() for g in (0, 1)] == [4, 4]


@pytest.mark.parametrize("backend", ["engine", "rounds"])
def test_a_target_that_jumps_by_all_the_powers_of_ten_leaves_a_state_of_numbers(backend):
    X, _ = stream(120)
    y = 1e-90 * np.sin(X[:, 0])
    y[40:44] *= 1e180
    online = omkl.Online.make("graph-mkl", small(), d=3, seed=0, backend=backend)
    said = online.run(X, y)
    assert np.isfinite(said).all()
    assert all(np.isfinite(a).all() for a in online.state)


def test_a_label_that_comes_late_is_learned():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 2))
    y = np.where(X[:, 0] > 0, "right", "left")
    y[1000:][np.abs(X[1000:, 1]) > 1] = "far"
    model = omkl.GraphMKLClassifier(random_state=0)
    said = model.predict_then_learn(X, y, classes=["far", "left", "right"])
    assert np.mean(said[1500:] == y[1500:]) > 0.9
    p = model.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-9)


def test_a_label_that_was_announced_has_a_chance_before_it_comes():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    p = omkl.GraphMKLClassifier(random_state=0).predict_proba_then_learn(X, ["a"] * 40, classes=["a", "b", "c"])
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-9)
    assert (p > 0).all()
    assert p[-1, 0] > 0.9


def test_river_and_scikit_learn_say_the_same():
    X, y = stream(700)
    sklearn, river = omkl.GraphMKLRegressor(random_state=3), omkl.river.GraphMKLRegressor(seed=3)
    chunk = sklearn.predict_then_learn(X, y)
    for x, target, said in zip(X, y, chunk, strict=True):
        row = {str(k): v for k, v in enumerate(x)}
        assert river.predict_one(row) == said
        river.learn_one(row, target)
    dist = river.predict_one(row, with_dist=True)
    mean, std = sklearn.predict(X[-1:], return_std=True)
    assert (dist.mu, dist.sigma) == pytest.approx((mean[0], std[0]))


@pytest.mark.parametrize("seed", range(4))
def test_a_feature_that_comes_late_does_not_upset_what_was_learned(seed: int):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(1600, 7))
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(1600)
    core = GraphTargetCore(omkl.GraphSettings(), seed, list("abcdef"))
    core.run(np.ascontiguousarray(X[:1500, :6]), y[:1500])
    core.meet(["g"])
    after = (core.run(np.ascontiguousarray(X[1500:]), y[1500:]) - y[1500:]) ** 2
    assert after.mean() < y.var()  # better than having learned nothing
