"""Codecs: every module that has something to save registers how it becomes a body and arrays, and comes back.

A file may be loaded before the module of its codec was imported; the entry points "omkl.codecs" of installed packages
say which module that is.
"""

import json
import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from importlib.metadata import entry_points
from typing import Any, Generic, NamedTuple, TypeVar

from omkl._version import __version__
from omkl.arrays import Arrays
from omkl.errors import ModelFileError
from omkl.log import logger
from omkl.persist.atomic import write_pieces
from omkl.persist.container import FRONT, MAGIC, Content, Json, demand, pack, unpack

M = TypeVar("M")

LONGEST_MESSAGE, LONGEST_VERSION = 1000, 100  # characters


class Codec(NamedTuple, Generic[M]):
    """How models of some classes become (JSON body, arrays) and come back."""

    classes: tuple[type[M], ...]
    encode: Callable[[M, bool], tuple[Json, Arrays]]  # (model, compact) -> (body, arrays)
    decode: Callable[[Json, Arrays], M]
    published: Callable[[M], Any] = lambda model: model  # what `load` returns for a model
    lock: Callable[[M], AbstractContextManager[object]] = lambda model: nullcontext()  # held until all is written


_CODECS: dict[str, Codec[Any]] = {}


def register(kind: str, codec: Codec[M]) -> None:
    """Make a kind of model known; files name their kind in the header."""
    _CODECS[kind] = codec


def _codec_for(model: object) -> tuple[str, Codec[Any]]:
    own = type(model)
    if not any(own in codec.classes for codec in _CODECS.values()):
        for entry_point in entry_points(group="omkl.codecs"):  # one of them may know it
            entry_point.load()
    for kind, codec in _CODECS.items():
        if own in codec.classes:
            return kind, codec
    for codec in _CODECS.values():
        for known in codec.classes:
            if isinstance(model, known):
                raise TypeError(
                    f"{own.__name__} is a subclass of {known.__name__}: a model file executes nothing, so that it "
                    f"could not be loaded as what it is. Save a {known.__name__}, or register a codec for "
                    f"{own.__name__} (omkl.persist.register, and an entry point of the group omkl.codecs)"
                )
    raise TypeError(
        "only omkl's estimators, fleets and Online, and pipelines of steps with a codec, can be saved, got "
        f"{own.__name__}"
    )


def encode(model: object, compact: bool = False) -> Content:
    kind, codec = _codec_for(model)
    return Content(kind, *codec.encode(model, compact))


def decode(content: Content) -> object:
    if content.kind not in _CODECS:
        for entry_point in entry_points(group="omkl.codecs", name=content.kind):
            entry_point.load()
    if content.kind not in _CODECS:
        raise ModelFileError(f"no model of kind {content.kind!r} is known")
    return _CODECS[content.kind].decode(content.body, content.arrays)


# Whole files


def save(model: object, path: str | os.PathLike[str], *, metadata: Mapping[str, Json] | None = None) -> None:
    """Write a model to `path`, atomically: the file is there whole, or as it was before.

    `metadata` is a dictionary of the user's own, of anything that JSON has: who trained the model, on what. The file
    keeps it beside the version of omkl; `read_metadata` and `omkl inspect` show it.
    """
    about: dict[str, Json] = {"omkl": __version__}
    if metadata is not None:
        about["metadata"] = _as_json(metadata)
    with _codec_for(model)[1].lock(model):
        write_pieces(path, pack(encode(model)._replace(about=about)))
    logger.info("saved %s", path)


def _as_json(metadata: Mapping[str, Json]) -> Json:
    """Metadata as it will be read again."""
    try:
        read: Json = json.loads(json.dumps(dict(metadata), allow_nan=False))
        same = bool(read == dict(metadata))
    except (TypeError, ValueError, RecursionError):
        same = False
    if not same:
        raise TypeError(
            "metadata must be a dictionary of texts, finite numbers, booleans, None, and lists and dictionaries of "
            f"these, with texts as keys, got {_short(metadata)}"
        )
    return read


def load(path: str | os.PathLike[str]) -> Any:
    """The model that `save` wrote; it continues learning as if it had never stopped.

    What the command line wrote is an estimator here.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"path must be the name of a file, got {type(path).__name__}; omkl.from_bytes reads bytes")
    return _published(read(path))


def read_metadata(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The metadata that `save` was given; empty where there was none."""
    metadata: dict[str, Any] = about(path).get("metadata", {})
    return metadata


def about(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What a file says about its model: "omkl", the version that saved it, and "metadata", as far as it says so."""
    try:
        found = unpack(_content(path)).about
        version, metadata = found.get("omkl", ""), found.get("metadata", {})
        demand(isinstance(version, str) and len(version) < LONGEST_VERSION, "the version of omkl must be a short text")
        demand(isinstance(metadata, dict), "the metadata must be a dictionary")
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {_short(error)}") from None
    except Exception as error:  # whatever an untrue header leads to
        raise ModelFileError(f"{path}: inconsistent content ({type(error).__name__}: {_short(error)})") from error
    return found


def read(path: str | os.PathLike[str]) -> Any:
    """The model as its own module has it."""
    data = _content(path)
    logger.info("read %s", path)
    return _read(data, str(path))


def _content(path: str | os.PathLike[str]) -> bytes:
    """All of a file, if it is one of omkl's."""
    with open(path, "rb") as file:
        start = file.read(FRONT.size)
        # of a file that is none of omkl's, be it an endless one, no more than this is read
        return start + (file.read() if start.startswith(MAGIC) else b"")


def to_bytes(model: object) -> bytes:
    """A model as bytes without its random features, which are drawn again from the seed when it is read.

    The features must come out the same; should another version of NumPy draw others, `from_bytes` says so. To store
    a model for years use `save`.
    """
    with _codec_for(model)[1].lock(model):
        return b"".join(pack(encode(model, compact=True)))


def from_bytes(data: bytes) -> Any:
    """The model that `to_bytes` or `save` made."""
    return _published(_read(data, "these bytes"))


def _published(model: object) -> object:
    return next(codec.published(model) for codec in _CODECS.values() if type(model) in codec.classes)


def _read(data: bytes, where: str) -> object:
    try:
        return decode(unpack(data))
    except ImportError:
        raise
    except ModelFileError as error:
        raise ModelFileError(f"{where}: {_short(error)}") from None
    except ValueError as error:  # an invariant of a Problem or State
        raise ModelFileError(f"{where}: {_short(error)}") from error
    except Exception as error:  # whatever an untrue header leads to
        raise ModelFileError(f"{where}: inconsistent content ({type(error).__name__}: {_short(error)})") from error


def _short(what: object) -> str:
    """What it says, of which a value from a file may be a long part."""
    message = str(what)
    return message if len(message) <= LONGEST_MESSAGE else message[:LONGEST_MESSAGE] + "..."


# A model within the file of another


def encode_part(model: object, arrays: Arrays, prefix: str, compact: bool = False) -> Json:
    """The model's body, its arrays added to `arrays` under `prefix`."""
    content = encode(model, compact)
    arrays |= {prefix + name: array for name, array in content.arrays.items()}
    return {"kind": content.kind, "body": content.body}


def decode_part(part: Json, arrays: Arrays, prefix: str) -> Any:
    own = {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
    return decode(Content(part["kind"], part["body"], own))
