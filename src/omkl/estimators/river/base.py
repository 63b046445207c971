"""Base classes of the river estimators: dictionaries of features in, one row at a time or a frame of them.

Features may appear, disappear or come in another order; a missing feature counts as its running mean. A label that
comes late is learned by key: `predict_one(x, key=k)`, and `learn_key(k, y)` once it is known.

What has been learned is protected by the core's lock; the estimator's own lock, which is taken first where both are
needed, protects the rows that wait for their label and the making of the core.
"""

import warnings
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeVar, overload

import narwhals as nw
import numpy as np
from narwhals.typing import IntoDataFrame, IntoSeries
from numpy.typing import ArrayLike
from river import base, proba

from omkl import validation
from omkl.algorithms.base import AlgorithmSettings, Task
from omkl.arrays import Matrix, Vector
from omkl.estimators.columns import Row, check_row, in_order
from omkl.estimators.core import Core, LabelCore, NumberCore, Scale, make_seed
from omkl.estimators.cores import Scaling, new_label_core, new_number_core, settings_of
from omkl.estimators.documentation import with_parameters
from omkl.lock import Locked, ModelLock, locked
from omkl.validation import require, require_whole

C = TypeVar("C", bound=Core)
Y = TypeVar("Y")  # a number, or a label
Frame = nw.DataFrame[IntoDataFrame]


@dataclass(kw_only=True, eq=False, repr=False)
class Estimator(Locked, Generic[C, Y]):
    """Randomness, delayed labels and frames.

    max_waiting : int, default=1000
        The largest number of rows stored for labels that come late.
    seed : int or None, default=None
        Decides random features and random choices.
    """

    task: ClassVar[Task]

    max_waiting: int = 1000
    seed: int | None = None

    def __init_subclass__(cls, parameters: type | None = None, **options: Any) -> None:
        """`parameters` is the class, of an algorithm's module, that declares what a user may choose."""
        super().__init_subclass__(**options)
        if parameters is not None:
            scaling = [Scaling] if issubclass(cls, Scaling) else []
            cls.__doc__ = with_parameters(cls.__doc__, parameters, *scaling, Estimator)

    def __post_init__(self) -> None:
        require_whole("max_waiting", self.max_waiting)
        settings_of(self, self.task)  # refuses bad parameters
        self._lock = ModelLock()
        self._core: C | None = None  # until the first row
        self._waiting: dict[Hashable, Row] = {}

    if TYPE_CHECKING:

        @property
        def algorithm_name(self) -> str: ...

        def _get_params(self) -> dict[str, object]: ...  # of river's base classes

    def _new_core(self, settings: AlgorithmSettings, seed: int, names: Sequence[Hashable], scale: Scale) -> C:
        raise NotImplementedError

    @locked
    def _start(self, names: Iterable[Hashable]) -> C:
        """The core; if this is the first row, one that knows these features."""
        if self._core is None:
            # without any feature there is still a constant to learn
            features = in_order(set(names)) or [""]
            scale = self.scale if isinstance(self, Scaling) else "none"
            self._core = self._new_core(settings_of(self, self.task), make_seed(self.seed), features, scale)
        return self._core

    # Delayed labels

    @locked
    def _store(self, key: Hashable, x: Row) -> None:
        row = dict(zip(x, check_row(x).tolist(), strict=True))
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

    def learn_one(self, x: Row, y: Y, w: float = 1.0) -> None:
        raise NotImplementedError

    # Frames

    def _core_for(self, frame: Frame) -> C:
        """The core that learns this frame, whose columns can be learned; those that are new are not known to it yet."""
        for name in frame.columns:
            validation.finite_column(frame[name], name)
        return self._start(frame.columns)


def matrix(frame: Frame, core: Core) -> Matrix:
    """The frame's columns in the order of the core's names; NaN, or 0 without scaling, where one is missing."""
    X = np.full((len(frame), core.columns.number), core.missing)
    core.columns.fill(X.T, frame.columns, (validation.finite_column(frame[name], name) for name in frame.columns))
    return X


def as_frame(X: IntoDataFrame) -> Frame:
    return nw.from_native(X, eager_only=True)


def as_series(name: str, values: Vector | Sequence[Hashable], like: Frame) -> IntoSeries:
    """A series of the kind that `like` is made of, with its index where it has one."""
    series = nw.new_series(name, values, backend=nw.get_native_namespace(like))
    index = nw.maybe_get_index(like)
    made: IntoSeries = (series if index is None else nw.maybe_set_index(series, index=index)).to_native()
    return made


