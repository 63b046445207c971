"""The streams of the comparison: data sets in file order, generated drift, labels in file order and shuffled."""

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
STREAMS = (*NUMBERS, *DRIFT, *LABELS)

CAP = 4000  # maximum rows of a data set, for all learners
WHOLE = (*PAPER, *LABELS)  # not capped unless a number of rows is given
DRIFT_ROWS = 20_000
CHANGES = {
    "switch": (0.5,), "friedman-gra": (0.35, 0.7), "friedman-lea": (0.25, 0.5, 0.75), "friedman-gsg": (0.35, 0.7),
}  # share of the stream  # fmt: skip
MIXED = 0.1  # share of the stream during which friedman-gsg mixes the old and the new concept


class EvaluationStream(NamedTuple):
    """A stream and the task that is evaluated on it."""

    name: str
    task: Task
    X: Matrix  # (T, d)
    y: Vector  # (T,); -1 and 1 for labels
    of: int  # rows of the whole data set, of which the first T are used
    changes: tuple[int, ...] = ()  # rows at which the stream changes


def task_of(name: str) -> Task:
    """The task of the stream of that name.

    >>> task_of("har-shuffled"), task_of("switch"), task_of("airfoil")
    ('labels', 'drift', 'numbers')
    """
    if name in DRIFT:
        return "drift"
    if is_path(name):
        return "numbers"
    return "labels" if find(name.removesuffix(SHUFFLED)).task == "classification" else "numbers"


@lru_cache(maxsize=4)
def evaluation_stream(name: str, rows: int | None = None) -> EvaluationStream:
    """The stream of that name with at most `rows` rows; None for the default number."""
    task = task_of(name)
    if task == "drift":
        return drifting_stream(name, rows or DRIFT_ROWS)
    stream = load(name.removesuffix(SHUFFLED))
    X, y = stream.X, stream.y
    if name.endswith(SHUFFLED):
        order = np.random.default_rng(0).permutation(len(y))
        X, y = X[order], y[order]
    limit = rows or (len(y) if name in WHOLE else CAP)
    return EvaluationStream(name, task, np.ascontiguousarray(X[:limit]), y[:limit].copy(), len(y))


def drifting_stream(name: str, rows: int) -> EvaluationStream:
    """A generated stream with concept drift, not scaled.

    >>> drifting_stream("switch", 100).changes
    (50,)
    """
    changes = tuple(int(share * rows) for share in CHANGES[name])
    if name == "switch":
        rng = np.random.default_rng(0)
        X = rng.uniform(-1, 1, (rows, 5))
        before = np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2]
        after = np.cos(3 * X[:, 1]) - X[:, 0] * X[:, 3]
        y = np.where(np.arange(rows) < changes[0], before, after) + 0.05 * rng.standard_normal(rows)
        return EvaluationStream(name, "drift", X, y, rows, changes)
    synth = import_module("river.datasets.synth")
    stream = synth.FriedmanDrift(
        drift_type=name.removeprefix("friedman-"), position=changes, transition_window=int(MIXED * rows), seed=42
    )
    pairs = [(list(x.values()), y) for x, y in stream.take(rows)]
    return EvaluationStream(
        name, "drift", np.array([x for x, _ in pairs]), np.array([y for _, y in pairs]), rows, changes
    )
