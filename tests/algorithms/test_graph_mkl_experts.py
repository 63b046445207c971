"""GraphMKL's experts: least squares, gradient, linear, logistic and memory experts, and the features they use."""

import numpy as np
import pytest
from streams import graph_settings as small
from streams import raw_and_turning as stream

import omkl
from omkl import algorithms
from omkl.algorithms import graph_mkl
from omkl.algorithms.graph_mkl import experts, least_squares
from omkl.algorithms.graph_mkl.constants import MAX_TEMPERATURE, MIN_TEMPERATURE, RANGE_MARGIN, SQUARE_SCALE, WINDOW
from omkl.algorithms.graph_mkl.least_squares import Counting
from omkl.algorithms.graph_mkl.memory import append_memory, predict_from_memory, within_range
from omkl.algorithms.graph_mkl.memory import init as empty_window
from omkl.algorithms.graph_mkl.scaling import Scaling


def problem_of(settings, d=3, **given):
    return algorithms.problem("graph-mkl", settings, d=None if "names" in given else d, **given)


# Features


def test_random_features_depend_on_so_many_inputs_whatever_the_order_of_the_inputs():
    names = ["a", "b", "c", "d"]
    s = small(orders=(2, 3, None), singles=(0.5,))
    problem = problem_of(s, names=names, seed=5)
    assert [set(np.count_nonzero(V, axis=0)) for V in problem.V] == [{2}, {3}, {4}, {1}]
    turned = problem_of(s, names=names[::-1], seed=5)
    np.testing.assert_array_equal(turned.V, problem.V[:, ::-1])


def test_the_phase_of_few_inputs_varies_as_that_of_all():
    X = np.random.default_rng(0).normal(size=(2000, 20)) / np.sqrt(20)
    s = omkl.GraphSettings(kernels=[omkl.Gaussian(1.0)] * 2, n_features=400, orders=(2, None), singles=())
    pairs, whole = (np.var(X @ V, axis=0).mean() for V in problem_of(s, d=20).V)
    assert pairs == pytest.approx(whole, rel=0.15)


def test_features_with_squares_have_one_place_for_each_input_that_fits():
    x = np.array([0.5, -1.0, 2.0]) / np.sqrt(3)
    z = experts.with_squares(x, 12)
    assert z[0] == 1
    np.testing.assert_array_equal(z[1:4], x)
    np.testing.assert_allclose(z[6:9] * SQUARE_SCALE * np.sqrt(3), [0.5**2 - 1, 0.0, 2.0**2 - 1], atol=1e-12)
    assert not z[[4, 5, 9, 10, 11]].any()
    np.testing.assert_array_equal(experts.with_squares(np.ones(9), 12)[1:6], np.ones(5))


def test_two_inputs_among_many_are_found():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (3000, 20))
    y = np.sin(3 * X[:, 3]) + X[:, 7] * X[:, 11]
    few, whole = (
        omkl.GraphMKLRegressor(random_state=0, orders=orders).predict_then_learn(X, y)
        for orders in ((2, 2, None), (None,))
    )
    assert np.mean((few - y)[1000:] ** 2) < 0.8 * np.mean((whole - y)[1000:] ** 2)


# Least squares and gradient experts


