"""river pipelines in model files: steps of known classes, their parameters and what they have learned."""

import copy
from collections.abc import Callable
from typing import Any, NamedTuple

from river import stats
from river.compose import Discard, Pipeline, Select, TransformerUnion
from river.preprocessing import MaxAbsScaler, MinMaxScaler, OneHotEncoder, StandardScaler, StatImputer

from omkl import persist
from omkl.estimators.steps import (
    decode_step,
    decode_value,
    encode_step,
    encode_value,
    plain_keys,
    saveable,
    unique_names,
)
from omkl.persist import Arrays, Json, claims, demand, grouped
from omkl.validation import is_label, is_number

Transformer = Any  # river's statistics have no common type
STATISTICS: dict[str, tuple[type, tuple[str, ...]]] = {  # and the numbers that they hold
    "Mean": (stats.Mean, ("n", "_mean")),
    "Min": (stats.Min, ("min",)),
    "Max": (stats.Max, ("max",)),
    "AbsMax": (stats.AbsMax, ("abs_max",)),
}


class Step(NamedTuple):
    """How steps of one class are saved."""

    kind: type
    encode: Callable[[Transformer], dict[str, object]]
    decode: Callable[[dict[str, Any]], Transformer]


# Statistics


def _statistic(value: object) -> object:
    name = type(value).__name__
    if STATISTICS.get(name, (None,))[0] is not type(value):
        raise TypeError(f"the statistic {name} cannot be saved; known are {', '.join(STATISTICS)}")
    return [name, *(getattr(value, part) for part in STATISTICS[name][1])]


def _of_statistic(body: object, kinds: tuple[str, ...]) -> Transformer:
    demand(isinstance(body, list) and bool(body) and body[0] in kinds, f"a statistic must be one of {kinds}")
    assert isinstance(body, list)
    kind, parts = STATISTICS[body[0]]
    demand(len(body) == len(parts) + 1 and all(map(_is_real, body[1:])), "a statistic must hold numbers")
    made = kind()
    for part, value in zip(parts, body[1:], strict=True):
        setattr(made, part, value)
    demand(not isinstance(made, stats.Mean) or made.n >= 0, "a mean has a negative count")
    return made


def _is_real(value: object) -> bool:
    """A number, which may be infinite: the smallest one of none is."""
    return (isinstance(value, (int, float)) and not isinstance(value, bool) and value == value) or is_number(value)


def _numbers(mapping: object, what: str, least: float | None = None) -> dict[Any, Any]:
    found = plain_keys(mapping, what)
    demand(all(is_number(value) and (least is None or value >= least) for value in found.values()),  # type: ignore[operator]  # numbers
           f"{what} must be numbers")  # fmt: skip
    return found


# Steps


def _no_window(step: Transformer) -> dict[str, object]:
    if step.window_size is not None:
        raise TypeError("a scaler with window_size cannot be saved")
    return {}


def _encode_standard(step: StandardScaler) -> dict[str, object]:
    learned = {"counts": dict(step.counts), "means": dict(step.means), "vars": dict(step.vars)}
    return _no_window(step) | {"with_std": step.with_std, **learned}


def _decode_standard(body: dict[str, Any]) -> StandardScaler:
    made = StandardScaler(with_std=claims.flag(body["with_std"], "with_std"))
    made.counts.update(_numbers(body["counts"], "counts", 0))
    made.means.update(_numbers(body["means"], "means"))
    made.vars.update(_numbers(body["vars"], "variances"))
    demand(all(value >= 0 for value in made.vars.values()), "a variance is negative")
    return made


def _encode_extremes(*attributes: str) -> Callable[[Transformer], dict[str, object]]:
    def encode(step: Transformer) -> dict[str, object]:
        return _no_window(step) | {
            name: {key: _statistic(value) for key, value in getattr(step, name).items()} for name in attributes
        }

    return encode


def _decode_extremes(kind: type, **attributes: str) -> Callable[[dict[str, Any]], Transformer]:
    def decode(body: dict[str, Any]) -> Transformer:
        made = kind()
        for name, statistic in attributes.items():
            found = plain_keys(body[name], name)
            getattr(made, name).update({key: _of_statistic(value, (statistic,)) for key, value in found.items()})
        return made

    return decode


def _encode_one_hot(step: OneHotEncoder) -> dict[str, object]:
    return {
        "categories": None if step.categories is None else {key: list(each) for key, each in step.categories.items()},
        "drop_zeros": step.drop_zeros, "drop_first": step.drop_first,
        "values": {key: list(each) for key, each in step.values.items()},
        "zeros": list(step._zero_dict),
    }  # fmt: skip


