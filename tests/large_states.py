"""States of GraphMKL whose large experts are in every stage of their fits, for tests of what files may claim."""

from collections.abc import Iterator

import numpy as np

import omkl
from omkl import algorithms
from omkl.algorithms.graph_mkl import wide
from omkl.algorithms.graph_mkl.large import Large
from omkl.algorithms.graph_mkl.problem import Problem

STAGES = ("idle", "gather", "update", "factor", "forward", "backward")
MOST = 4000  # rows until a fit must have been seen
D = 2


def small_problem(task: str = "regression", labels: int = 1, trees: int = 8, archive: int = 512) -> Problem:
    """Few trees and a short archive, which is soon full, beside enough wide features for fits that take many rows."""
    algorithm = algorithms.get("graph-mkl")
    settings = algorithm.settings(
        kernels=[omkl.Gaussian(0.5)], n_features=2, out_degree=1, budget="standard", task=task, outputs=labels
    )
    problem = algorithms.problem("graph-mkl", settings, d=D)
    return problem._replace(trees=trees, archive=archive)


def rows(n: int, labels: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D))
    y = np.sin(3 * X[:, 0]) * X[:, 1]
    return X, y if labels == 1 else (np.argsort(np.argsort(y)) * labels // n).astype(float)


def learned(problem: Problem, n: int, backend: str = "engine") -> omkl.Online:
    online = omkl.Online("graph-mkl", problem, 0, backend=backend)
    online.run(*rows(n, problem.K))
    return online


def with_large(online: omkl.Online, large: Large) -> omkl.Online:
    now = online.checkpoint()
    out = omkl.Online("graph-mkl", online.problem, 0, backend=online.backend, checkpoint=now)
    out.restore(now._replace(state=now.state._replace(large=large)))
    return out


def in_stage(online: omkl.Online, stage: int) -> omkl.Online:
    """The same with the wide least squares in this stage, and some way into it."""
    problem, state = online.problem, online.checkpoint().state
    scaling, large = state.sets[state.incumbent].scaling, state.large
    work = {
        wide.GATHER: lambda w: wide.gathered(problem, w, large.archive, scaling),
        wide.UPDATE: wide.updated, wide.FACTOR: wide.factored,
        wide.FORWARD: lambda w: wide.forward(problem, w), wide.BACKWARD: lambda w: wide.backward(problem, w),
    }  # fmt: skip
    now, there = large.wide, 0
    for _ in range(10**4):
        if now.stage == wide.IDLE:
            # as if more rows had come since the last block, or the last solution
            now = now._replace(solved=0, taken=min(now.taken, large.archive.rows - wide.WIDE_BLOCK))
            now = now._replace(stage=wide.FACTOR if stage >= wide.FACTOR else wide.GATHER, step=0, panel=0)
        there = there + 1 if now.stage == stage else 0
        if there == 2:
            return with_large(online, large._replace(wide=now))
        names = wide.CHANGED[now.stage]
        now = work[now.stage](now._replace(**{name: getattr(now, name).copy() for name in names}))
    raise AssertionError(f"the wide least squares never come to stage {STAGES[stage]}")


def in_a_fit(problem: Problem) -> omkl.Online:
    """The learner after a row at which a fit of the trees is not complete."""
    X, y = rows(MOST, problem.K)
    online = omkl.Online("graph-mkl", problem, 0)
    online.run(X[:500], y[:500])
    for x, target in zip(X[500:], y[500:].tolist(), strict=True):
        online.learn(x, target)
        trees = online.checkpoint().state.large.trees
        if trees.rows and trees.unit > D:
            return online
    raise AssertionError("no fit of trees takes more than one row")


def large_states() -> Iterator[tuple[str, omkl.Online]]:
    """(name, learner): in the middle of a fit of trees, in every stage of the wide least squares, with a full archive,
    and with very few rows."""
    for task, labels in (("regression", 1), ("classification", 2), ("classification", 5)):
        problem = small_problem(task, labels)
        name = f"{task} {labels}"
        full = learned(problem, 1100)
        assert full.checkpoint().state.large.archive.rows > problem.archive
        yield f"{name} archive full", full
        yield f"{name} trees in a fit", in_a_fit(problem)
        for stage in range(1, len(STAGES)):
            yield f"{name} wide {STAGES[stage]}", in_stage(full, stage)
    yield "young", learned(small_problem(), 70)
    few = small_problem(trees=2, archive=256)
    few = few._replace(V_wide=np.ascontiguousarray(few.V_wide[..., :128]))
    before = in_stage(learned(few, 600), wide.FACTOR).checkpoint()
    yield "numpy", omkl.Online("graph-mkl", few, 0, backend="numpy", checkpoint=before)
