"""GraphMKL with more inputs than a full covariance of the linear expert is kept for."""

import numpy as np
import pytest
from streams import arrays_of

import omkl
import omkl.river
from omkl import algorithms, engine
from omkl.algorithms import graph_mkl
from omkl.algorithms.graph_mkl.constants import MAX_FULL_INPUTS
from omkl.algorithms.graph_mkl.least_squares import Counting, diagonal_of, update
from omkl.algorithms.graph_mkl.state import set_shapes
from omkl.algorithms.graph_mkl.upgrade import upgrade
from omkl.arrays import leaves
from omkl.features import column_names

SMALL = {"budget": "small", "kernels": [omkl.Gaussian(1.0)], "n_features": 4, "evaluate": "all"}
TASK = pytest.mark.parametrize("task", ["regression", "classification"])


def settings(task):
    return omkl.GraphSettings(task=task, outputs=1 if task == "regression" else 2, **SMALL)


def stream(rows, d, task="regression"):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, d))
    y = X[:, ::5].sum(axis=1) / np.sqrt(d / 5)
    return X, y if task == "regression" else (y > 0).astype(float)


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e9])
def test_a_row_leaves_the_variances_that_the_full_covariance_would_have(size):
    rng = np.random.default_rng(0)
    R, theta = np.full((1, 6), 2.0), np.zeros((1, 6))
    for z in size * rng.normal(size=(30, 6)):
        full, coefficients = update(np.diag(R[0]), theta, R[0] * z, 1 - theta @ z, Counting(2.0), min_leverage=0.0)
        R, theta = update(R, theta, R[0] * z, 1 - theta @ z, Counting(2.0), min_leverage=0.0)
        np.testing.assert_allclose(R, diagonal_of(full), rtol=1e-12)
        np.testing.assert_allclose(theta, coefficients, rtol=1e-12)


def test_a_row_of_a_single_feature_leaves_a_positive_variance():
    R, theta = np.full((1, 3), 1e9), np.zeros((1, 3))
    for z in [np.array([1e9, 0.0, 0.0])] * 5:
        R, theta = update(R, theta, R[0] * z, 1 - theta @ z, Counting(1.0), min_leverage=0.0)
        assert (R > 0).all()
        assert np.isfinite(theta).all()


def test_the_ridge_of_the_linear_expert_is_larger_where_its_covariance_is_diagonal():
    for task in ("regression", "classification"):
        made = {d: algorithms.problem("graph-mkl", settings(task), d) for d in (MAX_FULL_INPUTS, MAX_FULL_INPUTS + 1)}
        few, many = (problem.ridges for problem in made.values())
        assert few[-1] == (0.003 if task == "regression" else 10 / MAX_FULL_INPUTS)
        assert many[-1] == 0.3
        assert many[0] == few[0]


def test_where_features_never_meet_a_diagonal_is_exact():
    rng = np.random.default_rng(0)
    full, diagonal = (np.eye(5) / 0.1, np.zeros((1, 5))), (np.full((1, 5), 10.0), np.zeros((1, 5)))
    for k in rng.integers(5, size=60):
        z, target = np.eye(5)[k] * rng.normal(), rng.normal(size=1)
        full = update(*full, full[0] @ z, target - full[1] @ z, Counting(1.0), min_leverage=0.05)
        diagonal = update(*diagonal, diagonal[0][0] * z, target - diagonal[1] @ z, Counting(1.0), min_leverage=0.05)
    np.testing.assert_allclose(diagonal[1], full[1], rtol=1e-12)
    np.testing.assert_allclose(diagonal_of(full[0]), diagonal[0], rtol=1e-12)


@TASK
def test_engine_and_reference_agree_on_many_inputs(task):
    X, y = stream(21, MAX_FULL_INPUTS + 1, task)
    slow = omkl.Online.make("graph-mkl", settings(task), d=X.shape[1], seed=1, backend="numpy")
    wanted = slow.run(X, y)
    assert slow.state.sets[0].coefficients.R_linear.shape == (1, X.shape[1] + 1)
    for isa in engine.supported():
        fast = omkl.Online.make("graph-mkl", settings(task), d=X.shape[1], seed=1, isa=isa)
        np.testing.assert_allclose(fast.run(X, y), wanted, rtol=1e-10)
        state = arrays_of(fast.state)
        for name, array in arrays_of(slow.state).items():
            np.testing.assert_allclose(state[name], array, rtol=1e-9, atol=1e-11, err_msg=name)


