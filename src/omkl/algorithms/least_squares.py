"""Recursive least squares by a triangular root: P = R' R, R lower triangular (Carlson 1973).

So kept, no rounding can make a variance z' P z negative.
"""

import numpy as np

from omkl.arrays import Mask, Matrix, Vector

LEAST = 1e-12  # of z' P z, where it divides


def solve(R: Matrix, theta: Matrix, phi: Vector, gap: Vector, weight: float, sure: float) -> None:
    """One row, phi = R z; it counts for P only until z' P z is `sure`, unless that is 0."""
    q = float(phi @ phi)
    theta += np.outer(weight * gap, R.T @ phi / (1 + weight * q))
    counts = weight if sure == 0 else min(weight, 1 / sure - 1 / max(q, LEAST))
    if counts > 0:
        R[...] = downdate(np.sqrt(counts) * phi) @ R


def downdate(phi: Vector) -> Matrix:
    """The lower triangular T with T' T = I - phi phi' / (1 + |phi|^2): T R is the root of P - P z z' P / a."""
    a = 1 + np.cumsum(phi**2)
    before = np.append(1.0, a[:-1])
    T: Matrix = np.tril(-np.outer(phi / np.sqrt(before * a), phi), -1) + np.diag(np.sqrt(before / a))
    return T


def unlearn(R: Matrix, theta: Matrix, fresh: Mask, ridge: float) -> None:
    """Least squares as if these features had never been there, and new ones in their place.

    The others take over what the old ones said: their coefficients and P are those given that the coefficients
    of the old ones are 0. Cutting those off instead would be ruinous, as large ones cancel each other.
    """
    U, S = np.linalg.qr(R[:, fresh])
    theta -= np.linalg.lstsq(S.T, theta[:, fresh].T)[0].T @ (U.T @ R)
    theta[:, fresh] = 0
    rows = (R - U @ (U.T @ R)) * ~fresh
    rows = np.vstack((rows, np.diag(fresh)[fresh] / np.sqrt(ridge)))
    root = np.linalg.qr(rows[:, ::-1])[1]
    R[...] = np.tril(root[::-1, ::-1])
