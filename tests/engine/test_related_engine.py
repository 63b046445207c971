"""The engine and NumPy agree on the related algorithms, under all their options."""

import contextlib

import numpy as np
import pytest
from streams import FAMILIES, gaussians, of_all_families, small, small_for, stream, weights_of
from test_engine import assert_lockstep

from omkl.errors import DivergenceError
from omkl.online import Online

RATES = {"learning_rate": 0.05, "exploration": 0.5}
MANY = {"kernels": of_all_families(7), "n_features": 13}


def agree(learner, d=3, rows=80, loss="squared", restart=False, **changes):
    X, y = stream(rows, d, loss=loss)
    changes = changes if loss == "squared" else {**changes, "loss": loss}
    assert_lockstep(learner, small_for(learner, **changes), d, X, y, weights_of(rows), restart=restart)


@pytest.mark.parametrize("loss", ["squared", "logistic", "hinge"])
@pytest.mark.parametrize("stabiliser", ["aware", "none", "project"])
@pytest.mark.parametrize(("levels", "warm", "horizon"), [(1, True, None), (4, True, 80), (4, False, None)])
def test_adaraker(loss, stabiliser, levels, warm, horizon):
    agree("adaraker", **MANY, **RATES, loss=loss, stabiliser=stabiliser, levels=levels, warm=warm, horizon=horizon)


@pytest.mark.parametrize("n_features", [1, 8, 13])
@pytest.mark.parametrize("N", [1, 7, 9])
def test_vaw2(n_features, N):
    agree("vaw2", kernels=of_all_families(N), n_features=n_features)


@pytest.mark.parametrize("J", [2, 3, 9])
@pytest.mark.parametrize("freeze_after", [None, 40])
def test_nodes_of_omkl_gf(J, freeze_after):
    agree("omkl-gf", **MANY, **RATES, draws=2, nodes=J, freeze_after=freeze_after, least_q=0.2)


@pytest.mark.parametrize("learner", ["sfg-mkl", "sfg-mkl-r"])
def test_least_probabilities(learner):
    agree(learner, **MANY, **RATES, out_degree=3, least_q=0.4, least_p=0.3)


@pytest.mark.parametrize("loss", ["squared", "logistic", "hinge"])
def test_fogd(loss):
    agree("fogd", loss=loss)


@pytest.mark.parametrize("loss", ["squared", "logistic", "hinge"])
@pytest.mark.parametrize("stabiliser", ["aware", "floor", "none"])
def test_nogd(loss, stabiliser):
    agree("nogd", loss=loss, stabiliser=stabiliser)


@pytest.mark.parametrize("learner", ["nogd", "krls-t"])
@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
@pytest.mark.parametrize("budget", [1, 8, 9])
def test_budgets_and_kernels(learner, family, budget):
    rank = {"rank": max(1, budget // 2)} if learner == "nogd" else {}
    agree(learner, kernels=[family(0.5)], budget=budget, restart=True, **rank)


@pytest.mark.parametrize("forgetting", [0.9, 1.0])
def test_krls_t(forgetting):
    agree("krls-t", forgetting=forgetting)


@pytest.mark.parametrize("mixing", ["averaging", "stacking"])
@pytest.mark.parametrize("walk", [0.0, 0.01])
@pytest.mark.parametrize("N", [1, 7])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_doebe(mixing, walk, N, loss):
    agree("doebe", kernels=of_all_families(N), n_features=6, mixing=mixing, walk=walk, loss=loss)


def test_heavy_labels_of_doebe():
    """Margins that start far from where they end, so that Newton's method needs its brackets."""
    X, y = stream(60, 2, loss="logistic")
    y[30:] = -1.0
    assert_lockstep("doebe", small_for("doebe", loss="logistic", walk=0.5), 2, X, y, 10.0 ** np.linspace(-3, 9, 60))


def test_nodes_that_drew_kernels_without_weight():
    """Targets so large that all weights but one are 0 to rounding after the first row."""
    X, y = stream(60, 3)
    choice = {"draws": 1, "nodes": 2, "learning_rate": 0.05, "exploration": 0.9, "horizon": 60}
    assert_lockstep("omkl-gf", small(kernels=gaussians(5), **choice), 3, X, 300 * y)


def test_equal_eigenvalues_of_nogd():
    X, _ = stream(40, 2)
    assert_lockstep("nogd", small_for("nogd", rank=3), 2, 1e4 * X, np.ones(40))


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
@pytest.mark.parametrize("learner", ["omkr", "nogd", "krls-t"])
@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")  # of squares, in NumPy
def test_rows_whose_squared_distance_is_infinite(learner, family):
    X, y = stream(30, 2)
    assert_lockstep(learner, small_for(learner, kernels=[family(0.5)]), 2, 1e200 * X, y)


def test_weights_of_krls_t_that_leave_no_noise():
    """Rows that contradict each other, so that rounding errors count as much as the least noise, 1e-8, lets them."""
    X, y = stream(60, 2)
    X[::2] = X[0]
    made = [
        Online.make("krls-t", small_for("krls-t", forgetting=1.0, budget=40), 2, backend=backend)
        for backend in ("numpy", "engine")
    ]
    one, other = (online.run(X, y, np.full(60, 1e30)) for online in made)
    np.testing.assert_allclose(one, other, atol=1e-4)
    assert np.abs(one).max() < 10


def test_a_state_of_krls_t_without_numbers_stays_within_its_arrays():
    """Of the engine alone, as no file has such a state: whichever row is removed, the budget is kept."""
    X, y = stream(40, 2)
    online = Online.make("krls-t", small_for("krls-t", budget=8), 2, backend="engine")
    online.run(X[:30], y[:30])
    assert online.state.n == 8
    for name, value in (("Q", 1e308), ("Q", np.nan), ("Sigma", np.nan)):
        other = online.copy()
        state = other.checkpoint().state
        getattr(state, name)[:] = value
        other.restore(other.checkpoint()._replace(state=state))
        with contextlib.suppress(DivergenceError):
            other.run(X[30:], y[30:])
        assert other.state.n == 8


@pytest.mark.parametrize("learner", ["adaraker", "vaw2", "doebe"])
def test_kernels_that_share_their_draw(learner):
    agree(learner, kernels=gaussians(5), n_features=9, draw="shared")


def test_there_is_one_node_unless_more_are_wanted():
    """OMKL-GF as it was: nodes change neither the numbers that a round takes nor what it does."""
    X, y = stream(60, 2)
    assert_lockstep("omkl-gf", small(nodes=1, **RATES), 2, X, y)
