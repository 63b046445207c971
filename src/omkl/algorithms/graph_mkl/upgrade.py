"""GraphMKL in older model files.

In format version 1 the arrays had both sets of experts along their first axis; before there was a scale of the errors,
there were half widths of seven coverages in the standard deviations that the experts predict; there were no blocks
that scaling is compared with; rows had no keys by which they are recognised; there were no sparse inputs; there were no
large experts; and trees had half as many bins.
"""

from types import SimpleNamespace
from typing import cast

import numpy as np

from omkl.algorithms.graph_mkl import large
from omkl.algorithms.graph_mkl.constants import (
    FIRST_ROWS,
    HALF_WIDTH_RANGE,
    LEVELS,
    MAX_FULL_INPUTS,
    START_HALF_WIDTHS,
    TREE_BINS,
    WINDOW,
)
from omkl.algorithms.graph_mkl.least_squares import diagonal_of
from omkl.algorithms.graph_mkl.problem import Problem
from omkl.algorithms.graph_mkl.scaling import fresh_block
from omkl.arrays import Array, Arrays, leaves

RENAMED = {"sure": "min_leverage", "correct": "stack"}  # settings and fields of the Problem
ADDED = {"sparse": 0, "V_wide": np.zeros((1, 1, 0)), "trees": 0, "archive": 0}  # to the Problem
BEFORE = {"budget": "small"}

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
OLD_BINS = 64  # of the inputs of trees
OLD_LEVELS = 7  # coverages that were tracked: the last seven of today's
NUMBERS = {"explorer": "selection.explorer", "unit": "scaling.unit", "age": "age"}


def upgrade(arrays: Arrays, body: dict[str, object]) -> tuple[Arrays, dict[str, object]]:
    """Arrays and numbers of a state in a file, of this version or an older one -> by today's dotted names."""
    arrays, body = with_calibration(*with_sets(arrays, body))
    return with_large(*with_repeats(with_sparse(with_blocks(with_bins(arrays))), body))


def with_bins(arrays: Arrays) -> Arrays:
    """Room for as many bins as there are today."""
    cuts = arrays.get("large.trees.cuts")
    if cuts is None or cuts.ndim != 2 or cuts.shape[1] != OLD_BINS - 1:
        return arrays
    return arrays | {"large.trees.cuts": np.pad(cuts, ((0, 0), (0, TREE_BINS - OLD_BINS)))}


def with_large(arrays: Arrays, body: dict[str, object]) -> tuple[Arrays, dict[str, object]]:
    """Without large experts, where a file knows nothing of them."""
    steps = {
        f"sets.{g}.judged.step": np.zeros(len(arrays[f"sets.{g}.evidence"]) + 1)
        for g in (0, 1)
        if f"sets.{g}.evidence" in arrays
    }
    shift = arrays.get("sets.0.scaling.shift")
    if any(name.startswith("large.") for name in arrays) or shift is None or "sets.0.scaling.mean" not in arrays:
        return arrays, body
    d, K = len(arrays["sets.0.scaling.mean"]), len(shift)
    none = large.init(cast(Problem, SimpleNamespace(V=np.zeros((1, d, 0)), K=K, task="", trees=0, archive=0, large=0)))
    parts = {f"large.{name}": leaf for name, leaf in leaves(none).items()}
    new = {name: leaf for name, leaf in parts.items() if isinstance(leaf, np.ndarray)}
    numbers = {name: leaf for name, leaf in parts.items() if not isinstance(leaf, np.ndarray)}
    return arrays | new | steps, body | numbers


def with_repeats(arrays: Arrays, body: dict[str, object]) -> tuple[Arrays, dict[str, object]]:
    """Rows of weight 1 that are not recognised when they come again, where a file has no keys of rows."""
    if any(name.endswith((".window.key", ".judged.gain")) for name in arrays) or "repeats" in body:
        return arrays, body
    new = dict(arrays)
    for g in (0, 1):
        if f"sets.{g}.evidence" in arrays:
            new[f"sets.{g}.window.weight"] = np.ones(WINDOW)
            new |= {f"sets.{g}.window.{part}": np.zeros(WINDOW, np.intp) for part in ("key", "met", "returned")}
            new[f"sets.{g}.judged.gain"] = np.zeros(len(arrays[f"sets.{g}.evidence"]))
            new[f"sets.{g}.judged.signal"] = np.full(len(arrays[f"sets.{g}.evidence"]), -1.0)
    return new, body | {"repeats": 0.0, "weights": [1.0, 1.0]}


def with_sparse(arrays: Arrays) -> Arrays:
    """Without sparse inputs, where a file knows nothing of them."""
    if any(name.endswith("_sparse") for name in arrays):
        return arrays
    for g in (0, 1):
        if (theta := arrays.get(f"sets.{g}.coefficients.theta_linear")) is not None:
            empty = {
                "coefficients.R_sparse": (1, 0), "coefficients.theta_sparse": (*theta.shape[:1], 0),
                "scaling.sparse": (0,), "first.sparse": (FIRST_ROWS, 0),
            }  # fmt: skip
            arrays = arrays | {f"sets.{g}.{name}": np.zeros(shape) for name, shape in empty.items()}
    return arrays


def with_blocks(arrays: Arrays) -> Arrays:
    """Every set of experts with a block that has just begun, where a file has none at all."""
    if any(".block." in name for name in arrays):
        return arrays
    for g in (0, 1):
        if f"sets.{g}.scaling.mean" in arrays:
            block = fresh_block(len(arrays[f"sets.{g}.scaling.mean"]))
            arrays = arrays | {f"sets.{g}.block.{part}": array for part, array in block._asdict().items()}
    return arrays


def with_calibration(arrays: Arrays, body: dict[str, object]) -> tuple[Arrays, dict[str, object]]:
    """Without a scale of the errors, intervals stay as they were until a row is learned."""
    if "half_widths" not in arrays:
        return arrays, body
    new = {name: array for name, array in arrays.items() if name != "half_widths"}
    new |= {"calibration.half_widths": of_all_levels(arrays["half_widths"])}
    new |= {f"calibration.{name}": np.zeros(2) for name in ("evidence", "since", "total")}
    return new, body | {"calibration.scale": 0.0, "calibration.rows": 0}


def of_all_levels(half_widths: Array) -> Array:
    """Half widths of seven coverages from 0.5 on -> of all that are tracked, in order and in their range."""
    start, missing = np.array(START_HALF_WIDTHS), len(LEVELS) - OLD_LEVELS
    if half_widths.shape != (OLD_LEVELS,) or half_widths.dtype != np.float64:
        return half_widths  # refused later, as any array that does not fit
    all_levels = np.append(start[:missing] * float(half_widths[0]) / start[missing], half_widths)
    return np.maximum.accumulate(np.clip(all_levels, start / HALF_WIDTH_RANGE, start * HALF_WIDTH_RANGE))


def with_sets(arrays: Arrays, body: dict[str, object]) -> tuple[Arrays, dict[str, object]]:
    """Every set of experts with arrays of its own."""
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
