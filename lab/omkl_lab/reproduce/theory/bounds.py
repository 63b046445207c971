"""The bounds of Theorems 3 and 4, (21) and (26), and the D and T for which they would not be vacuous."""

import math
from typing import NamedTuple

import numpy as np
from scipy import stats

from omkl.arrays import Mask, Vector

CONFIDENCE = 0.95


class Rates(NamedTuple):
    T: int
    N: int
    eta: float
    xi: float


def epsilon(sigma2: float, d: int, D: int, confidence: float = CONFIDENCE) -> float:
    """The least epsilon for which 1 - 2^8 (sigma / epsilon)^2 exp(-D epsilon^2 / (4 d + 8)) >= confidence.

    The kernel's error is at most 2 for any D, so an epsilon above 2 is no restriction.

    >>> round(epsilon(sigma2=5.0, d=5, D=50), 2), round(epsilon(sigma2=5.0, d=5, D=5_000_000), 4)
    (2.19, 0.0104)
    """
    low, high = 0.0, 1.0
    while failure(high, sigma2, d, D) > 1 - confidence:
        high *= 2
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if failure(middle, sigma2, d, D) > 1 - confidence else (low, middle)
    return high


def failure(eps: float, sigma2: float, d: int, D: int) -> float:
    if eps == 0:
        return math.inf
    return 2**8 * sigma2 / eps**2 * math.exp(-D * eps**2 / (4 * d + 8))


def theorem_3(
    rates: Rates, A: Mask, star: int, inverse_q: Vector, inverse_q_bar: Vector, eps: float, C: float, L: float
) -> float:
    """(21), with the node i in the in-neighbourhood of j* for which it is least."""
    T, N, eta, xi = rates
    inside = np.flatnonzero(A[:, star])
    per_node = np.log(N * A[inside].sum(axis=1)) / eta + eta / 2 * inverse_q_bar[inside]
    common = (1 + eps) * C**2 / (2 * eta) + eps * L * T * C + (xi + eta * N / 2 - eta * xi / 2) * T
    return float(per_node.min() + common + eta / 2 * L**2 * inverse_q[star])  # (21)


def theorem_4(rates: Rates, beta: float, eps: float, C: float, L: float) -> float:
    """(26)."""
    T, N, eta, xi = rates
    common = 2 * math.log(N) / eta + (1 + eps) * C**2 / (2 * eta) + eps * L * T * C
    return common + (xi + eta / 2 * (L**2 + N * beta + 1) / beta - eta * xi / 2) * T  # (26)


def features_needed(eps: float, sigma2: float, d: int, confidence: float = CONFIDENCE) -> float:
    """The D for which the probability statement holds with this epsilon."""
    return (4 * d + 8) / eps**2 * math.log(2**8 * sigma2 / eps**2 / (1 - confidence))


def rounds_needed(constant: float, share: float) -> float:
    """The T from which constant * sqrt(T) is at most this share of T."""
    return (constant / share) ** 2


class Fit(NamedTuple):
    """regret ~ T^exponent."""

    exponent: float
    low: float
    high: float
    points: int


def growth(T: Vector, regret: Vector, confidence: float = CONFIDENCE) -> Fit | None:
    """Least squares on the logarithms, with a Student t interval; None with fewer than three positive values.

    >>> T = np.array([100.0, 200.0, 400.0, 800.0])
    >>> growth(T, 3 * T**0.75).exponent.__round__(6)
    0.75
    """
    good = np.isfinite(regret) & (regret > 0)
    if good.sum() < 3:
        return None
    line = stats.linregress(np.log(T[good]), np.log(regret[good]))
    half_width = float(stats.t.ppf((1 + confidence) / 2, good.sum() - 2)) * float(line.stderr)
    return Fit(float(line.slope), float(line.slope) - half_width, float(line.slope) + half_width, int(good.sum()))
