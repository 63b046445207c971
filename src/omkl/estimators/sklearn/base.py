"""Base classes of the scikit-learn estimators.

`fit` learns all rows from the start, in a random order unless `shuffle=False`; `partial_fit` continues with rows in the
order in which they come. scikit-learn's validation takes some hundred microseconds for each call; arrays, lists and
pandas frames of finite numbers, which it would only convert, skip it once there is something learned.
"""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets, unique_labels
from sklearn.utils.validation import _num_samples, check_is_fitted

from omkl import algorithms, validation
from omkl.algorithms.base import Task
from omkl.arrays import Array, Matrix, Vector
from omkl.estimators import plots
from omkl.estimators.core import Core, LabelCore, Scale, make_seed
from omkl.estimators.cores import AnyCore, ClassWeighting, Scaling, new_label_core, settings_of
from omkl.estimators.documentation import with_parameters
from omkl.estimators.explaining import Explaining
from omkl.estimators.id_column import CODES
from omkl.estimators.label_order import warn_if_sorted
from omkl.estimators.outputs import OutputsCore
from omkl.estimators.sklearn import inputs
from omkl.estimators.sklearn.fitting import FitRows, checked_weights, passes, unchanged_on_error
from omkl.estimators.sklearn.inputs import Rows
from omkl.estimators.sklearn.single import SingleLabels
from omkl.estimators.tally import Stats, tally_of
from omkl.features import column_names
from omkl.kernels import Kernel
from omkl.lock import Locked, LockOnDemand, locked
from omkl.online import Online

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from sklearn.utils import Tags

RandomState = int | np.random.RandomState | None
MOST_EPOCHS = 10_000  # of `fit`, which a model file may ask for too
FEW_ROWS = 1000  # of labels, so many of which are learned twice


class FittedAttributes:
    """Attributes that an estimator has once it has learned."""

    core_: Core
    n_features_in_: int
    feature_names_in_: Array  # where the features came with names
    target_name_: str  # where the target came with one
    target_names_: list[Hashable]  # where there are several


