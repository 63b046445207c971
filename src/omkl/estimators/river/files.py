"""Estimators of the river door in model files."""

from typing import Any

from omkl import persist
from omkl.estimators import files
from omkl.estimators.core import LabelCore
from omkl.estimators.graph_core import GraphLabelCore
from omkl.estimators.river import graph_mkl, paper
from omkl.estimators.river.base import Classifying, Door

ESTIMATORS: tuple[type[Door], ...] = (
    graph_mkl.GraphMKLRegressor, graph_mkl.GraphMKLClassifier,
    paper.SFGMKLRegressor, paper.SFGMKLClassifier, paper.RakerRegressor, paper.RakerClassifier,
    paper.OMKLGFRegressor, paper.OMKLGFClassifier, paper.OMKRRegressor, paper.RFOMKRRegressor,
)  # fmt: skip


def _encode(model: Any, compact: bool) -> tuple[Any, persist.Arrays]:
    arrays: persist.Arrays = {}
    body = {
        "class": type(model).__name__,
        "parameters": files.encode_parameters(model._get_params(), "seed", None),
        "core": files.encode_core(model._core, arrays, compact),
        "waiting": [
            [persist.plain(key), [[persist.plain(name), persist.plain(value)] for name, value in row.items()]]
            for key, row in model._waiting.items()
        ],
    }
    return body, arrays


def _decode(body: Any, arrays: persist.Arrays) -> Any:
    kind = {c.__name__: c for c in ESTIMATORS}[body["class"]]
    model = kind(**files.decode_parameters(body["parameters"]))
    model._core = files.decode_core(body["core"], arrays)
    if model._core is not None:
        persist.demand(
            isinstance(model._core, LabelCore | GraphLabelCore) == issubclass(kind, Classifying),
            "core and class differ",
        )
    model._waiting = {key: dict(row) for key, row in body["waiting"]}
    persist.demand(len(model._waiting) <= model.max_waiting, "more rows wait than may")
    return model


persist.register("river", persist.Codec(ESTIMATORS, _encode, _decode))
