"""`Fleet`: a model for every key on one machine."""

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
from narwhals.typing import IntoDataFrame
from numpy.typing import ArrayLike

from omkl import persist
from omkl.arrays import Array, Matrix
from omkl.engine import cores, first_not_finite
from omkl.errors import DivergenceError
from omkl.estimators import sklearn
from omkl.estimators.sklearn import unchecked
from omkl.estimators.sklearn.base import Estimator
from omkl.estimators.tally import Tally
from omkl.fleet import inputs
from omkl.fleet.groups import DeferredInterrupt, Threads
from omkl.fleet.inputs import Key
from omkl.fleet.models import FleetStats, KeyedModels
from omkl.fleet.template import Template, checked_classes, checked_learner, checked_memory
from omkl.lock import ModelLock
from omkl.validation import LARGEST_SAFE

NOT_STARTED = "nothing has been learned yet: the features are known from the first batch on"


class Fleet:
    """A model for every key, all on the same problem; a key's model is made when its first row comes.

    A key is a string or an integer; 1 and "1" are different keys. Results are bit for bit those of separate
    estimators (`fresh`), each fed the rows of its key one by one, whatever else is in a batch. A batch that
    contains an invalid row is refused as a whole. Methods may be called from several threads: calls take turns. Ctrl-C
    takes effect when a batch has been learned.

    Parameters
    ----------
    learner
        An estimator of the scikit-learn API: every key gets one of these. Or the name of an algorithm, for one with
        the settings that suit many keys: "graph-mkl" is GraphMKL with a small budget and few kernels.
    seed
        Determines the random features, which all keys share, and together with the key the random numbers of each
        key; None for the learner's own `random_state`.
    classes
        For a classifier, all the labels that may come.
    threads
        Number of threads; None for as many as there are cores.
    memory
        Most bytes of models in memory, None for all of them. Models that have not been used for longest are in a
        temporary file, and come back when a row of their key does; results are the same. Keys with at most 16 rows
        stay in memory. For GraphMKL with a small budget, and regressors whose models have a fixed size.

    >>> rng = np.random.default_rng(0)
    >>> keys = rng.integers(3, size=3000); X = rng.uniform(0, 10, (3000, 2))
    >>> y = np.sin(X[:, 0]) + keys * X[:, 1]
    >>> fleet = Fleet(sklearn.SFGMKLRegressor(), seed=1)
    >>> errors = (fleet.learn_rows(keys, X, y) - y) ** 2
    >>> print(f"{errors[:300].mean():.1f} at first, {errors[-300:].mean():.1f} at last, variance {y.var():.1f}")
    3.8 at first, 0.3 at last, variance 31.6
    >>> len(fleet), sorted(fleet), fleet[2].n_samples_seen_, fleet.nbytes // len(fleet)
    (3, [0, 1, 2], 1043, 10432)
    """

    def __init__(
        self,
        learner: Estimator | str | None = None,
        *,
        seed: int | None = None,
        classes: ArrayLike | None = None,
        threads: int | None = None,
        memory: int | None = None,
    ) -> None:
        self.learner = checked_learner(sklearn.SFGMKLRegressor() if learner is None else learner, classes)
        self.memory = checked_memory(memory)
        self.seed: int = unchecked.draw_seed(self.learner) if seed is None else int(seed)
        self.classes = checked_classes(self.learner, classes)
        parameters = self.learner.get_params(deep=False)
        self._stabilised: bool = parameters.get("stabiliser") != "none"
        self._handles_gaps: bool = parameters.get("scale", "online") == "online"
        self._may_diverge = not self._stabilised
        self._models: KeyedModels | None = None  # until the first batch shows how many features there are
        self._threads = Threads(threads or cores())
        self._lock, self._tally, self._rows = ModelLock(), Tally(), 0

    # Learning and predicting

    def learn_many(
        self, frame: IntoDataFrame, *, key: str, target: str, features: Sequence[str] | None = None
    ) -> Array:
        """Learn a batch of rows of any keys; returns the prediction of each row, made before it was learned.

        Parameters
        ----------
        frame
            A pandas or polars DataFrame or a pyarrow Table.
        key, target
            The names of these columns.
        features
            The columns to learn from; by default all others of the first batch. Later batches must contain the
            same columns, in any order; further columns are ignored.

        >>> import polars as pl
        >>> frame = pl.DataFrame({"meter": ["a", "b", "a"], "hour": [1.0, 1.0, 2.0], "load": [5.0, 80.0, 7.0]})
        >>> fleet = Fleet(seed=1)
        >>> fleet.learn_many(frame, key="meter", target="load").tolist()
        [0.0, 0.0, 5.0]
        """
        table = inputs.open_frame(frame)
        keys = inputs.column(table, key, "key").to_list()
        values = inputs.column(table, target, "target")
        if self.classes is not None:
            y = values.to_numpy()
        else:
            y = inputs.numeric_target(inputs.numeric_column(values, "the target", keys), keys)
        with self._lock:
            names = inputs.choose_features(table, features, self._feature_names, (key, target))
            return self._learn(keys, inputs.feature_columns(table, names, keys), y, names)

    def predict_many(self, frame: IntoDataFrame, *, key: str, features: Sequence[str] | None = None) -> Array:
        """Predictions for rows of any keys; nothing is learned, and no model is made.

        A key that has not come yet is predicted by its model before the first row.
        """
        table = inputs.open_frame(frame)
        keys = inputs.column(table, key, "key").to_list()
        with self._lock:
            if self._models is None:
                raise ValueError(NOT_STARTED)
            names = inputs.choose_features(table, features, self._feature_names, (key,))
            return self._predict(keys, inputs.feature_columns(table, names, keys))

    def learn_rows(self, keys: Iterable[Key], X: ArrayLike, y: ArrayLike, *, gaps: bool = False) -> Array:
        """As `learn_many`, from arrays: a key, a row of features and a target for each.

        With `gaps`, NaN among the features stands for a missing value, which is replaced by the key's running mean of
        that feature; the learner must scale its inputs, which is the default.
        """
        keys = inputs.plain_keys(keys)
        X = inputs.as_rows(X, len(keys))
        target = np.asarray(y) if self.classes is not None else inputs.numeric_target(y, keys)
        if target.shape != (len(keys),):
            raise ValueError(f"y must have one value for each of the {len(keys)} rows, got shape {target.shape}")
        with self._lock:
            return self._learn(keys, X, target, None, gaps)

    def predict_rows(self, keys: Iterable[Key], X: ArrayLike, *, gaps: bool = False) -> Array:
        """As `predict_many`, from arrays."""
        keys = inputs.plain_keys(keys)
        return self._predict(keys, inputs.as_rows(X, len(keys)), gaps)

    # Keys and their models

    @property
    def threads(self) -> int:
        """Number of threads."""
        return self._threads.count

    @property
    def nbytes(self) -> int:
        """Bytes of the models of all keys; what the keys share is not counted."""
        with self._lock:
            return 0 if self._models is None else self._models.nbytes

    @property
    def nbytes_in_memory(self) -> int:
        """Bytes of those models that are not in a temporary file."""
        with self._lock:
            return 0 if self._models is None else self._models.in_memory

    def copied_to_save(self, n_features: int) -> bool:
        """Whether it takes a copy of all models to save them."""
        with self._lock:
            return (self._models or KeyedModels(self._template(n_features, None))).copied_to_save

    def growth(self, keys: Iterable[Key], n_features: int) -> int:
        """About how many bytes more the models take when a batch has been learned; `keys` are those of its rows."""
        keys = inputs.plain_keys(keys)
        with self._lock:
            return (self._models or KeyedModels(self._template(n_features, None))).growth(keys)

    def __len__(self) -> int:
        with self._lock:
            return 0 if self._models is None else len(self._models)

    def __iter__(self) -> Iterator[Key]:
        """Keys in the order in which they first came."""
        with self._lock:
            return iter(()) if self._models is None else iter(self._models)

    def __contains__(self, key: object) -> bool:
        with self._lock:
            return self._models is not None and type(key) in (str, int) and key in self._models

    def __getitem__(self, key: Key) -> Estimator:
        """A copy of the key's model: an estimator that is independent of the fleet."""
        with self._lock:
            if self._models is None or key not in self:
                raise KeyError(
                    f"no row of key {key!r} has been learned; fleet.fresh({key!r}) is its model at the start"
                )
            return self._models.template.model_with(self._models.core(key))

    def __delitem__(self, key: Key) -> None:
        """Forget a key; if it comes again, its model starts from the beginning.

        >>> fleet = Fleet(seed=1)
        >>> _ = fleet.learn_rows(["a", "b"], [[1.0], [2.0]], [3.0, 4.0])
        >>> del fleet["a"]
        >>> list(fleet)
        ['b']
        """
        with self._lock:
            if self._models is None or key not in self:
                raise KeyError(f"no row of key {key!r} has been learned; there is nothing to forget")
            self._models.remove(key)

    def stats(self) -> FleetStats:
        """Rows learned by this fleet in this process, and how good the predictions were that were made before each.

        >>> fleet = Fleet(seed=1)
        >>> _ = fleet.learn_rows(["a", "b"], [[1.0], [2.0]], [3.0, 4.0])
        >>> fleet.stats()
        {'rows': 2, 'keys': 2, 'rmse': 3.5355339059327378, 'accuracy': None}
        """
        with self._lock:
            found = self._tally.stats(None)
            return {"rows": self._rows, "keys": len(self), "rmse": found["rmse"], "accuracy": found["accuracy"]}

    def fresh(self, key: Key, n_features: int | None = None) -> Estimator:
        """The key's model before its first row: an estimator with the seed that the fleet gives it.

        `n_features` is needed only as long as nothing has been learned.
        """
        inputs.check_keys([key])
        with self._lock:
            if self._models is not None:
                return self._models.template.fresh(key)
            if n_features is None:
                raise ValueError("nothing has been learned yet: give the number of features, fresh(key, n_features)")
            return self._template(n_features, None).fresh(key)

    def pack(self, key: Key) -> bytes:
        """What the key has learned, without what all keys share: always the same bytes for the same model."""
        with self._lock:
            model = self[key]
            assert self._models is not None
            return self._models.template.pack(model)

    def restore(self, packed: Iterable[tuple[Key, bytes]], features: int | Sequence[str]) -> None:
        """Put back keys that `pack` returned, of this fleet or one of the same learner, seed, features and classes.

        `features` are the names of the features, or their number where they came as arrays.
        """
        with self._lock:
            if self._models is None:
                names = None if isinstance(features, int) else list(features)
                d = features if isinstance(features, int) else len(features)
                self._models = KeyedModels(self._template(d, names), self.memory)
            for key, data in packed:
                inputs.check_keys([key])
                self._models.put(key, self._models.template.unpack(data).core_)

    def __repr__(self) -> str:
        return f"Fleet({self.learner!r}, seed={self.seed}, keys={len(self)})"

    def __reduce__(self) -> tuple[Callable[[bytes], "Fleet"], tuple[bytes]]:
        return unpickled, (persist.to_bytes(self),)

    # How a batch is learned

    def _learn(self, keys: list[Key], X: Matrix, y: Array, names: list[str] | None, gaps: bool = False) -> Array:
        inputs.check_keys(keys)
        self._check_features(keys, X, names, gaps)
        if self.classes is not None:
            inputs.check_labels(y, self.classes, keys)
        out = self._empty(len(keys))
        if not keys:
            return out
        largest = max(
            np.fmax.reduce(X, None, initial=0.0),
            -np.fmin.reduce(X, None, initial=0.0),
            0.0 if self.classes is not None else np.abs(y).max(),
        )
        with DeferredInterrupt():
            return self._learn_checked(keys, X, y, names, out, bool(largest > LARGEST_SAFE))

    def _learn_checked(
        self, keys: list[Key], X: Matrix, y: Array, names: list[str] | None, out: Array, large: bool
    ) -> Array:
        before, may_diverge = self._models, self._may_diverge or large
        models = KeyedModels(self._template(X.shape[1], names), self.memory) if before is None else before
        refused = models.learn(keys, X, y, out, self._threads, undo=may_diverge)
        if refused is None or not refused.undone:
            self._models, self._may_diverge = models, may_diverge
        if refused is None:
            if self.classes is None:
                self._tally.numbers(out.astype(np.float64), y.astype(np.float64))
            else:
                self._tally.labels(out, y)
            self._rows += len(keys)
            return out
        consequence = "rows of other keys may have been learned: continue from the last saved file"
        row, error = refused.failure
        advice = "scale the data" if self._stabilised else "use stabiliser='aware'"
        raise DivergenceError(
            f"row {row}: the model of key {keys[row]!r} diverged, a prediction exceeds 1e100; {advice}; "
            f"{inputs.UNCHANGED if refused.undone else consequence}"
        ) from error

    def _predict(self, keys: list[Key], X: Matrix, gaps: bool = False) -> Array:
        inputs.check_keys(keys)
        with self._lock:
            if self._models is None:
                raise ValueError(NOT_STARTED)
            self._check_features(keys, X, None, gaps)
            out = self._empty(len(keys))
            if keys:
                self._models.predict(keys, X, out, self._threads)
                if self.classes is None and (bad := first_not_finite(out.view(np.float64))) >= 0:
                    raise DivergenceError(
                        f"row {bad} (key {keys[bad]!r}): the prediction is not finite, {out[bad]}; scale the data"
                    )
            return out

    def _check_features(self, keys: list[Key], X: Matrix, names: list[str] | None, gaps: bool) -> None:
        if gaps and not self._handles_gaps:
            raise ValueError("gaps need a learner that scales its inputs: scale='online'")
        d = None if self._models is None else self._models.template.n_features
        inputs.check_features(X, keys, d, names or self._feature_names, gaps)

    @property
    def _feature_names(self) -> list[str] | None:
        return None if self._models is None else self._models.template.feature_names

    def _template(self, d: int, names: list[str] | None) -> Template:
        return Template.make(self.learner, self.seed, d, names, self.classes)

    def _empty(self, rows: int) -> Array:
        return np.empty(rows, dtype=np.float64 if self.classes is None else self.classes.dtype)


def unpickled(data: bytes) -> Fleet:
    """The fleet that was pickled; it is in this module so that unpickling imports the codec of fleets."""
    return persist.from_bytes(data)  # type: ignore[no-any-return]  # what was packed is a fleet
