import contextlib
import math
import os
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from streams import (
    COMMITS,
    DESCENDING,
    FAMILIES,
    GRAPHS,
    PAPER,
    STABILISERS,
    arrays_of,
    of_all_families,
    small,
    stream,
    weights_of,
)

from omkl import algorithms, engine
from omkl.algorithms import omkr, raker, sfg_mkl
from omkl.algorithms.descent import Descent
from omkl.algorithms.schedule import Schedule
from omkl.algorithms.settings import Settings
from omkl.engine import _native
from omkl.errors import DivergenceError
from omkl.features import features
from omkl.kernels import Gaussian
from omkl.losses import LOSSES
from omkl.online import Checkpoint, Online

ISA = pytest.mark.parametrize("isa", engine.supported())
LOSS = pytest.mark.parametrize("loss", LOSSES)
HORIZON = pytest.mark.parametrize("horizon", [150, None], ids=["horizon", "anytime"])
STABILISER = pytest.mark.parametrize("stabiliser", STABILISERS)

MANY = settings().max_examples  # as the profile has it
WHOLE = {"node", "t", "d", "chosen", "S"}  # what must agree to the last bit


def assert_close(a, b, what):
    """Within 1e-12 of each other, relative to max(1, |a|); a theta counts as a whole."""
    assert np.shape(a) == np.shape(b), what
    size = np.max(np.abs(a), axis=(1, 2), keepdims=True) if np.ndim(a) == 3 else np.abs(a)
    off = np.abs(np.asarray(a) - b) / np.maximum(1, size)
    assert np.max(off, initial=0) <= 1e-12, (what, np.max(off))


def assert_lockstep(learner, chosen, d, X, y, weight=None, seed=0, restart=False):
    """NumPy and the engine on every instruction set: the same predictions, and after every piece the same state.

    With `restart` a piece is one row, and the engine starts it from the state that NumPy has; else both run on their
    own from the first row, and states are compared the less often the longer they have agreed. Dividing by p and q
    amplifies differences: an error in log u grows by about exp(sum of eta times loss), so that without `restart` only
    low rates keep it near 1e-16.
    """
    plain = Online.make(learner, chosen, d, seed, backend="numpy")
    compiled = [Online.make(learner, chosen, d, seed, isa=isa) for isa in engine.supported()]
    for here in [slice(row, row + 1) for row in range(len(X))] if restart else pieces(len(X)):
        w = None if weight is None else weight[here]
        before = plain.checkpoint() if restart else None
        f, state = plain.run(X[here], y[here], w), arrays_of(plain.state)
        for online in compiled:
            if before is not None:
                online.restore(before)
            assert_close(f, online.run(X[here], y[here], w), f"predictions of rows {here}")
            assert online.evaluations == plain.evaluations
            for name, value in arrays_of(online.state).items():
                if name in WHOLE:
                    np.testing.assert_array_equal(value, state[name], err_msg=f"{name} after rows {here}")
                else:
                    assert_close(state[name], value, f"{name} after rows {here}")


def pieces(rows):
    """One row, one, two, three, five, ..., at most 34 in a piece: ends fall on odd and even rows alike."""
    lengths, starts = [1, 1], [0, 1]
    while starts[-1] + lengths[-1] < rows:
        starts.append(starts[-1] + lengths[-1])
        lengths.append(min(lengths[-1] + lengths[-2], 34))
    return [slice(start, min(start + length, rows)) for start, length in zip(starts, lengths, strict=True)]


GENTLE = {"learning_rate": 0.05, "exploration": 0.5}


# Every pair of options


@pytest.mark.parametrize("learner", GRAPHS)
@LOSS
@HORIZON
@STABILISER
@pytest.mark.parametrize("commit", COMMITS)
def test_the_engine_and_numpy_agree_under_all_options_of_the_graph_learners(learner, loss, horizon, stabiliser, commit):
    chosen = Settings(
        kernels=of_all_families(11), n_features=13, out_degree=3, loss=loss, horizon=horizon, commit=commit,
        commit_after=60, stabiliser=stabiliser, radius=0.5, **GENTLE,
    )  # fmt: skip
    assert_lockstep(learner, chosen, 3, *stream(120, 3, loss=loss), weights_of(120))


