"""The scikit-learn door."""

from omkl.estimators.sklearn.base import Classifying
from omkl.estimators.sklearn.files import ESTIMATORS, decode, encode
from omkl.estimators.sklearn.graph_mkl import GraphMKLClassifier, GraphMKLRegressor
from omkl.estimators.sklearn.paper import (
    OMKLGFClassifier,
    OMKLGFRegressor,
    OMKRRegressor,
    RakerClassifier,
    RakerRegressor,
    RFOMKRRegressor,
    SFGMKLClassifier,
    SFGMKLRegressor,
)

__all__ = [
    "ESTIMATORS", "Classifying", "GraphMKLClassifier", "GraphMKLRegressor", "OMKLGFClassifier", "OMKLGFRegressor",
    "OMKRRegressor", "RFOMKRRegressor", "RakerClassifier", "RakerRegressor", "SFGMKLClassifier", "SFGMKLRegressor",
    "decode", "encode",
]  # fmt: skip
