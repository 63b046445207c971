"""A model per key on one machine."""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray

from omkl import persist
from omkl.arrays import Matrix
from omkl.engine import cores, first_not_finite
from omkl.errors import DivergenceError
from omkl.estimators import sklearn
from omkl.fleet.storage import Groups, Models, Records
from omkl.fleet.template import Key, Learned, Mould, checked_classes, checked_learner

TAME = 1e30  # a stabilised learner whose data never went beyond this cannot diverge
FEW = 64  # rows that are not worth a second thread
PARTS = 8  # of a batch for each thread, since keys differ in rows
UNCHANGED = "nothing of this batch was learned"


class Fleet:
    """A model for every key, all on one problem; a key's model is made when its first row comes.

    A key is a string or a whole number, and 1 and "1" are two keys. Results are those of separate
    estimators (`fresh`) fed one by one, to the last bit, whatever else is in the batch. A batch with a
    row that cannot be learned is refused whole.

    Parameters
    ----------
    learner
        An estimator of the scikit-learn door: every key gets one of these.
    seed
        Decides the random features, which all keys share, and with the key each key's draws;
        None for the learner's own `random_state`.
    classes
        For a classifier, all the labels that may come.
    threads
        Keys that learn at a time; None for as many as there are cores.

    >>> rng = np.random.default_rng(0)
    >>> keys = rng.integers(3, size=3000); X = rng.uniform(0, 10, (3000, 2))
    >>> y = np.sin(X[:, 0]) + keys * X[:, 1]
    >>> fleet = Fleet(sklearn.SFGMKLRegressor(), seed=1)
    >>> errors = (fleet.learn_rows(keys, X, y) - y) ** 2
    >>> print(f"{errors[:300].mean():.1f} at first, {errors[-300:].mean():.1f} at last, variance {y.var():.1f}")
    15.5 at first, 0.4 at last, variance 31.6
    >>> len(fleet), sorted(fleet), fleet[2].n_samples_seen_, fleet.nbytes // len(fleet)
    (3, [0, 1, 2], 1043, 37760)
    """

    def __init__(
        self,
        learner: Any = None,
        *,
        seed: int | None = None,
        classes: ArrayLike | None = None,
        threads: int | None = None,
    ) -> None:
        self.learner = checked_learner(sklearn.SFGMKLRegressor() if learner is None else learner)
        self.seed: int = self.learner._seed() if seed is None else int(seed)
        self.classes = checked_classes(self.learner, classes)
        self.threads = threads or cores()
        self._index: dict[Key, int] = {}
        self._slots: list[Key] = []  # whose model is where
        self._mould: Mould | None = None
        self._keep: Any = None
        self._wild = getattr(self.learner, "stabiliser", "") == "none"
        self._lock = threading.RLock()
        self._pool: ThreadPoolExecutor | None = None

    # Learning and asking

    def learn_many(self, frame: Any, *, key: str, target: str, features: Sequence[str] | None = None) -> NDArray[Any]:
        """Learn a batch of rows of any keys; returns what was predicted for each row before it was learned.

        Parameters
        ----------
        frame
            A pandas or polars DataFrame or a pyarrow Table.
        key, target
            The columns of these.
        features
            The columns to learn from; in the first batch all others unless named. Later batches must have
            them, in any place; columns that were not among them are left alone.

        >>> import polars as pl
        >>> frame = pl.DataFrame({"meter": ["a", "b", "a"], "hour": [1.0, 1.0, 2.0], "load": [5.0, 80.0, 7.0]})
        >>> fleet = Fleet(seed=1)
        >>> fleet.learn_many(frame, key="meter", target="load").tolist()
        [0.0, 0.0, 5.0]
        """
        table = opened(frame)
        keys = column(table, key, "key").to_list()
        names = self._features(table, features, (key, target))
        X = numbers(table, names, keys)
        y = column(table, target, "target")
        with self._lock:
            return self._learn(keys, X, y.to_numpy() if self.classes is not None else targets(y, keys), names)

    def predict_many(self, frame: Any, *, key: str, features: Sequence[str] | None = None) -> NDArray[Any]:
        """Predictions for rows of any keys; nothing is learned, and no model is made.

        A key that has not come yet is answered as by its model before the first row.
        """
        table = opened(frame)
        keys = column(table, key, "key").to_list()
        if self._mould is None:
            raise ValueError("nothing has been learned yet: what the features are is known from the first batch on")
        return self._predict(keys, numbers(table, self._features(table, features, (key,)), keys))

    def learn_rows(self, keys: Iterable[Key], X: ArrayLike, y: ArrayLike, *, gaps: bool = False) -> NDArray[Any]:
        """As `learn_many`, from arrays: a key, a row of features and a target for each.

        With `gaps` NaN among the features stands for a value that is missing, and counts as the mean of those
        that the key has had; the learner must scale its inputs, as it does unless told otherwise.
        """
        keys = plain(keys)
        X = rows_of(X, len(keys))
        target = np.asarray(y) if self.classes is not None else numeric(y, keys)
        if target.shape != (len(keys),):
            raise ValueError(f"y must have one value for each of the {len(keys)} rows, got shape {target.shape}")
        with self._lock:
            return self._learn(keys, X, target, None, gaps)

    def predict_rows(self, keys: Iterable[Key], X: ArrayLike, *, gaps: bool = False) -> NDArray[Any]:
        """As `predict_many`, from arrays."""
        keys = plain(keys)
        return self._predict(keys, rows_of(X, len(keys)), gaps)

    # Looking

    def __len__(self) -> int:
        return len(self._index)

    def __iter__(self) -> Iterator[Key]:
        """Keys in the order in which they first came."""
        return iter(list(self._index))

    def __contains__(self, key: object) -> bool:
        return key in self._index and type(key) in (str, int)

    def __getitem__(self, key: Key) -> Any:
        """The key's model: an estimator that goes its own way from here, and is yours."""
        if key not in self:
            raise KeyError(f"no row of key {key!r} has been learned; fleet.fresh({key!r}) is its model at the start")
        with self._lock:
            return self._made().around(self._keep.core(self._index[key]))

    def __delitem__(self, key: Key) -> None:
        """Forget a key; should it come again, its model starts anew.

        >>> fleet = Fleet(seed=1)
        >>> _ = fleet.learn_rows(["a", "b"], [[1.0], [2.0]], [3.0, 4.0])
        >>> del fleet["a"]
        >>> list(fleet)
        ['b']
        """
        with self._lock:
            if key not in self:
                raise KeyError(f"no row of key {key!r} has been learned; there is nothing to forget")
            slot, last = self._index.pop(key), self._slots.pop()
            if last != key:
                self._keep.move(len(self), slot)
                self._index[last], self._slots[slot] = slot, last
            self._keep.forget(range(len(self), len(self) + 1))

    def fresh(self, key: Key, n_features: int | None = None) -> Any:
        """The key's model before its first row: an estimator seeded as the fleet seeds it.

        `n_features` says how many there are where nothing has been learned yet.
        """
        checked_keys([key])
        if self._mould is None:
            if n_features is None:
                raise ValueError(
                    "nothing has been learned yet: say how many features there are, fresh(key, n_features)"
                )
            return Mould.make(self.learner, self.seed, n_features, None, self.classes).fresh(key)
        return self._mould.fresh(key)

    def pack(self, key: Key) -> bytes:
        """What the key has become, without what it shares: always the same bytes for the same model."""
        return self._made().pack(self[key])

    def restore(self, packed: Iterable[tuple[Key, bytes]], features: int | Sequence[str]) -> None:
        """Keys as `pack` made them, by this fleet or one of the same learner, seed, features and classes."""
        with self._lock:
            if self._mould is None:
                names = None if isinstance(features, int) else list(features)
                d = features if isinstance(features, int) else len(features)
                self._open(Mould.make(self.learner, self.seed, d, names, self.classes))
            for key, data in packed:
                checked_keys([key])
                core = self._made().unpack(data).core_
                self._keep.put(self._index.get(key, len(self)), core)
                self._enter(key)

    @property
    def nbytes(self) -> int:
        """Bytes that the keys hold for themselves; what they share comes once on top."""
        return 0 if self._keep is None else int(self._keep.nbytes(len(self)))

    def __repr__(self) -> str:
        return f"Fleet({self.learner!r}, seed={self.seed}, keys={len(self)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return persist.from_bytes, (persist.to_bytes(self),)

    # How a batch is learned

    def _learn(
        self, keys: list[Any], X: Matrix, y: NDArray[Any], names: list[str] | None, gaps: bool = False
    ) -> NDArray[Any]:
        checked_keys(keys)
        self._check(keys, X, names, gaps)
        if self.classes is not None:
            check_labels(y, self.classes, keys)
        if not keys:
            return self._room(0)
        before = self._mould, self._keep
        if self._mould is None:
            self._open(Mould.make(self.learner, self.seed, X.shape[1], names, self.classes))
        largest = max(
            np.fmax.reduce(X, None, initial=0.0),
            -np.fmin.reduce(X, None, initial=0.0),
            0.0 if self.classes is not None else np.abs(y).max(),
        )
        self._wild = self._wild or bool(largest > TAME)
        new = [key for key in dict.fromkeys(keys) if key not in self._index]
        for key in new:
            self._keep.add(len(self), key)
            self._enter(key)
        groups = Groups.by(np.fromiter(map(self._index.__getitem__, keys), np.intp, len(keys)))
        out = self._room(len(keys))
        kept = self._keep.snapshot(groups.slots) if self._wild else None
        failure = self._keep.run(groups, X, y, out, self._spread)
        if failure is None:
            return out
        after = "rows of other keys may have been learned: go on from the last saved file"
        if kept is not None:
            self._keep.roll_back(groups.slots, kept)
            self._keep.forget(range(len(self) - len(new), len(self)))
            del self._slots[len(self) - len(new) :]
            for key in new:
                del self._index[key]
            self._mould, self._keep = before
            after = UNCHANGED
        cure = "take stabiliser='aware'" if getattr(self.learner, "stabiliser", "") == "none" else "scale the data"
        raise DivergenceError(
            f"row {failure.row}: the model of key {keys[failure.row]!r} diverged, a prediction is beyond 1e100; "
            f"{cure}; {after}"
        ) from failure.error

    def _predict(self, keys: list[Any], X: Matrix, gaps: bool = False) -> NDArray[Any]:
        checked_keys(keys)
        with self._lock:
            if self._mould is None:
                raise ValueError("nothing has been learned yet: what the features are is known from the first batch on")
            self._check(keys, X, None, gaps)
            out = self._room(len(keys))
            if keys:
                get = self._index.get
                groups = Groups.by(np.fromiter((get(key, -1) for key in keys), np.intp, len(keys)))
                self._keep.predict(groups, X, out, self._spread)
                if self.classes is None and (bad := first_not_finite(out)) >= 0:
                    raise DivergenceError(
                        f"row {bad} (key {keys[bad]!r}): no useful prediction, {out[bad]}; scale the data"
                    )
            return out

    def _enter(self, key: Key) -> None:
        if key not in self._index:
            self._index[key] = len(self)
            self._slots.append(key)

    def _open(self, mould: Mould) -> None:
        self._mould = mould
        self._keep = Records(mould) if Records.suit(mould) else Models(mould)

    def _made(self) -> Mould:
        assert self._mould is not None
        return self._mould

    def _room(self, rows: int) -> NDArray[Any]:
        return np.empty(rows, dtype=np.float64 if self.classes is None else self.classes.dtype)

    def _spread(self, job: Callable[[Groups], Any], groups: Groups) -> list[Any]:
        if self.threads == 1 or len(groups.order) < FEW:
            return [job(groups)]
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.threads, thread_name_prefix="omkl-fleet")
        parts = [self._pool.submit(job, part) for part in groups.parts(PARTS * self.threads)]
        try:
            return [part.result() for part in parts]
        finally:
            wait(parts)  # Ctrl-C too comes after the whole batch

    # Checking what comes in

    def _features(self, table: Any, features: Sequence[str] | None, others: tuple[str, ...]) -> list[str]:
        known = getattr(getattr(self._mould, "model", None), "feature_names_in_", None)
        if known is not None:
            if features is not None and list(features) != list(known):
                raise ValueError(f"features must stay what they were in the first batch, {list(known)}, got {features}")
            return list(known)
        if features is None:
            features = [name for name in table.columns if name not in others]
        if not features or set(features) & set(others) or len(set(features)) < len(features):
            raise ValueError(f"features must be columns beside {' and '.join(others)}, at least one, got {features}")
        return list(features)

    def _check(self, keys: list[Key], X: Matrix, names: list[str] | None, gaps: bool) -> None:
        d = X.shape[1] if self._mould is None else self._mould.model.n_features_in_
        if X.shape[1] != d or d == 0:
            raise ValueError(f"X must have {d or 'some'} columns, one for each feature, got {X.shape[1]}; {UNCHANGED}")
        if gaps and getattr(self.learner, "scale", "online") != "online":
            raise ValueError("gaps need a learner that scales its inputs: scale='online'")
        if (bad := first_not_finite(np.nan_to_num(X, nan=0.0, posinf=np.inf, neginf=-np.inf) if gaps else X)) >= 0:
            row, k = divmod(bad, d)
            known = names or getattr(getattr(self._mould, "model", None), "feature_names_in_", None)
            name = f"{known[k]!r}" if known is not None else f"column {k}"
            raise ValueError(
                f"row {row} (key {keys[row]!r}): feature {name} must be a finite number, got {X[row, k]}; "
                f"drop the row or impute it ({UNCHANGED})"
            )


