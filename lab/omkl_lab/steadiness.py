"""What steady intervals cost: GraphMKL's calibration alone, on normal errors, for several odds of a change.

A part of python -m omkl_lab.coverage. The true coverage is known here, and nothing but the calibration matters.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy import stats

from omkl.algorithms.graph_mkl import intervals
from omkl.algorithms.graph_mkl.constants import CHANGE_ODDS, LEVELS, START_HALF_WIDTHS
from omkl.arrays import Matrix, Vector

SETTLED, STEADY, AFTER, GRADUAL = 1000, 4000, 150, 1000  # rows
SEEDS, EVERY, FIRST_SEED = 40, 20, 500  # of the steady part: a quarter of the seeds, every so many rows
FACTORS = (3.0, 1 / 3, 2.0, 1 / 2, 1.5, 1 / 1.5)  # of the errors, at a change
FIXED_GAIN, FAST_MEMORY = 0.05, 0.97  # of half widths that always move alike, in units of a noise that forgets fast
MULTIPLES = (0.1, 0.3, 1.0, 3.0, 10.0)  # of the odds against a change
LEVEL = LEVELS.index(0.9)
AS_EVERY_ROW = intervals.Deviation(mixed=1.0, noise=1.0)
Width = Callable[[float], float]  # half width of the 0.9 interval after an error


def calibration(odds: Sequence[float]) -> Width:
    """GraphMKL's, with these odds against a larger and a smaller scale."""
    now = intervals.init()

    def after(error: float) -> float:
        nonlocal now
        now = intervals.update(now, AS_EVERY_ROW, error, odds)
        return float(now.half_widths[LEVEL]) * intervals.current_scale(now, odds)

    return after


def fixed_gain() -> Width:
    """Half widths that always move alike, in units of a noise that forgets fast."""
    half_width, variance = START_HALF_WIDTHS[LEVEL], 1.0

    def after(error: float) -> float:
        nonlocal half_width, variance
        missed = error**2 > half_width**2 * variance
        half_width *= float(np.exp(FIXED_GAIN * (missed - (1 - LEVELS[LEVEL]))))
        variance = FAST_MEMORY * variance + (1 - FAST_MEMORY) * error**2
        return half_width * float(np.sqrt(variance))

    return after


def coverages(start: Callable[[], Width], scales: Vector, seeds: int) -> Matrix:
    """(seeds, rows): of the interval after each row, for the scale of the next one."""
    out = np.empty((seeds, len(scales)))
    for k in range(seeds):
        after = start()
        errors = np.random.default_rng(FIRST_SEED + k).normal(size=len(scales)) * scales
        widths = np.array([after(float(error)) for error in errors])
        out[k] = 2 * stats.norm.cdf(widths / np.append(scales[1:], scales[-1])) - 1
    return out


def first_back(curve: Vector, nominal: float = 0.9, within: float = 0.05) -> int | None:
    """The first place of the curve from which it stays near the nominal coverage; None if it does not."""
    outside = np.flatnonzero(np.abs(curve - nominal) > within)
    if len(outside) == 0:
        return 0
    return None if outside[-1] + 1 == len(curve) else int(outside[-1]) + 1


def measured(multiple: float | None) -> list[dict[str, Any]]:
    """Steadiness and recovery with that multiple of the odds; None: with a fixed gain."""

    def start() -> Width:
        return fixed_gain() if multiple is None else calibration([multiple * odds for odds in CHANGE_ODDS])

    steady = coverages(start, np.ones(SETTLED + STEADY), SEEDS // 4)[:, SETTLED::EVERY]
    rows = []
    for factor in FACTORS:
        scales = np.append(np.ones(SETTLED), np.full(AFTER, factor))
        rows.append(first_back(coverages(start, scales, SEEDS)[:, SETTLED - 1 :].mean(axis=0)))
    growing = np.append(np.ones(SETTLED), 3 ** np.linspace(0, 1, GRADUAL))
    gradual = coverages(start, growing, SEEDS // 2)[:, SETTLED:].mean()
    return [{"deviation": float(steady.std()), "mean": float(steady.mean()), "rows": rows, "gradual": float(gradual)}]
