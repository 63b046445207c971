"""How the node I_t of the next round is chosen: drawn, or fixed after some rounds as the paper's experiments do."""

from typing import Literal

import numpy as np

from omkl.algorithms.weights import draw
from omkl.arrays import Vector

Commit = Literal["never", "argmax", "first"]


def next_node(commit: Commit, commit_after: int, log_u: Vector, p: Vector, t: int, uniform: float) -> int:
    """I_t of round t: drawn from p, or after `commit_after` rounds the one that the commit rule names."""
    if commit == "never" or t <= commit_after:
        return draw(p, uniform)
    return int(np.argmax(log_u)) if commit == "argmax" else 0
