"""Time per sample of every algorithm: varying one factor at a time, scaling exponents, long runs, two cores."""

import math
import os
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypedDict

import numpy as np

from omkl.algorithms.graph_mkl.settings import GraphSettings
from omkl.algorithms.settings import Settings
from omkl.arrays import Matrix, Vector
from omkl.features import Draw
from omkl.kernels import Gaussian
from omkl.online import Backend, Online
from omkl_lab.configurations import NAMES
from omkl_lab.machine import resident

HORIZON = 11_934  # rows of the paper's longest stream; gives a step size at which no learner diverges on noise
REPLAY_SECONDS, MIN_REPLAY_ROWS = 1e-3, 100  # duration and least rows of one repetition
GRAPH: str = "graph-mkl"
TITLES: dict[str, str] = {**NAMES, GRAPH: "GraphMKL"}
GRAPH_KERNELS = len(GraphSettings().all_kernels)  # GraphMKL has its own kernels and no M


class Shape(NamedTuple):
    """Sizes: N kernels, D random features each, M kernels evaluated per round, d inputs."""

    N: int = 41
    D: int = 50
    M: int = 5
    d: int = 15


BASE = Shape()
FACTORS: dict[str, tuple[int, ...]] = {"d": (5, 8, 11, 50), "N": (10, 76, 200), "D": (100, 500), "M": (1, 10)}
GRAPH_MAX_FEATURES = 100  # random features per kernel: GraphMKL's memory grows with their square
VARIED_FACTORS: dict[str, tuple[str, ...]] = {
    "omkr": ("d", "N"),
    GRAPH: ("d", "D"),
}  # factors that apply; all where not listed


class Effort(NamedTuple):
    """How much to measure; `rows` is the length of one repetition."""

    seconds: float = 0.3
    rows: int = 1000
    omkr_rows: int = 400  # OMKR's cost per row grows with them
    numpy_rows: int = 150
    long_run: int = 10_000_000
    replicates: int = 50
    replicate_rows: int = 12_000


QUICK = Effort(0.003, 60, 30, 10, 100_000, 4, 500)


class Timing(TypedDict):
    """Microseconds per sample of one algorithm in one shape."""

    algorithm: str
    factor: str  # what differs from the base; "" for the base itself
    N: int
    D: int
    M: int
    d: int
    evaluated: float  # kernels or experts, on average
    chunk: float  # engine, all rows in one call
    row: float  # engine, one call of Online.learn for each
    numpy: float  # the reference implementation in NumPy
    cores: float  # engine, as many learners in parallel as there are cores


def shapes() -> list[tuple[str, Shape]]:
    """The base, then one factor at a time."""
    varied = [(name, BASE._replace(**{name: value})) for name, values in FACTORS.items() for value in values]
    return [("", BASE), *varied]


def cases() -> list[tuple[str, str, Shape]]:
    """(learner, factor, shape) of every timing."""
    return [
        (learner, factor, shape)
        for factor, shape in shapes()
        for learner in TITLES
        if not factor or factor in VARIED_FACTORS.get(learner, tuple(FACTORS))
        if not (learner == GRAPH and shape.D > GRAPH_MAX_FEATURES)
    ]


def settings_of(learner: str, shape: Shape, draw: Draw = "independent") -> Settings | GraphSettings:
    if learner == GRAPH:
        return GraphSettings(n_features=shape.D)
    kernels = [Gaussian(math.sqrt(square)) for square in np.geomspace(1e-2, 1e2, shape.N)]  # for 41 the paper's
    return Settings.paper(HORIZON, kernels=kernels, n_features=shape.D, out_degree=shape.M, draw=draw)


def stream(rows: int, d: int) -> tuple[Matrix, Vector]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, d)) / (2 * math.sqrt(d))
    return X, 0.5 + np.tanh(X.sum(axis=1)) / 2


class LearnerFactory:
    """Makes identical learners that share one compiled problem, so that making them is cheap."""

    def __init__(self, learner: str, shape: Shape, backend: Backend = "engine", draw: Draw = "independent") -> None:
        self._first = Online.make(learner, settings_of(learner, shape, draw), shape.d, backend=backend)
        self.constant_cost = learner not in ("omkr", GRAPH)  # whether the cost is the same for all rows

    def __call__(self) -> Online:
        return self._first.copy()


