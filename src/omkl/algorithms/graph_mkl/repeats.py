"""Rows that come again: what has been learned from a row once is no new evidence when the row is shown again.

A row is recognised by a key made of its unscaled inputs and its target, as long as it is in the memory. Whether it is
shown again, as in a second pass over the same rows, or has come again by itself, as discrete inputs and labels do,
is decided by how often rows have returned so far: where they never have, one that does is shown again.
"""

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from omkl.algorithms.graph_mkl.constants import (
    FIRST_ROWS,
    KEY_MULTIPLIERS,
    KEY_SHIFTS,
    KEY_STEP,
    MAX_COPIED_WEIGHT,
    MAX_REPEAT_EVIDENCE,
    MIN_WEIGHT,
    NEAR_ROUNDS,
    REPEAT_EVIDENCE,
    REPEAT_MEMORY,
    WEIGHT_ROUNDS,
    WINDOW,
)
from omkl.algorithms.graph_mkl.memory import Window
from omkl.algorithms.graph_mkl.scaling import FirstRows
from omkl.arrays import Vector

Kind = Literal["new", "copy", "again"]


class Weights(NamedTuple):
    """Means over the weights of rows, and over their squares."""

    mean: float = 0.0
    square: float = 0.0


def mixed(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """64 bits of every number, each of which depends on all bits of it (the finaliser of SplitMix64)."""
    for shift, multiplier in zip(KEY_SHIFTS, (*KEY_MULTIPLIERS, 1), strict=True):
        bits = (bits ^ (bits >> np.uint64(shift))) * np.uint64(multiplier)  # (G53)
    return bits


def key_of(x: Vector, y: float) -> int:
    """Of a row and its target, whatever inputs are missing; never 0."""
    values = np.append(y, x) + 0.0  # -0.0 is 0.0
    places = np.arange(len(values), dtype=np.uint64) * np.uint64(KEY_STEP)
    keys = mixed(np.ascontiguousarray(values).view(np.uint64) + places)  # (G53)
    return int(np.sum(keys[~np.isnan(values)], dtype=np.uint64)) // 2 or 1


def column_of(window: Window, key: int) -> int:
    """The column of the window that holds this row, the one met last; -1 where there is none."""
    found = np.flatnonzero(window.key == key)
    return int(found[np.argmax(window.met[found])]) if len(found) else -1


def is_last(window: Window, age: int, key: int) -> bool:
    """Whether the row with this key is the one that was learned last."""
    return age > 0 and column_of(window, key) == (age - 1) % WINDOW


def chance_of_return(window: Window, age: int) -> float:
    """That a row has come before, estimated by the share of rows that came once (Good and Turing)."""
    n = min(age, WINDOW)
    return float((window.returned[:n].sum() + 1) / (n + 2))  # (G54)


def evidence_after(evidence: float, found: bool, chance: float) -> float:
    """The discounted sum of log-likelihood ratios that only half as many rows are new as should be."""
    ratio = np.log((1 + chance) / (2 * chance)) if found else -np.log(2)  # (G55)
    return float(np.clip(REPEAT_MEMORY * evidence + ratio, 0, MAX_REPEAT_EVIDENCE))  # (G55)


def kind_of(lag: int, evidence: float, chance: float) -> Kind:
    """Of a row that came `lag` rounds ago."""
    if lag == 1:
        return "copy" if chance < 1 / 2 else "new"  # (G56)
    return "again" if lag > NEAR_ROUNDS and evidence > REPEAT_EVIDENCE else "new"  # (G56)


class Row(NamedTuple):
    """A row that is to be learned, and what it is taken for."""

    x: Vector
    y: float
    weight: float
    relative: float  # its weight, compared with those of other rows
    t: int  # the round
    key: int
    kind: Kind


class Recognised(NamedTuple):
    kind: Kind
    key: int
    weight: float  # of the row that this one is a copy of, else 0
    evidence: float  # that rows are shown again


def recognise(window: Window, age: int, evidence: float, t: int, x: Vector, y: float) -> Recognised:
    """What the row of round t is, by the memory of the incumbent."""
    key = key_of(x, y)
    found = column_of(window, key)
    if found < 0:
        return Recognised("new", key, 0.0, evidence_after(evidence, False, 1.0))
    lag, chance = t - int(window.met[found]), chance_of_return(window, age)
    if lag > 1:
        evidence = evidence_after(evidence, True, chance)
    kind = kind_of(lag, evidence, chance)
    return Recognised(kind, key, float(window.weight[found]) if kind == "copy" else 0.0, evidence)


def marked(window: Window, row: int, key: int, t: int, found: int) -> Window:
    """The window after row number `row` was appended in round t; the same row stood in column `found`, if any."""
    window = window._replace(key=window.key.copy(), met=window.met.copy(), returned=window.returned.copy())
    j = row % WINDOW
    again = found >= 0 and t - int(window.met[found]) > 1
    if again:
        window.returned[found] = 1  # (G54)
    window.key[j], window.met[j], window.returned[j] = key, t, int(again)
    return window


def met_again(window: Window, column: int, t: int) -> Window:
    met = window.met.copy()
    met[column] = t
    return window._replace(met=met)


# Weights


def means_after(means: Weights, t: int, weight: float, before: float) -> Weights:
    """The means after a row of round t, or after a copy of a row that has had the weight `before`."""
    rate = max(1 / WEIGHT_ROUNDS, 1 / (t + 1))  # (G57)
    w = max(weight, MIN_WEIGHT)
    if before > 0:
        return Weights(means.mean + rate * w, means.square + rate * (2 * before + w) * w)  # (G57)
    return Weights(means.mean + rate * (w - means.mean), means.square + rate * (w**2 - means.square))  # (G57)


def relative_weight(means: Weights, weight: float) -> float:
    return max(weight, MIN_WEIGHT) * means.mean / means.square  # (G57)


def heavier(window: Window, column: int, weight: float) -> Window:
    """The window after a copy of the row in this column."""
    weights = window.weight.copy()
    weights[column] = min(weights[column] + weight, MAX_COPIED_WEIGHT)
    return window._replace(weight=weights)


def heavier_first(first: FirstRows, age: int, column: int, weight: float) -> FirstRows:
    """The first rows after a copy of the row in this column of the window."""
    row = age - 1 - (age - 1 - column) % WINDOW
    if row >= FIRST_ROWS:
        return first
    weights = first.weight.copy()
    weights[row] = min(weights[row] + weight, MAX_COPIED_WEIGHT)
    return first._replace(weight=weights)
