"""Squared, logistic and hinge loss: value, derivative, and the importance-weight-aware step with a ridge.

The step follows the gradient flow of loss and ridge, d theta / dt = -C'(f, y) z - 2 lambda theta with f = theta' z,
for a time k, where a gradient step would follow the gradient at its start. For lambda = 0 it is the step of
Karampatziakis and Langford (2011). Since |z| = 1,

    theta(k) = exp(-2 lambda k) theta(0) + a z,   a = f(k) - exp(-2 lambda k) f(0),   df / dt = -C'(f, y) - 2 lambda f:

what is orthogonal to z shrinks, and the prediction follows an equation of its own, which has a closed form (squared,
hinge) or is solved by quadrature (logistic). It never passes the minimum of loss and ridge, however large k is.
"""

import math
from functools import lru_cache
from typing import Literal

LossName = Literal["squared", "logistic", "hinge"]
LOSSES: tuple[LossName, ...] = ("squared", "logistic", "hinge")

LONGEST = 1e100  # a longer step, or a heavier ridge, would end at the same place to rounding
NEGLIGIBLE = 1e-20  # 2 lambda k below which rounding hides the ridge
SATURATED = 40.0  # the logistic function of -40 is 0, and that of 40 is 1, to rounding

# Gauss and Legendre's rule on [0, 1]
NODES = (0.01985507175123188, 0.10166676129318664, 0.2372337950418355, 0.4082826787521751,
         0.5917173212478249, 0.7627662049581645, 0.8983332387068134, 0.9801449282487681)  # fmt: skip
WEIGHTS = (0.05061426814518813, 0.11119051722668724, 0.15685332293894363, 0.18134189168918100,
           0.18134189168918100, 0.15685332293894363, 0.11119051722668724, 0.05061426814518813)  # fmt: skip


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


def aware_step(loss: LossName, lam: float, f: float, y: float, k: float) -> tuple[float, float]:
    """The factor exp(-2 lambda k) and the length a of the step theta <- factor theta + a z.

    >>> factor, a = aware_step("squared", 0.001, 0.0, 1.0, 1000.0)  # one row of weight 1000
    >>> round(factor, 3), round(a, 3)
    (0.135, 0.999)
    >>> aware_step("hinge", 0.0, 0.75, 1.0, 3.0)
    (1.0, 0.25)
    """
    k, ridge = min(k, LONGEST), min(2 * lam, LONGEST)
    gone = math.expm1(-ridge * k)
    factor = 1 + gone
    if loss == "squared":
        rest = y / (1 + ridge / 2)  # the minimum of loss and ridge
        return factor, factor * math.expm1(-2 * k) * (f - rest) - gone * rest
    m = y * f
    if loss == "logistic":
        return factor, y * (logistic_rise(m, k) if ridge * k < NEGLIGIBLE else rise_with_ridge(m, k, ridge, gone))
    if m > 1:  # it shrinks to 1, and stays there if the ridge is weak, else goes on to 1 / ridge
        return factor, y * max(0.0, 1 - factor * m) / max(1.0, ridge)
    return factor, y * min(k if ridge * k < NEGLIGIBLE else -gone / ridge, 1 - factor * m)


def logistic_rise(m: float, k: float) -> float:
    """The increase s of the margin m: the root of s + exp(m) (exp(s) - 1) = k.

    Newton's method, started above the root of a convex increasing function, decreases monotonically and
    ends when rounding stops it. For m > 0 the equation is divided by exp(m), which could overflow.

    >>> s = logistic_rise(0.3, 2.0)
    >>> round(s + math.exp(0.3) * math.expm1(s), 12)
    2.0
    """
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


def velocity(m: float, ridge: float) -> float:
    """dm / dt of the margin under logistic loss and ridge."""
    e = math.exp(-abs(m))
    return (e if m > 0 else 1.0) / (1 + e) - ridge * m


@lru_cache(maxsize=64)
def resting_margin(ridge: float) -> float:
    """The margin at which logistic loss and ridge balance, where the velocity is 0; without a ridge infinity.

    The velocity is convex and decreasing for m > 0, so that Newton's method increases monotonically from 0.

    >>> round(resting_margin(0.002), 6)
    4.66512
    """
    m = 0.0 if ridge > 0 else math.inf
    while m < math.inf:
        e = math.exp(-m)
        higher = m + velocity(m, ridge) / (ridge + e / (1 + e) ** 2)
        if not higher > m:
            break
        m = higher
    return m


def travel_time(m: float, way: float, ridge: float) -> float:
    """How long the margin takes from m to m + way: the integral of 1 / velocity."""
    return way * sum(weight / velocity(m + node * way, ridge) for node, weight in zip(NODES, WEIGHTS, strict=True))


def travelled(m: float, k: float, ridge: float) -> float:
    """By how much the margin m changes in a short time k: the root of travel_time(m, way) = k, by Newton's method.

    The classical Runge-Kutta step is so close to it that one or two steps remain.
    """
    v = velocity(m, ridge)
    v2 = velocity(m + k / 2 * v, ridge)
    v3 = velocity(m + k / 2 * v2, ridge)
    way = k / 6 * (v + 2 * v2 + 2 * v3 + velocity(m + k * v3, ridge))
    for _ in range(4):
        change = (k - travel_time(m, way, ridge)) * velocity(m + way, ridge)
        way += change
        if abs(change) <= 1e-8 * abs(way):
            break
    return way


def rise_with_ridge(m: float, k: float, ridge: float, gone: float) -> float:
    """How far above exp(-ridge k) m, where it would be without the loss, the margin is after a time k.

    Where the logistic function is 0 or 1 the margin has a closed form. Elsewhere the time is the integral of
    1 / velocity, by quadrature over pieces that are short beside their distance from its poles: the resting margin, and
    complex ones at a distance of at least 3. The velocity falls on the way, so that a piece takes longer than
    its length / velocity, and most steps are seen to end in the first. `gone` is exp(-ridge k) - 1.
    """
    start, rest = m, resting_margin(ridge)
    if gone == -1:
        return rest
    if m > rest + SATURATED:
        k -= math.log(m / (rest + SATURATED)) / ridge
        if k <= 0:
            return 0.0
        m = rest + SATURATED
    elif m < -SATURATED:
        k -= math.log1p(ridge * (-SATURATED - m) / (1 + ridge * SATURATED)) / ridge
        if k <= 0:
            return -gone / ridge
        m = -SATURATED
    while True:
        way = max(-1.0, min(1.0, (rest - m) / 4))
        if m + way == m:
            return max(0.0, rest - start - gone * start)
        if k * abs(velocity(m, ridge)) > abs(way):
            time = travel_time(m, way, ridge)
            if time < k:
                m, k = m + way, k - time
                continue
        return max(0.0, m - start + travelled(m, k, ridge) - gone * start)
