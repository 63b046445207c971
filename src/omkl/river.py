"""The names of the river door."""

try:
    import river  # noqa: F401  # only to see whether it is there
except ImportError:
    raise ImportError("omkl.river needs river: pip install 'omkl[river]'") from None

from omkl.estimators.river import (
    GraphMKLClassifier,
    GraphMKLRegressor,
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
