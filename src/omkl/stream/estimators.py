"""Models of the command line as estimators, and estimators as models of the command line."""

import copy
import warnings
from collections.abc import Hashable
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np

from omkl import algorithms
from omkl.encoder import Encoder
from omkl.encoder.cells import digits
from omkl.estimators.core import Core, LabelCore
from omkl.estimators.cores import AnyCore, core_of
from omkl.estimators.outputs import OutputsCore
from omkl.notices import Notices
from omkl.persist import Json
from omkl.stream.learner import SingleModel, new_learner
from omkl.stream.loaded import TableModel
from omkl.stream.model import StreamModel
from omkl.stream.prepare import Preparer
from omkl.stream.raw import DataError
from omkl.stream.targets import Target

if TYPE_CHECKING:
    from omkl.estimators.sklearn.base import Estimator


def to_estimator(model: StreamModel) -> "Estimator | TableModel":
    """The estimator, of scikit-learn's API and with river's methods, that goes on from where the model is.

    No estimator stands for a model per key, or for one with lags.
    """
    if model.preparer.lagged is not None or not isinstance(model.learner, SingleModel) or model.learner.core is None:
        return TableModel(model)
    core = model.learner.core
    if len(model.waiting):
        warnings.warn(
            f"{len(model.waiting)} rows wait for their target in this model; omkl learn can still learn them, the "
            "estimator does not have them",
            stacklevel=4,
        )
    estimator = model.learner.declaration.estimator()
    estimator.set_params(random_state=model.seed)
    core.encoder = model.encoder
    estimator.take_core(core)
    estimator.target_name_ = model.target
    return estimator


def is_estimator(found: object) -> bool:
    """Whether a file held an estimator of either API."""
    return isinstance(getattr(found, "task", None), str)


def of_estimator(estimator: object, target: str | None, where: str) -> StreamModel:
    """An estimator of either API as a model that reads files."""
    core = core_of(estimator)
    if core is None:
        raise DataError(f"{where}: a {type(estimator).__name__} that has learned nothing; fit it first")
    if isinstance(core, OutputsCore):
        raise DataError(
            f"{where}: it has {len(core.outputs)} targets, and the command line has one; use it in Python, or save an "
            "estimator for each target"
        )
    core = copy.deepcopy(core)
    notices = Notices()
    name = target or getattr(estimator, "target_name_", None)
    encoder = core.encoder or Encoder.of_numbers([str(name) for name in _columns(estimator, core)], notices)
    if name in encoder.columns:
        raise DataError(f"{where}: {name!r} is a column that it learned from, not the target; name another one")
    encoder.notify = notices
    core.columns, core.encoder = core.columns.as_text(), None
    _with_text_labels(core, where)
    preparer = Preparer(Target(name or "target", core.task, notices), notices)
    preparer.encoder = encoder
    model = StreamModel(preparer, core.learner, core.seed, _parameters(estimator, core))
    learner = new_learner(core.learner, core.task, core.seed, False, notices, model.parameters)
    assert isinstance(learner, SingleModel)
    learner.take_core(core)
    model.learner, model.learned = learner, core.online.t
    preparer.target.labels = set(learner.labels)
    return model


def _columns(estimator: object, core: Core) -> list[Hashable]:
    """The columns of a core of numbers, in the order of its features."""
    names = core.columns.own
    by_position = names == tuple(str(k) for k in range(len(names)))
    given = getattr(estimator, "feature_names_in_", None)
    return list(names if given is None or not by_position else given)


def _with_text_labels(core: AnyCore, where: str) -> None:
    """Labels as they are written in files."""
    if not core.labels:
        return
    texts = [_written(label) for label in core.labels]
    if len(set(texts)) < len(texts):
        raise DataError(f"{where}: its labels are not different when they are written: {core.labels}")
    if isinstance(core, LabelCore):
        core.class_weights = core.class_weights.renamed(dict(zip(core.labels, texts, strict=True)))
    core.labels[:] = texts


def _written(label: Hashable) -> str:
    if isinstance(label, bool):
        return "true" if label else "false"
    return str(digits(label)) if isinstance(label, float) else str(label)


def _parameters(estimator: Any, core: Core) -> dict[str, Json]:
    """Parameters other than their defaults, as far as files can hold them."""
    chosen = {f.name: (getattr(estimator, f.name), f.default) for f in fields(algorithms.get(core.learner).parameters)}
    out: dict[str, Json] = {
        name: value for name, (value, default) in chosen.items()
        if isinstance(value, (bool, int, float, str)) and value != default and np.all(value == value)
    }  # fmt: skip
    if isinstance(core, LabelCore) and core.class_weights.given is not None:
        out["class_weight"] = core.class_weights.given
    return out
