"""GraphMKL's large experts among the others: archive, room, selection, change, growth, files, and budgets."""

import numpy as np
import pytest
from large_states import in_stage, learned, rows, small_problem
from streams import raw_and_turning

import omkl
from omkl import algorithms
from omkl.algorithms import graph_mkl
from omkl.algorithms.graph_mkl import archive, large, mixture, selection, trees, wide
from omkl.algorithms.graph_mkl.constants import ARCHIVE_START, SILENT_ROUNDS, TREE_START, WIDE_FREE
from omkl.algorithms.graph_mkl.mixture import Stack
from omkl.arrays import leaves, mapped
from omkl.kernels import Gaussian

QUICK = {"budget": 2, "kernels": [Gaussian(0.5), Gaussian(2.0)], "n_features": 5, "warm_up": 50}


def settings(labels=0, **changes):
    task = {"task": "classification", "outputs": labels} if labels else {}
    return omkl.GraphSettings(**{**QUICK, **task, **changes})


def problem_of(d=3, labels=0, trees=4, rows=2048, **changes):
    made = algorithms.problem("graph-mkl", settings(labels, **changes), d, seed=1)
    return made._replace(trees=trees, archive=rows)


def made(rows, d=3, labels=0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, d))
    y = np.sin(2 * X[:, 0]) + np.abs(X[:, 1]) + 0.1 * rng.normal(size=rows)
    return X, np.digitize(y, np.linspace(0, 1.5, labels - 1)).astype(float) if labels else y


@pytest.mark.parametrize("labels", [0, 3])
def test_the_engine_learns_what_numpy_does_with_large_experts(labels):
    problem = problem_of(labels=labels)
    X, y = made(420, labels=labels)
    X[::17, 2] = np.nan
    weight = np.random.default_rng(3).choice([0.0, 0.5, 1.0, 3.0], len(y))
    engine, numpy = (omkl.Online("graph-mkl", problem, 0, backend=backend) for backend in ("engine", "numpy"))
    expected = numpy.run_unchecked(X, y, weight)
    actual = np.concatenate(
        [engine.run_unchecked(X[k : k + 7], y[k : k + 7], weight[k : k + 7]) for k in range(0, 420, 7)]
    )
    assert large.ready(problem, numpy.state.large).all()
    np.testing.assert_allclose(actual, expected, rtol=1e-9, atol=1e-9)  # least squares whose condition is about 1e5
    for name, leaf in leaves(numpy.state.large).items():
        found = leaves(engine.state.large)[name]
        if isinstance(leaf, np.ndarray):
            size = np.abs(leaf).max(initial=1.0, where=np.isfinite(leaf))
            np.testing.assert_allclose(found, leaf, atol=1e-7 * size, err_msg=name)
        else:
            assert found == pytest.approx(leaf), name


@pytest.mark.parametrize("labels", [0, 3])
def test_one_row_at_a_time_is_the_same_to_the_last_bit(labels):
    problem = problem_of(labels=labels)
    X, y = made(700, labels=labels)
    whole, single = omkl.Online("graph-mkl", problem, 0), omkl.Online("graph-mkl", problem, 0)
    together = whole.run(X, y)
    for row, target, prediction in zip(X, y, together, strict=True):
        np.testing.assert_array_equal(single.predict(row), prediction)
        single.learn(row, target)
    for name, leaf in leaves(whole.state).items():
        np.testing.assert_array_equal(leaves(single.state)[name], leaf, err_msg=name)


@pytest.mark.parametrize("labels", [0, 3])
def test_a_model_that_is_saved_at_any_row_goes_on_to_the_last_bit(labels):
    problem = problem_of(labels=labels, trees=11)
    X, y = made(640, labels=labels)
    online = omkl.Online("graph-mkl", problem, 0)
    expected = online.run(X, y)
    other = omkl.Online("graph-mkl", problem, 0)
    for k in range(0, 640, 40):
        np.testing.assert_array_equal(other.run(X[k : k + 40], y[k : k + 40]), expected[k : k + 40])
        other = omkl.from_bytes(omkl.to_bytes(other))


