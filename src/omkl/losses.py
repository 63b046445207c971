"""Squared, logistic and hinge loss: value, derivative, and the importance-weight-aware step.

The step of Karampatziakis and Langford (2011) follows the gradient flow of the loss for a time k, where a
gradient step would follow the gradient at its start. Since |z| = 1, a step of length s along -z lowers the
prediction by exactly s. The flow has a closed form (squared, hinge) or is the root of one equation (logistic),
and it never passes the minimum, however large k is.
"""

import math
from typing import Literal

LossName = Literal["squared", "logistic", "hinge"]
LOSSES: tuple[LossName, ...] = ("squared", "logistic", "hinge")


def value(loss: LossName, f: float, y: float) -> float:
    """C(f, y).

    >>> value("squared", 0.5, 1.0), round(value("logistic", 0.0, 1.0), 4), value("hinge", 0.25, -1.0)
    (0.25, 0.6931, 1.25)
    """
    if loss == "squared":
        return (f - y) ** 2
    if loss == "logistic":
        return max(-y * f, 0.0) + math.log1p(math.exp(-abs(f)))
    return max(0.0, 1 - y * f)


def derivative(loss: LossName, f: float, y: float) -> float:
    """dC/df; 0 at the corner of the hinge loss.

    >>> derivative("squared", 0.5, 1.0), derivative("logistic", 0.0, 1.0), derivative("hinge", 0.25, -1.0)
    (-1.0, -0.5, 1.0)
    """
    if loss == "squared":
        return 2 * (f - y)
    if loss == "logistic":
        e = math.exp(-abs(f))
        return -y * (e if y * f > 0 else 1.0) / (1 + e)
    return -y if y * f < 1 else 0.0


def aware_step(loss: LossName, f: float, y: float, k: float) -> float:
    """By how much f decreases when it follows the gradient flow of the loss for a time k.

    >>> round(aware_step("squared", 1.0, 0.0, 1e9), 6)
    1.0
    >>> aware_step("hinge", 0.75, 1.0, 3.0)
    -0.25
    """
    if loss == "squared":
        return (f - y) * -math.expm1(-2 * k)
    if loss == "logistic":
        return -y * logistic_rise(y * f, k)
    return -y * min(k, max(0.0, 1 - y * f))


def logistic_rise(m: float, k: float) -> float:
    """The increase s of the margin m: the root of s + exp(m) (exp(s) - 1) = k.

    Newton's method, started above the root of a convex increasing function, decreases monotonically and
    ends when rounding stops it. For m > 0 the equation is divided by exp(m), which could overflow.

    >>> s = logistic_rise(0.3, 2.0)
    >>> round(s + math.exp(0.3) * math.expm1(s), 12)
    2.0
    """
    k = min(k, 1e100)
    e = math.exp(-abs(m))
    s = min(k, math.log1p(k * math.exp(-m)) if m > -30 else -m + math.log(e + k) if k > 0 else 0.0)
    while True:
        if m > 0:
            lower = s - (e * (s - k) + math.expm1(s)) / (e + math.exp(s))
        else:
            rise = e * math.expm1(s) if m > -30 else math.exp(m + s) - e
            lower = s - (s - k + rise) / (1 + e + rise)
        if not lower < s:
            return s
        s = lower
