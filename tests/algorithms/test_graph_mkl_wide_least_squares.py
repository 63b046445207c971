"""GraphMKL's wide least squares: what is solved, when, and what a file may claim of it."""

import numpy as np
import pytest
from streams import graph_settings

from omkl.algorithms import graph_mkl
from omkl.algorithms.graph_mkl import archive as rows
from omkl.algorithms.graph_mkl import wide
from omkl.algorithms.graph_mkl.constants import FIRST_ROWS, WIDE_BLOCK, WIDE_GROWTH, WIDE_LEAST, WIDE_RIDGES
from omkl.algorithms.graph_mkl.scaling import Scaling, scaled
from omkl.arrays import copied
from omkl.features import column_names, features, frequencies
from omkl.kernels import Gaussian

D = 128  # most frequencies


def problem_of(K=1, d=3, D=D, archive=1024):
    task = "regression" if K == 1 else "classification"
    problem = graph_mkl.build(graph_settings(task=task, outputs=K), column_names(d), seed=1)
    V = frequencies([Gaussian(0.6)], column_names(d), D, seed=2)
    return problem._replace(V_wide=V, archive=archive)


def stream(n, problem, seed=0):
    """Rows with missing inputs, and weights."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, problem.V.shape[1]))
    f = np.sin(2 * X[:, 0]) + X[:, 1] ** 2 + 0.1 * rng.standard_normal(n)
    X[rng.random(X.shape) < 0.05] = np.nan
    if problem.K == 1:
        return X, 50 + 7 * f, rng.choice([0.5, 1.0, 3.0], n)
    return X, np.digitize(f, np.linspace(0, 2, problem.K - 1)).astype(float), rng.choice([0.5, 1.0, 3.0], n)


def scaling_of(problem):
    d, K = problem.V.shape[1], problem.K
    return Scaling(np.full(d, 0.1), np.full(d, 0.9), np.full(K, 40.0 if K == 1 else 0.2), 9.0 if K == 1 else 1.0)


def learned(problem, X, y, weight, part=None, useful=False, archive=None, scaling=None):
    """After these rows; what was predicted for each, None before there is a solution."""
    part = wide.init(problem) if part is None else part
    archive = rows.init(problem) if archive is None else archive
    scaling = scaling_of(problem) if scaling is None else scaling
    predictions = []
    for x, target, w in zip(X, y, weight, strict=True):
        ready = wide.ready(part)
        predictions.append(wide.predict(problem, part, scaled(scaling, x), scaling) if ready else None)
        if not rows.has_room(problem, archive):
            archive = rows.enlarged(problem, archive)
        if not wide.has_room(problem, part, archive):
            part = wide.enlarged(problem, part, archive)
        archive = rows.append(archive, x, target, w)
        part = wide.advance(problem, part, archive, scaling, useful)
    return part, archive, predictions


def ridge_solution(problem, X, y, weight, D, x):
    """(ridges, K): predictions for x by orthogonal factors of the rows themselves, without normal equations."""
    scaling, V = scaling_of(problem), problem.V_wide[0, :, :D]
    Z = np.array([features(V, scaled(scaling, row)).ravel() for row in X])
    Y = y[:, None] if problem.K == 1 else np.eye(problem.K)[y.astype(int)]
    mean, heavy = np.average(Y, axis=0, weights=weight), np.sqrt(weight / weight.mean())[:, None]
    z, out = features(V, scaled(scaling, x)).ravel(), []
    for ridge in WIDE_RIDGES:
        A = np.vstack((heavy * Z, np.sqrt(ridge) * np.eye(2 * D)))
        theta, *_ = np.linalg.lstsq(A, np.vstack((heavy * (Y - mean), np.zeros((2 * D, problem.K)))), rcond=None)
        out.append(mean + z @ theta)
    return np.array(out)


# The condition of G + ridge I is at most rows / ridge, some 1e5 here, and rounding is 1e-16 times that.
CLOSE = {"rtol": 1e-9, "atol": 1e-9}


@pytest.mark.parametrize("K", [1, 3, 34])
def test_the_solution_is_that_of_ridge_regression_on_all_rows(K):
    problem = problem_of(K)
    X, y, weight = stream(700, problem)
    part, _, _ = learned(problem, X, y, weight)
    n, scaling = part.solved, scaling_of(problem)
    assert FIRST_ROWS < n <= 700
    assert part.active == WIDE_LEAST
    for x in X[:3]:
        wanted = ridge_solution(problem, X[:n], y[:n], weight[:n], WIDE_LEAST, x)
        np.testing.assert_allclose(wide.predict(problem, part, scaled(scaling, x), scaling), wanted, **CLOSE)


def test_the_solution_does_not_depend_on_how_the_work_is_spread(monkeypatch):
    problem = problem_of(3)
    X, y, weight = stream(620, problem)
    at_once, _, _ = learned(problem, X, y, weight)
    monkeypatch.setattr(wide, "WIDE_WORK", 1)  # one piece after each row
    midway, _, _ = learned(problem, X[:583], y[:583], weight[:583])
    assert midway.stage != wide.IDLE
    assert midway.solved < at_once.solved
    part, _, _ = learned(problem, X, y, weight)
    assert part.stage == at_once.stage == wide.IDLE
    assert part.active
    for name, value in at_once._asdict().items():
        np.testing.assert_array_equal(getattr(part, name), value, err_msg=name)


def test_a_state_that_was_kept_goes_on_as_the_one_it_was_copied_from(monkeypatch):
    monkeypatch.setattr(wide, "WIDE_WORK", 2**19)
    problem = problem_of(2)
    X, y, weight = stream(400, problem)
    part, archive, _ = learned(problem, X[:300], y[:300], weight[:300])
    stages = set()
    for i in range(300, 400):
        kept = copied(part)
        archive = rows.append(archive if rows.has_room(problem, archive) else rows.enlarged(problem, archive),
                              X[i], y[i], weight[i])  # fmt: skip
        after = wide.advance(problem, part, archive, scaling_of(problem), False)
        stages.add(after.stage)
        again = wide.advance(problem, kept, archive, scaling_of(problem), False)
        for name, value in part._asdict().items():
            np.testing.assert_array_equal(getattr(kept, name), value, err_msg=f"{name} was written into")
            np.testing.assert_array_equal(getattr(again, name), getattr(after, name), err_msg=name)
        part = after
    assert len(stages) >= 4


def test_features_double_when_they_are_useful_and_the_old_solution_predicts_until_the_new_one_is_there():
    problem = problem_of(1, archive=2048)
    due = WIDE_GROWTH * 2 * WIDE_LEAST
    X, y, weight = stream(due + 200, problem)
    plain, _, _ = learned(problem, X, y, weight)
    part, _, predictions = learned(problem, X, y, weight, useful=True)
    assert plain.features == plain.active == WIDE_LEAST
    assert len(plain.total) == 2
    assert part.features == part.active == 2 * WIDE_LEAST
    assert len(part.total) == 4
    assert all(p is None for p in predictions[:FIRST_ROWS])
    assert all(p is not None for p in predictions[FIRST_ROWS + 5 :])
    scaling, n = scaling_of(problem), part.solved
    wanted = ridge_solution(problem, X[:n], y[:n], weight[:n], part.active, X[0])
    np.testing.assert_allclose(wide.predict(problem, part, scaled(scaling, X[0]), scaling), wanted, **CLOSE)


def test_there_are_never_more_features_than_frequencies():
    problem = problem_of(1, D=WIDE_LEAST)
    X, y, weight = stream(WIDE_GROWTH * 2 * WIDE_LEAST + 100, problem)
    part, _, _ = learned(problem, X, y, weight, useful=True)
    assert part.features == WIDE_LEAST
    none, _, _ = learned(problem_of(1, D=0), X[:400], y[:400], weight[:400], useful=True)
    assert none.features == 0
    assert none.G.size == 0
    assert not wide.ready(none)


def test_common_factors_of_weights_and_the_scaling_of_the_target_do_not_matter():
    problem = problem_of(1)
    X, y, weight = stream(500, problem)
    scaling = scaling_of(problem)
    other = scaling._replace(shift=np.array([-300.0]), unit=0.5)
    part, _, _ = learned(problem, X, y, weight)
    heavy, _, _ = learned(problem, X, y, 7 * weight)
    moved, _, _ = learned(problem, X, y, weight, scaling=other)
    xs = scaled(scaling, X[0])
    wanted = wide.predict(problem, part, xs, scaling)
    np.testing.assert_allclose(wide.predict(problem, heavy, xs, scaling), wanted, **CLOSE)
    np.testing.assert_allclose(wide.predict(problem, moved, xs, other), wanted, **CLOSE)


def test_after_a_restart_the_rows_that_are_left_are_all_there_is():
    problem = problem_of(1, archive=512)
    X, y, weight = stream(900, problem)
    part, archive, _ = learned(problem, X[:700], y[:700], weight[:700])
    part, archive = wide.restarted(problem, part), rows.cut(archive, 300)
    assert not wide.ready(part)
    part, _, _ = learned(problem, X[700:], y[700:], weight[700:], part=part, archive=archive)
    fresh, _, _ = learned(problem, X[400:], y[400:], weight[400:])
    assert part.rows == fresh.rows
    assert part.taken == fresh.taken
    np.testing.assert_allclose(part.G, fresh.G, rtol=1e-12)


def test_rows_that_have_been_overwritten_are_left_out():
    problem = problem_of(1, archive=FIRST_ROWS)
    X, y, weight = stream(600, problem)
    late = wide.init(problem)
    _, archive, _ = learned(problem, X, y, weight)
    late = wide.enlarged(problem, late, archive)
    late = wide.advance(problem, late, archive, scaling_of(problem), False)
    assert 600 - FIRST_ROWS < late.taken <= 600
    assert late.rows <= FIRST_ROWS - WIDE_BLOCK
    wide.check(problem, late, archive)


def test_a_solution_that_is_not_finite_is_dropped():
    problem = problem_of(1)
    X, y, weight = stream(700, problem)
    part, archive, _ = learned(problem, X[:400], y[:400], weight[:400])
    for spoiled in (np.nan, -1.0):  # not a number, and not positive definite
        broken = part._replace(G=np.full_like(part.G, spoiled))
        after, _, _ = learned(problem, X[400:], y[400:], weight[400:], part=broken, archive=archive)
        assert after.solved > part.solved
        assert after.active == part.active
        np.testing.assert_array_equal(after.theta, part.theta)


def claims():
    """Name of a number, a value that a file may not claim for it, and the stage it belongs to."""
    yield from (("features", 32, 0), ("features", 96, 0), ("active", 128, 0), ("rows", 70, 0), ("taken", 10**6, 0))
    yield from (("solved", 10**6, 0), ("stage", 6, 0), ("stage", -1, 0), ("ridge", 2, 3), ("panel", 2, 2))
    yield from (("step", 64, 1), ("step", 3, 1), ("step", 1, 2), ("step", 2, 3), ("step", 3, 4), ("step", 1, 5))
    yield from (("grow", 2, 0), ("weight", -1.0, 0), ("weight", np.inf, 0), ("panel", True, 0))


@pytest.mark.parametrize(("name", "value", "stage"), list(claims()))
def test_numbers_that_fit_no_array_are_refused(name, value, stage):
    problem = problem_of(3)
    part, archive, _ = learned(problem, *stream(400, problem))
    part = part._replace(stage=stage, step=0, panel=1 if stage == 3 else 0, taken=256, rows=256, solved=0)
    wide.check(problem, part, archive)
    with pytest.raises(ValueError, match=r"wide|weights"):
        wide.check(problem, part._replace(**{name: value}), archive)


@pytest.mark.parametrize("name", ["G", "B", "total", "targets", "Z", "U", "solution", "theta", "mean"])
def test_arrays_of_another_shape_are_refused(name):
    problem = problem_of(2)
    part, archive, _ = learned(problem, *stream(300, problem))
    array = getattr(part, name)
    for other in (array[:-1], array.astype(np.float32)):
        with pytest.raises(ValueError, match=r"wide\."):
            wide.check(problem, part._replace(**{name: other}), archive)
