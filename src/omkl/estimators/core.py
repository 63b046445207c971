"""What the estimators of both ecosystems are built on: named inputs, their scaling, one or more learners, one lock.

A core takes checked arrays. One row and a chunk of rows give the same results to the last bit; a chunk that cannot
be learned to its end is refused whole. Methods may be called from several threads; whoever needs several calls to see
one moment holds `lock`.
"""

import copy
import warnings
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, ClassVar, Literal, Self, TypeVar

import numpy as np

from omkl.algorithms.base import AlgorithmSettings, Task
from omkl.arrays import Array, Matrix, Vector
from omkl.engine import gather, gather_indexed
from omkl.errors import SharedFeaturesWarning
from omkl.estimators.columns import Columns, Row, check_row, in_order, limits_of, not_a_number, problem_of
from omkl.lock import Locked, ModelLock, locked
from omkl.online import Online
from omkl.persist import Arrays, Json, demand, require_finite
from omkl.scaling import STATISTICS, InputScaler, RunningStatistics, with_block

Scale = Literal["online", "none"]
S = TypeVar("S", bound=RunningStatistics)


class Core(Locked, ABC):
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
        self.columns = Columns(names, limits_of(learner))
        self.inputs = InputScaler(len(names)) if scale == "online" else None
        self.online = Online(learner, self._problem(self.columns), seed)
        self._set_up()

    def _set_up(self) -> None:
        self._lock = ModelLock()
        self._raw, self._row = np.empty(self.columns.number), np.empty(self.columns.number)

    @property
    def names(self) -> tuple[Hashable, ...]:
        """The features known so far."""
        return self.columns.names

    def _problem(self, columns: Columns) -> Any:
        return problem_of(self.learner, self.settings, columns, self.seed)

    def fresh_copy(self, rng: np.random.Generator) -> Self:
        """A core that has learned nothing, shares this one's problem and draws from `rng`."""
        other = copy.copy(self)
        other.online = self.online.fresh_copy(rng)
        other.inputs = None if self.inputs is None else InputScaler(self.columns.number)
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

    def row(self, x: Row, learn: bool) -> Vector:
        """The values of a dictionary of features, in the order of `names`, scaled. With `learn` new ones become known.

        A missing feature counts as its running mean, or as 0 where inputs are not scaled.
        """
        names = self.columns.names
        if self.columns.room:
            return self._row_of_many(x, learn)
        if self.inputs is None:
            found, row = gather(x, names, self.missing, self._raw), self._raw
        else:
            found, row = self.inputs.transform_dict(x, names, self._raw, self._row), self._row
        if found < 0:
            raise not_a_number(x, names[-1 - found])
        if learn and found < len(x):
            check_row(x)
            self.add_features(x, late=True)
            return self.row(x, learn)
        return row

    def _row_of_many(self, x: Row, learn: bool) -> Vector:
        """The same where features are looked up by name, since a row has few of them."""
        found = gather_indexed(x, self.columns.index, self.missing, self._raw)
        if found < 0:
            raise not_a_number(x, list(x)[-1 - found])
        if found < len(x) and (learn or self.columns.full):
            values = check_row(x)
            if learn:
                self.add_features(x, late=True)
            self._raw.fill(self.missing)
            self.columns.fill(self._raw, x, values.tolist())
        if self.inputs is None:
            return self._raw
        self.inputs.transform_row(self._raw, self._row)
        return self._row

    @locked
    def add_features(self, names: Iterable[Hashable], late: bool = False) -> None:
        """Make features known: a problem with a column for each of them, the state grown to fit.

        With `late`, as features of a row, they are given columns made ahead once there are many. An error, such as too
        little memory, leaves everything as it was.
        """
        names = set(names)
        if not (new := in_order({name for name in names if self.columns.place(name) is None})):
            return
        if late or self.columns.room:
            online = self.online
            rows = None if self.columns.room else online.algorithm.first_rows(online.problem, online.state)
            columns = self.columns.with_late(new) if rows is None else self.columns.with_often(new, names, rows[0])
            if columns.sharing > self.columns.sharing:
                warnings.warn(SharedFeaturesWarning.of(columns.limits.own, columns.limits.shared), stacklevel=5)
            if columns.number == self.columns.number:
                self.columns = columns
            elif rows is None:
                self._grow(columns)
            else:
                self._learn_again(columns, *rows)
        else:
            self._grow(self.columns.with_names(new))

    def _grow(self, columns: Columns) -> None:
        """Continue with these columns, which begin with those that there are."""
        widened = None if columns.named > self.columns.named else self.online.algorithm.widened
        problem = self._problem(columns) if widened is None else widened(self.online.problem, columns.room)
        grown = [online.copy() for online in self.learners]
        for online in grown:
            online.change_problem(problem)
        inputs = None if self.inputs is None else self.inputs.extended(columns.number - self.columns.number)
        raw, row = np.empty(columns.number), np.empty(columns.number)
        for online, longer in zip(self.learners, grown, strict=True):
            online.become(longer)
        self.columns, self.inputs, self._raw, self._row = columns, inputs, raw, row

    def _learn_again(self, columns: Columns, X: Matrix, y: Vector, weight: Vector) -> None:
        """Continue as if there had been these columns from the start: all rows so far are learned again."""
        again = Online(self.learner, self._problem(columns), self.seed)
        wider = np.full((len(X), columns.number), self.missing)
        columns.fill(wider.T, self.names, X.T)
        again.run_unchecked(wider, y, weight)
        if again.t < self.online.t:  # rows of weight 0 are not stored
            end = again.checkpoint()
            again.restore(end._replace(state=end.state._replace(t=self.online.t)))
        raw, row = np.empty((2, columns.number))
        self.online.become(again)
        self.columns, self._raw, self._row = columns, raw, row

    def scaled(self, X: Matrix) -> Matrix:
        return X if self.inputs is None else self.inputs.transform(X)

    # Model files

    @abstractmethod
    def encode_own(self, arrays: Arrays) -> dict[str, Json]:
        """What this kind of core has beyond its inputs and learners."""

    @abstractmethod
    def decode_own(self, body: Json, arrays: Arrays, learners: list[Online]) -> None:
        """Take over what `encode_own` wrote, and the learners."""


