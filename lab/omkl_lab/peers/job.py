"""Every learner on every course, kept as it comes; what is done is not done again."""

import json
import warnings
from collections.abc import Callable, Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from rich.console import Console
from threadpoolctl import threadpool_limits

from omkl._version import __version__
from omkl.errors import DivergenceError
from omkl.persist import write_atomically
from omkl_lab import machine
from omkl_lab.data.sets import at_hand, how_to_get
from omkl_lab.files import brief
from omkl_lab.parallel import Journal, Record, Unit, spread
from omkl_lab.peers.courses import COURSES, SHUFFLED, Course, course, task_of
from omkl_lab.peers.learners import LEARNERS, Learner
from omkl_lab.peers.page import MACHINE, is_machine, page
from omkl_lab.peers.walk import AFTER, SKIP, Walk, calibration_error, log_loss, recovery, right
from omkl_lab.progress import Patience

Scores = Callable[[Walk, Course], Record]  # what is said of one run


class Options(NamedTuple):
    """What a user may choose."""

    datasets: tuple[str, ...]
    learners: tuple[str, ...]
    rows: int | None = None  # of every course; None for the usual number
    seeds: int = 10
    jobs: int = 1
    out: Path = Path("results/peers.jsonl")
    docs: Path | None = None
    fresh: bool = False

    @classmethod
    def checked(cls, datasets: Iterable[str] = (), learners: Iterable[str] = (), **rest: Any) -> Self:
        """All of them where none is named; a learner may be named by a part of its name."""
        courses = tuple(datasets) or COURSES
        for name in courses:
            task_of(name)
        chosen: set[str] = set()
        for part in learners:
            found = {name for name in LEARNERS if part.lower() in name.lower()}
            if not found:
                raise ValueError(f"no learner is called {part!r}; there are {', '.join(LEARNERS)}")
            chosen |= found
        return cls(courses, tuple(name for name in LEARNERS if name in chosen or not chosen), **rest)


def compare(options: Options, out: Console, progress: Console) -> None:
    """Run what is not in the file yet, then write the page."""
    options.out.parent.mkdir(parents=True, exist_ok=True)
    chosen = list(cells(options, out))
    if options.fresh:
        forget(options.out, {key for unit in chosen for key in unit.keys})
    records = run_missing(chosen, options.out, options.jobs, options.seeds, progress, told)
    if options.docs is not None:
        write_atomically(options.docs, page(records).encode())
        out.print(f"wrote {options.docs}", highlight=False)


def run_missing(
    chosen: list[Unit], path: Path, jobs: int, seeds: int, progress: Console, told: Callable[[Record], str]
) -> dict[str, Record]:
    """Run the cells that the file has not, add them to it, and return all that it holds."""
    with Journal(path) as journal:
        units = [unit for unit in chosen if not finished(journal.records.get(unit.keys[0]))]
        if units:
            here = machine.described() | {"jobs": jobs, "seeds": seeds}
            journal.add((f"{MACHINE} {1 + sum(map(is_machine, journal.records))}",), [here])
        with Patience(len(units), progress, "comparing") as patience:
            for keys, records in spread(units, jobs, prefer="processes"):
                journal.add(keys, records)
                patience.tick(1)
                if progress.is_terminal:
                    progress.print(told(records[0]), highlight=False)
        return journal.records


def finished(record: Record | None) -> bool:
    """What was missing may be there by now."""
    return record is not None and record["status"] != "missing"


def forget(path: Path, keys: set[str]) -> None:
    """Take these cells out of the file."""
    if path.exists():
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        write_atomically(path, "".join(line for line in lines if json.loads(line)["key"] not in keys).encode())


def cells(options: Options, out: Console) -> Iterable[Unit]:
    """Every learner on every course; a data set that is not at hand is said and left out."""
    for name in options.datasets:
        task = task_of(name)
        if task != "drift" and not at_hand(name.removesuffix(SHUFFLED)):
            out.print(f"left out: {name} is not at hand, {how_to_get(name.removesuffix(SHUFFLED))}", highlight=False)
            continue
        for learner in (LEARNERS[known] for known in options.learners if task in LEARNERS[known].tasks):
            seeds = options.seeds if learner.seeded else 1
            rows = f"{options.rows} rows" if options.rows else "usual rows"
            key = f"{name} | {learner.name} | {rows} | {seeds} seeds"
            yield Unit((key,), cell, {"name": name, "learner": learner.name, "rows": options.rows, "seeds": seeds})


