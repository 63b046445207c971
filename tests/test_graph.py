import itertools

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from streams import gaussians, of_all_families, small

from omkl import algorithms
from omkl.algorithms import sfg_mkl_r
from omkl.algorithms.schedule import Schedule
from omkl.graph import (
    QUADRATURE,
    by_similarity,
    dominating_by_rank,
    dominating_by_threshold,
    dominating_set,
    log_overlap,
    nearest_dominating,
    overlap_work,
    refined,
    similarity_graph,
)
from omkl.kernels import Cauchy, Gaussian, Laplacian, Matern, dictionary

DICTIONARIES = {"paper": dictionary("paper"), "families": dictionary("families"), "few": of_all_families(7)}
SHAPES = [(name, d, M) for name in DICTIONARIES for d in (1, 8, 100) for M in (1, 2, 5, len(DICTIONARIES[name]))]


@pytest.fixture(params=SHAPES, ids=lambda shape: "-".join(map(str, shape)))
def graph_and_degree(request):
    name, d, M = request.param
    return similarity_graph(DICTIONARIES[name], d, M), M


@pytest.mark.parametrize("d", [1, 2, 5])
def test_kernels_in_any_order_are_sorted_by_delta(d):
    scales = np.array([3.0, 0.5, 8.0, 1.0, 5.0, 2.0])
    squares = scales**2
    K = (2 * np.pi * np.outer(squares, squares) / np.add.outer(squares, squares)) ** (d / 2)  # of Gaussians
    delta = np.add.outer(np.diag(K), np.diag(K)) - 2 * K  # (7)
    np.testing.assert_array_equal(by_similarity([Gaussian(s) for s in scales], d), delta.argsort(axis=1))


def takes_a_quadrature(a, b):
    """Whether the integral of their product is none of the simple closed forms."""
    product = [kernel for kernel in (a, b) if kernel.shape == "product"]
    gaussian = [kernel for kernel in (a, b) if isinstance(kernel, Gaussian)]
    same_product = type(a) is type(b) and len(product) == 2
    return not (same_product or (gaussian and len(gaussian) + len(product) == 2))


@pytest.mark.parametrize("counts", list(itertools.product((0, 1, 3), (0, 2), (0, 1, 2), (0, 4))))
def test_the_work_of_a_graph_is_that_of_its_pairs(counts):
    families = (Gaussian(1.0), Laplacian(1.0), Cauchy(1.0), Matern(1.0))
    kernels = [kernel for kernel, count in zip(families, counts, strict=True) for _ in range(count)]
    pairs = [takes_a_quadrature(a, b) for a in kernels for b in kernels]
    assert overlap_work(kernels) == 8 * len(pairs) + QUADRATURE * sum(pairs) // 2


# Algorithm 3


def test_every_node_has_exactly_M_out_neighbours_including_itself(graph_and_degree):
    graph, M = graph_and_degree
    assert (graph.A.sum(axis=1) == M).all()
    assert np.diagonal(graph.A).all()
    assert (graph.order[:, 0] == np.arange(len(graph.A))).all()


def test_cover_is_the_uniform_distribution_on_a_dominating_set(graph_and_degree):
    graph, _ = graph_and_degree
    D = np.flatnonzero(graph.cover)
    assert graph.A[D].any(axis=0).all()
    np.testing.assert_array_equal(graph.cover[D], 1 / len(D))


def test_out_neighbours_are_the_kernels_of_smallest_delta():
    kernels, d = of_all_families(7), 2
    K = np.exp([[log_overlap(a, b, d) for b in kernels] for a in kernels])
    delta = np.diagonal(K)[:, None] + np.diagonal(K) - 2 * K  # (7) as printed
    A = similarity_graph(kernels, d, 3).A
    for i in range(7):
        assert delta[i, A[i]].max() < delta[i, ~A[i]].min()


def test_equal_kernels_are_ordered_by_index():
    kernels = [Gaussian(1.0), Gaussian(2.0), Gaussian(1.0), Gaussian(2.0), Gaussian(1.0)]
    order = by_similarity(kernels, 3)
    np.testing.assert_array_equal(order[2], [2, 0, 4, 1, 3])
    np.testing.assert_array_equal(order[0], [0, 2, 4, 1, 3])


def test_a_larger_out_degree_only_adds_edges():
    graphs = [similarity_graph(DICTIONARIES["paper"], 5, M).A for M in (2, 5, 20, 41)]
    assert all((narrow <= wide).all() for narrow, wide in itertools.pairwise(graphs))


@pytest.mark.parametrize("M", [0, -1, 6, 50])
def test_an_out_degree_outside_1_to_N_is_refused(M):
    with pytest.raises(ValueError, match=f"out_degree must be between 1 and 5, got {M}"):
        similarity_graph(gaussians(5), 2, M)


# Dominating set


def test_greedy_cover_adds_the_node_with_most_uncovered_neighbours_and_of_equals_that_of_smaller_index():
    A = np.eye(6, dtype=bool)
    A[1, [0, 2]] = True  # 1 covers 0 1 2
    A[2, [1, 3, 4]] = True  # 2 covers 1 2 3 4, the most: it is first
    A[4, [3, 5]] = True  # 0 and 5 are left, and no node covers both: 0, then 4 before 5
    np.testing.assert_array_equal(dominating_set(A), [0, 2, 4])


def test_a_complete_graph_is_dominated_by_one_node():
    np.testing.assert_array_equal(dominating_set(np.ones((9, 9), dtype=bool)), [0])


