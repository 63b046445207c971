"""The streams of the comparison: unscaled rows in file order, with the unit in which errors are measured."""

from functools import lru_cache
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from omkl.arrays import Matrix, Vector
from omkl_lab.data.sets import DataSetNotFoundError, find, how_to_get, locate
from omkl_lab.data.table import read_table
from omkl_lab.peers.streams import DRIFT, DRIFT_ROWS, LABELS, NUMBERS, SHUFFLED, drifting_stream

Task = Literal["numbers", "labels"]

REAL_NUMBERS = (
    "diamonds", "weather_nyc", "ames", "deliveries", "txhousing", "cps1988", "rain_ibk", "key_west_water", "loans",
)  # fmt: skip
REAL_LABELS = ("penbased", "spambase", "letter", "hpc", "cells", "credit")
REAL = (*REAL_NUMBERS, *REAL_LABELS)
PROJECT = (*NUMBERS, *LABELS)
GROUPS = {"real": REAL, "project": PROJECT, "drift": DRIFT}
ORDERED = (
    "weather_nyc", "ames", "txhousing", "rain_ibk", "key_west_water", "bias", "energy", "air_quality", "istanbul",
)  # in order of time (ames: of its file), where past targets may help  # fmt: skip


class RawStream(NamedTuple):
    """Rows in the order in which they arrive, unscaled."""

    name: str
    task: Task
    X: Matrix  # (T, d)
    y: Vector  # (T,); 0, 1, ... for labels
    unit: float  # of errors: the range of the targets over the file; 1 for generated streams
    ordered: bool
    changes: tuple[int, ...] = ()  # rows at which the stream changes


def names_of(words: list[str]) -> tuple[str, ...]:
    """The streams named, groups replaced by their members.

    >>> names_of(["drift", "ames"])
    ('switch', 'friedman-gra', 'friedman-lea', 'friedman-gsg', 'ames')
    """
    everything = [name for group in GROUPS.values() for name in group]
    out: list[str] = []
    for word in words:
        if word != "all" and word not in GROUPS and word not in everything:
            raise ValueError(f"unknown set {word!r}; choose from all, {', '.join([*GROUPS, *everything])}")
        out += everything if word == "all" else GROUPS.get(word, (word,))
    return tuple(dict.fromkeys(out))


@lru_cache(maxsize=2)
def raw_stream(name: str, rows: int | None = None) -> RawStream:
    """The stream of that name, at most its first `rows` rows."""
    if name in DRIFT:
        there = drifting_stream(name, DRIFT_ROWS)
        changes = tuple(row for row in there.changes if row < (rows or DRIFT_ROWS))
        return RawStream(name, "numbers", there.X[:rows], there.y[:rows], 1.0, False, changes)
    table = read_table(file_of(name), gaps=find(name.removesuffix(SHUFFLED)).gaps > 0)
    X, y = table.X, table.y
    if name.endswith(SHUFFLED):
        order = np.random.default_rng(0).permutation(len(y))
        X, y = np.ascontiguousarray(X[order]), y[order]
    if find(name.removesuffix(SHUFFLED)).task == "classification":
        return RawStream(name, "labels", X[:rows], np.unique(y, return_inverse=True)[1][:rows].astype(float), 1, False)
    return RawStream(name, "numbers", X[:rows], y[:rows], float(np.ptp(y)), name in ORDERED)


def file_of(name: str) -> Path:
    base = name.removesuffix(SHUFFLED)
    if (path := locate(base)) is None:
        raise DataSetNotFoundError(f"data set {base} not found: {how_to_get(base)}")
    return path
