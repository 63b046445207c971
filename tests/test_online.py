import contextlib
import math
import pickle
import threading
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from streams import (
    DESCENDING,
    GRAPHS,
    LEARNERS,
    arrays_of,
    assert_same_learner,
    assert_same_state,
    of_all_families,
    small,
    stream,
    weights_of,
)

from omkl.errors import BudgetWarning, DivergenceError
from omkl.losses import LOSSES
from omkl.online import Online

LEARNER = pytest.mark.parametrize("learner", LEARNERS)
BACKEND = pytest.mark.parametrize("backend", ["engine", "rounds"])
X, Y = stream(60, 2)
W = weights_of(60)


def make(learner, backend="engine", **changes):
    return Online.make(learner, small(**changes), 2, seed=3, backend=backend)


def learn_all(online, samples, targets):
    for x, y in zip(samples, targets, strict=True):
        online.learn(x, y)


def assert_finite(online):
    for name, value in arrays_of(online.state).items():
        assert np.isfinite(value).all(), name


# Asking changes nothing


@LEARNER
@BACKEND
def test_predicting_has_no_side_effects(learner, backend):
    asked, silent = make(learner, backend), make(learner, backend)
    for x, y in zip(X, Y, strict=True):
        first = asked.predict(x)
        asked.predict_rows(X[:3])
        assert asked.predict(x) == first
        asked.learn(x, y)
        silent.learn(x, y)
    assert_same_learner(asked, silent)


@LEARNER
@BACKEND
def test_predict_predict_rows_and_run_predict_the_same(learner, backend):
    online = make(learner, backend)
    online.run(X, Y)
    rows = online.predict_rows(X)
    assert [online.predict(x) for x in X] == list(rows)
    assert online.run(X[:1], Y[:1])[0] == rows[0]


@LEARNER
def test_a_state_that_was_looked_at_does_not_move_on(learner):
    online = make(learner)
    online.run(X[:20], Y[:20])
    seen, kept = online.state, pickle.dumps(online.state)
    online.run(X[20:], Y[20:])
    assert_same_state(seen, pickle.loads(kept))


# One stream, however it is cut


@LEARNER
@BACKEND
@pytest.mark.parametrize("cut", [0, 1, 7, 59])
def test_two_runs_are_one_bit_for_bit(learner, backend, cut):
    whole, parts = make(learner, backend), make(learner, backend)
    f = whole.run(X, Y, W)
    g = [*parts.run(X[:cut], Y[:cut], W[:cut]), *parts.run(X[cut:], Y[cut:], W[cut:])]
    assert list(f) == g
    assert_same_learner(whole, parts)


@LEARNER
@BACKEND
def test_a_run_is_a_loop_of_predict_and_learn_bit_for_bit(learner, backend):
    whole, loop = make(learner, backend), make(learner, backend)
    f, g = whole.run(X, Y, W), []
    for x, y, w in zip(X, Y, W, strict=True):
        g.append(loop.predict(x))
        loop.learn(x, y, w)
    assert list(f) == g
    assert_same_learner(whole, loop)
    assert whole.t == loop.t == 60


@LEARNER
def test_a_weight_of_1_is_no_weight(learner):
    plain, weighted = make(learner), make(learner)
    plain.run(X, Y)
    weighted.run(X, Y, np.ones(60))
    assert_same_learner(plain, weighted)


@BACKEND
@pytest.mark.parametrize(("learner", "heard"), [("sfg-mkl", 2), ("raker", 5), ("omkr", 5), ("rfomkr", 5)])
def test_evaluations_count_the_kernels_heard(learner, heard, backend):
    online = make(learner, backend)
    online.run(X, Y)
    online.learn(X[0], Y[0])
    assert online.evaluations == 61 * heard


@LEARNER
@BACKEND
def test_a_run_of_no_rows_changes_nothing(learner, backend):
    online, twin = make(learner, backend), make(learner, backend)
    assert online.run(X[:0], Y[:0]).shape == (0,)
    assert online.predict_rows(X[:0]).shape == (0,)
    assert_same_learner(online, twin)


