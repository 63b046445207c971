"""The NumPy implementation: worked examples, and properties that every round of every algorithm has."""

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from streams import (
    CASES,
    COMMITS,
    DESCENDING,
    EVERY_CASE,
    GRAPHS,
    STABILISERS,
    Case,
    arrays_of,
    assert_same_state,
    small,
)

from omkl import algorithms, losses
from omkl.algorithms import omkl_gf, omkr, raker, rfomkr, sfg_mkl, sfg_mkl_r
from omkl.algorithms.descent import Descent, importance
from omkl.algorithms.schedule import Schedule
from omkl.algorithms.weights import draw, normalised
from omkl.arrays import leaves, mapped
from omkl.errors import DivergenceError
from omkl.features import features
from omkl.graph import Graph, refined
from omkl.kernels import Gaussian
from omkl.losses import LOSSES, resting_margin

LOSS = pytest.mark.parametrize("loss", LOSSES)
STABILISER = pytest.mark.parametrize("stabiliser", STABILISERS)
HORIZON = pytest.mark.parametrize("horizon", [100, None], ids=["horizon", "anytime"])


def rounds_of(case, rows=40, d=2, weights=None, frozen=False, **changes):
    """Yields (problem, state before, (x, y, uniforms), state after, info) of each round of a small stream."""
    algorithm, problem = case.algorithm, case.problem(d, seed=1, **changes)
    X, y = case._replace(changes={**case.changes, **changes}).stream(rows, d)
    uniforms = np.random.default_rng(2).random((rows + 1, algorithm.uniforms(problem)))
    state = algorithm.init(problem, uniforms[0])
    if frozen:
        freeze(problem)
    for t in range(rows):
        if frozen:
            freeze(state)
        weight = 1.0 if weights is None else weights[t]
        after, info = algorithm.step(problem, state, X[t], y[t], uniforms[t + 1], weight)
        yield problem, state, (X[t], y[t], uniforms[t + 1]), after, info
        state = after


def going(learner, rows=40, **changes):
    return rounds_of(Case(learner, {}), rows, **changes)


def freeze(value):
    """Make every array read-only."""
    for leaf in leaves(value).values():
        if isinstance(leaf, np.ndarray):
            leaf.flags.writeable = False


def last(rounds):
    *_, (_, _, _, after, _) = rounds
    return after


# A worked example


