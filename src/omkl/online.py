"""Online = learner + problem + state + Generator: the one object that changes."""

import copy
import threading
import warnings
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from threadpoolctl import threadpool_limits

from omkl import engine
from omkl.algorithms import graph_mkl, omkl_gf, omkr, raker, rfomkr, sfg_mkl, sfg_mkl_r
from omkl.algorithms.descent import TOO_FAR
from omkl.arrays import Matrix, Vector
from omkl.errors import BudgetWarning, DivergenceError
from omkl.settings import LEARNERS, GraphSettings, Settings

ROUNDS: dict[str, Any] = {
    "omkr": omkr,
    "rfomkr": rfomkr,
    "raker": raker,
    "omkl-gf": omkl_gf,
    "sfg-mkl": sfg_mkl,
    "sfg-mkl-r": sfg_mkl_r,
    "graph-mkl": graph_mkl,
}
LARGEST_TARGET, LARGEST_WEIGHT = 1e100, 1e30  # whose squares and products are still finite
AHEAD = 64  # rounds that single rows draw uniforms for at a time
Backend = Literal["engine", "rounds"]


class Checkpoint(NamedTuple):
    """All that a learner has become: with the same learner and problem it goes on from here."""

    state: Any
    generator: dict[str, Any]  # NumPy's PCG64, as it describes itself
    evaluations: int


