"""The river door; `omkl.river` has its names."""

from omkl.estimators.river.files import ESTIMATORS

__all__ = ["ESTIMATORS"]
