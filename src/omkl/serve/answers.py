"""Predictions as a client sees them."""

from typing import Any

import numpy as np
import pyarrow as pa

from omkl.arrays import Array
from omkl.encoder.table import of_cells
from omkl.serve.bodies import Row
from omkl.stream.predictions import Predictions

MAX_EXPLAINED = 20  # rows of a request


def answers_of(predictions: Predictions, all_probabilities: bool = False) -> list[Row]:
    """A prediction for each row, with its intervals or the probability of its label."""
    rows: list[int] = predictions.rows.tolist()
    y_pred = predictions.y_pred
    values = y_pred.tolist() if y_pred.dtype == object else _finite(y_pred)
    out: list[Row] = [{"row": row, "prediction": value} for row, value in zip(rows, values, strict=True)]
    if predictions.lower is not None and predictions.upper is not None and predictions.coverages:
        ends = _finite(np.stack((predictions.lower, predictions.upper), axis=2))  # (n, coverages, 2)
        names = [str(coverage) for coverage in predictions.coverages]
        if len(names) == 1:
            for answer, (pair,) in zip(out, ends, strict=True):
                answer["interval"] = pair
        else:
            for answer, pairs in zip(out, ends, strict=True):
                answer["intervals"] = dict(zip(names, pairs, strict=True))
    if predictions.probability is not None:
        for answer, probability in zip(out, predictions.probability.tolist(), strict=True):
            answer["probability"] = probability
    if all_probabilities:
        for k, answer in enumerate(out):
            answer["probabilities"] = predictions.probabilities_of(k) or {}
    return out


def table_of(predictions: Predictions) -> pa.Table:
    """The same as a table, with intervals of one coverage; null where there is no number."""
    y_pred = predictions.y_pred
    columns = {"row": pa.array(predictions.rows),
               "prediction": of_cells(y_pred.tolist()) if y_pred.dtype == object else _numbers(y_pred)}  # fmt: skip
    if predictions.lower is not None and predictions.upper is not None and predictions.coverages:
        columns["interval.lower"] = _numbers(predictions.lower[:, 0])
        columns["interval.upper"] = _numbers(predictions.upper[:, 0])
    if predictions.probability is not None:
        columns["probability"] = pa.array(predictions.probability)
    return pa.table(columns)


def _numbers(values: Array) -> pa.Array:
    return pa.array(values, mask=~np.isfinite(values))


def _finite(values: Array) -> list[Any]:
    """As Python's numbers; None for those that JSON does not have."""
    known = np.isfinite(values)
    plain: Any = values
    if not known.all():
        plain = values.astype(object)
        plain[~known] = None
    out: list[Any] = plain.tolist()
    return out
