"""GraphMKL's sparse inputs: those that the linear expert alone has."""

import numpy as np
import pytest
from streams import arrays_of
from streams import graph_settings as small

import omkl
from omkl import algorithms, engine
from omkl.algorithms.graph_mkl import first_rows, widened
from omkl.algorithms.graph_mkl.least_squares import Counting, update
from omkl.algorithms.graph_mkl.scaling import Scaling, estimated

TASK = pytest.mark.parametrize("task", ["regression", "classification"])
S = 12


def problem(task="regression", sparse=S, **changes):
    s = small(task=task, outputs=1 if task == "regression" else 3, **changes)
    return widened(algorithms.problem("graph-mkl", s, names=list("ab")), sparse)


def stream(rows, task="regression", sparse=S, seed=0):
    """A sum of effects of inputs that are mostly missing, of which half come late."""
    rng = np.random.default_rng(seed)
    X, Z = rng.normal(size=(rows, 2)), rng.integers(1, 4, size=(rows, S)).astype(float)
    Z[rng.random((rows, S)) > 0.2] = np.nan
    Z[: rows // 2, S // 2 :] = np.nan
    y = np.sin(2 * X[:, 0]) + np.nan_to_num(Z) @ rng.normal(size=S) + 0.1 * rng.normal(size=rows)
    Z = np.pad(Z, ((0, 0), (0, sparse - S)), constant_values=np.nan)
    return np.hstack((X, Z)), y if task == "regression" else np.digitize(y, [-1.0, 1.0]).astype(float)


@pytest.mark.parametrize("isa", engine.supported())
@TASK
def test_engine_and_reference_agree(task, isa):
    X, y = stream(320, task)
    weight = np.random.default_rng(1).exponential(size=len(y))
    y[290:] = y[290:][::-1]
    fast, slow = omkl.Online("graph-mkl", problem(task), 1, isa=isa), omkl.Online(
        "graph-mkl", problem(task), 1, backend="numpy"
    )  # fmt: skip
    a, b = fast.run_unchecked(X, y, weight), slow.run_unchecked(X, y, weight)
    np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-11 * np.abs(b).max())
    one, other = arrays_of(fast.state), arrays_of(slow.state)
    for name in one:
        np.testing.assert_allclose(one[name], other[name], rtol=1e-8, atol=1e-9, err_msg=name)
    assert np.count_nonzero(one["sets.0.coefficients.theta_sparse"])


@TASK
def test_room_for_more_inputs_changes_nothing_whenever_it_is_made(task):
    X, y = stream(400, task)
    wide, _ = stream(400, task, sparse=5 * S)
    few, many, later = (omkl.Online("graph-mkl", problem(task, n), 1) for n in (S, 5 * S, S))
    wanted = few.run_unchecked(X, y)
    np.testing.assert_array_equal(many.run_unchecked(wide, y), wanted)
    first = later.run_unchecked(X[:150], y[:150])
    later.change_problem(problem(task, 5 * S))
    np.testing.assert_array_equal(np.vstack((first, later.run_unchecked(wide[150:], y[150:]))), wanted)


def test_a_missing_sparse_input_is_zero():
    X, y = stream(300)
    one, other = (omkl.Online("graph-mkl", problem(), 1) for _ in range(2))
    np.testing.assert_array_equal(one.run_unchecked(X, y), other.run_unchecked(np.nan_to_num(X, nan=0.0), y))


def test_the_unit_of_a_sparse_input_does_not_matter():
    X, y = stream(300)
    scaled = X * np.append([1.0, 1.0], 2.0 ** np.arange(S))
    one, other = (omkl.Online("graph-mkl", problem(), 1) for _ in range(2))
    np.testing.assert_array_equal(one.run_unchecked(X, y), other.run_unchecked(scaled, y))


def test_parts_of_a_least_squares_learn_as_the_blocks_of_the_whole():
    """With a block-diagonal covariance, a part that knows the leverage of the rest has its block after the row."""
    rng = np.random.default_rng(0)
    A, B = (np.tril(rng.normal(size=(n, n))) for n in (4, 3))
    whole = np.block([[A, np.zeros((4, 3))], [np.zeros((3, 4)), B]])
    z, gap = rng.normal(size=7), np.array([0.7])
    phi = whole @ z
    R, theta = update(whole, np.zeros((1, 7)), phi, gap, Counting(1.3), 0.01)
    first, coefficients = update(A, np.zeros((1, 4)), phi[:4], gap, Counting(1.3), 0.01, phi[4:] @ phi[4:])
    np.testing.assert_allclose(coefficients, theta[:, :4], rtol=1e-12)
    np.testing.assert_allclose(first.T @ first, (R.T @ R)[:4, :4], rtol=1e-12)
    diagonal = np.abs(np.diag(B))[None]
    second, _ = update(diagonal, np.zeros((1, 3)), diagonal[0] * z[4:], gap, Counting(1.3), 0.0, 2.0)
    q = 2.0 + ((diagonal[0] * z[4:]) ** 2).sum()
    P = np.diag(diagonal[0] ** 2)
    np.testing.assert_allclose(second[0] ** 2, np.diag(P - 1.3 * P @ np.outer(z, z)[4:, 4:] @ P / (1 + 1.3 * q)))


def test_the_linear_expert_leads_where_it_has_sparse_inputs():
    X, y = stream(100)
    for sparse, leads in ((S, True), (0, False)):
        online = omkl.Online("graph-mkl", problem(sparse=sparse, warm_up=20), 1)
        online.run_unchecked(np.ascontiguousarray(X[:, : 2 + sparse]), y)
        assert (online.state.sets[0].selection.rank[0] == online.problem.on_kernels) == leads


@TASK
def test_the_first_rows_are_those_that_were_learned(task):
    X, y = stream(257, task)
    online = omkl.Online("graph-mkl", problem(task), 1)
    online.run_unchecked(X[:50], y[:50])
    online.learn_unchecked(X[0], y[0], 0.0)
    found = first_rows(online.problem, online.state)
    np.testing.assert_array_equal(found[0], np.hstack((X[:50, :2], np.nan_to_num(X[:50, 2:], nan=0.0))))
    np.testing.assert_array_equal(found[1], y[:50])
    online.run_unchecked(X[50:], y[50:])
    assert first_rows(online.problem, online.state) is None


def test_an_input_that_is_rare_and_always_the_same_is_zero_elsewhere():
    X = np.full((8, 3), np.nan)
    X[2, 0], X[[1, 5], 1], X[:5, 2] = 3.0, (4.0, 5.0), 2.0
    scaling = estimated(
        "regression", Scaling(np.zeros(3), np.zeros(3), np.zeros(1), 1.0), X, np.zeros((8, 1)), np.ones(8)
    )
    np.testing.assert_allclose(scaling.mean, [0.0, 4.5, 2.0])  # the others vary, or are in most rows
    np.testing.assert_allclose(scaling.scale, [np.sqrt(8) / 3, 2.0, 0.0])
