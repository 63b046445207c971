"""What the estimators of both ecosystems are built on: named inputs, their scaling, one or more learners, one lock.

A core takes checked arrays. One row and a chunk of rows give the same results to the last bit; a chunk that cannot
be learned to its end is refused whole. Methods may be called from several threads; whoever needs several calls to see
one moment holds `lock`.
"""

import copy
from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from typing import ClassVar, Literal, NamedTuple, Self, TypeVar

import numpy as np

from omkl.algorithms.base import AlgorithmSettings, Task
from omkl.arrays import Array, Index, Matrix, Vector
from omkl.estimators.class_weights import ClassWeight, ClassWeights
from omkl.estimators.columns import Columns, limits_of
from omkl.estimators.id_column import CODES, label_code
from omkl.estimators.inputs import NamedInputs
from omkl.estimators.label_order import LabelOrder, warn_of_order
from omkl.estimators.rows import Cells
from omkl.explain.changes import Change, changes_of
from omkl.explain.columns import InputColumn, columns_of
from omkl.lock import locked
from omkl.online import Online
from omkl.persist import Arrays, Json, demand, require_finite
from omkl.scaling import STATISTICS, InputScaler, RunningStatistics, with_block

Scale = Literal["online", "none"]
S = TypeVar("S", bound=RunningStatistics)


class Core(NamedInputs, ABC):
    """Inputs of named features, and the learners that they are passed to.

    Parameters
    ----------
    learner
        The algorithm's name.
    settings
        Its settings.
    seed
        Decides random features and random choices.
    names
        The features known so far.
    scale
        "online" standardises inputs as they come.
    classes
        For classification: all labels that may come, where they are known beforehand.
    """

    task: ClassVar[Task]
    intervals: ClassVar[bool] = False  # whether there are prediction intervals

    def __init__(
        self,
        learner: str,
        settings: AlgorithmSettings,
        seed: int,
        names: Sequence[Hashable],
        scale: Scale,
        classes: Sequence[Hashable] | None = None,
    ) -> None:
        if scale not in ("online", "none"):
            raise ValueError(f"scale must be online or none, got {scale!r}")
        self.learner, self.settings, self.seed = learner, settings, seed
        self.columns = Columns(names, limits_of(learner))
        self.inputs = InputScaler(len(names)) if scale == "online" else None
        self.online = Online(learner, self._problem(self.columns), seed)
        self._add_ids(self.names)
        self._set_up()

    def fresh_copy(self, rng: np.random.Generator) -> Self:
        """A core that has learned nothing, shares this one's problem and draws from `rng`."""
        other = copy.copy(self)
        other.online = self.online.fresh_copy(rng)
        other.inputs = None if self.inputs is None else InputScaler(self.columns.number)
        other.encoder = None if self.encoder is None else self.encoder.copy()
        other.ids = None if self.ids is None else self.ids.fresh()
        return other

    @property
    def labels(self) -> list[Hashable]:
        """The labels known so far; none for regression."""
        return []

    @property
    def predictors(self) -> list[Online]:
        """The learners whose predictions are used."""
        return [self.online]

    def scalers(self) -> dict[str, RunningStatistics]:
        """What standardises inputs and target, by name; none where that is left to the user or the algorithm."""
        return {} if self.inputs is None else {"inputs": self.inputs}

    @locked
    def kernel_weights(self) -> Matrix:
        """(predictors, N): the weight of every kernel in the prediction."""
        return np.array([online.kernel_weights for online in self.predictors])

    def input_columns(self) -> list[InputColumn]:
        """The columns that the features of a row were made of, as users know them."""
        encoded = {} if self.encoder is None else self.encoder.columns
        owns = {column.own: name for name, column in encoded.items()}
        return columns_of(self.names, owns, {name for name, column in encoded.items() if column.kind == "time"})

    @locked
    def last_changes(self) -> list[Change]:
        """The last change that new experts were the answer to, if there has been any."""
        places: dict[int, Hashable] = {
            int(place): column.name for column in self.input_columns() for place in column.places
        }
        return changes_of(self.online, [places[k] for k in range(len(places))])

    # Model files

    @abstractmethod
    def encode_own(self, arrays: Arrays) -> dict[str, Json]:
        """What this kind of core has beyond its inputs and learners."""

    @abstractmethod
    def decode_own(self, body: Json, arrays: Arrays, learners: list[Online]) -> None:
        """Take over what `encode_own` wrote, and the learners."""


