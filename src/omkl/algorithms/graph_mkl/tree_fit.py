"""How one of GraphMKL's boosted trees is fitted: bins of inputs, residuals as whole numbers, and the search for splits.

Residuals and weights are rounded to whole numbers, so that sums over rows are exact in any order, and every
implementation finds the same splits.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from omkl.algorithms.graph_mkl.constants import (
    KEY_STEP,
    LARGEST_DOUBLE,
    MIN_DEVIATION,
    MIN_RELATIVE_DEVIATION,
    TREE_BINS,
    TREE_DEPTH,
    TREE_INPUTS,
    TREE_LARGEST_SUM,
    TREE_LEAST_ROWS,
    TREE_LEAST_SHARE,
    TREE_QUANTA,
    TREE_RIDGE,
    TREE_ROUNDING,
    TREE_SIGN_STEP,
    TREE_SKETCH,
    TREE_WEIGHT,
)
from omkl.algorithms.graph_mkl.repeats import mixed
from omkl.arrays import Index, Matrix, Vector

NODES, LEAVES = 2**TREE_DEPTH - 1, 2**TREE_DEPTH

Bytes = NDArray[np.uint8]


# Bins


def cut_points(values: Vector) -> Vector:
    """Thresholds of the bins of an input, increasing: between all values, or where these are many, between quantiles.

    Where values are missing, the first threshold parts these from all others.
    """
    present = np.sort(values[~np.isnan(values)])
    first = np.full(int(0 < len(present) < len(values)), -LARGEST_DOUBLE)  # (G68)
    most = TREE_BINS - len(first)
    starts = 1 + np.flatnonzero(present[1:] != present[:-1])
    if len(starts) >= most:
        starts = quantile_starts(present, most)
    below, above = present[starts - 1], present[starts]
    middle = below + (above - below) / 2  # (G67)
    return np.append(first, np.where(middle > below, middle, above))


def quantile_starts(present: Vector, bins: int) -> Index:
    """Where bins begin, but the first: frequent values have bins of their own, the others share the rest.

    Frequent are values that two of the quantiles have, such as 0 among counts, and the least if a quantile has it.
    """
    values, count = np.unique(present[np.arange(1, bins) * len(present) // bins], return_counts=True)
    frequent = values[(count > 1) | (values == present[0])]  # (G67)
    rest, left = present[~np.isin(present, frequent)], bins - 2 * len(frequent)
    quantiles = rest[np.arange(1, left) * len(rest) // left]  # (G67)
    ends = np.searchsorted(present, frequent, side="right")
    starts = np.unique(np.concatenate((np.searchsorted(present, np.append(frequent, quantiles)), ends)))
    return starts[(starts > 0) & (starts < len(present))]


def bin_numbers(cuts: Vector, values: Vector) -> Bytes:
    """The number of thresholds that a value is not below; 0 where it is missing."""
    bins = np.searchsorted(cuts, values, side="right").astype(np.uint8)  # (G68)
    bins[np.isnan(values)] = 0
    return bins


# Random choices, a hash of the number of a tree


def hashed(tree: int, places: Index) -> NDArray[np.uint64]:
    start = mixed(np.array([tree], np.uint64) * np.uint64(KEY_STEP))
    return mixed(start + places.astype(np.uint64) * np.uint64(KEY_STEP))  # (G69)


def inputs_of(tree: int, usable: Index) -> Index:
    """Those of the usable inputs, in their order, that a tree may split by."""
    least, most = TREE_INPUTS
    count = min(len(usable), max(least, min(most, -(-len(usable) // 2))))  # (G70)
    if count == len(usable):
        return usable
    usable = usable.copy()
    draws = hashed(tree, np.arange(count))
    for j in range(count):
        other = j + int(draws[j]) % (len(usable) - j)  # (G70)
        usable[j], usable[other] = usable[other], usable[j]
    return np.sort(usable[:count])


def projected(residuals: Matrix, tree: int, labels: bool) -> Matrix:
    """(n, S): what splits are searched with; all residuals, that of one of two labels, or sums with random signs."""
    K = residuals.shape[1]
    if K <= TREE_SKETCH:
        return residuals[:, :1] if labels and K == 2 else residuals  # (G71)
    places = TREE_SIGN_STEP * np.arange(1, 1 + TREE_SKETCH) + np.arange(K)[:, None]
    signs = np.where(hashed(tree, places.ravel()) & np.uint64(1), 1.0, -1.0).reshape(K, TREE_SKETCH)
    for s in np.flatnonzero(np.abs(signs.sum(axis=0)) == K):  # residuals of a row sum to 0
        signs[s, s] *= -1
    return residuals @ signs  # (G71)


# Splits


class Counts(NamedTuple):
    """Weighted residuals and weights of the rows as whole numbers."""

    residual: NDArray[np.int64]  # (n, S)
    weight: NDArray[np.int64]  # (n,)


def counts_of(residual: Matrix, weight: Vector, mean_weight: float, size: float) -> Counts:
    """`size` is that of the largest weighted target: residuals that are much smaller are rounding."""
    n = len(weight)
    quanta = min(TREE_QUANTA, TREE_LARGEST_SUM // n)  # (G72)
    largest = float(np.abs(residual).max(initial=0.0))
    least = max(MIN_RELATIVE_DEVIATION * size, MIN_DEVIATION)
    scale = quanta / largest if least < largest < np.inf else 0.0  # (G72)
    q = np.clip(np.floor(residual * scale + TREE_ROUNDING), -quanta, quanta)  # (G72)
    w = np.floor(TREE_WEIGHT * weight / mean_weight + TREE_ROUNDING)  # (G72)
    return Counts(q.astype(np.int64), np.clip(w, 0, TREE_WEIGHT * n).astype(np.int64))


def least_weight(n: int) -> int:
    """Of a leaf, among n rows."""
    low, high = TREE_LEAST_ROWS
    return TREE_WEIGHT * min(high, max(low, n // TREE_LEAST_SHARE))  # (G74)


class Tree(NamedTuple):
    """A complete binary tree: node v of level l has the number 2^l - 1 + v, its children are 2 v and 2 v + 1."""

    feature: Index  # (NODES,)
    threshold: Vector  # (NODES,)  a row whose value is not below it goes right
    leaf: Index  # (n,)  of every row


def grow(bins: Bytes, cuts: Matrix, inputs: Index, counts: Counts) -> Tree:
    """The tree of one fit, level by level. A node without a good split sends all rows left."""
    n = len(counts.weight)
    feature, threshold = np.zeros(NODES, np.intp), np.full(NODES, LARGEST_DOUBLE)
    node = np.zeros(n, np.intp)
    mine = bins[:, inputs].astype(np.intp)
    for level in range(TREE_DEPTH if len(inputs) else 0):
        best, cut = best_splits(mine, node, 2**level, counts, least_weight(n))
        some = best >= 0
        if not some.any():
            node <<= TREE_DEPTH - level
            break
        at = 2**level - 1 + np.flatnonzero(some)
        feature[at], threshold[at] = inputs[best[some]], cuts[inputs[best[some]], cut[some]]
        right = some[node]
        right[right] = (mine[np.arange(n), best[node]] > cut[node])[right]
        node = 2 * node + right
    return Tree(feature, threshold, node)


def best_splits(mine: Index, node: Index, nodes: int, counts: Counts, least: int) -> tuple[Index, Index]:
    """(nodes,) place of the input and number of the cut of the best split of each node; -1, where there is none."""
    F = mine.shape[1]
    places = ((np.arange(F) * nodes + node[:, None]) * TREE_BINS + mine).ravel()

    def running(values: NDArray[np.int64]) -> Matrix:
        cells = np.bincount(places, np.repeat(values, F), F * nodes * TREE_BINS)  # whole numbers, exact
        return np.cumsum(cells.reshape(F, nodes, TREE_BINS), axis=2)

    H = running(counts.weight)
    left, whole = H[..., :-1], H[..., -1:]
    below, above, before = np.zeros_like(left), np.zeros_like(left), np.zeros_like(whole)
    for residual in counts.residual.T:
        G = running(residual)
        below += G[..., :-1] ** 2
        above += (G[..., -1:] - G[..., :-1]) ** 2
        before += G[..., -1:] ** 2
    ridge = TREE_WEIGHT * TREE_RIDGE
    gain = below / (left + ridge) + above / (whole - left + ridge) - before / (whole + ridge)  # (G73)
    gain[(left < least) | (whole - left < least)] = 0  # (G74)
    flat = gain.transpose(1, 0, 2).reshape(nodes, -1)
    first = np.argmax(flat, axis=1)
    found = flat[np.arange(nodes), first] > 0
    return np.where(found, first // (TREE_BINS - 1), -1), np.where(found, first % (TREE_BINS - 1), 0)
