"""Prequential runs: every row is predicted before it is learned, and the squared errors are averaged."""

import time
from collections.abc import Callable
from typing import TypedDict

import numpy as np

from omkl.arrays import Vector
from omkl.errors import DivergenceError
from omkl.kernels import dictionary
from omkl.lab.entrants import NAMES, Entrant
from omkl.lab.streams import Stream
from omkl.online import Online
from omkl.rounds.weights import normalised

CHUNK = 1000  # rows per engine call: between two calls there is time for Ctrl-C and for the progress bar
BLOWN_UP = 100  # times the running mean's MSE; beyond it a learner has diverged, whether or not it overflowed


class Score(TypedDict):
    """What is kept of one learner on one stream; `mse` and `weights` are None where it diverged."""

    algorithm: str
    variant: str
    sets: int  # random-feature sets averaged over
    diverged: int  # how many of them diverged
    mse: float | None
    kernels: float  # evaluated per sample
    microseconds: float  # per sample
    weights: list[float] | None  # w / W at the end of the stream, averaged over the sets
    heaviest: float | None  # length scale of the kernel that weighs most


def running_mean_mse(y: Vector) -> float:
    """MSE of predicting the mean of what has come, 0 at first: the baseline.

    >>> running_mean_mse(np.array([1.0, 3.0, 2.0]))
    1.6666666666666667
    """
    means = np.concatenate(([0.0], np.cumsum(y)[:-1] / np.arange(1, len(y))))
    return float(np.mean((means - y) ** 2))


def sets_of(entrant: Entrant, sets: int) -> int:
    """OMKR draws nothing, so that one run says all."""
    return 1 if entrant.learner == "omkr" else sets


def score(
    entrant: Entrant, stream: Stream, sets: int, seed: int = 0, tick: Callable[[int], object] = lambda rows: None
) -> Score:
    """Run `entrant` over `stream` with the random-feature sets seed, seed + 1, ...; `tick` hears of rows done."""
    rows, d = stream.X.shape
    settings = entrant.settings(rows)
    sets = sets_of(entrant, sets)
    limit = BLOWN_UP * running_mean_mse(stream.y)
    errors: list[float] = []
    weights: list[Vector] = []
    diverged = learned = evaluations = 0
    seconds = 0.0
    for number in range(seed, seed + sets):
        online = Online.make(entrant.learner, settings, d, number)
        total = 0.0
        try:
            for start in range(0, rows, CHUNK):
                X, y = stream.X[start : start + CHUNK], stream.y[start : start + CHUNK]
                begin = time.perf_counter()
                try:
                    predictions = online.run(X, y)
                finally:
                    seconds += time.perf_counter() - begin
                total += float(np.sum((predictions - y) ** 2))
                tick(len(y))
        except DivergenceError:
            total = np.inf
            tick(rows - start)
        learned += online.t
        evaluations += online.evaluations
        diverged += not total / rows <= limit
        errors.append(total / rows)
        weights.append(normalised(online.state.log_w))
    w = np.mean(weights, axis=0)
    return {
        "algorithm": NAMES[entrant.learner],
        "variant": entrant.variant,
        "sets": sets,
        "diverged": diverged,
        "mse": None if diverged else float(np.mean(errors)),
        "kernels": evaluations / learned,
        "microseconds": 1e6 * seconds / learned,
        "weights": None if diverged else w.tolist(),
        "heaviest": None if diverged else dictionary(settings.kernels)[int(np.argmax(w))].length_scale,
    }
