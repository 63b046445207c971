"""scikit-learn pipelines in model files: steps of known classes, their parameters and what they have learned.

A class is found by its name; what is in the file becomes parameters, and attributes that are checked.
"""

import copy
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import PolynomialFeatures

from omkl import persist
from omkl.arrays import Array, Index
from omkl.estimators.sklearn.steps import STEPS
from omkl.estimators.steps import decode_step, decode_value, encode_step, encode_value, saveable, unique_names
from omkl.persist import Arrays, Json, claims, demand, grouped
from omkl.validation import is_number

Transformer = Any  # scikit-learn has no types
WORDS = ("passthrough", "drop")  # that stand for a step
OUTPUTS = ("default", "pandas", "polars")  # what `set_output` accepts
KNOWN = ", ".join([*STEPS, "ColumnTransformer", "Pipeline", "omkl's TableEncoder and estimators"])


# Steps


def encode(model: Transformer, compact: bool) -> tuple[Json, Arrays]:
    """A pipeline or a step of one."""
    model = copy.deepcopy(model)  # one moment, whatever other threads do meanwhile
    arrays: Arrays = {}
    body: dict[str, Json] = {"class": type(model).__name__, "output": "default"}
    body["output"] = getattr(model, "_sklearn_output_config", {}).get("transform", "default")
    if isinstance(model, Pipeline):
        if model.memory is not None:
            raise TypeError("a pipeline with a cache cannot be saved; call set_params(memory=None) first")
        body["steps"] = [
            [name, _encode_one(name, step, arrays, k, compact)] for k, (name, step) in enumerate(model.steps)
        ]
        rest = {"verbose": model.verbose, "transform_input": model.transform_input}
        return body | {"parameters": _encode_parameters(rest)}, arrays
    body["fitted"] = None
    if hasattr(model, "n_features_in_"):
        names = getattr(model, "feature_names_in_", None)
        body["fitted"] = {"n_features_in_": model.n_features_in_, "names": None if names is None else names.tolist()}
    if isinstance(model, ColumnTransformer):
        return body | _encode_columns(model, arrays, compact), arrays
    body["parameters"] = _encode_parameters(model.get_params(deep=False))
    if body["fitted"] is not None:
        attributes = STEPS[body["class"]].fitted
        body["fitted"] |= {name: encode_value(getattr(model, name), arrays, name) for name in attributes}
    with saveable(body["class"]):
        _decode(body, arrays)
    return body, arrays


def _encode_parameters(parameters: dict[str, object]) -> Json:
    arrays: Arrays = {}
    body = {name: encode_value(value, arrays, f"the parameter {name}") for name, value in parameters.items()}
    if arrays:
        raise TypeError(f"{next(iter(arrays))} is an array; a model file holds lists of parameters")
    return body


def _encode_one(name: str, step: Transformer, arrays: Arrays, k: int, compact: bool) -> Json:
    return step if isinstance(step, str) and step in WORDS else encode_step(name, step, arrays, f"{k}.", compact, KNOWN)


def decode(body: Json, arrays: Arrays) -> Transformer:
    """What `encode` was given."""
    return _decode(body, arrays)[0]


def _decode(body: Json, arrays: Arrays) -> tuple[Transformer, int | None]:
    """The step, and how many features there are after it; None if it has learned nothing."""
    name = claims.string(body["class"], "the class of a step")
    parameters = {key: decode_value(value, {}, key) for key, value in body["parameters"].items()}
    if name == "Pipeline":
        step, width = _decode_pipeline(body, parameters, arrays), None
    elif name == "ColumnTransformer":
        step, width = _decode_columns(body, parameters, arrays)
    else:
        demand(name in STEPS, f"no step {name!r} is known; known are {KNOWN}")
        known = STEPS[name]
        step, width = known.kind(**parameters), None
        step._validate_params()
        for key in ("feature_range", "quantile_range"):
            pair = parameters.get(key, (0, 1))
            demand(isinstance(pair, tuple) and len(pair) == 2 and all(map(is_number, pair)) and pair[0] < pair[1],
                   f"{key} must be two numbers, the smaller one first")  # fmt: skip
        if body["fitted"] is not None:
            d = claims.count(body["fitted"]["n_features_in_"], "the number of features", 1)
            width = known.restore(
                step, {key: decode_value(body["fitted"][key], arrays, key) for key in known.fitted}, d
            )
            _take_names(step, body["fitted"])
    claims.one_of(body["output"], OUTPUTS, "the output of a step")
    if body["output"] != "default":
        step.set_output(transform=body["output"])
    return step, width


