"""Delta -> similarity graph -> dominating set -> refinement."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from omkl.arrays import Index, Mask, Vector
from omkl.kernels import Kernel, log_overlaps


class Graph(NamedTuple):
    """The feedback graph of Algorithm 3 with what is derived from it once."""

    order: Index  # (N, N)  row i: all kernels, the most similar to i first, i itself foremost
    A: Mask  # (N, N)       A[i, j] when drawing node i lets us hear kernel j
    cover: Vector  # (N,)   uniform law on the dominating set D


def by_similarity(kernels: Sequence[Kernel], d: int) -> Index:
    """Row i: the kernels sorted by Delta (7) to kernel i, ties to the smaller index.

    Delta_ij = K_ii + K_jj - 2 K_ij and K_ii is common to the row, so the rest decides. It is
    compared as sign and logarithm: in a hundred dimensions the numbers themselves span hundreds
    of orders of magnitude and Delta collapses to a handful of distinct doubles.
    """
    log_K = log_overlaps(kernels, d)
    plus = np.broadcast_to(np.diagonal(log_K), log_K.shape)  # log K_jj
    minus = np.log(2) + log_K  # log 2 K_ij
    sign = np.sign(plus - minus)
    with np.errstate(divide="ignore"):
        size = np.maximum(plus, minus) + np.log(-np.expm1(-np.abs(plus - minus)))
    signed_log = np.where(sign == 0, 0.0, sign * size)
    np.fill_diagonal(sign, -2)  # Delta_ii = 0 is the least there is
    return np.lexsort((signed_log, sign), axis=1)  # (7)


def dominating_set(A: Mask) -> Index:
    """Chvatal's greedy set cover: the node that hears most unheard kernels, until all are heard.

    >>> dominating_set(np.array([[1, 1, 0], [0, 1, 1], [0, 0, 1]], dtype=bool))
    array([0, 1])
    """
    unheard = np.ones(len(A), dtype=bool)
    chosen: list[int] = []
    while unheard.any():
        chosen.append(int(np.argmax((A & unheard).sum(axis=1))))
        unheard &= ~A[chosen[-1]]
    return np.array(sorted(chosen), dtype=np.intp)


def similarity_graph(kernels: Sequence[Kernel], d: int, out_degree: int) -> Graph:
    """Algorithm 3: exactly `out_degree` out-neighbours for every node, itself among them.

    `d` is the dimension in which Delta is taken: that of the data as (7) is printed, or 1.

    >>> from omkl.kernels import dictionary
    >>> graph = similarity_graph(dictionary("paper"), d=1, out_degree=5)
    >>> np.flatnonzero(graph.A[20]), np.flatnonzero(graph.cover)
    (array([18, 19, 20, 21, 22]), array([ 0,  7, 12, 17, 22, 27, 32, 37, 38]))
    """
    N = len(kernels)
    if not 1 <= out_degree <= N:
        raise ValueError(f"out_degree must be between 1 and {N}, got {out_degree}; add kernels or lower it")
    order = by_similarity(kernels, d)
    A = np.zeros((N, N), dtype=bool)
    np.put_along_axis(A, order[:, :out_degree], True, axis=1)  # (11)
    D = dominating_set(A)
    cover = np.zeros(N)
    cover[D] = 1 / len(D)
    return Graph(order, A, cover)


# Refinement

ROUNDING = 4e-16  # all nodes dominating when all u are 1/N and beta is 1/N too


def dominating_by_rank(log_u: Vector, rank: int) -> Mask:
    """D'_t of (22) with the beta of the experiments: the nodes whose u is at least the rank-th largest."""
    dominating: Mask = log_u >= np.sort(log_u)[-min(rank, len(log_u))]  # (22)
    return dominating


def dominating_by_threshold(u: Vector, xi: float, beta: float) -> Mask:
    """D'_t of (22) for a constant beta <= 1/N, multiplied through by 1 - xi, which may be 0.

    The heaviest node belongs to it by the theorem; rounding may not take it away.
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
    """A with the edge (d_i, i) added for every i, as in Algorithm 2."""
    out = A.copy()
    out[d, np.arange(len(d))] = True
    return out
