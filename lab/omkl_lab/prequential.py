"""Prequential runs: every row is predicted before it is learned, and the squared errors are averaged."""

import time
from collections.abc import Callable
from typing import Any, NamedTuple, TypedDict

import numpy as np

from omkl.algorithms.weights import normalised
from omkl.arrays import Index, Tensor, Vector
from omkl.errors import DivergenceError
from omkl.features import column_names, frequencies
from omkl.kernels import dictionary
from omkl.online import Online
from omkl.settings import Settings
from omkl_lab.entrants import Entrant
from omkl_lab.files import brief
from omkl_lab.streams import Stream

CHUNK = 1000  # rows per engine call: between two calls there is time for Ctrl-C
DIVERGED = 1.0  # targets lie in [0, 1], so an MSE beyond it is worse than that of any constant
POINTS = 100  # of a curve
SNAPSHOTS = 60  # of the weights, over the stream


class Run(TypedDict):
    """What is kept of one learner, one stream and one random-feature set."""

    mse: float | None  # None where the learner left the range of useful numbers
    diverged: bool
    kernels: float  # evaluated per sample
    seconds: float  # of one core
    curve: list[float]  # MSE_t at `grid(T)`
    weights: list[float]  # w / W at the end of the stream
    history: list[list[float]]  # w / W at `snapshots(T)`, where it was asked for


class Told(NamedTuple):
    """A stream gone through."""

    predictions: Vector  # as far as it came
    seconds: float
    weights: list[Vector]  # w / W at the stops


def running_mean_mse(y: Vector) -> float:
    """MSE of predicting the mean of what has come, 0 at first: the baseline.

    >>> running_mean_mse(np.array([1.0, 3.0, 2.0]))
    1.6666666666666667
    """
    means = np.concatenate(([0.0], np.cumsum(y)[:-1] / np.arange(1, len(y))))
    return float(np.mean((means - y) ** 2))


def runs_of(entrant: Entrant, runs: int) -> int:
    """OMKR draws nothing, so that one run says all."""
    return 1 if entrant.learner == "omkr" else runs


def grid(rows: int) -> Index:
    """The rounds at which a curve is kept: dense at first, then evenly spaced, the last one always.

    >>> grid(4)
    array([1, 2, 3, 4])
    """
    even = np.linspace(rows / POINTS, rows, POINTS)
    early = np.geomspace(1, max(rows / POINTS, 1), POINTS // 5)
    return np.unique(np.clip(np.ceil(np.concatenate((early, even))), 1, rows)).astype(np.intp)


def snapshots(rows: int) -> Index:
    return np.unique(np.linspace(0, rows, SNAPSHOTS + 1).astype(np.intp))[1:]


def go_through(
    online: Online, stream: Stream, stops: Index | None = None, between: Callable[[], object] = lambda: None
) -> Told:
    """Learn the stream in chunks; `between` is called after each and may raise to give up.

    Where the learner diverges, what came before is told.
    """
    rows = len(stream.y)
    cuts = np.unique(np.concatenate((np.arange(CHUNK, rows, CHUNK), [] if stops is None else stops, [rows])))
    kept = set() if stops is None else set(stops.tolist())
    pieces: list[Vector] = []
    weights: list[Vector] = []
    seconds, start = 0.0, 0
    for stop in cuts.astype(int).tolist():
        begin = time.thread_time()  # not the clock on the wall: others may be using the machine
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
    return Told(np.concatenate(pieces) if pieces else np.empty(0), seconds, weights)


def run_once(
    entrant: Entrant, problem: Any, stream: Stream, seed: int, history: bool = False,
    between: Callable[[], object] = lambda: None,
) -> Run:  # fmt: skip
    """One pass of `entrant` over `stream`; `problem` holds its random features, `seed` makes its draws."""
    rows = len(stream.y)
    online = Online(entrant.learner, problem, seed)
    told = go_through(online, stream, snapshots(rows) if history else None, between)
    errors = (told.predictions - stream.y[: len(told.predictions)]) ** 2
    whole = len(errors) == rows
    mse = float(errors.mean()) if whole else None
    at = grid(rows)
    return {
        "mse": mse,
        "diverged": mse is None or not mse <= DIVERGED,
        "kernels": online.evaluations / max(online.t, 1),
        "seconds": told.seconds,
        "curve": [brief(x) for x in np.cumsum(errors)[at - 1] / at] if whole else [],
        "weights": [brief(w) for w in normalised(online.state.log_w)],
        "history": [[brief(x) for x in w] for w in told.weights],
    }


class Features:
    """The random features of one stream and one seed, drawn once and shared by whoever asks for the same."""

    def __init__(self, d: int, seed: int) -> None:
        self._names, self._seed = column_names(d), seed
        self._drawn: dict[tuple[Any, int], Tensor] = {}

    def given_to(self, problem: Any, settings: Settings) -> Any:
        """`problem` with this seed's features; OMKR has none."""
        if not hasattr(problem, "V"):
            return problem
        kernels = tuple(dictionary(settings.kernels))
        key = (kernels, settings.n_features)
        if key not in self._drawn:
            self._drawn[key] = frequencies(kernels, self._names, settings.n_features, self._seed)
        return problem._replace(V=self._drawn[key])
