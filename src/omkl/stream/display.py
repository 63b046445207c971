"""A run on a terminal: its progress while it goes on and its summary when it is over."""

import time
from collections.abc import Mapping
from typing import Self

import numpy as np
from rich.console import Console, Group
from rich.live import Live
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from omkl.arrays import Matrix, Vector
from omkl.stream.history import Errors
from omkl.stream.ranking import LabelErrors
from omkl.stream.run import Outcome, Run, RunSummary
from omkl.stream.terminal import visible

LIVE_EVERY = 0.1  # seconds between updates of the live panel
PLAIN_EVERY = 10.0  # seconds between lines where there is no terminal
BAR = 28
SHOWN_LABELS = 12  # whose errors a summary lists
VISIBLE = 0.005  # a smaller weight is not shown
NO_KERNEL = "trees, linear model and memory"  # GraphMKL's experts that have no kernel


def kernel_name(text: str) -> str:
    """A kernel, abbreviated.

    >>> kernel_name("Gaussian(length_scale=0.8912509381337456)")
    'Gaussian 0.891'
    """
    family, _, rest = text.partition("(")
    values = [part.partition("=")[2] for part in rest.rstrip(")").split(", ")]
    return " ".join([family, *(f"{float(value):.3g}" for value in values if value)])


def without_kernel(weights: Matrix) -> Vector:
    """The weight that the kernels leave to experts without one; the last axis is that of the kernels."""
    rest: Vector = np.clip(1 - weights.sum(axis=-1), 0, 1)
    return rest


def leading_weights(summary: RunSummary, weights: Vector) -> list[tuple[str, float]]:
    """The leading kernels, the others, and what has no kernel; `weights` are those of all kernels, and may be none."""
    if not len(weights):
        return []
    out = [(kernel_name(kernel["kernel"]), kernel["weight"]) for kernel in summary["kernels"]]
    others = float(weights.sum()) - sum(weight for _, weight in out)
    out += [(f"{len(weights) - len(out)} other kernels", others), (NO_KERNEL, float(without_kernel(weights)))]
    return [(name, weight) for name, weight in out if weight >= VISIBLE]


def error_line(summary: Errors) -> str:
    """The error and those of the baselines.

    >>> error_line({"scored": 10, "rmse": 0.5, "baseline_rmse": 1.0, "linear_rmse": 0.75})
    'RMSE 0.5 (running mean 1, linear model 0.75)'
    """
    if not summary.get("scored"):
        return "no target seen yet"
    if "rmse" in summary:
        linear = f", linear model {summary['linear_rmse']:.4g}" if "linear_rmse" in summary else ""
        return f"RMSE {summary['rmse']:.4g} (running mean {summary['baseline_rmse']:.4g}{linear})"
    linear = f", linear model {summary['linear_accuracy']:.2%}" if "linear_accuracy" in summary else ""
    return f"accuracy {summary['accuracy']:.2%} (most frequent label {summary['baseline_accuracy']:.2%}{linear})"


def coverage_line(coverages: Mapping[str, float]) -> str:
    """The share of targets inside their interval, by the nominal coverage.

    >>> coverage_line({"0.9": 0.8962}), coverage_line({"0.8": 0.79, "0.975": 0.95})
    ('89.6% inside the 90 % interval', 'inside the intervals of 80 %: 79.0%, of 97.5 %: 95.0%')
    """
    shares = [(f"{100 * float(nominal):.6g} %", f"{share:.1%}") for nominal, share in coverages.items()]
    if len(shares) == 1:
        return f"{shares[0][1]} inside the {shares[0][0]} interval"
    return "inside the intervals " + ", ".join(f"of {nominal}: {share}" for nominal, share in shares)


class Display:
    """Progress on standard error: a live panel on a terminal, a line now and then elsewhere, or nothing."""

    def __init__(self, console: Console, quiet: bool) -> None:
        self.console, self.quiet = console, quiet
        self.began = self.last = time.monotonic()
        self.live = (
            Live(console=console, refresh_per_second=8, transient=True) if console.is_terminal and not quiet else None
        )

    def __enter__(self) -> Self:
        if self.live is not None:
            self.live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.live is not None:
            self.live.stop()

    def notice(self, text: str) -> None:
        """One line."""
        if not self.quiet:
            whole = not self.console.is_terminal  # in a log a notice is one line
            self.console.print(f"[dim]note:[/dim] {escape(text)}", highlight=False, soft_wrap=whole)

    def due(self, now: float) -> bool:
        """Whether it is time to show progress again."""
        if self.quiet or now - self.last < (LIVE_EVERY if self.live is not None else PLAIN_EVERY):
            return False
        self.last = now
        return True


