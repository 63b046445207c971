"""Models of the command line in Python that no estimator stands for: a model per key, and models with lags."""

import copy
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa

from omkl.algorithms.base import Task
from omkl.arrays import Array, Matrix, Tensor
from omkl.encoder import Batch, of_frame, of_row
from omkl.encoder.table import of_cells
from omkl.estimators.cores import core_class
from omkl.explain import Change, Effect, Expert, Explanation
from omkl.lock import Locked, ModelLock, locked
from omkl.stream import explaining
from omkl.stream.keyed import ModelPerKey
from omkl.stream.model import StreamModel
from omkl.stream.names import listed
from omkl.stream.predictions import Predictions
from omkl.stream.targets import labels
from omkl.validation import require

if TYPE_CHECKING:
    from narwhals.typing import IntoDataFrame


class TableModel(Locked):
    """What `omkl.load` returns for a model of `omkl run --by` or `--lags`: predicts and learns rows of tables.

    Rows are frames of pandas, polars or Arrow, or dictionaries, with the columns that the file had, with `--by` also
    that of the key. Predictions are those of `omkl predict`, and `omkl.save` writes a model of the command line.

    Parameters
    ----------
    model
        The model of the command line.
    """

    def __init__(self, model: StreamModel) -> None:
        self.model = model
        self._lock = ModelLock()

    # Attributes

    @property
    def target_name_(self) -> str:
        """The column that is predicted."""
        return self.model.target

    @property
    def key_name_(self) -> str | None:
        """The column of the key; None for a model that is not one per key."""
        return self.model.preparer.by

    @property
    def keys_(self) -> list[Hashable]:
        """The keys that have a model."""
        learner = self.model.learner
        return list(learner.fleet or ()) if isinstance(learner, ModelPerKey) else []

    @property
    def classes_(self) -> Array:
        """The labels; there are none where the target is a number."""
        if self._task != "classification" or self.model.learner is None:
            raise AttributeError(f"{self.target_name_!r} holds numbers, which have no classes_")
        return np.array(self.model.learner.labels)

    @property
    def n_samples_seen_(self) -> int:
        """Rows learned."""
        return self.model.learned

    def __repr__(self) -> str:
        by = "" if self.key_name_ is None else f", key={self.key_name_!r}, {len(self.keys_)} keys"
        return f"TableModel(target={self.target_name_!r}, learner={self.model.algorithm!r}{by})"

    # Predicting

    @locked
    def predict(self, X: "IntoDataFrame") -> Array:
        """A prediction for each row; with lags, of the rows that come next. Nothing is learned."""
        return self._predictions(of_frame(X), (0.9,)).y_pred

    @locked
    def predict_one(self, x: Mapping[Hashable, object]) -> Any:
        """The prediction for one row."""
        y_pred = self._predictions(of_row(x), (0.9,)).y_pred[0]
        return float(y_pred) if self._task == "regression" else y_pred

    @locked
    def predict_interval(self, X: "IntoDataFrame", coverage: float | Sequence[float] = 0.9) -> Matrix | Tensor:
        """(rows, 2): intervals that hold `coverage` of the targets; (rows, 2, coverages) for a list of coverages.

        A key that has no model has an interval without ends.
        """
        several = isinstance(coverage, Sequence | np.ndarray)
        coverages = tuple(coverage) if isinstance(coverage, Sequence | np.ndarray) else (coverage,)
        batch = of_frame(X)
        if isinstance(self.model.learner, ModelPerKey):
            ends = self._intervals_by_key(self.model.learner, batch, coverages)
        else:
            self.model.check_intervals()
            found = self._predictions(batch, coverages)
            assert found.lower is not None
            assert found.upper is not None
            ends = np.stack((found.lower, found.upper), axis=1)
        return ends if several else ends[:, :, 0]

    def _predictions(self, batch: Batch, coverages: tuple[float, ...]) -> Predictions:
        model = self.model.following()
        kept, model.coverages = model.coverages, coverages
        try:
            return model.predict(self._checked(batch, learn=False))
        finally:
            model.coverages = kept

    def _intervals_by_key(self, learner: ModelPerKey, batch: Batch, coverages: tuple[float, ...]) -> Tensor:
        model = self.model
        what = "labels" if self._task == "classification" else None
        what = "lags" if model.preparer.lagged is not None else "a pool" if learner.pooled else what
        if what is None and not core_class(model.algorithm, "regression").intervals:
            what = f"the learner {model.algorithm}"
        if what is not None:
            raise NotImplementedError(f"models per key with {what} have no prediction intervals")
        rows, _, keys, _, _, encoded = model.preparer.prepare_unlearned(self._checked(batch, learn=False))
        X = np.column_stack([np.empty((len(rows), 0)), *(encoded.features[name] for name in learner.names)])
        out: Tensor = np.tile(np.array([-np.inf, np.inf])[None, :, None], (len(rows), 1, len(coverages)))
        given = np.array(keys, dtype=object)
        for key in dict.fromkeys(keys or ()):
            if learner.fleet is not None and key in learner.fleet:
                model_of_key = learner.fleet[key]  # type: ignore[index]  # it is not pooled
                out[given == key] = model_of_key.predict_interval(X[given == key], list(coverages))
        return out

    # Explaining

    @locked
    def explain(self, X: "IntoDataFrame | Mapping[Hashable, object]") -> Explanation:
        """How much each column, or lag, contributes to the prediction for each row of a frame, or a dictionary."""
        batch = of_row(X) if isinstance(X, Mapping) else of_frame(X)
        return explaining.explain_rows(self.model, self._checked(batch, learn=False))

    @locked
    def effect(self, column: Hashable, coverage: float = 0.8, key: Hashable = None) -> Effect:
        """The mean prediction by the value of a column; of models per key name the key."""
        return explaining.effect_of(self.model, column, coverage, None if key is None else str(key))

    @property
    def importance_(self) -> dict[Any, float]:
        """By column, how much it accounts for in the predictions; of models per key the mean over some keys."""
        with self._lock:
            return explaining.importance_of(self.model)

    @property
    def experts_(self) -> list[Expert]:
        """All parts of the prediction by name, the largest first; none of models per key."""
        with self._lock:
            return explaining.experts(self.model)

    @property
    def changes_(self) -> list[Change]:
        """The last change of the stream that new experts were the answer to; none of models per key."""
        with self._lock:
            return explaining.last_changes(self.model)

    # Learning

    @locked
    def learn_one(self, x: Mapping[Hashable, object], y: Hashable) -> None:
        """Learn one row."""
        self._learn(of_row(x), [y])

    @locked
    def partial_fit(self, X: "IntoDataFrame", y: Iterable[Hashable] | None = None) -> Self:
        """Learn the rows in their order; y may be left out where X has the column of the target."""
        self._learn(of_frame(X), y)
        return self

    def learn_many(self, X: "IntoDataFrame", y: Iterable[Hashable] | None = None) -> None:
        """Learn the rows in their order, as `partial_fit` does."""
        self.partial_fit(X, y)

    @locked
    def predict_then_learn(self, X: "IntoDataFrame", y: Iterable[Hashable] | None = None) -> Array:
        """The prediction of each row, made before that row is learned."""
        return self._learn(of_frame(X), y).y_pred

    def _learn(self, batch: Batch, y: Iterable[Hashable] | None) -> Predictions:
        model, target = self.model, self.target_name_
        if y is None:
            require(target in batch.columns, "y", f"given, or X must have the column {target!r}", None)
        else:
            cells = of_cells(list(y))
            require(len(cells) == len(batch.rows), "y", f"a value for each of the {len(batch.rows)} rows", len(cells))
            batch = batch._replace(columns={**batch.columns, target: cells})
        batch = self._checked(batch, learn=True)
        self._check_targets(batch.columns[target])
        start = model.learned + 1
        with self._unchanged_on_error(batch):
            return model.run(batch._replace(rows=np.arange(start, start + len(batch.rows))))[0]

    @contextmanager
    def _unchanged_on_error(self, batch: Batch) -> Iterator[None]:
        """A batch that cannot be learned to its end leaves the model as it was, as do too little memory and Ctrl-C."""
        from omkl.fleet import Fleet  # scikit-learn takes a second to load

        learner, fleet = self.model.learner, None
        keys: dict[str, bytes | None] = {}
        if isinstance(learner, ModelPerKey) and isinstance(learner.fleet, Fleet) and self.key_name_ is not None:
            fleet = learner.fleet  # of which only the keys of the batch can change; a pool changes as a whole
            texts = {key for key in labels(batch.columns[self.key_name_]) if key is not None}
            keys = {key: fleet.pack(key) if key in fleet else None for key in texts}
        before = copy.deepcopy(self.model, {id(fleet): fleet})
        try:
            yield
        except BaseException:
            self.model = before
            for key, packed in keys.items():
                if fleet is not None and packed is not None:
                    fleet.restore([(key, packed)], 0)  # the features are known
                elif fleet is not None and key in fleet:
                    del fleet[key]
            raise

    def _check_targets(self, cells: pa.Array) -> None:
        """Refuse what the command line would not learn; with lags, a row may have no target."""
        y = self.model.preparer.target.read(cells, learn=False)
        if y.dtype == object:
            known = set(() if self.model.learner is None else self.model.learner.labels)
            if wrong := sorted({str(label) for label in y if label not in known}):
                raise ValueError(f"y must hold labels out of {listed(sorted(known))}, got {listed(wrong)}")
        elif np.isnan(y).any() and self.model.preparer.lagged is None:
            row = int(np.argmax(np.isnan(y)))
            raise ValueError(f"y must hold numbers, got {cells[row].as_py()!r} in row {row} (no row was learned)")

    @property
    def _task(self) -> Task | None:
        return self.model.task

    def _checked(self, batch: Batch, learn: bool) -> Batch:
        """The columns that the model wants, among them its key, of which no cell is empty."""
        preparer = self.model.preparer
        for what, name in (("key", preparer.by), ("key of late targets", preparer.key)):
            if name is None:
                continue
            if name not in batch.columns:
                raise ValueError(
                    f"there is no column {name!r}, the {what} of this model; the columns are {listed(batch.columns)}"
                )
            if batch.columns[name].null_count:
                row = int(np.argmax(batch.columns[name].is_null().to_numpy(zero_copy_only=False)))
                raise ValueError(f"column {name!r}, the {what} of this model, is empty in row {row}")
        own = (preparer.target.name, preparer.by, preparer.key)
        columns = set(preparer.encoder.columns)
        if columns and not columns & set(batch.columns):
            raise ValueError(
                f"none of the columns {listed(sorted(columns))} that this model learned from is there; the columns are "
                f"{listed(batch.columns)}"
            )
        free = learn and not preparer.features
        return batch.only(lambda name: name in own or name in columns or (free and name not in preparer.drop))
