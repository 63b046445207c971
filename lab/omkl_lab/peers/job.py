"""Evaluates a learner on a stream, and runs what is not in a file of results yet."""

import warnings
from collections.abc import Callable, Iterable
from importlib.metadata import version
from pathlib import Path

import numpy as np
from rich.console import Console
from threadpoolctl import threadpool_limits

from omkl._version import __version__
from omkl.errors import DivergenceError
from omkl_lab import machine
from omkl_lab.files import brief
from omkl_lab.parallel import Journal, Record, Unit, run_parallel
from omkl_lab.peers.evaluation import AFTER, SKIP, Outcome, accuracy, calibration_error, log_loss, recovery
from omkl_lab.peers.learners import LEARNERS, Learner
from omkl_lab.peers.showing import MACHINE, is_machine
from omkl_lab.peers.streams import EvaluationStream, evaluation_stream
from omkl_lab.progress import Progress

Scores = Callable[[Outcome, EvaluationStream], Record]  # the measures of one run


def run_missing(
    chosen: list[Unit], path: Path, jobs: int, seeds: int, stderr: Console, describe: Callable[[Record], str]
) -> dict[str, Record]:
    """Run the units that are not in the file, append their records, and return all records of the file."""
    with Journal(path) as journal:
        units = [unit for unit in chosen if not finished(journal.records.get(unit.keys[0]))]
        if units:
            here = machine.described() | {"jobs": jobs, "seeds": seeds}
            journal.add((f"{MACHINE} {1 + sum(map(is_machine, journal.records))}",), [here])
        with Progress(len(units), stderr, "comparing") as bar:
            for keys, records in run_parallel(units, jobs, prefer="processes"):
                journal.add(keys, records)
                bar.tick(1)
                if stderr.is_terminal:
                    stderr.print(describe(records[0]), highlight=False)
        return journal.records


def finished(record: Record | None) -> bool:
    """Whether there is a result; a package that was missing may be installed by now."""
    return record is not None and record["status"] != "missing"


def evaluate_by_name(name: str, learner: str, rows: int | None, seeds: int) -> list[Record]:
    """The record of one learner on one stream."""
    return [evaluate(LEARNERS[learner], evaluation_stream(name, rows), seeds, scores)]


def evaluate(learner: Learner, stream: EvaluationStream, seeds: int, scores: Scores) -> Record:
    """The record of one learner on one stream: medians over the seeds, or why there are none."""
    record: Record = {
        "stream": stream.name, "task": stream.task, "learner": learner.name, "ours": learner.ours, "status": "ok",
        "note": "",
        "rows": len(stream.y), "of": stream.of, "features": stream.X.shape[1], "seeds": seeds,
    }  # fmt: skip
    if (absent := learner.absent) is not None:
        return record | {"status": "missing", "note": absent}
    record["version"] = __version__ if learner.package == "omkl" else version(learner.package)
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"), threadpool_limits(1):
            warnings.simplefilter("ignore")
            runs = [run_once(learner, stream, seed, scores) for seed in range(seeds)]
    except Exception as error:  # any failure of a peer is reported in the table
        text = str(error).splitlines()[0] if str(error) else ""
        return record | {"status": "raised", "note": f"{type(error).__name__}: {text}"[:100]}
    complete = [run for run in runs if "gave_up" not in run]
    if 2 * len(complete) <= len(runs):
        return record | {"status": "diverged", "note": f"gave up at row {max(r.get('gave_up', 0) for r in runs)}"}
    return record | summary(complete)


def run_once(learner: Learner, stream: EvaluationStream, seed: int, scores: Scores) -> Record:
    """The measures of one run, or the row at which it was stopped."""
    try:
        outcome = learner.run(stream.X, stream.y, seed, stream.task)
    except DivergenceError:
        return {"gave_up": 0}
    if len(outcome.predictions) < len(stream.y):
        return {"gave_up": len(outcome.predictions)}
    return {"microseconds": 1e6 * outcome.seconds / len(stream.y)} | scores(outcome, stream)


def scores(outcome: Outcome, stream: EvaluationStream) -> Record:
    return of_labels(outcome, stream) if stream.task == "labels" else of_numbers(outcome, stream)


def of_labels(outcome: Outcome, stream: EvaluationStream) -> Record:
    p, label = outcome.predictions, (stream.y + 1) / 2
    return {"accuracy": accuracy(p, label), "log_loss": log_loss(p, label), "calibration": calibration_error(p, label)}


def of_numbers(outcome: Outcome, stream: EvaluationStream) -> Record:
    errors = (outcome.predictions - stream.y) ** 2
    run: Record = {"mse": float(errors.mean())}
    stops = (*stream.changes[1:], len(errors))
    if stream.changes:
        run["recovery"] = [recovery(errors, c, stop) for c, stop in zip(stream.changes, stops, strict=True)]
    if outcome.interval is not None:
        inside = (outcome.interval[:, 0] <= stream.y) & (stream.y <= outcome.interval[:, 1])
        run |= {
            "coverage": float(inside.mean()),
            "width": float(np.mean(outcome.interval[:, 1] - outcome.interval[:, 0])),
        }
        if stream.changes:
            run["coverage_after"] = [float(inside[c + SKIP : c + SKIP + AFTER].mean()) for c in stream.changes]
    return run


def summary(runs: list[Record]) -> Record:
    """Medians over the seeds, and the range of the error."""
    out: Record = {}
    for name in runs[0]:
        values = [run[name] for run in runs]
        if isinstance(values[0], list):
            out[name] = [middle(each) for each in zip(*values, strict=True)]
        else:
            out[name] = middle(values)
    for name in ("mse", "accuracy"):
        if name in out and len(runs) > 1:
            values = [run[name] for run in runs]
            out[f"{name}_range"] = [brief(min(values)), brief(max(values))]
    return out


def middle(values: Iterable[float | None]) -> float | None:
    """The median, where None counts as infinite.

    >>> middle([3, None, 1]), middle([None, None, 1])
    (3.0, None)
    """
    median = float(np.median([np.inf if value is None else value for value in values]))
    return brief(median) if np.isfinite(median) else None
