"""GraphMKL's change detection: when the error rises a challenger starts, and after a trial the better set stays."""

from typing import Literal, NamedTuple

from omkl.algorithms.graph_mkl.constants import (
    ALARM_AFTER,
    ALARM_RATIO,
    CAP_AFTER,
    ERROR_CAP,
    FAST_ROUNDS,
    MIN_VARIANCE,
    SLOW_ROUNDS,
    TREND_AFTER,
    TRIAL_MEMORY,
)
from omkl.algorithms.graph_mkl.problem import Problem

Verdict = Literal["none", "start", "keep", "replace"]


class Trend(NamedTuple):
    """Means of the error of the predictions."""

    fast: float = 0.0
    slow: float = 0.0
    rounds: int = 0  # behind both


class Trial(NamedTuple):
    """Discounted sums of the weights that the two sets of experts had in the mixture."""

    incumbent: float = 0.0
    challenger: float = 0.0


def update_trend(trend: Trend, error: float, age: int, unit: float = 1.0) -> Trend:
    """The means after one more error, of an incumbent that has learned `age` rows, with the unit of its target."""
    fast, slow, n = trend
    if age <= TREND_AFTER:
        return trend
    cap = ERROR_CAP * max(slow, MIN_VARIANCE * unit**2)  # (G35)
    capped = min(error, cap) if n > CAP_AFTER else error  # (G35)
    n += 1
    slow += max(1 / SLOW_ROUNDS, 1 / n) * (capped - slow)  # (G36)
    fast += max(1 / FAST_ROUNDS, 1 / n) * (capped - fast)  # (G36)
    return Trend(fast, slow, n)


def alarm(trend: Trend, unit: float = 1.0) -> bool:
    """Errors of a constant target, whose unit is not known, are rounding, and so are those of no variance."""
    usual = max(trend.slow, MIN_VARIANCE * unit**2)  # (G37)
    return unit > 0 and trend.rounds > ALARM_AFTER and trend.fast > ALARM_RATIO * usual  # (G37)


def update_trial(trial: Trial, incumbent: float, challenger: float) -> Trial:
    """The sums after a round in which the sets had these weights in the mixture."""
    return Trial(
        TRIAL_MEMORY * trial.incumbent + incumbent,  # (G38)
        TRIAL_MEMORY * trial.challenger + challenger,  # (G38)
    )


def verdict(
    problem: Problem, trend: Trend, trial: Trial, challenger_age: int, unit: float = 1.0, misfit: bool = False
) -> Verdict:
    """Whether a challenger starts now or, at the end of its trial, which set stays.

    `unit` and `misfit` are those of the incumbent: of its target, and whether its scaling no longer fits the stream.
    """
    if challenger_age < 0:
        return "start" if problem.trial and (misfit or alarm(trend, unit)) else "none"
    if challenger_age < problem.trial:
        return "none"
    return "replace" if trial.challenger > trial.incumbent else "keep"  # (G39)