def run_chunk(online: Online, X: Matrix, y: Vector) -> None:
    online.run(X, y)


def run_rows(online: Online, X: Matrix, y: Vector) -> None:
    learn = online.learn
    for x_t, y_t in zip(X, y.tolist(), strict=True):
        learn(x_t, y_t)


def best_time(
    make_learner: LearnerFactory, run: Callable[[Online, Matrix, Vector], None], X: Matrix, y: Vector, seconds: float
) -> float:
    """Microseconds per sample in the fastest of the repetitions that fit into `seconds`, of three at least.

    If every row costs the same, a repetition is shortened to about a millisecond, so that some run without being
    interrupted by other processes. Processor time would exclude interruptions, but is unreliable on virtual machines.
    """
    best, end, repetitions = math.inf, time.perf_counter() + seconds, 0
    while repetitions < 3 or time.perf_counter() < end:
        online = make_learner()
        begin = time.perf_counter()
        run(online, X, y)
        elapsed = time.perf_counter() - begin
        if elapsed > REPLAY_SECONDS and make_learner.constant_cost and len(y) > MIN_REPLAY_ROWS:
            few = max(MIN_REPLAY_ROWS, int(len(y) * REPLAY_SECONDS / elapsed))
            X, y = X[:few], y[:few]
            continue
        best = min(best, elapsed / len(y))
        repetitions += 1
    return 1e6 * best


def on_all_cores(make_learner: LearnerFactory, X: Matrix, y: Vector, cores: int, seconds: float) -> float:
    """Microseconds per sample when every core runs its own learner, in the fastest repetition."""
    best, end, repetitions = math.inf, time.perf_counter() + seconds, 0
    with ThreadPoolExecutor(cores) as pool:
        while repetitions < 2 or time.perf_counter() < end:
            learners = [make_learner() for _ in range(cores)]
            begin = time.perf_counter()
            list(pool.map(lambda online: online.run(X, y), learners))
            best = min(best, time.perf_counter() - begin)
            repetitions += 1
    return 1e6 * best / (cores * len(y))


def timing(learner: str, factor: str, shape: Shape, effort: Effort, cores: int) -> Timing:
    X, y = stream(effort.omkr_rows if learner == "omkr" else effort.rows, shape.d)
    make_learner = LearnerFactory(learner, shape)
    online = make_learner()
    online.run(X, y)
    few = slice(effort.numpy_rows)
    N, M = (GRAPH_KERNELS, 0) if learner == GRAPH else (shape.N, shape.M)
    return {
        "algorithm": TITLES[learner], "factor": factor, "N": N, "D": shape.D, "M": M, "d": shape.d,
        "evaluated": online.evaluations / len(y),
        "chunk": best_time(make_learner, run_chunk, X, y, effort.seconds),
        "row": best_time(make_learner, run_rows, X, y, effort.seconds),
        "numpy": best_time(LearnerFactory(learner, shape, "numpy"), run_chunk, X[few], y[few], effort.seconds / 4),
        "cores": on_all_cores(make_learner, X, y, cores, effort.seconds),
    }  # fmt: skip


# Scaling


class Growth(TypedDict):
    """Measurements against one factor; `exponent` is the slope of the logarithms."""

    algorithm: str
    what: str  # "time" or "memory"
    factor: str
    at: list[float]
    values: list[float]
    exponent: float


def exponent(at: Iterable[float], values: Iterable[float]) -> float:
    """The slope of log values against log at, by least squares.

    >>> round(exponent([1, 10, 100], [3, 30, 300]), 6)
    1.0
    """
    return float(np.polyfit(np.log(list(at)), np.log(list(values)), 1)[0])