@LOSS
@HORIZON
@STABILISER
@pytest.mark.parametrize("freeze_after", [None, 60])
@pytest.mark.parametrize("weighted", [True, False])
def test_the_engine_and_numpy_agree_under_all_options_of_omkl_gf(loss, horizon, stabiliser, freeze_after, weighted):
    chosen = Settings(
        kernels=of_all_families(11), n_features=13, draws=4, loss=loss, horizon=horizon, stabiliser=stabiliser,
        radius=0.5, freeze_after=freeze_after, weighted=weighted, **GENTLE,
    )  # fmt: skip
    assert_lockstep("omkl-gf", chosen, 3, *stream(120, 3, loss=loss), weights_of(120))


@LOSS
@HORIZON
@STABILISER
def test_the_engine_and_numpy_agree_under_all_options_of_raker(loss, horizon, stabiliser):
    chosen = Settings(
        kernels=of_all_families(11), n_features=13, loss=loss, horizon=horizon, stabiliser=stabiliser, radius=0.5,
        **GENTLE,
    )  # fmt: skip
    assert_lockstep("raker", chosen, 3, *stream(120, 3, loss=loss), weights_of(120))


@HORIZON
@pytest.mark.parametrize("beta", [None, 0.01, 1 / 24])
def test_the_engine_and_numpy_agree_on_the_dominating_nodes(horizon, beta):
    chosen = Settings(kernels=of_all_families(23), n_features=6, out_degree=3, horizon=horizon, beta=beta, **GENTLE)
    assert_lockstep("sfg-mkl-r", chosen, 2, *stream(200, 2))


@ISA
@pytest.mark.parametrize("N", [3, 7, 23, 41])
def test_where_all_nodes_are_alike_and_beta_is_one_nth_all_of_them_dominate_despite_rounding(N, isa):
    problem = algorithms.problem("sfg-mkl-r", small(kernels=of_all_families(N), beta=1 / N), 2)
    online = Online("sfg-mkl-r", problem, 0, isa=isa)
    for _ in range(50):  # rows of no weight: only the exploration changes
        online.run(np.zeros((1, 2)), np.zeros(1), np.zeros(1))
        np.testing.assert_array_equal(online.state.d, np.arange(N))


@ISA
@pytest.mark.parametrize("learner", ["omkl-gf", *GRAPHS])
def test_exploration_is_never_more_than_certain_in_the_engine_too(learner, isa):
    X, y = stream(40, 2)
    problem = algorithms.problem(learner, small(), 2)._replace(schedule=Schedule(0.05, 5.0, anytime=True))
    plain, compiled = Online(learner, problem, 0, backend="numpy"), Online(learner, problem, 0, isa=isa)
    assert_close(plain.run(X, y), compiled.run(X, y), "prediction")
    assert_close(plain.state.log_w, compiled.state.log_w, "log_w")


@pytest.mark.parametrize("learner", ["rfomkr", "raker", "omkl-gf", *GRAPHS])
@pytest.mark.parametrize("kernels", ["paper", of_all_families(11)], ids=["gaussian", "families"])
def test_the_engine_and_numpy_agree_where_kernels_share_their_draw(learner, kernels):
    chosen = Settings(kernels=kernels, n_features=13, out_degree=3, draw="shared", **GENTLE)
    assert_lockstep(learner, chosen, 4, *stream(100, 4), weights_of(100))


# Every shape


