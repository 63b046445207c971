"""Type names for the arrays of the library, and the memory layout that the engine reads."""

import math
from collections.abc import Callable, Container, Mapping
from operator import itemgetter
from typing import Annotated, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Tensor = NDArray[np.float64]
Index = NDArray[np.intp]
Mask = NDArray[np.bool_]
Array = NDArray[np.generic]  # elements of any type
Arrays = dict[str, Array]  # by name, as in a model file
Gappy = Annotated[NDArray[np.float64], "NaN where a value is missing"]

LANES = 8  # doubles in the widest vector register: 64 bytes, one cache line


def padded(*shape: int) -> Tensor:
    """Zeros of `shape`, each row along the last axis aligned to a cache line and padded with zeros up to one.

    The engine reads whole vector registers. The padding is not part of `shape`.

    >>> a = padded(3, 2, 50)
    >>> a.shape, a.strides
    ((3, 2, 50), (896, 448, 8))
    """
    *outer, inner = shape
    width = -(-inner // LANES) * LANES
    size = math.prod(outer) * width
    raw = np.zeros(size + LANES)
    skip = (-raw.ctypes.data // raw.itemsize) % LANES
    return raw[skip : skip + size].reshape(*outer, width)[..., :inner]


def is_padded(a: Tensor) -> bool:
    """Whether `a` has the layout of `padded`.

    >>> is_padded(padded(3, 2, 50)), is_padded(np.zeros((3, 2, 50)))
    (True, False)
    """
    stride = 8 * (-(-a.shape[-1] // LANES) * LANES)
    strides = [8]
    for n in a.shape[-2::-1]:
        strides.append(stride)
        stride *= n
    return a.dtype == np.float64 and a.ctypes.data % 64 == 0 and a.strides == tuple(strides[::-1])


def padded_copy(a: Tensor) -> Tensor:
    """A copy of `a` in the layout of `padded`."""
    out = padded(*a.shape)
    out[...] = a
    return out


# Problems and States are NamedTuples of arrays, numbers and further NamedTuples


def mapped(change: Callable[[str, object], object], value: object, name: str = "") -> Any:
    """The same structure with `change(dotted name, leaf)` in place of every leaf; a leaf is whatever is not a tuple.

    >>> from typing import NamedTuple
    >>> class Pair(NamedTuple):
    ...     a: int
    ...     b: tuple[int, int]
    >>> mapped(lambda name, leaf: f"{name}={leaf}", Pair(1, (2, 3)))
    Pair(a='a=1', b=('b.0=2', 'b.1=3'))
    """
    if not isinstance(value, tuple):
        return change(name, value)
    start = f"{name}." if name else ""
    parts: list[Any] = [
        mapped(change, part, f"{start}{field}") if isinstance(part, tuple) else change(f"{start}{field}", part)
        for field, part in zip(getattr(value, "_fields", range(len(value))), value, strict=True)
    ]
    return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)


def updater(value: object, changing: Container[str], name: str = "") -> Callable[[Mapping[str, object]], Any]:
    """A function that returns the same structure with new values of the leaves `changing`, fast.

    >>> updater((1, (2, 3)), {"1.0"})({"1.0": 9})
    (1, (9, 3))
    """
    if name in changing:
        return itemgetter(name)
    if not isinstance(value, tuple) or not any(each in changing for each in leaves(value, name)):
        return lambda _: value
    start = f"{name}." if name else ""
    fields = getattr(value, "_fields", range(len(value)))
    parts = [updater(part, changing, f"{start}{field}") for field, part in zip(fields, value, strict=True)]
    make = getattr(type(value), "_make", type(value))
    return lambda new: make([part(new) for part in parts])


def leaves(value: object, name: str = "") -> dict[str, object]:
    """All leaves by their dotted names, which follow `name`.

    >>> leaves((1, (2, 3)))
    {'0': 1, '1.0': 2, '1.1': 3}
    """
    found: dict[str, object] = {}
    mapped(found.__setitem__, value, name)
    return found


def copied(value: T) -> T:
    """A copy that shares no array with `value`."""
    copy: T = mapped(lambda _, leaf: np.array(leaf) if isinstance(leaf, np.ndarray) else leaf, value)
    return copy