def growth_of_time(timings: list[Timing]) -> list[Growth]:
    """Growth against d, N, D and M, from the timings, for the factors that apply to each learner."""
    out: list[Growth] = []
    for learner, title in TITLES.items():
        for factor in VARIED_FACTORS.get(learner, tuple(FACTORS)):
            points = sorted(
                (float(t[factor]), t["chunk"])  # type: ignore[literal-required]  # a factor is a field name
                for t in timings
                if t["algorithm"] == title and t["factor"] in ("", factor)
            )
            at, values = [a for a, _ in points], [v for _, v in points]
            out.append(Growth(algorithm=title, what="time", factor=factor, at=at, values=values,
                              exponent=exponent(at, values)))  # fmt: skip
    return out


def bytes_of(value: Any) -> int:
    """Bytes of the arrays in a problem or a state."""
    if isinstance(value, np.ndarray):
        return value.nbytes
    return sum(bytes_of(part) for part in value) if isinstance(value, tuple) else 0


def growth_of_memory(algorithms: Iterable[str] = ("raker", "sfg-mkl", "sfg-mkl-r")) -> list[Growth]:
    """Bytes of a learner's problem and state, against N and D."""
    out: list[Growth] = []
    for learner in algorithms:
        for factor in ("N", "D"):
            of_factor = sorted(shape for name, shape in shapes() if name in ("", factor))
            at, values = [], []
            for shape in of_factor:
                online = Online.make(learner, settings_of(learner, shape), shape.d)
                at.append(float(getattr(shape, factor)))
                values.append(float(bytes_of(online.problem) + bytes_of(online.state)))
            out.append(Growth(algorithm=TITLES[learner], what="memory", factor=factor, at=at, values=values,
                              exponent=exponent(at, values)))  # fmt: skip
    return out


# Long runs


class LongRun(TypedDict):
    """SFG-MKL with the library's defaults on a long stream, d = 5."""

    t: list[int]
    microseconds: list[float]  # per sample, around t
    resident: list[int]  # bytes


def long_run(rounds: int) -> LongRun:
    """Time per sample and memory at t = 10^4, 10^5, ... up to `rounds`.

    At each t the fastest of 100 chunks of the same rows counts. The learners at different t are timed in turn, so that
    all see the same machine load.
    """
    X, y = stream(1000, 5)
    online = Online.make("sfg-mkl", Settings(), 5)
    marks = [10**k for k in range(4, 9) if 10**k <= rounds]
    kept, sizes = [], []
    for mark in marks:
        while online.t < mark:
            online.run(X, y)
        kept.append(online.checkpoint())
        sizes.append(resident())
    best = [math.inf] * len(marks)
    for _ in range(100):
        for k, checkpoint in enumerate(kept):
            online.restore(checkpoint)
            begin = time.perf_counter()
            online.run(X, y)
            best[k] = min(best[k], time.perf_counter() - begin)
    return {"t": marks, "microseconds": [1e6 * b / len(y) for b in best], "resident": sizes}


class Replicates(TypedDict):
    """The same replicates on one core and on two."""

    replicates: int
    one: float  # seconds
    two: float
    gain: float
    got: float  # cores that the two threads actually used
    free: bool  # whether both cores were fully available


def replicates(effort: Effort) -> Replicates | None:
    """None on a machine with one core."""
    if (os.cpu_count() or 1) < 2:
        return None
    X, y = stream(effort.replicate_rows, BASE.d)
    make_learner = LearnerFactory("sfg-mkl", BASE)

    def seconds(threads: int) -> tuple[float, float]:
        learners = [make_learner() for _ in range(effort.replicates)]
        used = time.process_time()
        begin = time.perf_counter()
        if threads == 1:
            for online in learners:
                online.run(X, y)
        else:
            halves = [threading.Thread(target=lambda part: [o.run(X, y) for o in part], args=(learners[k::2],))
                      for k in range(2)]  # fmt: skip
            for half in halves:
                half.start()
            for half in halves:
                half.join()
        elapsed = time.perf_counter() - begin
        return elapsed, (time.process_time() - used) / elapsed

    best: Replicates | None = None
    for _ in range(3):
        (one, _), (two, got) = seconds(1), seconds(2)
        new = Replicates(replicates=effort.replicates, one=one, two=two, gain=one / two, got=got, free=got > 1.95)
        best = new if best is None or new["gain"] > best["gain"] else best
    return best
