"""Online: predicting has no side effects, streams may be cut anywhere, and what is refused changes nothing."""

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
    CASES,
    DESCENDING,
    EVERY_CASE,
    GRAPHS,
    LEARNERS,
    PAPER,
    Case,
    as_targets,
    assert_finite,
    assert_same_learner,
    assert_same_state,
    of_all_families,
    small,
    small_for,
    stream,
    weights_of,
)

from omkl import algorithms, engine
from omkl.arrays import mapped
from omkl.errors import BudgetWarning, DivergenceError
from omkl.losses import LOSSES
from omkl.online import Online
from omkl.persist import from_bytes, to_bytes

BACKEND = pytest.mark.parametrize("backend", ["engine", "numpy"])
X, Y = stream(60, 2)
W = weights_of(60)


def make(learner, backend="engine", **changes):
    return Online.make(learner, small(**changes), 2, seed=3, backend=backend)


def learn_all(online, samples, targets):
    for x, y in zip(samples, targets, strict=True):
        online.learn(x, y)


def targets_of(online):
    return as_targets(Y, online.shape)


def same(a, b):
    return np.array_equal(np.asarray(a), np.asarray(b))


# Predicting changes nothing


@EVERY_CASE
@BACKEND
def test_predicting_has_no_side_effects(case, backend):
    predicting, learning_only = case.online(backend=backend), case.online(backend=backend)
    for x, y in zip(X, targets_of(predicting), strict=True):
        first = predicting.predict(x)
        predicting.predict_rows(X[:3])
        _ = predicting.state, predicting.kernel_weights, predicting.started, predicting.extra
        assert same(predicting.predict(x), first)
        predicting.learn(x, y)
        learning_only.learn(x, y)
    assert_same_learner(predicting, learning_only)


@EVERY_CASE
@BACKEND
def test_predict_predict_rows_and_run_predict_the_same(case, backend):
    online = case.online(backend=backend)
    y = targets_of(online)
    online.run(X, y)
    rows = online.predict_rows(X)
    assert same([online.predict(x) for x in X], rows)
    assert same(online.run(X[:1], y[:1])[0], rows[0])


@EVERY_CASE
def test_a_state_that_was_looked_at_does_not_change_any_more(case):
    online = case.online()
    y = targets_of(online)
    online.run(X[:20], y[:20])
    seen, kept = online.state, pickle.dumps(online.state)
    online.run(X[20:], y[20:])
    assert_same_state(seen, pickle.loads(kept))


# One stream, however it is cut


@EVERY_CASE
@BACKEND
@pytest.mark.parametrize("cut", [0, 1, 7, 59])
def test_two_runs_are_one_bit_for_bit(case, backend, cut):
    whole, parts = case.online(backend=backend), case.online(backend=backend)
    y = targets_of(whole)
    f = whole.run(X, y, W)
    g = np.concatenate((parts.run(X[:cut], y[:cut], W[:cut]), parts.run(X[cut:], y[cut:], W[cut:])))
    assert same(f, g)
    assert_same_learner(whole, parts)


@EVERY_CASE
@BACKEND
def test_a_run_is_a_loop_of_predict_and_learn_bit_for_bit(case, backend):
    whole, loop = case.online(backend=backend), case.online(backend=backend)
    y = targets_of(whole)
    f, g = whole.run(X, y, W), []
    for x, target, w in zip(X, y, W, strict=True):
        g.append(loop.predict(x))
        loop.learn(x, target, w)
    assert same(f, g)
    assert_same_learner(whole, loop)
    assert whole.t == loop.t == 60


@EVERY_CASE
@BACKEND
def test_further_values_about_each_round_are_those_before_it(case, backend):
    whole, loop = case.online(backend=backend), case.online(backend=backend)
    y = targets_of(whole)
    extra = np.empty((60, whole.shape.extras))
    whole.run_unchecked(X, y, None, extra)
    for k in range(60):
        assert same(loop.extra, extra[k])
        loop.learn(X[k], y[k])


