"""The models of all keys that have come: which key is where in the storage."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from omkl.arrays import Array, Matrix
from omkl.estimators.core import Core
from omkl.fleet import records
from omkl.fleet.groups import Groups, Threads
from omkl.fleet.inputs import Key
from omkl.fleet.storage import Failure, FirstRows, RecordStorage, storage_for
from omkl.fleet.template import Learned, Template


class Refused(NamedTuple):
    """A batch that could not be learned, and whether all models are as they were before it."""

    failure: Failure
    undone: bool


class KeyedModels:
    """A model for every key, made from one template when the key's first row comes."""

    def __init__(self, template: Template) -> None:
        self.template = template
        self._storage = storage_for(template)
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

    def learned(self, key: Key) -> Learned:
        """What a key has learned."""
        return self.template.learned(self.core(key))

    def records(self) -> tuple[list[Key], Matrix | None]:
        """The keys by slot, and their models, a row each, where they are records of one size."""
        storage = self._storage
        return list(self._keys), records.copied(storage, len(self)) if isinstance(storage, RecordStorage) else None

    def put_records(self, keys: Sequence[Key], values: Matrix) -> None:
        """Set the models of new keys, the first, by what `records` returned."""
        if len(self) or not isinstance(self._storage, RecordStorage) or len(set(keys)) != len(values):
            raise ValueError("these keys cannot have these records")
        records.put(self._storage, values)
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
