"""Predictions for rows of a table, each made before its row was learned."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from omkl.arrays import Index, Matrix, Vector

Labels = NDArray[np.object_]  # (n,) strings, None where there is no label
Targets = Vector | Labels  # (n,) numbers with NaN, or labels with None, where nothing is known


def as_numbers(y: Targets) -> Vector:
    """Targets of a regression; nothing is copied."""
    return y.astype(np.float64, copy=False)


def as_labels(y: Targets) -> Labels:
    """Targets of a classification; nothing is copied."""
    return y.astype(np.object_, copy=False)


class Outputs(NamedTuple):
    """What a learner predicts for some rows: numbers, or labels with their probabilities."""

    y_pred: Targets
    lower: Vector | None = None  # (n,) ends of the interval, where the learner has one
    upper: Vector | None = None
    labels: tuple[str, ...] = ()
    probabilities: Matrix | None = None  # (n, labels)


class Predictions(NamedTuple):
    """Predictions for rows of a table, and the targets as far as they are known."""

    rows: Index  # (n,)
    keys: list[str] | None
    y_pred: Targets
    lower: Vector | None  # (n,) ends of the interval, where the learner has one
    upper: Vector | None
    probability: Vector | None  # (n,) of the predicted label
    y_true: Targets
    true_probability: Vector | None  # (n,) predicted for the true label
    probabilities: list[dict[str, float]] | None = None  # of every label, where rows have keys


class LateTargets(NamedTuple):
    """Targets that came after their row: what had been predicted, and what was true."""

    y_pred: list[float | str | None]
    y_true: list[float | str | None]
    true_probability: list[float]
    covered: list[bool]  # by the interval

    @classmethod
    def none(cls) -> "LateTargets":
        return cls([], [], [], [])


def label_outputs(probabilities: Matrix, labels: tuple[str, ...]) -> Outputs:
    """The most probable label of each row; None where none has any probability.

    >>> label_outputs(np.array([[0.2, 0.8], [0.0, 0.0]]), ("no", "yes")).y_pred.tolist()
    ['yes', None]
    """
    n, known = probabilities.shape
    if not known:
        return Outputs(np.full(n, None, dtype=object), probabilities=probabilities)
    best = probabilities.argmax(axis=1)
    certain = probabilities[np.arange(n), best] > 0
    y_pred = np.array([*labels, None], dtype=object)[np.where(certain, best, len(labels))]
    return Outputs(y_pred, labels=labels, probabilities=probabilities)


def with_targets(out: Outputs, rows: Index, y_true: Targets, keys: list[str] | None) -> Predictions:
    """Outputs of a learner with the targets of their rows."""
    if out.probabilities is None:
        return Predictions(rows, keys, out.y_pred, out.lower, out.upper, None, y_true, None)
    if not out.labels:
        zero = np.zeros(len(rows))
        return Predictions(rows, keys, out.y_pred, None, None, zero, y_true, zero)
    at = np.arange(len(rows))
    place = {label: k for k, label in enumerate(out.labels)}
    of_true = np.array([place.get(label, -1) for label in y_true])
    true_probability = np.where(of_true >= 0, out.probabilities[at, of_true], 0.0)
    probability = out.probabilities.max(axis=1)
    every = None if keys is None else [dict(zip(out.labels, p, strict=True)) for p in out.probabilities.tolist()]
    return Predictions(rows, keys, out.y_pred, None, None, probability, y_true, true_probability, every)


def concatenated(parts: list[Predictions], keyed: bool) -> Predictions:
    """The parts as one; NaN where only some of them have a value."""
    if not parts:
        empty = np.empty(0, dtype=np.int64)
        return Predictions(empty, [] if keyed else None, np.empty(0), None, None, None, np.empty(0), None)
    if len(parts) == 1:
        return parts[0]

    def joined(values: list[Vector | None]) -> Vector | None:
        if all(value is None for value in values):
            return None
        return np.concatenate([np.full(len(part.rows), np.nan) if value is None else value
                               for value, part in zip(values, parts, strict=True)])  # fmt: skip

    keys = None if parts[0].keys is None else [key for part in parts for key in part.keys or []]
    return Predictions(
        np.concatenate([part.rows for part in parts]), keys, np.concatenate([part.y_pred for part in parts]),
        joined([part.lower for part in parts]), joined([part.upper for part in parts]),
        joined([part.probability for part in parts]), np.concatenate([part.y_true for part in parts]),
        joined([part.true_probability for part in parts]),
    )  # fmt: skip
