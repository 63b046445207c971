"""Chunks of rows: for one learner, or for several with a target each."""

import warnings
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np

from omkl import engine
from omkl.algorithms.base import Algorithm, Shape
from omkl.algorithms.descent import TOO_FAR
from omkl.algorithms.runner import ReferenceRunner
from omkl.arrays import Matrix, Tensor, Vector
from omkl.errors import BudgetWarning, DivergenceError
from omkl.lock import Locked, ModelLock


class LearnsChunks(Locked):
    """A learner with a generator of random numbers and what runs its algorithm."""

    algorithm: Algorithm[Any, Any]
    problem: Any
    shape: Shape
    evaluations: int
    _runner: engine.Runner | engine.GrowingRunner | ReferenceRunner[Any, Any]
    _compiled: engine.Engine | None
    _isa: str | None
    _pcg: np.random.PCG64
    _rng: np.random.Generator
    _uniforms: int

    def lock(self) -> ModelLock:
        """For who uses several learners at a time."""
        return self._lock

    def run_unchecked(self, X: Matrix, y: Vector, weight: Vector | None = None, extra: Matrix | None = None) -> Matrix:
        """`extra`, (rows, shape.extras), is filled with the algorithm's further values about each round."""
        with self._lock:
            out = np.empty(len(X) * self.shape.outputs)
            self._return_unused()
            uniforms = self._rng.random(len(X) * self._uniforms)
            flat = None if extra is None else extra.reshape(-1)
            before = self._runner.t
            try:
                done, evaluated = self._runner.run(X, y, uniforms, weight, out, flat)
            finally:  # Ctrl-C takes effect when the engine returns, before it is known what it returned
                left = len(X) - (self._runner.t - before)
                if left:
                    self._pcg.advance(-left * self._uniforms)
            self.evaluations += evaluated
            if done < len(X):
                raise self._diverged(X[done], done)
            self._warn_if_full(len(X))
        return out.reshape(-1, self.shape.outputs) if self.algorithm.distribution else out

    def _return_unused(self) -> None:
        """Turn the generator back; single rows draw uniform numbers ahead."""
        if unused := self._runner.unused:
            self._pcg.advance(-unused)
            self._runner.supply(np.empty(0))

    def _diverged(self, x: Vector, row: int) -> DivergenceError:
        advice = self.algorithm.divergence_advice(self.problem)
        if not np.abs(x).max(initial=0.0) < TOO_FAR:
            advice = f"inputs as large as {np.abs(x).max():.3g} have no usable features; scale them"
        return DivergenceError.of(
            self.algorithm.name, self._runner.t, row, f"a prediction is beyond {TOO_FAR:g}; {advice}"
        )

    def _warn_if_full(self, rows: int) -> None:
        budget, t = self.shape.budget, self._runner.t
        if budget is not None and t - rows < budget <= t:
            warnings.warn(BudgetWarning.of(self.algorithm.name, budget), stacklevel=3)


def run_together(
    learners: Sequence[LearnsChunks], X: Matrix, Y: Matrix, weight: Vector | None = None, extra: Tensor | None = None
) -> Tensor:
    """What `run_unchecked` returns for each of the learners with its row of Y, and its part of `extra`.

    The results are the same. Where the learners have one problem, the engine may do what does not depend on the target
    once for all of them.
    """
    with ExitStack() as locks:
        for learner in learners:
            locks.enter_context(learner.lock())
        runners = shared_runners(learners)
        if not runners:
            parts = [None] * len(learners) if extra is None else list(extra)
            return np.stack([
                learner.run_unchecked(X, y, weight, part) for learner, y, part in zip(learners, Y, parts, strict=True)
            ])  # fmt: skip
        return _run(learners, runners, X, Y, weight, extra)


def shared_runners(learners: Sequence[LearnsChunks]) -> list[engine.Runner]:
    """The runners of learners that share work; none where nothing is shared."""
    first = learners[0]
    if first._compiled is None or not first._compiled.learns_several or len(learners) == 1:
        return []
    alike = all(learner.problem is first.problem and learner._isa == first._isa for learner in learners)
    runners = [learner._runner for learner in learners if isinstance(learner._runner, engine.Runner)]
    return runners if alike and len(runners) == len(learners) else []


def _run(
    learners: Sequence[LearnsChunks],
    runners: list[engine.Runner],
    X: Matrix,
    Y: Matrix,
    weight: Vector | None,
    extra: Tensor | None,
) -> Tensor:
    rows, n, outputs = len(X), len(learners), learners[0].shape.outputs
    out = np.empty((n, rows * outputs))
    for learner in learners:
        learner._return_unused()
    before = [runner.t for runner in runners]
    uniforms = np.stack([learner._rng.random(rows * learner._uniforms) for learner in learners])
    try:
        progress = engine.run_several(
            runners, X, Y, uniforms, weight, out, None if extra is None else extra.reshape(n, -1)
        )
    finally:  # as in `run_unchecked`
        for learner, runner, t in zip(learners, runners, before, strict=True):
            if left := rows - (runner.t - t):
                learner._pcg.advance(-left * learner._uniforms)
    for learner, (_, evaluated) in zip(learners, progress.tolist(), strict=True):
        learner.evaluations += evaluated
    for learner, (done, _) in zip(learners, progress.tolist(), strict=True):
        if done < rows:
            raise learner._diverged(X[done], done)
    return out.reshape(n, rows, outputs)
