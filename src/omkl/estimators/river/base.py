"""Base classes of the river estimators: dictionaries of features in, one row at a time or a frame of them.

Features may appear, disappear or come in another order; a missing feature counts as its running mean. Text, timestamps
and None are accepted too, as the command line accepts them. A label that comes late is learned by key:
`predict_one(x, key=k)`, and `learn_key(k, y)` once it is known.

What has been learned is protected by the core's lock; the estimator's own lock, which is taken first where both are
needed, protects the rows that wait for their label and the making of the core.
"""

import warnings
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar, cast

import narwhals as nw
import numpy as np
from narwhals.typing import IntoDataFrame, IntoSeries
from numpy.typing import ArrayLike
from river import base

from omkl import validation
from omkl.algorithms.base import AlgorithmSettings, EstimatorParameters, Task
from omkl.arrays import Matrix, Vector
from omkl.estimators.classification import stacked
from omkl.estimators.core import Core, LabelCore, NumberCore, Scale, make_seed
from omkl.estimators.cores import ClassWeighting, Scaling, new_label_core, new_number_core, settings_of
from omkl.estimators.documentation import with_parameters
from omkl.estimators.label_order import warn_if_sorted
from omkl.estimators.river.frames import ExplainingFrames, Frame, as_frame, as_list, as_series, features, numbers
from omkl.estimators.rows import Cells, NotANumber, check_row, checked_cells, encoder_after, in_order
from omkl.estimators.tables import Calls, TableRows, first_names, learn_table, learnable
from omkl.estimators.tally import Stats, tally_of
from omkl.lock import Locked, ModelLock, locked
from omkl.names import clash
from omkl.validation import require, require_whole

C = TypeVar("C", bound=Core)
Y = TypeVar("Y")  # a number, or a label
R = TypeVar("R")


@dataclass(kw_only=True, eq=False, repr=False)
class Estimator(Locked, ExplainingFrames, Generic[C, Y]):
    """Randomness, delayed labels and frames.

    max_waiting : int, default=1000
        The largest number of rows stored for labels that come late.
    seed : int or None, default=None
        Decides random features and random choices.
    """

    task: ClassVar[Task]
    codes: ClassVar[int]  # numbers that describe a target, in columns of many categories

    max_waiting: int = 1000
    seed: int | None = None

    def __init_subclass__(cls, parameters: type | None = None, **options: Any) -> None:
        """`parameters` is the class, of an algorithm's module, that declares what a user may choose."""
        super().__init_subclass__(**options)
        if parameters is not None:
            others = [part for part in (Scaling, ClassWeighting) if issubclass(cls, part)]
            cls.__doc__ = with_parameters(cls.__doc__, parameters, *others, Estimator)

    def __post_init__(self) -> None:
        require_whole("max_waiting", self.max_waiting)
        settings_of(self, self.task)  # refuses bad parameters
        self._lock = ModelLock()
        self._core: C | None = None  # until the first row
        self._waiting: dict[Hashable, dict[Hashable, object]] = {}

    if TYPE_CHECKING:

        @property
        def algorithm_name(self) -> str: ...

        def _get_params(self) -> dict[str, object]: ...  # of river's base classes

    @property
    def _parameters(self) -> EstimatorParameters:
        """The estimator whose parameters are used."""
        return self

    def _new_core(self, settings: AlgorithmSettings, seed: int, names: Sequence[Hashable], scale: Scale) -> C:
        raise NotImplementedError

    @locked
    def _start(self, names: Iterable[Hashable]) -> C:
        """The core; if this is the first row, one that knows these features."""
        if self._core is None:
            # without any feature there is still a constant to learn
            features, parameters = in_order(set(names)) or [""], self._parameters
            scale = parameters.scale if isinstance(parameters, Scaling) else "none"
            self._core = self._new_core(settings_of(parameters, self.task), make_seed(self.seed), features, scale)
        return self._core

    @locked
    def _start_row(self, x: Cells) -> C | None:
        """The core for a row; None if this is the first one, and every cell of it is empty."""
        if self._core is not None:
            return self._core
        try:
            check_row(x)
            plain = not clash([str(name) for name in x])
        except NotANumber:
            plain = False
        if not plain:
            features = encoder_after((), self.codes).row(x)
            if features:  # the row is encoded again when it is learned
                self._start(features).encoder = encoder_after((), self.codes)
            return self._core
        return self._start(x)

    # the row that was predicted last, and its prediction; an annotation would make it a parameter
    _last = cast("tuple[object, object] | None", None)
    _not_copied = (*Locked._not_copied, "_last")

    def stats(self) -> Stats:
        """Rows learned, and how good the predictions were that were made before each.

        `rmse` or `accuracy` are of the `scored` rows of this process: those of `learn_many`, and those that `learn_one`
        learns just after `predict_one` has predicted the same dictionary. `changes` are rows at which experts began to
        learn that have replaced others, as seen at calls that are 250 rows apart, and by this one; `changes_` says more
        about them.
        """
        return tally_of(self).stats(self._core)

    # Delayed labels

    @locked
    def _store(self, key: Hashable, x: Cells) -> None:
        row = checked_cells(x)
        if key not in self._waiting and len(self._waiting) >= self.max_waiting:
            oldest = next(iter(self._waiting))
            del self._waiting[oldest]
            warnings.warn(
                f"{self.max_waiting} rows are waiting for their label, as many as max_waiting allows; "
                f"the oldest, {oldest!r}, is dropped",
                stacklevel=4,
            )
        self._waiting[key] = row

    @locked
    def learn_key(self, key: Hashable, y: Y) -> None:
        """Learn the row that was given to `predict_one` with this key, now that its label is known."""
        if key not in self._waiting:
            raise KeyError(
                f"no row is waiting for its label under the key {key!r}: it was never predicted with key=, has been "
                f"learned already, or was dropped because more than max_waiting={self.max_waiting} rows were waiting"
            )
        self.learn_one(self._waiting[key], y)
        del self._waiting[key]

    def learn_one(self, x: Cells, y: Y, w: float = 1.0) -> None:
        raise NotImplementedError

    # Frames

    @locked
    def _learn_rows(
        self, frame: Frame, predict: Callable[[C, Matrix], R], learn: Callable[[C, Matrix, slice], R]
    ) -> tuple[int, list[R]]:
        """How many rows came before there was any feature, and what was predicted for the others before learning."""
        core = self._core
        plain = not clash([str(name) for name in frame.columns]) if core is None else core.encoder is None
        if plain and (X := numbers(frame)) is not None:
            columns = frame.columns
            core, start = self._start(columns), 0
            new = any(core.columns.place(name) is None for name in columns)
            rows = TableRows(columns, X, {0: columns} if new else {}, None)
        else:
            from omkl.encoder import of_frame  # pyarrow takes time to load, and numbers do without

            rows = learnable(core, of_frame(frame), self.codes)
            if core is None and not rows.new:
                return len(frame), []
            start = 0 if core else rows.start
            core = core or self._start(first_names(rows))
        return start, learn_table(core, rows, Calls(partial(predict, core), partial(learn, core)), start)


