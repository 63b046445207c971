"""Fleets, and single keys of them, in model files."""

from functools import partial
from typing import cast

import numpy as np

from omkl import persist
from omkl.arrays import Array
from omkl.estimators import files, sklearn
from omkl.estimators.core import restored
from omkl.fleet.corrections import Corrections, Shares, check
from omkl.fleet.inputs import Key
from omkl.fleet.local import Fleet
from omkl.fleet.models import KeyedModels
from omkl.fleet.pooled import PooledFleet
from omkl.fleet.storage import FIRST_ROWS, FirstRows
from omkl.fleet.template import Learned, Template
from omkl.validation import LARGEST_TARGET

SHARES = ("squares", "products", "counts", "shares", "errors")
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
        if fleet.memory is not None:
            body["memory"] = fleet.memory
        if fleet.classes is not None:
            sklearn.check_labels(fleet.classes.tolist(), fleet.classes.dtype)
            core = None if models is None else models.template.core
            files.check_parameters(fleet.learner, "classification", core, len(fleet.classes))
            body["classes"] = [persist.plain(label) for label in fleet.classes]
            body["dtype"] = fleet.classes.dtype.str
        for place, key in enumerate(() if models is None else models):
            assert models is not None
            first, size = models.first_rows(key), models.packed_size(key)
            each: persist.Json
            own: persist.Arrays
            if first is not None:
                targets = first.y if fleet.classes is None else np.searchsorted(fleet.classes, first.y).astype(float)
                each, own = {"first_rows": len(first.X)}, {"X": first.X, "y": targets}
            elif size is not None:
                packed = persist.Later(np.uint8, (size,), partial(_packed, models, key))
                each, own = {"packed": True}, {"packed": cast(Array, packed)}
            else:
                learned = models.learned(key)
                each, own = learned.body, learned.arrays
            body["each"].append(each)
            arrays |= {f"{place}/{name}": array for name, array in own.items()}
    return body, arrays


def _packed(models: KeyedModels, key: Key) -> Array:
    return models.packed(key).view(np.uint8)


def _decode_fleet(body: persist.Json, arrays: persist.Arrays) -> Fleet:
    model = sklearn.decode(body["start"], {name: array for name, array in arrays.items() if "/" not in name})
    classes = None
    if "classes" in body:
        classes = sklearn.decode_labels(body["classes"], body["dtype"])
        files.check_parameters(model, "classification", getattr(model, "core_", None), len(classes))
    persist.demand(type(body["seed"]) is int and body["seed"] >= 0, "the seed must be a whole number of at least 0")
    fleet = Fleet(model, seed=body["seed"], classes=classes, memory=body.get("memory"))
    if classes is not None and body["start"]["core"] is not None:
        persist.demand(np.array_equal(classes, getattr(model, "classes_", ())), "labels of fleet and learner differ")
    fleet._may_diverge = bool(_field(body, "may_diverge"))
    persist.demand(len(body["keys"]) == len(body["each"]), "keys and models differ in number")
    if body["start"]["core"] is None:
        persist.demand(not body["keys"], "keys without features")
        return fleet
    fleet._models = models = KeyedModels(Template(model), fleet.memory)
    own: list[persist.Arrays] = [{} for _ in body["keys"]]
    for name, array in arrays.items():
        place, slash, part = name.partition("/")
        if slash:
            own[int(place)][part] = array
    fingerprint = models.template.fingerprint
    for key, learned, parts in zip(body["keys"], body["each"], own, strict=True):
        persist.demand(type(key) in (str, int) and key not in models, f"key {key!r} is not valid, or comes twice")
        if "first_rows" in learned:
            models.put_first_rows(_first_rows(key, learned["first_rows"], parts, models.template.n_features, classes))
        elif "packed" in learned:
            packed = parts["packed"]
            persist.demand(packed.dtype == np.uint8 and packed.size % 8 == 0, "what a key has learned does not fit")
            models.put_packed(key, packed.view(np.float64))
        else:
            models.put(key, models.template.core_of(Learned(fingerprint, learned, parts)))
    return fleet


def _first_rows(key: Key, n: object, parts: persist.Arrays, d: int, classes: Array | None) -> FirstRows:
    """The rows of a key that is kept as these, checked."""
    X, y = persist.float_array(parts, "X"), persist.float_array(parts, "y")
    fits = type(n) is int and X.shape == (n, d) and y.shape == (n,) and 0 < n <= FIRST_ROWS
    persist.demand(fits, "the first rows of a key do not fit")
    persist.require_finite(np.nan_to_num(X, nan=0.0, posinf=np.inf, neginf=-np.inf), "of the first rows of a key")
    persist.require_finite(y, "of the targets of a key")
    if classes is None:
        persist.demand(bool((np.abs(y) <= LARGEST_TARGET).all()), "a target of a key is too large")
        return FirstRows(key, X, y)
    persist.demand(bool(np.isin(y, np.arange(len(classes))).all()), "a label of a key is not known")
    return FirstRows(key, X, classes[y.astype(np.intp)])


