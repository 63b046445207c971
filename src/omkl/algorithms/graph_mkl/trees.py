"""GraphMKL's boosted trees: one expert, fitted to the rows of the archive from time to time.

There are two ensembles, one that predicts and one that is being fitted. The work of a fit is spread over rows in units:
the bins of one input, or one tree. For numbers the leaves of the ensemble that predicts learn every row.
"""

from typing import Any, NamedTuple

import numpy as np

from omkl.algorithms.graph_mkl.archive import Archive
from omkl.algorithms.graph_mkl.constants import (
    TREE_BINS,
    TREE_DEPTH,
    TREE_GROWTH,
    TREE_LABEL_RIDGE,
    TREE_RATE,
    TREE_REFRESH,
    TREE_RIDGE,
    TREE_SPREAD,
    TREE_START,
)
from omkl.algorithms.graph_mkl.problem import Problem
from omkl.algorithms.graph_mkl.tree_fit import (
    LEAVES,
    NODES,
    Bytes,
    bin_numbers,
    counts_of,
    cut_points,
    grow,
    inputs_of,
    projected,
)
from omkl.algorithms.invariants import check_finite, demand, is_count, is_growing_count
from omkl.arrays import Index, Matrix, Tensor, Vector

LARGEST_FIT = 2**26  # numbers that a fit may take beside those that a file contains
TYPES = {"feature": np.intp, "cut_counts": np.intp, "bins": np.uint8}  # of the arrays that are not of float64


class Trees(NamedTuple):
    """Arrays are empty until the first fit is near. `[which]` is one of two ensembles of T trees each."""

    feature: Index  # (2, T, NODES)  by which a node splits
    threshold: Tensor  # (2, T, NODES)  rows whose value is not below it go right
    value: Tensor  # (2, T, LEAVES, K)
    total: Tensor  # (2, T, LEAVES)  of the weighted residuals of a leaf's rows; for labels (2, 0, LEAVES)
    weight: Tensor  # (2, T, LEAVES)  of a leaf's rows; the same
    base: Matrix  # (2, K)  what is predicted before the first tree
    ridge: Vector  # (2,)  weight of residual 0 that every leaf begins with
    cuts: Matrix  # (d, TREE_BINS - 1)  thresholds between bins, of the fit that is running
    cut_counts: Index  # (d,)
    bins: Bytes  # (C, d)  of the rows that the fit is made on
    fitted: Matrix  # (C, K)  what the trees so far predict for them
    active: int  # the ensemble that predicts; -1: none
    rows: int  # that the fit is made on, those before row `started`; 0: no fit is running
    unit: int  # of the fit's work, the next one
    started: int  # rows of the archive when the last fit began
    grown: int  # trees of all fits so far


def init(problem: Problem) -> Trees:
    return with_arrays(problem, 0, 0)


def with_arrays(problem: Problem, ensembles: int, rows: int) -> Trees:
    """Trees that have learned nothing, with arrays for so many ensembles and rows of a fit."""
    sizes = shapes(problem, ensembles, rows)
    arrays: dict[str, Any] = {name: np.zeros(shape, TYPES.get(name, np.float64)) for name, shape in sizes.items()}
    return Trees(**arrays, active=-1, rows=0, unit=0, started=0, grown=0)


def shapes(problem: Problem, ensembles: int, rows: int) -> dict[str, tuple[int, ...]]:
    """The shape of every array for so many ensembles and rows of a fit."""
    T, K, d = problem.trees, problem.K, problem.V.shape[1] if ensembles else 0
    online = T if problem.task == "regression" else 0
    return {
        "feature": (ensembles, T, NODES),
        "threshold": (ensembles, T, NODES),
        "value": (ensembles, T, LEAVES, K),
        "total": (ensembles, online, LEAVES),
        "weight": (ensembles, online, LEAVES),
        "base": (ensembles, K),
        "ridge": (ensembles,),
        "cuts": (d, TREE_BINS - 1),
        "cut_counts": (d,),
        "bins": (rows, problem.V.shape[1]),
        "fitted": (rows, K),
    }