class Regressor(Estimator[NumberCore, float], base.MiniBatchRegressor):
    """A number as target."""

    task = "regression"

    def _new_core(self, settings: AlgorithmSettings, seed: int, names: Sequence[Hashable], scale: Scale) -> NumberCore:
        return new_number_core(self.algorithm_name, settings, seed, names, scale)

    def predict_one(self, x: Row, key: Hashable = None) -> float:
        """The prediction for x; with a key the row is stored until `learn_key`."""
        if key is not None:
            self._store(key, x)
        core = self._core
        return 0.0 if core is None else float(core.predict_row(x))

    def learn_one(self, x: Row, y: float, w: float = 1.0) -> None:
        """Learn one row; it counts w times."""
        y = validation.finite_number(y, "y")
        validation.one_weight(w, "w")
        core = self._core
        if core is None:
            check_row(x)
            core = self._start(x)
        core.learn_row(x, y, w)

    def predict_many(self, X: IntoDataFrame) -> IntoSeries:
        """Predictions for the rows of a frame, as a series of its kind."""
        frame = as_frame(X)
        core = self._core
        if core is None:
            return as_series("prediction", np.zeros(len(frame)), frame)
        with core.lock:
            return as_series("prediction", core.predict(matrix(frame, core)), frame)

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
        core = self._core_for(frame)
        with core.lock:
            core.add_features(frame.columns, late=True)
            return core.learn_rows(matrix(frame, core), targets)


class Classifier(Estimator[LabelCore, Hashable], base.MiniBatchClassifier):
    """A label as target; new labels may come at any time."""

    task = "classification"

    def _new_core(self, settings: AlgorithmSettings, seed: int, names: Sequence[Hashable], scale: Scale) -> LabelCore:
        return new_label_core(self.algorithm_name, settings, seed, names, scale)

    @property
    def _multiclass(self) -> bool:
        return True

    def predict_proba_one(self, x: Row, key: Hashable = None, **kwargs: object) -> dict[Any, float]:
        """Probabilities of all labels seen so far; with a key the row is stored until `learn_key`."""
        if key is not None:
            self._store(key, x)
        core = self._core
        if core is None:
            return {}
        with core.lock:
            return dict(zip(core.labels, core.probabilities_row(x), strict=True))

    def predict_one(self, x: Row, key: Hashable = None, **kwargs: object) -> Any:
        """The most likely label, None before there is any; with a key the row is stored until `learn_key`."""
        if key is not None:
            self._store(key, x)
        core = self._core
        if core is None or not core.labels:
            return None
        with core.lock:
            p = core.probabilities_row(x)
            return core.labels[max(range(len(p)), key=p.__getitem__)]

    def learn_one(self, x: Row, y: Hashable, w: float = 1.0) -> None:
        """Learn one row; it counts w times. A label that was never seen becomes known."""
        label = validation.label(y)
        validation.one_weight(w, "w")
        core = self._core
        if core is None:
            check_row(x)
            core = self._start(x)
        core.learn_row(x, label, w)

    def predict_proba_many(self, X: IntoDataFrame) -> IntoDataFrame:
        """Probabilities of all labels seen so far for the rows of a frame, a column for each label."""
        frame = as_frame(X)
        core = self._core
        p, labels = np.empty((len(frame), 0)), list[Hashable]()
        if core is not None:
            with core.lock:
                p, labels = core.probabilities(matrix(frame, core)), core.labels
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
            best = np.argmax(core.probabilities(matrix(frame, core)), axis=1)
            return as_series("prediction", [core.labels[k] for k in best], frame)

    def learn_many(self, X: IntoDataFrame, y: Iterable[Hashable]) -> None:
        """Learn the rows of a frame in their order: the same as `learn_one` on each of them."""
        self._learn_frame(as_frame(X), y)

    def predict_then_learn(self, X: IntoDataFrame, y: Iterable[Hashable]) -> list[Hashable]:
        """The label predicted for each row of a frame before that row is learned, None before there is any."""
        probabilities, labels = self._learn_frame(as_frame(X), y)
        return [labels[int(np.argmax(p))] if p.any() else None for p in probabilities]

    def _learn_frame(self, frame: Frame, y: Iterable[Hashable]) -> tuple[Matrix, list[Hashable]]:
        """Probabilities of each row before it was learned, and the labels that they are of."""
        given = y.tolist() if hasattr(y, "tolist") else list(y)
        require(len(given) == len(frame), "y", f"one label for each of the {len(frame)} rows", len(given))
        labels = [validation.label(each, f" in row {row} (no row was learned)") for row, each in enumerate(given)]
        core = self._core_for(frame)
        with core.lock:
            core.add_features(frame.columns, late=True)
            return core.learn_rows_probabilities(matrix(frame, core), labels), core.labels


class DistributionRegressor(Regressor):
    """A regressor whose predictions can be distributions."""

    @overload
    def predict_one(self, x: Row, key: Hashable = None, with_dist: Literal[False] = False) -> float: ...

    @overload
    def predict_one(self, x: Row, key: Hashable = None, *, with_dist: Literal[True]) -> proba.Gaussian: ...

    def predict_one(self, x: Row, key: Hashable = None, with_dist: bool = False) -> float | proba.Gaussian:
        """The prediction for x; `with_dist` as a Gaussian whose standard deviation holds 68 % to either side."""
        if not with_dist:
            return super().predict_one(x, key)
        if key is not None:
            self._store(key, x)
        core = self._core
        mean, deviation = (0.0, 0.0) if core is None else core.predict_std_row(x)
        gaussian: proba.Gaussian = proba.Gaussian._from_state(2, mean, deviation**2, 0)  # type: ignore[no-untyped-call]  # river's
        return gaussian
