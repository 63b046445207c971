"""How one kernel's theta moves: the gradient step (17), and stabilisers that keep it from diverging.

With |z| = 1 a plain step on the squared loss multiplies the error by 1 - 2 eta (1 + ...) / q,
and diverges where eta / q > 1 persists. Each stabiliser is a departure from the paper:

aware    follow the gradient flow of loss and ridge instead of its tangent; cannot overshoot
floor    never let q fall below 2 eta, so that a step never passes the target
project  project theta on the ball |theta| <= radius of (as2)
"""

from typing import Literal, NamedTuple, Protocol

import numpy as np

from omkl.arrays import Matrix, Vector
from omkl.errors import DivergenceError
from omkl.losses import LONGEST, LossName, aware_step, derivative, resting_margin

Stabiliser = Literal["none", "aware", "floor", "project"]

TOO_FAR = 1e100  # a prediction beyond it has diverged; everything derived from it is still finite
LEAST = 1e-15  # smallest probability that anything is divided by


class Descent(NamedTuple):
    """The loss (5) and how its gradient is followed."""

    loss: LossName
    lam: float  # ridge
    stabiliser: Stabiliser
    radius: float  # C_theta of (as2), for "project"

    @property
    def resting_margin(self) -> float:
        """Where "aware" ends for the logistic loss; the engine reads it, to compute it once."""
        return resting_margin(min(2 * self.lam, LONGEST))


def importance(descent: Descent, q: float, eta: float, weight: float) -> float:
    """weight / q, the importance weight of a sample that a kernel sees with probability q."""
    floor = 2 * eta * weight if descent.stabiliser == "floor" else 0.0
    return weight / max(q, floor, LEAST)


def descend(descent: Descent, theta: Matrix, z: Matrix, f: float, y: float, k: float) -> Matrix:
    """theta after a step of length k = eta / q."""
    loss, lam, stabiliser, radius = descent
    if stabiliser == "aware":
        factor, a = aware_step(loss, lam, f, y, k)
        moved: Matrix = factor * theta + a * z
        return moved
    gradient = derivative(loss, f, y) * z + 2 * lam * theta
    moved = theta - k * gradient  # (17)
    if stabiliser == "project":
        moved *= min(1.0, radius / max(float(np.linalg.norm(moved)), radius))
    return moved


def require_bounded(f: Vector) -> None:
    if not np.all(np.abs(f) < TOO_FAR):
        raise DivergenceError


def require_finite(*values: float | Vector) -> None:
    """A weight that is not finite any more has diverged."""
    if not all(np.isfinite(value).all() for value in values):
        raise DivergenceError


def require_finite_step(descent: Descent, theta: Matrix, f: float, y: float, k: float) -> None:
    """Whether `descend` leaves theta finite, where |theta|^2 is; "aware" always does."""
    if descent.stabiliser != "aware":
        shrink, along = 1 - 2 * descent.lam * k, k * derivative(descent.loss, f, y)
        require_finite(shrink * shrink * float(np.vdot(theta, theta)) + along * along)


class HasDescent(Protocol):
    @property
    def descent(self) -> Descent: ...


def divergence_advice(problem: HasDescent) -> str:
    """What a user can do where the predictions of a problem diverge."""
    stabiliser = problem.descent.stabiliser
    if stabiliser == "none":
        return "the step is too long for this stream: use stabiliser='aware' (it is 'none' now), or scale y"
    return f"stabiliser={stabiliser!r} cannot help; scale y to a moderate range or lower learning_rate"
