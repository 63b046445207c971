"""What learns the rows of a stream: one model, or one for each key; `new_learner` alone knows which of the two."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import NamedTuple, Protocol

import numpy as np

from omkl import algorithms
from omkl.algorithms.base import Task
from omkl.arrays import Mask, Matrix, Vector
from omkl.encoder.columns import Encoded
from omkl.estimators import files
from omkl.estimators.core import Core, LabelCore
from omkl.estimators.cores import AnyCore
from omkl.estimators.declaration import Declaration, for_keys
from omkl.estimators.inputs import NOT_FILLED
from omkl.estimators.outputs import OutputsCore
from omkl.estimators.rows import in_order
from omkl.kernels import Kernel
from omkl.notices import Notify
from omkl.persist import Arrays, Json, claims, demand
from omkl.stream.baselines import Typical
from omkl.stream.keyed import ModelPerKey
from omkl.stream.names import listed, suggestion
from omkl.stream.predictions import Outputs, Targets, as_numbers, label_outputs

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

    @property
    def typical(self) -> Typical | None:
        """What rows of keys without a model are predicted by; None where every row has a model."""

    def without_model(self, keys: list[str] | None, learned: bool = False) -> list[int]:
        """The rows of such keys, and if they are `learned` one after the other only the first of each key."""

    def start_batch(self, encoded: Encoded, y: Targets) -> dict[int, list[str]]:
        """Get ready for a batch; returns the features to add, by the row of the batch before which to add them."""

    def add_features(self, names: list[str], row: Sequence[str], fills: Mapping[str, float]) -> None:
        """Make features known; `row` has those of its row that are known, `fills` what they are where nothing is."""

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

    def observed(self) -> tuple[Vector, Incumbent | None]:
        """The same weights, and the experts in use where the algorithm replaces them when the stream changes."""

    def first_core(self) -> Core | None:
        """The core of the model, or of the model of the first key."""

    def facts(self) -> dict[str, Json]:
        """What there is to say about a learner of several models, as JSON."""

    def encode(self, arrays: Arrays) -> dict[str, Json]:
        """The learner's part of a model file."""

    def decode(self, body: Json, arrays: Arrays) -> None:
        """Go on from what `encode` returned."""


def new_learner(
    algorithm: str,
    task: Task,
    seed: int,
    by_key: bool,
    notify: Notify,
    parameters: dict[str, Json],
    pooled: bool = False,
) -> Learner:
    """A learner that has learned nothing, for all rows, for each key, or for all with corrections for each key."""
    record = algorithms.get(algorithm)
    if by_key:
        # the learner of a pool is one for all keys
        declared = Declaration(algorithm, task, parameters) if pooled else for_keys(algorithm, task, parameters)
        return ModelPerKey(declared, seed, notify, pooled)
    stored = {"budget": BUDGET} if record.native.grows else {}
    return SingleModel(Declaration(algorithm, task, {**stored, **parameters}), seed)


def parameter_names(algorithm: str) -> tuple[str, ...]:
    """The parameters of a learner that a user may choose."""
    record = algorithms.get(algorithm)
    of_labels = ("class_weight",) if "classification" in record.tasks else ()
    return (*(field.name for field in fields(record.parameters)), *of_labels)


def check_parameters(algorithm: str, task: Task | None, parameters: dict[str, Json]) -> None:
    """Refuse parameters that the learner does not have, or that it cannot work with."""
    known = parameter_names(algorithm)
    for name in parameters:
        if name not in known:
            near = suggestion(name, known)
            raise ValueError(
                f"{algorithm} has no parameter {name!r}{near}{' It' if near else '; it'} has {listed(known)}"
            )
    tasks = [task] if task is not None else algorithms.get(algorithm).tasks
    if task is None and parameters.get("class_weight") is not None:  # refused later, should the target be a number
        tasks = ["classification"]
    for possible in tasks:
        Declaration(algorithm, possible, parameters).settings()


class SingleModel:
    """One model for all rows; it starts with the first feature."""

    takes_new_features = observable = True
    n_keys = typical = None

    def __init__(self, declaration: Declaration, seed: int) -> None:
        self.declaration, self.seed = declaration, seed
        self.core: AnyCore | None = None
        self.names: tuple[str, ...] = ()  # in the order in which they came

    def take_core(self, core: AnyCore, names: Iterable[str] = ()) -> None:
        """Go on from a core; `names` are the features of a row, if these are not the core's."""
        self.core, self.names = core, tuple(names) or tuple(str(name) for name in core.columns.own)

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

    def add_features(self, names: list[str], row: Sequence[str] = (), fills: Mapping[str, float] = NOT_FILLED) -> None:
        new = [str(name) for name in in_order(set(names) - set(self.names))]
        if self.core is not None:
            self.core.add_features([*row, *names], fills)
        elif new:
            self.core = self.declaration.core(self.seed, new)
        self.names = (*self.names, *new)

    def learnable(self, y: Targets) -> Mask | None:
        return None

    def without_model(self, keys: list[str] | None, learned: bool = False) -> list[int]:
        return []

    def learn(self, X: Matrix, y: Targets, keys: list[str] | None, coverages: tuple[float, ...]) -> Outputs:
        core = self.core
        assert core is not None
        X = core.rows_of(self.names, X)
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
        X = core.rows_of(self.names, X)
        if isinstance(core, LabelCore):
            return label_outputs(core.probabilities(X), self.labels)
        if not core.intervals:
            return Outputs(core.predict(X))
        return Outputs(*core.predict_intervals(X, coverages))

    def scale(self, X: Matrix) -> Vector:
        core = self.core
        if core is None or isinstance(core, LabelCore) or not core.intervals:
            return np.zeros(len(X))
        return core.predict_std(core.rows_of(self.names, X))[:, 1]

    def weights(self) -> Vector:
        weights: Vector = np.empty(0) if self.core is None else self.core.kernel_weights().mean(axis=0)
        return weights

    def observed(self) -> tuple[Vector, Incumbent | None]:
        core = self.core
        if core is None or core.online.algorithm.started is None or len(core.predictors) > 1:
            return self.weights(), None
        # at one look, as each gathers the whole state
        kernel_weights, started = core.online.algorithm.kernel_weights, core.online.algorithm.started
        weights, start = core.online.look(lambda *state: (kernel_weights(*state), started(*state)))
        return weights, Incumbent(start, core.online.t - start)

    def first_core(self) -> Core | None:
        return self.core

    def facts(self) -> dict[str, Json]:
        return {}

    def encode(self, arrays: Arrays) -> dict[str, Json]:
        names = [] if self.core is None or self.names == self.core.names else list(self.names)
        core = files.encode_core(self.core, arrays, compact=False)
        return {"core": core, "names": names, "fleet": None, "typical": None}

    def decode(self, body: Json, arrays: Arrays) -> None:
        core = files.decode_core(body["core"], arrays)
        names = claims.strings(body["names"], "the features")
        demand(core is not None and body["fleet"] is None, "no model")
        demand(not isinstance(core, OutputsCore), "a stream has one target")
        if core is not None and not isinstance(core, OutputsCore):
            same = core.task == self.declaration.task and core.learner == self.declaration.algorithm
            demand(same, "the task or the learner of the stream and of its model differ")
            demand(all(type(word) is str for word in (*core.names, *core.labels)), "names and labels must be text")
            same = not names or (len(set(names)) == len(names) and set(names) >= {*core.columns.own})
            demand(same, "the features of the stream and of its model differ")
            self.take_core(core, names)