def plain(keys: Iterable[Any]) -> list[Any]:
    """Keys as Python's own strings and numbers."""
    if isinstance(keys, np.ndarray):
        return list(keys.tolist())
    return [key.item() if isinstance(key, np.generic) else key for key in keys]


def checked_keys(keys: list[Any]) -> None:
    if set(map(type, keys)) <= {str, int}:
        return
    row, key = next((row, key) for row, key in enumerate(keys) if type(key) not in (str, int))
    if key is None or key != key:
        raise ValueError(f"row {row}: the key must not be missing, got {key}; drop the row ({UNCHANGED})")
    raise TypeError(f"row {row}: a key must be a string or a whole number, got {key!r}; turn it into a string")


def rows_of(X: ArrayLike, rows: int) -> Matrix:
    X = np.ascontiguousarray(X, dtype=np.float64)
    if X.ndim != 2 or len(X) != rows:
        raise ValueError(f"X must be a table with a row for each of the {rows} keys, got an array of shape {X.shape}")
    return X


def numeric(y: ArrayLike, keys: list[Any]) -> NDArray[np.float64]:
    y = np.ascontiguousarray(y, dtype=np.float64)
    if (bad := first_not_finite(y)) >= 0 and bad < len(keys):
        raise ValueError(
            f"row {bad} (key {keys[bad]!r}): the target must be a finite number, got {y.flat[bad]}; "
            f"drop the row ({UNCHANGED})"
        )
    return y


