"""Estimators with river's API: `learn_one`, `predict_one`; importing this registers their model files."""

from omkl.estimators.river.estimators import *  # noqa: F403  # its classes are what this package offers
from omkl.estimators.river.files import ESTIMATORS

__all__ = [*ESTIMATORS, "ESTIMATORS"]