def test_three_rounds_of_sfg_mkl_by_hand():
    """Two kernels with one feature each; node 0 evaluates both, node 1 itself alone, so D = {0}.

    Frequencies pi/2 and pi: at x = 1 the features are (sin, cos) = (1, 0) and (0, -1),
    at x = 2 they are (0, -1) and (0, 1).
    """
    V = np.array([[[math.pi / 2]], [[math.pi]]])
    A = np.array([[True, True], [False, True]])
    graph = Graph(order=np.array([[0, 1], [1, 0]]), A=A, cover=np.array([1.0, 0.0]))
    problem = sfg_mkl.Problem(V, graph, Descent("squared", 0.1, "none", 10.0), Schedule(eta=0.5, xi=0.5))

    # p = (3/4, 1/4); 0.7 falls on node 0
    state = sfg_mkl.init(problem, np.array([0.7]))
    assert (state.node, state.t) == (0, 0)

    # Round 1, x = 1, y = 1. f = 0 for both, loss 1 for both. q = (3/4, 1).
    # log w = -eta / q = (-2/3, -1/2); theta_0 = 0.5 / (3/4) * 2 * (1, 0), theta_1 = 0.5 * 2 * (0, -1)
    # log u_0 = -0.5 * 1 / (3/4) = -2/3
    p_0 = 0.5 * math.exp(-2 / 3) / (math.exp(-2 / 3) + 1) + 0.5  # in round 2: 0.6696...
    state, info = sfg_mkl.step(problem, state, np.array([1.0]), 1.0, np.array([0.67]))
    assert info.prediction == 0
    assert state.node == 1  # 0.67 > p_0
    np.testing.assert_allclose(info.p, [3 / 4, 1 / 4], rtol=1e-15)
    np.testing.assert_allclose(info.q, [3 / 4, 1], rtol=1e-15)
    np.testing.assert_allclose(state.log_w, [-2 / 3, -1 / 2], rtol=1e-15)
    np.testing.assert_allclose(state.log_u, [-2 / 3, 0], rtol=1e-15)
    np.testing.assert_allclose(state.theta, [[[4 / 3], [0]], [[0], [-1]]], atol=1e-15)

    # Round 2, x = 2, y = 1. Node 1 evaluates itself: f_1 = (0, -1) (0, 1) = -1, so the prediction is -1.
    # p_1 = 1 - p_0, q_1 = 1. Loss of kernel 1: (-1 - 1)^2 + 0.1 * 1 = 4.1; of the prediction: 4.
    # theta_1 = -1 - 0.5 * (2 * (-2) * 1 + 2 * 0.1 * (-1)) = 1.1
    state, info = sfg_mkl.step(problem, state, np.array([2.0]), 1.0, np.array([0.1]))
    log_w_1, log_u_1 = -1 / 2 - 0.5 * 4.1, -0.5 * 4 / (1 - p_0)
    assert info.prediction == pytest.approx(-1, rel=1e-15)
    assert list(info.evaluated) == [1]
    np.testing.assert_allclose(info.p, [p_0, 1 - p_0], rtol=1e-14)
    np.testing.assert_allclose(info.q, [p_0, 1], rtol=1e-14)
    np.testing.assert_allclose(state.log_w, [-2 / 3, log_w_1], rtol=1e-14)
    np.testing.assert_allclose(state.log_u, [-2 / 3, log_u_1], rtol=1e-14)
    np.testing.assert_allclose(state.theta, [[[4 / 3], [0]], [[0], [1.1]]], atol=1e-14)
    assert state.node == 0

    # Round 3, x = 1, y = 0. Node 0 evaluates f_0 = 4/3 and f_1 = 1.1 * (-1), mixed by w.
    w_0, w_1 = math.exp(-2 / 3), math.exp(log_w_1)
    u_0, u_1 = math.exp(-2 / 3), math.exp(log_u_1)
    y_hat = (w_0 * 4 / 3 + w_1 * -1.1) / (w_0 + w_1)
    q_0 = p_0 = 0.5 * u_0 / (u_0 + u_1) + 0.5
    state, info = sfg_mkl.step(problem, state, np.array([1.0]), 0.0, np.array([0.1]))
    assert info.prediction == pytest.approx(y_hat, rel=1e-14)
    np.testing.assert_allclose(info.q, [q_0, 1], rtol=1e-14)
    loss_0, loss_1 = (4 / 3) ** 2 + 0.1 * (4 / 3) ** 2, 1.1**2 + 0.1 * 1.1**2
    np.testing.assert_allclose(state.log_w, [-2 / 3 - 0.5 * loss_0 / q_0, log_w_1 - 0.5 * loss_1], rtol=1e-14)
    np.testing.assert_allclose(state.log_u, [-2 / 3 - 0.5 * y_hat**2 / p_0, log_u_1], rtol=1e-14)
    theta_0 = 4 / 3 - 0.5 / q_0 * (2 * 4 / 3 + 0.2 * 4 / 3)
    theta_1 = 1.1 - 0.5 * (2 * -1.1 * -1 + 0.2 * 1.1)
    np.testing.assert_allclose(state.theta, [[[theta_0], [0]], [[0], [theta_1]]], atol=1e-14)
    assert state.t == 3


def test_two_rounds_of_omkr_by_hand():
    """exp(-rho^2 / 2) and exp(-rho^2 / 8), eta = 1/4: alpha = -eta (f - y), w *= 0.5^((f - y)^2)."""
    problem = omkr.Problem((Gaussian(1.0), Gaussian(2.0)), 1, Schedule(eta=0.25, xi=0.0))
    state = omkr.init(problem, np.empty(0))
    state, info = omkr.step(problem, state, np.array([0.0]), 2.0, np.empty(0))
    assert info.prediction == 0
    np.testing.assert_allclose(state.alpha, [[0.5], [0.5]], rtol=1e-15)
    np.testing.assert_allclose(state.log_w, 4 * math.log(0.5), rtol=1e-15)

    f = 0.5 * math.exp(-0.5), 0.5 * math.exp(-0.125)
    state, info = omkr.step(problem, state, np.array([1.0]), 1.0, np.empty(0))
    assert info.prediction == pytest.approx((f[0] + f[1]) / 2, rel=1e-15)
    np.testing.assert_allclose(state.alpha, [[0.5, 0.25 * (1 - f[0])], [0.5, 0.25 * (1 - f[1])]], rtol=1e-15)
    np.testing.assert_allclose(state.log_w, [math.log(0.5) * (4 + (f_i - 1) ** 2) for f_i in f], rtol=1e-15)
    np.testing.assert_array_equal(state.S, [[0.0, 1.0]])


