"""Values that steps of pipelines hold, as JSON and arrays: numbers of any type, text, lists, tuples, sets, mappings.

A value is written so that it comes back as the same type, and nothing is imported by a name from the file.
"""

import math
from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager

import numpy as np

from omkl.arrays import Array
from omkl.errors import ModelFileError
from omkl.persist import Arrays, Json, decode_part, demand, encode_part
from omkl.validation import is_label

NUMBERS = {np.dtype(kind).str: np.dtype(kind) for kind in
           ("?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8")}  # fmt: skip
STORED = {"f": np.dtype(np.float64), "i": np.dtype(np.int64), "u": np.dtype(np.int64), "b": np.dtype(np.bool_)}
PYTHONS = {"bool": bool, "int": int, "float": float}
NOT_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
LARGEST_TEXTS = 2**26  # bytes of an array of text, where all are as long as the longest


def encode_value(value: object, arrays: Arrays, name: str) -> Json:
    """A value as JSON; arrays of numbers in it are added to `arrays` under names that begin with `name`."""
    if value is None or is_label(value):
        return value
    if type(value) is float:
        return {"float": str(value)}
    if isinstance(value, np.ndarray):
        return _encode_array(value, arrays, name)
    if isinstance(value, np.generic) and value.dtype.str in NUMBERS:
        return {"scalar": encode_value(value.item(), arrays, name), "type": value.dtype.str}
    if isinstance(value, np.dtype) and value.str in (*NUMBERS, "|O"):
        return {"dtype": value.str}
    if any(value is kind for kind in PYTHONS.values()):
        return {"python type": next(name for name, kind in PYTHONS.items() if kind is value)}
    if isinstance(value, type) and issubclass(value, np.generic) and np.dtype(value).str in NUMBERS:
        return {"number type": np.dtype(value).str}
    if type(value) is slice:
        return {"slice": [encode_value(part, arrays, name) for part in (value.start, value.stop, value.step)]}
    for kind in (list, tuple, set):
        if type(value) is kind:
            return {kind.__name__: [encode_value(part, arrays, f"{name}.{k}") for k, part in enumerate(value)]}
    if isinstance(value, Mapping):
        return {"mapping": [[encode_value(key, arrays, name), encode_value(part, arrays, f"{name}.{k}")]
                            for k, (key, part) in enumerate(value.items())]}  # fmt: skip
    raise TypeError(f"{name} is {value!r} ({type(value).__name__}), which a model file cannot hold: it holds numbers, "
                    "text, and lists, tuples, mappings and arrays of them")  # fmt: skip


def _encode_array(value: Array, arrays: Arrays, name: str) -> Json:
    if value.dtype.str in NUMBERS:
        stored = value.astype(STORED[value.dtype.kind])
        if value.dtype.kind == "u" and (stored < 0).any():
            raise ValueError(f"{name} holds a number above 2**63, which a model file cannot hold")
        arrays[name] = stored
        return {"array": value.dtype.str}
    if value.dtype.kind not in "UO" or value.ndim != 1:
        raise TypeError(f"{name} is an array of {value.dtype} with {value.ndim} axes, which a model file cannot hold")
    _check_texts(value)
    return {"cells": [encode_value(cell, arrays, f"{name}.{k}") for k, cell in enumerate(value.tolist())],
            "type": value.dtype.str}  # fmt: skip


