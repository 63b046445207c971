"""The similarity graph of the kernels: its edges, its dominating set and its refinement in every round."""

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from omkl.arrays import Index, Mask, Matrix, Vector
from omkl.kernels import Gaussian, Kernel, log_integral

QUADRATURE = 4096  # numbers that one quadrature is counted as


class Graph(NamedTuple):
    """The feedback graph of Algorithm 3, and what is computed from it once."""

    order: Index  # (N, N)  row i: all kernels by their similarity to i, i itself first
    A: Mask  # (N, N)       A[i, j]: kernel j is evaluated in the rounds in which node i is drawn
    cover: Vector  # (N,)   uniform distribution on the dominating set D


def log_overlap(a: Kernel, b: Kernel, d: int) -> float:
    """The logarithm of the integral of kappa_a kappa_b over R^d, from which Delta (7) is computed.

    In closed form where the kernels have one; otherwise a quadrature over the scale of one of the two.

    >>> import math
    >>> from omkl.kernels import Cauchy, Laplacian, Matern
    >>> math.isclose(log_overlap(Laplacian(1.0), Laplacian(1.0), 3), 0.0, abs_tol=1e-15)
    True
    >>> round(log_overlap(Matern(1.0), Cauchy(0.5), 100), 6)
    23.67652
    """
    if isinstance(b, Gaussian):
        a, b = b, a
    if isinstance(a, Gaussian):
        return float(np.squeeze(b.log_against_gaussian(np.array([a.length_scale**2]), d)))
    if type(a) is type(b) and (closed_form := a.log_against_same_family(b, d)) is not None:
        return closed_form
    if a.shape == b.shape == "product":
        return d * _log_mixed(a, b, 1)
    radial, other = (a, b) if a.shape == "radial" else (b, a)
    return _log_mixed(radial, other, d)


def _log_mixed(a: Kernel, b: Kernel, d: int) -> float:
    def log_f(s: Vector) -> Vector:
        log_density, variance = a.log_mixing(s)
        return log_density + b.log_against_gaussian(variance, d)

    return log_integral(log_f)


def log_overlaps(kernels: Sequence[Kernel], d: int) -> Matrix:
    """`log_overlap` of all pairs, (N, N)."""
    K = np.empty((len(kernels), len(kernels)))
    gaussian = [j for j, kernel in enumerate(kernels) if isinstance(kernel, Gaussian)]
    variances = np.array([kernels[j].length_scale ** 2 for j in gaussian])
    others = [j for j, kernel in enumerate(kernels) if not isinstance(kernel, Gaussian)]
    for i, a in enumerate(kernels):
        if gaussian:  # vectorised, since this decides how long it takes to build a graph
            K[i, gaussian] = K[gaussian, i] = a.log_against_gaussian(variances, d)
    for k, i in enumerate(others):
        for j in others[: k + 1]:
            K[i, j] = K[j, i] = log_overlap(kernels[i], kernels[j], d)
    return K


def overlap_work(kernels: Sequence[Kernel]) -> int:
    """About how many numbers are computed for `log_overlaps`; most of them where there is no simple closed form."""
    families = Counter(Gaussian if isinstance(kernel, Gaussian) else type(kernel) for kernel in kernels)
    gaussian = families.pop(Gaussian, 0)
    simple = gaussian**2 + sum(n * (n + 2 * gaussian) for family, n in families.items() if family.shape == "product")
    return 8 * len(kernels) ** 2 + QUADRATURE * (len(kernels) ** 2 - simple) // 2


