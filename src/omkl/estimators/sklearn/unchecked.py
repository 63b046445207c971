"""Estimators for callers that validate rows themselves: made without `fit`, used without scikit-learn's checks."""

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from sklearn.base import clone

from omkl.arrays import Array, Matrix
from omkl.estimators.sklearn.base import Estimator

E = TypeVar("E", bound=Estimator)


def draw_seed(estimator: Estimator) -> int:
    """The seed that the estimator's `random_state` gives."""
    return estimator.seed()


def initialised(
    estimator: E,
    seed: int,
    n_features: int,
    feature_names: Sequence[str] | None = None,
    classes: Array | None = None,
) -> E:
    """A copy with this seed that knows its features (and labels) and has learned nothing."""
    model: E = clone(estimator).set_params(random_state=seed)
    model.n_features_in_ = n_features
    if feature_names is not None:
        model.feature_names_in_ = np.array(feature_names, dtype=object)
    if classes is not None:
        model.classes_ = classes
    model.core_ = model.new_core()
    return model


def predict(estimator: Estimator, X: Matrix) -> Array:
    """`predict` for a C-contiguous float64 table of finite values, or NaN where the learner accepts missing values."""
    return estimator._predict_unchecked(X)


def predict_then_learn(estimator: Estimator, X: Matrix, y: Array) -> Array:
    """`predict_then_learn` for such a table, and targets that are finite float64 numbers or known labels."""
    return estimator._learn_unchecked(X, y)
