"""Frames of pandas, polars and Arrow, for the river estimators."""

from collections.abc import Hashable, Sequence

import narwhals as nw
import numpy as np
from narwhals.typing import IntoDataFrame, IntoSeries

from omkl import validation
from omkl.arrays import Matrix, Vector
from omkl.estimators.core import Core
from omkl.estimators.tables import features_of

Frame = nw.DataFrame[IntoDataFrame]


def is_numeric(frame: Frame) -> bool:
    """Whether every cell of a frame is a finite number; an infinite one is refused."""
    if not validation.plain_numbers(frame):
        return False
    for name in frame.columns:
        validation.finite_column(frame[name], name)
    return True


def features(frame: Frame, core: Core) -> Matrix:
    """The rows of a frame for a prediction, as features."""
    if core.encoder is None and is_numeric(frame):
        return core.rows_of(frame.columns, matrix(frame))
    from omkl.encoder import of_frame

    return features_of(core, of_frame(frame))


def matrix(frame: Frame) -> Matrix:
    """The cells of a frame of numbers."""
    X = np.empty(frame.shape)
    for k, name in enumerate(frame.columns):
        X[:, k] = frame[name].to_numpy()
    return X


def as_frame(X: IntoDataFrame) -> Frame:
    return nw.from_native(X, eager_only=True)


def as_series(name: str, values: Vector | Sequence[Hashable], like: Frame) -> IntoSeries:
    """A series of the kind that `like` is made of, with its index where it has one."""
    series = nw.new_series(name, values, backend=nw.get_native_namespace(like))
    index = nw.maybe_get_index(like)
    made: IntoSeries = (series if index is None else nw.maybe_set_index(series, index=index)).to_native()
    return made