@LEARNER
@BACKEND
def test_any_layout_and_type_of_numbers_will_do(learner, backend):
    X, Y = np.round(10 * stream(40, 2)[0]), np.round(10 * stream(40, 2)[1])
    plain = make(learner, backend)
    plain.run(X, Y)
    wide = np.repeat(X, 3, axis=1)[:, ::3]
    for samples, targets in [(np.asfortranarray(X), Y[::-1].copy()[::-1]), (X.astype(np.int32), Y.tolist()), (wide, Y)]:
        other = make(learner, backend)
        other.run(samples, targets)
        assert_same_learner(plain, other)
    one = make(learner, backend)
    for x, y in zip(wide, Y, strict=True):
        assert one.predict(x) == one.predict(list(x))
        one.learn(x, int(y))
    assert_same_learner(plain, one)


# Stopping and going on


def through_pickle(online):
    return pickle.loads(pickle.dumps(online))


def through_a_checkpoint(online):
    return Online(online.learner, online.problem, backend=online.backend, checkpoint=online.checkpoint())


def back_from_an_excursion(online):
    there = online.copy()
    kept = there.checkpoint()
    there.run(X[::-1], Y)
    there.restore(kept)
    return there


@LEARNER
@BACKEND
@pytest.mark.parametrize("way", [through_pickle, through_a_checkpoint, Online.copy, back_from_an_excursion])
def test_a_learner_that_was_stopped_goes_on_bit_for_bit(learner, backend, way):
    online, undisturbed = make(learner, backend, commit="argmax"), make(learner, backend, commit="argmax")
    online.run(X[:25], Y[:25])
    undisturbed.run(X[:25], Y[:25])
    resumed = way(online)
    assert resumed.backend == backend
    assert list(resumed.run(X[25:], Y[25:])) == list(undisturbed.run(X[25:], Y[25:]))
    assert_same_learner(resumed, undisturbed)
    assert online.t == 25


@LEARNER
def test_a_learner_may_change_its_backend_on_the_way(learner):
    online = make(learner, "engine")
    online.run(X[:25], Y[:25])
    moved = Online(learner, online.problem, backend="rounds", checkpoint=online.checkpoint())
    np.testing.assert_allclose(moved.run(X[25:], Y[25:]), online.run(X[25:], Y[25:]), rtol=0, atol=1e-12)
    assert moved.evaluations == online.evaluations


@LEARNER
@BACKEND
def test_a_feature_that_is_always_0_changes_nothing_when_it_joins(learner, backend):
    chosen = small(kernels=of_all_families(6), delta_dimension=1)
    with_two, with_three = (chosen.problem(learner, names=names, seed=3) for names in (["a", "b"], ["a", "b", "c"]))
    online, twin = (Online(learner, with_two, 4, backend=backend) for _ in range(2))
    online.run(X[:25], Y[:25])
    online.move_to(with_three)
    f = online.run(np.pad(X[25:], ((0, 0), (0, 1))), Y[25:])
    np.testing.assert_allclose(f, twin.run(X, Y)[25:], rtol=0, atol=1e-12)
    assert online.t == twin.t
    assert online.checkpoint().generator == twin.checkpoint().generator


# What cannot be learned is refused and leaves no trace


BAD_SAMPLES = {
    "too short": ([0.5], 1.0, 1.0, r"x must be one sample of 2 values, got an array of shape \(1,\)"),
    "a table": ([[0.5, 0.5]], 1.0, 1.0, r"x must be one sample of 2 values, got an array of shape \(1, 2\)"),
    "a number": (0.5, 1.0, 1.0, r"x must be one sample of 2 values, got an array of shape \(\)"),
    "nan in x": ([0.5, math.nan], 1.0, 1.0, r"x\[1\] must be a finite number, got nan"),
    "inf in x": ([-math.inf, 0.5], 1.0, 1.0, r"x\[0\] must be a finite number, got -inf"),
    "nan for y": ([0.5, 0.5], math.nan, 1.0, "y must be a finite number, got nan"),
    "inf for y": ([0.5, 0.5], math.inf, 1.0, "y must be a finite number, got inf"),
    "nan for weight": ([0.5, 0.5], 1.0, math.nan, "weight must be a finite number of at least 0, got nan"),
    "inf for weight": ([0.5, 0.5], 1.0, math.inf, "weight must be a finite number of at least 0, got inf"),
    "negative weight": ([0.5, 0.5], 1.0, -1.0, "weight must be a finite number of at least 0, got -1.0"),
}


