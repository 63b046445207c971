"""What all estimators of the scikit-learn door share.

`fit` makes one pass over the rows in their order; `partial_fit` goes on from there. Rows are
validated a call at a time, which costs scikit-learn's 50 to 100 microseconds: give chunks of
rows, not single ones, or use the river door or `Online` for a row at a time.
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets, unique_labels
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from omkl.arrays import Index, Mask, Matrix, Vector
from omkl.estimators import plots
from omkl.estimators.core import Core, LabelCore, TargetCore, make_seed, probabilities
from omkl.estimators.parameters import Parameters
from omkl.features import column_names
from omkl.kernels import Kernel


@dataclass(kw_only=True, eq=False, repr=False)
class Door(BaseEstimator, Parameters):  # type: ignore[misc]  # scikit-learn has no types
    """Validation, randomness, and what there is to look at."""

    random_state: Any = None

    def _seed(self) -> int:
        if self.random_state is None or isinstance(self.random_state, (int, np.integer)):
            return make_seed(self.random_state if self.random_state is None else int(self.random_state))
        return int(check_random_state(self.random_state).randint(2**31))

    def _core(self) -> Core:
        check_is_fitted(self, "core_")
        core: Core = self.core_
        return core

    def _validated(self, X: Any, y: Any, reset: bool) -> tuple[Matrix, Any]:
        numeric = self._loss == "squared"
        X, y = validate_data(self, X, y, reset=reset, dtype=np.float64, order="C", y_numeric=numeric)
        return X, np.ascontiguousarray(y, dtype=np.float64) if numeric else y

    def _rows(self, X: Any) -> Matrix:
        X = validate_data(self, X, reset=False, dtype=np.float64, order="C")
        rows: Matrix = X
        return rows

    # What there is to look at

    @property
    def n_samples_seen_(self) -> int:
        """Rows learned."""
        return self._core().online.t

    @property
    def kernels_(self) -> list[Kernel]:
        """The dictionary."""
        return list(self._core().settings.all_kernels)

    @property
    def kernel_weights_(self) -> Vector:
        """w / sum(w): (N,), or (labels, N) where there are more than two.

        Of GraphMKL the weight in the mixture; what is left to 1 is with the experts of no kernel.
        """
        return self._weights("log_w")

    def _weights(self, name: str) -> Vector:
        rows = self._core().weights(name)
        return rows if len(rows) > 1 else rows[0]

    def plot_weights(self, ax: Any = None) -> Any:
        """Draw the weight of every kernel over its length scale; returns the Axes (needs omkl[plot])."""
        return plots.weights(self.kernels_, np.atleast_2d(self.kernel_weights_).mean(axis=0), ax)


class OnGraph(Door):
    """A learner that has a similarity graph."""

    @property
    def graph_(self) -> Mask:
        """(N, N): entry (i, j) is true where there is an edge from kernel i to kernel j."""
        A: Mask = self._core().online.problem.graph.A.copy()
        return A

    @property
    def dominating_set_(self) -> Index:
        """Kernels whose out-neighbours are all kernels together."""
        return np.flatnonzero(self._core().online.problem.graph.cover)

    def _next_graph(self) -> Mask:
        return self.graph_

    def plot_graph(self, ax: Any = None) -> Any:
        """Draw the graph, nodes placed by length scale; returns the Axes (needs omkl[plot])."""
        return plots.graph(self.kernels_, self.graph_, self.dominating_set_, self._next_graph(), ax)


class Regressing(RegressorMixin, Door):  # type: ignore[misc]  # as above
    """A number as target."""

    _loss = "squared"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # one gradient step a row, one pass over few rows
        return tags

    def fit(self, X: Any, y: Any) -> Self:
        """Start anew and learn the rows in their order."""
        X, y = self._validated(X, y, reset=True)
        self.core_ = self._new_core()
        self.core_.run(X, y)
        return self

    def partial_fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the rows in their order, from where the learner stands."""
        self._learn(X, y, sample_weight)
        return self

    def predict_then_learn(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Vector:
        """The prediction of each row, made before that row is learned (one call for all rows)."""
        return self._learn(X, y, sample_weight)

    def predict(self, X: Any) -> Vector:
        """Predictions from the learner as it is."""
        check_is_fitted(self, "core_")
        return self._predict_unchecked(self._rows(X))

    def _predict_unchecked(self, X: Matrix) -> Vector:
        predictions: Vector = self.core_.predict(X)
        return predictions

    def _learn_unchecked(self, X: Matrix, y: Vector) -> Vector:
        predictions: Vector = self.core_.run(X, y)
        return predictions

    def _new_core(self) -> TargetCore:
        return TargetCore(self._learner, self._settings(), self._seed(), column_names(self.n_features_in_), self.scale)

    def _learn(self, X: Any, y: Any, sample_weight: ArrayLike | None) -> Vector:
        first = not hasattr(self, "core_")
        if not first and len(X) == 0:
            return np.empty(0)
        X, y = self._validated(X, y, reset=first)
        weight = None if sample_weight is None else checked_weights(sample_weight, X)
        if first:
            self.core_ = self._new_core()
        predictions: Vector = self.core_.run(X, y, weight)
        return predictions


class Classifying(ClassifierMixin, Door):  # type: ignore[misc]  # as above
    """A label as target; more than two are learned one against the rest."""

    _loss = "logistic"
    classes_: NDArray[Any]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # one gradient step a row, one pass over few rows
        return tags

    def fit(self, X: Any, y: Any) -> Self:
        """Start anew and learn the rows in their order."""
        X, y = self._validated(X, y, reset=True)
        check_classification_targets(y)
        self.classes_ = np.unique(y)
        self.core_ = self._new_core()
        self.core_.run(X, y.tolist())
        return self

    def partial_fit(
        self, X: Any, y: Any, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Learn the rows in their order; the first call says which labels there are."""
        self._learn(X, y, classes, sample_weight)
        return self

    def predict_then_learn(
        self, X: Any, y: Any, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> NDArray[Any]:
        """The label predicted for each row before that row is learned (one call for all rows)."""
        return self._choose(self._learn(X, y, classes, sample_weight))

    def predict_proba_then_learn(
        self, X: Any, y: Any, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Matrix:
        """The chances of every label for each row, before that row is learned."""
        return self._chances(self._learn(X, y, classes, sample_weight))

    def decision_function(self, X: Any) -> Matrix | Vector:
        """Scores: (rows,) for two labels, else (rows, labels)."""
        scores = self._scores(X)
        if len(self.classes_) != 2:
            return scores
        return np.where(np.isfinite(scores[:, 1]), scores[:, 1], -scores[:, 0])

    def predict_proba(self, X: Any) -> Matrix:
        """Chances of every label, (rows, labels)."""
        return self._chances(self._scores(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """The likeliest label of each row."""
        return self._choose(self._scores(X))

    def _predict_unchecked(self, X: Matrix) -> NDArray[Any]:
        return self._choose(self._sorted(self._core_scores(X)))

    def _learn_unchecked(self, X: Matrix, y: NDArray[Any]) -> NDArray[Any]:
        return self._choose(self._sorted(self.core_.run(X, y.tolist())))

    def _new_core(self) -> LabelCore:
        names = column_names(self.n_features_in_)
        return LabelCore(self._learner, self._settings(), self._seed(), names, self.scale, closed=len(self.classes_))

    def _scores(self, X: Any) -> Matrix:
        check_is_fitted(self, "core_")
        return self._sorted(self._core_scores(self._rows(X)))

    def _core_scores(self, X: Matrix) -> Matrix:
        """A score for each label that the core knows, in its order."""
        scores: Matrix = self.core_.scores(X)
        return scores

    def _sorted(self, scores: Matrix) -> Matrix:
        """Columns in the order of `classes_`; a label that has not come yet has -inf."""
        place = np.searchsorted(self.classes_, np.array(self.core_.labels, dtype=self.classes_.dtype))
        out = np.full((len(scores), len(self.classes_)), -np.inf)
        out[:, place] = scores
        return out

    def _choose(self, scores: Matrix) -> NDArray[Any]:
        labels: NDArray[Any] = self.classes_[np.argmax(scores, axis=1)]
        return labels

    def _chances(self, scores: Matrix) -> Matrix:
        return probabilities(scores)

    def _learn(self, X: Any, y: Any, classes: ArrayLike | None, sample_weight: ArrayLike | None) -> Matrix:
        first = not hasattr(self, "core_")
        if not first and len(X) == 0:
            return np.empty((0, len(self.classes_)))
        X, y = self._validated(X, y, reset=first)
        check_classification_targets(y)
        weight = None if sample_weight is None else checked_weights(sample_weight, X)
        if first:
            if classes is None:
                raise ValueError("classes must be given in the first call: all the labels that may come")
            known = unique_labels(classes)
        else:
            known = self.classes_
            if classes is not None and not np.array_equal(unique_labels(classes), known):
                raise ValueError(f"classes must stay what they were in the first call, {known}, got {classes}")
        strange = np.setdiff1d(y, known)
        if len(strange):
            raise ValueError(f"y must hold labels out of {known}, got {strange}; name all of them in the first call")
        if first:
            self.classes_ = known
            self.core_ = self._new_core()
        return self._sorted(self.core_.run(X, y.tolist(), weight))


def checked_weights(sample_weight: ArrayLike, X: Matrix) -> Vector:
    weight: Vector = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    return np.ascontiguousarray(weight)
