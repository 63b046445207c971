"""Runs learners on streams and appends a record for each seed to a file; finished runs are not repeated."""

import hashlib
import warnings
from collections.abc import Iterator, Mapping
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from threadpoolctl import threadpool_limits

import omkl
from omkl_lab import machine
from omkl_lab.comparison import outcome
from omkl_lab.comparison.learners import LEARNERS, Learner, graph_mkl
from omkl_lab.comparison.streams import RawStream, raw_stream
from omkl_lab.data.sets import DataSetNotFoundError
from omkl_lab.files import brief, read_lines
from omkl_lab.parallel import Journal, Record
from omkl_lab.peers.evaluation import recovery
from omkl_lab.peers.showing import MACHINE, US
from omkl_lab.progress import Progress

RESULTS = Path("results/comparison.jsonl")
SOURCES = ("*.py", "algorithms/**/*.py", "estimators/**/*.py", "engine/**/*.[ch]pp")  # that determine a result


class Run(NamedTuple):
    """One learner on one stream with one seed."""

    stream: str
    learner: str
    settings: str  # of GraphMKL, as given; empty: defaults
    seed: int
    rows: int | None
    version: str  # of the code

    @property
    def key(self) -> str:
        rows = f"{self.rows} rows" if self.rows else "all rows"
        return " | ".join(
            (self.stream, self.learner, self.settings or "defaults", f"seed {self.seed}", rows, self.version)
        )


@lru_cache
def omkl_version() -> str:
    """A digest of the sources of omkl that determine its predictions.

    >>> len(omkl_version())
    10
    """
    folder = Path(omkl.__file__).parent
    digest = hashlib.sha256()
    for path in sorted({path for pattern in SOURCES for path in folder.glob(pattern)} - {folder / "_version.py"}):
        digest.update(path.relative_to(folder).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()[:10]


def version_of(learner: Learner) -> str:
    return omkl_version() if learner.name == US else "1" if learner.package == "omkl" else version(learner.package)


def planned(
    streams: tuple[str, ...], learners: tuple[str, ...], settings: str, seeds: int | None, rows: int | None
) -> Iterator[Run]:
    """The runs of these streams and learners; a learner that is not installed has none."""
    for name in streams:
        stream = raw_stream(name)
        for learner in (LEARNERS[who] for who in learners):
            if not learner.takes(stream) or learner.absent:
                continue
            limits = [
                n for n in (rows, None if stream.changes else learner.rows) if n is not None and n < len(stream.y)
            ]
            ours = learner.name == US
            for seed in range(seeds or learner.seeds if ours else min(seeds or learner.seeds, learner.seeds)):
                yield Run(
                    name, learner.name, settings if ours else "", seed, min(limits, default=None), version_of(learner)
                )


def evaluate(run: Run, settings: Mapping[str, Any]) -> Record:
    """The record of one run: its measures, or why there are none."""
    stream = raw_stream(run.stream, run.rows)
    learner = LEARNERS[run.learner]
    work = graph_mkl(settings) if run.learner == US else learner.run
    record: Record = {
        **run._asdict(), "rows": len(stream.y), "of": len(raw_stream(run.stream).y),
        "features": stream.X.shape[1], "task": stream.task,
        "package": learner.package, "status": "ok",
    }  # fmt: skip
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"), threadpool_limits(1):
            warnings.simplefilter("ignore")
            done = work(stream, run.seed)
    except Exception as error:  # any failure of a learner is reported in the table
        if run.learner == US:
            raise
        text = str(error).splitlines()[0] if str(error) else ""
        return record | {"status": "raised", "note": f"{type(error).__name__}: {text}"[:100]}
    if len(done.predictions) < len(stream.y) or not np.isfinite(done.predictions).all():
        return record | {"status": "diverged", "note": f"gave up at row {len(done.predictions)}"}
    measures = measured(done, stream)
    return record | {"microseconds": brief(1e6 * done.seconds / len(stream.y)), "bytes": done.size} | measures


def measured(done: outcome.Outcome, stream: RawStream) -> Record:
    if stream.task == "labels":
        found = outcome.of_labels(done, stream.y)
    else:
        found = outcome.of_numbers(done, stream.y, stream.unit)
    if stream.changes:
        errors, stops = (done.predictions - stream.y) ** 2, (*stream.changes[1:], len(stream.y))
        found["recovery"] = [recovery(errors, at, stop) for at, stop in zip(stream.changes, stops, strict=True)]
    return {what: brief(value) if isinstance(value, float) else value for what, value in found.items()}


def run_missing(runs: list[Run], settings: Mapping[str, Any], out: Path, fresh: bool, stderr: Console) -> list[Record]:
    """Make the runs that are not in the file, and return the records of the file, the newest last."""
    out.parent.mkdir(parents=True, exist_ok=True)
    with Journal(out) as journal:
        left = [run for run in runs if fresh or run.key not in journal.records]
        if left:
            start = 1 + sum(key.startswith(MACHINE) for key in journal.records)
            journal.add((f"{MACHINE} {start}",), [machine.described() | {"jobs": 1}])
        with Progress(len(left), stderr, "comparing") as bar:
            for run in left:
                record = evaluate(run, settings)
                journal.add((run.key,), [record])
                bar.tick(1)
                stderr.print(in_a_line(record), highlight=False, soft_wrap=True)
    return records_of(out)


def records_of(path: Path) -> list[Record]:
    """The records of runs in a file, of each key the newest."""
    newest = {entry["key"]: entry["record"] for entry in read_lines(path)}
    return [record for key, record in newest.items() if not key.startswith(MACHINE)]


def starts_of(path: Path) -> list[Record]:
    """The machine at each start of the command."""
    return [entry["record"] for entry in read_lines(path) if entry["key"].startswith(MACHINE)]


def in_a_line(record: Record) -> str:
    if record["status"] != "ok":
        shown = f"{record['status']}: {record.get('note', '')}"
    elif record["task"] == "labels":
        shown = f"wrong {100 * record['wrong']:.3g} %, log-loss {record['log_loss']:.3g}"
    else:
        shown = f"MSE {1e3 * record['mse']:.3g}e-3, coverage {100 * record['coverage']:.1f} %"
        shown += f", log score {record['log_score']:.3g}"
    speed = f", {record['microseconds']:.3g} us" if "microseconds" in record else ""
    who = f"{record['learner']} {record['settings']} seed {record['seed']}"
    return f"{record['stream']:18} {who:50} {shown}{speed}"


def available(streams: tuple[str, ...], console: Console) -> tuple[str, ...]:
    """The streams that can be loaded; the others are named."""
    found = []
    for name in streams:
        try:
            raw_stream(name, None)
            found.append(name)
        except DataSetNotFoundError as error:
            console.print(f"skipped: {error}", highlight=False)
    return tuple(found)
