"""A state grown to another problem, for instance one with a feature or a label more."""

from typing import Any, NamedTuple

import numpy as np

from omkl.algorithms.base import Algorithm
from omkl.errors import DivergenceError


def grown(algorithm: Algorithm[Any, Any], before: NamedTuple, problem: NamedTuple, state: Any) -> Any:
    """The state of the problem `before` as one of `problem`."""
    try:
        return algorithm.grow(problem, state)
    except np.linalg.LinAlgError as error:
        raise DivergenceError(
            f"{algorithm.name} cannot take another feature or label: its coefficients are too large ({error}); "
            f"{algorithm.divergence_advice(before)}"
        ) from error
