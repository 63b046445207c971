"""GraphMKL's prediction intervals: the scale of its errors, and half widths in units of it that hold their coverage.

Both are steady where nothing changes: the scale is a mean over many rows, and the half widths move by little. Where
the errors become larger or smaller, cumulative sums of log-likelihood ratios notice: the reported scale moves towards
that of the latest rows the more, the likelier they make a change, and once there is no doubt both start afresh.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from omkl.algorithms.descent import TOO_FAR
from omkl.algorithms.graph_mkl.constants import (
    CHANGE_ODDS,
    CHANGE_PRIOR_ROWS,
    GAIN_ROWS,
    HALF_WIDTH_RANGE,
    LEVELS,
    MAX_HALF_WIDTH_GAIN,
    MIN_HALF_WIDTH_GAIN,
    MIN_SCALE,
    RESTART_ODDS,
    RESTART_ROWS,
    SCALE_OF_MEAN,
    SCALE_RATIO,
    SCALE_ROWS,
    START_HALF_WIDTHS,
)
from omkl.algorithms.invariants import LARGEST_COUNT, demand, is_count, is_real
from omkl.arrays import Matrix, Vector
from omkl.validation import require

LARGEST_ERROR = 10 * TOO_FAR  # more than predictions that have not diverged can be wrong by
RATIOS = np.array([SCALE_RATIO, 1 / SCALE_RATIO])  # of the scales that evidence is gathered for
MAX_EVIDENCE = float(np.log(RESTART_ODDS * SCALE_ROWS))  # more makes the scale start afresh


class Calibration(NamedTuple):
    """What is known about the errors of the predictions; pairs are for a larger and for a smaller scale."""

    half_widths: Vector  # (levels,)  of intervals, in reported standard deviations
    evidence: Vector  # (2,)  that the scale has changed
    since: Vector  # (2,)  rows since that evidence was 0
    total: Vector  # (2,)  of the errors in these rows
    scale: float  # of the errors since it last changed, as a standard deviation
    rows: int  # since then, within bounds; 0: none yet


class Deviation(NamedTuple):
    """The mixture's standard deviation for a row, and the part of it that is the same for every row."""

    mixed: float
    noise: float

    @property
    def spread(self) -> float:
        """How much larger the errors of this row are than those of a row that the experts know and agree about."""
        return self.mixed / self.noise if self.noise > 0 else 1.0


def init() -> Calibration:
    return Calibration(np.array(START_HALF_WIDTHS), np.zeros(2), np.zeros(2), np.zeros(2), 0.0, 0)


def reported(calibration: Calibration, deviation: Deviation) -> float:
    """The standard deviation of a prediction: the scale of the errors by now, times the spread of this row."""
    return current_scale(calibration) * deviation.spread if calibration.rows else deviation.mixed  # (G40)


def current_scale(calibration: Calibration, odds: Sequence[float] = CHANGE_ODDS) -> float:
    """Between the scale so far and that of the rows which are evidence for another, by the evidence for it."""
    weight = 1 - np.array(odds) / (odds + np.expm1(calibration.evidence))  # (G43)
    which = int(np.argmax(weight))
    rows = calibration.since[which] + CHANGE_PRIOR_ROWS
    ratio = (SCALE_OF_MEAN * calibration.total[which] / calibration.scale + CHANGE_PRIOR_ROWS) / rows  # (G43)
    return float(calibration.scale * ratio ** weight[which])  # (G43)


def update(before: Calibration, deviation: Deviation, error: float, odds: Sequence[float] = CHANGE_ODDS) -> Calibration:
    """After a row whose prediction was wrong by `error`."""
    if before.rows == 0:
        before = before._replace(scale=max(deviation.noise, MIN_SCALE), rows=RESTART_ROWS)
    half_widths, evidence, since, total, scale, rows = before
    gap = abs(error) / deviation.spread
    if gap == 0 and scale <= MIN_SCALE:
        return before  # of a target that has been constant there is nothing to learn about errors
    z = as_normal(half_widths, gap / scale)
    evidence = np.maximum(evidence - np.log(RATIOS) + z**2 / 2 * (1 - 1 / RATIOS**2), 0)  # (G42)
    since = np.where(evidence > 0, since + 1, 0)
    total = np.where(evidence > 0, total + gap, 0)
    half_widths = tracked(half_widths, gap / current_scale(before, odds), rows)
    rows = min(rows + 1, SCALE_ROWS)
    scale += (SCALE_OF_MEAN * gap - scale) * GAIN_ROWS / rows  # (G45)
    which = int(np.argmax(evidence))
    if evidence[which] > np.log(RESTART_ODDS * rows):
        scale = SCALE_OF_MEAN * total[which] / since[which]  # (G46)
        rows = int(np.clip(since[which], RESTART_ROWS, SCALE_ROWS))  # (G46)
        evidence, since, total = np.zeros(2), np.zeros(2), np.zeros(2)
    return Calibration(half_widths, evidence, since, total, max(float(scale), MIN_SCALE), rows)