def test_a_row_of_weight_two_counts_as_two_rows_for_least_squares():
    rng = np.random.default_rng(0)
    problem = problem_of(small(steps=(), widths=()), d=2)
    scaling = Scaling(np.zeros(2), np.ones(2), np.zeros(1), 1.0)
    z = rng.normal(size=12)

    def after(weights):
        c = experts.fresh_coefficients(problem)
        for w in weights:
            phi = c.R[0] @ z
            evaluation = experts.Evaluation(z, phi, float(phi @ phi), np.zeros(1), 1.0)
            c = experts.update(problem, c, scaling, {0: evaluation}, np.array([1.5]), Counting(w))
        return c

    once, twice = after([2.0]), after([1.0, 1.0])
    assert np.abs(once.theta[0]).max() > 0.1
    np.testing.assert_allclose(once.theta[0], twice.theta[0], rtol=1e-12)
    np.testing.assert_allclose(once.R[0].T @ once.R[0], twice.R[0].T @ twice.R[0], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("step", [0.25, 1.0])
def test_a_gradient_expert_closes_its_step_of_the_gap(step):
    """The features have norm 1, so that a step of length 1 makes the prediction right."""
    problem = problem_of(small(steps=(step,), widths=()), d=2)
    scaling = Scaling(np.zeros(2), np.ones(2), np.zeros(1), 1.0)
    z = np.random.default_rng(0).normal(size=12)
    z /= np.linalg.norm(z)
    evaluation = experts.Evaluation(z, np.zeros(0), 0.0, np.zeros(1), 1.0)
    c = experts.update(
        problem, experts.fresh_coefficients(problem), scaling, {1: evaluation}, np.array([3.0]), Counting(1.0)
    )
    assert float(c.theta[0, 1, 0] @ z) == pytest.approx(3.0 * step)


def test_learning_changes_no_array_of_the_state_before():
    X, y = stream(70)
    problem = problem_of(small())
    state = graph_mkl.init(problem, np.zeros(2))
    for x, target in zip(X, y, strict=True):
        before = omkl.arrays.copied(state)
        after, _ = graph_mkl.step(problem, state, x, float(target), np.zeros(2))
        for name, leaf in omkl.arrays.leaves(state).items():
            np.testing.assert_array_equal(leaf, omkl.arrays.leaves(before)[name], err_msg=name)
        state = after


def test_least_squares_of_a_positive_min_leverage_follow_a_change():
    """A plane that turns once, with nothing but least squares to learn it."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 3))
    y = X @ [1.0, 2.0, 0.0] + 0.1 * rng.normal(size=6000)
    y[4000:] = X[4000:] @ [2.0, 1.0, 0.0]
    given = {"adapt": False, "steps": (), "widths": (), "stack": False}
    follows, stays = (
        omkl.Online.make("graph-mkl", small(min_leverage=least, **given), d=3, seed=0).run(X, y)[:, 0]
        for least in (0.05, 0.0)
    )
    assert np.mean((follows - y)[4500:] ** 2) < 0.2 * np.mean((stays - y)[4500:] ** 2)
    assert np.mean((follows - y)[2000:4000] ** 2) < 1.1 * np.mean((stays - y)[2000:4000] ** 2)


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
        predictions = online.run(X, y)
        assert np.isfinite(predictions).all()
        start = start if start is not None else len(omkl.to_bytes(online))
    state = online.state
    for R in state.sets[state.incumbent].coefficients.R:
        assert (np.diagonal(R) > 0).all()
        assert np.isfinite(R).all()
    assert np.mean((predictions[-500:, 0] - y[-500:]) ** 2) < 1e-2
    assert abs(len(omkl.to_bytes(online)) - start) < 1000


# The linear and the logistic experts


def test_a_linear_function_is_followed_far_out_but_not_beyond_the_range_of_the_targets():
    rng = np.random.default_rng(0)
    X = rng.lognormal(sigma=2.0, size=(2000, 3))
    y = X @ [1.0, -2.0, 3.0]
    model = omkl.GraphMKLRegressor(random_state=0)
    predictions = model.predict_then_learn(X, y)
    assert np.mean((predictions - y)[1000:] ** 2) < 0.1 * np.var(y[1000:])
    last = y[-WINDOW:]
    margin = RANGE_MARGIN * np.ptp(last)
    online = model.core_.online
    for far in (1e6, -1e6):
        evaluations = graph_mkl.evaluate(online.problem, online.state, np.full(3, far)).evaluations
        linear = evaluations[online.state.incumbent][online.problem.on_kernels]
        assert last.min() - margin <= linear.mean[0] <= last.max() + margin


@pytest.mark.parametrize(("mean", "bounded"), [(2.0, 2.0), (9.0, 4.5), (-9.0, 0.5)])
def test_a_mean_is_brought_back_to_the_range_of_the_targets_and_half_of_it(mean, bounded):
    window = empty_window(problem_of(small(), d=1))
    window.Y[0, :3] = 1.5, 3.5, 2.0  # range 2, of which half goes to either side
    assert within_range(window, 3, np.array([mean]))[0] == bounded
    assert within_range(window, 0, np.array([mean]))[0] == mean


def test_a_logistic_step_is_a_newton_step_on_the_penalised_loss():
    """From theta = 0 on two labels: P is the inverse Hessian, and theta moves against the gradient by it."""
    rng = np.random.default_rng(0)
    ridge, z = 0.5, rng.normal(size=5)
    R, theta, label = np.eye(5) / np.sqrt(ridge), np.zeros((2, 5)), np.array([0.0, 1.0])
    phi = R @ z
    move, counted = experts.newton_steps(np.zeros(2), label, float(phi @ phi), Counting(1.0), min_leverage=0.0)
    theta = theta + np.outer(move, least_squares.P_times(R, phi))
    R = least_squares.downdated(R, phi, counted)
    P = np.linalg.inv(ridge * np.eye(5) + 0.25 * np.outer(z, z))
    np.testing.assert_allclose(R.T @ R, P, rtol=1e-12)
    np.testing.assert_allclose(theta, np.outer(label - 0.5, P @ z), rtol=1e-12)


def test_labels_decided_by_the_length_of_a_row_are_soon_learned():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 10))
    y = (np.square(X).sum(axis=1) > 9.34).astype(int)
    predictions = omkl.GraphMKLClassifier(random_state=0).predict_then_learn(X, y, classes=[0, 1])
    assert np.mean(predictions[500:] == y[500:]) > 0.9


# Memory experts


def test_a_memory_expert_is_the_kernel_regression_on_the_rows_in_its_window():
    rng = np.random.default_rng(0)
    X, Y, x, width = rng.normal(size=(50, 2)), rng.normal(size=50), rng.normal(size=2), 0.4
    copies = rng.integers(1, 4, size=50)
    window = empty_window(problem_of(small(), d=2))
    for j in range(50):
        window = append_memory(window, j, X[j], Y[j : j + 1], float(copies[j]))
    X, Y = np.repeat(X, copies, axis=0), np.repeat(Y, copies)
    k = np.exp(-np.square(X - x).sum(axis=1) / (2 * width**2))
    mean, leverage = predict_from_memory(window, 50, x, width)
    assert mean[0] == pytest.approx(k @ Y / k.sum())
    assert leverage == pytest.approx(np.square(k).sum() / k.sum() ** 2)


def test_a_memory_expert_without_rows_predicts_zero_with_the_leverage_of_one_row():
    window = empty_window(problem_of(small(task="classification", outputs=3), d=2))
    mean, leverage = predict_from_memory(window, 0, np.zeros(2), 0.1)
    assert (mean == 0).all()
    assert leverage == 1


# Noise


def test_the_noise_of_numbers_is_the_mean_squared_error():
    problem = problem_of(small(memory=0.99), d=2)
    scaling = Scaling(np.zeros(2), np.ones(2), np.zeros(1), 2.0)
    noise = experts.fresh_noise(problem)
    gaps = np.random.default_rng(0).normal(size=30)
    for gap in gaps:
        evaluation = experts.Evaluation(np.zeros(0), np.zeros(0), 0.0, np.zeros(1), 1.0)
        noise, _ = experts.update_noise(problem, noise, scaling, {0: evaluation}, 2.0 * gap, 1.0)
    # the start counts as one row, as long as 1 / rows is above 1 - memory
    assert noise.level[0] == pytest.approx((1 + np.square(gaps).sum()) / 31)
    assert noise.rounds[0] == 30
    assert noise.rounds[1:].sum() == 0


@pytest.mark.parametrize(("label", "ends_at"), [(0.0, MIN_TEMPERATURE), (1.0, MAX_TEMPERATURE)])
def test_the_temperature_falls_where_the_most_likely_label_is_right_and_rises_where_it_is_wrong(label, ends_at):
    problem = problem_of(small(task="classification", outputs=2, memory=0.5), d=2)
    scaling = Scaling(np.zeros(2), np.ones(2), np.zeros(2), 1.0)
    noise, temperature, path = experts.fresh_noise(problem), 1.0, []
    for _ in range(300):
        evaluation = experts.Evaluation(np.zeros(0), np.zeros(0), 0.0, np.array([0.9, 0.1]), temperature)
        noise, _ = experts.update_noise(problem, noise, scaling, {0: evaluation}, label, 1.0)
        temperature = float(noise.level[0])
        path.append(temperature)
    steps = np.diff([1.0, *path])
    assert (steps <= 0).all() if label == 0 else (steps >= 0).all()
    assert MIN_TEMPERATURE <= temperature <= MAX_TEMPERATURE
    assert abs(np.log(temperature / ends_at)) < abs(np.log(ends_at))