class Intervals(NamedTuple):
    """Predictions, each with intervals of several coverages."""

    y_pred: Vector  # (rows,)
    lower: Matrix  # (rows, coverages)
    upper: Matrix


class NumberCore(Core):
    """A core for regression: what estimators, fleets and streams may ask of it."""

    task = "regression"
    codes = CODES["regression"]

    def _codes(self, y: Sequence[float] | Vector) -> Matrix:
        return np.asarray(y, dtype=np.float64)[:, None]

    @abstractmethod
    def predict(self, X: Matrix) -> Vector:
        """(rows,)"""

    @abstractmethod
    def predict_row(self, x: Cells) -> float: ...

    def learn_rows(self, X: Matrix, y: Vector, weight: Vector | None = None) -> Vector:
        """Learn rows in their order, all or none; returns the prediction of each, made before it was learned."""
        with self._lock, self.learning_ids(X, y, weight) as X:
            return self.learn_features(X, y, weight)

    @abstractmethod
    def learn_features(self, X: Matrix, y: Vector, weight: Vector | None = None) -> Vector:
        """The same for rows that have the statistics of columns of many categories."""

    @abstractmethod
    def learn_row(self, x: Cells, y: float, weight: float) -> None:
        """Learn one row."""

    def start_target(self, scaled: bool) -> None:
        """Begin with a target of which nothing is known, and which is standardised as it comes if `scaled`."""

    def rounds(self, weight: Vector) -> Index | None:
        """(rows,): in how many rounds each row is learned; None for one each."""
        return None

    def predict_std(self, X: Matrix) -> Matrix:
        """(rows, 2): mean, and half width of the interval that holds 68 % of the targets."""
        raise self._no_intervals()

    def predict_std_row(self, x: Cells) -> tuple[float, float]:
        """The same for one row."""
        raise self._no_intervals()

    def predict_interval(self, X: Matrix, coverage: float) -> Matrix:
        """(rows, 2): lower and upper end."""
        raise self._no_intervals()

    def predict_interval_row(self, x: Cells, coverage: float) -> tuple[float, float]:
        """The same for one row."""
        raise self._no_intervals()

    def learn_rows_interval(self, X: Matrix, y: Vector, coverage: float) -> Matrix:
        """(rows, 3): prediction, lower and upper end of each row, before it was learned."""
        raise self._no_intervals()

    def predict_intervals(self, X: Matrix, coverages: Sequence[float]) -> Intervals:
        """Predictions and their intervals."""
        raise self._no_intervals()

    def learn_rows_intervals(self, X: Matrix, y: Vector, coverages: Sequence[float]) -> Intervals:
        """Learn rows in their order; predictions and intervals of each are made before it was learned."""
        raise self._no_intervals()

    def _no_intervals(self) -> NotImplementedError:
        return NotImplementedError(f"{self.learner} has no prediction intervals; use graph-mkl")


