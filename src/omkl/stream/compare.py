"""Every learner on a user's data, side by side: rows are read and encoded once and given to all of them."""

import time
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from omkl.errors import BudgetWarning, DivergenceError
from omkl.stream.baselines import most_frequent, running_means
from omkl.stream.display import Display
from omkl.stream.history import History
from omkl.stream.model import Answers, Prepared, Said, StreamModel
from omkl.stream.parsers import Batch, Reading
from omkl.stream.raw import DataError, Stop
from omkl.stream.run import PIECE_ROWS, Options, Teller, check_outputs
from omkl.stream.source import Source

ONLY_NUMBERS = ("omkr", "rfomkr")  # they have the squared loss alone
BASELINES = {"regression": ("running mean", "last value"), "classification": ("most frequent label", "last label")}
NOTHING = Answers([], [], [], [])


class Learner:
    """One of those that learn."""

    kind = "learner"

    def __init__(self, name: str, first: StreamModel) -> None:
        self.name = name
        self.model = StreamModel(first.target, first.task, name, first.seed, first.tell)
        self.model.encoder = first.encoder
        self.history = History(first.task or "regression")
        self.seconds = 0.0
        self.diverged: str | None = None  # why it takes part no more

    def take(self, some: Prepared) -> None:
        """Predict and learn these rows; who diverges is out."""
        began = time.thread_time()
        try:
            said, answers = self.model.learn(some, self.history)
        except DivergenceError as error:
            self.diverged = f"between rows {some.rows[0]:,} and {some.rows[-1]:,}: {str(error).partition(';')[0]}"
            return
        finally:
            self.seconds += time.thread_time() - began
        self.history.note(said, answers)


class Baseline:
    """What one would say without having learned anything."""

    kind = "baseline"
    diverged = None

    def __init__(self, name: str, first: StreamModel) -> None:
        self.name, self.numbers = name, first.task == "regression"
        self.history = History(first.task or "regression")
        self.seconds = 0.0
        self._last: Any = 0.0 if self.numbers else None
        self._so_far = np.zeros(2)
        self._counts: dict[str, int] = {}

    def take(self, some: Prepared) -> None:
        """Say something to each row with a target, from those before it."""
        began = time.thread_time()
        known = ~np.isnan(some.truth) if self.numbers else np.array([label is not None for label in some.truth])
        truth = some.truth[known]
        if len(truth):
            if self.name == "running mean":
                said = running_means(self._so_far, truth)
            elif self.name == "most frequent label":
                said = most_frequent(self._counts, truth)
            else:
                said = np.array([self._last, *truth], dtype=truth.dtype)[:-1]
            self._last = truth[-1]
            self.seconds += time.thread_time() - began
            self.history.note(Said(some.rows[known], None, said, None, None, None, truth, None), NOTHING)


Entrant = Learner | Baseline


class Comparison:
    """One pass over data with many learners.

    Parameters
    ----------
    options
        What `omkl run` takes; outputs other than the report, the learner and the key are not looked at.
    learners
        Who takes part, besides the baselines.
    rows
        How many rows to read at most.
    jobs
        Learners that run at a time.
    """

    def __init__(
        self, options: Options, learners: Sequence[str], rows: int | None, jobs: int, say: Callable[[str], None]
    ) -> None:
        check_outputs(options)
        self.options, self.learners, self.most, self.jobs = options, tuple(learners), rows, jobs
        self.tell = Teller(say)
        self.stop = Stop()
        self.first = StreamModel(
            options.target, options.task, "", options.seed, self.tell, date_format=options.date_format,
            categorical=options.categorical,
        )  # fmt: skip
        self.reading = Reading(options.format, options.delimiter, options.encoding, options.header, options.wants,
                               self.tell, stop=self.stop, needed=(options.target,))  # fmt: skip
        self.source = Source(options.data, self.reading, min(PIECE_ROWS, rows or PIECE_ROWS))
        self.entrants: list[Entrant] = []
        self.rows = 0
        self.seconds = self.preparing = 0.0

    def run(self, watch: Callable[["Comparison"], None] = lambda comparison: None) -> None:
        """To the end of the data, the last row asked for, or until told to stop."""
        began = time.monotonic()
        with self.stop, ThreadPoolExecutor(self.jobs) as pool, warnings.catch_warnings():
            warnings.simplefilter("ignore", BudgetWarning)  # the model says it in fewer words
            started = time.thread_time()
            for batch in self.source:
                self._piece(batch, pool, started)
                self.seconds = time.monotonic() - began
                watch(self)
                if self.stop.asked or (self.most is not None and self.rows >= self.most):
                    break
                started = time.thread_time()
        if not self.rows and not self.stop.asked:
            raise DataError(f"{', '.join(self.options.data)}: a header and no rows; nothing was compared")

    def _piece(self, batch: Batch, pool: ThreadPoolExecutor, started: float) -> None:
        if self.most is not None and len(batch.rows) > self.most - self.rows:
            keep = self.most - self.rows
            batch = Batch(batch.rows[:keep], {name: array[:keep] for name, array in batch.columns.items()})
        if not len(batch.rows):
            return
        some = self.first.prepare(batch)
        self.reading.numbers = self.first.encoder.plain_numbers()
        if self.first.task == "regression":
            self.reading.numbers.add(self.options.target)
        if not self.entrants:
            self._gather()
        self.preparing += time.thread_time() - started
        # the slowest first, so that nobody waits for one who began last
        alive = sorted((e for e in self.entrants if e.diverged is None), key=lambda e: -e.seconds)
        list(pool.map(lambda entrant: entrant.take(some), alive))
        self.rows += len(batch.rows)

    def _gather(self) -> None:
        task = self.first.task or "regression"
        able = [name for name in self.learners if task == "regression" or name not in ONLY_NUMBERS]
        if unable := [name for name in self.learners if name not in able]:
            self.tell("no labels", f"{' and '.join(unable)} predict numbers only; not compared")
        self.entrants = [*(Learner(name, self.first) for name in able),
                         *(Baseline(name, self.first) for name in BASELINES[task])]  # fmt: skip

    @property
    def stopped(self) -> bool:
        return self.stop.asked

    def ranking(self) -> list[dict[str, Any]]:
        """Everybody from the best to the worst, as JSON; who diverged comes last."""
        error = "rmse" if self.first.task == "regression" else "error_rate"
        lines = [self._line(entrant) for entrant in self.entrants]
        lines.sort(key=lambda line: (line["diverged"] is not None, line.get(error, np.inf)))
        best = lines[0].get(error) if lines and lines[0]["diverged"] is None else None
        for line in lines:
            line["relative"] = line[error] / best if best and line["diverged"] is None and error in line else None
        return lines

    def _line(self, entrant: Entrant) -> dict[str, Any]:
        line: dict[str, Any] = {"name": entrant.name, "kind": entrant.kind, "diverged": entrant.diverged}
        told = entrant.history.summary()
        if told["scored"] and entrant.diverged is None:
            if self.first.task == "regression":
                line |= {name: told[name] for name in ("rmse", "mae")}
            else:
                line["error_rate"] = 1 - told["accuracy"]
                line["log_loss"] = told["log_loss"] if entrant.kind == "learner" else None
        return line | {"microseconds_per_row": 1e6 * entrant.seconds / self.rows if entrant.diverged is None else None}

    def summary(self) -> dict[str, Any]:
        """How it went, as JSON."""
        scored = [entrant.history.summary()["scored"] for entrant in self.entrants]
        return {
            "target": self.first.target, "task": self.first.task, "rows": self.rows, "scored": max(scored, default=0),
            "skipped": self.reading.skipped, "features": len(self.first.encoder.features), "ranking": self.ranking(),
            "preparing_microseconds_per_row": 1e6 * self.preparing / max(self.rows, 1),
            "seconds": self.seconds, "stopped": self.stopped,
        }  # fmt: skip


