"""Frames of pandas, polars and Arrow, for the river estimators."""

from collections.abc import Hashable, Sequence

import narwhals as nw
from narwhals.typing import IntoDataFrame, IntoSeries

from omkl import validation
from omkl.arrays import Matrix, Vector
from omkl.estimators.core import Core
from omkl.estimators.tables import features_of

Frame = nw.DataFrame[IntoDataFrame]


def numbers(frame: Frame) -> Matrix | None:
    """The rows of a frame in which every cell is a finite number; None for another one. Infinite ones are refused."""
    values = validation.frame_numbers(frame)
    return None if values is None else validation.finite_columns(values, frame.columns)


def features(frame: Frame, core: Core) -> Matrix:
    """The rows of a frame for a prediction, as features."""
    if core.encoder is None and (X := numbers(frame)) is not None:
        return core.rows_of(frame.columns, X)
    from omkl.encoder import of_frame

    return features_of(core, of_frame(frame))


def as_frame(X: IntoDataFrame) -> Frame:
    return nw.from_native(X, eager_only=True)


def as_series(name: str, values: Vector | Sequence[Hashable], like: Frame) -> IntoSeries:
    """A series of the kind that `like` is made of, with its index where it has one."""
    series = nw.new_series(name, values, backend=nw.get_native_namespace(like))
    index = nw.maybe_get_index(like)
    made: IntoSeries = (series if index is None else nw.maybe_set_index(series, index=index)).to_native()
    return made