@st.composite
def situations(draw, learner, rates):
    """Settings, dimension, stream and weights; the largest phase is at most 1e3."""
    N, d, rows = draw(st.integers(1, 12)), draw(st.integers(1, 9)), draw(st.integers(100, 200))
    names = draw(st.lists(st.sampled_from(sorted(FAMILIES)), min_size=N, max_size=N))
    scales = draw(st.lists(st.floats(-1, 1), min_size=N, max_size=N))
    loss = draw(st.sampled_from(LOSSES)) if learner not in ("omkr", "rfomkr") else "squared"
    chosen = Settings(
        kernels=[FAMILIES[name](10**scale) for name, scale in zip(names, scales, strict=True)],
        n_features=draw(st.integers(1, 60)),
        out_degree=draw(st.integers(1, N)),
        draws=draw(st.integers(1, 12)),
        beta=draw(st.none() | st.floats(0.01, 0.99).map(lambda share: share / N)),
        horizon=draw(st.sampled_from([None, rows])),
        commit=draw(st.sampled_from(COMMITS)),
        commit_after=draw(st.integers(0, rows)),
        freeze_after=draw(st.none() | st.integers(1, rows)),
        weighted=draw(st.booleans()),
        loss=loss,
        stabiliser=draw(st.sampled_from(STABILISERS)),
        radius=draw(st.floats(0.1, 3)),
        **rates,
    )
    seed = draw(st.integers(0, 2**32))
    X, y = stream(rows, d, seed, loss)
    if learner != "omkr":
        phases = np.abs(np.einsum("rd,idk->rik", X, algorithms.problem(learner, chosen, d, seed=seed).V))
        X *= 10 ** draw(st.floats(0, 3)) / phases.max()
    weight = draw(st.none() | st.just(weights_of(rows, seed)))
    return chosen, d, X, y, weight, seed


@pytest.mark.parametrize("learner", PAPER)
@given(data=st.data())
@settings(max_examples=MANY // 2)
def test_the_engine_and_numpy_agree_on_streams_of_every_shape(learner, data):
    assert_lockstep(learner, *data.draw(situations(learner, GENTLE)))


@pytest.mark.parametrize("learner", PAPER)
@given(data=st.data())
@settings(max_examples=MANY // 5)
def test_the_engine_and_numpy_agree_on_every_single_round_at_full_rates(learner, data):
    assert_lockstep(learner, *data.draw(situations(learner, {})), restart=True)


@pytest.mark.parametrize("learner", DESCENDING)
@LOSS
@HORIZON
def test_the_engine_and_numpy_agree_on_every_single_round_of_a_stream_of_extreme_values(learner, loss, horizon):
    """Weights from 0 to 1e12, rates of 1000, targets of 1e9, under the stabiliser that is made for it."""
    X, y = stream(100, 2, loss=loss)
    weight = np.random.default_rng(6).choice([0.0, 1e-12, 1.0, 1e6, 1e12], size=100)
    chosen = small(loss=loss, horizon=horizon, learning_rate=1e3)
    assert_lockstep(learner, chosen, 2, X, y * (1e9 if loss == "squared" else 1), weight, restart=True)


def test_the_engine_and_numpy_agree_on_a_logistic_step_of_any_length():
    X, y = stream(20, 2, loss="logistic")
    chosen = small(loss="logistic", learning_rate=1e80, ridge=0.0)
    assert_lockstep("raker", chosen, 2, X, y, np.tile([1.0, 1e30], 10), restart=True)


@ISA
def test_a_sample_on_the_edge_of_the_hinge_moves_nothing(isa):
    problem = algorithms.problem("raker", small(n_features=4, loss="hinge", stabiliser="none", ridge=0.0), 1)
    theta = np.zeros((5, 2, 4))
    theta[:, 1, 0] = 2.0  # at 0 the cosines are 1 / sqrt(4): all predict 1
    checkpoint = Checkpoint(raker.State(theta, np.zeros(5), 0), np.random.PCG64(0).state, 0)
    online = Online("raker", problem, checkpoint=checkpoint, isa=isa)
    assert online.run(np.zeros((1, 1)), np.ones(1)) == 1
    np.testing.assert_array_equal(online.state.theta, theta)


# OMKR


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES.keys())
@pytest.mark.parametrize("d", [1, 4])
def test_the_engine_and_numpy_agree_on_omkr_of_every_family(family, d):
    chosen = small(kernels=[family(scale) for scale in (0.05, 0.5, 5.0)], learning_rate=0.3)
    assert_lockstep("omkr", chosen, d, *stream(100, d), weights_of(100))


@pytest.mark.filterwarnings("ignore::omkl.errors.BudgetWarning")  # the budget is meant to be full
@pytest.mark.parametrize("budget", [1, 7, 8, 9, 64])
def test_the_engine_and_numpy_agree_on_omkr_with_a_budget(budget):
    assert_lockstep("omkr", small(kernels=of_all_families(6), budget=budget), 2, *stream(80, 2), weights_of(80))


@ISA
def test_the_engine_and_numpy_agree_on_omkr_with_more_than_one_block_of_support_points(isa):
    X, y = stream(1200, 2)
    chosen = small(kernels=of_all_families(6))
    plain, compiled = Online.make("omkr", chosen, 2, backend="numpy"), Online.make("omkr", chosen, 2, isa=isa)
    assert_close(plain.run(X, y), compiled.run(X, y), "prediction")
    assert_close(plain.state.alpha, compiled.state.alpha, "alpha")


@ISA
@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES.keys())
def test_the_engines_kernel_is_the_kernel(family, isa):
    """One support point of coefficient 1 makes the prediction kappa."""
    kernel = family(0.7)
    x = np.array([[0.3, -0.2]])
    state = omkr.State(x.T, np.ones((1, 1)), np.zeros(1), 1)
    problem = omkr.Problem((kernel,), 2, Schedule(0.1, 0.1))
    checkpoint = Checkpoint(state, np.random.PCG64(0).state, 0)
    online = Online("omkr", problem, checkpoint=checkpoint, isa=isa)
    steps = np.append(np.geomspace(1e-9, 50, 300), np.linspace(25, 28, 200))  # where a Gaussian becomes subnormal
    at = x + steps[:, None] * np.array([0.6, -0.8])
    want = kernel.value(at, x)[:, 0]
    got, far = online.predict_rows(at), want < 1e-300
    assert ((got[far] >= 0) & (got[far] <= 1e-300)).all()
    off = np.abs(got[~far] / want[~far] - 1)
    assert (off <= 1e-15 * (1 + np.abs(np.log(want[~far])))).all()  # the rounding of the exponent alone


