"""The encoder of tables as a transformer of river."""

import copy
from collections.abc import Sequence
from typing import Any

import narwhals as nw
from narwhals.typing import IntoDataFrame
from river import base

from omkl import persist
from omkl.estimators.encoders import encoder_from, encoder_parameters, new_encoder
from omkl.estimators.river.frames import as_frame, as_series
from omkl.estimators.rows import Cells


class TableEncoder(base.MiniBatchTransformer):
    """Numeric features of rows with numbers, text, categories, timestamps and gaps, as omkl's estimators make them.

    The estimators of omkl need none: they encode rows themselves. It is for other learners. A number is used as it is,
    and left out where it is missing; a text value has a feature of its own, 0 or 1; a timestamp becomes its day and its
    place in the day, the week and the year; a column that has had gaps has a feature that marks them.

    Parameters
    ----------
    date_format : str or None, default=None
        How dates are written in columns of text, as for `datetime.strptime`; None for ISO 8601.
    categorical : list of str or None, default=None
        Columns of numbers that are codes of categories.

    Examples
    --------
    >>> from omkl.river import TableEncoder
    >>> encoder = TableEncoder()
    >>> encoder.learn_one({"size": 1.5, "colour": "red"})
    >>> encoder.learn_one({"size": 2.0, "colour": "blue"})
    >>> encoder.transform_one({"size": 1.0, "colour": "blue"})
    {'size': 1.0, 'colour=red': 0.0, 'colour=blue': 1.0}
    """

    def __init__(self, date_format: str | None = None, categorical: Sequence[str] | None = None) -> None:
        self.date_format = date_format
        self.categorical = categorical
        self._encoder = new_encoder(*encoder_parameters(date_format, categorical))
        self._encoder.eager = True

    @property
    def _mutable_attributes(self) -> set[str]:
        return set()

    def learn_one(self, x: Cells) -> None:
        """Learn which columns and categories there are."""
        self._encoder.row(x)

    def transform_one(self, x: Cells) -> dict[Any, float]:
        """The features of a row; nothing is learned."""
        return self._encoder.row(x, learn=False)

    def learn_many(self, X: IntoDataFrame) -> None:
        """The same as `learn_one` on each row of a frame."""
        from omkl.encoder import of_frame  # pyarrow takes time to load

        self._encoder.encode(of_frame(as_frame(X)))

    def transform_many(self, X: IntoDataFrame) -> IntoDataFrame:
        """The features of the rows of a frame, as a frame of its kind; NaN where a number is missing."""
        from omkl.encoder import of_frame

        frame = as_frame(X)
        features = self._encoder.encode(of_frame(frame), learn=False).features
        columns = {name: as_series(name, values, frame) for name, values in features.items()}
        if not columns:
            return frame.select([]).to_native()
        made: IntoDataFrame = nw.get_native_namespace(frame).DataFrame(columns)
        return made


def _encode(model: TableEncoder, compact: bool) -> tuple[persist.Json, persist.Arrays]:
    model = copy.deepcopy(model)
    date_format, categorical = encoder_parameters(model.date_format, model.categorical)
    return {"date_format": date_format, "categorical": list(categorical) or None, "encoder": model._encoder.body()}, {}


def _decode(body: persist.Json, arrays: persist.Arrays) -> TableEncoder:
    encoder_parameters(body["date_format"], body["categorical"])
    model = TableEncoder(body["date_format"], body["categorical"])
    model._encoder = encoder_from(body["encoder"])
    model._encoder.eager = True
    return model


persist.register("river-encoder", persist.Codec((TableEncoder,), _encode, _decode))
