"""What all estimators of the river door share: dictionaries of features in, one row at a time or a frame of them.

Features may appear, vanish or be shuffled; a feature that is missing counts as its mean so far.
A label that comes late is learned by key: `predict_one(x, key=k)`, and when it is there
`learn_key(k, y)`.
"""

import math
import warnings
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from river import base

from omkl.arrays import Matrix, Vector
from omkl.estimators.core import Core, LabelCore, TargetCore, check_row, in_order, make_seed
from omkl.estimators.parameters import Parameters
from omkl.settings import is_whole, require

Row = dict[Hashable, Any]


@dataclass(kw_only=True, eq=False, repr=False)
class Door(Parameters):
    """Validation, randomness, labels that come late, and frames."""

    max_waiting: int = 1000
    seed: int | None = None

    def __post_init__(self) -> None:
        require(is_whole(self.max_waiting) and self.max_waiting >= 1, "max_waiting", "a whole number of at least 1",
                self.max_waiting)  # fmt: skip
        self._settings()
        self._core: Any = None
        self._waiting: dict[Hashable, Row] = {}

    def _new(self, kind: type[Core], names: Sequence[Hashable]) -> Any:
        # without any feature there is still a constant to learn
        return kind(self._learner, self._settings(), make_seed(self.seed), in_order(set(names)) or [""], self.scale)

    # Labels that come late

    def _keep_waiting(self, key: Hashable, x: Row) -> None:
        if key not in self._waiting and len(self._waiting) >= self.max_waiting:
            oldest = next(iter(self._waiting))
            del self._waiting[oldest]
            warnings.warn(
                f"{self.max_waiting} rows wait for their label, as many as max_waiting allows; "
                f"the oldest, {oldest!r}, is given up",
                stacklevel=3,
            )
        self._waiting[key] = dict(x)

    def learn_key(self, key: Hashable, y: Any) -> None:
        """Learn the row that `predict_one` was asked about under this key, now that its label is known."""
        if key not in self._waiting:
            raise KeyError(
                f"no row waits under the key {key!r}: it was never predicted with key=, is learned already, "
                f"or was given up because more than max_waiting={self.max_waiting} rows waited"
            )
        self.learn_one(self._waiting[key], y)
        del self._waiting[key]

    def learn_one(self, x: Row, y: Any, w: float = 1.0) -> None:
        raise NotImplementedError

    # Frames

    def _matrix(self, frame: nw.DataFrame[Any]) -> Matrix:
        """The frame's columns in the order of the core's names; NaN, or 0 without scaling, where one is missing."""
        names = self._core.names
        X = np.full((len(frame), len(names)), self._core.missing)
        for k, name in enumerate(names):
            if name in frame.columns:
                X[:, k] = checked_column(frame, name)
        return X

    def _met(self, kind: type[Core], frame: nw.DataFrame[Any]) -> Matrix:
        """The frame as a matrix, its columns known from here on; refused before any of them is."""
        for name in frame.columns:
            checked_column(frame, name)
        if self._core is None:
            self._core = self._new(kind, frame.columns)
        else:
            self._core.meet(frame.columns)
        return self._matrix(frame)


def as_frame(X: Any) -> nw.DataFrame[Any]:
    return nw.from_native(X, eager_only=True)


def checked_column(frame: nw.DataFrame[Any], name: str) -> Vector:
    try:
        column: Vector = frame[name].to_numpy().astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"column {name!r} must be numeric, got {frame[name].dtype}; encode it first") from None
    if not np.isfinite(column).all():
        row = int(np.argmin(np.isfinite(column)))
        raise ValueError(
            f"column {name!r} must be finite, got {column[row]} in row {row}; impute or drop it "
            "(no row of this frame was learned)"
        )
    return column


def as_series(name: str, values: Any, like: nw.DataFrame[Any]) -> Any:
    """A series of the kind that `like` is made of, with its index where it has one."""
    series = nw.new_series(name, values, backend=nw.get_native_namespace(like))
    index = nw.maybe_get_index(like)
    return (series if index is None else nw.maybe_set_index(series, index=index)).to_native()


def checked_weight(w: float) -> float:
    if not 0 <= w < math.inf:
        raise ValueError(f"w must be a finite number of at least 0, got {w!r}")
    return w