class Online:
    """A learner on its stream: predict, see the answer, learn.

    One thread may predict while another learns: calls take turns, and none sees half a round.

    Parameters
    ----------
    learner
        "omkr", "rfomkr", "raker", "omkl-gf", "sfg-mkl", "sfg-mkl-r" or "graph-mkl".
    problem
        The learner's Problem; `Online.make` builds it from `Settings`.
    rng
        The Generator, or a seed for one, that draws nodes and subsets.
    backend
        "engine" for the compiled rounds, "rounds" for the NumPy ones; the same results to rounding.
    checkpoint
        Go on from here instead of from the start.
    isa, compiled
        An instruction set other than the machine's best; a problem compiled before, to be shared.

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
        learner: str,
        problem: Any,
        rng: np.random.Generator | int | None = None,
        *,
        backend: Backend = "engine",
        checkpoint: Checkpoint | None = None,
        isa: str | None = None,
        compiled: Any = None,
    ) -> None:
        if learner not in ROUNDS:
            raise ValueError(f"learner must be one of {', '.join(LEARNERS)}, got {learner!r}")
        if backend not in ("engine", "rounds"):
            raise ValueError(f"backend must be engine or rounds, got {backend!r}")
        self.learner = learner
        self.backend: Backend = backend if engine.supports(learner, engine.NATIVE[learner], problem) else "rounds"
        self._isa = isa
        self._lock = threading.Lock()
        self._install(problem, rng, checkpoint, compiled)

    @classmethod
    def make(cls, learner: str, settings: Settings | GraphSettings, d: int, seed: int = 0, **options: Any) -> Self:
        """A new learner for d features; `seed` decides its random features and its draws."""
        return cls(learner, settings.problem(learner, d, seed=seed), seed, **options)

    def _install(
        self,
        problem: Any,
        rng: np.random.Generator | int | None,
        checkpoint: Checkpoint | None,
        compiled: Any,
    ) -> None:
        rounds = ROUNDS[self.learner]
        self.problem = problem
        self._draws: int = rounds.draws(problem)
        self._d: int = problem.d if self.learner == "omkr" else problem.V.shape[1]
        self._labels: bool = hasattr(problem, "descent") and problem.descent.loss != "squared"
        self._classes: int | None = problem.K if getattr(problem, "task", None) == "classification" else None
        self.width: int = (self._classes or 2) if self.learner == "graph-mkl" else 1
        self._budget: int | None = getattr(problem, "budget", None)
        self._pcg = np.random.PCG64(0) if checkpoint else pcg64(rng)
        self._rng = np.random.Generator(self._pcg)
        if checkpoint is None:
            state = rounds.init(problem, self._rng.random(self._draws))
            self.evaluations = 0
        else:
            state, generator, self.evaluations = checkpoint
            self._pcg.state = generator  # type: ignore[assignment]  # NumPy's own name for this dict is private
        self._compiled = compiled
        if self.backend == "engine":
            native = engine.NATIVE[self.learner]
            self._compiled = compiled or engine.compile_problem(self.learner, native, problem, self._isa)
            self._runner: engine.Runner | engine.GrowingRunner | PlainRunner = engine.runner(
                self._compiled, native, state, fresh=checkpoint is None, budget=self._budget
            )
        else:
            self._runner = PlainRunner(rounds, problem, state)
        self._looks_itself = self.backend == "engine" and self.learner != "graph-mkl"  # where values may miss
        self._choosy = self._labels or self._classes is not None

    # Asking and telling

    def predict(self, x: ArrayLike) -> Any:
        """The prediction for one sample, with the kernels that the next `learn` will hear.

        A number; for "graph-mkl" its mean and deviation, or the chances of the labels.
        """
        return self.ask(self._sample(x))

    def predict_rows(self, X: ArrayLike) -> Matrix:
        """Predictions for many samples from the state as it is; nothing is learned."""
        return self.ask_rows(self._samples(X))

    def learn(self, x: ArrayLike, y: float, weight: float = 1.0) -> None:
        """Learn one sample. Input that cannot be learned is refused and changes nothing."""
        if not self._looks_itself:
            x = self._sample(x)
        if not -LARGEST_TARGET <= y <= LARGEST_TARGET or (self._choosy and not self._right(y)):
            raise ValueError(self._about_target(y, ""))
        if not 0 <= weight <= LARGEST_WEIGHT:
            raise ValueError(
                f"weight must be a finite number of at least 0, got {weight}; the largest is {LARGEST_WEIGHT:g}"
            )
        try:
            self.tell(x, y, weight)  # type: ignore[arg-type]  # the engine refuses what is no array
        except TypeError:
            self.tell(self._sample(x), y, weight)

    def run(self, X: ArrayLike, y: ArrayLike, weight: ArrayLike | None = None) -> Matrix:
        """Predict, then learn, row after row; returns the predictions, each made before its row was learned.

        A chunk with a value that cannot be learned is refused whole. Where the learner diverges the
        rows before are learned, the state is that of the last good round, and DivergenceError says so.
        """
        X = self._samples(X)
        y = self._targets(y, len(X))
        return self.tell_rows(X, y, None if weight is None else self._weights(weight, len(X)))

    # The same for callers that have checked what they pass

    def ask(self, x: Vector) -> Any:
        if self.learner == "graph-mkl":
            return self.ask_rows(x[None])[0]
        with self._lock:
            f = self._runner.predict(x)
        if not -TOO_FAR < f < TOO_FAR:
            raise self._diverged(x, 0)
        return f

    def ask_rows(self, X: Matrix) -> Matrix:
        out = np.empty(len(X) * self.width)
        with self._lock:
            self._runner.predict_rows(X, out)
        if (bad := engine.first_not_finite(out)) >= 0:
            raise self._diverged(X[bad // self.width], bad // self.width)
        return self._shaped(out)

    def _shaped(self, out: Vector) -> Matrix:
        return out.reshape(-1, self.width) if self.learner == "graph-mkl" else out

    def tell(self, x: Vector, y: float, weight: float = 1.0) -> None:
        self._lock.acquire()  # a with statement takes twice as long
        try:
            heard = self._runner.learn(x, y, weight)
            if heard == engine.NO_UNIFORMS:
                self._runner.supply(self._rng.random(AHEAD * self._draws))
                heard = self._runner.learn(x, y, weight)
            if heard == engine.REFUSED:
                self._sample(x)  # says why
            if heard < 0:
                raise self._diverged(x, 0)
            self.evaluations += heard
            if self._budget is not None:
                self._warn_if_full(1)
        finally:
            self._lock.release()

    def tell_rows(self, X: Matrix, y: Vector, weight: Vector | None = None) -> Matrix:
        out = np.empty(len(X) * self.width)
        with self._lock:
            self._give_back_ahead()
            done, heard = self._runner.run(X, y, self._rng.random(len(X) * self._draws), weight, out)
            self.evaluations += heard
            if done < len(X):
                self._pcg.advance(-(len(X) - done) * self._draws)
                raise self._diverged(X[done], done)
            if self._budget is not None:
                self._warn_if_full(len(X))
        return self._shaped(out)

    # Looking

    @property
    def t(self) -> int:
        """Rounds behind us."""
        return self._runner.t

    @property
    def state(self) -> Any:
        """A copy of the state, as the learner's module in `omkl.algorithms` defines it."""
        with self._lock:
            return _copied(self._runner.state)

    @property
    def compiled(self) -> Any:
        """The problem as the engine sees it, None for the NumPy rounds; any number of learners may share it."""
        return self._compiled

    def peek(self, name: str) -> Any:
        """A copy of one part of the state."""
        with self._lock:
            return np.array(getattr(self._runner.state, name))

    def checkpoint(self) -> Checkpoint:
        """Everything needed to go on later as if nothing had happened."""
        with self._lock:
            self._give_back_ahead()
            return Checkpoint(_copied(self._runner.state), copy.deepcopy(dict(self._pcg.state)), self.evaluations)

    def restore(self, checkpoint: Checkpoint) -> None:
        """Back to where `checkpoint` was taken."""
        with self._lock:
            self._install(self.problem, None, checkpoint, self._compiled)

    def move_to(self, problem: Any) -> None:
        """Go on with the same state on another problem, for instance one with a feature more."""
        with self._lock:
            self._give_back_ahead()
            state = _copied(self._runner.state)
            if hasattr(ROUNDS[self.learner], "widen"):
                with threadpool_limits(1, "blas"):  # many small matrices, on which threads wait for each other
                    state = ROUNDS[self.learner].widen(problem, state)
            self._install(
                problem, None, Checkpoint(state, copy.deepcopy(dict(self._pcg.state)), self.evaluations), None
            )

    def copy(self) -> "Online":
        """A twin that goes its own way; the problem is shared, the state is not."""
        return Online(
            self.learner, self.problem, backend=self.backend, checkpoint=self.checkpoint(), isa=self._isa,
            compiled=self._compiled,
        )  # fmt: skip

    def anew(self, rng: np.random.Generator | int | None) -> "Online":
        """A learner at its start that shares this one's problem; `rng` draws for it."""
        return Online(
            self.learner, self.problem, rng, backend=self.backend, isa=self._isa, compiled=self._compiled
        )  # fmt: skip

    def __getstate__(self) -> dict[str, Any]:
        return {
            "learner": self.learner, "problem": self.problem, "backend": self.backend, "isa": self._isa,
            "checkpoint": self.checkpoint(),
        }  # fmt: skip

    def __setstate__(self, kept: dict[str, Any]) -> None:
        self.__init__(**kept)  # type: ignore[misc]  # unpickling is making it again, from its own arguments

    def __repr__(self) -> str:
        return f"Online({self.learner!r}, d={self._d}, t={self.t}, backend={self.backend!r})"

    # Checking what comes in

    def _sample(self, x: ArrayLike) -> Vector:
        x = np.asarray(x, dtype=np.float64, order="C")
        if x.shape != (self._d,):
            raise ValueError(
                f"x must be one sample of {self._d} values, got an array of shape {x.shape}; "
                "give many samples to run or predict_rows"
            )
        if (bad := engine.first_not_finite(x)) >= 0:
            raise ValueError(f"x[{bad}] must be a finite number, got {x[bad]}; impute or drop the sample")
        return x

    def _samples(self, X: ArrayLike) -> Matrix:
        X = np.ascontiguousarray(X, dtype=np.float64)
        if X.ndim != 2 or X.shape[1] != self._d:
            raise ValueError(
                f"X must be a table of samples with {self._d} columns, got an array of shape {X.shape}; "
                "give one sample to predict or learn"
            )
        if (bad := engine.first_not_finite(X)) >= 0:
            row, column = divmod(bad, self._d)
            raise ValueError(
                f"X must be finite, got {X[row, column]} in row {row}, column {column}; "
                "impute or drop it (no row of this chunk was learned)"
            )
        return X

    def _targets(self, y: ArrayLike, rows: int) -> Vector:
        y = np.ascontiguousarray(y, dtype=np.float64)
        if y.shape != (rows,):
            raise ValueError(f"y must have one value for each of the {rows} rows of X, got an array of shape {y.shape}")
        if self._choosy:
            right = np.asarray(self._right(y))
            bad = -1 if right.all() else int(np.argmin(right))
        else:
            bad = engine.first_above(y, LARGEST_TARGET)
        if bad >= 0:
            raise ValueError(self._about_target(y[bad], f" in row {bad}") + " (no row of this chunk was learned)")
        return y

    def _weights(self, weight: ArrayLike, rows: int) -> Vector:
        w = np.ascontiguousarray(weight, dtype=np.float64)
        if w.shape != (rows,):
            raise ValueError(f"weight must be {rows} finite numbers of at least 0, got an array of shape {w.shape}")
        right = (w >= 0) & (w <= LARGEST_WEIGHT)
        if not right.all():
            bad = int(np.argmin(right))
            raise ValueError(
                f"weight must be finite, at most {LARGEST_WEIGHT:g} and at least 0, got {w[bad]} in row {bad} "
                "(no row of this chunk was learned)"
            )
        return w

    def _right(self, y: Any) -> Any:
        if self._classes is not None:
            return (y >= 0) & (y < self._classes) & (y == np.floor(y))
        return np.abs(y) == 1 if self._labels else np.abs(y) <= LARGEST_TARGET

    def _about_target(self, y: float, where: str) -> str:
        if self._classes is not None:
            return f"y must be a whole number from 0 to {self._classes - 1}, the label's place, got {y}{where}"
        if self._labels:
            return f"y must be -1 or 1 for the {self.problem.descent.loss} loss, got {y}{where}; recode the labels"
        return f"y must be a finite number, got {y}{where}; drop the sample, or scale y to at most {LARGEST_TARGET:g}"

    # When things go wrong

    def _give_back_ahead(self) -> None:
        """Turn the Generator back to where the rounds are: single rows draw their uniforms ahead, in blocks."""
        if self._runner.unused:
            self._pcg.advance(-self._runner.unused)
            self._runner.supply(np.empty(0))

    def _diverged(self, x: Vector, row: int) -> DivergenceError:
        stabiliser = self.problem.descent.stabiliser if hasattr(self.problem, "descent") else None
        if not np.abs(x).max(initial=0.0) < 1e100:
            cure = f"inputs as large as {np.abs(x).max():.3g} have no usable features; scale them"
        elif stabiliser == "none":
            cure = "its step is too long for this stream: take stabiliser='aware' (it is 'none' now), or scale y"
        else:
            now = f"stabiliser={stabiliser!r} cannot help" if stabiliser else "there is no stabiliser for it"
            cure = f"{now}; scale y to a moderate range or lower learning_rate"
        return DivergenceError(
            f"{self.learner} diverged in round {self.t + 1} (row {row} of this call): a prediction is beyond 1e100; "
            f"{cure}. The rows before are learned, the state is that of round {self.t}."
        )

    def _warn_if_full(self, rows: int) -> None:
        if self._budget is not None and self.t - rows < self._budget <= self.t:
            warnings.warn(
                f"{self.learner} holds {self._budget} support points, its budget; later samples are predicted and "
                "weigh the kernels, but add none. Raise budget, or take a learner with random features, whose "
                "memory does not grow",
                BudgetWarning,
                stacklevel=3,
            )


