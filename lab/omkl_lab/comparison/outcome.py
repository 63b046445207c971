"""What a learner leaves behind on a stream, and the measures of it."""

import math
from typing import NamedTuple

import numpy as np
from scipy import stats
from scipy.special import ndtr, ndtri

from omkl.arrays import Matrix, Vector
from omkl_lab.files import brief
from omkl_lab.parallel import Record

COVERAGE = 0.9
LEVELS = (0.1, 0.3, 0.5, 0.6, 0.6827, 0.7, 0.8, 0.9, 0.95, 0.99)  # coverages of the intervals that make a distribution
QUANTILES = 100  # that the continuous ranked probability score is computed from
LEAST_WIDTH = 1e-9  # in units of the errors
FIRST = 1  # the first row is not scored
SETTLED = 50  # distributions are scored from this row on
WINDOWS = 10
PREFIX = 2000  # rows that learners of a millisecond a row get; the error after as many is recorded for all
FLOOR = 1e-15  # lower bound on a probability in the log-loss, as in river
BINS = 15  # of confidence, in the calibration error


class Outcome(NamedTuple):
    """The predictions of one run, each made before its row was learned."""

    predictions: Matrix  # (T,) numbers, or (T, labels) probabilities
    seconds: float  # of processor time, of all threads
    half_widths: Matrix | None = None  # (T, LEVELS) of intervals; None: normal, with the variance of the errors so far
    size: int | None = None  # bytes of the model at the end, with the rows that it keeps


def running_deviation(errors: Vector) -> Vector:
    """Root mean square of the errors before each row, the first row's left out.

    >>> running_deviation(np.array([9.0, 3.0, 4.0, 0.0])).round(3).tolist()
    [1.0, 1.0, 3.0, 3.536]
    """
    squares = np.concatenate(([0.0], np.cumsum(errors[FIRST:] ** 2)))
    seen = np.arange(len(squares))
    known = np.sqrt(np.divide(squares, seen, out=np.ones(len(squares)), where=seen > 0))
    return np.concatenate(([1.0], known[: len(errors) - 1]))


def log_score(errors: Vector, half_widths: Matrix) -> Vector:
    """Negative log-density of the distribution that the intervals state: uniform between two of them.

    Beyond the widest, the tail is a power of the distance that agrees with the two widest.

    >>> H = np.array([ndtri((1 + np.array(LEVELS)) / 2)])
    >>> bool(abs(log_score(np.array([0.4]), H)[0] - 0.999) < 0.1)  # of a standard normal distribution: 0.999
    True
    """
    edges = np.column_stack((np.zeros(len(errors)), half_widths))
    masses = np.diff((0.0, *LEVELS))
    distance = np.abs(errors)
    inside = (distance[:, None] >= edges).sum(axis=1) - 1  # the piece that the error falls into
    piece = np.minimum(inside, len(LEVELS) - 1)
    rows = np.arange(len(errors))
    density = masses[piece] / (edges[rows, piece + 1] - edges[rows, piece]) / 2
    last, widest = half_widths[:, -2], half_widths[:, -1]
    power = np.clip(math.log((1 - LEVELS[-2]) / (1 - LEVELS[-1])) / np.log(widest / last), 1, 100)
    beyond = (1 - LEVELS[-1]) / 2 * power / widest * (widest / np.maximum(distance, widest)) ** (power + 1)
    out: Vector = -np.log(np.where(inside == len(LEVELS), beyond, density))
    return out


def normal_log_score(errors: Vector, deviation: Vector) -> Vector:
    """Negative log-density of a normal distribution."""
    out: Vector = np.log(deviation) + (errors / deviation) ** 2 / 2 + math.log(2 * math.pi) / 2
    return out


def student_log_score(errors: Vector, half_widths: Matrix) -> Vector:
    """Negative log-density of Student's t with the half widths of one standard deviation and of the widest interval.

    >>> t = stats.t(4)
    >>> H = np.array([t.ppf((1 + np.array(LEVELS)) / 2)])
    >>> bool(abs(student_log_score(np.array([1.0]), H)[0] + t.logpdf(1.0)) < 0.01)
    True
    """
    one, widest = half_widths[:, LEVELS.index(0.6827)], half_widths[:, -1]
    freedom = np.geomspace(1, 200, 400)
    unit = stats.t.ppf((1 + 0.6827) / 2, freedom)
    nu = np.interp(-widest / one, -stats.t.ppf((1 + LEVELS[-1]) / 2, freedom) / unit, freedom)
    scale = one / np.interp(nu, freedom, unit)
    out: Vector = np.log(scale) - stats.t.logpdf(errors / scale, nu)
    return out