@dataclass(kw_only=True, eq=False, repr=False)
class Estimator(Locked, Explaining, BaseEstimator, FittedAttributes):  # type: ignore[misc]  # scikit-learn has no types
    """Validation, randomness and attributes that all estimators have.

    shuffle : bool, default=True
        Whether `fit` takes the rows in a random order, whatever order they are in; False for rows in the order of
        time.
    epochs : int or "auto", default="auto"
        How often `fit` goes through the rows, at most 10000 times, each time in another order if they are shuffled.
        "auto": twice for labels if the rows are shuffled and at most 1000, else once.
    random_state : int, RandomState or None, default=None
        Decides random features, random choices and the order of the rows in `fit`.
    """

    task: ClassVar[Task]
    _lock = LockOnDemand()  # scikit-learn's constructors set nothing but parameters

    shuffle: bool = True
    epochs: int | Literal["auto"] = "auto"
    random_state: RandomState = None

    def __init_subclass__(cls, parameters: type | None = None, **options: Any) -> None:
        """`parameters` is the class, of an algorithm's module, that declares what a user may choose."""
        super().__init_subclass__(**options)
        if parameters is not None:
            others = [part for part in (Scaling, ClassWeighting) if issubclass(cls, part)]
            cls.__doc__ = with_parameters(cls.__doc__, parameters, *others, Estimator)

    if TYPE_CHECKING:

        @property
        def algorithm_name(self) -> str: ...

    def seed(self) -> int:
        """A seed from `random_state`."""
        if self.random_state is None or isinstance(self.random_state, (int, np.integer)):
            return make_seed(self.random_state if self.random_state is None else int(self.random_state))
        return int(check_random_state(self.random_state).randint(2**31))

    def new_core(self, names: Sequence[Hashable] | None = None) -> Core:
        """A core that has learned nothing, for these features and the labels that this estimator knows."""
        raise NotImplementedError

    def _predict_unchecked(self, X: Matrix) -> Array:
        raise NotImplementedError

    def _learn_unchecked(self, X: Matrix, y: Array) -> Array:
        raise NotImplementedError

    @property
    def codes(self) -> int:
        """Numbers that describe a target, in columns of many categories."""
        return CODES[self.task]

    @property
    def accepts_missing(self) -> bool:
        """Whether NaN in an array stands for a missing value; in frames it always does."""
        return algorithms.get(self.algorithm_name).distribution  # these scale their inputs themselves

    def __sklearn_tags__(self) -> "Tags":
        tags: Tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.accepts_missing
        return tags

    @property
    def _scale(self) -> Scale:
        return self.scale if isinstance(self, Scaling) else "none"

    def _passes(self, X: Matrix, y: Array, weight: Vector | None) -> Iterator[FitRows]:
        """What `fit` learns, pass by pass."""
        validation.require(isinstance(self.shuffle, (bool, np.bool_)), "shuffle", "True or False", self.shuffle)
        if self.epochs != "auto":
            whole = validation.is_whole(self.epochs) and 1 <= self.epochs <= MOST_EPOCHS
            wanted = f'"auto" or a whole number from 1 to {MOST_EPOCHS}'
            validation.require(whole, "epochs", wanted, self.epochs)
        core = self.core_
        return passes(
            FitRows(X, y, weight), bool(self.shuffle), self._number_of_passes, core.seed,
            lambda part: core.learned_ids(part.X, part.y, part.weight),
        )  # fmt: skip

    def _number_of_passes(self, rows: int) -> int:
        """How often `fit` goes through so many rows.

        With a second pass over few labels a surprising row near the end, or an unlucky order, matters less. Numbers
        gain nothing by it.
        """
        if self.epochs != "auto":
            return self.epochs
        return 2 if self.task == "classification" and self.shuffle and rows <= FEW_ROWS else 1

    def _fitted(self) -> Self:
        if "core_" not in self.__dict__:  # scikit-learn's check takes a third of the time of one row
            check_is_fitted(self, "core_")
        return self

    def _learners(self) -> list[Online]:
        """Those that predict: one, or one for each label."""
        return self._fitted().core_.predictors

    def _rows(self, X: ArrayLike) -> Matrix:
        return inputs.rows(self, X)

    def _explained(self) -> AnyCore | OutputsCore:
        self._fitted()
        return super()._explained()

    _rows_to_explain = _rows

    # Attributes

    @property
    def n_samples_seen_(self) -> int:
        """Rows learned."""
        return self._fitted().core_.online.t

    @property
    def kernels_(self) -> list[Kernel]:
        """The dictionary."""
        return list(self._fitted().core_.settings.all_kernels)

    @property
    def kernel_weights_(self) -> Vector:
        """The weight of every kernel in the prediction: (N,), or (labels, N) where there are more than two labels.

        For GraphMKL they sum to at most 1; the rest is the weight of experts that use no kernel.
        """
        rows = self._fitted().core_.kernel_weights()
        return rows if len(rows) > 1 else rows[0]

    @locked
    def stats(self) -> Stats:
        """Rows learned, and how good the predictions were that `partial_fit` and its kin made before each row.

        `rmse` or `accuracy` and the `coverage` of intervals are of the `scored` rows of this process; `fit` begins
        anew, and scores none. `changes` are rows at which experts began to learn that have replaced others, as
        seen by calls that are 250 rows apart, and by this one.
        """
        return tally_of(self).stats(self._fitted().core_)

    def plot_weights(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the weight of every kernel over its length scale; returns the Axes (needs omkl[plot])."""
        return plots.weights(self.kernels_, np.atleast_2d(self.kernel_weights_).mean(axis=0), ax)


class Classifier(ClassifierMixin, Estimator, SingleLabels, ClassWeighting):  # type: ignore[misc]  # scikit-learn has no types
    """A label as target."""

    task = "classification"
    core_: LabelCore
    classes_: Array

    def __sklearn_tags__(self) -> "Tags":
        tags: Tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # one gradient step a row, one pass over few rows
        return tags

    def new_core(self, names: Sequence[Hashable] | None = None) -> LabelCore:
        names, labels = names or column_names(self.n_features_in_), self.classes_.tolist()
        settings = settings_of(self, self.task)
        return new_label_core(self.algorithm_name, settings, self.seed(), names, self._scale, labels, self.class_weight)

    def _validated(self, X: ArrayLike, y: ArrayLike, reset: bool) -> tuple[Rows, Array]:
        rows, labels = inputs.checked_with_target(self, X, y, reset, numeric=False)
        if labels.dtype.kind == "O":
            for row, label in enumerate(labels):
                validation.label(label, f" in row {row} (no row was learned)")
        if labels.dtype.kind not in "biuU":  # which can be nothing but labels
            check_classification_targets(labels)
        return rows, labels

    @locked
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Forget what was learned and learn the rows, `epochs` times, in a random order unless `shuffle` is False."""
        with unchanged_on_error(self):
            rows, labels = self._validated(X, y, reset=True)
            self.classes_ = np.unique(labels)
            self.__dict__.pop("_tally", None)
            weight = None if sample_weight is None else checked_weights(sample_weight, labels)
            X = inputs.start(self, rows)
            for part in self._passes(X, labels, self.core_.weights_of_all(labels.tolist(), weight)):
                self.core_.learn_features(part.X, part.y.tolist(), part.weight)
        return self

    @locked
    def partial_fit(
        self, X: ArrayLike, y: ArrayLike, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Learn the rows in their order; the first call says which labels there are."""
        self._learn(X, y, classes, sample_weight)
        warn_if_sorted(np.asarray(y).tolist(), stacklevel=5)
        return self

    @locked
    def predict_then_learn(
        self, X: ArrayLike, y: ArrayLike, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Array:
        """The label predicted for each row before that row is learned (one call for all rows)."""
        return self._most_likely(self._learn(X, y, classes, sample_weight))

    @locked
    def predict_proba_then_learn(
        self, X: ArrayLike, y: ArrayLike, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Matrix:
        """The probabilities of every label for each row, before that row is learned."""
        return self._learn(X, y, classes, sample_weight)

    @locked
    def decision_function(self, X: ArrayLike) -> Matrix | Vector:
        """Scores: (rows,) for two labels, else (rows, labels)."""
        core = self._fitted().core_
        return core.to_decision(core.arranged(core.scores(self._rows(X)), self.classes_))

    @locked
    def predict_proba(self, X: ArrayLike) -> Matrix:
        """Probabilities of every label, (rows, labels)."""
        return self._fitted().core_.probabilities(self._rows(X), self.classes_)

    def predict_log_proba(self, X: ArrayLike) -> Matrix:
        """Logarithms of the probabilities of every label, (rows, labels)."""
        logarithms: Matrix = np.log(self.predict_proba(X))
        return logarithms

    @locked
    def predict(self, X: ArrayLike) -> Array:
        """The most likely label of each row."""
        return self._most_likely(self.predict_proba(X))

    def _output_order(self) -> Array:
        return self.classes_

    def _predict_unchecked(self, X: Matrix) -> Array:
        return self._most_likely(self.core_.probabilities(X, self.classes_))

    def _learn_unchecked(self, X: Matrix, y: Array) -> Array:
        return self._most_likely(self.core_.learn_rows_probabilities(X, y.tolist(), None, self.classes_))

    def _most_likely(self, probabilities: Matrix) -> Array:
        """The label of the largest probability in each row."""
        labels: Array = self.classes_[np.argmax(probabilities, axis=1)]
        return labels

    def _learn(self, X: ArrayLike, y: ArrayLike, classes: ArrayLike | None, sample_weight: ArrayLike | None) -> Matrix:
        first = not hasattr(self, "core_")
        if not first and _num_samples(X) == 0:
            return np.empty((0, len(self.classes_)))
        rows, labels = self._validated(X, y, reset=first)
        weight = None if sample_weight is None else checked_weights(sample_weight, labels)
        if first:
            if classes is None:
                raise ValueError("classes must be given in the first call: all the labels that may come")
            known = unique_labels(classes)
        else:
            known = self.classes_
            if classes is not None and not np.array_equal(unique_labels(classes), known):
                raise ValueError(f"classes must stay what they were in the first call, {known}, got {classes}")
        unknown = np.setdiff1d(labels, known)
        if len(unknown):
            raise ValueError(f"y must hold labels out of {known}, got {unknown}; name all of them in the first call")
        if first:
            self.classes_ = known
        else:
            self.core_.use_class_weight(self.class_weight)
        return self._learn_checked(rows, labels, weight, first)

    def _learn_checked(self, rows: Rows, labels: Array, weight: Vector | None, first: bool) -> Matrix:
        def learn(X: Matrix, at: slice) -> Matrix:
            w = None if weight is None else weight[at]
            return self.core_.learn_rows_probabilities(X, labels[at].tolist(), w, self.classes_)

        def predict(X: Matrix) -> Matrix:
            return self.core_.probabilities(X, self.classes_)

        unknown = np.full((1, len(self.classes_)), 1 / len(self.classes_))
        probabilities = inputs.learn(self, rows, first, predict, learn, unknown)
        tally_of(self).labels(self._most_likely(probabilities), labels)
        tally_of(self).follow(getattr(self, "core_", None))
        return probabilities