class Regressor(Estimator[NumberCore, float], base.MiniBatchRegressor):
    """A number as target."""

    task = "regression"
    codes = NumberCore.codes

    def _new_core(self, settings: AlgorithmSettings, seed: int, names: Sequence[Hashable], scale: Scale) -> NumberCore:
        return new_number_core(self.algorithm_name, settings, seed, names, scale)

    def predict_one(self, x: Cells, key: Hashable = None) -> float:
        """The prediction for x; with a key the row is stored until `learn_key`."""
        if key is not None:
            self._store(key, x)
        core = self._core
        y_pred = 0.0 if core is None else float(core.predict_row(x))
        self._last = x, y_pred
        return y_pred

    def learn_one(self, x: Cells, y: float, w: float = 1.0) -> None:
        """Learn one row; it counts w times."""
        y = validation.finite_number(y, "y")
        validation.one_weight(w, "w")
        core = self._core or self._start_row(x)
        if core is not None:
            core.learn_row(x, y, w)
            self.count_row()
            if (last := self._last) is not None and last[0] is x and isinstance(last[1], float):
                tally_of(self).number(last[1], y)

    def predict_many(self, X: IntoDataFrame) -> IntoSeries:
        """Predictions for the rows of a frame, as a series of its kind."""
        frame = as_frame(X)
        core = self._core
        if core is None:
            return as_series("prediction", np.zeros(len(frame)), frame)
        with core.lock:
            return as_series("prediction", core.predict(features(frame, core)), frame)

    def learn_many(self, X: IntoDataFrame, y: ArrayLike) -> None:
        """Learn the rows of a frame in their order: the same as `learn_one` on each of them."""
        self._learn_frame(as_frame(X), y)

    def predict_then_learn(self, X: IntoDataFrame, y: ArrayLike) -> Vector:
        """The prediction of each row of a frame, made before that row is learned."""
        return self._learn_frame(as_frame(X), y)

    def _learn_frame(self, frame: Frame, y: ArrayLike) -> Vector:
        targets = np.ascontiguousarray(np.asarray(y), dtype=np.float64)
        require(targets.shape == (len(frame),), "y", f"one number for each of the {len(frame)} rows", targets.shape)
        if not np.isfinite(targets).all():
            row = int(np.argmin(np.isfinite(targets)))
            raise ValueError(f"y must be finite, got {targets[row]} in row {row} (no row was learned)")
        start, parts = self._learn_rows(
            frame, lambda core, X: core.predict(X), lambda core, X, at: core.learn_rows(X, targets[at])
        )
        y_pred = np.concatenate((np.zeros(start), *parts))
        tally_of(self).numbers(y_pred, targets)
        tally_of(self).follow(self._core)
        return y_pred


