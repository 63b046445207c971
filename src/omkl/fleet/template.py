"""What all keys share, and how a key's model is made of it, packed and unpacked.

The problem (frequencies, graph) is drawn from the seed once and compiled once. A key adds its state,
its scaling and its tape, which is a pure function of (seed, key): the same key gets the same model in
every process, whatever other keys there are.
"""

import copy
import hashlib
import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from omkl import persist
from omkl.arrays import Matrix
from omkl.errors import ModelFileError
from omkl.estimators import files, sklearn
from omkl.estimators.core import LabelCore
from omkl.features import generator

Key = str | int


def tape(seed: int, key: Key) -> np.random.Generator:
    """The Generator that draws for a key; 1 and "1" are two keys.

    >>> [round(tape(0, key).random(), 3) for key in (1, "1", 1)]
    [0.247, 0.754, 0.247]
    """
    return generator(seed, f"key {type(key).__name__} {key}")


def checked_learner(learner: Any) -> Any:
    """A new, unfitted copy of the estimator that every key gets one of."""
    if not isinstance(learner, sklearn.ESTIMATORS):
        names = ", ".join(kind.__name__ for kind in sklearn.ESTIMATORS)
        raise TypeError(f"learner must be an estimator of omkl's scikit-learn door ({names}), got {learner!r}")
    return clone(learner)


def checked_classes(learner: Any, classes: Any) -> NDArray[Any] | None:
    """The labels that may come, sorted; None for a number."""
    if not isinstance(learner, sklearn.Classifying):
        if classes is not None:
            raise ValueError(f"classes are for classifiers, got {classes!r} for {type(learner).__name__}")
        return None
    if classes is None or len(classes) == 0:
        raise ValueError("classes must be given for a classifier: all the labels that may come")
    return np.unique(np.asarray(classes))


class Learned(NamedTuple):
    """What one key has become, and the mark of the mould it fits."""

    mark: str
    body: Any
    arrays: persist.Arrays


class Mould:
    """The model at its start, in as many copies as there are keys.

    Parameters
    ----------
    model
        An estimator that knows its features and has learned nothing.
    """

    def __init__(self, model: Any) -> None:
        self.model = model
        self.core = model.core_
        self.seed: int = self.core.seed
        self.classifies = isinstance(model, sklearn.Classifying)
        self._mark = ""

    @classmethod
    def make(
        cls, learner: Any, seed: int, d: int, names: Sequence[str] | None, classes: NDArray[Any] | None
    ) -> "Mould":
        model = clone(learner).set_params(random_state=seed)
        model.n_features_in_ = d
        if names is not None:
            model.feature_names_in_ = np.array(names, dtype=object)
        if classes is not None:
            model.classes_ = classes
        model.core_ = model._new_core()
        return cls(model)

    @property
    def mark(self) -> str:
        """What tells moulds apart: the learner, its parameters, the seed, the features, the labels."""
        if not self._mark:
            body, _ = sklearn.encode(self.model, compact=True)
            text = json.dumps(body, sort_keys=True).encode()
            self._mark = hashlib.blake2b(text, digest_size=16).hexdigest()
        return self._mark

    def fresh(self, key: Key) -> Any:
        """The key's model before its first row."""
        return self.around(self.core.anew(tape(self.seed, key)))

    def around(self, core: Any) -> Any:
        """An estimator on this core."""
        model = copy.copy(self.model)
        model.core_ = core
        return model

    def learn(self, model: Any, X: Matrix, y: NDArray[Any]) -> NDArray[Any]:
        """What the model said of each row before it learned it; rows and targets are checked already."""
        said: NDArray[Any]
        if self.classifies:
            said = model._choose(model._sorted(model.core_.run(X, y.tolist())))
        else:
            said = model.core_.run(X, y)
        return said

    def predict(self, model: Any, X: Matrix) -> NDArray[Any]:
        core = model.core_
        said: NDArray[Any]
        if self.classifies:
            said = model._choose(model._sorted(core.scores(X) if isinstance(core, LabelCore) else core.chances(X)))
        else:
            said = core.predict(X)
        return said

    # What a key has become, without what it shares

    def pack(self, model: Any) -> bytes:
        """A model of this mould as bytes, always the same for the same model."""
        return persist.to_bytes(self.learned(model.core_))

    def unpack(self, data: bytes) -> Any:
        """The model that `pack` was given."""
        kept = persist.from_bytes(data)
        if not isinstance(kept, Learned):
            raise ModelFileError("these bytes are a model of their own, not a key of a fleet; use from_bytes")
        return self.around(self.core_of(kept))

    def learned(self, core: Any) -> Learned:
        arrays: persist.Arrays = {}
        return Learned(self.mark, files.encode_learned(core, arrays), arrays)

    def core_of(self, kept: Learned) -> Any:
        persist.demand(
            kept.mark == self.mark,
            "this key was learned with another learner, other parameters, features or labels, or another seed; "
            "start anew, or give the fleet what it had then",
        )
        core, problem, compiled = copy.copy(self.core), self.core.online.problem, self.core.online.compiled
        return files.decode_learned(core, problem, compiled, kept.body, kept.arrays)


def _encode(kept: Learned, compact: bool) -> tuple[Any, persist.Arrays]:
    return {"mark": kept.mark, "learned": kept.body}, kept.arrays


def _decode(body: Any, arrays: persist.Arrays) -> Learned:
    return Learned(body["mark"], body["learned"], arrays)


persist.register("fleet-key", persist.Codec((Learned,), _encode, _decode))
