"""Models of any kind, each an estimator of its own."""

import copy
from collections.abc import Callable, Iterable

import numpy as np

from omkl.arrays import Array, Index, Matrix
from omkl.errors import DivergenceError
from omkl.estimators.core import Core
from omkl.estimators.sklearn.base import Estimator
from omkl.fleet.groups import Groups, Threads
from omkl.fleet.inputs import Key
from omkl.fleet.storage import FIRST_ROWS, Failure, FirstRows
from omkl.fleet.template import Template

LARGE_MODEL = 1 << 18  # bytes


class EstimatorStorage:
    """Models of any kind, each an estimator of its own; those of one batch run one by one, in threads.

    Where models are large, keys with few rows are kept as these: most keys of a long tail need no more.
    """

    def __init__(self, template: Template) -> None:
        self._template = template
        self._models: list[Estimator | FirstRows] = []
        self._model_bytes = self._size(template.model)

    def _size(self, model: Estimator | FirstRows) -> int:
        if isinstance(model, FirstRows):
            return int(model.X.nbytes + model.y.nbytes)
        return sum(array.nbytes for array in self._template.learned(model.core_).arrays.values())

    def nbytes(self, count: int) -> int:
        return sum(self._size(model) for model in self._models[:count])

    def growth(self, rows: Iterable[tuple[int | None, int]]) -> int:
        total = 0
        for slot, n in rows:
            kept = None if slot is None else self._models[slot]
            if kept is None or isinstance(kept, FirstRows):
                few = self._few(n if kept is None else n + len(kept.X))
                total += n * 8 * (1 + self._template.n_features) if few else self._model_bytes
        return total

    def first_rows(self, slot: int) -> FirstRows | None:
        kept = self._models[slot]
        return kept if isinstance(kept, FirstRows) else None

    def put_first_rows(self, slot: int, first: FirstRows) -> None:
        self._set(slot, first if self._few(len(first.X)) else self._template.after(*first))

    def _few(self, rows: int) -> bool:
        return self._model_bytes >= LARGE_MODEL and rows <= FIRST_ROWS

    def add(self, slot: int, key: Key) -> None:
        if self._few(0):
            self._set(slot, FirstRows(key, np.empty((0, self._template.n_features)), np.empty(0)))
        else:
            self._set(slot, self._template.fresh(key))

    def put(self, slot: int, core: Core) -> None:
        self._set(slot, self._template.model_with(core))

    def core(self, slot: int) -> Core:
        core = self._model(slot).core_
        shared = core.online.problem
        return copy.deepcopy(core, {id(shared): shared})

    def run(self, groups: Groups, X: Matrix, y: Array, out: Array, threads: Threads) -> Failure | None:
        learned: set[int] = set()  # first rows of the keys that are not to be learned again after too little memory

        def run_part(part: Groups) -> Failure | None:
            for rows, slot in self._slots_of(part):
                if rows[0] not in learned:
                    model = self._model(slot)
                    try:
                        out[rows] = self._template.learn(model, X[rows], y[rows])
                    except DivergenceError as error:
                        return Failure(int(rows[0]), error)
                    self._keep(slot, model, X[rows], y[rows])
                    learned.add(rows[0])
            return None

        return next((failure for failure in threads.map(run_part, groups) if failure), None)

    def predict(self, groups: Groups, X: Matrix, out: Array, threads: Threads) -> None:
        def predict_part(part: Groups) -> None:
            for rows, slot in self._slots_of(part):
                out[rows] = self._template.predict(self._model(slot), X[rows])

        threads.map(predict_part, groups)

    def snapshot(self, slots: Index) -> Callable[[], None]:
        before = [self.first_rows(slot) or self._template.model_with(self.core(slot)) for slot in slots]

        def go_back() -> None:
            for slot, model in zip(slots, before, strict=True):
                self._set(slot, model)

        return go_back

    def move(self, source: int, target: int) -> None:
        self._models[target] = self._models[source]

    def free(self, slots: range) -> None:
        del self._models[slots.start :]

    def _slots_of(self, part: Groups) -> Iterable[tuple[Index, int]]:
        for g, slot in enumerate(part.slots):
            yield part.order[part.starts[g] : part.starts[g + 1]], int(slot)

    def _model(self, slot: int) -> Estimator:
        kept = self._models[slot] if slot >= 0 else self._template.model
        return self._template.after(*kept) if isinstance(kept, FirstRows) else kept

    def _keep(self, slot: int, model: Estimator, X: Matrix, y: Array) -> None:
        """Put a model that has just learned these rows into its slot, or the rows where there are few."""
        kept = self._models[slot]
        if isinstance(kept, FirstRows):
            few = self._few(len(kept.X) + len(X))
            targets = np.concatenate((kept.y, y)) if len(kept.y) else y
            self._models[slot] = FirstRows(kept.key, np.vstack((kept.X, X)), targets) if few else model

    def _set(self, slot: int, model: Estimator | FirstRows) -> None:
        if slot == len(self._models):
            self._models.append(model)
        else:
            self._models[slot] = model
