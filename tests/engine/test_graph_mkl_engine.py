"""GraphMKL: the engine against the reference implementation."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from streams import arrays_of
from streams import graph_settings as small
from streams import raw_and_turning as stream

import omkl
from omkl import algorithms, engine
from omkl.algorithms import graph_mkl
from omkl.algorithms.graph_mkl.change import Trend, Trial
from omkl.algorithms.graph_mkl.constants import (
    FIRST_ROWS,
    MAX_TEMPERATURE,
    MIN_TEMPERATURE,
    SILENT_ROUNDS,
    WINDOW,
)
from omkl.algorithms.graph_mkl.scaling import scaled
from omkl.online import Checkpoint


@pytest.mark.parametrize("isa", engine.supported())
@pytest.mark.parametrize("task", ["regression", "classification"])
def test_engine_and_reference_agree_over_a_stream_with_a_change(task, isa):
    X, y = stream(900, change=500)
    if task == "classification":
        y = np.digitize(y, [50, 150]).astype(float)
    s = small(task=task, outputs=1 if task == "regression" else 3)
    fast = omkl.Online.make("graph-mkl", s, d=3, seed=1, isa=isa)
    slow = omkl.Online.make("graph-mkl", s, d=3, seed=1, backend="numpy")
    a, b = fast.run(X, y), slow.run(X, y)
    np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-11 * np.abs(b).max())
    assert fast.evaluations == slow.evaluations
    one, other = arrays_of(fast.state), arrays_of(slow.state)
    for name in one:
        if one[name].dtype.kind == "i":  # incumbent, ages, ranks, explorers and counts of rounds
            np.testing.assert_array_equal(one[name], other[name], err_msg=name)


@pytest.mark.parametrize(("K", "d"), [(1, 3), (2, 3), (5, 3), (1, 70)])
def test_engine_and_reference_grow_the_same_trees(K, d):
    rng = np.random.default_rng(K)
    X = rng.normal(size=(200, d))
    X[:, 0] = np.round(2 * X[:, 0])
    X[:, 1] *= X[:, 1] > -0.5
    X[:, 2] = -X[:, 1]  # a mirror image, whose splits are as good
    y = X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=200)
    if K > 1:
        y = np.digitize(y, np.quantile(y, np.arange(1, K) / K)).astype(float)
    X[rng.random(X.shape) < 0.1] = np.nan
    weight = rng.choice([0.3, 1.0, 2.0], 200)
    s = small(task="regression" if K == 1 else "classification", outputs=K)
    problem = algorithms.problem("graph-mkl", s, d=d)
    problem = problem._replace(trees=4, archive=256, V_wide=problem.V_wide[:, :, :0])
    slow = omkl.Online("graph-mkl", problem, rng=1, backend="numpy")
    slow.run_unchecked(X, y, weight)
    expected = slow.state.large.trees
    assert expected.grown >= 12
    for isa in engine.supported():
        fast = omkl.Online("graph-mkl", problem, rng=1, isa=isa)
        fast.run_unchecked(X, y, weight)
        for name, found in fast.state.large.trees._asdict().items():
            exact = name in ("feature", "threshold", "cuts", "cut_counts", "bins") or isinstance(found, int)
            tolerance = 0 if exact else 1e-12
            np.testing.assert_allclose(found, getattr(expected, name), rtol=0, atol=tolerance, err_msg=f"{isa} {name}")


def constant_target(X, y):
    y[:270] = 0.1


def spoiled_target(X, y):
    y[4] = 1e12


def spoiled_input(X, y):
    X[4, 1] = -1e9
    X[::3, 2] = np.nan


def input_that_is_constant_at_first(X, y):
    X[:260, 0] = X[260, 0] - 1e-3


@pytest.mark.parametrize("spoil", [constant_target, spoiled_target, spoiled_input, input_that_is_constant_at_first])
def test_engine_and_reference_agree_on_streams_whose_scaling_is_spoiled(spoil):
    X, y = stream(440)
    spoil(X, y)
    fast, slow = (omkl.Online.make("graph-mkl", small(), d=3, seed=1, backend=b) for b in ("engine", "numpy"))
    a, b = fast.run_unchecked(X, y), slow.run_unchecked(X, y)
    assert fast.state.sets[1].age > 0  # a challenger has started
    np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-10 * np.abs(b[-100:]).max())
    one, other = arrays_of(fast.state), arrays_of(slow.state)
    for name in one:
        if one[name].dtype.kind == "i":
            np.testing.assert_array_equal(one[name], other[name], err_msg=name)


def test_engine_and_reference_agree_on_a_challenger_after_the_shortest_warm_up():
    """Its own is never shorter than a row: without one its first explorer would be among its leaders."""
    X = np.random.default_rng(0).normal(size=(400, 3))
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2]
    y[270:] = 2 + X[270:, 1] ** 2 - 2 * np.sin(2 * X[270:, 0])
    settings = omkl.GraphSettings(n_features=8, warm_up=1, evaluate=6)
    problem = algorithms.problem("graph-mkl", settings, d=3, seed=1)
    fast, slow = (omkl.Online("graph-mkl", problem, 3, backend=backend) for backend in ("engine", "numpy"))
    a, b = fast.run(X, y), slow.run(X, y)
    assert all(part.age > 0 for part in fast.state.sets)  # a challenger has started
    np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-10 * np.abs(b).max())
    assert fast.evaluations == slow.evaluations


def assert_a_round_agrees(problem, before, x, y, weight=1.0):
    """From this state on, one round predicts and leaves the same in NumPy and on every instruction set."""
    row = np.atleast_2d(x).astype(float), np.array([y], dtype=float), np.array([weight])
    checkpoint = Checkpoint(before, np.random.PCG64(0).state, 0)
    slow = omkl.Online("graph-mkl", problem, checkpoint=checkpoint, backend="numpy")
    wanted = slow.run_unchecked(*row)
    for isa in engine.supported():
        fast = omkl.Online("graph-mkl", problem, checkpoint=checkpoint, isa=isa)
        found, limit = fast.run_unchecked(*row), 1e-10 * max(1, np.abs(wanted).max())
        np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=limit)
        assert fast.evaluations == slow.evaluations
        state = arrays_of(fast.state)
        for name, array in arrays_of(slow.state).items():
            np.testing.assert_allclose(state[name], array, rtol=1e-9, atol=1e-11, err_msg=name)


@settings(max_examples=25)
@given(st.integers(1, 4), st.integers(1, 20), st.integers(1, 4), st.integers(1, 3), st.data())
def test_engine_and_reference_agree_on_one_round_after_streams_of_every_shape(N, D, d, K, data):
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
    slow = omkl.Online.make("graph-mkl", s, d=d, seed=2, backend="numpy")
    slow.run(X[:rows], y[:rows], weight[:rows])
    assert_a_round_agrees(slow.problem, slow.state, X[rows], y[rows], weight[rows])


# Cases that a short stream does not come to: each is brought about by the engine, or by a change of the state


def after(rows, d=3, **changes):
    """Problem, state and the row that comes next."""
    X, y = stream(rows + 1, d)
    if changes.get("task") == "classification":
        y = np.digitize(y, [50, 150]).astype(float)
    online = omkl.Online.make("graph-mkl", small(**changes), d=d, seed=1)
    online.run(X[:rows], y[:rows])
    return online.problem, online.state, X[rows], float(y[rows])


def with_sets(state, change):
    """The state with `change` made to both of its sets of experts."""
    first, second = state.sets
    return state._replace(sets=(change(first), change(second)))


def with_noise(state, level):
    return with_sets(state, lambda s: s._replace(noise=s.noise._replace(level=np.full_like(s.noise.level, level))))


def test_engine_and_reference_agree_once_the_window_is_full():
    problem, state, x, y = after(WINDOW + 70)
    assert_a_round_agrees(problem, state, x, y)


def test_engine_and_reference_agree_on_a_row_of_no_weight():
    problem, state, x, y = after(100)
    assert_a_round_agrees(problem, state, x, y, weight=0.0)


@pytest.mark.parametrize("label", range(3))
@pytest.mark.parametrize("temperature", [MIN_TEMPERATURE, MAX_TEMPERATURE])
def test_engine_and_reference_agree_at_the_ends_of_the_temperatures(temperature, label):
    problem, state, x, _ = after(100, task="classification", outputs=3)
    at_the_end = with_noise(state, temperature)
    now = graph_mkl.step(problem, at_the_end, x, label, np.zeros(2))[0].sets[0].noise.level
    assert (now == temperature).any()  # a step beyond it was cut off
    assert_a_round_agrees(problem, at_the_end, x, label)


def test_engine_and_reference_agree_on_labels_of_low_probability():
    problem, state, x, _ = after(100, task="classification", outputs=3)
    for label in range(3):
        assert_a_round_agrees(problem, with_noise(state, 0.05), x, label)


def test_engine_and_reference_agree_on_a_label_well_known_among_a_hundred():
    """With few labels no probability can rise so fast that its temperature's step is cut off."""
    problem, state, x, _ = after(20, task="classification", outputs=100)

    def known(s):
        c, shift = s.coefficients, np.eye(100)[0]
        return s._replace(
            coefficients=c._replace(theta=0 * c.theta, theta_linear=0 * c.theta_linear),
            scaling=s.scaling._replace(shift=shift),
        )

    assert_a_round_agrees(problem, with_noise(with_sets(state, known), 0.25), x, 0)


