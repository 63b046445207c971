"""Prequential evaluation: each row is predicted before it is learned, and the squared errors are averaged."""

import time
from collections.abc import Callable
from typing import Any, NamedTuple, TypedDict

import numpy as np

from omkl.algorithms.settings import Settings
from omkl.algorithms.weights import normalised
from omkl.arrays import Index, Tensor, Vector
from omkl.errors import DivergenceError
from omkl.features import column_names, frequencies
from omkl.kernels import dictionary
from omkl.online import Online
from omkl_lab.configurations import Configuration
from omkl_lab.files import brief
from omkl_lab.streams import Stream

CHUNK = 1000  # rows per engine call; Ctrl-C is handled between calls
DIVERGED = 1.0  # targets lie in [0, 1], so a larger MSE is worse than that of any constant in [0, 1]
POINTS = 100  # per curve
SNAPSHOTS = 60  # of the kernel weights per stream


class Run(TypedDict):
    """The results of one learner on one stream with one set of random features."""

    mse: float | None  # None if the learner raised DivergenceError
    diverged: bool
    kernels: float  # evaluated per sample
    seconds: float  # of processor time, one core
    curve: list[float]  # MSE_t at `grid(T)`
    weights: list[float]  # w / W at the end of the stream
    history: list[list[float]]  # w / W at `snapshots(T)`, if requested


class StreamRun(NamedTuple):
    """The predictions of one pass over a stream."""

    predictions: Vector  # shorter than the stream if the learner diverged
    seconds: float
    weights: list[Vector]  # w / W at the requested rows


def running_mean_mse(y: Vector) -> float:
    """MSE of the baseline that predicts the mean of all previous targets, 0 at first.

    >>> running_mean_mse(np.array([1.0, 3.0, 2.0]))
    1.6666666666666667
    """
    means = np.concatenate(([0.0], np.cumsum(y)[:-1] / np.arange(1, len(y))))
    return float(np.mean((means - y) ** 2))


def runs_of(configuration: Configuration, runs: int) -> int:
    """One run for OMKR, which has no randomness, else `runs`."""
    return 1 if configuration.learner == "omkr" else runs


def grid(rows: int) -> Index:
    """The rounds at which a curve is recorded: dense at first, then evenly spaced, always including the last.

    >>> grid(4)
    array([1, 2, 3, 4])
    """
    even = np.linspace(rows / POINTS, rows, POINTS)
    early = np.geomspace(1, max(rows / POINTS, 1), POINTS // 5)
    return np.unique(np.clip(np.ceil(np.concatenate((early, even))), 1, rows)).astype(np.intp)


def snapshots(rows: int) -> Index:
    return np.unique(np.linspace(0, rows, SNAPSHOTS + 1).astype(np.intp))[1:]


def run_stream(
    online: Online, stream: Stream, stops: Index | None = None, between: Callable[[], object] = lambda: None
) -> StreamRun:
    """Predict and learn the stream in chunks; `between` is called after each and may raise to stop.

    If the learner diverges, the predictions of the completed chunks are returned.
    """
    rows = len(stream.y)
    cuts = np.unique(np.concatenate((np.arange(CHUNK, rows, CHUNK), [] if stops is None else stops, [rows])))
    kept = set() if stops is None else set(stops.tolist())
    pieces: list[Vector] = []
    weights: list[Vector] = []
    seconds, start = 0.0, 0
    for stop in cuts.astype(int).tolist():
        begin = time.thread_time()  # processor time, since other processes may use the machine
        try:
            pieces.append(online.run(stream.X[start:stop], stream.y[start:stop]))
        except DivergenceError:
            break
        finally:
            seconds += time.thread_time() - begin
        if stop in kept:
            weights.append(normalised(online.state.log_w))
        start = stop
        between()
    return StreamRun(np.concatenate(pieces) if pieces else np.empty(0), seconds, weights)


def run_once(
    configuration: Configuration, problem: Any, stream: Stream, seed: int, history: bool = False,
    between: Callable[[], object] = lambda: None,
) -> Run:  # fmt: skip
    """One pass over `stream`; `problem` holds the random features, `seed` determines the learner's random draws."""
    rows = len(stream.y)
    online = Online(configuration.learner, problem, seed)
    run = run_stream(online, stream, snapshots(rows) if history else None, between)
    errors = (run.predictions - stream.y[: len(run.predictions)]) ** 2
    complete = len(errors) == rows
    mse = float(errors.mean()) if complete else None
    at = grid(rows)
    return {
        "mse": mse,
        "diverged": mse is None or not mse <= DIVERGED,
        "kernels": online.evaluations / max(online.t, 1),
        "seconds": run.seconds,
        "curve": [brief(x) for x in np.cumsum(errors)[at - 1] / at] if complete else [],
        "weights": [brief(w) for w in normalised(online.state.log_w)],
        "history": [[brief(x) for x in w] for w in run.weights],
    }


class Features:
    """The random features of one stream and seed, drawn once and shared by all learners with the same kernels."""

    def __init__(self, d: int, seed: int) -> None:
        self._names, self._seed = column_names(d), seed
        self._drawn: dict[tuple[Any, int], Tensor] = {}

    def assign(self, problem: Any, settings: Settings) -> Any:
        """`problem` with the features of this seed; unchanged for OMKR, which has none."""
        if not hasattr(problem, "V"):
            return problem
        kernels = tuple(dictionary(settings.kernels))
        key = (kernels, settings.n_features)
        if key not in self._drawn:
            self._drawn[key] = frequencies(kernels, self._names, settings.n_features, self._seed)
        return problem._replace(V=self._drawn[key])