def _take_names(step: Transformer, fitted: Json) -> int:
    """Set how many features there are, and their names if they have any."""
    step.n_features_in_ = claims.count(fitted["n_features_in_"], "the number of features", 1)
    if fitted["names"] is not None:
        names = claims.strings(fitted["names"], "the names of features")
        demand(len(names) == step.n_features_in_ == len(set(names)), "features and names differ in number")
        step.feature_names_in_ = np.array(names, dtype=object)
    return int(step.n_features_in_)


def _decode_one(body: Json, arrays: Arrays, last: bool = False) -> Transformer:
    if isinstance(body, str):
        claims.one_of(body, WORDS, "a step")
        return body
    return decode_step(body, arrays, "fit" if last else "transform")


def _width(step: Transformer, d: int | None) -> int | None:
    """How many features there are after a step; None where that is not known."""
    if step == "passthrough":
        return d
    if isinstance(step, Pipeline):
        for _, part in step.steps:
            d = _width(part, d)
        return d
    if isinstance(step, PolynomialFeatures):
        return getattr(step, "n_output_features_", None)  # its names would take long
    names = getattr(step, "get_feature_names_out", None)
    return None if names is None or not hasattr(step, "n_features_in_") else len(names())


def _decode_pipeline(body: Json, parameters: dict[str, object], arrays: Arrays) -> Pipeline:
    own, listing = grouped(arrays), body["steps"]
    names = unique_names([name for name, _ in listing])
    demand(len(names) > 0, "a pipeline has no step")
    demand("memory" not in parameters, "a pipeline has a cache")
    steps = [_decode_one(part, own.get(str(k), {}), k == len(listing) - 1) for k, (_, part) in enumerate(listing)]
    demand("drop" not in [step for step in steps if isinstance(step, str)], "drop is no step of a pipeline")
    for one, other in pairwise([step for step in steps if step != "passthrough"]):
        width = _width(one, None)
        demand(width in (None, getattr(other, "n_features_in_", width)), "steps differ in the number of features")
    pipeline = Pipeline(list(zip(names, steps, strict=True)), **parameters)
    pipeline._validate_params()
    return pipeline


# Columns