def test_the_archive_has_the_last_rows_and_is_doubled_until_it_is_full():
    problem = problem_of(rows=1024)
    kept = archive.init(problem)
    X, y = made(2500)
    for n, (x, target) in enumerate(zip(X, y, strict=True), 1):
        if not archive.has_room(problem, kept):
            kept = archive.enlarged(problem, kept)
        kept = archive.append(kept, x, target, 2.0)
        size = len(kept.y)
        assert size == ARCHIVE_START or size / 2 < min(n, 1024) <= size
        archive.check(problem, kept)
    assert size == 1024
    found, targets, weights = archive.newest(kept, 1024)
    np.testing.assert_array_equal(found, X[-1024:])
    np.testing.assert_array_equal(targets, y[-1024:])
    assert (weights == 2.0).all()
    part = archive.cut(kept, 10)
    np.testing.assert_array_equal(archive.newest(part, 10)[0], X[-10:])
    assert part.rows == 10
    np.testing.assert_array_equal(part.X[:10], X[-10:])
    assert archive.cut(kept, 10**6).rows == 1024


def test_a_copy_makes_the_last_row_of_the_archive_heavier_and_a_row_shown_again_does_not():
    problem = problem_of()
    X, y = made(300)
    for backend in ("numpy", "engine"):
        online = omkl.Online("graph-mkl", problem, 0, backend=backend)
        online.run(X, y)
        online.run(X[-1:], y[-1:])
        kept = online.state.large.archive
        assert kept.rows == 300
        assert kept.weight[299] == 2
        online.run(X[:120], y[:120])  # a second pass
        kept = online.state.large.archive
        assert kept.rows < 330
        assert (kept.weight[:299] == 1).all()


def test_large_experts_count_after_some_rounds_and_only_for_the_incumbent():
    problem = problem_of()
    chosen, ready = selection.init(problem), np.ones(3, dtype=bool)
    rounds = np.full(problem.experts, SILENT_ROUNDS)
    first = problem.first_large
    assert selection.evaluated(problem, chosen, 400, True, 1.0, ready)[first:].all()
    assert not selection.evaluated(problem, chosen, 400, False, 1.0, ready)[first:].any()
    assert selection.counted(problem, chosen, 400, True, 1.0, ready, rounds)[first:].all()
    assert not selection.counted(problem, chosen, 400, True, 1.0, ready, rounds - 1)[first:].any()
    assert not selection.evaluated(problem, chosen, 400, True, 1.0, ~ready)[first:].any()


def test_a_new_incumbent_begins_with_its_own_rows():
    """The targets of the second half are another function: a challenger takes over and the archive is cut."""
    problem = problem_of(rows=1024)._replace(trial=100)
    X, y = raw_and_turning(900, 3, change=500)
    states = []
    for backend in ("engine", "numpy"):
        online = omkl.Online("graph-mkl", problem, 0, backend=backend)
        for k in range(900):
            before = online.state.incumbent if k > 500 else None
            online.run(X[k : k + 1], y[k : k + 1])
            if before is not None and online.state.incumbent != before:
                break
        states.append(online.state)
        part = online.state.sets[online.state.incumbent]
        assert k < 899
        assert online.state.large.archive.rows == part.age == 100
        np.testing.assert_array_equal(online.state.large.archive.X[:100], X[k - 99 : k + 1])
        assert not large.ready(problem, online.state.large).any()
        graph_mkl.check_state(problem, online.state)
    for name, leaf in leaves(states[0].large.archive).items():
        np.testing.assert_array_equal(leaves(states[1].large.archive)[name], leaf)


