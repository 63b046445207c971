"""The model that every key starts from, and how the model of a key is made, packed and unpacked.

The problem (frequencies, graph) is drawn from the seed and compiled once; all keys share it. A key adds its state,
its scaling and its random generator. The generator is a pure function of (seed, key): a key gets the same model in
every process, whatever other keys there are.
"""

import copy
import hashlib
import json
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone, is_classifier

from omkl import algorithms, persist, validation
from omkl.arrays import Array, Matrix
from omkl.errors import ModelFileError
from omkl.estimators import files, sklearn
from omkl.estimators.core import Core, LabelCore
from omkl.estimators.declaration import for_keys
from omkl.estimators.sklearn import unchecked
from omkl.estimators.sklearn.base import Estimator
from omkl.features import generator
from omkl.fleet.inputs import Key


def key_generator(seed: int, key: Key) -> np.random.Generator:
    """The random generator of a key; 1 and "1" are different keys.

    >>> [round(key_generator(0, key).random(), 3) for key in (1, "1", 1)]
    [0.247, 0.754, 0.247]
    """
    return generator(seed, f"key {type(key).__name__} {key}")


def checked_memory(memory: int | None) -> int | None:
    """Bytes, or None for no limit."""
    if memory is not None:
        validation.require_whole("memory", memory)
    return None if memory is None else int(memory)


def checked_learner(learner: Estimator | str, classes: ArrayLike | None = None) -> Estimator:
    """An unfitted copy of the estimator that every key gets one of, or one of the algorithm of this name."""
    if isinstance(learner, str):
        return for_keys(learner, "regression" if classes is None else "classification").estimator()
    if type(learner) not in sklearn.ESTIMATORS.values():  # a subclass could be neither saved nor packed
        names = ", ".join(sklearn.ESTIMATORS)
        raise TypeError(f"learner must be an estimator of omkl's scikit-learn API ({names}), got {learner!r}")
    copied: Estimator = clone(learner)
    return copied


def checked_classes(learner: Estimator, classes: ArrayLike | None) -> Array | None:
    """All labels of a classifier, sorted; None for a regressor."""
    if not is_classifier(learner):
        if classes is not None:
            raise ValueError(f"classes are for classifiers, got {classes!r} for {type(learner).__name__}")
        return None
    labels = np.asarray(() if classes is None else classes)
    if labels.size == 0:
        raise ValueError("classes must be given for a classifier: all the labels that may come")
    for label in labels.tolist():
        validation.label(label)
    return np.unique(labels)


class Learned(NamedTuple):
    """What one key has learned, and the fingerprint of the template that it belongs to."""

    fingerprint: str
    body: persist.Json
    arrays: persist.Arrays


class Template:
    """The model of a key before its first row.

    Parameters
    ----------
    model
        An estimator that knows its features and has learned nothing.
    """

    def __init__(self, model: Estimator) -> None:
        self.model = model
        self.core = model.core_
        self.seed: int = self.core.seed
        self.classifies: bool = is_classifier(model)
        self._fingerprint = ""

    @classmethod
    def make(
        cls, learner: Estimator, seed: int, d: int, names: Sequence[str] | None, classes: Array | None
    ) -> "Template":
        return cls(unchecked.initialised(learner, seed, d, names, classes))

    @property
    def n_features(self) -> int:
        return self.model.n_features_in_

    @property
    def feature_names(self) -> list[str] | None:
        """Names of the features, None where they came as arrays."""
        names = getattr(self.model, "feature_names_in_", None)
        return None if names is None else list(names)

    @property
    def fingerprint(self) -> str:
        """A hash of the learner, its parameters, the seed, the features and the labels."""
        if not self._fingerprint:
            body, _ = sklearn.encode(self.model, compact=True)
            text = json.dumps(as_version_1(body), sort_keys=True).encode()
            self._fingerprint = hashlib.blake2b(text, digest_size=16).hexdigest()
        return self._fingerprint

    def fresh(self, key: Key) -> Estimator:
        """The key's model before its first row."""
        return self.model_with(self.new_core(key_generator(self.seed, key)))

    def after(self, key: Key, X: Matrix, y: Array) -> Estimator:
        """The key's model after these rows, its first."""
        model = self.fresh(key)
        if len(X):
            self.learn(model, X, y)
        return model

    def new_core(self, rng: np.random.Generator) -> Core:
        """A core that has learned nothing, shares the problem and draws its random numbers from `rng`."""
        return self.core.fresh_copy(rng)

    def model_with(self, core: Core) -> Estimator:
        """An estimator with this core."""
        model = copy.copy(self.model)
        model.core_ = core
        return model

    def learn(self, model: Estimator, X: Matrix, y: Array) -> Array:
        """Learn rows that have been validated; returns the prediction of each made before it was learned."""
        return unchecked.predict_then_learn(model, X, y)

    def predict(self, model: Estimator, X: Matrix) -> Array:
        """Predictions for rows that have been validated."""
        return unchecked.predict(model, X)

    # What a key has learned, without what all keys share

    def pack(self, model: Estimator) -> bytes:
        """A model made from this template as bytes, always the same bytes for the same model."""
        return persist.to_bytes(self.learned(model.core_))

    def unpack(self, data: bytes) -> Estimator:
        """The model that was given to `pack`."""
        learned = persist.from_bytes(data)
        if not isinstance(learned, Learned):
            raise ModelFileError("these bytes are a whole model, not a key of a fleet; use from_bytes")
        return self.model_with(self.core_of(learned))

    def learned(self, core: Core) -> Learned:
        arrays: persist.Arrays = {}
        return Learned(self.fingerprint, files.encode_learned(core, arrays), arrays)

    def core_of(self, learned: Learned) -> Core:
        persist.demand(
            learned.fingerprint == self.fingerprint,
            "this key was learned with another learner, other parameters, features or labels, or another seed; "
            "give the fleet those of then, or learn the key again",
        )
        core, problem, compiled = copy.copy(self.core), self.core.online.problem, self.core.online.compiled
        core = files.decode_learned(core, problem, compiled, learned.body, learned.arrays)
        if isinstance(core, LabelCore):
            sklearn.require_labels(self.model, core)
        return core


# Settings that came later, with what was done before
LATER = (("nodes", 1), ("least_q", 0.0), ("least_p", 0.0))


def as_version_1(body: persist.Json) -> persist.Json:
    """The body of an estimator under its first names: keys packed by earlier versions keep their fingerprint.

    A problem is left out where its random features are named by their digest, however large it is, and so are the
    parameters of `fit`, which is not used for keys, and the weights of labels where there are none.
    """
    later = ("task", "problem") if "drawn" in body["core"] else ("task",)
    core = {name: value for name, value in body["core"].items() if name not in later}
    first = {new: old for old, new in algorithms.get(core["learner"]).renamed.items()}

    def renamed(values: dict[str, persist.Json]) -> dict[str, persist.Json]:
        return {first.get(name, name): value for name, value in values.items()}

    parameters = {name: value for name, value in body["parameters"].items() if name not in ("shuffle", "epochs")}
    core["settings"] = dict(core["settings"])
    for values in (parameters, core["settings"]):
        for name in [name for name, value in values.items() if (name, value) in LATER]:
            del values[name]
        if values.get("budget") == "small":  # what there was before there were budgets
            del values["budget"]
            values["evaluate"] = values["evaluate"] or "quarter"
    if parameters.get("class_weight") is None:
        parameters.pop("class_weight", None)
    return body | {"parameters": renamed(parameters), "core": core | {"settings": renamed(core["settings"])}}