def spoilt(a, value, *at):
    a = np.array(a)
    a[at] = value
    return a


BAD_TABLES = {
    "three columns": (np.zeros((60, 3)), Y, None, r"X must be a table of samples with 2 columns, got .* \(60, 3\)"),
    "one row": (X[0], Y, None, r"X must be a table of samples with 2 columns, got an array of shape \(2,\)"),
    "nan in X": (spoilt(X, math.nan, 33, 1), Y, None, "X must be finite, got nan in row 33, column 1"),
    "inf in X": (spoilt(X, math.inf, 59, 0), Y, None, "X must be finite, got inf in row 59, column 0"),
    "short y": (X, Y[:59], None, r"y must have one value for each of the 60 rows of X, got .* \(59,\)"),
    "a column y": (X, Y[:, None], None, r"y must have one value for each of the 60 rows of X, got .* \(60, 1\)"),
    "nan in y": (X, spoilt(Y, math.nan, 33), None, "y must be a finite number, got nan in row 33"),
    "inf in y": (X, spoilt(Y, -math.inf, 0), None, "y must be a finite number, got -inf in row 0"),
    "short weight": (X, Y, W[:59], r"weight must be 60 finite numbers of at least 0, got .* \(59,\)"),
    "nan in weight": (X, Y, spoilt(W, math.nan, 33), "weight .*finite.* at least 0, got nan in row 33"),
    "inf in weight": (X, Y, spoilt(W, math.inf, 33), "weight .*finite.* at least 0, got inf in row 33"),
    "negative weight": (X, Y, spoilt(W, -0.5, 33), "weight .*finite.* at least 0, got -0.5 in row 33"),
}


def assert_refused(learner, backend, message, act, **changes):
    online, twin = make(learner, backend, **changes), make(learner, backend, **changes)
    y = Y if not changes else np.sign(Y)
    online.run(X[:20], y[:20])
    twin.run(X[:20], y[:20])
    with pytest.raises(ValueError, match=message):
        act(online)
    assert_same_learner(online, twin)
    assert list(online.run(X, y)) == list(twin.run(X, y))


@LEARNER
@BACKEND
@pytest.mark.parametrize("case", BAD_SAMPLES)
def test_a_bad_sample_is_refused_and_leaves_no_trace(learner, backend, case):
    x, y, weight, message = BAD_SAMPLES[case]
    assert_refused(learner, backend, message, lambda online: online.learn(x, y, weight))


@LEARNER
@BACKEND
@pytest.mark.parametrize("case", BAD_TABLES)
def test_a_bad_table_is_refused_whole_and_leaves_no_trace(learner, backend, case):
    samples, y, weight, message = BAD_TABLES[case]
    assert_refused(learner, backend, message, lambda online: online.run(samples, y, weight))


@pytest.mark.parametrize("case", [case for case in BAD_SAMPLES if "y" not in case and "weight" not in case])
def test_a_bad_sample_is_not_predicted(case):
    x, _, _, message = BAD_SAMPLES[case]
    with pytest.raises(ValueError, match=message):
        make("raker").predict(x)


@pytest.mark.parametrize("case", [case for case in BAD_TABLES if "y" not in case and "weight" not in case])
def test_a_bad_table_is_not_predicted(case):
    samples, _, _, message = BAD_TABLES[case]
    with pytest.raises(ValueError, match=message):
        make("raker").predict_rows(samples)


@pytest.mark.parametrize("learner", DESCENDING)
@pytest.mark.parametrize("loss", ["logistic", "hinge"])
@pytest.mark.parametrize("label", [0.0, 2.0, 0.5, math.nan])
def test_what_is_no_label_is_refused_and_leaves_no_trace(learner, loss, label):
    message = f"y must be -1 or 1 for the {loss} loss, got {label}"
    assert_refused(learner, "engine", message, lambda online: online.learn(X[0], label), loss=loss)
    y = spoilt(np.sign(Y), label, 33)
    assert_refused(learner, "engine", f"{message} in row 33", lambda online: online.run(X, y), loss=loss)


