"""The base class of the scikit-learn estimators for regression."""

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin
from sklearn.utils.validation import _num_samples

from omkl.arrays import Array, Matrix, Vector
from omkl.estimators.core import NumberCore
from omkl.estimators.cores import AnyNumberCore, new_number_core, settings_of
from omkl.estimators.outputs import OutputsCore
from omkl.estimators.sklearn import inputs
from omkl.estimators.sklearn.base import Estimator
from omkl.estimators.sklearn.fitting import checked_weights, unchanged_on_error
from omkl.estimators.sklearn.inputs import Rows
from omkl.estimators.sklearn.single import SingleNumbers
from omkl.estimators.sklearn.targets import output_names, require_same
from omkl.estimators.tally import tally_of
from omkl.features import column_names
from omkl.lock import locked

if TYPE_CHECKING:
    from sklearn.utils import Tags


class Regressor(RegressorMixin, Estimator, SingleNumbers):  # type: ignore[misc]  # scikit-learn has no types
    """A number as target, or several."""

    task = "regression"
    core_: AnyNumberCore

    def __sklearn_tags__(self) -> "Tags":
        tags: Tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # one gradient step a row, one pass over few rows
        tags.target_tags.multi_output = True
        return tags

    def new_core(self, names: Sequence[Hashable] | None = None) -> AnyNumberCore:
        names, outputs = names or column_names(self.n_features_in_), self._outputs
        if outputs is not None:
            settings = settings_of(self, self.task)
            return OutputsCore(self.algorithm_name, settings, self.seed(), names, self._scale, outputs)
        return self.new_number_core(names)

    def new_number_core(self, names: Sequence[Hashable]) -> NumberCore:
        """A core for one number that has learned nothing."""
        return new_number_core(self.algorithm_name, settings_of(self, self.task), self.seed(), names, self._scale)

    @property
    def codes(self) -> int:
        return NumberCore.codes if self._outputs is None else OutputsCore.codes

    @property
    def _outputs(self) -> list[Hashable] | None:
        """The names of the targets where there are several."""
        return getattr(self, "target_names_", None)

    def _validated(self, X: ArrayLike, y: ArrayLike, reset: bool) -> tuple[Rows, Matrix]:
        """Rows and targets, (rows,) or (rows, outputs)."""
        rows, targets = inputs.checked_with_target(self, X, y, reset, numeric=True)
        names = output_names(y, targets)
        if not reset:
            require_same(self._outputs, names, y)
        elif names is not None:
            self.target_names_ = names
        else:
            self.__dict__.pop("target_names_", None)
        return rows, targets

    @locked
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Forget what was learned and learn the rows, `epochs` times, in a random order unless `shuffle` is False."""
        with unchanged_on_error(self):
            rows, targets = self._validated(X, y, reset=True)
            self.__dict__.pop("_tally", None)
            weight = None if sample_weight is None else checked_weights(sample_weight, targets)
            for part in self._passes(inputs.start(self, rows), targets, weight):
                self.core_.learn_features(part.X, np.asarray(part.y, dtype=np.float64), part.weight)
        return self

    @locked
    def partial_fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the rows in their order, starting from what was learned before."""
        self._learn(X, y, sample_weight)
        return self

    @locked
    def predict_then_learn(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Matrix:
        """The prediction of each row, made before that row is learned (one call for all rows).

        (rows,), or (rows, outputs) for a target of several columns.
        """
        return self._learn(X, y, sample_weight)

    @locked
    def predict(self, X: ArrayLike) -> Matrix:
        """Predictions, (rows,) or (rows, outputs); nothing is learned."""
        core = self._fitted().core_
        return core.predict(self._rows(X))

    def _predict_unchecked(self, X: Matrix) -> Matrix:
        return self.core_.predict(X)

    def _learn_unchecked(self, X: Matrix, y: Array) -> Matrix:
        return self.core_.learn_rows(X, np.asarray(y, dtype=np.float64))

    def _learn(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None) -> Matrix:
        first = not hasattr(self, "core_")
        if not first and _num_samples(X) == 0:
            return np.empty(0 if self._outputs is None else (0, len(self._outputs)))
        rows, targets = self._validated(X, y, reset=first)
        weight = None if sample_weight is None else checked_weights(sample_weight, targets)
        return self._learn_checked(rows, targets, weight, first)

    def _learn_checked(self, rows: Rows, targets: Matrix, weight: Vector | None, first: bool) -> Matrix:
        def learn(X: Matrix, at: slice) -> Matrix:
            return self.core_.learn_rows(X, targets[at], None if weight is None else weight[at])

        y_pred = inputs.learn(self, rows, first, lambda X: self.core_.predict(X), learn, np.zeros_like(targets[:1]))
        tally_of(self).numbers(y_pred, targets)
        tally_of(self).follow(getattr(self, "core_", None))
        return y_pred
