"""Rows of a weight above 1 for algorithms without weights of their own."""

import numpy as np

from omkl.arrays import Index, Vector

MAX_ROUNDS = 64  # in which a row of a larger weight is learned


def rounds_of(weight: Vector) -> Index:
    """(rows,): in how many rounds each row is learned.

    A gradient step multiplied by a large weight overshoots; as many steps as the weight, rounded up, do not.
    """
    rounds: Index = np.clip(np.ceil(weight), 1, MAX_ROUNDS).astype(np.intp)
    return rounds
