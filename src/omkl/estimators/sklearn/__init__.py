"""Estimators with scikit-learn's API: `fit`, `partial_fit`, `predict`; importing this registers their model files."""

from omkl.estimators.sklearn.estimators import *  # noqa: F403  # its classes are what this package offers
from omkl.estimators.sklearn.files import (
    ESTIMATORS,
    check_labels,
    decode,
    decode_labels,
    encode,
    estimator_class,
    require_labels,
)

__all__ = [*ESTIMATORS, "ESTIMATORS", "check_labels", "decode", "decode_labels", "encode", "estimator_class",
           "require_labels"]  # fmt: skip