@EVERY_CASE
def test_a_weight_of_1_is_no_weight(case):
    plain, weighted = case.online(), case.online()
    plain.run(X, targets_of(plain))
    weighted.run(X, targets_of(plain), np.ones(60))
    assert_same_learner(plain, weighted)


@EVERY_CASE
def test_both_backends_agree(case):
    compiled, plain = case.online(), case.online(backend="numpy")
    y = targets_of(plain)
    assert (compiled.backend, plain.backend) == ("engine", "numpy")
    np.testing.assert_allclose(compiled.run(X, y, W), plain.run(X, y, W), rtol=0, atol=1e-9)
    assert compiled.evaluations == plain.evaluations
    np.testing.assert_allclose(compiled.kernel_weights, plain.kernel_weights, rtol=0, atol=1e-9)
    np.testing.assert_allclose(compiled.extra, plain.extra, rtol=1e-9)
    assert compiled.started == plain.started


@EVERY_CASE
@given(data=st.data())
@settings(max_examples=20)
def test_both_backends_agree_on_one_round_after_random_streams(case, data):
    """One round each from the same state: over many rounds an algorithm may amplify rounding."""
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    rows, d = data.draw(st.integers(1, 120)), data.draw(st.integers(1, 5))
    X, y = rng.normal(size=(rows, d)), rng.normal(size=rows)
    weight = np.where(rng.random(rows) < 0.2, 0.0, rng.exponential(size=rows))
    plain = case.online(d, seed=data.draw(st.integers(0, 100)), backend="numpy")
    y = as_targets(y, plain.shape)
    plain.run(X[:-1], y[:-1], weight[:-1])
    for isa in engine.supported():
        one = plain.copy()
        other = Online(case.learner, plain.problem, checkpoint=plain.checkpoint(), isa=isa)
        np.testing.assert_allclose(
            other.run(X[-1:], y[-1:], weight[-1:]), one.run(X[-1:], y[-1:], weight[-1:]), rtol=1e-9, atol=1e-9
        )
        assert one.evaluations == other.evaluations


@BACKEND
def test_the_names_of_the_journal_version_are_those_of_the_same_algorithms(backend: str):
    X, y = stream(60, 2)
    for alias, name in algorithms.ALIASES.items():
        one, other = (Online.make(each, small(), 2, backend=backend) for each in (alias, name))
        np.testing.assert_array_equal(one.run(X, y), other.run(X, y))
        assert one.backend == other.backend == backend
        assert from_bytes(to_bytes(one)).algorithm.name == name


@BACKEND
@pytest.mark.parametrize(("learner", "evaluated"), [("sfg-mkl", 2), ("raker", 5), ("omkr", 5), ("rfomkr", 5)])
def test_evaluations_count_the_kernels_evaluated(learner, evaluated, backend):
    online = make(learner, backend)
    online.run(X, Y)
    online.learn(X[0], Y[0])
    assert online.evaluations == 61 * evaluated


@BACKEND
def test_evaluations_count_the_experts_evaluated(backend):
    """All of GraphMKL's for 20 rows of warm-up, then 4."""
    online = CASES["graph-mkl"].online(backend=backend)
    online.run(X, Y)
    assert online.evaluations == 20 * online.problem.experts + 40 * 4


@EVERY_CASE
@BACKEND
def test_a_run_of_no_rows_changes_nothing(case, backend):
    online, other = case.online(backend=backend), case.online(backend=backend)
    shape = (0, online.shape.outputs) if case.algorithm.distribution else (0,)
    assert online.run(X[:0], Y[:0]).shape == shape
    assert online.predict_rows(X[:0]).shape == shape
    assert_same_learner(online, other)


@EVERY_CASE
@BACKEND
def test_any_layout_and_type_of_numbers_is_accepted(case, backend):
    plain = case.online(backend=backend)
    X, Y = np.round(10 * stream(40, 2)[0]), np.round(10 * stream(40, 2)[1])
    Y = as_targets(Y, plain.shape)
    plain.run(X, Y)
    wide = np.repeat(X, 3, axis=1)[:, ::3]
    for samples, targets in [(np.asfortranarray(X), Y[::-1].copy()[::-1]), (X.astype(np.int32), Y.tolist()), (wide, Y)]:
        other = case.online(backend=backend)
        other.run(samples, targets)
        assert_same_learner(plain, other)
    one = case.online(backend=backend)
    for x, y in zip(wide, Y, strict=True):
        assert same(one.predict(x), one.predict(list(x)))
        one.learn(x, int(y))
    assert_same_learner(plain, one)


