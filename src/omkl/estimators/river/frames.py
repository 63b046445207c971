"""Frames of pandas, polars and Arrow, for the river estimators."""

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import narwhals as nw
import numpy as np
from narwhals.typing import IntoDataFrame, IntoSeries

from omkl import validation
from omkl.arrays import Matrix, Vector
from omkl.estimators.core import Core
from omkl.estimators.explaining import Explaining
from omkl.estimators.tables import features_of
from omkl.estimators.tally import LOOK_EVERY, tally_of

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
    if isinstance(X, (list, tuple, dict, np.ndarray)):
        raise TypeError(f"X must be a frame of pandas, polars or Arrow, got {type(X).__name__}; "
                        "pandas.DataFrame(X) makes one of an array, or of rows that are dictionaries")  # fmt: skip
    try:
        return nw.from_native(X, eager_only=True)
    except nw.exceptions.DuplicateError as error:
        raise ValueError(f"two columns have the same name; rename one of them ({error})") from error


def as_series(name: str, values: Vector | Sequence[Hashable], like: Frame) -> IntoSeries:
    """A series of the kind that `like` is made of, with its index where it has one."""
    series = nw.new_series(name, values, backend=nw.get_native_namespace(like))
    index = nw.maybe_get_index(like)
    made: IntoSeries = (series if index is None else nw.maybe_set_index(series, index=index)).to_native()
    return made


def as_list(y: Iterable[Hashable]) -> list[Hashable]:
    """Labels as Python has them."""
    found: list[Hashable] = y.tolist() if hasattr(y, "tolist") else list(y)
    return found


class ExplainingFrames(Explaining):
    """Explanations for the rows of frames, and changes that are noticed while single rows are learned."""

    _unlooked = 0  # rows since the last look; an annotation would make it a parameter

    def _rows_to_explain(self, X: IntoDataFrame) -> Matrix:
        core: Any = self._explained()
        return features(as_frame(X), core)

    def count_row(self) -> None:
        """A row has been learned; now and then it is looked whether other experts have taken over."""
        self._unlooked += 1
        if self._unlooked >= LOOK_EVERY:
            self._unlooked = 0
            core: Any = self._explained()
            tally_of(self).follow(core, least=1)
