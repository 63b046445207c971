"""The work of `omkl demo`: runs the learners, prints their table, writes the stream and the report."""

import csv
import io
import shutil
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich import box
from rich.console import Console
from rich.status import Status
from rich.table import Table

from omkl.arrays import Vector
from omkl.datasets.demand import Demand, hourly_demand
from omkl.demo.learners import COVERAGE, LEARNERS, Outcome
from omkl.persist import write_atomically

WEEK = 168  # rows that are not scored: nobody has learned anything yet
FOR_REPORT = ("plotly", "jinja2")  # the extra `run`
HEAD = ("learner", "error, MW", "explained", "intervals hold", "µs per row")


class Score(NamedTuple):
    """How well a learner did after the first week."""

    name: str
    outcome: Outcome
    error: float  # mean absolute
    explained: float  # share of the variance
    coverage: float | None  # share of the targets inside their intervals
    microseconds: float  # processor time of a row

    def cells(self) -> tuple[str, ...]:
        """A line of the table."""
        coverage = "none" if self.coverage is None else f"{self.coverage:.1%}"
        time = "< 1" if self.microseconds < 1 else f"{self.microseconds:,.0f}"
        return (self.name, f"{self.error:.2f}", f"{self.explained:.1%}", coverage, time)


def scored(name: str, stream: Demand, seed: int) -> Score:
    """Run a learner on the stream."""
    began = time.process_time()
    outcome = LEARNERS[name](stream, seed)
    microseconds = 1e6 * (time.process_time() - began) / len(stream.y)
    y, y_pred = stream.y[WEEK:], outcome.y_pred[WEEK:]
    explained = 1 - float(np.sum((y_pred - y) ** 2) / np.sum((y - y.mean()) ** 2))
    coverage = None if outcome.ends is None else float(inside(stream, outcome)[WEEK:].mean())
    return Score(name, outcome, float(np.abs(y_pred - y).mean()), explained, coverage, microseconds)


def inside(stream: Demand, outcome: Outcome) -> Vector:
    """Where the target was inside its interval."""
    assert outcome.ends is not None
    low, high = outcome.ends.T
    return np.asarray((low <= stream.y) & (stream.y <= high))


def noticed(stream: Demand, score: Score) -> int | None:
    """The first row from the change of regime on at which the learner noticed a change."""
    return next((row for row in score.outcome.changes if row >= stream.change), None)


def as_csv(stream: Demand) -> str:
    """The stream as a file for `omkl run`; a gap is an empty cell."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*stream.columns, "demand"])
    times, *others = stream.columns.values()
    for moment, *cells in zip(
        times.astype(str).tolist(), *(c.tolist() for c in others), stream.y.tolist(), strict=True
    ):
        writer.writerow([moment.replace("T", " "), *("" if cell != cell else cell for cell in cells)])
    return out.getvalue()


def table(scores: list[Score]) -> Table:
    """Every learner in a line, the best first."""
    out = Table(HEAD[0], box=box.SIMPLE_HEAD, pad_edge=False)
    for name in HEAD[1:]:
        out.add_column(name, justify="right")
    for score in sorted(scores, key=lambda score: score.error):
        out.add_row(*score.cells())
    return out


def program() -> str:
    """How this command was called: by its path where the shell would not find it, as in a clone."""
    called = Path(sys.argv[0])
    found = shutil.which(called.name)
    return str(called) if called.name == "omkl" and (found is None or not called.samefile(found)) else "omkl"


def next_commands(csv_file: Path) -> list[tuple[str, str]]:
    """Three commands to try, and what they do."""
    omkl = program()
    return [
        (f"{omkl} run {csv_file} --target demand --model demand.omkl --report demand.html",
         "learn the same file, keep the model, and see a run's report"),
        (f"{omkl} compare {csv_file} --target demand", "rank all learners of omkl on it"),
        (f"{omkl} run YOUR.csv --target COLUMN", "learn a table of your own"),
    ]  # fmt: skip


def run(out: Path, seed: int, console: Console, status: Status) -> None:
    """Run the learners, write the stream and the report to the folder `out`, and print what to do next.

    `status` shows which learner runs, and is gone when results are printed: it may be on the same terminal.
    """
    stream, path = hourly_demand(random_state=seed), out / "stream.csv"
    out.mkdir(exist_ok=True)
    write_atomically(path, as_csv(stream).encode())
    rows = f"{len(stream.y):,} rows"
    console.print(f"Hourly electricity demand of a town: {rows}, each predicted before it is learned.", markup=False)
    scores = []
    with status:
        for k, name in enumerate(LEARNERS, 1):
            status.update(f"learner {k} of {len(LEARNERS)}: {name}")
            scores.append(scored(name, stream, seed))
    console.print(table(scores))
    console.print(
        "error: mean absolute, after the first week; explained: share of the variance; "
        f"intervals are meant to hold {COVERAGE:.0%} of the true values; µs: of processor time.", markup=False,
    )  # fmt: skip
    us = scores[0]
    row = noticed(stream, us)
    found = "has not noticed it" if row is None else f"noticed it at row {row:,}"
    console.print(f"After row {stream.change:,} the town's habits change; {us.name} {found}.", markup=False)
    console.out("")
    if missing := [name for name in FOR_REPORT if find_spec(name) is None]:
        console.out(f"no report: {', '.join(missing)} not installed; pip install 'omkl[run]'")
    else:
        from omkl.demo import page

        page.write(out / "report.html", stream, scores, next_commands(path))
        console.out(f"Report: {out / 'report.html'} (open it in a browser)")
    console.out("Next:")
    for command, purpose in next_commands(path):
        console.out(f"  {command}")
        console.out(f"      {purpose}")