def ready(trees: Trees) -> bool:
    """Whether there is an ensemble that predicts."""
    return trees.active >= 0


def restarted(problem: Problem, trees: Trees) -> Trees:
    """Nothing learned: the stream has changed."""
    return trees._replace(active=-1, rows=0, unit=0, started=0)


# Room


def wanted_rows(problem: Problem, archive: Archive) -> int:
    """Most rows of a fit that may begin after the next row."""
    if problem.trees == 0 or archive.rows + 1 < TREE_START:
        return 0
    return min(len(archive.y), 3 * problem.archive // 4)  # (G76)


def has_room(problem: Problem, trees: Trees, archive: Archive) -> bool:
    """Whether a row can be learned without larger arrays."""
    return len(trees.fitted) >= wanted_rows(problem, archive)


def enlarged(problem: Problem, trees: Trees, archive: Archive) -> Trees:
    """The same with larger arrays."""
    new = with_arrays(problem, 2, wanted_rows(problem, archive))
    n = len(trees.fitted)
    new.bins[:n], new.fitted[:n] = trees.bins, trees.fitted
    if len(trees.ridge):
        return trees._replace(bins=new.bins, fitted=new.fitted)
    return new._replace(active=trees.active, rows=trees.rows, unit=trees.unit, started=trees.started, grown=trees.grown)


# Predictions


def leaves_of(trees: Trees, which: int, x: Vector) -> Index:
    """(T,): the leaf of every tree that a row falls into."""
    feature, threshold = trees.feature[which], trees.threshold[which]
    each, node = np.arange(len(feature)), np.zeros(len(feature), np.intp)
    for level in range(TREE_DEPTH):
        at = 2**level - 1 + node
        node = 2 * node + (x[feature[each, at]] >= threshold[each, at])  # (G75)
    return node


def predict(problem: Problem, trees: Trees, x: Vector) -> Vector:
    """(K,): a number, or logits of the labels, for an unscaled row."""
    leaf = leaves_of(trees, trees.active, x)
    mean: Vector = trees.base[trees.active].copy()
    for t in range(problem.trees):
        mean += trees.value[trees.active, t, leaf[t]]  # (G75)
    return mean


def learn(problem: Problem, trees: Trees, x: Vector, y: float, weight: float) -> Trees:
    """After one row: for numbers, the leaves that it falls into have one row more."""
    return show(problem, copied(trees), trees.active, x, y, weight) if problem.task == "regression" else trees


def copied(trees: Trees) -> Trees:
    return trees._replace(value=trees.value.copy(), total=trees.total.copy(), weight=trees.weight.copy())


def show(problem: Problem, trees: Trees, which: int, x: Vector, y: float, weight: float) -> Trees:
    """A row for the leaves of an ensemble, whose arrays are written into."""
    leaf = leaves_of(trees, which, x)
    mean = trees.base[which, 0]
    for t in range(problem.trees):
        place = which, t, leaf[t]
        residual = y - mean  # (G82)
        mean = mean + trees.value[place][0]
        trees.total[place] += weight * residual  # (G82)
        trees.weight[place] += weight  # (G82)
        trees.value[place] = TREE_RATE * trees.total[place] / (trees.weight[place] + trees.ridge[which])  # (G82)
    return trees


# Fits


def advance(problem: Problem, trees: Trees, archive: Archive) -> Trees:
    """After a row was appended to the archive: a few units of the fit that is running or due."""
    if trees.rows == 0:
        n = min(archive.rows, wanted_rows(problem, archive), len(trees.fitted))
        if n < TREE_START or not is_due(problem, trees, archive):
            return trees
        trees = trees._replace(rows=n, unit=0, started=archive.rows)
    units = problem.V.shape[1] + problem.trees
    for _ in range(-(-TREE_SPREAD * units // trees.rows)):  # (G77)
        trees = after_unit(problem, trees, archive)
        if trees.rows == 0:
            break
    return trees


def is_due(problem: Problem, trees: Trees, archive: Archive) -> bool:
    """Whether enough rows have come since the last fit began."""
    growth = TREE_GROWTH[problem.task == "classification"]
    return archive.rows - trees.started >= min(growth * trees.started, TREE_REFRESH * problem.archive)  # (G76)


def places_of(trees: Trees, archive: Archive) -> Index:
    """(rows,): where the rows of the fit stand in the archive."""
    return np.arange(trees.started - trees.rows, trees.started) % len(archive.y)


def after_unit(problem: Problem, trees: Trees, archive: Archive) -> Trees:
    k = trees.unit
    d = problem.V.shape[1]
    trees = trees._replace(unit=k + 1)
    trees = with_bins(trees, archive, k) if k < d else with_tree(problem, trees, archive, k - d)
    return finished(problem, trees, archive) if trees.unit >= d + problem.trees else trees


def with_bins(trees: Trees, archive: Archive, k: int) -> Trees:
    """With the bins of input k."""
    values = archive.X[places_of(trees, archive), k]
    cuts, cut_counts, bins = trees.cuts.copy(), trees.cut_counts.copy(), trees.bins.copy()
    points = cut_points(values)
    cuts[k, : len(points)], cut_counts[k] = points, len(points)
    bins[: trees.rows, k] = bin_numbers(points, values)
    return trees._replace(cuts=cuts, cut_counts=cut_counts, bins=bins)


def base_of(targets: Matrix, weight: Vector, labels: bool) -> Vector:
    """(K,): the mean target, or logits of the labels' shares."""
    mean: Vector = np.cumsum(weight[:, None] * targets, axis=0)[-1] / np.cumsum(weight)[-1]  # (G78)
    return np.log(np.maximum(mean, 0.5 / (len(weight) + targets.shape[1]))) if labels else mean  # (G78)


def with_tree(problem: Problem, trees: Trees, archive: Archive, t: int) -> Trees:
    """With tree t of the ensemble that is being fitted; without the fit, if a number is not finite."""
    n, which, labels = trees.rows, new_ensemble(trees), problem.task == "classification"
    places = places_of(trees, archive)
    y, weight = archive.y[places], archive.weight[places]
    targets = np.eye(problem.K)[y.astype(np.intp)] if labels else y[:, None]
    base, fitted, mean_weight = trees.base, trees.fitted.copy(), np.cumsum(weight)[-1] / n
    if t == 0:
        base = base.copy()
        base[which] = base_of(targets, weight, labels)
        fitted[:n] = base[which]
    probability = softmax(fitted[:n]) if labels else fitted[:n]
    residual = weight[:, None] * (targets - probability)  # (G79)
    curvature = weight[:, None] * probability * (1 - probability) if labels else weight[:, None]  # (G79)
    usable = np.flatnonzero(trees.cut_counts)
    size = float(np.abs(weight[:, None] * targets).max())
    counts = counts_of(projected(residual, trees.grown, labels), weight, mean_weight, size)
    tree = grow(trees.bins[:n], trees.cuts, inputs_of(trees.grown, usable), counts)
    total = np.stack([np.bincount(tree.leaf, a, LEAVES) for a in residual.T], axis=1)
    whole = np.stack([np.bincount(tree.leaf, a, LEAVES) for a in curvature.T], axis=1)
    rate = TREE_RATE * (problem.K - 1) / problem.K if labels else TREE_RATE  # (G80)
    ridge = mean_weight * (TREE_LABEL_RIDGE if labels else TREE_RIDGE)  # (G80)
    value = rate * total / (whole + ridge)  # (G80)
    if not np.isfinite(value).all():
        return trees._replace(rows=0, unit=0)
    fitted[:n] += value[tree.leaf]  # (G81)
    feature, threshold, ridges = trees.feature.copy(), trees.threshold.copy(), trees.ridge.copy()
    feature[which, t], threshold[which, t], ridges[which] = tree.feature, tree.threshold, ridge
    trees = copied(trees)._replace(
        feature=feature, threshold=threshold, base=base, ridge=ridges, fitted=fitted, grown=trees.grown + 1
    )
    trees.value[which, t] = value
    if not labels:
        trees.total[which, t], trees.weight[which, t] = total[:, 0], whole[:, 0]
    return trees


def new_ensemble(trees: Trees) -> int:
    return 1 if trees.active == 0 else 0


def softmax(logits: Matrix) -> Matrix:
    shares: Matrix = np.exp(logits - logits.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    return shares


def finished(problem: Problem, trees: Trees, archive: Archive) -> Trees:
    """The new ensemble learns the rows that have come since the fit began, and then predicts."""
    which = new_ensemble(trees)
    if problem.task == "regression":
        trees = copied(trees)
        for row in range(max(trees.started, archive.rows - len(archive.y)), archive.rows):
            j = row % len(archive.y)
            trees = show(problem, trees, which, archive.X[j], archive.y[j], archive.weight[j])
    return trees._replace(active=which, rows=0, unit=0)


# What a file may claim


def numbers_of_a_fit(problem: Problem, archive: Archive) -> int:
    """About how many numbers a fit to the rows that there is room for takes, beside those that do not depend on K."""
    rows = min(len(archive.y), 3 * problem.archive // 4)
    return (2 * problem.trees * LEAVES + 2 * rows) * problem.K if problem.trees else 0


def check(problem: Problem, trees: Trees, archive: Archive) -> None:
    ensembles, rows = len(trees.ridge), len(trees.fitted)
    demand(ensembles == 2 or ensembles == rows == 0, "there must be two ensembles of trees, or none yet")
    demand(rows <= problem.archive, "a fit of trees is made on rows of the archive")
    for name, shape in shapes(problem, ensembles, rows).items():
        found = getattr(trees, name)
        known = isinstance(found, np.ndarray) and found.dtype == TYPES.get(name, np.float64)
        demand(known, f"{name} of the trees is no such array")
        demand(found.shape == shape, f"{name} of the trees does not fit the problem")
        check_finite(found, name)
    there = trees.value.size + trees.fitted.size
    demand(
        numbers_of_a_fit(problem, archive) <= there + LARGEST_FIT, "the trees of so many labels need too much memory"
    )
    d = problem.V.shape[1]
    demand(bool(((trees.feature >= 0) & (trees.feature < d)).all()), "a tree splits by an input that is not there")
    demand(bool(((trees.cut_counts >= 0) & (trees.cut_counts < TREE_BINS)).all()), "an input has too many bins")
    demand(bool((trees.bins < TREE_BINS).all()), "a value is in a bin that is not there")
    demand(bool((trees.weight >= 0).all() and (trees.ridge >= 0).all()), "the weight of a leaf is negative")
    demand(trees.active in (-1, 0, 1) and type(trees.active) is int, "there are two ensembles of trees")
    demand(trees.active < 0 or ensembles == 2, "there is no ensemble of trees that predicts")
    counts = (trees.rows, trees.unit, trees.started, trees.grown)
    demand(all(is_count(n) for n in counts), "counts of a fit must be counts")
    demand(is_growing_count(trees.grown), "counts of a fit must be counts")
    demand(trees.rows <= min(rows, len(archive.y), trees.started), "a fit of trees is made on rows of the archive")
    demand(trees.rows == 0 or trees.rows >= TREE_START, "a fit of trees is made on too few rows")
    demand(trees.unit < d + problem.trees or trees.unit == 0, "a fit of trees has no such unit")
    demand(trees.started <= archive.rows, "a fit of trees began with rows that have not come")