# Stopping and continuing


def through_pickle(online):
    return pickle.loads(pickle.dumps(online))


def through_a_file(online):
    return from_bytes(to_bytes(online))


def through_a_checkpoint(online):
    return Online(online.algorithm.name, online.problem, backend=online.backend, checkpoint=online.checkpoint())


def through_restore(online):
    there = online.copy()
    kept = there.checkpoint()
    there.run(X[::-1], targets_of(online))
    there.restore(kept)
    return there


WAYS = [through_pickle, through_a_file, through_a_checkpoint, Online.copy, through_restore]


@EVERY_CASE
@BACKEND
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("single", [False, True], ids=["chunks", "single rows"])
def test_a_learner_that_was_stopped_continues_bit_for_bit(case, backend, way, single):
    online, undisturbed = case.online(backend=backend), case.online(backend=backend)
    y = targets_of(online)
    for learner in (online, undisturbed):  # single rows draw their uniform numbers ahead
        learn_all(learner, X[:25], y[:25]) if single else learner.run(X[:25], y[:25])
    resumed = way(online)
    assert resumed.backend == backend
    assert_same_learner(resumed, undisturbed)
    assert same(resumed.run(X[25:], y[25:]), undisturbed.run(X[25:], y[25:]))
    assert_same_learner(resumed, undisturbed)
    assert online.t == 25


@EVERY_CASE
def test_a_copy_and_its_original_do_not_disturb_each_other(case):
    online, undisturbed = case.online(), case.online()
    y = targets_of(online)
    for learner in (online, undisturbed):
        learner.run(X[:25], y[:25])
    online.copy().run(X[::-1], y[::-1])
    online.run(X[25:], y[25:])
    undisturbed.run(X[25:], y[25:])
    assert_same_learner(online, undisturbed)


@EVERY_CASE
@BACKEND
def test_a_fresh_copy_has_learned_nothing(case, backend):
    online = case.online(backend=backend)
    online.run(X, targets_of(online))
    fresh = online.fresh_copy(7)
    assert_same_learner(fresh, Online(case.learner, online.problem, 7, backend=backend))


@EVERY_CASE
def test_a_learner_may_change_its_backend_between_rows(case):
    online = case.online()
    y = targets_of(online)
    online.run(X[:25], y[:25])
    moved = Online(case.learner, online.problem, backend="numpy", checkpoint=online.checkpoint())
    np.testing.assert_allclose(moved.run(X[25:], y[25:]), online.run(X[25:], y[25:]), rtol=0, atol=1e-9)
    assert moved.evaluations == online.evaluations


# New features and labels


@pytest.mark.parametrize("learner", PAPER)
@BACKEND
def test_a_feature_that_is_always_0_changes_nothing_when_it_is_added(learner, backend):
    chosen = small(kernels=of_all_families(6), delta_dimension=1)
    with_two, with_three = (
        algorithms.problem(learner, chosen, names=names, seed=3) for names in (["a", "b"], ["a", "b", "c"])
    )
    online, other = (Online(learner, with_two, 4, backend=backend) for _ in range(2))
    online.run(X[:25], Y[:25])
    online.change_problem(with_three)
    f = online.run(np.pad(X[25:], ((0, 0), (0, 1))), Y[25:])
    np.testing.assert_allclose(f, other.run(X, Y)[25:], rtol=0, atol=1e-12)
    assert online.t == other.t
    assert online.checkpoint().generator == other.checkpoint().generator