# On a terminal


def table(summary: dict[str, Any]) -> Table:
    """The ranking in columns."""
    out = Table(box=None, pad_edge=False)
    numbers = summary["task"] == "regression"
    out.add_column("")
    for name in ("RMSE", "MAE") if numbers else ("wrong", "log-loss"):
        out.add_column(name, justify="right")
    out.add_column("to best", justify="right")
    out.add_column("µs/row", justify="right")
    for line in summary["ranking"]:
        name = escape(line["name"]) if line["kind"] == "learner" else f"[dim]{escape(line['name'])}[/dim]"
        out.add_row(name, *cells(line, numbers))
    return out


def cells(line: dict[str, Any], numbers: bool) -> list[str]:
    """A line of the ranking as text.

    >>> line = {"diverged": None, "rmse": 0.5, "mae": 0.25, "relative": 1.0, "microseconds_per_row": 2.345}
    >>> cells(line, numbers=True)
    ['0.5', '0.25', '1.00', '2.3']
    """
    if line["diverged"] is not None:
        return ["diverged", "", "", ""]
    first, second = ("rmse", "mae") if numbers else ("error_rate", "log_loss")
    shown = "{:.4g}" if numbers else "{:.2%}"
    values = [(shown, line.get(first)), ("{:.4g}", line.get(second)), ("{:.2f}", line["relative"]),
              ("{:.1f}", line["microseconds_per_row"])]  # fmt: skip
    return [pattern.format(value) if value is not None else "" for pattern, value in values]


def show(comparison: Comparison, report: str | None, console: Console) -> None:
    """The ranking, and what must be said about it."""
    s = comparison.summary()
    about = f"{s['target']}: {s['task']}, {s['rows']:,} rows, {s['features']} features"
    console.print(escape(about), highlight=False)
    console.print(table(s), highlight=False)
    for line in s["ranking"]:
        if line["diverged"] is not None:
            console.print(escape(f"{line['name']} diverged {line['diverged']}"), highlight=False, soft_wrap=True)
    each = s["preparing_microseconds_per_row"]
    console.print(f"reading and encoding {each:.1f} µs/row, once for all; {s['seconds']:.1f} s altogether",
                  style="dim", highlight=False)  # fmt: skip
    if report is not None:
        console.print(escape(f"report  {report}"), highlight=False, soft_wrap=True)


class Watch(Display):
    """The ranking as it stands, while it goes on."""

    def compare(self, comparison: Comparison) -> None:
        now = time.monotonic()
        if self.quiet or now - self.last < (0.1 if self.live is not None else 10.0):
            return
        self.last = now
        summary = comparison.summary()
        rate = comparison.rows / max(comparison.seconds, 1e-9)
        head = f"{comparison.rows:,} rows, {rate:,.0f} rows/s"
        if size := comparison.source.size:
            head += f", {min(comparison.source.at / size, 1.0):.0%} read"
        if self.live is not None:
            grid = Table.grid()
            grid.add_row(head)
            grid.add_row(table(summary))
            self.live.update(grid)
        else:
            best = summary["ranking"][0]["name"] if summary["ranking"] else ""
            self.console.print(f"{head}; {best} leads", highlight=False)
