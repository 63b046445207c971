"""Recursive least squares by a triangular root."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from omkl.algorithms.least_squares import downdate, solve, unlearn


def test_the_triangular_root_is_that_of_the_least_squares_solution():
    """After n rows R' R = (ridge I + Z' Z)^-1 and theta is the ridge regression."""
    rng = np.random.default_rng(0)
    Z, t, ridge = rng.normal(size=(40, 7)), rng.normal(size=40), 0.3
    R, theta = np.eye(7) / np.sqrt(ridge), np.zeros((1, 7))
    for z, target in zip(Z, t, strict=True):
        solve(R, theta, R @ z, target - theta @ z, 1.0, sure=0.0)
        assert (np.tril(R) == R).all()
    P = np.linalg.inv(ridge * np.eye(7) + Z.T @ Z)
    np.testing.assert_allclose(R.T @ R, P, rtol=1e-10)
    np.testing.assert_allclose(theta[0], P @ Z.T @ t, rtol=1e-10)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=9))
def test_a_downdate_is_the_root_of_what_it_takes_away(phi):
    phi = np.array(phi)
    T = downdate(phi)
    wanted = np.eye(len(phi)) - np.outer(phi, phi) / (1 + phi @ phi)
    np.testing.assert_allclose(T.T @ T, wanted, atol=1e-9)
    assert (np.diagonal(T) > 0).all()


def test_a_row_makes_least_squares_no_surer_than_asked():
    """z' P z after a row is q / (1 + q), but not below `sure`; P never grows, and theta learns all the same."""
    rng = np.random.default_rng(0)
    R, theta = 10 * np.eye(5), np.zeros((1, 5))
    for _ in range(500):
        z, before, was = rng.normal(size=5), R.T @ R, theta.copy()
        phi = R @ z
        solve(R, theta, phi, np.ones(1), 1.0, sure=0.05)
        q, after = phi @ phi, z @ R.T @ R @ z
        np.testing.assert_allclose(after, max(q / (1 + q), min(q, 0.05)), rtol=1e-9)
        assert np.linalg.eigvalsh(before - R.T @ R).min() > -1e-12 * np.linalg.norm(before)
        assert (theta != was).all()
    assert 0.01 < after < 0.1


def test_least_squares_that_lose_features_are_as_if_they_had_never_had_them():
    rng = np.random.default_rng(0)
    Z, Y, ridge = rng.normal(size=(60, 12)), rng.normal(size=(60, 2)), 0.1
    fresh = np.isin(np.arange(12), [1, 4, 5, 11])

    def solved(columns):
        P = np.linalg.inv(Z[:, columns].T @ Z[:, columns] + ridge * np.eye(sum(columns)))
        return P, (P @ Z[:, columns].T @ Y).T

    P, theta = solved(np.ones(12, dtype=bool))
    R = np.linalg.cholesky(P[::-1, ::-1]).T[::-1, ::-1].copy()  # lower triangular, P = R' R
    np.testing.assert_allclose(R.T @ R, P, atol=1e-12)
    unlearn(R, theta, fresh, ridge)
    wanted, coefficients = solved(~fresh)
    np.testing.assert_allclose((R.T @ R)[np.ix_(~fresh, ~fresh)], wanted, atol=1e-12)
    np.testing.assert_allclose((R.T @ R)[np.ix_(fresh, fresh)], np.eye(4) / ridge, atol=1e-10)
    np.testing.assert_allclose((R.T @ R)[np.ix_(fresh, ~fresh)], 0, atol=1e-10)
    np.testing.assert_allclose(theta[:, ~fresh], coefficients, atol=1e-12)
    assert not theta[:, fresh].any()
    assert (np.triu(R, 1) == 0).all()
