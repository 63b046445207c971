"""What learns the rows of a stream with a model for each key."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from omkl import persist
from omkl.arrays import Array, Mask, Matrix, Vector
from omkl.encoder.columns import Encoded
from omkl.estimators.core import Core
from omkl.estimators.declaration import Declaration
from omkl.kernels import Kernel
from omkl.notices import Notify
from omkl.persist import Arrays, Json, claims, demand
from omkl.stream.baselines import Typical
from omkl.stream.memory import available_memory, check_memory
from omkl.stream.predictions import Outputs, Targets
from omkl.stream.raw import DataError

if TYPE_CHECKING:
    from omkl.fleet import Fleet, PooledFleet


class ModelPerKey:
    """A model for each key, or one for all with corrections for each; features and labels are of the first batch."""

    budget = None
    kernels: tuple[Kernel, ...] = ()
    can_learn = True
    observable = False

    def __init__(self, declaration: Declaration, seed: int, notify: Notify, pooled: bool = False) -> None:
        self.declaration, self.seed, self.notify, self.pooled = declaration, seed, notify, pooled
        self.names: tuple[str, ...] = ()
        self.fleet: Fleet | PooledFleet | None = None
        self._bytes: int | None = None  # of all models, about; None before the first batch
        self.typical: Typical | None = None  # of the targets of all keys: what a key without a model is predicted by

    @property
    def labels(self) -> tuple[str, ...]:
        return () if self.fleet is None or self.fleet.classes is None else tuple(self.fleet.classes.tolist())

    @property
    def takes_new_features(self) -> bool:
        return self.fleet is None

    @property
    def n_keys(self) -> int | None:
        return None if self.fleet is None else len(self.fleet)

    def start_batch(self, encoded: Encoded, y: Targets) -> dict[int, list[str]]:
        if self.fleet is None:
            from omkl.fleet import Fleet, PooledFleet  # scikit-learn takes a second to load; one model does without

            classes = None
            if self.pooled and self.declaration.task == "classification":
                raise DataError("--pooled predicts numbers; leave it out for labels, or --task regression if they are "
                                "numbers")  # fmt: skip
            if self.declaration.task == "classification":
                classes = sorted({label for label in y if label is not None})
                if len(classes) < 2:
                    raise DataError("the target has fewer than two labels in the first rows; --every makes the first "
                                    "piece longer")  # fmt: skip
            self.names = tuple(sorted(encoded.features))
            learner = self.declaration.estimator()
            if self.pooled:
                self.fleet = PooledFleet(pool=learner, seed=self.seed)
            else:
                self.fleet = Fleet(learner, seed=self.seed, classes=classes)
                self.typical = Typical(self.labels)
        return {}

    def add_features(self, names: list[str], row: Sequence[str], fills: Mapping[str, float]) -> None:
        """All of them are known from the first batch on."""

    def learnable(self, y: Targets) -> Mask | None:
        if self.declaration.task == "regression":
            return None
        known = set(self.labels)
        if unknown := {label for label in y if label is not None} - known:
            self.notify("new label", f"label {min(unknown)!r} was not among the first rows; such rows are not learned: "
                        "the labels of --by are those of the first piece (--every makes it longer)")  # fmt: skip
        return np.array([label in known for label in y], dtype=bool)

    def without_model(self, keys: list[str] | None, learned: bool = False) -> list[int]:
        if self.pooled or self.fleet is None or keys is None:  # a pool predicts any key
            return []
        rows = [row for row, key in enumerate(keys) if key not in self.fleet]
        return sorted({keys[row]: row for row in reversed(rows)}.values()) if learned else rows

    def learn(self, X: Matrix, y: Targets, keys: list[str] | None, coverages: tuple[float, ...]) -> Outputs:
        assert self.fleet is not None
        assert keys is not None
        self._check_memory(self.fleet, keys, X.shape[1])
        return self._outputs(self.fleet.learn_rows(keys, X, y, gaps=True))

    def _check_memory(self, fleet: "Fleet | PooledFleet", keys: list[str], n_features: int) -> None:
        before = fleet.nbytes if self._bytes is None else self._bytes
        after = before + fleet.growth(keys, n_features)
        if after > before:
            n_keys = len(fleet) + sum(key not in fleet for key in set(keys))
            check_memory(before, after, n_keys, self.notify, available_memory, fleet.copied_to_save(n_features))
        self._bytes = after

    def predict(self, X: Matrix, keys: list[str] | None, coverages: tuple[float, ...]) -> Outputs:
        assert self.fleet is not None
        assert keys is not None
        if len(self.fleet) == 0:
            number = self.declaration.task == "regression"
            return Outputs(np.zeros(len(X)) if number else np.full(len(X), None, dtype=object))
        return self._outputs(self.fleet.predict_rows(keys, X, gaps=True))

    def _outputs(self, y_pred: Array) -> Outputs:
        number = self.declaration.task == "regression"
        return Outputs(y_pred.astype(np.float64, copy=False) if number else y_pred.astype(object))

    def scale(self, X: Matrix) -> Vector:
        return np.zeros(len(X))

    def weights(self) -> Vector:
        return np.empty(0)

    def observed(self) -> tuple[Vector, None]:
        return self.weights(), None

    def first_core(self) -> Core | None:
        if not self.fleet:
            return None
        if self.pooled:
            pool: Core = self.fleet.pool.core_  # type: ignore[union-attr]  # a pooled fleet
            return pool
        core: Core = self.fleet[next(iter(self.fleet))].core_  # type: ignore[index]  # a fleet
        return core

    def facts(self) -> dict[str, Json]:
        if not self.fleet:
            return {"keys": 0}
        keys = len(self.fleet)
        of = {"pooled": True} if self.pooled else {"of_key": next(iter(self.fleet))}
        return {"keys": keys, "bytes_per_key": self.fleet.nbytes // keys} | of

    def encode(self, arrays: Arrays) -> dict[str, Json]:
        fleet = None if self.fleet is None else persist.encode_part(self.fleet, arrays, "fleet:")
        typical = None if self.typical is None else self.typical.sums.tolist()
        return {"core": None, "names": list(self.names), "fleet": fleet, "typical": typical}

    def decode(self, body: Json, arrays: Arrays) -> None:
        kind = "pooled-fleet" if self.pooled else "fleet"
        demand(body["fleet"] is not None and body["fleet"]["kind"] == kind, "no fleet")
        self.names = tuple(str(name) for name in body["names"])
        demand(body["core"] is None, "a model per key, and one for all")
        self.fleet = fleet = persist.decode_part(body["fleet"], arrays, "fleet:")
        learner = fleet.pool if self.pooled else fleet.learner
        demand(type(learner) is type(self.declaration.estimator()), "the learners of stream and fleet differ")
        demand(all(type(label) is str for label in self.labels), "labels must be text")
        part = body["fleet"]["body"]["fleet"] if self.pooled else body["fleet"]
        core = part["body"]["start"]["core"]
        demand(
            core is None or len(core["names"]) == len(self.names), "names and features of the fleet differ in number"
        )
        if self.pooled:
            return
        self.typical = Typical(self.labels)
        sums = body.get("typical")  # older files have none
        if sums is not None:
            demand(len(sums) == len(self.typical.sums), "the sums of the targets do not fit")
            self.typical.sums[:] = [claims.number(value, "the sum of the targets") for value in sums]
            counts = self.typical.sums if self.labels else self.typical.sums[:1]
            demand(bool((counts >= 0).all()), "the number of targets must be a count")
