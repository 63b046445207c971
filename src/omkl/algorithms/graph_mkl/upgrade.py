"""GraphMKL in earlier model files: in format version 1 the arrays had both sets of experts along their first axis."""

from omkl.algorithms.graph_mkl.scaling import fresh_block
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
    """Arrays and numbers of a state in a file of this version or an earlier one -> those of today."""
    if "reach" in arrays:
        arrays, body = from_version_1(arrays, body)
    for g in (0, 1):
        name = f"sets.{g}.block"
        if f"{name}.rows" not in arrays and f"sets.{g}.scaling.mean" in arrays:
            block = fresh_block(len(arrays[f"sets.{g}.scaling.mean"]))
            arrays = arrays | {f"{name}.{part}": array for part, array in block._asdict().items()}
    return arrays, body


def from_version_1(arrays: Arrays, body: dict[str, object]) -> tuple[Arrays, dict[str, object]]:
    new: Arrays = {"half_widths": arrays["reach"]}
    fast, slow, rounds = arrays["trend"].tolist()
    numbers = body | {"trend": [fast, slow, int(rounds)], "trial": arrays["trust"].tolist()}
    for g in (0, 1):
        new |= {f"sets.{g}.{now}": arrays[before][g] for before, now in ARRAYS.items()}
        numbers |= {f"sets.{g}.{now}": arrays[before][g].item() for before, now in NUMBERS.items()}
    return new, numbers