# Sines and cosines


def sine_and_cosine(phases, isa, D=1):
    """(sin, cos) as the engine has them: one kernel of frequency 1, theta on its sine or on its cosine."""
    out = []
    for part in (0, 1):
        theta = np.zeros((1, 2, D))
        theta[0, part, -1] = math.sqrt(D)
        problem = raker.Problem(np.ones((1, 1, D)), Descent("squared", 1e-3, "none", 10.0), Schedule(0.1, 0.1))
        checkpoint = Checkpoint(raker.State(theta, np.zeros(1), 0), np.random.PCG64(0).state, 0)
        online = Online("raker", problem, checkpoint=checkpoint, isa=isa)
        out.append(online.predict_rows(np.asarray(phases, dtype=float)[:, None]))
    return np.array(out)


@ISA
@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=50), st.integers(1, 9))
@example([0.0, -0.0, math.pi / 4, math.pi / 2, -math.pi, 1e6, -1e6, 1e-300], 1)
@example([n * math.pi / 4 for n in range(-8, 9)], 8)
def test_sine_and_cosine_are_right_in_the_range_of_the_polynomial(isa, phases, D):
    np.testing.assert_allclose(sine_and_cosine(phases, isa, D), [np.sin(phases), np.cos(phases)], rtol=0, atol=5e-16)


@ISA
def test_sine_and_cosine_are_right_far_outside_the_range_of_the_polynomial(isa):
    phases = np.concatenate([scale * np.linspace(-1, 1, 101) for scale in (1e6 + 1e-6, 1e7, 1e12, 1e15, 1e300)])
    np.testing.assert_allclose(sine_and_cosine(phases, isa), [np.sin(phases), np.cos(phases)], rtol=0, atol=5e-16)