@EVERY_CASE
@BACKEND
def test_a_state_grows_with_the_features_and_stays_valid(case, backend):
    names = ["a", "b", "c", "d"]
    problems = [algorithms.problem(case.learner, case.settings(), names=names[:d], seed=3) for d in (2, 3, 4)]
    online = Online(case.learner, problems[0], 4, backend=backend)
    y = targets_of(online)
    wide = np.hstack([X, X[:, ::-1]])
    for d, problem in zip((2, 3, 4), problems, strict=True):
        if d > 2:
            online.change_problem(problem)
        case.algorithm.check_state(problem, online.state)
        predictions = online.run(np.ascontiguousarray(wide[:, :d]), y)
        assert np.isfinite(predictions).all()
        case.algorithm.check_state(problem, online.state)
        assert_finite(online)
    assert online.t == 180


@EVERY_CASE
def test_growing_by_nothing_changes_nothing(case):
    online, other = case.online(), case.online()
    y = targets_of(online)
    for learner in (online, other):
        learner.run(X[:40], y[:40])
    online.change_problem(online.problem)
    assert_same_learner(online, other)
    assert same(online.run(X[40:], y[40:]), other.run(X[40:], y[40:]))


@BACKEND
def test_a_state_grows_with_the_labels(backend):
    case = CASES["graph-mkl, labels"]
    online = case.online(backend=backend)
    y = targets_of(online)
    online.run(X[:40], y[:40])
    online.change_problem(online.problem._replace(K=4))
    assert online.shape.outputs == 4
    case.algorithm.check_state(online.problem, online.state)
    p = online.run(X[40:], np.append(3.0, y[41:]))
    assert p.shape == (20, 4)
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-9)


# What cannot be learned is refused and changes nothing


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


def assert_refused(case, backend, message, act):
    online, other = case.online(backend=backend), case.online(backend=backend)
    y = targets_of(online)
    online.run(X[:20], y[:20])
    other.run(X[:20], y[:20])
    with pytest.raises(ValueError, match=message):
        act(online)
    assert_same_learner(online, other)
    assert same(online.run(X, y), other.run(X, y))


def takes_numbers(case):
    return case.algorithm.shape(case.problem(2)).target == "number"


NUMBERS = {name: case for name, case in CASES.items() if takes_numbers(case)}
CASE_OF_NUMBERS = pytest.mark.parametrize("case", NUMBERS.values(), ids=NUMBERS)


@CASE_OF_NUMBERS
@BACKEND
@pytest.mark.parametrize("bad", BAD_SAMPLES)
def test_a_bad_sample_is_refused_and_changes_nothing(case, backend, bad):
    x, y, weight, message = BAD_SAMPLES[bad]
    assert_refused(case, backend, message, lambda online: online.learn(x, y, weight))


@CASE_OF_NUMBERS
@BACKEND
@pytest.mark.parametrize("bad", BAD_TABLES)
def test_a_bad_table_is_refused_whole_and_changes_nothing(case, backend, bad):
    samples, y, weight, message = BAD_TABLES[bad]
    assert_refused(case, backend, message, lambda online: online.run(samples, y, weight))


@EVERY_CASE
@pytest.mark.parametrize("bad", [bad for bad in BAD_SAMPLES if "y" not in bad and "weight" not in bad])
def test_a_bad_sample_is_not_predicted(case, bad):
    x, _, _, message = BAD_SAMPLES[bad]
    with pytest.raises(ValueError, match=message):
        case.online().predict(x)


@EVERY_CASE
@pytest.mark.parametrize("bad", [bad for bad in BAD_TABLES if "y" not in bad and "weight" not in bad])
def test_a_bad_table_is_not_predicted(case, bad):
    samples, _, _, message = BAD_TABLES[bad]
    with pytest.raises(ValueError, match=message):
        case.online().predict_rows(samples)


@pytest.mark.parametrize("learner", DESCENDING)
@pytest.mark.parametrize("loss", ["logistic", "hinge"])
@pytest.mark.parametrize("sign", [0.0, 2.0, 0.5, math.nan])
def test_a_target_that_is_no_sign_is_refused_and_changes_nothing(learner, loss, sign):
    case = Case(learner, {"loss": loss})
    message = f"y must be -1 or 1 for this loss, got {sign}"
    assert_refused(case, "engine", f"{message}; recode the labels", lambda online: online.learn(X[0], sign))
    y = spoilt(np.sign(Y), sign, 33)
    assert_refused(case, "engine", f"{message} in row 33", lambda online: online.run(X, y))


