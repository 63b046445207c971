"""What the estimators of both ecosystems are built on: named inputs, their scaling, one or more learners, one lock.

A core takes checked arrays. One row and a chunk of rows give the same results to the last bit; a chunk that cannot
be learned to its end is refused whole. Methods may be called from several threads; whoever needs several calls to see
one moment holds `lock`.
"""

import copy
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple, Self, TypeVar

import numpy as np

from omkl import algorithms
from omkl.algorithms.base import AlgorithmSettings, Task
from omkl.arrays import Array, Matrix, Vector
from omkl.engine import gather
from omkl.estimators.id_column import label_code
from omkl.estimators.ids import WithIds
from omkl.estimators.rows import Cells, NotANumber, Row, check_row, encoder_after, in_order, not_a_number
from omkl.lock import Locked, ModelLock, locked
from omkl.online import Online
from omkl.persist import Arrays, Json, demand, require_finite
from omkl.scaling import STATISTICS, InputScaler, RunningStatistics, with_block

if TYPE_CHECKING:
    from omkl.encoder import Encoder

Scale = Literal["online", "none"]
S = TypeVar("S", bound=RunningStatistics)


class Core(WithIds, Locked, ABC):
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

    encoder: "Encoder | None" = None  # makes features of cells, once there were others than numbers
    task: ClassVar[Task]
    intervals: ClassVar[bool] = False  # whether there are prediction intervals
    _not_copied = ("_lock", "_raw", "_row")

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
        self.names = tuple(names)
        self.inputs = InputScaler(len(names)) if scale == "online" else None
        self.online = Online(learner, self._problem(self.names), seed)
        self._add_ids(self.names)
        self._set_up()

    def _set_up(self) -> None:
        self._lock = ModelLock()
        self._raw, self._row = np.empty(len(self.names)), np.empty(len(self.names))

    def _problem(self, names: Sequence[Hashable]) -> NamedTuple:
        texts = [str(name) for name in names]
        problem: NamedTuple = algorithms.problem(self.learner, self.settings, names=texts, seed=self.seed)
        return problem

    def fresh_copy(self, rng: np.random.Generator) -> Self:
        """A core that has learned nothing, shares this one's problem and draws from `rng`."""
        other = copy.copy(self)
        other.online = self.online.fresh_copy(rng)
        other.inputs = None if self.inputs is None else InputScaler(len(self.names))
        other.encoder = None if self.encoder is None else self.encoder.copy()
        other.ids = None if self.ids is None else self.ids.fresh()
        return other

    @property
    def labels(self) -> list[Hashable]:
        """The labels known so far; none for regression."""
        return []

    @property
    def learners(self) -> list[Online]:
        """Everything that learns."""
        return [self.online]

    @property
    def predictors(self) -> list[Online]:
        """Those of them whose predictions are used."""
        return [self.online]

    def scalers(self) -> dict[str, RunningStatistics]:
        """What standardises inputs and target, by name; none where that is left to the user or the algorithm."""
        return {} if self.inputs is None else {"inputs": self.inputs}

    @locked
    def kernel_weights(self) -> Matrix:
        """(predictors, N): the weight of every kernel in the prediction."""
        return np.array([online.kernel_weights for online in self.predictors])

    @property
    def missing(self) -> float:
        """What stands for a feature that a row does not have."""
        return np.nan if self.inputs is not None or self.online.shape.missing else 0.0

    @property
    def lock(self) -> ModelLock:
        """Whoever needs several calls to see one moment holds it."""
        return self._lock

    def __setstate__(self, attributes: dict[str, object]) -> None:
        self.__dict__.update(attributes)
        self._set_up()

    # Inputs

    def row(self, x: Cells, learn: bool) -> Vector:
        """The values of a dictionary of cells, in the order of `names`, scaled. With `learn` new ones become known.

        A missing feature counts as its running mean, or as 0 where inputs are not scaled.
        """
        if self.encoder is not None:
            return self._table_features(self.encoder.row(x, learn), learn)
        try:
            return self._features(x, learn)  # type: ignore[arg-type]  # other cells than numbers are noticed
        except NotANumber:
            encoder = encoder_after(self.names, self.task)
            features = encoder.row(x, learn)
            if learn:
                self.names, self.encoder = tuple(str(name) for name in self.names), encoder
            return self._features(features, learn)

    def _table_features(self, x: Row, learn: bool) -> Vector:
        """The same for features that an encoder has made."""
        row = self._features(x, learn) if self.ids is None else None
        if row is not None and self.ids is None:
            return row
        if learn:
            self.add_features(x)
        return self._features(self.row_with_ids(x), learn)

    def _features(self, x: Row, learn: bool) -> Vector:
        """The same for a dictionary of numbers."""
        if self.inputs is None:
            found, row = gather(x, self.names, self.missing, self._raw), self._raw
        else:
            found, row = self.inputs.transform_dict(x, self.names, self._raw, self._row), self._row
        if found < 0:
            raise not_a_number(x, self.names[-1 - found])
        if learn and found < len(x):
            check_row(x)
            self.add_features(x, encoded=self.encoder is not None)
            return self._features(x, learn)
        return row

    @locked
    def add_features(self, names: Iterable[Hashable], encoded: bool = True) -> None:
        """Make features known: a new problem with a column of frequencies for each of them, the state grown to fit.

        Those that an encoder has made may be statistics of a column of many categories.
        An error, such as too little memory, leaves everything as it was.
        """
        new = in_order(set(names) - set(self.names))
        if not new:
            return
        names = (*self.names, *new)
        problem = self._problem(names)
        grown = [online.copy() for online in self.learners]
        for online in grown:
            online.change_problem(problem)
        inputs = None if self.inputs is None else self.inputs.extended(len(new))
        raw, row = np.empty(len(names)), np.empty(len(names))
        for online, longer in zip(self.learners, grown, strict=True):
            online.become(longer)
        self.names, self.inputs, self._raw, self._row = names, inputs, raw, row
        if encoded:
            self._add_ids(new)

    def scaled(self, X: Matrix) -> Matrix:
        return X if self.inputs is None else self.inputs.transform(X)

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

    def _codes(self, y: Sequence[float] | Vector) -> Matrix:
        return np.asarray(y, dtype=np.float64)[:, None]

    @abstractmethod
    def predict(self, X: Matrix) -> Vector:
        """(rows,)"""

    @abstractmethod
    def predict_row(self, x: Cells) -> float: ...

    @abstractmethod
    def learn_rows(self, X: Matrix, y: Vector, weight: Vector | None = None) -> Vector:
        """Learn rows in their order; returns the prediction of each, made before it was learned."""

    @abstractmethod
    def learn_row(self, x: Cells, y: float, weight: float) -> None:
        """Learn one row."""

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
    unknown: ClassVar[float]  # score of a label that has not come yet

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
    def learn_rows(self, X: Matrix, y: Sequence[Hashable], weight: Vector | None = None) -> Matrix:
        """Learn rows in their order; returns the scores of each, made before it was learned."""

    @abstractmethod
    def learn_row(self, x: Cells, y: Hashable, weight: float) -> None:
        """Learn one row."""

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
