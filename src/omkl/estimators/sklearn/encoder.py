"""The encoder of tables as a transformer of scikit-learn."""

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted, validate_data

from omkl import persist
from omkl.arrays import Array, Matrix
from omkl.estimators.encoders import changed_encoder, encoder_from, encoder_parameters
from omkl.estimators.tables import matrix
from omkl.persist import claims, demand

if TYPE_CHECKING:
    from sklearn.utils import Tags

    from omkl.encoder import Batch, Encoder

OUTPUTS = ("default", "pandas", "polars")  # what `set_output` accepts


class TableEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Numeric features of tables with numbers, text, categories, timestamps and gaps, as omkl's estimators make them.

    The estimators of omkl need none: they encode tables themselves. It is for other learners. A number is used as it
    is, NaN where it is missing; a text value has a feature of its own, 0 or 1; a timestamp becomes its day and its
    place in the day, the week and the year; a column that has had gaps has a feature that marks them.

    Parameters
    ----------
    date_format : str or None, default=None
        How dates are written in columns of text, as for `datetime.strptime`; None for ISO 8601.
    categorical : list of str or None, default=None
        Columns of numbers that are codes of categories.

    Examples
    --------
    >>> import pandas as pd
    >>> from omkl import TableEncoder
    >>> frame = pd.DataFrame({"size": [1.5, None, 2.0], "colour": ["red", "blue", "red"]})
    >>> TableEncoder().set_output(transform="pandas").fit_transform(frame)
       size  size missing  colour=red  colour=blue
    0   1.5           0.0         1.0          0.0
    1   NaN           1.0         0.0          1.0
    2   2.0           0.0         1.0          0.0
    """

    encoder_: "Encoder"
    features_: list[str]  # in the order of the columns of the result
    n_features_in_: int
    feature_names_in_: Array  # where the columns came with names

    def __init__(self, date_format: str | None = None, categorical: Sequence[str] | None = None) -> None:
        self.date_format = date_format
        self.categorical = categorical

    def __sklearn_tags__(self) -> "Tags":
        tags: Tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.string = tags.input_tags.categorical = True
        return tags

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Learn which columns and categories there are, and forget others."""
        self.__dict__.pop("encoder_", None)
        return self.partial_fit(X)

    def partial_fit(self, X: ArrayLike, y: object = None) -> Self:
        """Learn further categories and gaps; the features known before stay where they are."""
        first = not hasattr(self, "encoder_")
        batch = self._batch(X, reset=first)
        before = None if first else self.encoder_
        encoder, new = changed_encoder(before, batch, *encoder_parameters(self.date_format, self.categorical))
        if not encoder.features:
            raise ValueError("every cell of X is empty; give at least one column with a value")
        self.encoder_, self.features_ = encoder, [*([] if first else self.features_), *new]
        return self

    def transform(self, X: ArrayLike) -> Matrix:
        """The features of the rows; nothing is learned."""
        check_is_fitted(self, "encoder_")
        batch = self._batch(X, reset=False)
        return matrix(self.encoder_.encode(batch, learn=False), self.features_, len(batch.rows))

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> Array:
        """Names of the columns of the result, such as "size", "size missing", "colour=red" and "seen:day sin"."""
        check_is_fitted(self, "encoder_")
        _check_feature_names_in(self, input_features)
        return np.array(self.features_, dtype=object)

    def _batch(self, X: ArrayLike, reset: bool) -> "Batch":
        from omkl.encoder import of_columns, of_frame  # pyarrow takes time to load

        found: Any = nw.from_native(X, eager_only=True, pass_through=True)
        is_frame = isinstance(found, nw.DataFrame) and all(found.shape)
        if is_frame and all(isinstance(name, str) for name in found.columns):
            validate_data(self, X, reset=reset, skip_check_array=True)
            return of_frame(found)
        rows = validate_data(self, X, reset=reset, dtype=None, ensure_all_finite="allow-nan")
        return of_columns({f"x{k}": rows[:, k] for k in range(rows.shape[1])}, len(rows))


def _encode(model: TableEncoder, compact: bool) -> tuple[persist.Json, persist.Arrays]:
    model = copy.deepcopy(model)
    date_format, categorical = encoder_parameters(model.date_format, model.categorical)
    output = getattr(model, "_sklearn_output_config", {}).get("transform", "default")
    body = {"date_format": date_format, "categorical": list(categorical) or None, "output": output, "fitted": None}
    if hasattr(model, "encoder_"):
        names = getattr(model, "feature_names_in_", None)
        body["fitted"] = {
            "encoder": model.encoder_.body(), "features": model.features_, "n_features_in_": model.n_features_in_,
            "names": None if names is None else names.tolist(),
        }  # fmt: skip
    return body, {}


def _decode(body: persist.Json, arrays: persist.Arrays) -> TableEncoder:
    encoder_parameters(body["date_format"], body["categorical"])
    model = TableEncoder(body["date_format"], body["categorical"])
    claims.one_of(body["output"], OUTPUTS, "the output of an encoder")
    if body["output"] != "default":
        model.set_output(transform=body["output"])
    if (fitted := body["fitted"]) is not None:
        model.encoder_ = encoder_from(fitted["encoder"])
        model.features_ = claims.strings(fitted["features"], "the features")
        known = set(model.encoder_.features)
        demand(set(model.features_) == known and len(model.features_) == len(known) > 0, "columns and features differ")
        model.n_features_in_ = claims.count(fitted["n_features_in_"], "the number of columns", 1)
        columns = [f"x{k}" for k in range(len(model.encoder_.columns))]
        if fitted["names"] is not None:
            columns = claims.strings(fitted["names"], "the names of columns")
            model.feature_names_in_ = np.array(columns, dtype=object)
        demand(model.n_features_in_ == len(columns) == len(set(columns)), "columns and names differ in number")
        demand(set(columns) == set(model.encoder_.columns), "columns and names differ")
    return model


persist.register("sklearn-encoder", persist.Codec((TableEncoder,), _encode, _decode))