@pytest.mark.parametrize("learner", sorted({*PAPER} - {"omkr"}))
@pytest.mark.parametrize("largest", [1e7, 1e12])
def test_the_engine_and_numpy_agree_where_some_phases_are_outside_the_range_of_the_polynomial(learner, largest):
    """In one dimension a phase is one product, so both see the same phases however large."""
    X, y = stream(100, 1)
    chosen = small(kernels=[Gaussian(scale) for scale in np.geomspace(1e-6, 1.0, 5)], **GENTLE)
    X *= largest / np.abs(X[0, 0] * algorithms.problem(learner, chosen, 1).V).max()
    assert_lockstep(learner, chosen, 1, X, y)


# The aware step


@ISA
@LOSS
@pytest.mark.parametrize("lam", [0.0, 1e-22, 1e-9, 1e-3, 0.3, 0.7, 40.0, 1e12, 1e250])
def test_an_aware_step_of_any_length_is_the_same_in_the_engine_and_in_numpy(isa, loss, lam):
    V, x = np.array([[[0.7, -1.3, 0.4]]]), np.array([1.5])
    problem = raker.Problem(V, Descent(loss, lam, "aware", 10.0), Schedule(1.0, 0.0))
    z = features(V[0], x)
    for f in (0.0, 1e-9, 0.3, 1.0, 4.66, 60.0, 1e6):
        for sign in (-1, 1):
            state = raker.State(sign * f * z[None], np.zeros(1), 0)
            online = Online("raker", problem, checkpoint=Checkpoint(state, np.random.PCG64(0).state, 0), isa=isa)
            start = online.checkpoint()
            for k in (0.0, 1e-12, 0.01, 0.7, 9.0, 1e3, 1e9):
                online.restore(start)
                wanted, _ = raker.step(problem, state, x, 1.0, np.empty(0), k)
                online.run(x[None], np.ones(1), np.array([k]))
                np.testing.assert_allclose(online.state.theta, wanted.theta, rtol=0, atol=1e-14 * max(1, f))


# Draws


def node_drawn(p, r, isa):
    """The node that the engine draws with this uniform number from probabilities p / sum(p)."""
    N = len(p)
    problem = algorithms.problem("sfg-mkl", small(kernels=of_all_families(N), out_degree=1, exploration=0.0), 1)
    state = sfg_mkl.init(problem, np.zeros(1))._replace(log_u=np.log(p))
    online = Online("sfg-mkl", problem, checkpoint=Checkpoint(state, np.random.PCG64(0).state, 0), isa=isa)
    online._rng = SimpleNamespace(random=lambda n: np.full(n, r))
    online.run(np.zeros((1, 1)), np.zeros(1), np.zeros(1))  # a row of no weight: the probabilities stay
    return online.state.node


@ISA
@pytest.mark.parametrize("N", [2, 4, 8, 16])
def test_a_uniform_on_the_edge_between_two_nodes_falls_on_the_later(N, isa):
    assert [node_drawn(np.ones(N), k / N, isa) for k in range(N)] == list(range(N))


@ISA
def test_the_largest_uniform_falls_on_the_last_node_however_the_probabilities_are_rounded(isa):
    r = np.nextafter(1.0, 0.0)
    for N in range(1, 25):
        assert node_drawn(np.random.default_rng(N).uniform(0.5, 1, N), r, isa) == N - 1


# Divergence


@ISA
@pytest.mark.parametrize("learner", PAPER)
@pytest.mark.parametrize(("size", "diverges"), [(0.9e100, False), (1.1e100, True)])
def test_a_prediction_above_1e100_is_a_divergence_in_the_engine_too(learner, isa, size, diverges):
    """theta on one cosine or alpha on one support point, at the sample itself: every kernel predicts `size`."""
    problem = algorithms.problem(learner, small(budget=8), 1)
    algorithm = algorithms.get(learner)
    state = algorithm.init(problem, np.zeros(algorithm.uniforms(problem)))
    if learner == "omkr":
        state = state._replace(S=np.zeros((1, 1)), alpha=np.full((5, 1), size))
    else:
        theta = np.zeros_like(state.theta)
        theta[:, 1, 0] = size * math.sqrt(theta.shape[2])
        state = state._replace(theta=theta)
    online = Online(learner, problem, checkpoint=Checkpoint(state, np.random.PCG64(0).state, 0), isa=isa)
    with pytest.raises(DivergenceError) if diverges else contextlib.nullcontext():
        online.run(np.zeros((1, 1)), np.zeros(1), np.zeros(1))


