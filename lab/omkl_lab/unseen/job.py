"""Evaluates every learner on every further stream."""

import zlib
from functools import lru_cache

import numpy as np

from omkl.arrays import Vector
from omkl_lab.parallel import Record
from omkl_lab.peers.evaluation import FLOOR, Outcome
from omkl_lab.peers.job import evaluate
from omkl_lab.peers.streams import EvaluationStream, Task
from omkl_lab.unseen import fresh_labels, fresh_numbers, learners, used
from omkl_lab.unseen.components import ROWS, Maker

SEEDS = 3
MAKERS: dict[str, tuple[str, Task, Maker]] = {
    **{name: ("fresh", "numbers", make) for name, make in fresh_numbers.NUMBERS.items()},
    **{name: ("fresh", "labels", make) for name, make in fresh_labels.LABELS.items()},
    **{name: ("used", "numbers", make) for name, make in used.NUMBERS.items()},
    **{name: ("used", "labels", make) for name, make in used.LABELS.items()},
}
LEARNERS = {"numbers": learners.NUMBERS, "labels": learners.LABELS}


@lru_cache(maxsize=2)
def stream(name: str) -> EvaluationStream:
    """The stream of that name. The first target is subtracted, since no learner can know the level."""
    _, task, make = MAKERS[name]
    X, y = (part[:ROWS] for part in make(np.random.default_rng(zlib.crc32(name.encode()))))
    targets = np.unique(y, return_inverse=True)[1].astype(float) if task == "labels" else y - y[0]
    return EvaluationStream(name, task, np.ascontiguousarray(X), targets, len(y))


def evaluate_by_name(name: str, learner: str) -> list[Record]:
    """The record of one learner on one stream."""
    group, task, make = MAKERS[name]
    chosen = LEARNERS[task][learner]
    record = evaluate(chosen, stream(name), SEEDS if chosen.seeded else 1, scores)
    return [record | {"group": group, "about": make.__doc__ or "", "package": chosen.package}]


def scores(outcome: Outcome, stream: EvaluationStream) -> Record:
    """Squared error divided by the variance for numbers; share of wrong labels and log-loss for labels."""
    if not np.isfinite(outcome.predictions).all():
        raise ValueError("a prediction is not finite")
    if stream.task == "labels":
        return of_labels(outcome.predictions, stream.y.astype(int))
    out: Record = {"error": float(np.mean((outcome.predictions - stream.y)[1:] ** 2) / stream.y[1:].var())}
    if outcome.interval is not None:
        out["coverage"] = float(np.mean((outcome.interval[:, 0] <= stream.y) & (stream.y <= outcome.interval[:, 1])))
    return out


def of_labels(probabilities: Vector, y: Vector) -> Record:
    """Share of wrong labels (ties count by their share) and log-loss, without the first row of each label.

    >>> of_labels(np.array([[0.5, 0.5], [1.0, 0.0], [0.8, 0.2], [0.5, 0.5]]), np.array([0, 1, 1, 0]))["wrong"]
    0.75
    """
    rows = np.arange(len(y))
    top = probabilities == probabilities.max(axis=1, keepdims=True)
    wrong = 1 - top[rows, y] / top.sum(axis=1)
    total = probabilities.sum(axis=1)
    of_truth = np.where(total > 0, probabilities[rows, y] / np.where(total > 0, total, 1), 1 / probabilities.shape[1])
    known = np.delete(rows, np.unique(y, return_index=True)[1])
    return {"wrong": float(wrong[known].mean()), "log_loss": float(-np.log(np.maximum(of_truth[known], FLOOR)).mean())}


def progress_line(record: Record) -> str:
    """A record in one line."""
    measured = {what: record[what] for what in ("error", "wrong", "log_loss", "note") if record.get(what)}
    return f"{record['stream']:20} {record['learner']:24} {measured}"
