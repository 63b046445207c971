"""GraphMKL's archive: the rows that the large experts are fitted to."""

from typing import NamedTuple

import numpy as np

from omkl.algorithms.graph_mkl.constants import ARCHIVE_START, LARGEST_VALUE, MAX_COPIED_WEIGHT, MIN_WEIGHT
from omkl.algorithms.graph_mkl.problem import Problem
from omkl.algorithms.invariants import check_finite, demand, is_growing_count
from omkl.arrays import Gappy, Matrix, Vector


class Archive(NamedTuple):
    """Row number r stands in place r mod capacity; the capacity doubles until it is that of the problem."""

    X: Gappy  # (capacity, d)  unscaled inputs, NaN where missing
    y: Vector  # (capacity,)  targets, or the labels' numbers
    weight: Vector  # (capacity,)
    rows: int  # that it has been given, also those that have been overwritten


def init(problem: Problem) -> Archive:
    n = min(ARCHIVE_START, problem.archive)
    return Archive(np.zeros((n, problem.V.shape[1])), np.zeros(n), np.zeros(n), 0)


def has_room(problem: Problem, archive: Archive) -> bool:
    """Whether a row can be appended without larger arrays."""
    return archive.rows < len(archive.y) or len(archive.y) >= problem.archive


def enlarged(problem: Problem, archive: Archive) -> Archive:
    """Twice as large, for an archive that is full and has not lost a row yet."""
    more = min(2 * len(archive.y), problem.archive) - len(archive.y)
    return archive._replace(
        X=np.pad(archive.X, ((0, more), (0, 0))), y=np.pad(archive.y, (0, more)),
        weight=np.pad(archive.weight, (0, more)),
    )  # fmt: skip


def append(archive: Archive, x: Vector, y: float, weight: float) -> Archive:
    """With one more row, in place of the oldest where there is no other."""
    if len(archive.y) == 0:
        return archive
    X, targets, weights = archive.X.copy(), archive.y.copy(), archive.weight.copy()
    j = archive.rows % len(targets)
    X[j], targets[j], weights[j] = x, y, max(weight, MIN_WEIGHT)
    return Archive(X, targets, weights, archive.rows + 1)


def heavier(archive: Archive, weight: float) -> Archive:
    """After a copy of the last row."""
    if archive.rows == 0:
        return archive
    weights = archive.weight.copy()
    j = (archive.rows - 1) % len(weights)
    weights[j] = min(weights[j] + weight, MAX_COPIED_WEIGHT)
    return archive._replace(weight=weights)


def cut(archive: Archive, rows: int) -> Archive:
    """With its last rows alone, as if it had begun with them."""
    capacity = len(archive.y)
    rows = min(rows, archive.rows, capacity)
    if capacity == 0:
        return archive
    last = np.arange(archive.rows - rows, archive.rows) % capacity
    out = Archive(np.zeros_like(archive.X), np.zeros(capacity), np.zeros(capacity), rows)
    out.X[:rows], out.y[:rows], out.weight[:rows] = archive.X[last], archive.y[last], archive.weight[last]
    return out


def grown(problem: Problem, archive: Archive) -> Archive:
    """For a problem with more features, which have been missing from all rows."""
    X = np.full((len(archive.y), problem.V.shape[1]), np.nan)
    X[:, : archive.X.shape[1]] = archive.X
    return archive._replace(X=X)


def check(problem: Problem, archive: Archive) -> None:
    capacity = len(archive.y)
    size = min(ARCHIVE_START, problem.archive)
    while size < capacity and size < problem.archive:
        size = min(2 * size, problem.archive)
    demand(capacity == size, "the archive is of no size that it can have")
    demand(archive.X.shape == (capacity, problem.V.shape[1]), "rows of the archive do not fit the problem")
    demand(archive.weight.shape == archive.y.shape == (capacity,), "there must be a target and a weight for each row")
    demand(is_growing_count(archive.rows), "the number of rows must be a count")
    demand(archive.rows <= capacity or capacity == problem.archive, "the archive has lost rows too soon")
    check_finite(archive.y, "the targets of the archive")
    check_finite(archive.weight, "the weights of the archive")
    used = min(archive.rows, capacity)
    weight = archive.weight[:used]
    demand(bool(((weight >= MIN_WEIGHT) & (weight <= MAX_COPIED_WEIGHT)).all()), "the weight of a row is out of range")
    for values in (archive.X, archive.y):
        demand(not bool((np.abs(values) > LARGEST_VALUE).any()), "a row has a value that is too large")
    if problem.task == "classification":
        labels = archive.y
        known = (labels >= 0) & (labels < problem.K) & (labels == np.floor(labels))
        demand(bool(known.all()), "a row of the archive has no known label")


def newest(archive: Archive, rows: int) -> tuple[Matrix, Vector, Vector]:
    """(X, y, weights) of the last rows, the oldest first."""
    places = np.arange(archive.rows - rows, archive.rows) % max(len(archive.y), 1)
    return archive.X[places], archive.y[places], archive.weight[places]
