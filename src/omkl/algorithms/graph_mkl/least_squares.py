"""Recursive least squares on a Cholesky factor of the covariance: P = R' R, R lower triangular (Carlson 1973).

In this form no rounding can make a leverage z' P z negative. Where R has a single row it is the diagonal of a diagonal
factor: then memory and time are proportional to the number of features.
"""

from typing import NamedTuple

import numpy as np

from omkl.algorithms.graph_mkl.constants import MIN_LEVERAGE_DIVISOR
from omkl.arrays import Mask, Matrix, Vector


def is_diagonal(R: Matrix) -> bool:
    return bool(len(R) < R.shape[1])


def factor_times(R: Matrix, z: Vector) -> Vector:
    """phi = R z."""
    phi: Vector = R[0] * z if is_diagonal(R) else R @ z  # (G9)
    return phi


class Counting(NamedTuple):
    """How a row is learned."""

    weight: float  # as often as this
    before: float = 0.0  # the weight with which a row has been learned that this one is a copy of
    again: bool = False  # whether the row is shown again, which does not change P


def update(
    R: Matrix, theta: Matrix, phi: Vector, gap: Vector, row: Counting, min_leverage: float, others: float = 0.0
) -> tuple[Matrix, Matrix]:
    """R and theta after one row: phi = R z, and gap = target - theta z.

    Where these features are a part of those of an expert, and P has no covariances with the rest, `others` is the
    leverage that the rest has.
    """
    q = float(phi @ phi) + others  # (G9)
    counted = 0.0 if row.again else counts(q, row.weight, min_leverage)
    weight = row.weight + row.before * (1 - counted / row.weight)  # (G16)
    theta = theta + np.outer(row.weight * gap, P_times(R, phi) / (1 + weight * q))  # (G16)
    return downdated(R, phi, counted, others), theta


def counts(q: float, weight: float, min_leverage: float) -> float:
    """How often a row of leverage q counts for P: until z' P z is `min_leverage`, unless that is 0."""
    if min_leverage == 0:
        return weight
    return max(0.0, min(weight, 1 / min_leverage - 1 / max(q, MIN_LEVERAGE_DIVISOR)))  # (G17)


def P_times(R: Matrix, phi: Vector) -> Vector:
    """P z."""
    Pz: Vector = R[0] * phi if is_diagonal(R) else R.T @ phi
    return Pz


def downdated(R: Matrix, phi: Vector, counted: float, others: float = 0.0) -> Matrix:
    """R after a row that counts so many times."""
    if counted <= 0:
        return R
    if is_diagonal(R):
        q = float(phi @ phi) + others
        return R * np.sqrt((1 + counted * np.maximum(q - phi**2, 0)) / (1 + counted * q))  # (G19)
    out: Matrix = downdate(np.sqrt(counted) * phi, 1 + counted * others) @ R  # (G18)
    return out


def downdate(phi: Vector, start: float = 1.0) -> Matrix:
    """The lower triangular T with T' T = I - phi phi' / (start + |phi|^2).

    T R is then the factor of P - P z z' P / (1 + z' P z).
    """
    a = start + np.cumsum(phi**2)
    before = np.append(start, a[:-1])
    T: Matrix = np.tril(-np.outer(phi / np.sqrt(before * a), phi), -1) + np.diag(np.sqrt(before / a))  # (G18)
    return T


def diagonal_of(R: Matrix) -> Matrix:
    """(1, n): the diagonal factor with the variances that R gives to the coefficients."""
    diagonal: Matrix = np.sqrt((R**2).sum(axis=0, keepdims=True))  # (G48)
    return diagonal


def marginalise_features(R: Matrix, theta: Matrix, new: Mask, ridge: float) -> tuple[Matrix, Matrix]:
    """R and theta as if the features `new` had never been there, and new ones stood in their place.

    The coefficients and the covariance of the others are those given that the coefficients of the old features
    are 0, so that the others take over their part of the prediction. Setting coefficients to 0 alone would be
    ruinous, since large ones cancel each other.
    """
    Q, S = np.linalg.qr(R[:, new])
    theta = theta - np.linalg.lstsq(S.T, theta[:, new].T)[0].T @ (Q.T @ R)  # (G49)
    theta[:, new] = 0
    rows = (R - Q @ (Q.T @ R)) * ~new  # (G49)
    rows = np.vstack((rows, np.diag(new)[new] / np.sqrt(ridge)))
    factor = np.linalg.qr(rows[:, ::-1])[1]
    return np.tril(factor[::-1, ::-1]), theta