def test_a_new_feature_keeps_the_rows_and_a_limit_of_inputs_drops_experts():
    X, y = made(320, d=3)
    online = omkl.Online.make("graph-mkl", settings(), 3)
    online.run(X, y)
    online.change_problem(algorithms.problem("graph-mkl", settings(), 4))
    kept = online.state.large.archive
    assert kept.rows == 320
    assert np.isnan(kept.X[:, 3]).all()
    np.testing.assert_array_equal(kept.X[:320, :3], X)
    online.run(np.column_stack((X, X[:, 0])), y)
    graph_mkl.check_state(online.problem, online.state)
    few, many = omkl.Online.make("graph-mkl", settings(), 256), algorithms.problem("graph-mkl", settings(), 257)
    assert (few.problem.large, many.large) == (3, 1)
    wide_rows = np.random.default_rng(0).normal(size=(5, 257))
    few.run(wide_rows[:, :256], np.arange(5.0))
    few.change_problem(many)
    graph_mkl.check_state(many, few.state)
    assert np.isfinite(few.run(wide_rows, np.arange(5.0))).all()


@pytest.mark.parametrize("labels", [0, 3])
def test_a_state_of_large_experts_that_cannot_be_is_refused(labels):
    problem = problem_of(labels=labels)
    X, y = made(290, labels=labels)
    online = omkl.Online("graph-mkl", problem, 0)
    online.run(X, y)
    state = online.state
    graph_mkl.check_state(problem, state)
    found = {name: leaf for name, leaf in leaves(state).items() if name.startswith("large.")}
    wrong = {name: (-2, 2**62, 0.5, None) for name, leaf in found.items() if isinstance(leaf, int)}
    for name, leaf in found.items():
        if isinstance(leaf, np.ndarray) and leaf.size:
            wrong[name] = (leaf[None], np.concatenate((leaf, leaf, leaf)), leaf[..., :-1])
    for name in ("large.archive.rows", "large.trees.grown"):  # which the engine would refuse after some rows
        wrong[name] += (2**62 - 1,)
    wrong["large.archive.weight"] += (np.zeros_like(state.large.archive.weight),)
    wrong["large.archive.X"] += (np.full_like(state.large.archive.X, 1e95),)
    wrong["large.trees.feature"] += (np.full_like(state.large.trees.feature, 3),)
    wrong["large.loss"] += (np.full(4, np.nan),)
    if labels:
        wrong["large.archive.y"] += (np.full_like(state.large.archive.y, 3.0), np.full_like(state.large.archive.y, 0.5))
    assert len(wrong) > 25
    for name, values in wrong.items():
        for value in values:
            bad = mapped(lambda at, leaf, name=name, value=value: value if at == name else leaf, state)
            with pytest.raises(ValueError):  # which of many complaints it is does not matter
                graph_mkl.check_state(problem, bad)


def test_a_fit_of_trees_without_ensembles_is_refused():
    """Two edits at once, each of which does not fit alone."""
    problem = problem_of()
    online = omkl.Online("graph-mkl", problem, 0)
    online.run(*made(290))
    state = online.state
    fit = trees.with_arrays(problem, 0, TREE_START)._replace(rows=TREE_START, started=TREE_START)
    with pytest.raises(ValueError, match="two ensembles"):
        graph_mkl.check_state(problem, state._replace(large=state.large._replace(trees=fit)))


