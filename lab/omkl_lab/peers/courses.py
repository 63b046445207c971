"""What everybody runs over: data sets in file order, streams that change, labels as they come and shuffled."""

from functools import lru_cache
from importlib import import_module
from typing import Literal, NamedTuple

import numpy as np

from omkl.arrays import Matrix, Vector
from omkl_lab.data.sets import PAPER, find, is_path, load

Task = Literal["numbers", "drift", "labels"]

NUMBERS = (
    "airfoil", "concrete", "wine_white", "naval", "bias", "energy", "air_quality", "toms_hardware", "twitter",
    "istanbul",
)  # fmt: skip
DRIFT = ("switch", "friedman-gra", "friedman-lea", "friedman-gsg")
SHUFFLED = "-shuffled"
LABELS = tuple(name + order for name in ("device", "har", "movement") for order in ("", SHUFFLED))
COURSES = (*NUMBERS, *DRIFT, *LABELS)

CAP = 4000  # rows of a data set, for every learner alike
WHOLE = (*PAPER, *LABELS)  # not capped unless a number of rows is asked for
DRIFT_ROWS = 20_000
CHANGES = {
    "switch": (0.5,), "friedman-gra": (0.35, 0.7), "friedman-lea": (0.25, 0.5, 0.75), "friedman-gsg": (0.35, 0.7),
}  # share of the stream  # fmt: skip
MIXED = 0.1  # share of the stream during which friedman-gsg mixes the old and the new


class Course(NamedTuple):
    """A stream with what is to be measured on it."""

    name: str
    task: Task
    X: Matrix  # (T, d)
    y: Vector  # (T,); -1 and 1 for labels
    of: int  # rows there are, of which T are run
    changes: tuple[int, ...] = ()  # rows at which the stream changes


def task_of(name: str) -> Task:
    """What is measured on the course of that name.

    >>> task_of("har-shuffled"), task_of("switch"), task_of("airfoil")
    ('labels', 'drift', 'numbers')
    """
    if name in DRIFT:
        return "drift"
    if is_path(name):
        return "numbers"
    return "labels" if find(name.removesuffix(SHUFFLED)).task == "classification" else "numbers"


@lru_cache(maxsize=4)
def course(name: str, rows: int | None = None) -> Course:
    """The course of that name; `rows` is the most that are run, None for the usual number."""
    task = task_of(name)
    if task == "drift":
        return changing(name, rows or DRIFT_ROWS)
    stream = load(name.removesuffix(SHUFFLED))
    X, y = stream.X, stream.y
    if name.endswith(SHUFFLED):
        order = np.random.default_rng(0).permutation(len(y))
        X, y = X[order], y[order]
    most = rows or (len(y) if name in WHOLE else CAP)
    return Course(name, task, np.ascontiguousarray(X[:most]), y[:most].copy(), len(y))


def changing(name: str, rows: int) -> Course:
    """A generated stream that changes; raw units.

    >>> changing("switch", 100).changes
    (50,)
    """
    changes = tuple(int(share * rows) for share in CHANGES[name])
    if name == "switch":
        rng = np.random.default_rng(0)
        X = rng.uniform(-1, 1, (rows, 5))
        before = np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2]
        after = np.cos(3 * X[:, 1]) - X[:, 0] * X[:, 3]
        y = np.where(np.arange(rows) < changes[0], before, after) + 0.05 * rng.standard_normal(rows)
        return Course(name, "drift", X, y, rows, changes)
    synth = import_module("river.datasets.synth")
    stream = synth.FriedmanDrift(
        drift_type=name.removeprefix("friedman-"), position=changes, transition_window=int(MIXED * rows), seed=42
    )
    pairs = [(list(x.values()), y) for x, y in stream.take(rows)]
    return Course(name, "drift", np.array([x for x, _ in pairs]), np.array([y for _, y in pairs]), rows, changes)
