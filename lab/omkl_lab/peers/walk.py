"""Going through a course: predict, then learn, row after row; and what is said of the predictions."""

import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from omkl.arrays import Matrix, Vector

BEFORE = 1000  # rows before a change that set the level to come back to
WINDOW = 100  # rows of the mean that has to come back
SKIP, AFTER = 200, 500  # rows passed over after a change, and rows then looked at, for the coverage of intervals
FLOOR = 1e-15  # least chance in a log-loss, as in river
BINS = 15  # of confidence, in the calibration error


class Walk(NamedTuple):
    """A course gone through."""

    predictions: Vector  # numbers, or chances of the label 1; shorter than the course where the learner gave up
    seconds: float  # of processor time, predicting and learning
    ends: Matrix | None = None  # (rows, 2): lower and upper end of a 90 % interval


def hopeless(y: Vector) -> float:
    """A sum of squared errors worse than that of any constant among the targets."""
    return float(len(y) * np.ptp(y) ** 2)


def step_by_step(
    rows: Iterable[Any], y: Vector, predict: Callable[[Any], Any], learn: Callable[[Any, Any], Any],
    answers: Iterable[Any] | None = None, clock: Callable[[], float] = time.thread_time,
) -> Walk:  # fmt: skip
    """Every row predicted, then learned; given up where the sum of squared errors is hopeless.

    None for a prediction is the answer of a learner that has seen nothing: it counts as 0. `clock` is not
    that on the wall, since others may be using the machine.
    """
    out: list[float] = []
    total, most = 0.0, hopeless(y)
    begin = clock()
    for row, truth, answer in zip(rows, y.tolist(), y.tolist() if answers is None else answers, strict=True):
        f = predict(row)
        f = 0.0 if f is None else float(f)
        total += (f - truth) ** 2
        if not total <= most:
            break
        out.append(f)
        learn(row, answer)
    return Walk(np.array(out), clock() - begin)


def recovery(errors: Vector, change: int, until: int) -> int | None:
    """Rows from the change until the mean of the last 100 squared errors is within twice its level before.

    None where that does not happen before row `until`.

    >>> errors = np.r_[np.ones(1000), np.full(250, 9.0), np.ones(1000)]
    >>> recovery(errors, 1000, 2250)
    338
    """
    level = errors[max(change - BEFORE, 0) : change].mean()
    sums = np.cumsum(np.r_[0.0, errors[change:until]])
    means = (sums[WINDOW:] - sums[:-WINDOW]) / WINDOW
    back = np.flatnonzero(means <= 2 * level)
    return int(back[0]) + WINDOW if len(back) else None


def right(p: Vector, label: Vector) -> float:
    """Share of labels predicted right; a tie counts half. `label` is 0 or 1.

    >>> right(np.array([0.9, 0.2, 0.5, 0.6]), np.array([1, 0, 1, 0]))
    0.625
    """
    return float(np.mean(np.where(p == 0.5, 0.5, (p > 0.5) == (label == 1))))


def log_loss(p: Vector, label: Vector) -> float:
    chance = np.where(label == 1, p, 1 - p)
    return float(-np.mean(np.log(np.clip(chance, FLOOR, 1))))


def calibration_error(p: Vector, label: Vector) -> float:
    """Expected calibration error: how far confidence and share of right labels lie apart, averaged over bins.

    >>> p = np.full(10, 0.8)
    >>> round(calibration_error(p, np.r_[np.ones(8), np.zeros(2)]), 12)
    0.0
    """
    confidence = np.maximum(p, 1 - p)
    hit = np.where(p == 0.5, 0.5, (p > 0.5) == (label == 1))
    place = np.minimum((confidence * BINS).astype(int), BINS - 1)
    gaps = np.bincount(place, weights=hit - confidence, minlength=BINS)
    return float(np.abs(gaps).sum() / len(p))