# Every round of every algorithm


@EVERY_CASE
def test_a_step_only_reads_its_state_and_problem(case):
    for problem, before, (x, y, uniforms), after, _ in rounds_of(case, rows=30, frozen=True):
        again, _ = case.algorithm.step(problem, before, x, y, uniforms)
        assert_same_state(again, after)
        assert after.t == before.t + 1


@pytest.mark.parametrize(("learner", "loss"), [*itertools.product(DESCENDING, ["logistic", "hinge"])])
def test_a_step_only_reads_its_state_and_problem_whatever_the_loss(learner, loss):
    test_a_step_only_reads_its_state_and_problem(Case(learner, {"loss": loss}))


@EVERY_CASE
def test_predict_is_the_prediction_of_the_round_that_follows(case):
    for problem, before, (x, _, _), _, info in rounds_of(case):
        np.testing.assert_array_equal(case.algorithm.predict(problem, before, x), info.prediction)
        assert np.size(info.prediction) == case.algorithm.shape(problem).outputs


@EVERY_CASE
def test_every_uniform_number_is_used(case):
    """Somewhere in a stream each of the numbers decides something."""
    rounds = list(rounds_of(case))
    n = case.algorithm.uniforms(rounds[0][0])
    if case.algorithm.started is not None:  # its second number is for a challenger, which comes with a change
        n -= 1
    for k in range(n):
        moved = 0
        for problem, before, (x, y, uniforms), after, _ in rounds:
            other = uniforms.copy()
            other[k] = (other[k] + 0.5) % 1
            state, _ = case.algorithm.step(problem, before, x, y, other)
            moved += any((a != b).any() for a, b in zip(settled(state), settled(after), strict=True))
        assert moved


def settled(state):
    """The state's arrays, with a number where NaN says that a value is missing."""
    return [np.nan_to_num(value.astype(float), nan=-1.0) for value in arrays_of(state).values()]


@EVERY_CASE
def test_the_kernels_or_experts_evaluated_are_listed_once_each(case):
    for *_, info in rounds_of(case):
        assert len(info.evaluated) == len(set(info.evaluated.tolist())) > 0


@EVERY_CASE
def test_weights_of_kernels_are_shares(case):
    for problem, _, _, after, _ in rounds_of(case):
        weights = case.algorithm.kernel_weights(problem, after)
        assert (weights >= 0).all()
        assert weights.sum() <= 1 + 1e-12
        if not case.algorithm.distribution:
            assert weights.sum() == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.algorithm.distribution])
def test_distributions_are_distributions(name):
    case = CASES[name]
    for problem, *_, info in rounds_of(case):
        if case.algorithm.shape(problem).target == "label":
            assert (info.prediction >= 0).all()
            assert info.prediction.sum() == pytest.approx(1, abs=1e-12)
        else:
            assert info.prediction[1] >= 0


@EVERY_CASE
def test_problems_and_states_of_a_stream_keep_the_invariants_that_files_are_checked_for(case):
    for problem, before, _, after, _ in rounds_of(case):
        case.algorithm.check_problem(problem)
        case.algorithm.check_state(problem, before)
        case.algorithm.check_state(problem, after)


DRAWN = {"t", "node", "d", "chosen", "q"}  # what a round without weight may change: the choice of the next one


