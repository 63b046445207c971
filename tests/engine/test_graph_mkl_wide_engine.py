"""GraphMKL's wide least squares: the engine against the reference implementation."""

import numpy as np
import pytest
from streams import arrays_of, graph_settings

import omkl
from omkl import algorithms, engine
from omkl.algorithms.graph_mkl.constants import WIDE_GROWTH, WIDE_LEAST
from omkl.features import column_names, frequencies
from omkl.online import Checkpoint


def problem_of(K, d=3, D=2 * WIDE_LEAST, archive=2048):
    task = "regression" if K == 1 else "classification"
    problem = algorithms.problem("graph-mkl", graph_settings(task=task, outputs=K), d=d, seed=1)
    return problem._replace(
        trees=0, archive=archive, V_wide=frequencies([omkl.Gaussian(0.9)], column_names(d), D, seed=2)
    )


def stream(n, K, d=3):
    """A function that few features do not fit, with missing inputs and weights."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (n, d))
    f = np.sin(3 * X[:, 0] * X[:, 1]) + np.cos(4 * X[:, 2]) + 0.01 * rng.standard_normal(n)
    X[rng.random(X.shape) < 0.02] = np.nan
    return X, f if K == 1 else np.digitize(f, np.linspace(-1, 1, K - 1)).astype(float), rng.choice([0.5, 1.0, 3.0], n)


def run(problem, X, y, weight, turn, **backend):
    """Predictions and the last state, where the wide least squares have been the best in the rounds before `turn`."""
    online = omkl.Online("graph-mkl", problem, 3, **backend)
    before = online.run_unchecked(X[:turn], y[:turn], weight[:turn])
    state, *rest = online.checkpoint()
    loss = np.append(np.zeros(len(state.large.loss) - 1), 1.0)
    checkpoint = Checkpoint(state._replace(large=state.large._replace(loss=loss)), *rest)
    online = omkl.Online("graph-mkl", problem, checkpoint=checkpoint, **backend)
    return np.concatenate((before, online.run_unchecked(X[turn:], y[turn:], weight[turn:]))), online.state


@pytest.mark.parametrize("K", [1, 3, 34])
def test_engine_and_reference_agree_on_wide_least_squares_and_their_growth(K):
    """A condition number of rows / ridge, some 1e5, times rounding is 1e-11, and the mixture learns from it."""
    problem, due = problem_of(K), WIDE_GROWTH * 2 * WIDE_LEAST
    rows = stream(due + 150, K)
    wanted, slow = run(problem, *rows, turn=due - 20, backend="numpy")
    assert slow.large.wide.active == 2 * WIDE_LEAST
    for isa in engine.supported():
        found, fast = run(problem, *rows, turn=due - 20, isa=isa)
        np.testing.assert_allclose(found, wanted, rtol=1e-8, atol=1e-9 * np.abs(wanted).max())
        one, other = arrays_of(fast.large.wide), arrays_of(slow.large.wide)
        for name, array in other.items():
            limit = 1e-9 * max(1, np.abs(array).max(initial=0))
            np.testing.assert_allclose(one[name], array, rtol=1e-9, atol=limit, err_msg=name)
