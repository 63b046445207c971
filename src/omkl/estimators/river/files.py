"""river estimators in model files."""

import copy
import datetime
import math
from collections.abc import Hashable
from typing import Any

from omkl import persist
from omkl.estimators import files
from omkl.estimators.core import Core, LabelCore
from omkl.estimators.outputs import OutputsCore
from omkl.estimators.river import estimators
from omkl.estimators.river.base import Estimator

RiverEstimator = Estimator[Core, Hashable]

ESTIMATORS: dict[str, type[RiverEstimator]] = {
    name: kind for name, kind in vars(estimators).items()
    if isinstance(kind, type) and issubclass(kind, Estimator) and kind.__module__ == estimators.__name__
}  # fmt: skip


def _encode(model: RiverEstimator, compact: bool) -> tuple[persist.Json, persist.Arrays]:
    model = copy.deepcopy(model)  # one moment, whatever other threads learn meanwhile
    arrays: persist.Arrays = {}
    files.check_parameters(model, model.task, model._core)
    body = {
        "class": type(model).__name__,
        "parameters": files.encode_parameters(model._get_params(), "seed", None),
        "core": files.encode_core(model._core, arrays, compact),
        "waiting": encode_waiting(model),
    }
    return body, arrays


def encode_waiting(model: Estimator[Any, Any]) -> persist.Json:
    """The rows that wait for their label."""
    return [
        [persist.plain(key), [[persist.plain(name), encode_cell(value)] for name, value in row.items()]]
        for key, row in model._waiting.items()
    ]


def decode_waiting(model: Estimator[Any, Any], body: persist.Json) -> None:
    """Take over what `encode_waiting` returned."""
    model._waiting = {key: {name: decode_cell(cell) for name, cell in row} for key, row in body}
    persist.demand(len(model._waiting) <= model.max_waiting, "more rows are waiting than max_waiting allows")


def _decode(body: persist.Json, arrays: persist.Arrays) -> RiverEstimator:
    kind = ESTIMATORS[body["class"]]
    model = kind(**files.decode_parameters(kind, body["parameters"], "seed"))
    core = files.decode_core(body["core"], arrays)
    files.check_parameters(model, model.task, core)
    if core is not None:
        persist.demand(core.task == kind.task, "the estimator and what it learned are for different tasks")
        files.require_class(kind, core)
        persist.demand(not isinstance(core, LabelCore) or core.most_labels is None, "a river estimator takes any label")
        persist.demand(not isinstance(core, OutputsCore), "a river estimator has one target")
    model._core = core
    decode_waiting(model, body["waiting"])
    return model


def encode_cell(value: object) -> persist.Json:
    """A cell of a row that waits."""
    if isinstance(value, datetime.date):  # and times, which are dates
        return [type(value) is datetime.date, value.isoformat()]
    return persist.plain(value, "cells of rows that wait for their label")


def decode_cell(body: persist.Json) -> object:
    if isinstance(body, list):
        persist.demand(len(body) == 2 and isinstance(body[1], str), "a waiting row has a cell that is no timestamp")
        kind = datetime.date if body[0] else datetime.datetime
        return kind.fromisoformat(body[1])
    finite = type(body) in (bool, int) or (type(body) is float and math.isfinite(body))
    persist.demand(body is None or type(body) is str or finite, "a waiting row has a cell that cannot be")
    return body


persist.register("river", persist.Codec(tuple(ESTIMATORS.values()), _encode, _decode))