@BACKEND
@pytest.mark.parametrize("label", [-1.0, 3.0, 0.5, math.nan, math.inf])
def test_a_target_that_is_no_label_is_refused_and_changes_nothing(backend, label):
    case = CASES["graph-mkl, labels"]
    message = f"y must be a whole number from 0 to 2, the label's index, got {label}"
    assert_refused(case, backend, message, lambda online: online.learn(X[0], label))
    y = spoilt(case.stream(60)[1], label, 33)
    assert_refused(case, backend, f"{message} in row 33", lambda online: online.run(X, y))


@BACKEND
def test_what_is_no_algorithm_backend_or_generator_is_refused(backend):
    problem = algorithms.problem("sfg-mkl", small(), 2)
    with pytest.raises(ValueError, match=r"algorithm must be one of graph-mkl, .*, got 'mkl'"):
        Online("mkl", problem, backend=backend)
    with pytest.raises(ValueError, match="backend must be engine or numpy, got 'gpu'"):
        Online("sfg-mkl", problem, backend="gpu")
    with pytest.raises(ValueError, match="rng must be a seed or a Generator on PCG64"):
        Online("sfg-mkl", problem, np.random.Generator(np.random.MT19937(1)), backend=backend)


def test_a_seed_and_its_generator_are_the_same():
    problem = algorithms.problem("sfg-mkl", small(), 2)
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
    online, other = make(learner, backend, **UNSTABLE), make(learner, backend, **UNSTABLE)
    with pytest.raises(DivergenceError) as caught:
        online.run(*LONG)
    rows = online.t
    assert 10 < rows < 2000
    other.run(LONG[0][:rows], LONG[1][:rows])
    assert_same_learner(online, other)
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
def test_a_sample_that_diverges_changes_nothing(learner, backend):
    online, other = make(learner, backend, **UNSTABLE), make(learner, backend, **UNSTABLE)
    with pytest.raises(DivergenceError, match=f"{learner} diverged in round .*stabiliser='aware'"):
        learn_all(online, *LONG)
    other.run(LONG[0][: online.t], LONG[1][: online.t])
    assert_same_learner(online, other)
    assert_finite(online)


@EVERY_CASE
@BACKEND
def test_an_input_without_usable_features_is_learned_or_refused_without_a_change(case, backend):
    online, other = case.online(backend=backend), case.online(backend=backend)
    y = targets_of(online)
    online.run(X, y)
    other.run(X, y)
    if "V" in online.problem._fields and not case.algorithm.distribution:  # it has no random features
        with pytest.raises(DivergenceError, match=r"inputs as large as 1e\+308 have no usable features; scale them"):
            online.learn([1e308, 1e308], 1.0)
        assert_same_learner(online, other)
    else:  # so far away every exact kernel is 0, and inputs that are standardised by the algorithm are limited
        online.learn([1e308, 1e308], 1.0)
        assert_finite(online)
        assert online.t == 61


@EVERY_CASE
@BACKEND
def test_a_row_that_diverges_changes_nothing(case, backend):
    """Coefficients of 1e102 let any row diverge: nothing is learned, and no random number is used up."""
    online = case.online(backend=backend)
    y = targets_of(online)
    online.run(X[:40], y[:40])
    before = online.checkpoint()

    def coefficients_of_1e102(name, leaf):
        return np.full_like(leaf, 1e102) if name.rpartition(".")[2] in ("theta", "alpha", "beta", "mu") else leaf

    huge = before._replace(state=mapped(coefficients_of_1e102, before.state))
    online.restore(huge)
    for act in (lambda: online.run(X[40:], y[40:]), lambda: online.learn(X[40], y[40])):
        with pytest.raises(DivergenceError, match=f"{case.learner} diverged in round 41 .row 0 of this call."):
            act()
        assert_same_state(online.state, huge.state)
        assert online.checkpoint().generator == before.generator
        assert online.evaluations == before.evaluations


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
    for backend in ("engine", "numpy"):
        online = make(learner, backend, loss=loss, learning_rate=rate, horizon=horizon)
        for x, y, weight in rows:
            online.learn([x, -x], y if loss == "squared" else math.copysign(1, y), weight)
            assert abs(online.predict([x, -x])) < 1e12
        assert_finite(online)


