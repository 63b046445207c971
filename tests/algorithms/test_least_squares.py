"""Recursive least squares on a Cholesky factor of the covariance."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from omkl.algorithms.graph_mkl.least_squares import Counting, downdate, marginalise_features, update


def test_factor_and_coefficients_are_those_of_the_ridge_regression():
    """After n rows R' R = (ridge I + Z' Z)^-1 and theta is the ridge regression."""
    rng = np.random.default_rng(0)
    Z, t, ridge = rng.normal(size=(40, 7)), rng.normal(size=40), 0.3
    R, theta = np.eye(7) / np.sqrt(ridge), np.zeros((1, 7))
    for z, target in zip(Z, t, strict=True):
        R, theta = update(R, theta, R @ z, target - theta @ z, Counting(1.0), min_leverage=0.0)
        assert (np.tril(R) == R).all()
    P = np.linalg.inv(ridge * np.eye(7) + Z.T @ Z)
    np.testing.assert_allclose(R.T @ R, P, rtol=1e-10)
    np.testing.assert_allclose(theta[0], P @ Z.T @ t, rtol=1e-10)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=9))
def test_a_downdate_is_a_factor_of_the_identity_less_one_row(phi):
    phi = np.array(phi)
    T = downdate(phi)
    wanted = np.eye(len(phi)) - np.outer(phi, phi) / (1 + phi @ phi)
    np.testing.assert_allclose(T.T @ T, wanted, atol=1e-9)
    assert (np.diagonal(T) > 0).all()


def test_a_row_lowers_its_leverage_to_min_leverage_at_most():
    """z' P z after a row is q / (1 + q), but not below `min_leverage`; P never grows, and theta learns all the same."""
    rng = np.random.default_rng(0)
    R, theta = 10 * np.eye(5), np.zeros((1, 5))
    for _ in range(500):
        z, before, theta_before = rng.normal(size=5), R.T @ R, theta
        phi = R @ z
        R, theta = update(R, theta, phi, np.ones(1), Counting(1.0), min_leverage=0.05)
        q, after = phi @ phi, z @ R.T @ R @ z
        np.testing.assert_allclose(after, max(q / (1 + q), min(q, 0.05)), rtol=1e-9)
        assert np.linalg.eigvalsh(before - R.T @ R).min() > -1e-12 * np.linalg.norm(before)
        assert (theta != theta_before).all()
    assert 0.01 < after < 0.1


def test_least_squares_without_some_features_are_as_if_they_had_never_had_them():
    rng = np.random.default_rng(0)
    Z, Y, ridge = rng.normal(size=(60, 12)), rng.normal(size=(60, 2)), 0.1
    new = np.isin(np.arange(12), [1, 4, 5, 11])

    def solved(columns):
        P = np.linalg.inv(Z[:, columns].T @ Z[:, columns] + ridge * np.eye(sum(columns)))
        return P, (P @ Z[:, columns].T @ Y).T

    P, theta = solved(np.ones(12, dtype=bool))
    R = np.linalg.cholesky(P[::-1, ::-1]).T[::-1, ::-1].copy()  # lower triangular, P = R' R
    np.testing.assert_allclose(R.T @ R, P, atol=1e-12)
    R, theta = marginalise_features(R, theta, new, ridge)
    wanted, coefficients = solved(~new)
    np.testing.assert_allclose((R.T @ R)[np.ix_(~new, ~new)], wanted, atol=1e-12)
    np.testing.assert_allclose((R.T @ R)[np.ix_(new, new)], np.eye(4) / ridge, atol=1e-10)
    np.testing.assert_allclose((R.T @ R)[np.ix_(new, ~new)], 0, atol=1e-10)
    np.testing.assert_allclose(theta[:, ~new], coefficients, atol=1e-12)
    assert not theta[:, new].any()
    assert (np.triu(R, 1) == 0).all()
