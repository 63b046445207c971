"""The HTML report of a comparison of learners."""

import math
import os
from collections.abc import Sequence

import numpy as np

from omkl.persist import write_atomically
from omkl.report.charts import COLOURS, LINES, Choice, chart, choice, digits, log_axis
from omkl.report.render import render
from omkl.stream.compare import LINEAR, Comparison, ComparisonSummary, error_of
from omkl.stream.compare_display import cells, error_names
from omkl.stream.error_charts import BASELINE, MODEL, RANGES, Segments, line
from omkl.stream.run_report import sources

LABEL_PLACES = ("top center", "bottom center", "middle right", "middle left")  # of names beside points
DASHES = {"last value": "dash", "last label": "dash", LINEAR: "dashdot"}  # of baselines


def write(comparison: Comparison, path: str | os.PathLike[str]) -> None:
    """Write the report of a comparison."""
    write_atomically(path, page(comparison).encode())


def page(comparison: Comparison) -> str:
    """The report as one HTML file that opens without a network."""
    s = comparison.summary()
    numbers = s["task"] == "regression"
    head = ["name", "kind", *error_names(numbers), "relative", "µs/row"]
    rows = [[entry["name"], entry["kind"], *cells(entry, numbers)] for entry in s["ranking"]]
    diverged = any(entry["diverged"] is not None for entry in s["ranking"])
    if diverged:
        head.append("diverged")
        rows = [[*row, entry["diverged"] or "no"] for row, entry in zip(rows, s["ranking"], strict=True)]
    figures = {"errors": errors(comparison, s), "costs": costs(s)} if s["scored"] else {}
    figures = {name: choices for name, choices in figures.items() if choices}
    return render(
        "omkl/stream", "compare.html.j2", figures, s=s, head=head, rows=rows, diverged=diverged,
        data=sources(comparison.options.data), notices=tuple(comparison.notices.shown.values()), figures=list(figures),
    )  # fmt: skip


def errors(comparison: Comparison, s: ComparisonSummary) -> list[Choice]:
    """The error of every learner and baseline over time, in the order of the ranking."""
    numbers = s["task"] == "regression"
    axis, _ = error_names(numbers)
    shown = ".4g" if numbers else ".1%"
    histories = {entrant.name: entrant.history for entrant in comparison.entrants}
    out = []
    for so_far, title in reversed(RANGES):
        data = []
        for entry in s["ranking"]:
            segments = Segments(histories[entry["name"]])
            if not len(segments.ends):
                continue
            loss = segments.mean("loss", so_far=so_far)
            name = entry["name"]
            dash = LINES.get(name, "solid") if entry["kind"] == "learner" else DASHES.get(name, "dot")
            data.append(
                line(segments.ends.tolist(), digits(np.sqrt(loss) if numbers else loss, 5), entry["name"],
                     COLOURS.get(entry["name"], BASELINE), f"up to row %{{x}}<br>{axis} %{{y:{shown}}}",
                     dash=dash)
            )  # fmt: skip
        style = {"type": "log"} if numbers else {"tickformat": ".0%", "rangemode": "tozero"}
        about = f"{axis} of every learner and baseline over {title}"
        out.append(choice(title, chart(data, "row", axis, about, yaxis={"title": {"text": axis}, **style})))
    return out


def costs(s: ComparisonSummary) -> list[Choice]:
    """Error against time per row."""
    numbers = s["task"] == "regression"
    axis, _ = error_names(numbers)
    shown = ".4g" if numbers else ".1%"
    points = [
        (entry["name"], microseconds, error) for entry in s["ranking"] if entry["kind"] == "learner"
        and (microseconds := entry.get("microseconds_per_row")) is not None and (error := error_of(entry)) < math.inf
    ]  # fmt: skip
    if not points:
        return []
    names = [name for name, _, _ in points]
    dots = {
        "type": "scatter", "mode": "markers+text", "x": digits(microseconds for _, microseconds, _ in points),
        "y": digits((error for _, _, error in points), 5), "text": names, "textposition": label_places(points),
        "cliponaxis": False, "marker": {"size": 12, "color": [COLOURS.get(name, MODEL) for name in names]},
        "hovertemplate": f"%{{text}}<br>%{{x}} µs per row<br>{axis} %{{y:{shown}}}<extra></extra>",
    }  # fmt: skip
    style = {} if numbers else {"tickformat": ".0%"}
    about = f"{axis} of every learner against its time per row"
    return [choice("all", chart([dots], "", axis, about, xaxis=log_axis("µs per row"),
                                yaxis={"title": {"text": axis}, **style}, showlegend=False))]  # fmt: skip


def label_places(points: Sequence[tuple[str, float, float]]) -> list[str]:
    """Where the name of each point (name, time, error) is written, so that those of close points do not overlap.

    >>> label_places([("a", 5.0, 1.0), ("b", 5.1, 1.01), ("c", 90.0, 3.0)])
    ['top center', 'bottom center', 'top center']
    """
    at = np.array([(math.log(max(time, 0.1)), error) for _, time, error in points])
    at = (at - at.min(axis=0)) / np.maximum(np.ptp(at, axis=0), 1e-12)
    out: list[str] = []
    for k, here in enumerate(at):
        close = (abs(at[:k] - here) < (0.12, 0.08)).all(axis=1)
        taken = {place for place, near in zip(out, close, strict=True) if near}
        out.append(next((place for place in LABEL_PLACES if place not in taken), LABEL_PLACES[0]))
    return out
