"""Predictions of kernels on random features."""

import numpy as np

from omkl.arrays import Tensor, Vector
from omkl.features import features


def outputs(V: Tensor, theta: Tensor, x: Vector) -> tuple[Tensor, Vector]:
    """Features z_i, (2, D), and prediction f_i of every kernel given."""
    z = np.array([features(V_i, x) for V_i in V])
    return z, np.array([np.vdot(theta_i, z_i) for theta_i, z_i in zip(theta, z, strict=True)])  # (4)
