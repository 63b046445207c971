"""Type names for the arrays of the library, and the memory layout that the engine reads."""

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Tensor = NDArray[np.float64]
Index = NDArray[np.intp]
Mask = NDArray[np.bool_]

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
    size = int(np.prod(outer, dtype=np.intp)) * width
    raw = np.zeros(size + LANES)
    skip = (-raw.ctypes.data // raw.itemsize) % LANES
    return raw[skip : skip + size].reshape(*outer, width)[..., :inner]


def is_padded(a: Tensor) -> bool:
    """Whether `a` has the layout of `padded`.

    >>> is_padded(padded(3, 2, 50)), is_padded(np.zeros((3, 2, 50)))
    (True, False)
    """
    width = -(-a.shape[-1] // LANES) * LANES
    strides = np.cumprod((1, width, *a.shape[-2:0:-1]))[::-1] * a.itemsize
    return a.dtype == np.float64 and a.ctypes.data % 64 == 0 and a.strides == tuple(strides)


def padded_copy(a: Tensor) -> Tensor:
    """A copy of `a` in the layout of `padded`."""
    out = padded(*a.shape)
    out[...] = a
    return out