def check_labels(y: NDArray[Any], classes: NDArray[Any], keys: list[Any]) -> None:
    known = set(classes.tolist())
    labels = y.tolist()
    if set(labels) <= known:
        return
    row = next(row for row, label in enumerate(labels) if label not in known)
    raise ValueError(
        f"row {row} (key {keys[row]!r}): the target must be a label out of {classes.tolist()}, got {labels[row]!r}; "
        f"name all labels when the fleet is made ({UNCHANGED})"
    )


# Frames, through narwhals


def opened(frame: Any) -> nw.DataFrame[Any]:
    try:
        return nw.from_native(frame, eager_only=True)
    except TypeError:
        raise TypeError(
            f"frame must be a pandas or polars DataFrame or a pyarrow Table, got {type(frame).__name__}; "
            "arrays go to learn_rows and predict_rows"
        ) from None


def column(table: nw.DataFrame[Any], name: str, what: str) -> nw.Series[Any]:
    if name not in table.columns:
        raise ValueError(f"the {what} column {name!r} is not in the frame, which has {table.columns}; {UNCHANGED}")
    return table.get_column(name)


def numbers(table: nw.DataFrame[Any], names: list[str], keys: list[Any]) -> Matrix:
    X = np.empty((len(table), len(names)))
    for k, name in enumerate(names):
        X[:, k] = as_floats(column(table, name, "feature"), f"feature {name!r}", keys)
    return X