@pytest.mark.parametrize("stage", [wide.FORWARD, wide.BACKWARD])
@pytest.mark.parametrize("backend", ["engine", "numpy"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_singular_factor_of_a_file_gives_no_solution(stage, backend):
    online = in_stage(learned(small_problem(), 600), stage)
    before = online.checkpoint()
    large_ = before.state.large
    singular = large_._replace(wide=large_.wide._replace(U=np.zeros_like(large_.wide.U)))
    start = before._replace(state=before.state._replace(large=singular))
    other = omkl.Online("graph-mkl", online.problem, backend=backend, checkpoint=start)
    assert np.isfinite(other.run(*(part[:3] for part in rows(20, 1, seed=9)))).all()


def test_wide_least_squares_grow_where_a_smaller_ridge_is_better():
    problem = problem_of()
    state = large.init(problem)
    grown = state.wide._replace(features=WIDE_FREE)

    def useful(*loss):
        return large.is_useful(problem, state._replace(wide=grown, loss=np.array(loss), rounds=9))

    assert large.is_useful(problem, state)  # the first features are for all
    assert useful(5.0, 1.0, 1.2, 0.8)
    assert not useful(5.0, 1.0, 1.0, 0.8)  # noise
    assert not useful(5.0, 1.0, 1.2, 0.4)  # far behind the prediction
    assert not large.is_useful(problem, state._replace(wide=grown))


# Stacking of labels


def test_the_stacking_of_labels_is_a_step_up_the_log_likelihood():
    """Without a ridge that matters, small steps approach the weights that maximise the likelihood."""
    problem = problem_of(labels=3)._replace(min_leverage=0.0)
    rng, E = np.random.default_rng(0), problem.experts
    stack, true = mixture.fresh_stack(problem), np.zeros(E)
    true[:2] = 0.8, -0.5
    mixed, p = np.full(3, 1 / 3), None
    for _ in range(6000):
        Z = np.zeros((E, 3))
        Z[:2] = rng.normal(size=(2, 3))
        p = mixture.stacked_labels(Stack(stack.R, true), Z, mixed)
        assert p.sum() == pytest.approx(1)
        label = int(rng.choice(3, p=p))
        step = mixture.label_step(stack, Z, mixture.stacked_labels(stack, Z, mixed), label)
        stack = mixture.move_label_stack(problem, stack, step, 1.0)
    np.testing.assert_allclose(stack.theta[:2], true[:2], atol=0.12)
    assert not stack.theta[2:].any()


def test_stacking_changes_nothing_before_the_first_row():
    problem = problem_of(labels=3)
    Z = np.random.default_rng(0).normal(size=(problem.experts, 3))
    mixed = np.array([0.2, 0.3, 0.5])
    np.testing.assert_allclose(mixture.stacked_labels(mixture.fresh_stack(problem), Z, mixed), mixed, rtol=1e-15)


# Budgets


def test_a_budget_decides_what_there_is():
    small, standard, large_ = (omkl.GraphSettings(budget=budget) for budget in ("small", "standard", "large"))
    assert [s.trees(10) for s in (small, standard, large_)] == [0, 120, 400]
    assert [s.wide_features(10) for s in (small, standard, large_)] == [0, 256, 512]
    assert [s.archive_rows(10) for s in (small, standard, large_)] == [0, 16384, 32768]
    assert (small.active, standard.active) == (10, 43)
    assert omkl.GraphSettings(budget=3) == omkl.GraphSettings(budget=3.0)
    assert omkl.GraphSettings(budget=1.6).active == 43
    assert omkl.GraphSettings(budget=1.6).trees(10) == 0
    labels = omkl.GraphSettings(task="classification", outputs=26)
    assert (labels.trees(16), labels.wide_features(16)) == (240, 1024)
    assert standard.archive_rows(1000) * 1000 <= 2**21
    assert standard.trees(5000) == standard.archive_rows(5000) == standard.wide_features(5000) == 0
    for wrong in ("tiny", 0.5, float("nan"), None, "3"):
        with pytest.raises(ValueError, match="budget must be small, standard, large"):
            omkl.GraphSettings(budget=wrong)


def test_more_budget_is_more_accurate_where_a_function_has_steps():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(3000, 5))
    y = np.where(X[:, 0] > 0.5, 1.0, 0.0) + np.where((X[:, 1] > 0.3) & (X[:, 2] > 0.6), 2.0, 0.0)
    errors = []
    for budget in ("small", "standard"):
        online = omkl.Online.make("graph-mkl", omkl.GraphSettings(budget=budget), 5)
        errors.append(np.mean((online.run(X, y)[1000:, 0] - y[1000:]) ** 2))
    assert errors[1] < errors[0] / 3
