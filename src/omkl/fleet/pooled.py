"""`PooledFleet`: one learner for all keys, and corrections for every key, the stronger the more of it has been seen.

Three predictions are combined for a row of a key that has n rows so far:

    p        the pool, a learner of the rows of all keys
    l        a linear model of the key's residuals y - p: Bayesian least squares whose prior is 0
    h        the key's own model, as `Fleet` has it
    q = p + a l + b (h - p - l)

The shares a and b depend on n alone, in octaves. They are the least-squares fit of y - p over the rows of all keys at
that age: how far a key of n rows can be trusted is learned from the keys that were there before. A key that has not
come yet is predicted by the pool, and so are all keys while q has had more error than p.
"""

import copy
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from narwhals.typing import IntoDataFrame
from numpy.typing import ArrayLike
from sklearn.base import is_classifier

from omkl.arrays import Array, Index, Matrix, Vector
from omkl.estimators import sklearn
from omkl.estimators.sklearn import unchecked
from omkl.estimators.sklearn.base import Estimator
from omkl.fleet import inputs
from omkl.fleet.corrections import Corrections, Shares
from omkl.fleet.groups import DeferredInterrupt
from omkl.fleet.inputs import Key
from omkl.fleet.local import NOT_STARTED, Fleet
from omkl.fleet.template import checked_learner
from omkl.lock import ModelLock