def cell(name: str, learner: str, rows: int | None, seeds: int) -> list[Record]:
    """One learner on one course."""
    return [attempted(LEARNERS[learner], course(name, rows), seeds, scores)]


def attempted(who: Learner, what: Course, seeds: int, scores: Scores) -> Record:
    """What came of it, whatever it is."""
    record: Record = {
        "course": what.name, "task": what.task, "learner": who.name, "ours": who.ours, "status": "ok", "note": "",
        "rows": len(what.y), "of": what.of, "features": what.X.shape[1], "seeds": seeds,
    }  # fmt: skip
    if (absent := who.absent) is not None:
        return record | {"status": "missing", "note": absent}
    record["version"] = __version__ if who.package == "omkl" else version(who.package)
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"), threadpool_limits(1):
            warnings.simplefilter("ignore")
            runs = [measured(who, what, seed, scores) for seed in range(seeds)]
    except Exception as error:  # whatever a peer does, it is a line of the table
        text = str(error).splitlines()[0] if str(error) else ""
        return record | {"status": "raised", "note": f"{type(error).__name__}: {text}"[:100]}
    whole = [run for run in runs if "gave_up" not in run]
    if 2 * len(whole) <= len(runs):
        return record | {"status": "diverged", "note": f"gave up at row {max(r.get('gave_up', 0) for r in runs)}"}
    return record | summary(whole)


def measured(who: Learner, what: Course, seed: int, scores: Scores) -> Record:
    """One run."""
    try:
        walk = who.run(what.X, what.y, seed, what.task)
    except DivergenceError:
        return {"gave_up": 0}
    if len(walk.predictions) < len(what.y):
        return {"gave_up": len(walk.predictions)}
    return {"microseconds": 1e6 * walk.seconds / len(what.y)} | scores(walk, what)


def scores(walk: Walk, what: Course) -> Record:
    return of_labels(walk, what) if what.task == "labels" else of_numbers(walk, what)


def of_labels(walk: Walk, what: Course) -> Record:
    p, label = walk.predictions, (what.y + 1) / 2
    return {"accuracy": right(p, label), "log_loss": log_loss(p, label), "calibration": calibration_error(p, label)}


def of_numbers(walk: Walk, what: Course) -> Record:
    errors = (walk.predictions - what.y) ** 2
    run: Record = {"mse": float(errors.mean())}
    stops = (*what.changes[1:], len(errors))
    if what.changes:
        run["recovery"] = [recovery(errors, c, stop) for c, stop in zip(what.changes, stops, strict=True)]
    if walk.ends is not None:
        held = (walk.ends[:, 0] <= what.y) & (what.y <= walk.ends[:, 1])
        run |= {"coverage": float(held.mean()), "width": float(np.mean(walk.ends[:, 1] - walk.ends[:, 0]))}
        if what.changes:
            run["coverage_after"] = [float(held[c + SKIP : c + SKIP + AFTER].mean()) for c in what.changes]
    return run


def summary(runs: list[Record]) -> Record:
    """Medians over the seeds; of the error also the extremes."""
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
    """The median, None counting as infinite.

    >>> middle([3, None, 1]), middle([None, None, 1])
    (3.0, None)
    """
    median = float(np.median([np.inf if value is None else value for value in values]))
    return brief(median) if np.isfinite(median) else None


def told(record: Record) -> str:
    """A finished cell in one line."""
    if record["status"] != "ok":
        said = f"{record['status']}: {record['note']}"
    elif record["task"] == "labels":
        said = f"accuracy {record['accuracy']:.4f}, log-loss {record['log_loss']:.3f}"
    else:
        said = f"MSE {record['mse']:.4g}"
    speed = f", {record['microseconds']:.3g} us" if "microseconds" in record else ""
    return f"{record['course']:16} {record['learner']:34} {said}{speed}"