def label_line(label: str, errors: LabelErrors) -> str:
    """How well a label is recognised.

    >>> label_line("yes", {"rows": 1200, "precision": 0.5, "recall": None, "auc": 0.75})
    'yes: 1,200 rows, precision 50.0%, AUC 0.7500'
    """
    parts = [f"{label}: {errors['rows']:,} rows"]
    parts += [f"{name} {value:.1%}" for name in ("precision", "recall") if (value := errors[name]) is not None]
    parts += [f"AUC {errors['auc']:.4f}"] if errors["auc"] is not None else []
    return ", ".join(parts)


class RunDisplay(Display):
    """Progress, error and leading kernels of a run."""

    rows_at_start: int | None = None

    def update(self, run: Run) -> None:
        """Called after every piece."""
        now = time.monotonic()
        if self.rows_at_start is None:
            self.rows_at_start = run.progress.records if run.resumed else 0
        if not self.due(now):
            return
        rate = (run.source.records - self.rows_at_start) / max(now - self.began, 1e-9)
        summary = run.summary()
        if self.live is not None:
            self.live.update(self._panel(run, summary, rate))
        else:
            self.console.print(
                f"{run.source.records:,} rows, {rate:,.0f} rows/s, {error_line(summary)}", highlight=False
            )

    def _panel(self, run: Run, summary: RunSummary, rate: float) -> Group:
        head = Text(f"{run.source.records:,} rows  {rate:,.0f} rows/s  ")
        size, at = run.source.size, run.source.at
        if size:
            share = min(at / size, 1.0)
            left = (time.monotonic() - self.began) * (1 - share) / max(share, 1e-9)
            filled = round(BAR * share)
            head.append("━" * filled, "green").append("━" * (BAR - filled), "dim").append(
                f" {share:4.0%}, {_clock(left)} left"
            )
        leaders = ", ".join(f"{name} ({share:.0%})" for name, share in leading_weights(summary, run.model.weights()))
        return Group(head, Text(error_line(summary)), Text(visible(f"weights: {leaders}"), "dim"))


def _clock(seconds: float) -> str:
    seconds = int(seconds + 0.5)
    return (
        f"{seconds // 3600}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
        if seconds >= 3600
        else f"{seconds // 60}:{seconds % 60:02d}"
    )


def show(outcome: Outcome, files: dict[str, str | None], console: Console) -> None:
    """The summary at the end."""
    s = outcome.summary
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="dim")
    table.add_column()
    table.add_row("target", escape(f"{s['target']} ({s['task']}, {s['learner']}, {s['features']} features)"))
    counts = [f"{s['rows']:,} read", f"{s['learned']:,} learned"]
    counts += [f"{s[name]:,} {name}" for name in ("skipped", "waiting", "keys") if s.get(name)]
    table.add_row("rows", ", ".join(counts))
    table.add_row("error", error_line(s))
    if "mae" in s:
        table.add_row("", f"MAE {s['mae']:.4g}")
    if "coverages" in s:
        table.add_row("coverage", coverage_line(s["coverages"]))
    if "log_loss" in s:
        area = f", AUC {s['auc']:.4f}" if "auc" in s else ""
        table.add_row("", f"log-loss {s['log_loss']:.4g}{area}")
    for k, (label, errors) in enumerate(list(s.get("per_label", {}).items())[:SHOWN_LABELS]):
        table.add_row("labels" if k == 0 else "", escape(label_line(label, errors)))
    for k, (name, weight) in enumerate(leading_weights(s, outcome.model.weights())):
        table.add_row("weights" if k == 0 else "", escape(f"{'█' * round(20 * weight):20} {weight:6.1%}  {name}"))
    if s["changes"]:
        rows = ", ".join(f"{row:,}" for row in s["changes"][:8])
        table.add_row("changes", f"near row {rows}" + (" and more" if len(s["changes"]) > 8 else ""))
    if "seconds" in s:
        table.add_row("speed", f"{s['rows_per_second']:,.0f} rows per second, {s['seconds']:.1f} s")
    for what, where in files.items():
        if where is not None:
            table.add_row(what, escape("standard output" if where == "-" else where))
    console.print(table, highlight=False)
