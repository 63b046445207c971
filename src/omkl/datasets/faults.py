"""Labels of which one is rare: machines that seldom fail."""

import numpy as np
from numpy.typing import NDArray

from omkl.arrays import Matrix
from omkl.validation import require, require_whole


def make_rare_faults(
    n_samples: int = 5000, *, rate: float = 0.02, random_state: int = 0
) -> tuple[Matrix, NDArray[np.str_]]:
    """Readings of machines, of which few precede a fault.

    A fault comes with a bearing that is both hot and vibrating. The readings of both labels overlap, so that no learner
    finds all faults without false alarms.

    Parameters
    ----------
    n_samples : int, default=5000
        Number of rows.
    rate : float, default=0.02
        Probability of a fault, between 0 and 1.
    random_state : int, default=0
        Seed of readings and labels.

    Returns
    -------
    X : ndarray of shape (n_samples, 4)
        Temperature, vibration, load and age.
    y : ndarray of shape (n_samples,)
        `"fault"` or `"fine"`.

    Examples
    --------
    >>> from omkl.datasets import make_rare_faults
    >>> X, y = make_rare_faults()
    >>> X.shape, sorted(set(y.tolist())), bool((y == "fault").mean() < 0.05)
    ((5000, 4), ['fault', 'fine'], True)
    """
    require_whole("n_samples", n_samples)
    require(0 < rate < 1, "rate", "between 0 and 1", rate)
    rng = np.random.default_rng(random_state)
    fault = rng.random(n_samples) < rate
    load, age = rng.uniform(0, 100, n_samples), rng.uniform(0, 10, n_samples)
    temperature = 50 + 0.2 * load + rng.normal(0, 5, n_samples) + np.where(fault, 15, 0)
    vibration = 2 + 0.1 * age + rng.gamma(2, 0.3, n_samples) + np.where(fault, 1.5, 0)
    return np.column_stack((temperature, vibration, load, age)), np.where(fault, "fault", "fine")
