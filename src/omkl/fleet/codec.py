"""Fleets, and single keys of them, in model files."""

import numpy as np

from omkl import persist
from omkl.estimators import files, sklearn
from omkl.fleet.local import Fleet
from omkl.fleet.models import KeyedModels
from omkl.fleet.template import Learned, Template

FORMER_NAMES = {"may_diverge": "wild", "fingerprint": "mark"}  # in files of earlier versions


def _field(body: persist.Json, name: str) -> persist.Json:
    return body[name if name in body else FORMER_NAMES[name]]


# A fleet. Arrays of the template have names without a slash, those of the key at place 3 start with "3/".


def _encode_fleet(fleet: Fleet, compact: bool) -> tuple[persist.Json, persist.Arrays]:
    with fleet._lock:
        models = fleet._models
        start, arrays = sklearn.encode(fleet.learner if models is None else models.template.model, compact)
        body: dict[str, persist.Json] = {
            "start": start,
            "seed": fleet.seed,
            "may_diverge": fleet._may_diverge,
            "keys": list(fleet),
            "each": [],
        }
        if fleet.classes is not None:
            sklearn.check_labels(fleet.classes.tolist(), fleet.classes.dtype)
            core = None if models is None else models.template.core
            files.check_parameters(fleet.learner, "classification", core, len(fleet.classes))
            body["classes"] = [persist.plain(label) for label in fleet.classes]
            body["dtype"] = fleet.classes.dtype.str
        for place, (_, learned) in enumerate(() if models is None else models.learned()):
            body["each"].append(learned.body)
            arrays |= {f"{place}/{name}": array for name, array in learned.arrays.items()}
    return body, arrays


def _decode_fleet(body: persist.Json, arrays: persist.Arrays) -> Fleet:
    model = sklearn.decode(body["start"], {name: array for name, array in arrays.items() if "/" not in name})
    classes = None
    if "classes" in body:
        classes = sklearn.decode_labels(body["classes"], body["dtype"])
        files.check_parameters(model, "classification", getattr(model, "core_", None), len(classes))
    persist.demand(type(body["seed"]) is int and body["seed"] >= 0, "the seed must be a whole number of at least 0")
    fleet = Fleet(model, seed=body["seed"], classes=classes)
    if classes is not None and body["start"]["core"] is not None:
        persist.demand(np.array_equal(classes, getattr(model, "classes_", ())), "labels of fleet and learner differ")
    fleet._may_diverge = bool(_field(body, "may_diverge"))
    persist.demand(len(body["keys"]) == len(body["each"]), "keys and models differ in number")
    if body["start"]["core"] is None:
        persist.demand(not body["keys"], "keys without features")
        return fleet
    fleet._models = models = KeyedModels(Template(model))
    own: list[persist.Arrays] = [{} for _ in body["keys"]]
    for name, array in arrays.items():
        place, slash, part = name.partition("/")
        if slash:
            own[int(place)][part] = array
    fingerprint = models.template.fingerprint
    for key, learned, parts in zip(body["keys"], body["each"], own, strict=True):
        persist.demand(type(key) in (str, int) and key not in models, f"key {key!r} is not valid, or comes twice")
        models.put(key, models.template.core_of(Learned(fingerprint, learned, parts)))
    return fleet


# One key


def _encode_key(learned: Learned, compact: bool) -> tuple[persist.Json, persist.Arrays]:
    return {"fingerprint": learned.fingerprint, "learned": learned.body}, learned.arrays


def _decode_key(body: persist.Json, arrays: persist.Arrays) -> Learned:
    return Learned(_field(body, "fingerprint"), body["learned"], arrays)


persist.register("fleet", persist.Codec((Fleet,), _encode_fleet, _decode_fleet))
persist.register("fleet-key", persist.Codec((Learned,), _encode_key, _decode_key))
