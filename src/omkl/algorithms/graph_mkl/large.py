"""GraphMKL's large experts: boosted trees and wide least squares, fitted to the rows of an archive.

They belong to the incumbent. Both are fitted anew from time to time, a little of the work with every row; in between
the other experts learn what they miss. They are evaluated in every round as soon as there is a first fit.
"""

from typing import NamedTuple

import numpy as np

from omkl.algorithms.graph_mkl import archive as rows
from omkl.algorithms.graph_mkl import trees, wide
from omkl.algorithms.graph_mkl.archive import Archive
from omkl.algorithms.graph_mkl.constants import LARGE_LOSS_ROUNDS, WIDE_FREE, WIDE_GAIN, WIDE_USEFUL
from omkl.algorithms.graph_mkl.problem import Problem
from omkl.algorithms.graph_mkl.scaling import Scaling, scaled
from omkl.algorithms.graph_mkl.trees import Trees
from omkl.algorithms.graph_mkl.wide import Wide
from omkl.algorithms.invariants import check_finite, demand, is_count
from omkl.arrays import Mask, Matrix, Vector


class Large(NamedTuple):
    archive: Archive
    trees: Trees
    wide: Wide
    loss: Vector  # (large + 1,)  means of the losses of the large experts, and of the prediction
    rounds: int  # behind these means


class Forecast(NamedTuple):
    """What the large experts predict for one row."""

    mean: Matrix  # (large, K)
    ready: Mask  # (large,)


def init(problem: Problem) -> Large:
    return Large(rows.init(problem), trees.init(problem), wide.init(problem), np.zeros(problem.large + 1), 0)


def ready(problem: Problem, large: Large) -> Mask:
    """(large,): which of the large experts are there."""
    some = np.full(problem.large, wide.ready(large.wide))
    if problem.trees:
        some[0] = trees.ready(large.trees)
    return some


def predict(problem: Problem, large: Large, scaling: Scaling, x: Vector) -> Forecast:
    """`x`: the dense inputs of a row, unscaled."""
    mean = np.zeros((problem.large, problem.K))
    if trees.ready(large.trees):
        mean[0] = trees.predict(problem, large.trees, x)
    if wide.ready(large.wide):
        mean[problem.large - problem.wide_experts :] = wide.predict(problem, large.wide, scaled(scaling, x), scaling)
    return Forecast(mean, ready(problem, large))


# Learning


def has_room(problem: Problem, large: Large) -> bool:
    return (
        rows.has_room(problem, large.archive)
        and trees.has_room(problem, large.trees, large.archive)
        and wide.has_room(problem, large.wide, large.archive)
    )


def enlarged(problem: Problem, large: Large) -> Large:
    """With larger arrays where something has no room, so that one more row can be learned."""
    if not rows.has_room(problem, large.archive):
        large = large._replace(archive=rows.enlarged(problem, large.archive))
    if not trees.has_room(problem, large.trees, large.archive):
        large = large._replace(trees=trees.enlarged(problem, large.trees, large.archive))
    if not wide.has_room(problem, large.wide, large.archive):
        large = large._replace(wide=wide.enlarged(problem, large.wide, large.archive))
    return large


def learn(
    problem: Problem, large: Large, scaling: Scaling, x: Vector, y: float, weight: float, losses: Vector
) -> Large:
    """After one row; `losses`, (large + 1,), are NaN for experts that are not there yet."""
    if problem.large == 0:
        return large
    large = judged(large, losses)
    if trees.ready(large.trees):
        large = large._replace(trees=trees.learn(problem, large.trees, x, y, weight))
    archive = rows.append(large.archive, x, y, weight)
    useful = is_useful(problem, large)
    return large._replace(
        archive=archive,
        trees=trees.advance(problem, large.trees, archive),
        wide=wide.advance(problem, large.wide, archive, scaling, useful),
    )


def judged(large: Large, losses: Vector) -> Large:
    """The means of the losses after one more round, in which all large experts were there."""
    if np.isnan(losses).any():
        return large
    n = large.rounds + 1
    return large._replace(
        loss=large.loss + max(1 / LARGE_LOSS_ROUNDS, 1 / n) * (losses - large.loss), rounds=n
    )  # (G65)


def is_useful(problem: Problem, large: Large) -> bool:
    """Whether wide least squares deserve more features.

    A few they always get. More are for those that come close enough to the prediction, and with which a larger ridge,
    which leaves less to the features, is worse: what is left of their error is not noise.
    """
    if large.wide.features < WIDE_FREE:
        return True
    if large.rounds == 0 or problem.wide_experts == 0:
        return False
    least, *others = large.loss[-1 - problem.wide_experts : -1]
    return bool(least <= WIDE_GAIN * min(others) and least <= WIDE_USEFUL * large.loss[-1])  # (G66)


def restarted(problem: Problem, large: Large, age: int) -> Large:
    """For a new incumbent that has learned the last `age` rows: the large experts begin again, with these."""
    if problem.large == 0:
        return large
    return Large(
        rows.cut(large.archive, age), trees.restarted(problem, large.trees), wide.restarted(problem, large.wide),
        np.zeros(problem.large + 1), 0,
    )  # fmt: skip


def grown(problem: Problem, large: Large) -> Large:
    """For a problem with more features or labels: rows are kept, and fits begin again."""
    new = init(problem)
    return new if problem.large == 0 else new._replace(archive=rows.grown(problem, large.archive))


def check(problem: Problem, large: Large) -> None:
    demand(is_count(large.rounds), "the number of rounds must be a count")
    demand(large.loss.shape == (problem.large + 1,), "there must be a loss for each large expert")
    check_finite(large.loss, "loss")
    rows.check(problem, large.archive)
    trees.check(problem, large.trees, large.archive)
    wide.check(problem, large.wide, large.archive)
