"""Predictions as a client sees them, and what contributed to them."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from omkl.arrays import Array, Vector
from omkl.encoder.table import Batch
from omkl.serve.bodies import Row
from omkl.stream.predictions import Predictions

MAX_EXPLAINED = 20  # rows of a request
MAX_COLUMNS = 50  # of a row


def answers_of(predictions: Predictions, all_probabilities: bool = False) -> list[Row]:
    """A prediction for each row, with its intervals or the probability of its label."""
    rows: list[int] = predictions.rows.tolist()
    y_pred = predictions.y_pred
    values = y_pred.tolist() if y_pred.dtype == object else _finite(y_pred)
    out: list[Row] = [{"row": row, "prediction": value} for row, value in zip(rows, values, strict=True)]
    if predictions.lower is not None and predictions.upper is not None and predictions.coverages:
        ends = _finite(np.stack((predictions.lower, predictions.upper), axis=2))  # (n, coverages, 2)
        names = [str(coverage) for coverage in predictions.coverages]
        for answer, pairs in zip(out, ends, strict=True):
            if len(names) == 1:
                answer["interval"] = pairs[0]
            else:
                answer["intervals"] = dict(zip(names, pairs, strict=True))
    if predictions.probability is not None:
        for answer, probability in zip(out, predictions.probability.tolist(), strict=True):
            answer["probability"] = probability
    if all_probabilities:
        for k, answer in enumerate(out):
            answer["probabilities"] = predictions.probabilities_of(k) or {}
    return out


def _finite(values: Array) -> list[Any]:
    """As Python's numbers; None for those that JSON does not have."""
    known = np.isfinite(values)
    plain: Any = values
    if not known.all():
        plain = values.astype(object)
        plain[~known] = None
    out: list[Any] = plain.tolist()
    return out


def contributions(predict: Callable[[Batch], Predictions], batch: Batch, names: list[str]) -> list[dict[str, float]]:
    """For each row and column, how much the prediction changes when the cell becomes known.

    That is the difference to the prediction for the row without it: of numbers, or of the probability of the label
    that is predicted. Contributions need not sum up to anything: inputs act together.
    """
    names = [name for name in names if name in batch.columns][:MAX_COLUMNS]
    n = len(batch.rows)
    copies: dict[str, pa.Array] = {}
    for name, cells in batch.columns.items():
        without = [pa.nulls(n, cells.type) if name == other else cells for other in names]
        copies[name] = pa.concat_arrays([cells, *without])
    found = predict(Batch(np.arange(1, n * (1 + len(names)) + 1), copies))
    table = _values(found, n).reshape(1 + len(names), n)
    return [dict(zip(names, (table[0, k] - table[1:, k]).tolist(), strict=True)) for k in range(n)]


def _values(found: Predictions, n: int) -> Vector:
    """(rows,): numbers, or the probability of the label that is predicted for the row as it came."""
    if found.y_pred.dtype != object:
        return found.y_pred.astype(np.float64)
    if found.probabilities is None:  # of models per key
        same = found.y_pred.reshape(-1, n) == found.y_pred[:n]
        return np.asarray(same.reshape(-1), dtype=np.float64)
    best = found.probabilities[:n].argmax(axis=1)
    values: Vector = found.probabilities[np.arange(len(found.rows)), np.tile(best, len(found.rows) // n)]
    return values
