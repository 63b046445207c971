"""Online: an algorithm with its problem, its state and its random generator; the one object that changes."""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from omkl import algorithms, engine, validation
from omkl.algorithms.base import AlgorithmSettings
from omkl.algorithms.descent import TOO_FAR
from omkl.algorithms.growth import grown
from omkl.algorithms.runner import ReferenceRunner
from omkl.arrays import Matrix, Vector, copied
from omkl.generator import PCG64State, pcg64
from omkl.lock import ModelLock, locked
from omkl.together import LearnsChunks

ROUNDS_AHEAD = 64  # rounds whose uniform numbers are drawn at a time when rows are learned one by one
Backend = Literal["engine", "numpy"]


class Checkpoint(NamedTuple):
    """All that has been learned: with the same algorithm and problem, learning continues from here."""

    state: Any  # the algorithm's State
    generator: PCG64State
    evaluations: int


class Online(LearnsChunks):
    """A learner on its stream: predict, see the target, learn.

    Methods may be called from several threads: calls take turns, and none sees half a round, or half a chunk.

    Parameters
    ----------
    algorithm
        Its name, one of `omkl.algorithms.names()`, such as "graph-mkl", "sfg-mkl" or "raker".
    problem
        The algorithm's Problem; `Online.make` builds it from settings.
    rng
        The Generator, or a seed for one, from which the algorithm's random choices are drawn.
    backend
        "engine" for the compiled implementation, "numpy" for the reference one; results agree up to rounding.
    checkpoint
        Continue from here instead of from the start.
    isa, compiled
        An instruction set other than the best the machine has; a problem compiled before, to be shared.

    >>> from omkl import Settings
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (2000, 2)); y = np.sin(3 * X[:, 0]) + X[:, 1] ** 2
    >>> online = Online.make("sfg-mkl", Settings(), d=2, seed=1)
    >>> errors = (online.run(X, y) - y) ** 2
    >>> bool(errors[-500:].mean() < errors[:500].mean() / 3)
    True
    >>> online.t, online.predict([0.5, 0.0]) == online.predict([0.5, 0.0])
    (2000, True)
    """

    def __init__(
        self,
        algorithm: str,
        problem: NamedTuple,
        rng: np.random.Generator | int | None = None,
        *,
        backend: Backend = "engine",
        checkpoint: Checkpoint | None = None,
        isa: str | None = None,
        compiled: engine.Engine | None = None,
    ) -> None:
        self.algorithm = algorithms.get(algorithm)
        if backend not in ("engine", "numpy"):
            raise ValueError(f"backend must be engine or numpy, got {backend!r}")
        native = engine.supports(self.algorithm.name, self.algorithm.native, problem)
        self.backend: Backend = backend if native else "numpy"
        self._isa = isa
        self._lock = ModelLock()
        self._install(problem, rng, checkpoint, compiled)

    @classmethod
    def make(cls, algorithm: str, settings: AlgorithmSettings, d: int, seed: int = 0, **options: Any) -> Self:
        """A new learner for d features; `seed` decides its random features and its random choices."""
        return cls(algorithm, algorithms.problem(algorithm, settings, d, seed=seed), seed, **options)

    def _install(
        self,
        problem: NamedTuple,
        rng: np.random.Generator | int | None,
        checkpoint: Checkpoint | None,
        compiled: engine.Engine | None,
    ) -> None:
        """Everything is made before anything is changed: an error, such as too little memory, leaves all as it was."""
        algorithm = self.algorithm
        shape, uniforms = algorithm.shape(problem), algorithm.uniforms(problem)
        pcg = np.random.PCG64(0) if checkpoint else pcg64(rng)
        generator = np.random.Generator(pcg)
        if checkpoint is None:
            state, evaluations = algorithm.init(problem, generator.random(uniforms)), 0
        else:
            state, pcg.state, evaluations = checkpoint
        runner: engine.Runner | engine.GrowingRunner | ReferenceRunner[NamedTuple, NamedTuple]
        if self.backend == "engine":
            compiled = compiled or engine.compile_problem(algorithm.name, algorithm.native, problem, self._isa)
            runner = engine.runner(
                compiled, algorithm.native, problem, state, fresh=checkpoint is None, budget=shape.budget
            )
        else:
            runner = ReferenceRunner(algorithm, problem, state)
        self.problem: Any = problem  # its fields depend on the algorithm
        self.shape, self._uniforms = shape, uniforms
        self._pcg, self._rng = pcg, generator
        self.evaluations = evaluations
        self._compiled, self._runner = compiled, runner
        self._engine_checks_rows = self.backend == "engine" and not shape.missing
        self._target_is_a_number = shape.target == "number"

    # Predicting and learning

    def predict(self, x: ArrayLike) -> float | Vector:
        """The prediction for one sample, with the kernels that the next `learn` will evaluate.

        A number; for an algorithm that predicts distributions, mean and standard deviation, or the probabilities of
        the labels.
        """
        row = validation.one_row(x, self.shape.inputs)
        return self.predict_rows_unchecked(row[None])[0] if self.algorithm.distribution else self.predict_unchecked(row)

    def predict_rows(self, X: ArrayLike) -> Matrix:
        """Predictions for many samples from the present state; nothing is learned."""
        return self.predict_rows_unchecked(validation.many_rows(X, self.shape.inputs))

    def learn(self, x: ArrayLike, y: float, weight: float = 1.0) -> None:
        """Learn one sample. Input that cannot be learned is refused and changes nothing."""
        if not self._engine_checks_rows:
            x = validation.one_row(x, self.shape.inputs)
        kind, outputs = self.shape.target, self.shape.outputs
        if not -validation.LARGEST_TARGET <= y <= validation.LARGEST_TARGET or not (
            self._target_is_a_number or validation.is_target(y, kind, outputs)
        ):
            raise validation.wrong_target(y, kind, outputs)
        validation.one_weight(weight)
        try:
            self.learn_unchecked(x, y, weight)  # type: ignore[arg-type]  # the engine refuses what is not an array
        except TypeError:
            self.learn_unchecked(validation.one_row(x, self.shape.inputs), y, weight)

    def run(self, X: ArrayLike, y: ArrayLike, weight: ArrayLike | None = None) -> Matrix:
        """Predict, then learn, row after row; returns the predictions, each made before its row was learned.

        A chunk with a value that cannot be learned is refused whole. Where predictions diverge, the rows before are
        learned, the state is that of the last good round, and DivergenceError says so.
        """
        X = validation.many_rows(X, self.shape.inputs)
        y = validation.many_targets(y, len(X), self.shape.target, self.shape.outputs)
        return self.run_unchecked(X, y, None if weight is None else validation.many_weights(weight, len(X)))

    # The same for callers that have checked what they pass

    def predict_unchecked(self, x: Vector) -> float:
        """For algorithms that predict one number; `predict_rows_unchecked` is for all."""
        with self._lock:
            f = float(self._runner.predict(x))
        if not -TOO_FAR < f < TOO_FAR:
            raise self._diverged(x, 0)
        return f

    def predict_rows_unchecked(self, X: Matrix) -> Matrix:
        with self._lock:
            outputs = self.shape.outputs
            out = np.empty(len(X) * outputs)
            self._runner.predict_rows(X, out)
        if (bad := engine.first_not_finite(out)) >= 0:
            raise self._diverged(X[bad // outputs], bad // outputs)
        return out.reshape(-1, outputs) if self.algorithm.distribution else out

    def learn_unchecked(self, x: Vector, y: float, weight: float = 1.0) -> None:
        self._lock.acquire()  # a with statement takes twice as long
        try:
            evaluated = self._runner.learn(x, y, weight)
            if evaluated == engine.NO_UNIFORMS:
                self._runner.supply(self._rng.random(ROUNDS_AHEAD * self._uniforms))
                evaluated = self._runner.learn(x, y, weight)
            if evaluated == engine.NO_ROOM and isinstance(self._runner, engine.Runner):
                self._runner.make_room()
                evaluated = self._runner.learn(x, y, weight)
            if evaluated == engine.REFUSED:
                validation.one_row(x, self.shape.inputs)  # raises with the reason
            if evaluated < 0:
                raise self._diverged(x, 0)
            self.evaluations += evaluated
            if self.shape.budget is not None:
                self._warn_if_full(1)
        finally:
            self._lock.release()

    def run_whole(self, X: Matrix, y: Vector, weight: Vector | None = None, extra: Matrix | None = None) -> Matrix:
        """`run_unchecked`, of which all rows are learned or, where it raises, none."""
        before = None if len(X) <= 1 or self.cannot_diverge(X, y) else self.checkpoint()
        try:
            return self.run_unchecked(X, y, weight, extra)
        except BaseException:
            if before is not None:
                self.restore(before)
            raise

    def cannot_diverge(self, X: Matrix, y: Vector) -> bool:
        """Whether these rows are learned to the end, so that no copy of a large state is needed to undo them."""
        largest = validation.LARGEST_SAFE
        return self.algorithm.stable(self.problem) and not any((np.abs(a) > largest).any() for a in (X, y))

    # Inspecting

    @property
    def t(self) -> int:
        """Rounds so far."""
        with self._lock:
            return self._runner.t

    @property
    def state(self) -> Any:
        """A copy of the state, as the algorithm's module defines it."""
        return self.look(lambda _, state: copied(state))

    @locked
    def look(self, what: Callable[[Any, Any], Any]) -> Any:
        """What a function of problem and state returns."""
        return what(self.problem, self._runner.state)

    @property
    def kernel_weights(self) -> Vector:
        """(N,): the weight of every kernel in the prediction; they sum to at most 1."""
        return self.look(self.algorithm.kernel_weights)  # type: ignore[no-any-return]  # what the function returns

    @property
    def started(self) -> int | None:
        """The round in which what predicts now began to learn; None where the algorithm never replaces it."""
        return None if self.algorithm.started is None else self.look(self.algorithm.started)

    @property
    def extra(self) -> Vector:
        """(shape.extras,): the algorithm's further values about the next round, such as half widths of intervals."""
        out = np.empty(self.shape.extras)
        with self._lock:  # not `look`, which gathers the whole state
            self._runner.extra(out)
        return out

    @property
    def compiled(self) -> engine.Engine | None:
        """The problem as the engine sees it, None for the NumPy backend; any number of learners may share it."""
        return self._compiled

    # Saving and changing

    def checkpoint(self) -> Checkpoint:
        """Everything needed to continue later as if nothing had happened."""
        with self._lock:
            self._return_unused()
            return Checkpoint(copied(self._runner.state), self._pcg.state, self.evaluations)

    def restore(self, checkpoint: Checkpoint) -> None:
        """Return to where `checkpoint` was taken."""
        with self._lock:
            self._install(self.problem, None, checkpoint, self._compiled)

    def change_problem(self, problem: NamedTuple) -> None:
        """Continue with another problem, for instance one with a feature more; an error leaves all as it was."""
        self.become(self.with_problem(problem))

    @locked
    def with_problem(self, problem: NamedTuple) -> "Online":
        """An independent copy that continues with another problem; the state is grown to fit."""
        self._return_unused()
        state = grown(self.algorithm, self.problem, problem, self._runner.state)
        start = Checkpoint(state, self._pcg.state, self.evaluations)
        return Online(self.algorithm.name, problem, backend=self.backend, checkpoint=start, isa=self._isa)

    @locked
    def become(self, other: "Online") -> None:
        """Continue as `other` would, which must not be used any more. This cannot fail."""
        self.__dict__.update({name: value for name, value in other.__dict__.items() if name != "_lock"})

    @locked
    def copy(self) -> "Online":
        """An independent copy; the problem is shared, the state is not."""
        return self._on_same_problem(None, self.checkpoint())

    @locked
    def fresh_copy(self, rng: np.random.Generator | int | None) -> "Online":
        """A learner at its start that shares this one's problem and draws from `rng`."""
        return self._on_same_problem(rng, None)

    def _on_same_problem(self, rng: np.random.Generator | int | None, start: Checkpoint | None) -> "Online":
        own: dict[str, Any] = {"backend": self.backend, "isa": self._isa, "compiled": self._compiled}
        return Online(self.algorithm.name, self.problem, rng, checkpoint=start, **own)

    def __deepcopy__(self, memo: dict[int, object]) -> "Online":
        return self.copy()

    @locked
    def __getstate__(self) -> dict[str, object]:
        return {
            "algorithm": self.algorithm.name, "problem": self.problem, "backend": self.backend, "isa": self._isa,
            "checkpoint": self.checkpoint(),
        }  # fmt: skip

    def __setstate__(self, arguments: dict[str, Any]) -> None:
        self.__init__(**arguments)  # type: ignore[misc]  # unpickling constructs it again

    def __repr__(self) -> str:
        return f"Online({self.algorithm.name!r}, d={self.shape.inputs}, t={self.t}, backend={self.backend!r})"
