"""GraphMKL: the engine against the rounds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from streams import graph_settings as small
from streams import raw_and_turning as stream

import omkl
import omkl.river
from omkl import engine
from omkl.algorithms import graph_mkl
from omkl.algorithms.graph_mkl import KEPT, LISTEN, WINDOW
from omkl.online import Checkpoint


@pytest.mark.parametrize("isa", engine.supported())
@pytest.mark.parametrize("task", ["regression", "classification"])
def test_engine_and_rounds_agree_over_a_stream_with_a_change(task, isa):
    X, y = stream(900, change=500)
    if task == "classification":
        y = np.digitize(y, [50, 150]).astype(float)
    s = small(task=task, outputs=1 if task == "regression" else 3)
    fast = omkl.Online.make("graph-mkl", s, d=3, seed=1, isa=isa)
    slow = omkl.Online.make("graph-mkl", s, d=3, seed=1, backend="rounds")
    a, b = fast.run(X, y), slow.run(X, y)
    np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-11 * np.abs(b).max())
    assert fast.evaluations == slow.evaluations
    one, other = fast.state, slow.state
    for name in ("rank", "explorer", "age", "heard"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    assert one.incumbent == other.incumbent


def assert_a_round_agrees(problem, before, x, y, weight=1.0):
    """From this state on, one round says and leaves the same in NumPy and on every instruction set."""
    row = np.atleast_2d(x).astype(float), np.array([y], dtype=float), np.array([weight])
    checkpoint = Checkpoint(before, np.random.PCG64(0).state, 0)
    slow = omkl.Online("graph-mkl", problem, checkpoint=checkpoint, backend="rounds")
    said = slow.tell_rows(*row)
    for isa in engine.supported():
        fast = omkl.Online("graph-mkl", problem, checkpoint=checkpoint, isa=isa)
        np.testing.assert_allclose(fast.tell_rows(*row), said, rtol=1e-10, atol=1e-10 * max(1, np.abs(said).max()))
        assert fast.evaluations == slow.evaluations
        for name, array in slow.state._asdict().items():
            np.testing.assert_allclose(getattr(fast.state, name), array, rtol=1e-9, atol=1e-11, err_msg=name)


@settings(max_examples=25)
@given(st.integers(1, 4), st.integers(1, 20), st.integers(1, 4), st.integers(1, 3), st.data())
def test_engine_and_rounds_agree_on_one_round_after_streams_of_every_shape(N, D, d, K, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    task = "regression" if K == 1 else "classification"
    s = omkl.GraphSettings(
        kernels=[omkl.Gaussian(float(scale)) for scale in np.geomspace(0.1, 10, N)], n_features=D, out_degree=1,
        warm_up=20, evaluate=2, task=task, outputs=K,
    )  # fmt: skip
    rows = data.draw(st.integers(1, 40))
    X = rng.normal(size=(rows + 1, d)) * 10 ** rng.uniform(-3, 3, d)
    y = rng.normal(size=rows + 1) if K == 1 else rng.integers(K, size=rows + 1).astype(float)
    weight = rng.exponential(size=rows + 1)
    slow = omkl.Online.make("graph-mkl", s, d=d, seed=2, backend="rounds")
    slow.run(X[:rows], y[:rows], weight[:rows])
    assert_a_round_agrees(slow.problem, slow.state, X[rows], y[rows], weight[rows])


# Corners that a short stream does not come to: each is reached by the engine, or by a change of the state


def after(rows, d=3, **changes):
    """Problem, state and the row that comes next."""
    X, y = stream(rows + 1, d)
    if changes.get("task") == "classification":
        y = np.digitize(y, [50, 150]).astype(float)
    online = omkl.Online.make("graph-mkl", small(**changes), d=d, seed=1)
    online.run(X[:rows], y[:rows])
    return online.problem, online.state, X[rows], float(y[rows])


def test_engine_and_rounds_agree_once_the_memory_has_gone_round():
    problem, state, x, y = after(WINDOW + 70)
    assert_a_round_agrees(problem, state, x, y)


def test_engine_and_rounds_agree_on_a_row_of_no_weight():
    problem, state, x, y = after(100)
    assert_a_round_agrees(problem, state, x, y, weight=0.0)


@pytest.mark.parametrize("label", range(3))
@pytest.mark.parametrize("temperature", graph_mkl.TEMPERATURES)
def test_engine_and_rounds_agree_at_the_ends_of_the_temperatures(temperature, label):
    problem, state, x, _ = after(100, task="classification", outputs=3)
    at_the_end = state._replace(noise=np.full_like(state.noise, temperature))
    now = graph_mkl.step(problem, at_the_end, x, label, np.zeros(2))[0].noise[0]
    assert (now == temperature).any()  # a step beyond it was cut off
    assert_a_round_agrees(problem, at_the_end, x, label)


def test_engine_and_rounds_agree_on_labels_that_surprise():
    problem, state, x, _ = after(100, task="classification", outputs=3)
    cold = state._replace(noise=np.full_like(state.noise, 0.05))
    for label in range(3):
        assert_a_round_agrees(problem, cold, x, label)


def test_engine_and_rounds_agree_on_a_label_well_known_among_a_hundred():
    """With few labels no chance can rise so fast that its temperature's step is cut off."""
    problem, state, x, _ = after(20, task="classification", outputs=100)
    known = np.zeros_like(state.shift)
    known[:, 0] = 1
    state = state._replace(shift=known, theta=0 * state.theta, theta_lin=0 * state.theta_lin)
    assert_a_round_agrees(problem, state._replace(noise=np.full_like(state.noise, 0.25)), x, 0)


