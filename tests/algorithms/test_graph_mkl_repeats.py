"""GraphMKL: rows that come again, and weights as counts."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from streams import graph_settings as small
from streams import raw_and_turning as stream

import omkl
from omkl.algorithms.graph_mkl import experts, least_squares, repeats
from omkl.algorithms.graph_mkl.constants import NEAR_ROUNDS
from omkl.algorithms.graph_mkl.least_squares import Counting


def friedman(rows, seed, noise=0.3):
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(rows, 5))
    y = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]
    return X, (y - 14.4) / 4.9 + noise * rng.normal(size=rows)


# Passes over the same rows


@pytest.mark.parametrize("noise", [0.1, 0.5])
@pytest.mark.parametrize("order", ["same", "shuffled", "single rows"])
def test_more_passes_over_the_same_rows_do_no_harm(noise, order):
    X, y = friedman(1600, 0, noise)
    X, y, fresh, target = X[:600], y[:600], X[600:], y[600:]
    model, rng = omkl.GraphMKLRegressor(random_state=0), np.random.default_rng(1)
    model.partial_fit(X, y)
    first, narrowest = model.score(fresh, target), 1.0
    for _ in range(2 if order == "single rows" else 6):
        if order == "single rows":
            for k in range(600):
                model.core_.learn_row(dict(zip(model.core_.names, X[k], strict=True)), y[k], 1.0)
        else:
            rows = rng.permutation(600) if order == "shuffled" else np.arange(600)
            model.partial_fit(X[rows], y[rows])
        low, high = model.predict_interval(fresh, 0.9).T
        assert 0.85 <= np.mean((low < target) & (target < high)) <= 0.95
        narrowest = min(narrowest, model.score(fresh, target))
    assert narrowest > first - 0.005


def test_a_row_that_is_shown_again_changes_coefficients_and_no_evidence():
    X, y = friedman(300, 0)
    online = omkl.Online.make("graph-mkl", small(), d=5, seed=0)
    online.run(X, y)
    online.run(X[:20], y[:20])  # takes a row or two to notice
    before = online.state
    online.run(X[20:200], y[20:200])
    one, other = before.sets[0], online.state.sets[0]
    for name in ("evidence", "noise", "judged", "stack", "selection", "scaling", "first", "block", "age"):
        np.testing.assert_equal(getattr(one, name), getattr(other, name), err_msg=name)
    np.testing.assert_equal(before.calibration, online.state.calibration)
    assert before.trend == online.state.trend
    np.testing.assert_array_equal(one.coefficients.R, other.coefficients.R)
    np.testing.assert_array_equal(one.window.X, other.window.X)
    assert (one.coefficients.theta != other.coefficients.theta).any()
    assert online.t == before.t + 180


def test_rows_of_few_values_that_come_again_by_themselves_are_all_evidence():
    rng = np.random.default_rng(0)
    X = rng.integers(3, size=(900, 2)).astype(float)
    y = (rng.random(900) < 0.9).astype(float)
    online = omkl.Online.make("graph-mkl", small(task="classification", outputs=2), d=2, seed=0)
    online.run(X, y)
    assert online.state.sets[0].age > 0.97 * 900
    p = online.predict_rows(X[:50])[:, 1]
    np.testing.assert_allclose(p, 0.9, atol=0.08)


def test_a_machine_that_idles_in_a_few_states_is_learned_row_by_row():
    X, y = friedman(400, 0)
    states = np.tile(np.arange(4), 50)
    online = omkl.Online.make("graph-mkl", small(adapt=False), d=5, seed=0)
    online.run(X, y)
    online.run(X[states] + 2.0, y[states])
    assert online.state.sets[0].age == 600


def test_a_row_is_recognised_with_missing_inputs_and_after_new_ones():
    x, more = np.array([1.0, np.nan, -0.0]), np.array([1.0, np.nan, 0.0, np.nan])
    assert repeats.key_of(x, 2.0) == repeats.key_of(more, 2.0)
    others = [([1.0, 0.0, 0.0], 2.0), ([0.0, np.nan, 1.0], 2.0), ([1.0, np.nan, 0.0], 2.5), ([2.0, np.nan, 0.0], 1.0)]
    assert len({repeats.key_of(np.array(row), y) for row, y in others} | {repeats.key_of(x, 2.0)}) == 5


def test_what_a_row_is_depends_on_when_it_came_and_on_how_often_rows_return():
    assert repeats.kind_of(1, 0.0, 0.01) == "copy"
    assert repeats.kind_of(1, 0.0, 0.9) == "new"
    assert repeats.kind_of(NEAR_ROUNDS, 8.0, 0.01) == "new"
    assert repeats.kind_of(NEAR_ROUNDS + 1, 8.0, 0.01) == "again"
    assert repeats.kind_of(600, 1.0, 0.01) == "new"


# Weights


@settings(max_examples=30)
@given(st.integers(1, 6), st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.05]))
def test_a_step_of_weight_k_is_k_steps(k, seed, min_leverage):
    rng = np.random.default_rng(seed)
    R, theta, z = np.tril(rng.normal(size=(4, 4))), rng.normal(size=(2, 4)), rng.normal(size=4)
    label, shift = np.array([1.0, 0.0]), rng.normal(size=2)

    def stepped(R, theta, row, logistic):
        phi = R @ z
        if logistic:
            move, counted = experts.newton_steps(shift + theta @ z, label, float(phi @ phi), row, min_leverage)
            moved = theta + np.outer(move, least_squares.P_times(R, phi))
            return least_squares.downdated(R, phi, counted), moved
        return least_squares.update(R, theta, phi, label - theta @ z, row, min_leverage)

    for logistic in (False, True):
        one = stepped(R, theta, Counting(float(k)), logistic)
        many = R, theta
        for before in range(k):
            many = stepped(*many, Counting(1.0, float(before)), logistic)
        np.testing.assert_allclose(many[0].T @ many[0], one[0].T @ one[0], rtol=1e-9, atol=1e-12)
        if logistic or min_leverage == 0:
            np.testing.assert_allclose(many[1], one[1], rtol=1e-9, atol=1e-12)
    assert experts.gradient_step(0.25, 3.0) == pytest.approx(1 - 0.75**3)
    assert experts.gradient_step(0.25, 0.5) == pytest.approx(0.125)


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_a_weight_of_k_is_k_copies(task):
    X, y = friedman(500, 0)
    y = y if task == "regression" else (y > 0).astype(float)
    rng = np.random.default_rng(0)
    weight = rng.choice([1, 4], size=400)
    rows = np.repeat(np.arange(400), weight)
    settings_ = small(task=task, outputs=1 if task == "regression" else 2, evaluate="all", adapt=False)
    heavy, copied = (omkl.Online.make("graph-mkl", settings_, d=5, seed=0) for _ in range(2))
    heavy.run(X[:400], y[:400], weight.astype(float))
    copied.run(X[rows], y[rows])
    one, other = heavy.state.sets[0], copied.state.sets[0]
    assert one.age == other.age == 400
    np.testing.assert_allclose(one.window.weight, other.window.weight)
    np.testing.assert_allclose(one.first.weight, other.first.weight)
    a, b = (online.predict_rows(X[400:])[:, 0] for online in (heavy, copied))
    assert np.sqrt(np.mean((a - b) ** 2)) < 0.06 * np.std(y)
    plain = omkl.Online.make("graph-mkl", settings_, d=5, seed=0)
    plain.run(X[:400], y[:400])
    c = plain.predict_rows(X[400:])[:, 0]
    assert np.sqrt(np.mean((a - c) ** 2)) > 2 * np.sqrt(np.mean((a - b) ** 2))


def test_weights_that_are_all_the_same_judge_experts_as_none_do():
    X, y = stream(200)
    plain, heavy = (omkl.Online.make("graph-mkl", small(), d=3, seed=0) for _ in range(2))
    plain.run(X[:1], y[:1])
    heavy.run(X[:1], y[:1], np.array([7.0]))
    assert repeats.relative_weight(heavy.state.weights, 7.0) == pytest.approx(1)
    assert repeats.relative_weight(plain.state.weights, 1.0) == 1
    heavy.run(X[1:], y[1:], np.full(199, 7.0))
    assert repeats.relative_weight(heavy.state.weights, 7.0) == pytest.approx(1)
