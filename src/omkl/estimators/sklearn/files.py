"""Estimators of the scikit-learn door in model files."""

from typing import Any

import numpy as np

from omkl import persist
from omkl.estimators import files
from omkl.estimators.core import LabelCore
from omkl.estimators.graph_core import GraphLabelCore
from omkl.estimators.sklearn import graph_mkl, paper
from omkl.estimators.sklearn.base import Classifying, Door

ESTIMATORS: tuple[type[Door], ...] = (
    graph_mkl.GraphMKLRegressor, graph_mkl.GraphMKLClassifier,
    paper.SFGMKLRegressor, paper.SFGMKLClassifier, paper.RakerRegressor, paper.RakerClassifier,
    paper.OMKLGFRegressor, paper.OMKLGFClassifier, paper.OMKRRegressor, paper.RFOMKRRegressor,
)  # fmt: skip


def encode(model: Any, compact: bool) -> tuple[Any, persist.Arrays]:
    arrays: persist.Arrays = {}
    core = getattr(model, "core_", None)
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
        if hasattr(model, "feature_names_in_"):
            body["fitted"]["feature_names_in_"] = [persist.plain(name) for name in model.feature_names_in_]
        if hasattr(model, "classes_"):
            body["fitted"]["classes_"] = [persist.plain(label) for label in model.classes_]
            body["fitted"]["dtype"] = model.classes_.dtype.str
    return body, arrays


def decode(body: Any, arrays: persist.Arrays) -> Any:
    kind = {c.__name__: c for c in ESTIMATORS}[body["class"]]
    model: Any = kind(**files.decode_parameters(body["parameters"]))
    core = files.decode_core(body["core"], arrays)
    if core is None:
        return model
    fitted = dict(body["fitted"])
    labelled = isinstance(core, LabelCore | GraphLabelCore)
    persist.demand(labelled == issubclass(kind, Classifying), "core and class differ")
    persist.demand(fitted["n_features_in_"] == len(core.names), "features and problem differ in number")
    model.n_features_in_ = fitted["n_features_in_"]
    if "feature_names_in_" in fitted:
        names = np.array(fitted["feature_names_in_"], dtype=object)
        persist.demand(names.shape == (model.n_features_in_,), "features and names differ in number")
        model.feature_names_in_ = names
    if labelled:
        dtype = np.dtype(fitted["dtype"])
        persist.demand(dtype.kind in "biufUO" and dtype.itemsize <= 2**16, "labels of an unknown type")
        model.classes_ = np.array(fitted["classes_"], dtype=dtype)
        persist.demand(model.classes_.ndim == 1 and set(core.labels) <= set(model.classes_.tolist()), "labels differ")
    model.core_ = core
    return model


persist.register("sklearn", persist.Codec(ESTIMATORS, encode, decode))
