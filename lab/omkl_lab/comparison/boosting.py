"""Gradient boosting as a streaming learner: refitted every so often, on all rows or on the latest."""

import math
import pickle
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from omkl.arrays import Index, Matrix, Vector
from omkl_lab.comparison.outcome import Outcome
from omkl_lab.comparison.streams import RawStream

FIRST_FIT = 20  # rows
MORE = 0.05  # share of new rows after which it is refitted
MUCH_MORE = 0.2  # the same for a model that takes long to fit
AT_LEAST = 10  # new rows
PHASE = 3  # rows by which the first fit is later with every seed: on some streams the moments matter
LAST, EVERY = 2000, 200  # rows of the window, and new rows after which it is refitted at the latest
LAGS = 2  # past targets as inputs


class Refit(NamedTuple):
    """When a model is refitted, and on which rows."""

    window: int | None = None  # latest rows; None: all
    every: int | None = None  # new rows after which it is refitted at the latest
    more: float = MORE
    lags: int = 0

    def moments(self, rows: int, phase: int = 0) -> Iterator[int]:
        """Numbers of rows after which the model is refitted.

        >>> list(Refit().moments(60)), list(Refit().moments(60, phase=1))
        ([20, 30, 40, 50], [23, 33, 43, 53])
        >>> list(Refit(2000, 200).moments(5000))[-3:]
        [4495, 4695, 4895]
        """
        n = FIRST_FIT + PHASE * phase
        while n < rows:
            yield n
            n += min(self.every or rows, max(AT_LEAST, math.ceil(self.more * n)))


def with_lags(X: Matrix, y: Vector, lags: int) -> Matrix:
    """The rows with the targets of the rows before as further inputs; those before the first row are missing.

    >>> with_lags(np.zeros((3, 1)), np.array([5.0, 6.0, 7.0]), 2).tolist()
    [[0.0, nan, nan], [0.0, 5.0, nan], [0.0, 6.0, 5.0]]
    """
    past = [np.concatenate((np.full(min(k, len(y)), np.nan), y[: max(len(y) - k, 0)])) for k in range(1, lags + 1)]
    return np.column_stack((X, *past))


def with_unseen(p: Matrix, known: Index, labels: int, rows: int) -> Matrix:
    """Probabilities of all labels; those that the model does not know share the probability 1 / (rows + 1).

    >>> with_unseen(np.array([[0.25, 0.75]]), np.array([0, 2]), 4, rows=9).tolist()
    [[0.225, 0.05, 0.675, 0.05]]
    """
    if len(known) == labels:
        return p
    out = np.full((len(p), labels), 1 / (rows + 1) / (labels - len(known)))
    out[:, known] = p * (1 - 1 / (rows + 1))
    return out


def refitted(
    make: Callable[[RawStream, int, int], Any], size: Callable[[Any], int], how: Refit
) -> Callable[[RawStream, int], Outcome]:
    """A learner that predicts by the model fitted last, and before by the mean or the frequencies so far.

    `make` gets the stream, the rows to fit and the seed.
    """

    def run(stream: RawStream, seed: int) -> Outcome:
        y, rows = stream.y, len(stream.y)
        labels = int(y.max()) + 1 if stream.task == "labels" else 0
        out = np.zeros((rows, labels)) if labels else np.zeros(rows)
        begin = time.process_time()
        X = with_lags(stream.X, y, how.lags) if how.lags else stream.X
        moments = [*how.moments(rows, seed), rows]
        before = moments[0]
        if labels:
            seen = np.cumsum(np.eye(labels)[y[:before].astype(int)], axis=0)
            out[0] = 1 / labels
            out[1:before] = (seen[:-1] + 1 / labels) / (np.arange(1, before)[:, None] + 1)
        else:
            out[1:before] = np.cumsum(y[: before - 1]) / np.arange(1, before)
        model: Any = None
        for n, until in pairwise(moments):
            start = max(0, n - how.window) if how.window else 0
            if labels and len(np.unique(y[start:n])) < 2:
                out[n:until] = with_unseen(np.ones((1, 1)), y[n - 1 : n].astype(int), labels, n)
                continue
            model = make(stream, n - start, seed)
            model.fit(X[start:n], y[start:n])
            if labels:
                p = model.predict_proba(X[n:until])
                out[n:until] = with_unseen(p, model.classes_.astype(int), labels, n)
            else:
                out[n:until] = model.predict(X[n:until])
        seconds = time.process_time() - begin
        kept = min(rows, how.window or rows) * (stream.X.shape[1] + 1) * 8
        return Outcome(out, seconds, size=kept + (size(model) if model is not None else 0))

    return run


def lightgbm(stream: RawStream, rows: int, seed: int) -> Any:
    kind = "LGBMClassifier" if stream.task == "labels" else "LGBMRegressor"
    least = min(20, max(2, rows // 10))
    return getattr(import_module("lightgbm"), kind)(min_child_samples=least, n_jobs=1, verbose=-1, random_state=seed)


def lightgbm_size(model: Any) -> int:
    return len(model.booster_.model_to_string())


def histogram_boosting(stream: RawStream, rows: int, seed: int) -> Any:
    kind = "HistGradientBoosting" + ("Classifier" if stream.task == "labels" else "Regressor")
    least = min(20, max(2, rows // 10))
    return getattr(import_module("sklearn.ensemble"), kind)(
        min_samples_leaf=least, early_stopping=False, random_state=seed
    )


def pickled_size(model: Any) -> int:
    return len(pickle.dumps(model))