@TASK
def test_new_inputs_beyond_the_limit_keep_coefficients_and_variances(task):
    X, y = stream(12, MAX_FULL_INPUTS - 1, task)
    online = omkl.Online.make("graph-mkl", settings(task), d=X.shape[1], seed=1)
    online.run(X, y)
    before = online.state.sets[0].coefficients
    for d in (MAX_FULL_INPUTS, MAX_FULL_INPUTS + 2, MAX_FULL_INPUTS + 5):
        problem = algorithms.problem("graph-mkl", settings(task), d, seed=1)
        online.change_problem(problem)
        after = online.state.sets[0].coefficients
        graph_mkl.check_state(problem, online.state)
        old = len(before.theta_linear[0])
        np.testing.assert_array_equal(after.theta_linear[:, :old], before.theta_linear)
        np.testing.assert_allclose((after.R_linear**2).sum(axis=0)[:old], (before.R_linear**2).sum(axis=0), rtol=1e-12)
        np.testing.assert_allclose((after.R_linear**2).sum(axis=0)[old:], 1 / problem.ridges[-1], rtol=1e-12)
        assert (len(after.R_linear) == 1) == (d > MAX_FULL_INPUTS)
        X, y = stream(3, d, task)
        online.run(X, y)
        before = online.state.sets[0].coefficients


def test_a_river_model_takes_inputs_beyond_the_limit():
    X, y = stream(6, MAX_FULL_INPUTS + 3)
    names = column_names(X.shape[1])
    model = omkl.river.GraphMKLRegressor(seed=0, **SMALL)
    for k, (row, target) in enumerate(zip(X, y, strict=True)):
        some = MAX_FULL_INPUTS - 2 + k  # one more with every row
        model.learn_one(dict(zip(names[:some], row[:some], strict=False)), float(target))
        assert np.isfinite(model.predict_one(dict(zip(names, row, strict=True))))
    assert omkl.from_bytes(omkl.to_bytes(model)).predict_one({"0": 1.0}) == model.predict_one({"0": 1.0})


def test_a_file_with_a_full_factor_of_many_inputs_is_loaded_with_its_diagonal():
    d = MAX_FULL_INPUTS + 1
    problem = algorithms.problem("graph-mkl", settings("regression"), d, seed=1)
    X, y = stream(5, d)
    online = omkl.Online("graph-mkl", problem, 0)
    online.run(X, y)
    found = {name: leaf for name, leaf in leaves(online.state).items() if isinstance(leaf, np.ndarray)}
    full = {}
    for g in (0, 1):
        R = found[f"sets.{g}.coefficients.R_linear"]
        full[f"sets.{g}.coefficients.R_linear"] = np.tril(np.full((d + 1, d + 1), 1e-3), -1) + np.diag(R[0])
    arrays, _ = upgrade(found | full, {})
    for name, R in full.items():
        np.testing.assert_allclose(arrays[name], np.sqrt((R**2).sum(axis=0))[None], rtol=1e-12)
    small = {"sets.0.coefficients.R_linear": np.eye(MAX_FULL_INPUTS + 1)}
    assert upgrade(small, {})[0]["sets.0.coefficients.R_linear"].shape == (MAX_FULL_INPUTS + 1,) * 2


def test_the_state_of_20000_inputs_takes_less_than_500_mb():
    V = np.broadcast_to(0.0, (13, 20_000, 50))  # nothing is allocated
    problem = algorithms.problem("graph-mkl", omkl.GraphSettings(), d=2)._replace(V=V)
    doubles = 2 * sum(int(np.prod(shape)) for shape in set_shapes(problem).values())
    assert 8 * doubles < 500e6


def test_a_state_with_another_form_of_covariance_is_refused():
    problem = algorithms.problem("graph-mkl", settings("regression"), MAX_FULL_INPUTS, seed=1)
    state = omkl.Online("graph-mkl", problem, 0).state
    c = state.sets[0].coefficients
    wrong = state.sets[0]._replace(coefficients=c._replace(R_linear=c.R_linear[:1]))
    with pytest.raises(ValueError, match="R_linear does not fit the problem"):
        graph_mkl.check_state(problem, state._replace(sets=(wrong, state.sets[1])))
