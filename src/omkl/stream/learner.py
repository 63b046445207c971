"""What learns the rows of a stream: one model, or one for each key; `new_learner` alone knows which of the two."""

from dataclasses import fields
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from omkl import algorithms, persist
from omkl.algorithms.base import Task
from omkl.arrays import Array, Mask, Matrix, Vector
from omkl.encoder.columns import Encoded
from omkl.estimators import files
from omkl.estimators.core import Core, LabelCore
from omkl.estimators.cores import AnyCore
from omkl.estimators.declaration import Declaration
from omkl.estimators.rows import in_order
from omkl.kernels import Kernel
from omkl.notices import Notify
from omkl.persist import Arrays, Json, demand
from omkl.stream.memory import available_memory, check_memory
from omkl.stream.names import listed, suggestion
from omkl.stream.predictions import Outputs, Targets, as_numbers, label_outputs
from omkl.stream.raw import DataError

if TYPE_CHECKING:
    from omkl.fleet import Fleet

BUDGET = 500  # rows that a single model stores, if it stores rows, so that it neither grows nor slows down for ever


class Incumbent(NamedTuple):
    """The experts of GraphMKL that predict at present."""

    start: int  # the round in which they began to learn
    age: int  # rounds since then


class Learner(Protocol):
    """Predicts and learns rows of features."""

    @property
    def names(self) -> tuple[str, ...]:
        """The features, in the order of the columns of X."""

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels known so far."""

    @property
    def takes_new_features(self) -> bool:
        """Whether features that come later can be added."""

    @property
    def can_learn(self) -> bool:
        """Whether there is anything to learn with: without a feature there is no model yet."""

    @property
    def observable(self) -> bool:
        """Whether there is one model whose weights can be followed."""

    @property
    def budget(self) -> int | None:
        """How many rows are stored at most; None where none are."""

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The dictionary."""

    @property
    def n_keys(self) -> int | None:
        """How many keys have a model; None where there is one model for all rows."""

    def start_batch(self, encoded: Encoded, y: Targets) -> dict[int, list[str]]:
        """Get ready for a batch; returns the features to add, by the row of the batch before which to add them."""

    def add_features(self, names: list[str]) -> None:
        """Make features known."""

    def learnable(self, y: Targets) -> Mask | None:
        """Rows whose target can be learned; None for all."""

    def learn(self, X: Matrix, y: Targets, keys: list[str] | None, coverages: tuple[float, ...]) -> Outputs:
        """Predict each row, with intervals of these coverages if there are any, then learn it."""

    def predict(self, X: Matrix, keys: list[str] | None, coverages: tuple[float, ...]) -> Outputs:
        """Predict rows; nothing is learned."""

    def scale(self, X: Matrix) -> Vector:
        """Half widths of the intervals that hold 68 % of the targets; 0 where there are none."""

    def weights(self) -> Vector:
        """The weight of every kernel, averaged over labels; empty where there is no single model."""

    def incumbent(self) -> Incumbent | None:
        """The experts in use, where the algorithm replaces them when the stream changes."""

    def first_core(self) -> Core | None:
        """The core of the model, or of the model of the first key."""

    def facts(self) -> dict[str, Json]:
        """What there is to say about a learner of several models, as JSON."""

    def encode(self, arrays: Arrays) -> dict[str, Json]:
        """The learner's part of a model file."""

    def decode(self, body: Json, arrays: Arrays) -> None:
        """Go on from what `encode` returned."""


def new_learner(
    algorithm: str, task: Task, seed: int, by_key: bool, notify: Notify, parameters: dict[str, Json]
) -> Learner:
    """A learner that has learned nothing, for all rows or for each key."""
    if by_key:
        return ModelPerKey(Declaration(algorithm, task, parameters), seed, notify)
    budget = {"budget": BUDGET} if "budget" in parameter_names(algorithm) else {}
    return SingleModel(Declaration(algorithm, task, {**budget, **parameters}), seed)