@EVERY_CASE
def test_a_sample_of_weight_0_changes_nothing_that_was_learned(case):
    rounds = list(rounds_of(case, weights=[1.0] * 30 + [0.0] * 10))
    (problem, _, _, before, _), (_, _, _, after, _) = rounds[29], rounds[-1]
    assert after.t == 40
    np.testing.assert_array_equal(
        case.algorithm.kernel_weights(problem, after), case.algorithm.kernel_weights(problem, before)
    )
    kept, now = arrays_of(before), arrays_of(after)
    for name in set(kept) - DRAWN:
        if name in case.algorithm.native.grows:  # rows are stored, but with coefficients of 0
            np.testing.assert_array_equal(now[name][:, :30], kept[name])
            assert name == "S" or not now[name][:, 30:].any()
        else:
            np.testing.assert_array_equal(now[name], kept[name], err_msg=name)


@pytest.mark.parametrize("learner", GRAPHS)
@pytest.mark.parametrize("commit", COMMITS)
@HORIZON
def test_p_is_a_distribution_and_q_lies_between_p_and_1(learner, commit, horizon):
    changes = {"kernels": "paper", "commit": commit, "commit_after": 20, "horizon": horizon}
    for problem, before, _, _, info in going(learner, **changes):
        A = problem.graph.A if learner == "sfg-mkl" else refined(problem.graph.A, before.d)
        assert info.p.sum() == pytest.approx(1, abs=1e-14)
        explored = (problem.graph.cover > 0) if learner == "sfg-mkl" else before.d == np.arange(41)
        xi = problem.schedule.xi_at(before.t + 1)
        share = (1 - xi) * normalised(before.log_u) + xi * explored / explored.sum()
        np.testing.assert_allclose(info.p, share, rtol=1e-14)
        assert (info.q >= info.p).all()
        assert (info.q <= 1 + 1e-14).all()
        np.testing.assert_array_equal(info.evaluated, np.flatnonzero(A[before.node]))


@pytest.mark.parametrize("learner", DESCENDING)
@STABILISER
@LOSS
def test_a_sample_of_weight_0_teaches_nothing_whatever_the_stabiliser(learner, stabiliser, loss):
    weights = [1.0] * 30 + [0.0] * 10
    rounds = list(rounds_of(Case(learner, {"stabiliser": stabiliser, "loss": loss}), weights=weights))
    learned, after = arrays_of(rounds[29][3]), arrays_of(rounds[-1][3])
    for name in {"theta", "log_w", "log_u"} & learned.keys():
        np.testing.assert_array_equal(after[name], learned[name])


@LOSS
@pytest.mark.parametrize("ridge", [0.0, 1e-3, 0.7])
def test_under_aware_a_sample_of_weight_3_moves_theta_as_three_samples_would(loss, ridge):
    changes = {"loss": loss, "ridge": ridge, "horizon": 100}
    problem = Case("raker", changes).problem(2, seed=1)
    before = last(going("raker", **changes))
    x, y = np.array([0.2, -0.7]), -1.0
    once, _ = raker.step(problem, before, x, y, np.empty(0), weight=3.0)
    thrice = before
    for _ in range(3):
        thrice, _ = raker.step(problem, thrice, x, y, np.empty(0))
    assert np.abs(once.theta - before.theta).max() > 1e-3
    np.testing.assert_allclose(once.theta, thrice.theta, rtol=0, atol=1e-14)


@pytest.mark.parametrize("learner", DESCENDING)
@LOSS
def test_under_aware_a_first_sample_of_weight_1000_is_learned_up_to_the_ridge(learner, loss):
    """1 / (1 + lambda), the corner of the hinge, and the logistic margin that balances a ridge of lambda."""
    problem = Case(learner, {"loss": loss, "ridge": 1e-3, "learning_rate": 10.0}).problem(2, seed=1)
    algorithm = algorithms.get(learner)
    r, x = np.full(algorithm.uniforms(problem), 0.5), np.array([0.2, -0.7])
    state, _ = algorithm.step(problem, algorithm.init(problem, r), x, 1.0, r, 1000.0)
    wanted = {"squared": 1 / 1.001, "hinge": 1.0, "logistic": resting_margin(0.002)}[loss]
    learned = [i for i in range(len(state.theta)) if state.theta[i].any()]
    assert learned
    for i in learned:
        assert np.vdot(state.theta[i], features(problem.V[i], x)) == pytest.approx(wanted, rel=1e-12)


# Stabilisers


