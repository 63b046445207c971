"""Estimators for callers that validate rows themselves: made without `fit`, used without scikit-learn's checks."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from omkl.arrays import Matrix


def draw_seed(estimator: Any) -> int:
    """The seed that the estimator's `random_state` gives."""
    return int(estimator.seed())


def initialised(
    estimator: Any,
    seed: int,
    n_features: int,
    feature_names: Sequence[str] | None = None,
    classes: NDArray[Any] | None = None,
) -> Any:
    """A copy with this seed that knows its features (and labels) and has learned nothing."""
    model = clone(estimator).set_params(random_state=seed)
    model.n_features_in_ = n_features
    if feature_names is not None:
        model.feature_names_in_ = np.array(feature_names, dtype=object)
    if classes is not None:
        model.classes_ = classes
    model.core_ = model.new_core()
    return model


def predict(estimator: Any, X: Matrix) -> NDArray[Any]:
    """`predict` for a C-contiguous float64 table of finite values, or NaN where the learner accepts missing values."""
    predictions: NDArray[Any] = estimator._predict_unchecked(X)
    return predictions


def predict_then_learn(estimator: Any, X: Matrix, y: NDArray[Any]) -> NDArray[Any]:
    """`predict_then_learn` for such a table, and targets that are finite float64 numbers or known labels."""
    predictions: NDArray[Any] = estimator._learn_unchecked(X, y)
    return predictions
