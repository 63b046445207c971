"""Learning and exploration rates: constant for a known horizon, or decreasing on a stream of unknown length."""

import math
from typing import NamedTuple


class Schedule(NamedTuple):
    """Learning rate eta and exploration rate xi.

    >>> Schedule.for_horizon(10_000)
    Schedule(eta=0.01, xi=0.01, anytime=False)
    """

    eta: float
    xi: float
    anytime: bool = False  # divide both by sqrt(t)

    @classmethod
    def for_horizon(cls, T: int) -> "Schedule":
        """eta = xi = 1 / sqrt(T), as in the paper's experiments."""
        return cls(1 / math.sqrt(T), 1 / math.sqrt(T))

    def eta_at(self, t: int) -> float:
        return self.eta / math.sqrt(t) if self.anytime else self.eta

    def xi_at(self, t: int) -> float:
        return min(1.0, self.xi / math.sqrt(t)) if self.anytime else self.xi