def targets(values: nw.Series[Any], keys: list[Any]) -> NDArray[np.float64]:
    return numeric(as_floats(values, "the target", keys), keys)


def as_floats(values: nw.Series[Any], what: str, keys: list[Any]) -> NDArray[np.float64]:
    if values.dtype.is_numeric() or values.dtype == nw.Boolean:
        return values.to_numpy().astype(np.float64)
    out = np.empty(len(values))
    for row, value in enumerate(values.to_list()):
        # a column of Python objects may still be all numbers; one of strings is refused at its first row
        if value is None:
            out[row] = np.nan
        elif isinstance(value, (int, float, np.number)):
            out[row] = value
        else:
            raise ValueError(
                f"row {row} (key {keys[row]!r}): {what} must be a number, got {value!r}; the column is of type "
                f"{values.dtype}: convert it, or drop the row ({UNCHANGED})"
            )
    return out


# Files


def _encode(fleet: Fleet, compact: bool) -> tuple[Any, persist.Arrays]:
    with fleet._lock:
        model = fleet.learner if fleet._mould is None else fleet._mould.model
        start, arrays = sklearn.encode(model, compact)
        body: dict[str, Any] = {
            "start": start,
            "seed": fleet.seed,
            "wild": fleet._wild,
            "keys": list(fleet),
            "each": [],
        }
        if fleet.classes is not None:
            body["classes"] = [persist.plain(label) for label in fleet.classes]
            body["dtype"] = fleet.classes.dtype.str
        for place, slot in enumerate(fleet._index.values()):
            kept = fleet._made().learned(fleet._keep.core(slot))
            body["each"].append(kept.body)
            arrays |= {f"{place}/{name}": array for name, array in kept.arrays.items()}
    return body, arrays