class _Outputs(TransformerMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Stands for a step of a ColumnTransformer while scikit-learn derives what it needs from the columns."""

    def __init__(self, outputs: int = 1) -> None:
        self.outputs = outputs

    def fit(self, X: Array, y: object = None) -> "_Outputs":
        return self

    def transform(self, X: Array) -> Array:
        return np.zeros((len(X), self.outputs))


def _encode_columns(model: ColumnTransformer, arrays: Arrays, compact: bool) -> dict[str, Json]:
    if model.n_jobs is not None:
        raise TypeError("a ColumnTransformer with n_jobs cannot be saved; call set_params(n_jobs=None) first")
    rest = {name: value for name, value in model.get_params(deep=False).items()
            if name not in ("transformers", "remainder", "n_jobs")}  # fmt: skip
    learned = {name: step for name, step, _ in getattr(model, "transformers_", ())}
    given = [*model.transformers, ("remainder", model.remainder, [])]
    listing = []
    for k, (name, step, columns) in enumerate(given):
        if callable(columns):
            raise TypeError(f"the columns of {name!r} are chosen by a function; name them, or give their positions")
        chosen = columns if isinstance(columns, slice) else np.atleast_1d(np.asarray(columns)).tolist()
        saved = step if isinstance(step, str) else learned.get(name, step)
        listing.append([name, _encode_one(name, saved, arrays, k, compact), encode_value(chosen, {}, name)])
    body = {"parameters": _encode_parameters(rest), "columns": listing}
    return body if not learned else body | {"sparse": bool(model.sparse_output_)}


def _decode_columns(body: Json, parameters: dict[str, object], arrays: Arrays) -> tuple[ColumnTransformer, int | None]:
    own = grouped(arrays)
    names = unique_names([name for name, _, _ in body["columns"]])
    steps = [_decode_one(part, own.get(str(k), {})) for k, (_, part, _) in enumerate(body["columns"])]
    columns = [decode_value(chosen, {}, "columns") for _, _, chosen in body["columns"]]
    demand(names[-1] == "remainder" and "n_jobs" not in parameters, "there is no remainder, or n_jobs")
    unfitted = [step if isinstance(step, str) else clone(step) for step in steps]
    made = ColumnTransformer(
        list(zip(names, unfitted, columns, strict=True))[:-1], remainder=unfitted[-1], **parameters
    )
    made._validate_params()
    if body["fitted"] is None:
        return made, None
    d = _take_names(made, body["fitted"])
    labels = getattr(made, "feature_names_in_", None)
    places = [_places(chosen, d, labels) for chosen in columns[:-1]]
    rest = np.setdiff1d(np.arange(d), np.concatenate([np.empty(0, dtype=np.intp), *places]))
    stand_ins = []
    for step, place in zip(steps, [*places, rest], strict=True):
        width = None if isinstance(step, str) or not len(place) else _width(step, len(place))
        demand(isinstance(step, str) or not len(place) or getattr(step, "n_features_in_", len(place)) == len(place),
               "a step and its columns differ in number")  # fmt: skip
        stand_ins.append(step if isinstance(step, str) else _Outputs(1 if width is None else width))
    derived = ColumnTransformer(list(zip(names, stand_ins, places, strict=False)), remainder=stand_ins[-1])
    derived.fit(np.zeros((1, d)))
    # the remainder comes last among `transformers_`, and only where there is any
    shown = [*columns[:-1], _as_given(columns[:-1], rest, d, labels)]
    learned = [
        (name, found if isinstance(step, str) else step, chosen)
        for (name, found, _), step, chosen in zip(derived.transformers_, steps, shown, strict=False)
    ]
    kept = {**vars(made), "transformers_": learned, "sparse_output_": claims.flag(body["sparse"], "sparse")}
    made.__dict__.update({**vars(derived), **kept, "_columns": columns[:-1]})
    ends = [place.stop for place in made.output_indices_.values() if place.stop is not None]
    return made, max(ends, default=0)


def _as_given(columns: list[object], rest: Index, d: int, labels: Array | None) -> list[object]:
    """The remaining columns as scikit-learn lists them: in the way in which all others are given, or by position."""
    kinds = {type(chosen[0]) if isinstance(chosen, list) and chosen else int for chosen in columns}
    if kinds == {str} and labels is not None:
        return list(labels[rest].tolist())
    return list(np.isin(np.arange(d), rest).tolist() if kinds == {bool} else rest.tolist())


def _places(chosen: object, d: int, labels: Array | None) -> Index:
    """The positions of columns that are given by name, position or mask."""
    every = np.arange(d)
    if isinstance(chosen, slice):
        demand(all(part is None or type(part) is int for part in (chosen.start, chosen.stop, chosen.step)),
               "a slice of columns must be of positions")  # fmt: skip
        return every[chosen]
    demand(isinstance(chosen, list) and len({type(each) for each in chosen}) <= 1, "columns must be a list")
    assert isinstance(chosen, list)
    if chosen and isinstance(chosen[0], str):
        known = {} if labels is None else {label: k for k, label in enumerate(labels)}
        demand(set(chosen) <= set(known), "a ColumnTransformer has a column that is not known")
        return np.array([known[each] for each in chosen], dtype=np.intp)
    demand(not chosen or type(chosen[0]) in (int, bool), "columns must be names or positions")
    return np.atleast_1d(every[np.array(chosen, dtype=bool if chosen and type(chosen[0]) is bool else np.intp)])


persist.register("sklearn-step", persist.Codec(
    (Pipeline, ColumnTransformer, *(step.kind for step in STEPS.values())), encode, decode
))  # fmt: skip