class PlainRunner:
    """The NumPy rounds behind the interface of `engine.Runner`."""

    def __init__(self, rounds: Any, problem: Any, state: Any) -> None:
        self._rounds, self._problem, self.state = rounds, problem, state
        self._draws: int = rounds.draws(problem)
        self._uniforms, self.unused = np.empty(0), 0

    @property
    def t(self) -> int:
        return int(self.state.t)

    def predict(self, x: Vector) -> Any:
        with np.errstate(all="ignore"):
            return self._rounds.predict(self._problem, self.state, x)

    def predict_rows(self, X: Matrix, out: Vector) -> None:
        for x, row in zip(X, _rows_of(out, len(X)), strict=True):
            row[:] = self.predict(x)

    def supply(self, uniforms: Vector) -> None:
        self._uniforms, self.unused = uniforms, len(uniforms)

    def learn(self, x: Vector, y: float, weight: float) -> int:
        if self.unused < self._draws:
            return engine.NO_UNIFORMS
        at = len(self._uniforms) - self.unused
        info = self._step(x, y, self._uniforms[at : at + self._draws], weight)
        if info is None:
            return engine.DIVERGED
        self.unused -= self._draws
        return len(info.heard)

    def run(self, X: Matrix, y: Vector, r: Vector, weight: Vector | None, out: Vector) -> tuple[int, int]:
        draws = len(r) // max(len(X), 1)
        heard, rows = 0, _rows_of(out, len(X))
        for k, x in enumerate(X):
            w = 1.0 if weight is None else float(weight[k])
            info = self._step(x, float(y[k]), r[k * draws : (k + 1) * draws], w)
            if info is None:
                return k, heard
            rows[k] = info.prediction
            heard += len(info.heard)
        return len(X), heard

    def _step(self, x: Vector, y: float, r: Vector, weight: float) -> Any:
        """What the round told; None where it diverged, and then nothing has changed."""
        try:
            with np.errstate(all="ignore"):  # what overflows is told as a divergence
                self.state, info = self._rounds.step(self._problem, self.state, x, y, r, weight)
        except DivergenceError:
            return None
        return info


def pcg64(rng: np.random.Generator | int | None) -> np.random.PCG64:
    """The bit generator of `rng`: the one that can be turned back when a round does not happen."""
    bits = np.random.default_rng(rng).bit_generator
    if not isinstance(bits, np.random.PCG64):
        raise ValueError(
            f"rng must be a seed or a Generator on PCG64, as numpy.random.default_rng makes it, got {rng!r}"
        )
    return bits


def _rows_of(out: Vector, rows: int) -> Matrix:
    return out.reshape(rows, len(out) // max(rows, 1))


def _copied(state: Any) -> Any:
    arrays = {name: np.array(a) for name, a in state._asdict().items() if isinstance(a, np.ndarray)}
    return state._replace(**arrays)