class NumberCore(Core):
    """A core for regression: what estimators, fleets and streams may ask of it."""

    task = "regression"

    @abstractmethod
    def predict(self, X: Matrix) -> Vector:
        """(rows,)"""

    @abstractmethod
    def predict_row(self, x: Row) -> float: ...

    @abstractmethod
    def learn_rows(self, X: Matrix, y: Vector, weight: Vector | None = None) -> Vector:
        """Learn rows in their order; returns the prediction of each, made before it was learned."""

    @abstractmethod
    def learn_row(self, x: Row, y: float, weight: float) -> None:
        """Learn one row."""

    def predict_std(self, X: Matrix) -> Matrix:
        """(rows, 2): mean, and half width of the interval that holds 68 % of the targets."""
        raise self._no_intervals()

    def predict_std_row(self, x: Row) -> tuple[float, float]:
        """The same for one row."""
        raise self._no_intervals()

    def predict_interval(self, X: Matrix, coverage: float) -> Matrix:
        """(rows, 2): lower and upper end."""
        raise self._no_intervals()

    def learn_rows_interval(self, X: Matrix, y: Vector, coverage: float) -> Matrix:
        """(rows, 3): prediction, lower and upper end of each row, before it was learned."""
        raise self._no_intervals()

    def _no_intervals(self) -> NotImplementedError:
        return NotImplementedError(f"{self.learner} has no prediction intervals; use graph-mkl")


class LabelCore(Core):
    """A core for classification. Scores are what the learners say; the largest is the prediction."""

    task = "classification"
    unknown: ClassVar[float]  # score of a label that has not come yet

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
    def probabilities_row(self, x: Row) -> list[float]: ...

    @abstractmethod
    def learn_rows(self, X: Matrix, y: Sequence[Hashable], weight: Vector | None = None) -> Matrix:
        """Learn rows in their order; returns the scores of each, made before it was learned."""

    @abstractmethod
    def learn_row(self, x: Row, y: Hashable, weight: float) -> None:
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
