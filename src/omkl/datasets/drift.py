"""Friedman's function, whose inputs change their parts in the course of the stream."""

from collections.abc import Sequence

import numpy as np

from omkl.arrays import Matrix, Vector
from omkl.validation import require, require_whole


def make_friedman_drift(
    n_samples: int = 6000,
    *,
    n_features: int = 10,
    noise: float = 1.0,
    changes: Sequence[float] = (0.5,),
    random_state: int = 0,
) -> tuple[Matrix, Vector]:
    """Friedman's first function, in which the inputs change places at given rows.

    Only five inputs count: `10 sin(pi a b) + 20 (c - 0.5)^2 + 10 d + 5 e`. At each change the roles a to e move on by
    three inputs, so that what was learned becomes wrong at once.

    Parameters
    ----------
    n_samples : int, default=6000
        Number of rows.
    n_features : int, default=10
        Number of inputs, at least 5, uniformly distributed on [0, 1].
    noise : float, default=1.0
        Standard deviation of the noise of the target.
    changes : sequence of float, default=(0.5,)
        When the roles move on, as shares of the rows; `()` is a stream without drift.
    random_state : int, default=0
        Seed of inputs and noise.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
    y : ndarray of shape (n_samples,)

    Examples
    --------
    >>> from omkl.datasets import make_friedman_drift
    >>> X, y = make_friedman_drift(2000, changes=[0.25, 0.75])
    >>> X.shape, y.shape
    ((2000, 10), (2000,))
    """
    require_whole("n_samples", n_samples)
    require_whole("n_features", n_features, 5)
    shares = all(isinstance(share, int | float) and 0 <= share <= 1 for share in changes)
    require(shares, "changes", "shares from 0 to 1", changes)
    rng = np.random.default_rng(random_state)
    X = rng.uniform(size=(n_samples, n_features))
    regime = np.searchsorted(np.sort([int(share * n_samples) for share in changes]), np.arange(n_samples), side="right")
    roles = (np.arange(5) + 3 * regime[:, None]) % n_features
    a, b, c, d, e = np.take_along_axis(X, roles, axis=1).T
    y = 10 * np.sin(np.pi * a * b) + 20 * (c - 0.5) ** 2 + 10 * d + 5 * e
    return X, y + noise * rng.normal(size=n_samples)