@pytest.mark.parametrize(("x", "y"), [(1e100, 1.0), (-1e200, 1.0), (1.0, 1e95), (1.0, -1e99)])
def test_engine_and_reference_agree_on_numbers_too_large_to_use(x, y):
    problem, state, row, _ = after(100)
    row[1] = x
    assert_a_round_agrees(problem, state, row, y)


@pytest.mark.parametrize("far", [-1000.0, -100.0, 70.0, 100.0, 1000.0])
@pytest.mark.parametrize("task", ["regression", "classification"])
def test_engine_and_reference_agree_far_out(task, far):
    problem, state, row, y = after(100, task=task, outputs=1 if task == "regression" else 3)
    row[1] = far  # up to thirty deviations from 40 and beyond
    assert_a_round_agrees(problem, state, row, y)


def test_engine_and_reference_agree_where_there_are_more_inputs_than_places_for_squares():
    problem, state, row, y = after(100, d=9, task="classification", outputs=3)
    assert 2 * problem.V.shape[2] < 2 * 9 + 1
    assert_a_round_agrees(problem, state, row, y)


@pytest.mark.parametrize("size", [1e-120, 1e-160])
def test_engine_and_reference_agree_on_inputs_that_hardly_vary(size):
    X, y = stream(16)
    X = (X - 40) * size
    online = omkl.Online.make("graph-mkl", small(), d=3, seed=1)
    online.run(X[:15], y[:15])
    assert_a_round_agrees(online.problem, online.state, X[15], y[15])