@pytest.mark.parametrize(("x", "y"), [(1e100, 1.0), (-1e200, 1.0), (1.0, 1e95), (1.0, -1e99)])
def test_engine_and_rounds_agree_on_numbers_too_large_to_use(x, y):
    problem, state, row, _ = after(100)
    row[1] = x
    assert_a_round_agrees(problem, state, row, y)


@pytest.mark.parametrize("far", [-1000.0, -100.0, 70.0, 100.0, 1000.0])
@pytest.mark.parametrize("task", ["regression", "classification"])
def test_engine_and_rounds_agree_far_out(task, far):
    problem, state, row, y = after(100, task=task, outputs=1 if task == "regression" else 3)
    row[1] = far  # up to thirty deviations from 40 and beyond
    assert_a_round_agrees(problem, state, row, y)


def test_engine_and_rounds_agree_where_there_are_more_inputs_than_room_for_squares():
    problem, state, row, y = after(100, d=9, task="classification", outputs=3)
    assert 2 * problem.V.shape[2] < 2 * 9 + 1
    assert_a_round_agrees(problem, state, row, y)


@pytest.mark.parametrize("size", [1e-120, 1e-160])
def test_engine_and_rounds_agree_on_inputs_that_hardly_vary(size):
    X, y = stream(16)
    X = (X - 40) * size
    online = omkl.Online.make("graph-mkl", small(), d=3, seed=1)
    online.run(X[:15], y[:15])
    assert_a_round_agrees(online.problem, online.state, X[15], y[15])


@pytest.mark.parametrize("sure", [0.0, 1e-4, 0.05, 0.5])
def test_engine_and_rounds_agree_however_sure_least_squares_may_become(sure):
    problem, state, x, y = after(100, sure=sure)
    assert_a_round_agrees(problem, state, x, y)
    assert_a_round_agrees(problem, state._replace(R=1e-2 * state.R, R_lin=1e-3 * state.R_lin), x, y)


