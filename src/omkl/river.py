"""The names of the river door."""

from omkl.estimators.river.graph_mkl import GraphMKLClassifier, GraphMKLRegressor
from omkl.estimators.river.paper import (
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
    "GraphMKLClassifier", "GraphMKLRegressor",
    "OMKLGFClassifier", "OMKLGFRegressor", "OMKRRegressor", "RFOMKRRegressor",
    "RakerClassifier", "RakerRegressor", "SFGMKLClassifier", "SFGMKLRegressor",
]  # fmt: skip
