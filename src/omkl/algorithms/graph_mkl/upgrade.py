"""GraphMKL in model files of format version 1, whose arrays had both sets of experts along their first axis."""

import numpy as np

from omkl.algorithms.graph_mkl.constants import MAX_FULL_INPUTS
from omkl.algorithms.graph_mkl.least_squares import diagonal_of
from omkl.arrays import Arrays

RENAMED = {"sure": "min_leverage", "correct": "stack"}  # settings and fields of the Problem

ARRAYS = {
    "R": "coefficients.R",
    "theta": "coefficients.theta",
    "R_lin": "coefficients.R_linear",
    "theta_lin": "coefficients.theta_linear",
    "noise": "noise.level",
    "heard": "noise.rounds",
    "evidence": "evidence",
    "R_mix": "stack.R",
    "theta_mix": "stack.theta",
    "rank": "selection.rank",
    "mean": "scaling.mean",
    "scale": "scaling.scale",
    "shift": "scaling.shift",
    "rows": "first.X",
    "answers": "first.Y",
    "worth": "first.weight",
    "window": "window.X",
    "recalled": "window.Y",
}
NUMBERS = {"explorer": "selection.explorer", "unit": "scaling.unit", "age": "age"}


def upgrade(arrays: Arrays, body: dict[str, object]) -> tuple[Arrays, dict[str, object]]:
    """Arrays and numbers of a state in a file, of this version or version 1 -> by today's dotted names."""
    if "reach" not in arrays:
        return with_diagonal(arrays), body
    new: Arrays = {"half_widths": arrays["reach"]}
    fast, slow, rounds = arrays["trend"].tolist()
    numbers = body | {"trend": [fast, slow, int(rounds)], "trial": arrays["trust"].tolist()}
    for g in (0, 1):
        new |= {f"sets.{g}.{now}": arrays[before][g] for before, now in ARRAYS.items()}
        numbers |= {f"sets.{g}.{now}": arrays[before][g].item() for before, now in NUMBERS.items()}
    return with_diagonal(new), numbers


def with_diagonal(arrays: Arrays) -> Arrays:
    """The linear expert of many inputs, whose factor used to be stored in full, with its diagonal."""
    old = {name: R.astype(np.float64) for name, R in arrays.items()
           if name.endswith("coefficients.R_linear") and R.ndim == 2 and len(R) > MAX_FULL_INPUTS + 1}  # fmt: skip
    return arrays | {name: diagonal_of(R) for name, R in old.items()}