@pytest.mark.parametrize("rows", [100, KEPT + 20])
def test_engine_and_rounds_agree_on_a_column_that_comes_or_wakes_late(rows):
    X, y = stream(rows + 1)
    X[:rows, 1] = 7.0
    online = omkl.Online("graph-mkl", small().problem("graph-mkl", names=list("abc")), 0)
    online.run(X[:rows], y[:rows])
    online.move_to(small().problem("graph-mkl", names=list("abcd")))
    for late in (-3.0, 0.0):
        assert_a_round_agrees(online.problem, online.state, [*X[rows], late], y[rows])


@pytest.mark.parametrize("rows", [7, 100, KEPT - 1, KEPT + 20])
def test_engine_and_rounds_agree_where_inputs_are_missing_and_weights_differ(rows):
    X, y = stream(rows + 1)
    rng = np.random.default_rng(3)
    X[rng.random(X.shape) < 0.3] = np.nan
    weight = rng.exponential(size=rows + 1)
    online = omkl.Online.make("graph-mkl", small(), d=3, seed=1)
    online.tell_rows(X[:rows], y[:rows], weight[:rows])
    for x in (X[rows], [np.nan, 40.0, 41.0], [np.nan] * 3):
        assert_a_round_agrees(online.problem, online.state, x, y[rows], weight[rows])


def test_engine_and_rounds_agree_where_phases_are_beyond_the_polynomial():
    kernels = [omkl.Gaussian(scale) for scale in (2e-7, 1e-6, 1.0)]
    problem, state, x, y = after(100, kernels=kernels)
    assert np.abs(graph_mkl.scaled(state, 0, x) @ problem.V[0]).max() > 1e6
    assert_a_round_agrees(problem, state, x, y)


def challenged(rows):
    """As `after`, with a challenger that has seen so many rows of a trial of 40; -1: it is born in the next."""
    problem, state, x, y = after(300)
    problem = problem._replace(trial=40)
    state = state._replace(trend=np.array([50.0, 10.0, 400.0]), trust=np.array([5.0, 3.0]))
    if rows >= 0:
        state, _ = graph_mkl.step(problem, state, x, y, np.zeros(2))
        online = omkl.Online("graph-mkl", problem, checkpoint=Checkpoint(state, np.random.PCG64(0).state, 0))
        online.run(*stream(rows, seed=1))
        state = online.state
        assert list(state.age) == [301 + rows, rows]
    return problem, state, x, y


@pytest.mark.parametrize(("fast", "rounds", "born"), [(50.0, 199, False), (50.0, 200, True), (15.0, 400, False)])
def test_engine_and_rounds_agree_on_when_a_challenger_is_born(fast, rounds, born):
    problem, state, x, y = after(300)
    state = state._replace(trend=np.array([fast, 10.0, rounds]))
    assert (graph_mkl.step(problem, state, x, y, np.zeros(2))[0].age[1] == 0) == born
    assert_a_round_agrees(problem, state, x, y)


@pytest.mark.parametrize("rows", [-1, 0, LISTEN - 1, LISTEN, 38])
def test_engine_and_rounds_agree_throughout_a_trial(rows):
    assert_a_round_agrees(*challenged(rows))


@pytest.mark.parametrize(("trust", "winner"), [([9.0, 8.0], 0), ([8.0, 9.0], 1)])
def test_engine_and_rounds_agree_on_who_wins_a_trial(trust, winner):
    problem, state, x, y = challenged(39)
    state = state._replace(trust=np.array(trust), evidence=np.zeros_like(state.evidence))
    assert graph_mkl.step(problem, state, x, y, np.zeros(2))[0].incumbent == winner
    assert_a_round_agrees(problem, state, x, y)


def test_engine_and_rounds_agree_on_the_rank_of_experts_of_equal_evidence():
    problem, state, x, y = after(79)
    level = state._replace(evidence=np.full_like(state.evidence, -1.0), rank=state.rank[:, ::-1].copy())
    assert (graph_mkl.step(problem, level, x, y, np.zeros(2))[0].rank[0] != level.rank[0]).any()
    assert_a_round_agrees(problem, level, x, y)