@BACKEND
def test_what_is_no_learner_backend_or_generator_is_refused(backend):
    problem = small().problem("sfg-mkl", 2)
    with pytest.raises(ValueError, match=r"learner must be one of omkr, .*, got 'mkl'"):
        Online("mkl", problem, backend=backend)
    with pytest.raises(ValueError, match="backend must be engine or rounds, got 'gpu'"):
        Online("sfg-mkl", problem, backend="gpu")
    with pytest.raises(ValueError, match="rng must be a seed or a Generator on PCG64"):
        Online("sfg-mkl", problem, np.random.Generator(np.random.MT19937(1)), backend=backend)


def test_a_seed_and_its_generator_are_the_same():
    problem = small().problem("sfg-mkl", 2)
    seeded, given_one = Online("sfg-mkl", problem, 8), Online("sfg-mkl", problem, np.random.default_rng(8))
    seeded.run(X, Y)
    given_one.run(X, Y)
    assert_same_learner(seeded, given_one)


# Divergence


UNSTABLE = {"stabiliser": "none", "learning_rate": 3.0, "horizon": 2000}
LONG = stream(2000, 2, seed=1)


@pytest.mark.parametrize("learner", DESCENDING)
@BACKEND
def test_a_run_that_diverges_keeps_the_rounds_before(learner, backend):
    online, twin = make(learner, backend, **UNSTABLE), make(learner, backend, **UNSTABLE)
    with pytest.raises(DivergenceError) as caught:
        online.run(*LONG)
    rows = online.t
    assert 10 < rows < 2000
    twin.run(LONG[0][:rows], LONG[1][:rows])
    assert_same_learner(online, twin)
    assert_finite(online)
    for words in (
        f"{learner} diverged in round {rows + 1}",
        f"row {rows} of this call",
        "stabiliser='aware'",
        "'none'",
    ):
        assert words in str(caught.value)


@pytest.mark.parametrize("learner", DESCENDING)
@BACKEND
def test_a_sample_that_diverges_leaves_no_trace(learner, backend):
    online, twin = make(learner, backend, **UNSTABLE), make(learner, backend, **UNSTABLE)
    with pytest.raises(DivergenceError, match=f"{learner} diverged in round .*stabiliser='aware'"):
        learn_all(online, *LONG)
    twin.run(LONG[0][: online.t], LONG[1][: online.t])
    assert_same_learner(online, twin)
    assert_finite(online)


@LEARNER
@BACKEND
def test_an_input_without_usable_features_is_told_so_and_leaves_no_trace(learner, backend):
    online, twin = make(learner, backend), make(learner, backend)
    online.run(X, Y)
    twin.run(X, Y)
    if learner == "omkr":  # so far out every kernel is 0
        online.learn([1e308, 1e308], 1.0)
        assert_finite(online)
    else:
        with pytest.raises(DivergenceError, match=r"inputs as large as 1e\+308 have no usable features; scale them"):
            online.learn([1e308, 1e308], 1.0)
        assert_same_learner(online, twin)


@pytest.mark.parametrize("learner", DESCENDING)
@pytest.mark.parametrize("loss", LOSSES)
@given(
    rows=st.lists(
        st.tuples(st.floats(-1e3, 1e3), st.floats(-1e9, 1e9), st.sampled_from([0.0, 1e-12, 1.0, 1e6, 1e12])),
        min_size=1,
        max_size=30,
    ),
    rate=st.sampled_from([1.0, 1e3, 1e9]),
    horizon=st.sampled_from([None, 30]),
)
@settings(max_examples=30)
def test_aware_never_diverges(learner, loss, rows, rate, horizon):
    for backend in ("engine", "rounds"):
        online = make(learner, backend, loss=loss, learning_rate=rate, horizon=horizon)
        for x, y, weight in rows:
            online.learn([x, -x], y if loss == "squared" else math.copysign(1, y), weight)
            assert abs(online.predict([x, -x])) < 1e12
        assert_finite(online)


