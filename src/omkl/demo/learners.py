"""The learners of the demonstration: each predicts every row before it learns it."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from river import forest, linear_model, preprocessing

from omkl.arrays import Matrix, Vector
from omkl.datasets.demand import Demand
from omkl.estimators.sklearn import GraphMKLRegressor
from omkl.estimators.sklearn.encoder import TableEncoder

DAY = 24  # rows that GraphMKL is given at a time, as they would come once a day
COVERAGE = 0.9  # of the intervals


class Outcome(NamedTuple):
    """What a learner did on the stream."""

    y_pred: Vector
    ends: Matrix | None = None  # (rows, 2) of the prediction intervals, if the learner has any
    changes: tuple[int, ...] = ()  # the rows at which it noticed a change


def graph_mkl(stream: Demand, seed: int) -> Outcome:
    """The estimator with its default parameters, on the table as it is."""
    model, table = GraphMKLRegressor(random_state=seed), pa.table(dict(stream.columns))
    days = range(0, len(stream.y), DAY)
    parts = [
        model.predict_interval_then_learn(table.slice(day, DAY), stream.y[day : day + DAY], coverage=COVERAGE)
        for day in days
    ]
    out = np.vstack(parts)
    return Outcome(out[:, 0], out[:, 1:], tuple(model.stats()["changes"]))


def linear(stream: Demand, seed: int) -> Outcome:
    """Bayesian linear regression of river: recursive least squares, which has no step size to choose."""
    return one_by_one(linear_model.BayesianLinearRegression(), stream)


def random_forest(stream: Demand, seed: int) -> Outcome:
    """The adaptive random forest of river, its inputs standardised as its documentation recommends."""
    return one_by_one(preprocessing.StandardScaler() | forest.ARFRegressor(seed=seed), stream)


def running_mean(stream: Demand, seed: int) -> Outcome:
    y = stream.y
    return Outcome(np.concatenate(([0.0], np.cumsum(y)[:-1] / np.arange(1, len(y)))))


def last_value(stream: Demand, seed: int) -> Outcome:
    return Outcome(np.concatenate(([0.0], stream.y[:-1])))


LEARNERS: dict[str, Callable[[Demand, int], Outcome]] = {
    "GraphMKL": graph_mkl,
    "linear model": linear,
    "adaptive random forest": random_forest,
    "last value": last_value,
    "running mean": running_mean,
}


def one_by_one(model: Any, stream: Demand) -> Outcome:
    """A regressor of river on rows of numbers: those that GraphMKL sees, where a gap has the value before it."""
    y_pred = []
    for x, y in zip(numbers(stream), stream.y.tolist(), strict=True):
        y_pred.append(model.predict_one(x))
        model.learn_one(x, y)
    return Outcome(np.array(y_pred))


def numbers(stream: Demand) -> list[dict[str, float]]:
    """The rows as numbers, by omkl's encoder, without gaps; all categories are known from the first row on."""
    encoder = TableEncoder()
    X = encoder.fit_transform(pa.table(dict(stream.columns)))
    last_known = np.maximum.accumulate(np.where(np.isnan(X), 0, np.arange(len(X))[:, None]), axis=0)
    filled = np.nan_to_num(np.take_along_axis(X, last_known, axis=0))
    names = [str(name) for name in encoder.get_feature_names_out()]
    return [dict(zip(names, row, strict=True)) for row in filled.tolist()]