@CASE_OF_NUMBERS
@BACKEND
@pytest.mark.parametrize(("target", "weight"), [(1e99, 1), (1e150, 1), (1e200, 1), (1.7e308, 1), (1e9, 1e300)])
def test_a_target_or_weight_of_any_size_does_no_lasting_harm(case, backend, target, weight):
    """It may be learned or refused; the state and the predictions stay finite."""
    online = case.online(backend=backend)
    online.run(X, Y)
    for y in (target, -target):
        with contextlib.suppress(DivergenceError, ValueError):
            online.learn(X[0], y, weight)
    assert_finite(online)
    assert np.isfinite(online.predict(X[1])).all()


@pytest.mark.parametrize("learner", GRAPHS)
@BACKEND
@pytest.mark.parametrize("stabiliser", ["aware", "floor", "project"])
def test_a_fixed_node_whose_probability_is_0_does_no_harm(learner, backend, stabiliser):
    """Without exploration the probability of a fixed node underflows to 0, and with it that of its kernel."""
    changes = {"exploration": 0.0, "commit": "first", "commit_after": 0, "out_degree": 1, "stabiliser": stabiliser}
    online = make(learner, backend, horizon=60, **changes)
    online.run(X, Y + 3, W)
    assert np.ptp(online.state.log_u) > 1000
    assert_finite(online)


# Budget


@BACKEND
def test_omkr_at_its_budget_warns_once_and_keeps_its_size(backend):
    online = make("omkr", backend, budget=16)
    online.run(X[:10], Y[:10])
    with pytest.warns(BudgetWarning, match="stores 16 support points, its budget") as caught:
        learn_all(online, X[10:30], Y[10:30])
    assert len(caught) == 1
    online.run(X[30:], Y[30:])  # a second warning would be an error
    online.copy().run(X, Y)
    assert online.state.S.shape == (2, 16)
    assert online.t == 60


@BACKEND
@pytest.mark.parametrize("rows", [16, 17, 60])
def test_omkr_that_reaches_its_budget_in_one_run_warns_once(backend, rows):
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
def test_where_the_stream_ends_before_the_budget_there_is_no_warning(backend):
    online = make("omkr", backend, budget=61)
    online.run(X, Y)
    assert online.state.S.shape == (2, 60)


# Threads


@EVERY_CASE
@BACKEND
def test_one_thread_may_predict_while_another_learns(case, backend):
    rows = 600 if backend == "engine" else 200
    online, undisturbed = case.online(backend=backend), case.online(backend=backend)
    X, y = case.stream(rows)
    stop, failures = threading.Event(), []

    def keep_predicting():
        while not stop.is_set():
            try:
                assert np.isfinite(online.predict(X[0])).all()
                assert np.isfinite(online.predict_rows(X[:5])).all()
                online.checkpoint()
            except BaseException as failure:
                failures.append(failure)
                return

    predicting = threading.Thread(target=keep_predicting)
    predicting.start()
    try:
        for start in range(0, rows, 40):
            online.run(X[start : start + 40], y[start : start + 40])
    finally:
        stop.set()
        predicting.join()
    assert not failures
    undisturbed.run(X, y)
    assert_same_learner(online, undisturbed)


@pytest.mark.parametrize("learner", LEARNERS)
def test_learners_in_many_threads_do_not_disturb_each_other(learner):
    seeds = range(8)
    X, y = stream(1000, 2, seed=1)
    alone, together = ([Online.make(learner, small_for(learner), 2, seed) for seed in seeds] for _ in range(2))
    start = threading.Barrier(len(seeds))  # so that they are in the engine at the same time

    def run(online):
        start.wait()
        online.run(X, y)

    threads = [threading.Thread(target=run, args=(online,)) for online in together]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for one, other in zip(alone, together, strict=True):
        one.run(X, y)
        assert_same_learner(one, other)