@LEARNER
@BACKEND
@pytest.mark.parametrize(("target", "weight"), [(1e99, 1), (1e150, 1), (1e200, 1), (1.7e308, 1), (1e9, 1e300)])
def test_a_target_or_weight_of_any_size_does_no_lasting_harm(learner, backend, target, weight):
    """It may be learned or refused; the state stays numbers, and predictions do."""
    online = make(learner, backend)
    online.run(X, Y)
    for y in (target, -target):
        with contextlib.suppress(DivergenceError, ValueError):
            online.learn(X[0], y, weight)
    assert_finite(online)
    assert math.isfinite(online.predict(X[1]))


@pytest.mark.parametrize("learner", GRAPHS)
@BACKEND
@pytest.mark.parametrize("stabiliser", ["aware", "floor", "project"])
def test_a_held_node_whose_chance_has_died_out_does_no_harm(learner, backend, stabiliser):
    """Without exploration the chance of a held node underflows to 0, and so does that of its kernel to be heard."""
    changes = {"exploration": 0.0, "commit": "first", "commit_after": 0, "out_degree": 1, "stabiliser": stabiliser}
    online = make(learner, backend, horizon=60, **changes)
    online.run(X, Y + 3, W)
    assert np.ptp(online.state.log_u) > 1000
    assert_finite(online)


# Budget


@BACKEND
def test_a_full_omkr_says_so_once_and_keeps_its_size(backend):
    online = make("omkr", backend, budget=16)
    online.run(X[:10], Y[:10])
    with pytest.warns(BudgetWarning, match="holds 16 support points, its budget") as caught:
        learn_all(online, X[10:30], Y[10:30])
    assert len(caught) == 1
    online.run(X[30:], Y[30:])  # a second warning would be an error
    online.copy().run(X, Y)
    assert online.state.S.shape == (2, 16)
    assert online.t == 60


@BACKEND
@pytest.mark.parametrize("rows", [16, 17, 60])
def test_omkr_filled_by_one_run_says_so_once(backend, rows):
    online = make("omkr", backend, budget=16)
    with pytest.warns(BudgetWarning) as caught:
        online.run(X[:rows], Y[:rows])
    assert len(caught) == 1
    online.learn(X[0], Y[0])


def test_omkr_takes_no_more_memory_than_its_budget():
    X, Y = stream(20_000, 2)
    online = make("omkr", budget=16)
    tracemalloc.start()
    with pytest.warns(BudgetWarning):
        online.run(X, Y)
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 100_000  # all rows would take 20_000 * (2 + 5) * 8 bytes


@BACKEND
def test_where_the_stream_ends_before_the_budget_nothing_is_said(backend):
    online = make("omkr", backend, budget=61)
    online.run(X, Y)
    assert online.state.S.shape == (2, 60)


# Threads


@LEARNER
@BACKEND
def test_one_thread_may_predict_while_another_learns(learner, backend):
    X, Y = stream(600, 2)
    online, undisturbed = make(learner, backend), make(learner, backend)
    stop, failures = threading.Event(), []

    def ask():
        while not stop.is_set():
            try:
                assert math.isfinite(online.predict(X[0]))
                assert np.isfinite(online.predict_rows(X[:5])).all()
                online.checkpoint()
            except BaseException as failure:
                failures.append(failure)
                return

    asker = threading.Thread(target=ask)
    asker.start()
    try:
        for start in range(0, 600, 40):
            online.run(X[start : start + 40], Y[start : start + 40])
    finally:
        stop.set()
        asker.join()
    assert not failures
    undisturbed.run(X, Y)
    assert_same_learner(online, undisturbed)


def test_learners_in_many_threads_do_not_meet():
    seeds = range(8)
    alone = [Online.make("sfg-mkl", small(), 2, seed) for seed in seeds]
    together = [Online.make("sfg-mkl", small(), 2, seed) for seed in seeds]
    threads = [threading.Thread(target=online.run, args=LONG) for online in together]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for one, other in zip(alone, together, strict=True):
        one.run(*LONG)
        assert_same_learner(one, other)
