"""The estimators and the encoder with river's API, to import from: `from omkl.river import GraphMKLRegressor`."""

from omkl.estimators.river import ESTIMATORS
from omkl.estimators.river.encoder import TableEncoder
from omkl.estimators.river.estimators import *  # noqa: F403  # its classes are what this module offers
from omkl.estimators.river.lags import Lags
from omkl.estimators.river.targets import MultiTargetRegressor

__all__ = [*ESTIMATORS, "Lags", "MultiTargetRegressor", "TableEncoder"]
