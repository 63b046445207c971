"""Every learner on every stream, and what is said of it."""

import zlib
from functools import lru_cache

import numpy as np

from omkl.arrays import Vector
from omkl_lab.parallel import Record
from omkl_lab.peers.courses import Course, Task
from omkl_lab.peers.job import attempted
from omkl_lab.peers.walk import FLOOR, Walk
from omkl_lab.unseen import fresh, learners, used

SEEDS = 3
MAKERS: dict[str, tuple[str, Task, fresh.Maker]] = {
    **{name: ("fresh", "numbers", make) for name, make in fresh.NUMBERS.items()},
    **{name: ("fresh", "labels", make) for name, make in fresh.LABELS.items()},
    **{name: ("used", "numbers", make) for name, make in used.NUMBERS.items()},
    **{name: ("used", "labels", make) for name, make in used.LABELS.items()},
}
LEARNERS = {"numbers": learners.NUMBERS, "labels": learners.LABELS}


@lru_cache(maxsize=2)
def stream(name: str) -> Course:
    """Targets less the first, so that nobody pays for a level that nobody could know; labels from 0."""
    _, task, make = MAKERS[name]
    X, y = (part[: fresh.ROWS] for part in make(np.random.default_rng(zlib.crc32(name.encode()))))
    told = np.unique(y, return_inverse=True)[1].astype(float) if task == "labels" else y - y[0]
    return Course(name, task, np.ascontiguousarray(X), told, len(y))


def cell(name: str, learner: str) -> list[Record]:
    """One learner on one stream."""
    group, task, make = MAKERS[name]
    who = LEARNERS[task][learner]
    record = attempted(who, stream(name), SEEDS if who.seeded else 1, scores)
    return [record | {"group": group, "about": make.__doc__ or "", "package": who.package}]


def scores(walk: Walk, what: Course) -> Record:
    """Of numbers the squared error over the variance, of labels the share that is wrong and the log-loss."""
    if not np.isfinite(walk.predictions).all():
        raise ValueError("a prediction is not finite")
    if what.task == "labels":
        return of_labels(walk.predictions, what.y.astype(int))
    out: Record = {"error": float(np.mean((walk.predictions - what.y)[1:] ** 2) / what.y[1:].var())}
    if walk.ends is not None:
        out["coverage"] = float(np.mean((walk.ends[:, 0] <= what.y) & (what.y <= walk.ends[:, 1])))
    return out


def of_labels(chances: Vector, y: Vector) -> Record:
    """A tie counts by its share; the first row of each label, which nobody could know, counts for nothing.

    >>> of_labels(np.array([[0.5, 0.5], [1.0, 0.0], [0.8, 0.2], [0.5, 0.5]]), np.array([0, 1, 1, 0]))["wrong"]
    0.75
    """
    rows = np.arange(len(y))
    top = chances == chances.max(axis=1, keepdims=True)
    wrong = 1 - top[rows, y] / top.sum(axis=1)
    total = chances.sum(axis=1)
    chance = np.where(total > 0, chances[rows, y] / np.where(total > 0, total, 1), 1 / chances.shape[1])
    known = np.delete(rows, np.unique(y, return_index=True)[1])
    return {"wrong": float(wrong[known].mean()), "log_loss": float(-np.log(np.maximum(chance[known], FLOOR)).mean())}


def told(record: Record) -> str:
    """A finished cell in one line."""
    measured = {what: record[what] for what in ("error", "wrong", "log_loss", "note") if record.get(what)}
    return f"{record['course']:20} {record['learner']:24} {measured}"
