"""The container format: a JSON header and arrays in one file, nothing that executes.

Layout, all numbers little-endian:

    8 bytes    magic
    4          format version
    8          length of the header
    ...        header, JSON: kind, body, and name, type and shape of every array; where a model was saved by
               `omkl.save` also the version of omkl and the user's metadata
    ...        the arrays, one after the other
    32         BLAKE2b of everything before

A file does not say when or where it was written. Reading trusts nothing: a file that is truncated, changed, foreign,
newer or inconsistent is a ModelFileError. Numbers of arrays and of values in the header are bounded by the bytes of the
arrays (`MOST_ARRAYS`, `MOST_VALUES`), so that neither time nor memory can exceed what a file of that size deserves.

Version 2 stores the state of GraphMKL as two named sets of experts; version 1 is still read.
"""

import hashlib
import json
import math
import struct
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from omkl.arrays import Array, Arrays
from omkl.errors import ModelFileError

MAGIC = b"OMKL\r\n\x1a\n"
PICKLE = b"\x80"  # which a pickle begins with, and no model file
VERSION = 2
DIGEST = 32
FRONT = struct.Struct("<8sIQ")
MOST_ARRAYS, ARRAYS_PER_BYTE = 2**16, 1 / 8  # so many arrays, and these more for each byte of all arrays
MOST_VALUES, VALUES_PER_BYTE = 2**23, 1 / 2  # the same for values in the header: numbers, strings, lists, objects
MOST_AXES = 8  # of an array
TYPES = {"float": np.dtype("<f8"), "int": np.dtype("<i8"), "bool": np.dtype("|b1"), "byte": np.dtype("|u1")}
ABOUT = ("omkl", "metadata")  # parts of the header that say something about the model and are not needed to load it
Json = Any  # what json.loads returns, not yet checked


class Content(NamedTuple):
    """What a file holds."""

    kind: str  # which codec wrote it
    body: Json
    arrays: Arrays
    about: dict[str, Json] = {}  # noqa: RUF012  # of NamedTuples: "omkl", the version, and "metadata"; nothing is read from them


def demand(holds: bool, complaint: str) -> None:
    """Raise ModelFileError unless `holds`."""
    if not holds:
        raise ModelFileError(complaint)


class Later:
    """An array that is made when it is written, because all of its kind together are too large for memory."""

    def __init__(self, dtype: DTypeLike, shape: tuple[int, ...], make: Callable[[], Array]) -> None:
        self.dtype, self.shape, self._make = np.dtype(dtype), shape, make

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Array:
        made: Array = np.asarray(self._make(), dtype=dtype)
        if made.shape != self.shape:
            raise RuntimeError("an array has changed while it was saved")
        return made


def pack(content: Content) -> Iterator[bytes | memoryview]:
    """A file in its pieces: a fleet's arrays are too large to be copied together."""
    listing: list[tuple[str, str, list[int]]] = []
    nbytes = 0
    for name, array in content.arrays.items():
        word = next(word for word, dtype in TYPES.items() if dtype.kind == array.dtype.kind)
        listing.append((name, word, list(array.shape)))
        nbytes += math.prod(array.shape) * TYPES[word].itemsize
    header = {"kind": content.kind, "body": content.body, "arrays": listing} | content.about
    text = json.dumps(header, separators=(",", ":"), allow_nan=False).encode()
    too_much = _excess(text, len(listing), nbytes)
    if too_much:
        raise ValueError(f"the model is too large for a model file: {too_much}")
    return _with_digest(_pieces(text, [word for _, word, _ in listing], content.arrays))


def _pieces(text: bytes, words: list[str], arrays: Arrays) -> Iterator[bytes | memoryview]:
    yield FRONT.pack(MAGIC, VERSION, len(text))
    yield text
    for word, array in zip(words, arrays.values(), strict=True):
        yield np.ascontiguousarray(array, dtype=TYPES[word]).ravel().view(np.uint8).data


def _with_digest(pieces: Iterable[bytes | memoryview]) -> Iterator[bytes | memoryview]:
    digest = hashlib.blake2b(digest_size=DIGEST)
    for piece in pieces:
        digest.update(piece)
        yield piece
    yield digest.digest()


def unpack(data: bytes) -> Content:
    if data[:1] == PICKLE:
        raise ModelFileError("a pickle, not an omkl model file; omkl.save writes one of the model that is pickled here")
    if len(data) < FRONT.size or not data.startswith(MAGIC):
        raise ModelFileError(f"not an omkl model file, or cut off within its first {FRONT.size} bytes")
    _, version, length = FRONT.unpack_from(data)
    if version > VERSION:
        raise ModelFileError(
            f"format version {version} is newer than {VERSION}, the newest this omkl reads; upgrade omkl"
        )
    content, digest = memoryview(data)[:-DIGEST], data[-DIGEST:]
    if hashlib.blake2b(content, digest_size=DIGEST).digest() != digest:
        raise ModelFileError("truncated or corrupted, its checksum does not match")
    text, rest = bytes(content[FRONT.size : FRONT.size + length]), content[FRONT.size + length :]
    demand(len(text) == length, "the header is longer than the file")
    _demand_no_excess(text, 0, len(rest))
    header = json.loads(text, parse_float=_finite, parse_constant=_finite)
    _demand_no_excess(b"", len(header["arrays"]), len(rest))
    about = {name: header[name] for name in ABOUT if name in header}
    return Content(header["kind"], header["body"], _arrays(header["arrays"], rest), about)


def _excess(text: bytes, arrays: int, nbytes: int) -> str:
    """What there is too much of, beside so many bytes of arrays; empty if all is well."""
    values = text.count(b",") + text.count(b"[") + text.count(b"{")
    for number, most, per_byte, what in (
        (values, MOST_VALUES, VALUES_PER_BYTE, "values in its header"),
        (arrays, MOST_ARRAYS, ARRAYS_PER_BYTE, "arrays"),
    ):
        if number > most + per_byte * nbytes:
            return f"{number} {what}, at most {int(most + per_byte * nbytes)} with {nbytes} bytes of arrays"
    return ""


def _demand_no_excess(text: bytes, arrays: int, nbytes: int) -> None:
    too_much = _excess(text, arrays, nbytes)
    demand(not too_much, f"the file asks for too much: {too_much}")


def _finite(word: str) -> float:
    """A number of the header; JSON also has NaN, Infinity and numbers beyond the largest."""
    value = float(word)
    demand(math.isfinite(value), f"{word[:20]} in the header is not finite")
    return value


def _arrays(listing: Json, content: memoryview) -> Arrays:
    arrays: Arrays = {}
    start = 0
    for name, word, shape in listing:
        dtype = TYPES[word]
        demand(len(shape) <= MOST_AXES and all(type(n) is int and n >= 0 for n in shape),
               f"array {name} has an impossible shape")  # fmt: skip
        size = math.prod(shape) * dtype.itemsize
        demand(size <= len(content) - start, f"array {name} is longer than the file")
        arrays[name] = np.frombuffer(content[start : start + size], dtype=dtype).reshape(shape).copy()
        start += size
    demand(start == len(content), "arrays and file differ in length")
    demand(len(arrays) == len(listing), "two arrays have the same name")
    return arrays
