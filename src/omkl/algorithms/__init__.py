"""The algorithms in plain NumPy, one module each: the reference implementation, to read and to test against.

This is their list. Importing it loads none of them, so that names can be listed at no cost.
"""

from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from omkl.algorithms.base import Algorithm, AlgorithmSettings

MODULES = (
    "graph_mkl", "sfg_mkl", "sfg_mkl_r", "raker", "omkl_gf", "omkr", "rfomkr",
    "adaraker", "vaw2", "fogd", "nogd", "krls_t", "doebe",
)  # fmt: skip
ALIASES = {"omkl-sfg": "sfg-mkl", "omkl-sfg-r": "sfg-mkl-r"}  # names in the journal version of the paper


@cache
def names() -> tuple[str, ...]:
    """The algorithms' names, as users write them.

    >>> names()
    ('graph-mkl', 'sfg-mkl', 'sfg-mkl-r', 'raker', 'omkl-gf', 'omkr', 'rfomkr', 'adaraker', 'vaw2', 'fogd',
     'nogd', 'krls-t', 'doebe')
    """
    return tuple(module.replace("_", "-") for module in MODULES)


def named(name: str) -> str:
    """The algorithm's own name, where this is an alias of it.

    >>> named("omkl-sfg-r")
    'sfg-mkl-r'
    """
    return ALIASES.get(name, name)


def get(name: str) -> "Algorithm[NamedTuple, NamedTuple]":
    """The algorithm of this name, or of this alias.

    >>> get("raker").name, get("omkl-sfg").name
    ('raker', 'sfg-mkl')
    >>> get("ridge")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ValueError: algorithm must be one of graph-mkl, ..., krls-t, doebe, got 'ridge'
    """
    if named(name) not in names():
        raise ValueError(f"algorithm must be one of {', '.join(names())}, got {name!r}")
    return _load(named(name))


@cache
def _load(name: str) -> "Algorithm[NamedTuple, NamedTuple]":
    algorithm: Algorithm[NamedTuple, NamedTuple] = import_module(f"omkl.algorithms.{name.replace('-', '_')}").ALGORITHM
    return algorithm


def problem(
    name: str, settings: "AlgorithmSettings", d: int | None = None, *, names: Sequence[str] | None = None, seed: int = 0
) -> Any:
    """The Problem of an algorithm for d features, or for features of these names.

    `seed` decides the random features and nothing else.

    >>> from omkl import Settings
    >>> problem("raker", Settings(n_features=20), d=3).V.shape
    (41, 3, 20)
    """
    from omkl.features import column_names
    from omkl.validation import require, require_whole

    algorithm = get(name)
    right = isinstance(settings, algorithm.settings)
    require(right, "settings", f"{algorithm.settings.__name__} for {name}", type(settings).__name__)
    if names is None:
        require_whole("d", d)
        names = column_names(int(d or 0))
    return algorithm.build(settings, names, seed)