def one_step(stabiliser, eta, theta, lam=1e-3, radius=10.0, loss="squared", y=1.0):
    """f before and after one round of a single kernel with a long step."""
    V, x = np.array([[[0.7, -1.3, 0.4]]]), np.array([1.5])
    problem = raker.Problem(V, Descent(loss, lam, stabiliser, radius), Schedule(eta, 0.0))
    before = raker.State(np.asarray(theta, dtype=float).reshape(1, 2, 3), np.zeros(1), 0)
    after, info = raker.step(problem, before, x, y, np.empty(0))
    return info.prediction, float(np.vdot(after.theta, features(V[0], x))), after


@given(st.lists(st.floats(-5, 5), min_size=6, max_size=6), st.floats(1e-3, 1e6), st.floats(-3, 3))
def test_aware_and_floor_never_pass_the_target(theta, eta, y):
    for stabiliser in ("aware", "floor"):
        before, after, _ = one_step(stabiliser, eta, theta, lam=0.0, y=y)
        assert min(before, y) - 1e-12 <= after <= max(before, y) + 1e-12


@given(st.lists(st.floats(-5, 5), min_size=6, max_size=6), st.floats(1e-3, 1e6), st.sampled_from(LOSSES))
def test_project_keeps_theta_in_its_ball(theta, eta, loss):
    _, _, state = one_step("project", eta, theta, radius=2.0, loss=loss)
    assert np.linalg.norm(state.theta) <= 2 * (1 + 1e-14)


@pytest.mark.parametrize("stabiliser", ["aware", "floor", "project"])
def test_a_stabiliser_agrees_with_the_plain_step_where_that_is_short(stabiliser):
    theta = [0.3, -0.2, 0.1, 0.5, 0.0, -0.4]
    _, plain, _ = one_step("none", 1e-6, theta)
    _, stable, _ = one_step(stabiliser, 1e-6, theta)
    assert stable == pytest.approx(plain, abs=1e-11)


@STABILISER
def test_a_sample_of_weight_0_for_a_kernel_of_probability_0_counts_nothing(stabiliser):
    assert importance(Descent("squared", 1e-3, stabiliser, 10.0), q=0.0, eta=0.5, weight=0.0) == 0


@EVERY_CASE
def test_a_prediction_above_1e100_is_a_divergence_that_leaves_the_state_as_it_was(case):
    problem, before, (x, y, uniforms), _, _ = list(rounds_of(case))[-1]

    def coefficients_of_1e102(name, leaf):
        return np.full_like(leaf, 1e102) if name.rpartition(".")[2] in ("theta", "alpha", "beta", "mu") else leaf

    huge = mapped(coefficients_of_1e102, before)
    freeze(huge)
    with pytest.raises(DivergenceError):
        case.algorithm.step(problem, huge, x, y, uniforms)


# Importance-weighted losses are unbiased: all nodes or draws are enumerated


def regularised(problem, state, x, y):
    """(5) of every kernel."""
    return [
        losses.value(problem.descent.loss, float(np.vdot(theta, features(V, x))), y)
        + problem.descent.lam * np.vdot(theta, theta)
        for V, theta in zip(problem.V, state.theta, strict=True)
    ]


@pytest.mark.parametrize("learner", GRAPHS)
@LOSS
@HORIZON
def test_the_estimates_of_a_node_drawn_are_unbiased(learner, loss, horizon):
    changes = {"loss": loss, "horizon": horizon, "learning_rate": 0.05, "kernels": "paper"}
    *_, (problem, state, (x, y, r), _, info) = going(learner, **changes)
    assert info.p.max() > 2 * info.p.min() > 1e-9
    eta, N = problem.schedule.eta_at(state.t + 1), len(problem.V)
    of_kernels, of_nodes, of_combinations = np.zeros(N), np.zeros(N), np.zeros(N)
    for i in range(N):
        at_i = state._replace(node=i)
        after, at_node = algorithms.get(learner).step(problem, at_i, x, y, r)
        of_kernels += info.p[i] * (state.log_w - after.log_w) / eta  # (14)
        of_nodes += info.p[i] * (state.log_u - after.log_u) / eta  # (16)
        of_combinations[i] = losses.value(loss, at_node.prediction, y)
    np.testing.assert_allclose(of_kernels, regularised(problem, state, x, y), rtol=1e-11)
    np.testing.assert_allclose(of_nodes, of_combinations, rtol=1e-11, atol=1e-13)