@given(st.integers(1, 12).flatmap(lambda N: arrays(bool, (N, N))))
def test_the_dominating_set_dominates_any_graph_with_self_loops(A):
    np.fill_diagonal(A, True)
    D = dominating_set(A)
    assert A[D].any(axis=0).all()
    assert len(set(D)) == len(D)


# Refinement


LOG_U = arrays(float, st.integers(1, 15), elements=st.floats(-800, 0) | st.sampled_from([0.0, -1.0, -2.0]))


def test_where_all_u_are_equal_every_node_is_dominating_and_no_edge_is_added():
    graph = similarity_graph(DICTIONARIES["paper"], 5, 5)
    dominating = dominating_by_rank(np.zeros(41), 10)
    assert dominating.all()
    np.testing.assert_array_equal(refined(graph.A, nearest_dominating(graph.order, dominating)), graph.A)


def test_the_node_of_tenth_largest_u_is_dominating_with_all_of_equal_u():
    log_u = -np.array([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 9, 10, 11.0])
    np.testing.assert_array_equal(dominating_by_rank(log_u[::-1], 10), np.arange(14) >= 2)


def test_in_a_dictionary_of_fewer_than_ten_kernels_every_node_is_dominating():
    assert dominating_by_rank(-np.arange(9.0), 10).all()


@given(LOG_U, st.integers(1, 12))
def test_at_least_rank_nodes_are_dominating_and_all_others_have_smaller_u(log_u, rank):
    dominating = dominating_by_rank(log_u, rank)
    assert dominating.sum() >= min(rank, len(log_u))
    assert dominating.all() or log_u[dominating].min() > log_u[~dominating].max()


@given(st.integers(1, 15).flatmap(lambda N: arrays(bool, N)))
def test_the_nearest_dominating_node_is_dominating_and_no_other_is_more_similar(dominating):
    assume(dominating.any())
    order = by_similarity(of_all_families(len(dominating)), 2)
    d = nearest_dominating(order, dominating)
    assert dominating[d].all()
    assert (d[dominating] == np.flatnonzero(dominating)).all()
    for i, row in enumerate(order):
        before = row[: np.flatnonzero(row == d[i])[0]]
        assert not dominating[before].any()


@given(LOG_U, st.integers(1, 12))
def test_refinement_only_adds_edges_and_makes_the_set_dominating(log_u, rank):
    N = len(log_u)
    graph = similarity_graph(of_all_families(N), 2, min(3, N))
    dominating = dominating_by_rank(log_u, rank)
    A = refined(graph.A, nearest_dominating(graph.order, dominating))
    assert (graph.A <= A).all()
    assert A[dominating].any(axis=0).all()
    assert (A.sum(axis=0) <= graph.A.sum(axis=0) + 1).all()


@given(LOG_U, st.floats(0, 1) | st.sampled_from([0.0, 1.0]), st.floats(0.01, 1) | st.just(1.0))
def test_with_a_constant_beta_every_kernel_is_evaluated_with_probability_beta_or_more(log_u, xi, share):
    N = len(log_u)
    beta = share / N
    settings = small(kernels=of_all_families(N), out_degree=min(2, N), beta=beta)
    problem = algorithms.problem("sfg-mkl-r", settings, 2)
    problem = problem._replace(schedule=Schedule(0.1, xi))
    d = sfg_mkl_r.refine(problem, log_u, 1)
    p = sfg_mkl_r.node_probabilities(problem, log_u, d, 1)
    q = p @ refined(problem.graph.A, d)
    assert p.sum() == pytest.approx(1, abs=1e-14)
    assert q.min() >= beta * (1 - 1e-12)


@given(arrays(float, st.integers(1, 15), elements=st.floats(-30, 0)), st.floats(0, 1), st.floats(0.01, 1))
def test_with_a_constant_beta_the_dominating_nodes_are_those_of_probability_beta_or_more(log_u, xi, share):
    u = np.exp(log_u) / np.exp(log_u).sum()
    beta = share / len(u)
    probability = (1 - xi) * u + xi / len(u)
    clear = np.abs(probability - beta) > 1e-12  # where rounding does not matter
    np.testing.assert_array_equal(dominating_by_threshold(u, xi, beta)[clear], (probability >= beta)[clear])


@given(st.integers(1, 60), st.floats(0, 1))
def test_where_rounding_would_leave_no_dominating_node_that_of_largest_u_is_dominating(N, xi):
    """All u are equal and beta = 1/N: every node is exactly on the threshold."""
    assert dominating_by_threshold(np.full(N, 1 / N), xi, 1 / N)[0]


def test_where_all_u_and_beta_are_one_nth_every_node_is_dominating_whatever_the_rounding():
    for N in range(1, 200):
        for xi in (0.0, 0.1, 1 / 3, 0.7, 1.0):
            assert dominating_by_threshold(np.full(N, 1 / N), xi, 1 / N).all(), (N, xi)


def test_a_node_below_the_threshold_by_more_than_rounding_is_not_dominating():
    u = np.array([0.25 - 1e-14, 0.25, 0.25, 0.25 + 1e-14])
    np.testing.assert_array_equal(dominating_by_threshold(u, 0.0, 0.25), [False, True, True, True])


def test_a_beta_above_one_nth_is_refused():
    with pytest.raises(ValueError, match=r"beta must be at most 1/N = 0.2 for 5 kernels.*got 0.21"):
        algorithms.problem("sfg-mkl-r", small(beta=0.21), 2)
    algorithms.problem("sfg-mkl-r", small(beta=0.2), 2)