def _decode(body: Any, arrays: persist.Arrays) -> Fleet:
    model = sklearn.decode(body["start"], {name: array for name, array in arrays.items() if "/" not in name})
    classes = None
    if "classes" in body:
        dtype = np.dtype(body["dtype"])
        persist.demand(dtype.kind in "biufUO" and dtype.itemsize <= 2**16, "labels of an unknown type")
        classes = np.array(body["classes"], dtype=dtype)
    fleet = Fleet(model, seed=body["seed"], classes=classes)
    fleet._wild = bool(body["wild"])
    persist.demand(len(body["keys"]) == len(body["each"]), "keys and models differ in number")
    if not hasattr(model, "core_"):
        persist.demand(not body["keys"], "keys without features")
        return fleet
    fleet._open(Mould(model))
    mine: list[persist.Arrays] = [{} for _ in body["keys"]]
    for name, array in arrays.items():
        place, slash, part = name.partition("/")
        if slash:
            mine[int(place)][part] = array
    mark = fleet._made().mark
    for key, learned, parts in zip(body["keys"], body["each"], mine, strict=True):
        persist.demand(
            type(key) in (str, int) and key not in fleet._index, f"key {key!r} cannot be one, or comes twice"
        )
        fleet._keep.put(len(fleet), fleet._made().core_of(Learned(mark, learned, parts)))
        fleet._enter(key)
    return fleet


persist.register("fleet", persist.Codec((Fleet,), _encode, _decode))