def parameter_names(algorithm: str) -> tuple[str, ...]:
    """The parameters of a learner that a user may choose."""
    return tuple(field.name for field in fields(algorithms.get(algorithm).parameters))


def check_parameters(algorithm: str, task: Task | None, parameters: dict[str, Json]) -> None:
    """Refuse parameters that the learner does not have, or that it cannot work with."""
    known = parameter_names(algorithm)
    for name in parameters:
        if name not in known:
            raise ValueError(f"{algorithm} has no parameter {name!r}{suggestion(name, known)}; it has {listed(known)}")
    tasks = [task] if task is not None else algorithms.get(algorithm).tasks
    for possible in tasks:
        Declaration(algorithm, possible, parameters).settings()


class SingleModel:
    """One model for all rows; it starts with the first feature."""

    takes_new_features = observable = True
    n_keys = None

    def __init__(self, declaration: Declaration, seed: int) -> None:
        self.declaration, self.seed = declaration, seed
        self.core: AnyCore | None = None

    @property
    def names(self) -> tuple[str, ...]:
        return () if self.core is None else tuple(str(name) for name in self.core.names)

    @property
    def labels(self) -> tuple[str, ...]:
        return () if self.core is None else tuple(str(label) for label in self.core.labels)

    @property
    def can_learn(self) -> bool:
        return self.core is not None

    @property
    def budget(self) -> int | None:
        return None if self.core is None else self.core.online.shape.budget

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        return () if self.core is None else tuple(self.core.settings.all_kernels)

    def start_batch(self, encoded: Encoded, y: Targets) -> dict[int, list[str]]:
        arrivals: dict[int, list[str]] = {}
        for name, at in encoded.arrivals.items():
            arrivals.setdefault(at, []).append(name)
        return arrivals

    def add_features(self, names: list[str]) -> None:
        if self.core is not None:
            self.core.add_features(names)
        elif names:
            self.core = self.declaration.core(self.seed, in_order(set(names)))

    def learnable(self, y: Targets) -> Mask | None:
        return None

    def learn(self, X: Matrix, y: Targets, keys: list[str] | None, coverages: tuple[float, ...]) -> Outputs:
        core = self.core
        assert core is not None
        if isinstance(core, LabelCore):
            return label_outputs(core.learn_rows_probabilities(X, y.tolist()), self.labels)
        numbers = as_numbers(y)
        if not core.intervals:
            return Outputs(core.learn_rows(X, numbers))
        return Outputs(*core.learn_rows_intervals(X, numbers, coverages))

    def predict(self, X: Matrix, keys: list[str] | None, coverages: tuple[float, ...]) -> Outputs:
        core = self.core
        if core is None:
            number = self.declaration.task == "regression"
            return Outputs(np.zeros(len(X))) if number else label_outputs(np.empty((len(X), 0)), ())
        if isinstance(core, LabelCore):
            return label_outputs(core.probabilities(X), self.labels)
        if not core.intervals:
            return Outputs(core.predict(X))
        return Outputs(*core.predict_intervals(X, coverages))

    def scale(self, X: Matrix) -> Vector:
        core = self.core
        if core is None or isinstance(core, LabelCore) or not core.intervals:
            return np.zeros(len(X))
        return core.predict_std(X)[:, 1]

    def weights(self) -> Vector:
        weights: Vector = np.empty(0) if self.core is None else self.core.kernel_weights().mean(axis=0)
        return weights

    def incumbent(self) -> Incumbent | None:
        if self.core is None or (start := self.core.online.started) is None:
            return None
        return Incumbent(start, self.core.online.t - start)

    def first_core(self) -> Core | None:
        return self.core

    def facts(self) -> dict[str, Json]:
        return {}

    def encode(self, arrays: Arrays) -> dict[str, Json]:
        return {"core": files.encode_core(self.core, arrays, compact=False), "names": [], "fleet": None}

    def decode(self, body: Json, arrays: Arrays) -> None:
        core = files.decode_core(body["core"], arrays)
        demand(core is not None and body["fleet"] is None, "no model")
        if core is not None:
            same = core.task == self.declaration.task and core.learner == self.declaration.algorithm
            demand(same, "the task or the learner of the stream and of its model differ")
            demand(all(type(word) is str for word in (*core.names, *core.labels)), "names and labels must be text")
        self.core = core


