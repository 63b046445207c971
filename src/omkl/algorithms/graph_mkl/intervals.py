"""GraphMKL's prediction intervals: half widths, in predicted standard deviations, that hold their coverage online."""

import numpy as np

from omkl.algorithms.graph_mkl.constants import HALF_WIDTH_GAIN, LEVELS, START_HALF_WIDTHS
from omkl.arrays import Matrix, Vector
from omkl.validation import require


def init() -> Vector:
    return np.array(START_HALF_WIDTHS)


def update(half_widths: Vector, prediction: Vector, y: float) -> Vector:
    """A target outside an interval widens it and one inside narrows it, in the ratio that holds the coverage."""
    missed = abs(y - prediction[0]) > half_widths * prediction[1]
    out: Vector = half_widths * np.exp(HALF_WIDTH_GAIN * (missed - (1 - np.array(LEVELS))))  # (G38)
    return out


def half_width(half_widths: Matrix, coverage: float) -> Vector:
    """(...,): that of `coverage`, by interpolation between the tracked levels, from (..., levels)."""
    require(0 < coverage < 1, "coverage", "a number between 0 and 1", coverage)
    place = np.interp(coverage, LEVELS, np.arange(len(LEVELS)))
    low = min(int(place), len(LEVELS) - 2)
    log_low, log_high = np.log(half_widths[..., low]), np.log(half_widths[..., low + 1])
    out: Vector = np.exp(log_low + (place - low) * (log_high - log_low))  # (G39)
    return out


def interval(prediction: Matrix, width: Vector | float) -> Matrix:
    """(rows, 2): lower and upper end, from (rows, 2) means and standard deviations and a half width in these."""
    mean, deviation = prediction[:, 0], prediction[:, 1]
    return np.column_stack((mean - width * deviation, mean + width * deviation))