def _decode_one_hot(body: dict[str, Any]) -> OneHotEncoder:
    categories = None if body["categories"] is None else _sets(body["categories"])
    made = OneHotEncoder(
        categories, claims.flag(body["drop_zeros"], "drop_zeros"), claims.flag(body["drop_first"], "drop_first")
    )
    if categories is None:
        made.values.update(_sets(body["values"]))
        zeros = dict.fromkeys(claims.strings(body["zeros"], "the features of categories"), 0)
        known = {f"{key}_{value}" for key, each in made.values.items() for value in each}
        demand(set(zeros) == (set() if made.drop_zeros else known), "categories and features differ")
        made._zero_dict = zeros  # in the order in which they came
    return made


def _sets(mapping: object) -> dict[Any, set[Any]]:
    found = plain_keys(mapping, "categories")
    demand(all(isinstance(each, list) and all(value is None or is_label(value) for value in each)
               for each in found.values()), "categories must be lists of labels")  # fmt: skip
    return {key: set(each) for key, each in found.items()}  # type: ignore[call-overload]  # they are lists


def _decode_keys(kind: type) -> Callable[[dict[str, Any]], Transformer]:
    def decode(body: dict[str, Any]) -> Transformer:
        keys = body["keys"]
        demand(isinstance(keys, list) and all(map(is_label, keys)), "keys must be names of features")
        return kind(*keys)

    return decode


def _encode_imputer(step: StatImputer) -> dict[str, object]:
    known = [(key, value) for key, value in step.stats.items()]
    constant = {key for key, given in step.imputers if not isinstance(given, stats.base.Univariate)}
    return {"imputers": [[key, ["constant", value.get()] if key in constant else _statistic(value)]
                         for key, value in known]}  # fmt: skip


def _decode_imputer(body: dict[str, Any]) -> StatImputer:
    imputers = []
    for key, value in body["imputers"]:
        demand(is_label(key) and isinstance(value, list) and bool(value), "an imputer must have a name and a value")
        if value[0] == "constant":
            demand(len(value) == 2 and (value[1] is None or is_label(value[1])), "a constant must be a number or text")
        imputers.append((key, value[1] if value[0] == "constant" else _of_statistic(value, tuple(STATISTICS))))
    return StatImputer(*imputers)  # type: ignore[no-untyped-call]  # river has no types here


STEPS = {step.kind.__name__: step for step in (
    Step(StandardScaler, _encode_standard, _decode_standard),
    Step(MinMaxScaler, _encode_extremes("min", "max"), _decode_extremes(MinMaxScaler, min="Min", max="Max")),
    Step(MaxAbsScaler, _encode_extremes("abs_max"), _decode_extremes(MaxAbsScaler, abs_max="AbsMax")),
    Step(OneHotEncoder, _encode_one_hot, _decode_one_hot),
    Step(Select, lambda step: {"keys": list(step.keys)}, _decode_keys(Select)),
    Step(Discard, lambda step: {"keys": list(step.keys)}, _decode_keys(Discard)),
    Step(StatImputer, _encode_imputer, _decode_imputer),
)}  # fmt: skip
KNOWN = ", ".join([*STEPS, "TransformerUnion", "Pipeline", "omkl's TableEncoder and estimators"])


def encode(model: Transformer, compact: bool) -> tuple[Json, Arrays]:
    """A pipeline or a step of one."""
    model = copy.deepcopy(model)  # one moment, whatever other threads do meanwhile
    arrays: Arrays = {}
    name = type(model).__name__
    if isinstance(model, (Pipeline, TransformerUnion)):
        steps = model.steps if isinstance(model, Pipeline) else model.transformers
        listing = [
            [own, encode_step(own, step, arrays, f"{k}.", compact, KNOWN)]
            for k, (own, step) in enumerate(steps.items())
        ]
        return {"class": name, "steps": listing}, arrays
    body = {"class": name, "values": encode_value(STEPS[name].encode(model), {}, name)}
    with saveable(name):
        decode(body, {})
    return body, arrays


def decode(body: Json, arrays: Arrays) -> Transformer:
    """What `encode` was given."""
    name = claims.string(body["class"], "the class of a step")
    if name in ("Pipeline", "TransformerUnion"):
        own, listing = grouped(arrays), body["steps"]
        names = unique_names([each for each, _ in listing])
        demand(len(names) > 0, "a pipeline has no step")
        last = len(names) - 1 if name == "Pipeline" else None
        steps = [decode_step(part, own.get(str(k), {}), "learn_one" if k == last else "transform_one")
                 for k, (_, part) in enumerate(listing)]  # fmt: skip
        made = Pipeline() if name == "Pipeline" else TransformerUnion()
        (made.steps if isinstance(made, Pipeline) else made.transformers).update(zip(names, steps, strict=True))
        return made
    demand(name in STEPS, f"no step {name!r} is known; known are {KNOWN}")
    values = decode_value(body["values"], {}, name)
    assert isinstance(values, dict)
    return STEPS[name].decode(values)


persist.register("river-step", persist.Codec(
    (Pipeline, TransformerUnion, *(step.kind for step in STEPS.values())), encode, decode
))  # fmt: skip
