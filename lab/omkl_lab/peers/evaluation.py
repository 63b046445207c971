"""Prequential evaluation row by row (predict, then learn), and the measures of the predictions."""

import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from omkl.arrays import Matrix, Vector

BEFORE = 1000  # rows before a change whose mean error is the reference level
WINDOW = 100  # rows of the moving average that has to return to that level
SKIP, AFTER = 200, 500  # rows skipped after a change, and rows then used, for the coverage of intervals
FLOOR = 1e-15  # lower bound on a probability in the log-loss, as in river
BINS = 15  # of confidence, in the calibration error


class Outcome(NamedTuple):
    """The predictions of one learner on one stream."""

    predictions: Vector  # numbers, or probabilities of the label 1; shorter than the stream if the run was stopped
    seconds: float  # of processor time, predicting and learning
    interval: Matrix | None = None  # (rows, 2): lower and upper end of 90 % intervals


def divergence_limit(y: Vector) -> float:
    """A sum of squared errors larger than that of any constant between the smallest and the largest target."""
    return float(len(y) * np.ptp(y) ** 2)


def predict_then_learn(
    rows: Iterable[Any], y: Vector, predict: Callable[[Any], Any], learn: Callable[[Any, Any], Any],
    targets: Iterable[Any] | None = None, clock: Callable[[], float] = time.thread_time,
) -> Outcome:  # fmt: skip
    """Predict each row, then learn it; stop when the sum of squared errors exceeds `divergence_limit`.

    `targets` are passed to `learn` where they differ from `y`. A prediction of None, from a learner without data,
    counts as 0. `clock` is processor time, since other processes may use the machine.
    """
    out: list[float] = []
    total, limit = 0.0, divergence_limit(y)
    begin = clock()
    for row, truth, target in zip(rows, y.tolist(), y.tolist() if targets is None else targets, strict=True):
        f = predict(row)
        f = 0.0 if f is None else float(f)
        total += (f - truth) ** 2
        if not total <= limit:
            break
        out.append(f)
        learn(row, target)
    return Outcome(np.array(out), clock() - begin)


def recovery(errors: Vector, change: int, until: int) -> int | None:
    """Rows from the change until the mean of the last 100 squared errors is at most twice its level before.

    None if that does not happen before row `until`.

    >>> errors = np.r_[np.ones(1000), np.full(250, 9.0), np.ones(1000)]
    >>> recovery(errors, 1000, 2250)
    338
    """
    level = errors[max(change - BEFORE, 0) : change].mean()
    sums = np.cumsum(np.r_[0.0, errors[change:until]])
    means = (sums[WINDOW:] - sums[:-WINDOW]) / WINDOW
    back = np.flatnonzero(means <= 2 * level)
    return int(back[0]) + WINDOW if len(back) else None


def accuracy(p: Vector, label: Vector) -> float:
    """Share of labels predicted correctly; a tie counts half. `label` is 0 or 1.

    >>> accuracy(np.array([0.9, 0.2, 0.5, 0.6]), np.array([1, 0, 1, 0]))
    0.625
    """
    return float(np.mean(np.where(p == 0.5, 0.5, (p > 0.5) == (label == 1))))


def log_loss(p: Vector, label: Vector) -> float:
    probability = np.where(label == 1, p, 1 - p)
    return float(-np.mean(np.log(np.clip(probability, FLOOR, 1))))


def calibration_error(p: Vector, label: Vector) -> float:
    """Expected calibration error: mean distance between confidence and accuracy, over bins of confidence.

    >>> p = np.full(10, 0.8)
    >>> round(calibration_error(p, np.r_[np.ones(8), np.zeros(2)]), 12)
    0.0
    """
    confidence = np.maximum(p, 1 - p)
    correct = np.where(p == 0.5, 0.5, (p > 0.5) == (label == 1))
    bins = np.minimum((confidence * BINS).astype(int), BINS - 1)
    gaps = np.bincount(bins, weights=correct - confidence, minlength=BINS)
    return float(np.abs(gaps).sum() / len(p))