def as_normal(half_widths: Vector, x: float) -> float:
    """The error that a normal distribution has as often as these have x; at most that of the last level."""
    return float(np.interp(x, np.append(0.0, half_widths), np.append(0.0, START_HALF_WIDTHS)))  # (G41)


def tracked(half_widths: Vector, x: float, rows: int) -> Vector:
    """A target outside an interval widens it and one inside narrows it, in the ratio that holds the coverage."""
    start = np.array(START_HALF_WIDTHS)
    gain = min(max(GAIN_ROWS / rows, MIN_HALF_WIDTH_GAIN), MAX_HALF_WIDTH_GAIN)  # (G44)
    moved = half_widths * np.exp(gain * ((x > half_widths) - (1 - np.array(LEVELS))))  # (G44)
    out: Vector = np.maximum.accumulate(np.clip(moved, start / HALF_WIDTH_RANGE, start * HALF_WIDTH_RANGE))  # (G44)
    return out


def check_coverage(coverage: float) -> None:
    """Refuses a coverage that no interval can have."""
    valid = 0 < coverage <= LEVELS[-1]
    require(valid, "coverage", f"a number above 0, at most {LEVELS[-1]} (the largest that is tracked)", coverage)


def half_width(half_widths: Matrix, coverage: float) -> Vector:
    """(...,): that of `coverage`, by interpolation between the tracked levels, from (..., levels)."""
    check_coverage(coverage)
    if coverage < LEVELS[0]:
        return half_widths[..., 0] * (coverage / LEVELS[0])  # (G47)
    low, share = _between_levels(coverage)
    log_low, log_high = np.log(half_widths[..., low]), np.log(half_widths[..., low + 1])
    out: Vector = np.exp(log_low + share * (log_high - log_low))  # (G47)
    return out


@lru_cache
def _between_levels(coverage: float) -> tuple[int, float]:
    """The level below a coverage, and how far the coverage is on the way to the next."""
    place = np.interp(coverage, LEVELS, np.arange(len(LEVELS)))
    low = min(int(place), len(LEVELS) - 2)
    return low, float(place - low)


def interval(prediction: Matrix, width: Vector | float) -> Matrix:
    """(rows, 2): lower and upper end, from (rows, 2) means and standard deviations and a half width in these."""
    mean, deviation = prediction[:, 0], prediction[:, 1]
    return np.column_stack((mean - width * deviation, mean + width * deviation))


# What a file may claim


def shapes() -> dict[str, tuple[int, ...]]:
    """The shape of every array."""
    return {"half_widths": (len(LEVELS),), "evidence": (2,), "since": (2,), "total": (2,)}


def check(calibration: Calibration) -> None:
    """Refuses values that no stream leads to; shapes have been checked."""
    start = np.array(START_HALF_WIDTHS)
    ratio = calibration.half_widths / start
    within = (ratio >= 1 / HALF_WIDTH_RANGE - 1e-9) & (ratio <= HALF_WIDTH_RANGE + 1e-9)
    demand(bool(within.all()), "a half width is out of range")
    demand(bool((np.diff(calibration.half_widths) >= 0).all()), "half widths of a larger coverage are smaller")
    for pair in (calibration.evidence, calibration.since, calibration.total):
        demand(bool((pair >= 0).all()), "evidence for another scale of the errors cannot be negative")
    demand(
        bool((calibration.evidence <= MAX_EVIDENCE).all()), "evidence for another scale of the errors is out of range"
    )
    some = (calibration.since > 0) == (calibration.evidence > 0)
    demand(bool(some.all()), "evidence for another scale of the errors without rows")
    whole = (calibration.since % 1 == 0) & (calibration.since < LARGEST_COUNT)
    demand(bool(whole.all()), "the number of rows must be a count")
    demand(bool((calibration.total <= LARGEST_ERROR * calibration.since).all()), "the errors are out of range")
    demand(is_count(calibration.rows) and calibration.rows <= SCALE_ROWS, "the number of rows must be a count")
    least = MIN_SCALE if calibration.rows else 0.0
    demand(
        is_real(calibration.scale) and least <= calibration.scale <= LARGEST_ERROR,
        "the scale of the errors is out of range",
    )
