"""The models of all keys that have come: which key is where in the storage."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypedDict

import numpy as np

from omkl.arrays import Array, Matrix, Vector
from omkl.estimators.core import Core
from omkl.fleet.groups import Groups, Threads
from omkl.fleet.inputs import Key
from omkl.fleet.packed import PackedStorage, can_be_packed
from omkl.fleet.records import RecordStorage
from omkl.fleet.separate import EstimatorStorage
from omkl.fleet.storage import Failure, FirstRows, Storage
from omkl.fleet.template import Learned, Template
from omkl.persist import demand


class FleetStats(TypedDict):
    """What `Fleet.stats` returns; a fleet predicts no intervals while it learns, and reports no changes."""

    rows: int
    keys: int
    rmse: float | None  # of numbers
    accuracy: float | None  # of labels


class Refused(NamedTuple):
    """A batch that could not be learned, and whether all models are as they were before it."""

    failure: Failure
    undone: bool


def storage_for(template: Template, memory: int | None) -> Storage:
    """What one call of the engine can run for many keys, where there is that; within so many bytes of memory."""
    online = template.core.online
    if memory is None and not template.classifies and online.algorithm.fixed_size and online.compiled is not None:
        return RecordStorage(template)
    if can_be_packed(template):
        return PackedStorage(template, memory)
    if memory is not None:
        raise ValueError(
            "memory= limits fleets of GraphMKL with budget='small' and without class_weight, and of regressors whose "
            f"models have a fixed size; leave it out for {template.model!r}"
        )
    return EstimatorStorage(template)


class KeyedModels:
    """A model for every key, made from one template when the key's first row comes.

    Where `memory` is given, models beyond so many bytes are on disk.
    """

    def __init__(self, template: Template, memory: int | None = None) -> None:
        self.template = template
        self._storage = storage_for(template, memory)
        self._slots: dict[Key, int] = {}  # in the order in which the keys came
        self._keys: list[Key] = []  # the key of every slot

    def __len__(self) -> int:
        return len(self._slots)

    def __iter__(self) -> Iterator[Key]:
        return iter(list(self._slots))

    def __contains__(self, key: object) -> bool:
        return key in self._slots

    @property
    def nbytes(self) -> int:
        return self._storage.nbytes(len(self))

    def core(self, key: Key) -> Core:
        """A copy of the key's core."""
        return self._storage.core(self._slots[key])

    def growth(self, keys: Sequence[Key]) -> int:
        """About how many bytes more the models take after rows of these keys."""
        return self._storage.growth((self._slots.get(key), n) for key, n in Counter(keys).items())

    def first_rows(self, key: Key) -> FirstRows | None:
        """The rows of a key that is kept as these."""
        return self._storage.first_rows(self._slots[key])

    def packed_size(self, key: Key) -> int | None:
        """Bytes of the packed model of a key, None where it is not one."""
        slot, storage = self._slots[key], self._storage
        return storage.size(slot) if isinstance(storage, PackedStorage) and not storage.first_rows(slot) else None

    def packed(self, key: Key) -> Vector:
        """A copy of the packed model of a key."""
        assert isinstance(self._storage, PackedStorage)
        return self._storage.packed(self._slots[key])

    def learned(self, key: Key) -> Learned:
        """What a key has learned."""
        return self.template.learned(self.core(key))

    def records(self) -> tuple[list[Key], Matrix | None]:
        """The keys by slot, and their models, a row each, where they are records of one size."""
        storage = self._storage
        return list(self._keys), storage.copied(len(self)) if isinstance(storage, RecordStorage) else None

    def put_records(self, keys: Sequence[Key], values: Matrix) -> None:
        """Set the models of new keys, the first, by what `records` returned."""
        if len(self) or not isinstance(self._storage, RecordStorage) or len(set(keys)) != len(values):
            raise ValueError("these keys cannot have these records")
        self._storage.put_all(values)
        for key in keys:
            self._append(key)

    def put_first_rows(self, first: FirstRows) -> None:
        """Set the model of a new key by the rows that it has learned."""
        self._storage.put_first_rows(len(self), first)
        self._append(first.key)

    def put(self, key: Key, core: Core) -> None:
        """Set the model of a key, known or new."""
        self._storage.put(self._slots.get(key, len(self)), core)
        if key not in self._slots:
            self._append(key)

    def put_packed(self, key: Key, packed: Vector) -> None:
        """Set the model of a new key by what a file claims that `packed` returned."""
        demand(isinstance(self._storage, PackedStorage), "models of this kind are not packed")
        assert isinstance(self._storage, PackedStorage)
        self._storage.check(packed)
        self._storage.put_packed(len(self), packed)
        self._append(key)

    @property
    def copied_to_save(self) -> bool:
        """Packed models are written one by one."""
        return not isinstance(self._storage, PackedStorage)

    @property
    def in_memory(self) -> int:
        """Bytes of the models that are not on disk."""
        storage = self._storage
        return storage.in_memory if isinstance(storage, PackedStorage) else self.nbytes

    def remove(self, key: Key) -> None:
        """Forget a key; the model in the last slot moves to its place."""
        slot, last = self._slots.pop(key), self._keys.pop()
        if last != key:
            self._storage.move(len(self), slot)
            self._slots[last], self._keys[slot] = slot, last
        self._storage.free(range(len(self), len(self) + 1))

    def learn(
        self, keys: Sequence[Key], X: Matrix, y: Array, out: Array, threads: Threads, undo: bool
    ) -> Refused | None:
        """Learn a batch and write the predictions made before to `out`; with `undo`, all of it or nothing.

        An error before the first row is learned, such as too little memory for new keys, leaves all as it was.
        """
        known = len(self)
        try:
            for key in dict.fromkeys(keys):
                if key not in self._slots:
                    self._storage.add(len(self), key)
                    self._append(key)
            groups = self._groups(keys)
            go_back = self._storage.snapshot(groups.slots) if undo else None
        except BaseException:
            self._forget_from(known)
            raise
        try:
            failure = self._storage.run(groups, X, y, out, threads)
        except BaseException as error:
            if go_back is None:
                error.add_note("Rows of some keys may have been learned: continue from the last saved file.")
            else:
                go_back()
                self._forget_from(known)
            raise
        if failure is not None and go_back is not None:
            go_back()
            self._forget_from(known)
        return None if failure is None else Refused(failure, undone=undo)

    def _forget_from(self, known: int) -> None:
        """Forget all keys but the first `known`, and one that has a slot already but is not in the list yet."""
        self._storage.free(range(known, len(self) + 1))
        for key in self._keys[known:]:
            del self._slots[key]
        del self._keys[known:]

    def predict(self, keys: Sequence[Key], X: Matrix, out: Array, threads: Threads) -> None:
        """Write predictions to `out`; a key that has not come yet is predicted by its model before the first row."""
        self._storage.predict(self._groups(keys), X, out, threads)

    def _groups(self, keys: Sequence[Key]) -> Groups:
        get = self._slots.get
        return Groups.by(np.fromiter((get(key, -1) for key in keys), np.intp, len(keys)))

    def _append(self, key: Key) -> None:
        self._slots[key] = len(self._keys)
        self._keys.append(key)