class Regressing(Door, base.MiniBatchRegressor):
    """A number as target."""

    _loss = "squared"

    def predict_one(self, x: Row, key: Hashable = None) -> float:
        """The prediction for x; with a key the row is kept until `learn_key`."""
        if key is not None:
            self._keep_waiting(key, x)
        core: TargetCore | None = self._core
        return 0.0 if core is None else core.predict_row(x)

    def learn_one(self, x: Row, y: float, w: float = 1.0) -> None:
        """Learn one row; it counts w times."""
        y, w = checked_target(y), checked_weight(w)
        if self._core is None:
            check_row(x)
            self._core = self._new(TargetCore, list(x))
        self._core.learn_row(x, y, w)

    def predict_many(self, X: Any) -> Any:
        """Predictions for the rows of a frame, as a series of its kind."""
        frame = as_frame(X)
        f = np.zeros(len(frame)) if self._core is None else self._core.predict(self._matrix(frame))
        return as_series("prediction", f, frame)

    def learn_many(self, X: Any, y: Any) -> None:
        """Learn the rows of a frame in their order: the same as `learn_one` on each of them."""
        self._run(as_frame(X), y)

    def predict_then_learn(self, X: Any, y: Any) -> Vector:
        """The prediction of each row of a frame, made before that row is learned."""
        return self._run(as_frame(X), y)

    def _run(self, frame: nw.DataFrame[Any], y: Any) -> Vector:
        targets = np.ascontiguousarray(np.asarray(y), dtype=np.float64)
        require(targets.shape == (len(frame),), "y", f"one number for each of the {len(frame)} rows", targets.shape)
        if not np.isfinite(targets).all():
            row = int(np.argmin(np.isfinite(targets)))
            raise ValueError(f"y must be finite, got {targets[row]} in row {row} (no row was learned)")
        X = self._met(TargetCore, frame)
        predictions: Vector = self._core.run(X, targets)
        return predictions


def checked_target(y: Any) -> float:
    try:
        number = float(y)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"y must be a finite number, got {y!r}; drop the row")
    return number


class Classifying(Door, base.MiniBatchClassifier):
    """A label as target; new labels may come at any time."""

    _loss = "logistic"

    @property
    def _multiclass(self) -> bool:
        return True

    def predict_proba_one(self, x: Row, key: Hashable = None, **kwargs: Any) -> dict[Any, float]:
        """Chances of all labels seen so far; with a key the row is kept until `learn_key`."""
        if key is not None:
            self._keep_waiting(key, x)
        core = self._core
        return {} if core is None else dict(zip(core.labels, core.chances_row(x), strict=True))

    def predict_one(self, x: Row, key: Hashable = None, **kwargs: Any) -> Any:
        """The likeliest label, None before there is any; with a key the row is kept until `learn_key`."""
        if key is not None:
            self._keep_waiting(key, x)
        core = self._core
        if core is None or not core.labels:
            return None
        p = core.chances_row(x)
        return core.labels[max(range(len(p)), key=p.__getitem__)]

    def learn_one(self, x: Row, y: Any, w: float = 1.0) -> None:
        """Learn one row; it counts w times. A label that was never seen becomes known."""
        w = checked_weight(w)
        if self._core is None:
            check_row(x)
            self._core = self._new(LabelCore, list(x))
        self._core.learn_row(x, y.item() if isinstance(y, np.generic) else y, w)

    def predict_proba_many(self, X: Any) -> Any:
        """Chances of all labels seen so far for the rows of a frame, a column for each label."""
        frame = as_frame(X)
        core = self._core
        p = np.empty((len(frame), 0)) if core is None else core.chances(self._matrix(frame))
        labels = [] if core is None else core.labels
        columns = {label: as_series(str(label), p[:, k], frame) for k, label in enumerate(labels)}
        native = nw.get_native_namespace(frame)
        return native.DataFrame(columns) if columns else native.DataFrame()

    def predict_many(self, X: Any) -> Any:
        """The likeliest label of each row of a frame, as a series of its kind."""
        frame = as_frame(X)
        core = self._core
        if core is None or not core.labels:
            return as_series("prediction", [None] * len(frame), frame)
        best = np.argmax(core.chances(self._matrix(frame)), axis=1)
        return as_series("prediction", [core.labels[k] for k in best], frame)

    def learn_many(self, X: Any, y: Any) -> None:
        """Learn the rows of a frame in their order: the same as `learn_one` on each of them."""
        self._run(as_frame(X), y)

    def predict_then_learn(self, X: Any, y: Any) -> list[Any]:
        """The label predicted for each row of a frame before that row is learned, None before there is any."""
        chances = self._run(as_frame(X), y)
        return [self._core.labels[int(np.argmax(p))] if p.any() else None for p in chances]

    def _run(self, frame: nw.DataFrame[Any], y: Any) -> Matrix:
        labels = y.tolist() if hasattr(y, "tolist") else list(y)
        require(len(labels) == len(frame), "y", f"one label for each of the {len(frame)} rows", len(labels))
        X = self._met(LabelCore, frame)
        chances: Matrix = self._core.run_chances(X, labels)
        return chances