class ModelPerKey:
    """A model for each key. Features and labels are those of the first batch."""

    budget = None
    kernels: tuple[Kernel, ...] = ()
    can_learn = True
    observable = False

    def __init__(self, declaration: Declaration, seed: int, notify: Notify) -> None:
        self.declaration, self.seed, self.notify = declaration, seed, notify
        self.names: tuple[str, ...] = ()
        self.fleet: Fleet | None = None
        self._bytes: int | None = None  # of all models, about; None before the first batch

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
            from omkl.fleet import Fleet  # scikit-learn takes a second to load, and a single model does without

            classes = None
            if self.declaration.task == "classification":
                classes = sorted({label for label in y if label is not None})
                if len(classes) < 2:
                    raise DataError("the target has fewer than two labels in the first rows; --every makes the first "
                                    "piece longer")  # fmt: skip
            self.names = tuple(sorted(encoded.features))
            self.fleet = Fleet(self.declaration.estimator(), seed=self.seed, classes=classes)
        return {}

    def add_features(self, names: list[str]) -> None:
        """All of them are known from the first batch on."""

    def learnable(self, y: Targets) -> Mask | None:
        if self.declaration.task == "regression":
            return None
        known = set(self.labels)
        if unknown := {label for label in y if label is not None} - known:
            self.notify("new label", f"label {min(unknown)!r} was not among the first rows; such rows are not learned: "
                        "the labels of --by are those of the first piece (--every makes it longer)")  # fmt: skip
        return np.array([label in known for label in y], dtype=bool)

    def learn(self, X: Matrix, y: Targets, keys: list[str] | None, coverages: tuple[float, ...]) -> Outputs:
        assert self.fleet is not None
        assert keys is not None
        self._check_memory(self.fleet, keys, X.shape[1])
        return self._outputs(self.fleet.learn_rows(keys, X, y, gaps=True))

    def _check_memory(self, fleet: "Fleet", keys: list[str], n_features: int) -> None:
        before = fleet.nbytes if self._bytes is None else self._bytes
        after = before + fleet.growth(keys, n_features)
        if after > before:
            n_keys = len(fleet) + sum(key not in fleet for key in set(keys))
            check_memory(before, after, n_keys, self.notify, available_memory)
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

    def incumbent(self) -> Incumbent | None:
        return None

    def first_core(self) -> Core | None:
        if not self.fleet:
            return None
        return self.fleet[next(iter(self.fleet))].core_

    def facts(self) -> dict[str, Json]:
        if not self.fleet:
            return {"keys": 0}
        keys = len(self.fleet)
        return {"keys": keys, "bytes_per_key": self.fleet.nbytes // keys, "of_key": next(iter(self.fleet))}

    def encode(self, arrays: Arrays) -> dict[str, Json]:
        fleet = None if self.fleet is None else persist.encode_part(self.fleet, arrays, "fleet:")
        return {"core": None, "names": list(self.names), "fleet": fleet}

    def decode(self, body: Json, arrays: Arrays) -> None:
        demand(body["fleet"] is not None and body["fleet"]["kind"] == "fleet", "no fleet")
        self.names = tuple(str(name) for name in body["names"])
        demand(body["core"] is None, "a model per key, and one for all")
        self.fleet = fleet = persist.decode_part(body["fleet"], arrays, "fleet:")
        demand(type(fleet.learner) is type(self.declaration.estimator()), "the learners of stream and fleet differ")
        demand(all(type(label) is str for label in self.labels), "labels must be text")
        core = body["fleet"]["body"]["start"]["core"]
        demand(
            core is None or len(core["names"]) == len(self.names), "names and features of the fleet differ in number"
        )