# A pooled fleet: the pool and the keys' own models as they are by themselves, and the arrays of the corrections


def _encode_pooled(fleet: PooledFleet, compact: bool) -> tuple[persist.Json, persist.Arrays]:
    arrays: persist.Arrays = {}
    with fleet._lock:
        body: dict[str, persist.Json] = {
            "pool": persist.encode_part(fleet.pool, arrays, "pool:", compact),
            "fleet": persist.encode_part(fleet.fleet, arrays, "fleet:", compact),
            "keys": list(fleet._keys),
            "t": fleet._shares.t,
            "trusted": fleet._shares.trusted,
        }
        if fleet._corrections is not None:
            corrections, count = fleet._corrections, len(fleet._keys)
            with persist.saving():
                check(corrections, fleet._shares)
            arrays |= {f"correction {name}": getattr(corrections, name)[:count] for name in ("squares", "products")}
            arrays |= {"correction rows": corrections.rows[:count], "inputs": corrections.inputs.stats}
            arrays |= {f"share {name}": getattr(fleet._shares, name) for name in SHARES}
    return body, arrays


def _decode_pooled(body: persist.Json, arrays: persist.Arrays) -> PooledFleet:
    own = persist.decode_part(body["fleet"], arrays, "fleet:")
    pool = persist.decode_part(body["pool"], arrays, "pool:")
    persist.demand(type(own) is Fleet and own.classes is None, "no fleet of regressors")
    persist.demand(type(pool) in sklearn.ESTIMATORS.values(), "the pool is no estimator")
    fleet = PooledFleet(own.learner, pool, seed=own.seed)
    fleet.fleet = own
    persist.demand(set(body["keys"]) == set(own) and len(body["keys"]) == len(own), "keys and models differ")
    started = own._models is not None
    persist.demand(started == hasattr(pool, "core_"), "the pool and the keys have not seen the same rows")
    if own._models is None:
        return fleet
    d, count = own._models.template.n_features, len(own)
    persist.demand(pool.n_features_in_ == d, "the pool and the keys have other features")
    corrections = Corrections(d, count)
    shapes = {"squares": (count, d + 1, d + 1), "products": (count, d + 1)}
    for name, shape in shapes.items():
        setattr(corrections, name, _finite(arrays, f"correction {name}", shape))
    corrections.rows = np.asarray(arrays["correction rows"], dtype=np.int64)
    persist.demand(corrections.rows.shape == (count,), "no counts of rows")
    restored(corrections.inputs, persist.float_array(arrays, "inputs"))
    shares = Shares()
    shares.t, shares.trusted = body["t"], body.get("trusted", True)
    persist.demand(type(shares.trusted) is bool, "whether corrections are trusted must be true or false")
    arrays = {"share errors": shares.errors} | arrays  # earlier versions had none
    for name in SHARES:
        setattr(shares, name, _finite(arrays, f"share {name}", getattr(shares, name).shape))
    check(corrections, shares)
    corrections.reserve(1)  # whose last place is that of keys that have not come
    fleet.pool, fleet._corrections, fleet._shares = pool, corrections, shares
    fleet._add(body["keys"])
    return fleet


def _finite(arrays: persist.Arrays, name: str, shape: tuple[int, ...]) -> Array:
    values = persist.float_array(arrays, name)
    persist.demand(values.shape == shape, f"{name} has the wrong shape")
    persist.require_finite(values, f"of {name}")
    return values


# One key


def _encode_key(learned: Learned, compact: bool) -> tuple[persist.Json, persist.Arrays]:
    return {"fingerprint": learned.fingerprint, "learned": learned.body}, learned.arrays


def _decode_key(body: persist.Json, arrays: persist.Arrays) -> Learned:
    return Learned(_field(body, "fingerprint"), body["learned"], arrays)


persist.register("fleet", persist.Codec((Fleet,), _encode_fleet, _decode_fleet, lock=lambda fleet: fleet._lock))
persist.register(
    "pooled-fleet", persist.Codec((PooledFleet,), _encode_pooled, _decode_pooled, lock=lambda fleet: fleet._lock)
)
persist.register("fleet-key", persist.Codec((Learned,), _encode_key, _decode_key))