@LOSS
@HORIZON
@pytest.mark.parametrize(("N", "M"), [(1, 2), (2, 1), (3, 2), (4, 3)])
def test_the_estimates_of_a_subset_drawn_are_unbiased(loss, horizon, N, M):
    changes = {"kernels": [Gaussian(1.0 + i) for i in range(N)], "draws": M, "loss": loss, "horizon": horizon}
    *_, (problem, state, (x, y, r), _, _) = going("omkl-gf", **changes)
    t = state.t + 1
    eta, xi = problem.schedule.eta_at(t), problem.schedule.xi_at(t)
    p = (1 - xi) * normalised(state.log_w) + xi / N
    middle = np.cumsum(p) - p / 2
    evaluated, estimate = np.zeros(N), np.zeros(N)
    for drawn in itertools.product(range(N), repeat=M):
        chosen, q = omkl_gf.choose(problem, state.log_w, t, middle[list(drawn)])
        assert set(np.flatnonzero(chosen)) == set(drawn)
        after, _ = omkl_gf.step(problem, state._replace(chosen=chosen, q=q), x, y, r)
        evaluated += np.prod(p[list(drawn)]) * chosen
        estimate += np.prod(p[list(drawn)]) * (state.log_w - after.log_w) / eta
    np.testing.assert_allclose(evaluated, q, rtol=1e-12)
    np.testing.assert_allclose(estimate, regularised(problem, state, x, y), rtol=1e-11)


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=9).filter(lambda w: sum(w) > 1e-3), st.floats(0, 1, exclude_max=True)
)
@example([0.0, 1.0], 0.0)
@example([1.0, 1.0], 0.5)
def test_a_draw_falls_on_the_slice_that_holds_it(w, r):
    p = np.array(w) / sum(w)
    edges = np.concatenate(([0.0], np.cumsum(p)))
    i = draw(p, r)
    assert edges[i] <= r
    assert r < edges[i + 1] or r >= edges[-1]


# One algorithm as another


@LOSS
@STABILISER
@HORIZON
def test_a_complete_graph_makes_sfg_mkl_raker(loss, stabiliser, horizon):
    changes = {"loss": loss, "stabiliser": stabiliser, "horizon": horizon, "learning_rate": 0.2, "out_degree": 5}
    for one, other in zip(going("sfg-mkl", **changes), going("raker", **changes), strict=True):
        (_, _, _, a, of_a), (_, _, _, b, of_b) = one, other
        assert of_a.prediction == pytest.approx(of_b.prediction, abs=1e-12)
        np.testing.assert_allclose(a.theta, b.theta, rtol=0, atol=1e-12)
        np.testing.assert_allclose(a.log_w, b.log_w, rtol=0, atol=1e-12)


@LOSS
@pytest.mark.parametrize("commit", COMMITS)
def test_where_every_node_dominates_sfg_mkl_r_is_sfg_mkl_on_a_cover_of_all(loss, commit):
    """Fewer than ten kernels: D'_t is every node in every round, and (24) is (12) with D everything."""
    changes = {"loss": loss, "commit": commit, "commit_after": 15}
    problem = Case("sfg-mkl-r", changes).problem(2, seed=1)
    plain = sfg_mkl.Problem(*problem[:-1])._replace(graph=problem.graph._replace(cover=np.full(5, 0.2)))
    state = sfg_mkl.init(plain, np.random.default_rng(2).random((1, 1))[0])
    for _, before, (x, y, r), _, expected in going("sfg-mkl-r", **changes):
        assert state.node == before.node
        state, info = sfg_mkl.step(plain, state, x, y, r)
        assert info.prediction == pytest.approx(expected.prediction, abs=1e-12)


def test_omkr_on_the_kernel_of_the_features_is_rfomkr():
    def kernel_of(V):
        def z(rows):
            return np.array([features(V, x).ravel() for x in rows]).reshape(len(rows), 2 * V.shape[1])

        return SimpleNamespace(value=lambda X, Y: z(X) @ z(Y).T)

    features_problem = Case("rfomkr", {}).problem(2, seed=1)
    kernels = tuple(kernel_of(V) for V in features_problem.V)
    problem = omkr.Problem(kernels, 2, features_problem.schedule)
    state = omkr.init(problem, np.empty(0))
    for _, _, (x, y, r), after, expected in going("rfomkr"):
        state, info = omkr.step(problem, state, x, y, r)
        assert info.prediction == pytest.approx(expected.prediction, abs=1e-12)
        np.testing.assert_allclose(state.log_w, after.log_w, atol=1e-12)


