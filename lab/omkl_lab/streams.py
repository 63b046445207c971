"""Bundled and generated data streams, scaled as in the paper."""

from typing import NamedTuple

import numpy as np
from sklearn.datasets import load_diabetes

from omkl.arrays import Matrix, Vector
from omkl.kernels import dictionary


class Stream(NamedTuple):
    """Rows in the order in which they arrive."""

    name: str
    X: Matrix  # (T, d)
    y: Vector  # (T,)
    truth: tuple[int, ...] = ()  # kernels of the paper's dictionary that generated y, if known
    columns: tuple[str, ...] = ()  # names of the features, if any


def paper_scaled(X: Matrix, y: Vector) -> tuple[Matrix, Vector]:
    """X divided by its largest row norm, y scaled to [0, 1].

    Both use the whole stream, as in the paper's protocol; this is not possible online.

    >>> X, y = paper_scaled(np.array([[3.0, 4.0], [0.0, 1.0]]), np.array([2.0, 6.0]))
    >>> X.tolist(), y.tolist()
    ([[0.6, 0.8], [0.0, 0.2]], [0.0, 1.0])
    """
    return X / np.linalg.norm(X, axis=1).max(), (y - y.min()) / (y.max() - y.min())


def diabetes() -> Stream:
    """scikit-learn's bundled diabetes set: 442 rows, 10 features."""
    bunch = load_diabetes()
    X, y = paper_scaled(bunch.data, bunch.target)
    return Stream("diabetes", X, y, columns=tuple(bunch.feature_names))


TRUTH = (10, 18, 26)  # length scales 0.32, 0.79 and 2.0


def mixture(rows: int, seed: int) -> Stream:
    """y = sum over three kernels i of sum_j alpha_ij kappa_i(x - c_ij), plus noise; x in the unit ball of R^3.

    Each kernel's part has the same variance and the noise a hundredth of the whole, so that no
    single kernel of the dictionary is sufficient.

    >>> stream = mixture(100, seed=0)
    >>> stream.X.shape, bool(np.linalg.norm(stream.X, axis=1).max() <= 1), stream.truth
    ((100, 3), True, (10, 18, 26))
    """
    rng = np.random.default_rng(seed)
    kernels = dictionary("paper")
    d, centres = 3, 20
    X = rng.uniform(-1, 1, (rows, d)) / np.sqrt(d)
    f = np.zeros(rows)
    for i in TRUTH:
        c = rng.uniform(-1, 1, (centres, d)) / np.sqrt(d)
        part = kernels[i].value(X, c) @ rng.standard_normal(centres)
        f += part / part.std()
    y = f + 0.1 * f.std() * rng.standard_normal(rows)
    return Stream("mixture", X, (y - y.min()) / (y.max() - y.min()), TRUTH)