@pytest.mark.parametrize("min_leverage", [0.0, 1e-4, 0.05, 0.5])
def test_engine_and_reference_agree_whatever_the_least_leverage(min_leverage):
    problem, state, x, y = after(100, min_leverage=min_leverage)
    assert_a_round_agrees(problem, state, x, y)

    def certain(s):
        c = s.coefficients
        return s._replace(coefficients=c._replace(R=1e-2 * c.R, R_linear=1e-3 * c.R_linear))

    assert_a_round_agrees(problem, with_sets(state, certain), x, y)


@pytest.mark.parametrize("rows", [100, FIRST_ROWS + 20])
def test_engine_and_reference_agree_on_a_column_that_comes_or_varies_late(rows):
    X, y = stream(rows + 1)
    X[:rows, 1] = 7.0
    online = omkl.Online("graph-mkl", algorithms.problem("graph-mkl", small(), names=list("abc")), 0)
    online.run(X[:rows], y[:rows])
    online.change_problem(algorithms.problem("graph-mkl", small(), names=list("abcd")))
    for late in (-3.0, 0.0):
        assert_a_round_agrees(online.problem, online.state, [*X[rows], late], y[rows])


@pytest.mark.parametrize("rows", [7, 100, FIRST_ROWS - 1, FIRST_ROWS + 20])
def test_engine_and_reference_agree_where_inputs_are_missing_and_weights_differ(rows):
    X, y = stream(rows + 1)
    rng = np.random.default_rng(3)
    X[rng.random(X.shape) < 0.3] = np.nan
    weight = rng.exponential(size=rows + 1)
    online = omkl.Online.make("graph-mkl", small(), d=3, seed=1)
    online.run_unchecked(X[:rows], y[:rows], weight[:rows])
    for x in (X[rows], [np.nan, 40.0, 41.0], [np.nan] * 3):
        assert_a_round_agrees(online.problem, online.state, x, y[rows], weight[rows])


def test_engine_and_reference_agree_where_phases_are_beyond_the_polynomial():
    kernels = [omkl.Gaussian(scale) for scale in (2e-7, 1e-6, 1.0)]
    problem, state, x, y = after(100, kernels=kernels)
    assert np.abs(scaled(state.sets[0].scaling, x) @ problem.V[0]).max() > 1e6
    assert_a_round_agrees(problem, state, x, y)


