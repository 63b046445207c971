"""Values in model files: labels and keys, kernels, and NamedTuples by their type annotations."""

from collections.abc import Iterable
from dataclasses import fields
from typing import Annotated, NamedTuple, TypeGuard, TypeVar, get_args, get_origin, get_type_hints

import numpy as np

from omkl.arrays import Array, Arrays, Vector, padded_copy
from omkl.kernels import Cauchy, Gaussian, Kernel, Laplacian, Matern
from omkl.persist.container import Json, demand
from omkl.validation import is_label

T = TypeVar("T")
_KERNELS: dict[str, type[Kernel]] = {c.__name__: c for c in (Gaussian, Laplacian, Matern, Cauchy)}


def plain(value: object, what: str = "labels, keys and names") -> bool | int | float | str | None:
    """A label, key, name or parameter as JSON that remembers its type."""
    value = item(value)
    if value is None or is_label(value):
        return value  # type: ignore[return-value]  # is_label has looked
    raise ValueError(f"{what} must be finite numbers, strings or booleans to be saved, got {value!r}")


def item(value: object) -> object:
    """NumPy's scalars as Python's; everything else as it is."""
    return value.item() if isinstance(value, np.generic) else value


# Kernels


def register_kernel(kernel: type[Kernel]) -> type[Kernel]:
    """Make a user's own kernel known to `load`; to be called before loading, or used as a decorator."""
    _KERNELS[kernel.__name__] = kernel
    return kernel


def encode_kernels(kernels: Iterable[Kernel]) -> list[Json]:
    encoded = []
    for kernel in kernels:
        name = type(kernel).__name__
        if _KERNELS.get(name) is not type(kernel):
            raise ValueError(
                f"the kernel {kernel!r} cannot be saved, because {name} is not registered: call "
                "omkl.persist.register_kernel on the class, here and before loading"
            )
        parameters = {f.name: plain(getattr(kernel, f.name), "parameters of kernels") for f in fields(kernel)}
        encoded.append([name, parameters])
    return encoded


def decode_kernels(listing: Json) -> list[Kernel]:
    for name, _ in listing:
        demand(
            name in _KERNELS,
            f"kernel {name!r} is not known; if it is your own, call omkl.persist.register_kernel on it before loading",
        )
    return [_KERNELS[name](**values) for name, values in listing]


# NamedTuples: arrays by dotted names, everything else in the body


def encode_tuple(value: NamedTuple, arrays: Arrays, prefix: str = "") -> dict[str, Json]:
    """The body of a Problem or State; its arrays are added to `arrays` under `prefix`."""
    body: dict[str, Json] = {}
    _encode_fields(value, arrays, prefix, "", body)
    return body


def _encode_fields(value: tuple[object, ...], arrays: Arrays, prefix: str, path: str, body: dict[str, Json]) -> None:
    for name, part in zip(_names(value), value, strict=True):
        where = f"{path}{name}"
        if isinstance(part, np.ndarray):
            arrays[prefix + where] = part
        elif isinstance(part, tuple) and _has_array(part):
            _encode_fields(part, arrays, prefix, f"{where}.", body)
        elif isinstance(part, tuple) and part and isinstance(part[0], Kernel):
            body[where] = encode_kernels(part)
        else:
            body[where] = [item(each) for each in part] if isinstance(part, tuple) else item(part)


def decode_tuple(kind: type[T], body: Json, arrays: Arrays, prefix: str = "", path: str = "", pad: bool = False) -> T:
    """The NamedTuple that `encode_tuple` was given; `pad` lays its matrices out for the engine.

    Arrays have the types that the annotations say, and are finite unless annotated as `Gappy`.
    """
    parts: dict[str, object] = {}
    for name, hint in get_type_hints(kind, include_extras=True).items():
        parts[name] = _decode_field(hint, f"{path}{name}", body, arrays, prefix, pad)
    return kind(**parts)


def _decode_field(hint: object, where: str, body: Json, arrays: Arrays, prefix: str, pad: bool) -> object:
    if (array_type := _array_type(hint)) is not None:
        return _checked(arrays, prefix + where, array_type, gappy=get_origin(hint) is Annotated, pad=pad)
    arguments = get_args(hint)
    if get_origin(hint) is tuple and _holds_arrays(arguments[0]):
        return tuple(decode_tuple(part, body, arrays, prefix, f"{where}.{k}.", pad) for k, part in enumerate(arguments))
    if _holds_arrays(hint):
        return decode_tuple(hint, body, arrays, prefix, f"{where}.", pad)
    demand(where in body, f"{where} is missing")
    if get_origin(hint) is tuple and issubclass(arguments[0], Kernel):
        return tuple(decode_kernels(body[where]))
    if get_origin(hint) is tuple:
        return tuple(_as_annotated(arguments[0], value) for value in body[where])
    if _is_named_tuple(hint):
        hints = get_type_hints(hint).values()
        return hint(*(_as_annotated(kind, value) for kind, value in zip(hints, body[where], strict=True)))
    return _as_annotated(hint, body[where])


def _as_annotated(hint: object, value: Json) -> Json:
    """A whole number where a float is wanted as a float, which NumPy can compute with however large it is."""
    return float(value) if hint is float and type(value) is int else value


def _checked(arrays: Arrays, name: str, dtype: np.dtype[np.generic], gappy: bool, pad: bool) -> Array:
    demand(name in arrays, f"array {name} is missing")
    array = arrays[name]
    demand(array.dtype == dtype, f"array {name} must hold {dtype}, got {array.dtype}")
    if array.dtype.kind == "f":
        require_finite(array, name, gappy)
    return padded_copy(float_array(arrays, name)) if pad and array.dtype.kind == "f" and array.ndim > 1 else array


def float_array(arrays: Arrays, name: str) -> Vector:
    """The array of this name, which must hold doubles."""
    demand(name in arrays and arrays[name].dtype == np.float64, f"array {name} is missing, or does not hold numbers")
    return np.asarray(arrays[name], dtype=np.float64)


def require_finite(array: Array, name: str, gappy: bool = False) -> None:
    """Refuse an array with an infinite value, or with NaN unless `gappy`."""
    real = np.isfinite(array) | (np.isnan(array) & gappy)
    demand(bool(real.all()), f"array {name} is not finite")


def _names(value: tuple[object, ...]) -> Iterable[str]:
    kind = type(value)
    return kind._fields if _is_named_tuple(kind) else [str(k) for k in range(len(value))]


def _is_named_tuple(kind: object) -> TypeGuard[type[NamedTuple]]:
    return isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields")


def _has_array(value: tuple[object, ...]) -> bool:
    return any(isinstance(part, np.ndarray) or (isinstance(part, tuple) and _has_array(part)) for part in value)


def _array_type(hint: object) -> np.dtype[np.generic] | None:
    """The element type of an annotation such as NDArray[np.float64], None for another one."""
    if get_origin(hint) is Annotated:
        hint = get_args(hint)[0]
    return np.dtype(get_args(get_args(hint)[1])[0]) if get_origin(hint) is np.ndarray else None


def _holds_arrays(hint: object) -> TypeGuard[type[NamedTuple]]:
    if not _is_named_tuple(hint):
        return False
    hints = get_type_hints(hint, include_extras=True).values()
    return any(_array_type(part) is not None or any(map(_holds_arrays, (part, *get_args(part)))) for part in hints)
