"""Save and load: any model of the library as one file."""

import os
from importlib import import_module
from typing import Any

from omkl import persist

# which module registers the codec of a kind of file: a file may be loaded before its module was imported
MODULES = {
    "sklearn": "omkl.estimators.sklearn",
    "river": "omkl.estimators.river",
    "fleet": "omkl.fleet",
    "fleet-key": "omkl.fleet",
    "stream": "omkl.stream.codec",
    "checkpoint": "omkl.stream.run",
}


def _prepare(kind: str) -> None:
    if kind in MODULES and not persist.is_registered(kind):
        import_module(MODULES[kind])


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a model to `path`, atomically: the file is there whole, or as it was before."""
    persist.save(model, path)


def load(path: str | os.PathLike[str]) -> Any:
    """The model that `save` wrote; it continues learning as if it had never stopped."""
    return persist.load(path, _prepare)


def to_bytes(model: Any) -> bytes:
    """A model as bytes without its random features, which are drawn again from the seed when it is read.

    The features must come out the same; should another version of NumPy draw others, `from_bytes` says so. To store
    a model for years use `save`.
    """
    return persist.to_bytes(model)


def from_bytes(data: bytes) -> Any:
    """The model that `to_bytes` or `save` made."""
    return persist.from_bytes(data, prepare=_prepare)