def challenged(rows):
    """As `after`, with a challenger that has learned so many rows of a trial of 40; -1: it starts in the next."""
    problem, state, x, y = after(300)
    problem = problem._replace(trial=40)
    state = state._replace(trend=Trend(50.0, 10.0, 400), trial=Trial(5.0, 3.0))
    if rows >= 0:
        state, _ = graph_mkl.step(problem, state, x, y, np.zeros(2))
        online = omkl.Online("graph-mkl", problem, checkpoint=Checkpoint(state, np.random.PCG64(0).state, 0))
        online.run(*stream(rows, seed=1))
        state = online.state
        assert [s.age for s in state.sets] == [301 + rows, rows]
    return problem, state, x + 0.5, y  # a row that has not come


@pytest.mark.parametrize(("fast", "rounds", "starts"), [(50.0, 199, False), (50.0, 200, True), (15.0, 400, False)])
def test_engine_and_reference_agree_on_when_a_challenger_starts(fast, rounds, starts):
    problem, state, x, y = after(300)
    state = state._replace(trend=Trend(fast, 10.0, rounds))
    assert (graph_mkl.step(problem, state, x, y, np.zeros(2))[0].sets[1].age == 0) == starts
    assert_a_round_agrees(problem, state, x, y)


def test_engine_and_reference_agree_on_a_challenger_that_starts_in_the_place_of_another():
    """Nothing of the set that lost the trial before is left, also where a file of an earlier version has it."""
    problem, state, x, y = challenged(39)
    lost = state.sets[1]._replace(age=-1)
    state, _ = graph_mkl.step(problem, state._replace(trial=Trial(9.0, 8.0)), x, y, np.zeros(2))
    assert [s.age for s in state.sets] == [341, -1]
    assert not state.sets[1].first.X.any()
    assert lost.first.X.any()
    state = state._replace(trend=Trend(50.0, 10.0, 400), sets=(state.sets[0], lost))
    assert not graph_mkl.step(problem, state, x + 1, y, np.zeros(2))[0].sets[1].first.X.any()
    assert_a_round_agrees(problem, state, x + 1, y)


@pytest.mark.parametrize("rows", [-1, 0, SILENT_ROUNDS - 1, SILENT_ROUNDS, 38])
def test_engine_and_reference_agree_throughout_a_trial(rows):
    assert_a_round_agrees(*challenged(rows))


@pytest.mark.parametrize(("trial", "winner"), [(Trial(9.0, 8.0), 0), (Trial(8.0, 9.0), 1)])
def test_engine_and_reference_agree_on_which_set_wins_a_trial(trial, winner):
    problem, state, x, y = challenged(39)
    state = with_sets(state, lambda s: s._replace(evidence=np.zeros_like(s.evidence)))._replace(trial=trial)
    assert graph_mkl.step(problem, state, x, y, np.zeros(2))[0].incumbent == winner
    assert_a_round_agrees(problem, state, x, y)


def test_engine_and_reference_agree_on_the_rank_of_experts_of_equal_evidence():
    problem, state, x, y = after(79)

    def level(s):
        reversed_rank = s.selection._replace(rank=s.selection.rank[::-1].copy())
        return s._replace(evidence=np.full_like(s.evidence, -1.0), selection=reversed_rank)

    state = with_sets(state, level)
    now = graph_mkl.step(problem, state, x, y, np.zeros(2))[0]
    assert (now.sets[0].selection.rank != state.sets[0].selection.rank).any()
    assert_a_round_agrees(problem, state, x, y)


@pytest.mark.parametrize("task", ["regression", "classification"])
@pytest.mark.parametrize("weight", [0.5, 1.0, 3.7])
def test_engine_and_reference_agree_on_copies_and_on_rows_that_are_shown_again(task, weight):
    changes = {} if task == "regression" else {"task": task, "outputs": 3}
    problem, state, x, y = after(90, **changes)
    state, _ = graph_mkl.step(problem, state, x, y, np.zeros(2))
    before = state.sets[0].age
    assert graph_mkl.step(problem, state, x, y, np.zeros(2))[0].sets[0].age == before
    assert_a_round_agrees(problem, state, x, y, weight)  # a copy
    state = state._replace(repeats=8.0, t=state.t + 30)
    assert graph_mkl.step(problem, state, x, y, np.zeros(2))[0].sets[0].age == before
    assert_a_round_agrees(problem, state, x, y, weight)  # shown again
    state = state._replace(repeats=0.0)
    assert graph_mkl.step(problem, state, x, y, np.zeros(2))[0].sets[0].window.returned.sum() == 2
    assert_a_round_agrees(problem, state, x, y, weight)  # a row that has come again by itself
