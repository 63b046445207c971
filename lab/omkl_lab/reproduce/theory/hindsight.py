"""The best function in hindsight (19): kernel ridge regression with the same loss (5) in every round.

The sum over t of (f(x_t) - y_t)^2 + lambda |f|^2 is the sum of squares plus T lambda |f|^2, so the
ridge is T lambda. The coefficients of the representer theorem are (y - f) / (T lambda) in either space.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from omkl.arrays import Tensor, Vector
from omkl.kernels import Kernel


class Fit(NamedTuple):
    """The best function of one kernel."""

    loss: float  # sum over t of the regularised loss
    norm2: float  # |f|^2
    C: float  # sum_t |alpha_t|


class Best(NamedTuple):
    kernel: int  # j*
    loss: float  # sum over t of the regularised loss of f*
    norm2: float  # |f*|^2
    C: float  # largest over the kernels of sum_t |alpha_t|, as in the proof
    C_star: float  # the same for j* alone


def exact(kernels: Sequence[Kernel], X: Tensor, y: Vector, lam: float) -> list[Fit]:
    """In the RKHS of the kernels: one T x T system per kernel."""
    ridge = len(y) * lam
    fits = []
    for kernel in kernels:
        K = kernel.value(X, X)
        K[np.diag_indices_from(K)] += ridge
        alpha = cho_solve(cho_factor(K, lower=True, overwrite_a=True, check_finite=False), y, check_finite=False)
        # K alpha = y - ridge alpha, hence |f|^2 = alpha . (y - ridge alpha)
        fits.append(Fit(ridge * float(alpha @ y), float(alpha @ (y - ridge * alpha)), float(np.abs(alpha).sum())))
    return fits


def in_features(V: Tensor, X: Tensor, y: Vector, lam: float) -> list[Fit]:
    """In the spaces of the random features: one 2D x 2D system per kernel."""
    ridge = len(y) * lam
    fits = []
    for v in V:
        phase = X @ v
        Z = np.hstack((np.sin(phase), np.cos(phase))) / np.sqrt(v.shape[1])
        G = Z.T @ Z
        G[np.diag_indices_from(G)] += ridge
        theta = cho_solve(cho_factor(G, lower=True), Z.T @ y)
        rest = y - Z @ theta
        norm2 = float(theta @ theta)
        fits.append(Fit(float(rest @ rest) + ridge * norm2, norm2, float(np.abs(rest).sum()) / ridge))
    return fits


def best(runs: Sequence[Sequence[Fit]]) -> list[Best]:
    """f* in every run: j* is a property of the stream, the kernel of least mean loss over all of them."""
    star = int(np.argmin(np.mean([[fit.loss for fit in fits] for fits in runs], axis=0)))  # (19)
    return [
        Best(star, fits[star].loss, fits[star].norm2, max(fit.C for fit in fits), fits[star].C) for fits in runs
    ]  # fmt: skip
