"""scikit-learn estimators in model files."""

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np

from omkl import persist, validation
from omkl.algorithms.base import Task
from omkl.arrays import Array
from omkl.estimators import files
from omkl.estimators.core import LabelCore
from omkl.estimators.outputs import OutputsCore
from omkl.estimators.sklearn import estimators
from omkl.estimators.sklearn.base import Estimator
from omkl.features import column_names
from omkl.persist import claims

LARGEST_LABELS = 2**26  # bytes of an array of labels; in one of strings all are as long as the longest

ESTIMATORS: dict[str, type[Estimator]] = {
    name: kind for name, kind in vars(estimators).items()
    if isinstance(kind, type) and issubclass(kind, Estimator) and kind.__module__ == estimators.__name__
}  # fmt: skip


def estimator_class(parameters: type, task: Task) -> type[Estimator]:
    """The estimator for a task with these parameters."""
    return next(kind for kind in ESTIMATORS.values() if issubclass(kind, parameters) and kind.task == task)


def check_labels(labels: Sequence[object], dtype: np.dtype[Any]) -> None:
    """Labels can be saved, and as an array of this type they take little memory."""
    for label in labels:
        validation.label(label)
    if dtype.kind not in "biufUO" or len(labels) * dtype.itemsize > LARGEST_LABELS:
        raise ValueError(
            f"labels must be an array of numbers, strings, booleans or objects of at most {LARGEST_LABELS} bytes, got "
            f"{len(labels)} of type {dtype}; convert or shorten them"
        )


def decode_labels(labels: persist.Json, dtype: persist.Json) -> Array:
    """An array of labels as it was before it was saved."""
    persist.demand(isinstance(labels, list), "labels are no list")
    check_labels(labels, np.dtype(dtype))
    found = np.array(labels, dtype=np.dtype(dtype))
    persist.demand(found.tolist() == labels, "labels differ from those of their type")
    sorted_once = np.array_equal(np.unique(found), found)
    persist.demand(sorted_once, "labels are not sorted, or come twice")
    return found


def require_labels(model: Estimator, core: LabelCore) -> None:
    """The labels that a core knows are labels of the estimator."""
    classes = model.classes_.tolist()
    persist.demand(set(core.labels) <= set(classes), "labels differ")
    persist.demand(core.most_labels in (None, len(classes)), "labels differ in number")


def encode(model: Estimator, compact: bool) -> tuple[persist.Json, persist.Arrays]:
    model = copy.deepcopy(model)  # one moment, whatever other threads learn meanwhile
    arrays: persist.Arrays = {}
    core = getattr(model, "core_", None)
    files.check_parameters(model, model.task, core)
    body = {
        "class": type(model).__name__,
        "parameters": files.encode_parameters(
            model.get_params(deep=False), "random_state", None if core is None else core.seed
        ),
        "core": files.encode_core(core, arrays, compact),
        "fitted": {},
    }
    if core is not None:
        body["fitted"] = {"n_features_in_": model.n_features_in_}
        if hasattr(model, "target_name_"):
            body["fitted"]["target_name_"] = persist.plain(model.target_name_)
        if hasattr(model, "feature_names_in_"):
            body["fitted"]["feature_names_in_"] = [persist.plain(name) for name in model.feature_names_in_]
        if hasattr(model, "classes_"):
            check_labels(model.classes_.tolist(), model.classes_.dtype)
            body["fitted"]["classes_"] = [persist.plain(label) for label in model.classes_]
            body["fitted"]["dtype"] = model.classes_.dtype.str
    return body, arrays


def decode(body: persist.Json, arrays: persist.Arrays) -> Estimator:
    kind = ESTIMATORS[body["class"]]
    model = kind(**files.decode_parameters(kind, body["parameters"], "random_state"))
    core = files.decode_core(body["core"], arrays)
    files.check_parameters(model, model.task, core)
    if core is None:
        return model
    fitted = dict(body["fitted"])
    persist.demand(core.task == kind.task, "the estimator and what it learned are for different tasks")
    files.require_class(kind, core)
    columns = len(core.names) if core.encoder is None else len(core.encoder.columns)
    persist.demand(fitted["n_features_in_"] == columns, "features and problem differ in number")
    model.n_features_in_ = fitted["n_features_in_"]
    if "feature_names_in_" in fitted:
        names = np.array(fitted["feature_names_in_"], dtype=object)
        persist.demand(names.shape == (model.n_features_in_,), "features and names differ in number")
        model.feature_names_in_ = names
    by_position = core.encoder is None and core.names == tuple(column_names(columns))
    known = set(core.names if core.encoder is None else core.encoder.columns)
    persist.demand(by_position or known == set(fitted.get("feature_names_in_", ())), "features and names differ")
    if "target_name_" in fitted:
        model.target_name_ = claims.string(fitted["target_name_"], "the target")
    persist.demand(("classes_" in fitted) == isinstance(core, LabelCore), "labels are there for classification alone")
    if isinstance(core, OutputsCore):
        model.target_names_ = list(core.outputs)
    if isinstance(core, LabelCore):
        model.classes_ = decode_labels(fitted["classes_"], fitted["dtype"])
        require_labels(model, core)
    model.core_ = core
    return model


persist.register("sklearn", persist.Codec(tuple(ESTIMATORS.values()), encode, decode))