# Committing, freezing, filling up


@pytest.mark.parametrize("learner", GRAPHS)
@pytest.mark.parametrize("commit_after", [0, 1, 20])
def test_a_commit_rule_fixes_the_node_it_names(learner, commit_after):
    nodes = {}
    for commit in COMMITS:
        for _, before, *_ in going(learner, commit=commit, commit_after=commit_after, kernels="paper"):
            t = before.t + 1
            nodes.setdefault(commit, []).append(before.node)
            if t > commit_after and commit == "argmax":
                assert before.node == np.argmax(before.log_u)
            if t > commit_after and commit == "first":
                assert before.node == 0
    assert nodes["first"][:commit_after] == nodes["argmax"][:commit_after] == nodes["never"][:commit_after]
    assert len(set(nodes["never"][commit_after:])) > 3


def test_the_refined_graph_stays_as_it_is_after_the_commit_rule_applies():
    dominating = [before.d for _, before, *_ in going("sfg-mkl-r", commit="first", commit_after=20, kernels="paper")]
    assert any((d != dominating[0]).any() for d in dominating[:20])
    for d in dominating[20:]:
        np.testing.assert_array_equal(d, dominating[19])


def test_frozen_omkl_gf_keeps_its_subset_and_probabilities():
    states = [before for _, before, *_ in going("omkl-gf", freeze_after=20, kernels="paper")]
    assert len({tuple(state.chosen) for state in states[:20]}) == 20
    for state in states[20:]:
        np.testing.assert_array_equal(state.chosen, states[19].chosen)
        np.testing.assert_array_equal(state.q, states[19].q)
    assert (states[-1].log_w != states[19].log_w).any()


@pytest.mark.parametrize("weighted", [True, False])
def test_only_weighted_omkl_gf_divides_thetas_step_by_q(weighted):
    changes = {"stabiliser": "none", "ridge": 0.0, "horizon": 100, "weighted": weighted}
    for problem, before, (x, y, _), after, info in going("omkl-gf", **changes):
        for i in info.evaluated:
            z = features(problem.V[i], x)
            step = 0.1 * 2 * (np.vdot(before.theta[i], z) - y) * z
            np.testing.assert_allclose(
                after.theta[i], before.theta[i] - step / (before.q[i] if weighted else 1), atol=1e-14
            )


def test_omkr_at_its_budget_still_updates_weights_but_adds_no_support_point():
    states = [after for *_, after, _ in going("omkr", budget=12)]
    assert [state.S.shape[1] for state in states] == [min(t, 12) for t in range(1, 41)]
    assert (states[-1].log_w < states[12].log_w).all()
    np.testing.assert_array_equal(states[-1].alpha, states[11].alpha)


def test_omkr_and_rfomkr_step_no_further_than_the_target_however_heavy_the_sample():
    x = np.array([0.3, -0.2])
    for module in (omkr, rfomkr):
        problem = algorithms.problem(module.ALGORITHM.name, small(), 2)
        state, _ = module.step(problem, module.init(problem, np.empty(0)), x, 5.0, np.empty(0), weight=1e6)
        assert module.predict(problem, state, x) == pytest.approx(5.0, rel=1e-12)


def test_sfg_mkl_r_evaluates_the_kernels_that_its_node_dominates():
    for problem, before, *_, info in going("sfg-mkl-r", kernels="paper"):
        assert set(np.flatnonzero(before.d == before.node)) <= set(info.evaluated)
        np.testing.assert_allclose(info.q, info.p @ refined(problem.graph.A, before.d), rtol=1e-15)
        assert sfg_mkl_r.predict(problem, before, np.zeros(2)) == pytest.approx(
            normalised(before.log_w[info.evaluated]) @ before.theta[info.evaluated, 1].sum(axis=1) / math.sqrt(7),
            abs=1e-14,
        )