class PooledFleet:
    """A learner for all keys, and corrections for every key that grow with what has been seen of it.

    A new key is predicted by the pool at once, so that keys with few rows are predicted far better than by a model of
    their own, and keys with many rows about as well. Unlike in a `Fleet`, what a key predicts depends on the
    rows of other keys and on their order. For numbers only.

    Parameters
    ----------
    learner
        The model of each key; by default "graph-mkl", GraphMKL with its settings for many keys. SFGMKLRegressor takes
        a fraction of the memory and has more error where keys have many rows or little in common.
    pool
        The learner of all rows; GraphMKLRegressor by default.
    seed, threads, memory
        As for `Fleet`; `memory` is that of the models of the keys.

    >>> rng = np.random.default_rng(0)
    >>> keys = rng.integers(200, size=3000); X = rng.uniform(-2, 2, (3000, 2))
    >>> y = np.sin(2 * X[:, 0]) + X[:, 1] * keys / 100
    >>> errors = [(fleet.learn_rows(keys, X, y) - y) ** 2 for fleet in (PooledFleet(seed=1), Fleet(seed=1))]
    >>> print(f"pooled {errors[0].mean():.1f}, separate {errors[1].mean():.1f}")
    pooled 0.2, separate 2.2
    """

    classes = None

    def __init__(
        self,
        learner: Estimator | str | None = None,
        pool: Estimator | None = None,
        *,
        seed: int | None = None,
        threads: int | None = None,
        memory: int | None = None,
    ) -> None:
        shared = checked_learner(sklearn.GraphMKLRegressor() if pool is None else pool)
        own = checked_learner("graph-mkl" if learner is None else learner)
        for model in (shared, own):
            if is_classifier(model):
                raise ValueError(f"a pooled fleet predicts numbers, got {type(model).__name__}; use Fleet for labels")
        self.fleet = Fleet(own, seed=seed, threads=threads, memory=memory)
        self.seed = self.fleet.seed
        self.pool = shared  # the estimator that learns, from the first batch on
        self._handles_gaps = shared.get_params(deep=False).get("scale", "online") == "online"
        self._slots: dict[Key, int] = {}
        self._keys: list[Key] = []  # the key of every slot
        self._corrections: Corrections | None = None  # until the first batch
        self._shares = Shares()
        self._lock = ModelLock()

    # Learning and predicting

    def learn_many(
        self, frame: IntoDataFrame, *, key: str, target: str, features: Sequence[str] | None = None
    ) -> Array:
        """As `Fleet.learn_many`: the predictions of a batch of rows, each made before its row was learned."""
        table = inputs.open_frame(frame)
        keys = inputs.column(table, key, "key").to_list()
        values = inputs.column(table, target, "target")
        y = inputs.numeric_target(inputs.numeric_column(values, "the target", keys), keys)
        with self._lock:
            names = inputs.choose_features(table, features, self.fleet._feature_names, (key, target))
            return self._learn(keys, inputs.feature_columns(table, names, keys), y, names, gaps=False)

    def learn_rows(self, keys: Iterable[Key], X: ArrayLike, y: ArrayLike, *, gaps: bool = False) -> Array:
        """As `Fleet.learn_rows`."""
        keys = inputs.plain_keys(keys)
        X, y = inputs.as_rows(X, len(keys)), inputs.numeric_target(y, keys)
        if y.shape != (len(keys),):
            raise ValueError(f"y must have one value for each of the {len(keys)} rows, got shape {y.shape}")
        with self._lock:
            return self._learn(keys, X, y, None, gaps)

    def predict_many(self, frame: IntoDataFrame, *, key: str, features: Sequence[str] | None = None) -> Array:
        """Predictions for rows of any keys; nothing is learned. A key that has not come is predicted by the pool."""
        table = inputs.open_frame(frame)
        keys = inputs.column(table, key, "key").to_list()
        with self._lock:
            if self._corrections is None:
                raise ValueError(NOT_STARTED)
            names = inputs.choose_features(table, features, self.fleet._feature_names, (key,))
            return self._predict(keys, inputs.feature_columns(table, names, keys), gaps=False)

    def predict_rows(self, keys: Iterable[Key], X: ArrayLike, *, gaps: bool = False) -> Array:
        """As `predict_many`, from arrays."""
        keys = inputs.plain_keys(keys)
        with self._lock:
            return self._predict(keys, inputs.as_rows(X, len(keys)), gaps)

    def _learn(self, keys: list[Key], X: Matrix, y: Vector, names: list[str] | None, gaps: bool) -> Array:
        if not keys:
            return self.fleet.learn_rows(keys, X, y)
        inputs.check_keys(keys)
        self._check_features(keys, X, names, gaps)
        with DeferredInterrupt():
            pool, corrections = self.pool, self._corrections or Corrections(X.shape[1])
            corrections.reserve(len(self._slots) + len(set(keys) - self._slots.keys()))  # may fail: before any row
            if self._corrections is None:
                pool = unchecked.initialised(pool, self.seed, X.shape[1], names)
            problem = pool.core_.online.problem
            before = copy.deepcopy(pool.core_, {id(problem): problem})
            try:
                shared = unchecked.predict_then_learn(pool, X, y).view(np.float64)
                with self.fleet._lock:
                    own = self.fleet._learn(keys, X, y, names, gaps).view(np.float64)
            except BaseException:  # the fleet has refused the batch, or the pool has
                pool.core_ = before
                raise
            self._add(keys)
            self.pool, self._corrections = pool, corrections
            linear, seen = corrections.learn(self._places(keys), corrections.design(X, learn=True), y - shared)
            return self._shares.learn(seen, shared, linear, own, y)

    def _predict(self, keys: list[Key], X: Matrix, gaps: bool) -> Array:
        inputs.check_keys(keys)
        corrections = self._corrections
        if corrections is None:
            raise ValueError(NOT_STARTED)
        self._check_features(keys, X, None, gaps)
        if not keys:
            return np.empty(0)
        own = self.fleet._predict(keys, X, gaps).view(np.float64)
        shared = unchecked.predict(self.pool, X).view(np.float64)
        places = self._places(keys)
        linear = corrections.predict(places, corrections.design(X, learn=False))
        return self._shares.combine(np.where(places >= 0, corrections.rows[places], 0), shared, linear, own)

    def _check_features(self, keys: list[Key], X: Matrix, names: list[str] | None, gaps: bool) -> None:
        if gaps and not self._handles_gaps:
            raise ValueError("gaps need a pool that scales its inputs: scale='online'")
        self.fleet._check_features(keys, X, names, gaps)

    def _places(self, keys: list[Key]) -> Index:
        return np.fromiter((self._slots.get(key, -1) for key in keys), np.intp, len(keys))

    def _add(self, keys: Iterable[Key]) -> None:
        for key in keys:
            if key not in self._slots:
                self._slots[key] = len(self._keys)
                self._keys.append(key)

    # Keys

    @property
    def nbytes(self) -> int:
        """Bytes of the models of all keys; what the keys share is not counted."""
        with self._lock:
            each = 0 if self._corrections is None else 8 * (self._corrections.squares[0].size + self.n_inputs + 1)
            return self.fleet.nbytes + each * len(self)

    def copied_to_save(self, n_features: int) -> bool:
        """Whether it takes a copy of the keys' models to save them."""
        return self.fleet.copied_to_save(n_features)

    def growth(self, keys: Iterable[Key], n_features: int) -> int:
        """About how many bytes more the models take when a batch has been learned; `keys` are those of its rows."""
        keys = inputs.plain_keys(keys)
        with self._lock:
            new = len({key for key in keys if key not in self._slots})
            return self.fleet.growth(keys, n_features) + new * 8 * (n_features + 1) * (n_features + 2)

    @property
    def n_inputs(self) -> int:
        """Number of features, with a constant."""
        assert self._corrections is not None
        return self._corrections.products.shape[1]

    def __len__(self) -> int:
        return len(self.fleet)

    def __iter__(self) -> Iterator[Key]:
        return iter(self.fleet)

    def __contains__(self, key: object) -> bool:
        return key in self.fleet

    def __delitem__(self, key: Key) -> None:
        """Forget a key; if it comes again, it is predicted by the pool at first."""
        with self._lock:
            del self.fleet[key]
            assert self._corrections is not None
            slot, last = self._slots.pop(key), self._keys.pop()
            self._corrections.remove(slot, len(self._keys))
            if last != key:
                self._slots[last], self._keys[slot] = slot, last

    def __repr__(self) -> str:
        return f"PooledFleet({self.fleet.learner!r}, {self.pool!r}, seed={self.seed}, keys={len(self)})"
