"""A comparison on a terminal: the ranking while it goes on and when it is over."""

import time

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from omkl.stream.compare import Comparison, ComparisonSummary, Entry
from omkl.stream.display import Display


def error_names(numbers: bool) -> tuple[str, str]:
    """The two errors of a ranking."""
    return ("RMSE", "MAE") if numbers else ("error rate", "log-loss")


def table(summary: ComparisonSummary) -> Table:
    """The ranking in columns."""
    out = Table(box=None, pad_edge=False)
    numbers = summary["task"] == "regression"
    out.add_column("")
    for name in (*error_names(numbers), "relative", "µs/row"):
        out.add_column(name, justify="right")
    for entry in summary["ranking"]:
        name = escape(entry["name"]) if entry["kind"] == "learner" else f"[dim]{escape(entry['name'])}[/dim]"
        out.add_row(name, *cells(entry, numbers))
    return out


def cells(entry: Entry, numbers: bool) -> list[str]:
    """A row of the ranking as text.

    >>> entry = {"diverged": None, "rmse": 0.5, "mae": 0.25, "relative": 1.0, "microseconds_per_row": 2.345}
    >>> cells(entry, numbers=True)
    ['0.5', '0.25', '1.00', '2.3']
    """
    if entry["diverged"] is not None:
        return ["diverged", "", "", ""]
    first, second = ("rmse", "mae") if numbers else ("error_rate", "log_loss")
    shown = "{:.4g}" if numbers else "{:.2%}"
    values = [(shown, entry.get(first)), ("{:.4g}", entry.get(second)), ("{:.2f}", entry["relative"]),
              ("{:.1f}", entry["microseconds_per_row"])]  # fmt: skip
    return [pattern.format(value) if value is not None else "" for pattern, value in values]


def show(comparison: Comparison, report: str | None, console: Console) -> None:
    """The ranking, who diverged, and how long it took."""
    s = comparison.summary()
    keys = f", {s['keys']:,} keys with a model each" if "keys" in s else ""
    about = f"{s['target']}: {s['task']}, {s['rows']:,} rows, {s['features']} features{keys}"
    console.print(escape(about), highlight=False)
    console.print(table(s), highlight=False)
    for entry in s["ranking"]:
        if entry["diverged"] is not None:
            console.print(escape(f"{entry['name']} diverged {entry['diverged']}"), highlight=False, soft_wrap=True)
    each = s["preparing_microseconds_per_row"]
    console.print(f"reading and encoding {each:.1f} µs/row, once for all learners; {s['seconds']:.1f} s in total",
                  style="dim", highlight=False)  # fmt: skip
    if report is not None:
        console.print(escape(f"report  {report}"), highlight=False, soft_wrap=True)


class CompareDisplay(Display):
    """The ranking so far, while the comparison goes on."""

    def update(self, comparison: Comparison) -> None:
        """Called after every piece."""
        now = time.monotonic()
        if not self.due(now):
            return
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