def crps(errors: Vector, half_widths: Matrix) -> Vector:
    """Continuous ranked probability score of the distribution that the intervals state, from its quantiles.

    The quantiles beyond the widest interval are taken to be its ends.
    """
    share = (np.arange(QUANTILES) + 0.5) / QUANTILES
    out = np.zeros(len(errors))
    edges = np.column_stack((np.zeros(len(errors)), half_widths))
    for tau in share:
        place = np.interp(abs(2 * tau - 1), (0.0, *LEVELS), np.arange(len(LEVELS) + 1))
        low = min(int(place), len(LEVELS) - 1)
        width = edges[:, low] + (place - low) * (edges[:, low + 1] - edges[:, low])
        gap = errors - np.sign(tau - 0.5) * width
        out += 2 / QUANTILES * np.where(gap > 0, tau * gap, (tau - 1) * gap)
    return out


def normal_crps(errors: Vector, deviation: Vector) -> Vector:
    """Continuous ranked probability score of a normal distribution."""
    z = errors / deviation
    density = np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)
    out: Vector = deviation * (z * (2 * ndtr(z) - 1) + 2 * density - 1 / math.sqrt(math.pi))
    return out


def interval_score(errors: Vector, half_width: Vector) -> Vector:
    """Width of a 90 % interval, and 20 times the distance of a target outside."""
    out: Vector = 2 * half_width + 2 / (1 - COVERAGE) * np.maximum(np.abs(errors) - half_width, 0)
    return out


def of_numbers(outcome: Outcome, y: Vector, unit: float) -> Record:
    """Measures of predicted numbers; errors and widths in `unit`."""
    errors = (y - outcome.predictions) / unit
    squared = errors[FIRST:] ** 2
    return {
        "mse": float(squared.mean()), "mse_prefix": float(squared[: PREFIX - FIRST].mean()),
        **of_distributions(errors, None if outcome.half_widths is None else outcome.half_widths / unit),
    }  # fmt: skip


def of_distributions(errors: Vector, half_widths: Matrix | None) -> Record:
    """Scores of the distributions around the predictions, from row SETTLED on."""
    if half_widths is None:
        deviation = np.maximum(running_deviation(errors), LEAST_WIDTH)[SETTLED:]
        half_width = deviation * float(ndtri((1 + COVERAGE) / 2))
    else:
        H = np.maximum.accumulate(half_widths, axis=1) + LEAST_WIDTH * np.arange(1, len(LEVELS) + 1)
        H = H[SETTLED:]
        deviation, half_width = H[:, LEVELS.index(0.6827)], H[:, LEVELS.index(COVERAGE)]
    errors = errors[SETTLED:]
    normal = {
        "log_score": float(normal_log_score(errors, deviation).mean()),
        "crps": float(normal_crps(errors, deviation).mean()),
    }
    own: Record = {}
    if half_widths is not None:
        own = {"log_score": float(log_score(errors, H).mean()), "crps": float(crps(errors, H).mean()),
               "log_score_normal": normal["log_score"]}  # fmt: skip
    inside = np.abs(errors) <= half_width
    by_width = inside[np.argsort(half_width, kind="stable")]
    return {
        **normal, **own,
        "interval_score": float(interval_score(errors, half_width).mean()),
        "coverage": float(inside.mean()),
        "width": float(2 * half_width.mean()),
        "coverage_by_window": [brief(float(part.mean())) for part in np.array_split(inside, WINDOWS)],
        "coverage_by_width": [brief(float(part.mean())) for part in np.array_split(by_width, WINDOWS)],
    }  # fmt: skip


def of_labels(outcome: Outcome, y: Vector) -> Record:
    """Share of wrong labels (a tie counts by its share) and log-loss of predicted probabilities."""
    p, label = outcome.predictions, y.astype(int)
    rows = np.arange(len(y))
    top = p == p.max(axis=1, keepdims=True)
    wrong = (1 - top[rows, label] / top.sum(axis=1))[FIRST:]
    total = p.sum(axis=1)
    truth = np.where(total > 0, p[rows, label] / np.where(total > 0, total, 1), 1 / p.shape[1])
    losses = -np.log(np.maximum(truth[FIRST:], FLOOR))
    confidence = (p.max(axis=1) / np.where(total > 0, total, 1))[FIRST:]
    return {
        "wrong": float(wrong.mean()), "wrong_prefix": float(wrong[: PREFIX - FIRST].mean()),
        "log_loss": float(losses.mean()), "log_loss_prefix": float(losses[: PREFIX - FIRST].mean()),
        "calibration": calibration_error(confidence, 1 - wrong),
    }  # fmt: skip


def calibration_error(confidence: Vector, correct: Vector) -> float:
    """Expected calibration error: mean distance between confidence and accuracy, over bins of confidence.

    >>> round(calibration_error(np.full(10, 0.8), np.r_[np.ones(8), np.zeros(2)]), 12)
    0.0
    """
    bins = np.minimum((confidence * BINS).astype(int), BINS - 1)
    gaps = np.bincount(bins, weights=correct - confidence, minlength=BINS)
    return float(np.abs(gaps).sum() / len(confidence))