class LabelCore(Core):
    """A core for classification. Scores are what the learners say; the largest is the prediction."""

    task = "classification"
    codes = CODES["classification"]
    unknown: ClassVar[float]  # score of a label that has not come yet
    class_weights = ClassWeights()  # replaced, never changed in place
    _not_copied = (*Core._not_copied, "_order")

    def _set_up(self) -> None:
        super()._set_up()
        self._order = LabelOrder()

    def fresh_copy(self, rng: np.random.Generator) -> Self:
        other = super().fresh_copy(rng)
        other.class_weights = self.class_weights.fresh()
        return other

    def _codes(self, y: Sequence[Hashable]) -> Matrix:
        index = {label: k for k, label in enumerate(self.labels)}
        return np.array([label_code(index.setdefault(label, len(index))) for label in y]).reshape(-1, 2)

    @property
    def most_labels(self) -> int | None:
        """How many labels there will ever be; None where any number may come."""
        return None

    @abstractmethod
    def scores(self, X: Matrix) -> Matrix:
        """(rows, labels)"""

    @abstractmethod
    def to_probabilities(self, scores: Matrix, learned: Vector | float) -> Matrix:
        """Scores as probabilities; columns may be in any order. `learned`: rows learned before each of these."""

    @abstractmethod
    def to_decision(self, scores: Matrix) -> Matrix:
        """Scores as scikit-learn's decision function has them, columns as they are."""

    @abstractmethod
    def probabilities_row(self, x: Cells) -> list[float]: ...

    @abstractmethod
    def learn_features(self, X: Matrix, y: Sequence[Hashable], weight: Vector | None = None) -> Matrix:
        """(rows, labels known in the end): learn rows in their order, all or none; scores of each before that.

        The rows have the statistics of columns of many categories, and the weights are those of the labels too.
        """

    @abstractmethod
    def learn_weighted_row(self, x: Cells, y: Hashable, weight: float) -> None:
        """Learn one row."""

    def learn_rows(self, X: Matrix, y: Sequence[Hashable], weight: Vector | None = None) -> Matrix:
        """The same for rows without such statistics, with their own weights."""
        with self._lock:
            class_weights = self.class_weights.copy()
            weight = class_weights.of_rows(y, weight)
            with self.learning_ids(X, y, weight) as X:
                scores = self.learn_features(X, y, weight)
            self.class_weights = class_weights
            return scores

    def learn_row(self, x: Cells, y: Hashable, weight: float) -> None:
        """Learn one row, with the weight of its label."""
        with self._lock:
            if self.class_weights.given is None:
                self.learn_weighted_row(x, y, weight)
            else:
                class_weights = self.class_weights.copy()
                self.learn_weighted_row(x, y, class_weights.of_row(y, weight))
                self.class_weights = class_weights

    def use_class_weight(self, given: ClassWeight) -> None:
        """Let later rows have these weights, should they not have them already; all labels known keep their counts."""
        self.class_weights = self.class_weights.replaced(given, self.labels)

    def follow_order(self, label: Hashable, stacklevel: int) -> None:
        """A warning where single rows come sorted by label."""
        order = self._order
        if not order.mixed and order.grouped_after(label):
            warn_of_order(order.rows, stacklevel + 1)

    def weights_of_all(self, y: Sequence[Hashable], weight: Vector | None) -> Vector | None:
        """Of rows that are all known beforehand, for `learn_features`; the rows of each label are counted."""
        self.class_weights, weight = self.class_weights.of_all(y, weight)
        return weight

    def probabilities(self, X: Matrix, classes: Array | None = None) -> Matrix:
        """(rows, labels), or a column for each of the sorted `classes`, whether it has come or not."""
        with self._lock:
            return self.to_probabilities(self.arranged(self.scores(X), classes), self.online.t)

    def learn_rows_probabilities(
        self, X: Matrix, y: Sequence[Hashable], weight: Vector | None = None, classes: Array | None = None
    ) -> Matrix:
        """(rows, labels known in the end, or `classes`): probabilities of each row before it was learned."""
        with self._lock:
            learned = self.online.t + np.arange(len(X), dtype=np.float64)
            return self.to_probabilities(self.arranged(self.learn_rows(X, y, weight), classes), learned)

    def arranged(self, scores: Matrix, classes: Array | None) -> Matrix:
        """Scores with a column for each of the sorted `classes`."""
        if classes is None:
            return scores
        place = np.searchsorted(classes, np.array(self.labels, dtype=classes.dtype))
        out = np.full((len(scores), len(classes)), self.unknown)
        out[:, place] = scores
        return out


def only(learners: list[Online]) -> Online:
    demand(len(learners) == 1, "there must be one learner")
    return learners[0]


def restored(scaler: S, stats: Matrix) -> S:
    """A scaler with statistics from a file."""
    d = scaler.stats.shape[1]
    demand(stats.shape in ((STATISTICS, d), (3, d)), "the scaling does not fit the problem")
    stats = with_block(stats)
    check_statistics(stats)
    scaler.restore(stats)
    return scaler


def check_statistics(stats: Matrix) -> None:
    """What running statistics in a file must be."""
    require_finite(stats, "of the scaling")
    demand(bool((stats[[0, 2, 3, 5, 6]] >= 0).all()), "a count or a sum of squares is negative")


def make_seed(seed: int | None) -> int:
    """`seed`, or one from the system's entropy, small enough for every file format."""
    return int(np.random.SeedSequence().generate_state(1)[0]) if seed is None else int(seed)