def decode_value(body: Json, arrays: Arrays, name: str) -> object:
    """What `encode_value` was given."""
    if not isinstance(body, dict):
        demand(body is None or is_label(body), f"{name} is no value")
        return body
    kind = next(iter(body))
    if kind == "float":
        return NOT_FINITE[body["float"]]
    if kind == "array":
        dtype = NUMBERS[body["array"]]
        demand(
            name in arrays and arrays[name].dtype == STORED[dtype.kind], f"array {name} is missing, or of another type"
        )
        array = arrays[name].astype(dtype)
        demand(np.array_equal(array.astype(arrays[name].dtype), arrays[name], equal_nan=dtype.kind == "f"),
               f"array {name} holds numbers that are not of its type")  # fmt: skip
        return array
    if kind == "cells":
        return _decode_cells(body, arrays, name)
    if kind == "scalar":
        dtype = NUMBERS[body["type"]]
        scalar = dtype.type(decode_value(body["scalar"], arrays, name))
        demand(scalar.item() == body["scalar"] or bool(np.isnan(scalar)), f"{name} is not of its type")
        return scalar
    if kind == "dtype":
        return np.dtype(object) if body["dtype"] == "|O" else NUMBERS[body["dtype"]]
    if kind == "python type":
        return PYTHONS[body["python type"]]
    if kind == "number type":
        return NUMBERS[body["number type"]].type
    if kind == "mapping":
        pairs = [(decode_value(key, arrays, name), decode_value(part, arrays, f"{name}.{k}"))
                 for k, (key, part) in enumerate(body["mapping"])]  # fmt: skip
        return dict(pairs)
    demand(kind in ("slice", "list", "tuple", "set"), f"{name} is no value")
    parts = [
        decode_value(part, arrays, name if kind == "slice" else f"{name}.{k}") for k, part in enumerate(body[kind])
    ]
    if kind == "slice":
        return slice(*parts)
    return parts if kind == "list" else tuple(parts) if kind == "tuple" else set(parts)


def _decode_cells(body: Json, arrays: Arrays, name: str) -> Array:
    cells = [decode_value(cell, arrays, f"{name}.{k}") for k, cell in enumerate(body["cells"])]
    dtype = np.dtype(body["type"])
    demand(dtype.kind in "UO" and len(cells) * dtype.itemsize <= LARGEST_TEXTS, f"{name} is no array of text")
    out = np.empty(len(cells), dtype=dtype)
    for k, cell in enumerate(cells):
        plain = isinstance(cell, str) or (dtype.kind == "O" and (cell is None or isinstance(cell, (bool, int, float))))
        demand(plain, f"{name} has a cell that cannot be")
        out[k] = cell
        demand(dtype.kind == "O" or out[k] == cell, f"{name} has a cell that is not of its type")
    return out


def _check_texts(value: Array) -> None:
    if len(value) * value.dtype.itemsize > LARGEST_TEXTS:
        raise ValueError(
            f"an array of text may have at most {LARGEST_TEXTS} bytes, got {value.nbytes}; shorten the texts"
        )


# Steps


class UnknownStep(TypeError):
    """A step that cannot be saved."""


def encode_step(name: str, step: object, arrays: Arrays, prefix: str, compact: bool, known: str) -> Json:
    """A step of a pipeline, as a model in the file of another; the error for one that is not known names it."""
    try:
        return encode_part(step, arrays, prefix, compact)
    except UnknownStep as error:
        raise UnknownStep(f"in step {name!r}: {error}") from None
    except TypeError as error:
        raise UnknownStep(
            f"step {name!r} cannot be saved: {error}. Known steps are {known}. Transform the data before the pipeline "
            "and save the rest, or register a codec for the step with omkl.persist.register"
        ) from error


@contextmanager
def saveable(kind: str) -> Iterator[None]:
    """What could not be read is not written."""
    try:
        yield
    except ModelFileError as error:
        raise TypeError(f"a {kind} that could not be loaded: {error}") from None


def decode_step(body: Json, arrays: Arrays, method: str) -> object:
    """The step, which must have a method of this name."""
    step: object = decode_part(body, arrays, "")
    demand(callable(getattr(step, method, None)), f"a step has no method {method}")
    return step


def unique_names(names: list[object]) -> list[str]:
    """Names of steps: strings, and each once."""
    texts = [name for name in names if isinstance(name, str)]
    demand(len(set(texts)) == len(names), "steps must have different names")
    return texts


def plain_keys(mapping: object, what: str) -> dict[Hashable, object]:
    """A mapping whose keys are labels."""
    demand(isinstance(mapping, dict) and all(is_label(key) for key in mapping), f"{what} must be a mapping by name")
    assert isinstance(mapping, dict)
    return mapping
