"""The engine and NumPy agree on the related algorithms, under all their options."""

import pytest
from streams import FAMILIES, gaussians, of_all_families, small, small_for, stream, weights_of
from test_engine import assert_lockstep

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
def test_doebe(mixing, walk, N):
    agree("doebe", kernels=of_all_families(N), n_features=6, mixing=mixing, walk=walk)


@pytest.mark.parametrize("learner", ["adaraker", "vaw2", "doebe"])
def test_kernels_that_share_their_draw(learner):
    agree(learner, kernels=gaussians(5), n_features=9, draw="shared")


def test_there_is_one_node_unless_more_are_wanted():
    """OMKL-GF as it was: nodes change neither the numbers that a round takes nor what it does."""
    X, y = stream(60, 2)
    assert_lockstep("omkl-gf", small(nodes=1, **RATES), 2, X, y)