class Classifier(Estimator[LabelCore, Hashable], ClassWeighting, base.MiniBatchClassifier):
    """A label as target; new labels may come at any time."""

    task = "classification"
    codes = LabelCore.codes

    def _new_core(self, settings: AlgorithmSettings, seed: int, names: Sequence[Hashable], scale: Scale) -> LabelCore:
        return new_label_core(self.algorithm_name, settings, seed, names, scale, None, self.class_weight)

    @property
    def _multiclass(self) -> bool:
        return True

    @property
    def _mutable_attributes(self) -> set[str]:  # river's `mutate` changes these; later rows have the new weights
        return {"class_weight"}

    def predict_proba_one(self, x: Cells, key: Hashable = None, **kwargs: object) -> dict[Any, float]:
        """Probabilities of all labels seen so far; with a key the row is stored until `learn_key`."""
        validation.refuse_options(kwargs, "a classifier; its only one is key")
        if key is not None:
            self._store(key, x)
        core = self._core
        if core is None:
            return {}
        with core.lock:
            return dict(zip(core.labels, core.probabilities_row(x), strict=True))

    def predict_one(self, x: Cells, key: Hashable = None, **kwargs: object) -> Any:
        """The most likely label, None before there is any; with a key the row is stored until `learn_key`."""
        validation.refuse_options(kwargs, "a classifier; its only one is key")
        if key is not None:
            self._store(key, x)
        core = self._core
        label = None
        if core is not None and core.labels:
            with core.lock:
                p = core.probabilities_row(x)
                label = core.labels[max(range(len(p)), key=p.__getitem__)]
        self._last = x, label
        return label

    def learn_one(self, x: Cells, y: Hashable, w: float = 1.0) -> None:
        """Learn one row; it counts w times. A label that was never seen becomes known."""
        label = validation.label(y)
        validation.one_weight(w, "w")
        core = self._core or self._start_row(x)
        if core is not None:
            core.use_class_weight(self.class_weight)
            core.learn_row(x, label, w)
            self.count_row()
            core.follow_order(label, stacklevel=3)
            if (last := self._last) is not None and last[0] is x:
                tally_of(self).label(last[1], label)

    def predict_proba_many(self, X: IntoDataFrame) -> IntoDataFrame:
        """Probabilities of all labels seen so far for the rows of a frame, a column for each label."""
        frame = as_frame(X)
        core = self._core
        p, labels = np.empty((len(frame), 0)), list[Hashable]()
        if core is not None:
            with core.lock:
                p, labels = core.probabilities(features(frame, core)), core.labels
        columns = {label: as_series(str(label), p[:, k], frame) for k, label in enumerate(labels)}
        native = nw.get_native_namespace(frame)
        made: IntoDataFrame = native.DataFrame(columns) if columns else native.DataFrame()
        return made

    def predict_many(self, X: IntoDataFrame) -> IntoSeries:
        """The most likely label of each row of a frame, as a series of its kind."""
        frame = as_frame(X)
        core = self._core
        if core is None or not core.labels:
            return as_series("prediction", [None] * len(frame), frame)
        with core.lock:
            best = np.argmax(core.probabilities(features(frame, core)), axis=1)
            return as_series("prediction", [core.labels[k] for k in best], frame)

    def learn_many(self, X: IntoDataFrame, y: Iterable[Hashable]) -> None:
        """Learn the rows of a frame in their order: the same as `learn_one` on each of them."""
        labels = as_list(y)
        self._learn_frame(as_frame(X), labels)
        warn_if_sorted(labels, stacklevel=4)

    def predict_then_learn(self, X: IntoDataFrame, y: Iterable[Hashable]) -> list[Hashable]:
        """The label predicted for each row of a frame before that row is learned, None before there is any."""
        probabilities, labels = self._learn_frame(as_frame(X), as_list(y))
        return [labels[int(np.argmax(p))] if p.any() else None for p in probabilities]

    def _learn_frame(self, frame: Frame, given: list[Hashable]) -> tuple[Matrix, list[Hashable]]:
        """Probabilities of each row before it was learned, and the labels that they are of."""
        require(len(given) == len(frame), "y", f"one label for each of the {len(frame)} rows", len(given))
        labels = [validation.label(each, f" in row {row} (no row was learned)") for row, each in enumerate(given)]
        if self._core is not None:
            self._core.use_class_weight(self.class_weight)
        start, parts = self._learn_rows(
            frame,
            lambda core, X: core.probabilities(X),
            lambda core, X, at: core.learn_rows_probabilities(X, labels[at]),
        )
        known = [] if self._core is None else self._core.labels
        found = stacked([np.zeros((start, 0)), *parts], len(known), 0.0)
        tally_of(self).labels([known[int(np.argmax(p))] if p.any() else None for p in found], labels)
        tally_of(self).follow(self._core)
        return found, known