def by_similarity(kernels: Sequence[Kernel], d: int) -> Index:
    """Row i: the kernels sorted by Delta (7) to kernel i, ties to the smaller index.

    Delta_ij = K_ii + K_jj - 2 K_ij, and K_ii is the same in the whole row, so that the rows can be
    sorted by K_jj - 2 K_ij. Its sign and logarithm are compared: in a hundred dimensions the values
    span hundreds of orders of magnitude, and Delta itself has only a few distinct doubles.
    """
    log_K = log_overlaps(kernels, d)
    plus = np.broadcast_to(np.diagonal(log_K), log_K.shape)  # log K_jj
    minus = np.log(2) + log_K  # log 2 K_ij
    sign = np.sign(plus - minus)
    with np.errstate(divide="ignore"):
        size = np.maximum(plus, minus) + np.log(-np.expm1(-np.abs(plus - minus)))
    signed_log = np.where(sign == 0, 0.0, sign * size)
    np.fill_diagonal(sign, -2)  # Delta_ii = 0 is the smallest
    return np.lexsort((signed_log, sign), axis=1)  # (7)


_by_similarity_again = lru_cache(8)(by_similarity)  # a learner whose inputs come one after another asks each time


def dominating_set(A: Mask) -> Index:
    """Chvatal's greedy set cover: add the node with most out-neighbours not yet covered, until all are.

    >>> dominating_set(np.array([[1, 1, 0], [0, 1, 1], [0, 0, 1]], dtype=bool))
    array([0, 1])
    """
    uncovered = np.ones(len(A), dtype=bool)
    covers = A.sum(axis=1)  # of each node, the out-neighbours not yet covered
    chosen: list[int] = []
    while uncovered.any():
        chosen.append(int(np.argmax(covers)))
        new = A[chosen[-1]] & uncovered
        covers -= A[:, new].sum(axis=1)
        uncovered &= ~new
    return np.array(sorted(chosen), dtype=np.intp)


def similarity_graph(kernels: Sequence[Kernel], d: int, out_degree: int) -> Graph:
    """Algorithm 3: every node has exactly `out_degree` out-neighbours, itself included.

    `d` is the dimension of the integral Delta (7): that of the data, as in the paper, or 1.

    >>> from omkl.kernels import dictionary
    >>> graph = similarity_graph(dictionary("paper"), d=1, out_degree=5)
    >>> np.flatnonzero(graph.A[20]), np.flatnonzero(graph.cover)
    (array([18, 19, 20, 21, 22]), array([ 0,  7, 12, 17, 22, 27, 32, 37, 38]))
    """
    N = len(kernels)
    if not 1 <= out_degree <= N:
        raise ValueError(f"out_degree must be between 1 and {N}, got {out_degree}; add kernels or lower it")
    order = _by_similarity_again(tuple(kernels), d).copy()
    A = np.zeros((N, N), dtype=bool)
    np.put_along_axis(A, order[:, :out_degree], True, axis=1)  # (11)
    D = dominating_set(A)
    cover = np.zeros(N)
    cover[D] = 1 / len(D)
    return Graph(order, A, cover)


# Refinement

ROUNDING = 4e-16  # so that all nodes are in D'_t where all u and beta are 1/N


def dominating_by_rank(log_u: Vector, rank: int) -> Mask:
    """D'_t of (22) with the beta of the experiments: the nodes whose u is at least the rank-th largest."""
    dominating: Mask = log_u >= np.sort(log_u)[-min(rank, len(log_u))]  # (22)
    return dominating


def dominating_by_threshold(u: Vector, xi: float, beta: float) -> Mask:
    """D'_t of (22) for a constant beta <= 1/N; both sides are multiplied by 1 - xi, which may be 0.

    The node of largest u always belongs to D'_t (Theorem 4), whatever the rounding errors.
    """
    dominating: Mask = (1 - xi) * u >= beta - xi / len(u) - ROUNDING  # (22)
    dominating[np.argmax(u)] = True
    return dominating


def nearest_dominating(order: Index, dominating: Mask) -> Index:
    """d_i: the member of D'_t most similar to kernel i, itself when i is in D'_t."""
    first = np.argmax(dominating[order], axis=1)
    d: Index = order[np.arange(len(order)), first]  # (23)
    return d


def refined(A: Mask, d: Index) -> Mask:
    """The graph of Algorithm 2: A and an edge (d_i, i) for every i."""
    out = A.copy()
    out[d, np.arange(len(d))] = True
    return out