def rounds_until_divergence(online, X, y):
    with pytest.raises(DivergenceError):
        online.run(X, y)
    return online.t


@pytest.mark.parametrize("learner", DESCENDING)
def test_the_engine_and_numpy_diverge_within_a_round_of_each_other(learner):
    X, y = stream(2000, 2)
    chosen = small(stabiliser="none", learning_rate=3.0, horizon=2000)
    plain = rounds_until_divergence(Online.make(learner, chosen, 2, backend="numpy"), X, y)
    assert plain > 20
    for isa in engine.supported():
        assert abs(rounds_until_divergence(Online.make(learner, chosen, 2, isa=isa), X, y) - plain) <= 1


# Problems and states as C++ reads them


def test_every_algorithm_has_an_engine():
    assert set(_native.engines) == set(algorithms.names())


@pytest.mark.parametrize("learner", PAPER)
def test_a_state_whose_arrays_do_not_fit_the_problem_is_refused(learner):
    algorithm, problem = algorithms.get(learner), algorithms.problem(learner, small(budget=8), 2)
    native, compiled = algorithm.native, engine.compile_problem(learner, algorithm.native, problem)
    state = algorithm.init(problem, np.zeros(algorithm.uniforms(problem)))
    arrays = {name: a for name, a in state._asdict().items() if isinstance(a, np.ndarray)}
    engine.runner(compiled, native, problem, state)
    for name, a in arrays.items():
        with pytest.raises(ValueError, match=name if name not in native.grows else "one capacity"):
            engine.runner(compiled, native, problem, state._replace(**{name: np.concatenate((a, a))}))
        if name not in native.grows + native.padded:  # those are copied to what C++ wants
            with pytest.raises(TypeError, match=f"{name} must be an array of"):
                engine.runner(compiled, native, problem, state._replace(**{name: a.astype(np.float32)}))


@pytest.mark.parametrize("learner", sorted({*PAPER} - {"omkr"}))
def test_frequencies_of_any_layout_are_read_alike(learner):
    X, y = stream(30, 3)
    problem = algorithms.problem(learner, small(n_features=7), 3)
    want = Online(learner, problem, 0).run(X, y)
    for V in (
        np.ascontiguousarray(problem.V),
        np.asfortranarray(problem.V),
        np.repeat(problem.V, 2, axis=2)[:, :, ::2],
    ):
        np.testing.assert_array_equal(Online(learner, problem._replace(V=V), 0).run(X, y), want)


# Choosing the engine


def test_an_instruction_set_that_this_machine_lacks_is_refused():
    with pytest.raises(ValueError, match=r"this machine runs the instruction sets baseline.*, got 'abacus'"):
        Online.make("raker", small(), 2, isa="abacus")


def test_the_best_instruction_set_is_taken_unless_the_environment_names_one():
    with patch.dict(os.environ):
        os.environ.pop("OMKL_ISA", None)
        assert engine.instruction_set() == engine.supported()[-1]
        os.environ["OMKL_ISA"] = "baseline"
        assert engine.instruction_set() == "baseline"


def test_first_not_finite_finds_the_first():
    a = np.arange(12.0).reshape(3, 4)
    assert engine.first_not_finite(a) == -1
    a[2, 3], a[1, 2] = math.nan, -math.inf
    assert engine.first_not_finite(a) == 6
    assert engine.first_not_finite(np.empty((0, 4))) == -1
    assert engine.first_not_finite(np.full(5, 1e308)) == -1


def test_first_above_finds_the_first():
    a = np.linspace(-3, 3, 101)
    assert engine.first_above(a, 3.0) == -1
    assert engine.first_above(a[::-1][:30].copy(), 2.0) == 0
    assert engine.first_above(np.append(a[50:80], [math.nan, 9.0]), 3.0) == 30
