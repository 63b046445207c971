"""Charts of an error over time, for the reports of runs and of comparisons."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from html import escape
from types import MappingProxyType

import numpy as np

from omkl.arrays import Index, Matrix, Vector
from omkl.report.charts import Choice, Part, chart, choice, digits
from omkl.stream.history import History

MODEL, BASELINE, CHANGE = "#0072b2", "#8a8f98", "#cc79a7"
COVERAGE_COLOURS = (MODEL, "#e69f00", "#009e73", "#56b4e9", "#d55e00")
BASELINE_STYLES = ((BASELINE, "dash"), ("#e69f00", "dashdot"))  # colour and dashes of one after the other
MIN_ROWS, MAX_SEGMENTS = 20, 120  # rows in a segment that is drawn, and segments
RANGES = ((False, "each segment of rows"), (True, "all rows so far"))


class Segments:
    """The bins of a history, joined until each holds enough rows to be drawn."""

    def __init__(self, history: History) -> None:
        group = max(-(-MIN_ROWS // history.width), -(-len(history.bins) // MAX_SEGMENTS))
        starts = np.arange(0, len(history.bins), group)
        if len(starts) > 1 and history.bins[starts[-1] :, 0].sum() < MIN_ROWS * 0.5:
            starts = starts[:-1]  # too few rows at the end go to the segment before them
        last = np.append(starts[1:], len(history.bins))[: len(starts)] - 1
        empty = np.zeros((0, len(history.columns)))
        self._columns = history.columns
        self.ends: Index = history.ends[last]
        self.sums: Matrix = np.add.reduceat(history.bins, starts, axis=0) if len(starts) else empty
        self.cumulative: Matrix = np.cumsum(self.sums, axis=0)

    def mean(self, column: str, per: str = "rows", so_far: bool = False) -> Vector:
        """The mean of a column over each segment, or over all rows up to its end."""
        table = self.cumulative if so_far else self.sums
        total, count = (table[:, self._columns.index(name)] for name in (column, per))
        mean: Vector = np.divide(total, count, out=np.full(len(total), np.nan), where=count > 0)
        return mean


Curve = Callable[[Segments, bool], Vector]  # (segments, so_far) -> a value for each segment


def line(
    x: Sequence[float | None], y: Sequence[float | None], name: str, colour: str, hover: str, *,
    dash: str | None = None, **more: object,
) -> Part:  # fmt: skip
    """A line, or a dot where there is one point only."""
    style = {"color": colour, "width": 2} | ({} if dash is None else {"dash": dash})
    mode = "lines" if len(x) > 1 else "markers"
    return {"type": "scatter", "mode": mode, "x": x, "y": y, "name": escape(name), "line": style,
            "hovertemplate": hover, **more}  # fmt: skip


def change_lines(history: History, top: float) -> list[Part]:
    """A vertical line at each change point."""
    rows = history.change_points()
    if not rows:
        return []
    x = [value for row in rows for value in (row, row, None)]
    y = [value for _ in rows for value in (0, top, None)]
    return [line(x, y, "change point", CHANGE, "change near row %{x}<extra></extra>", dash="dot")]


def over_time(
    history: History, axis: str, model: Curve, baselines: Mapping[str, Curve] = MappingProxyType({}), *,
    percent: bool = False,
) -> list[Choice]:  # fmt: skip
    """A quantity of the model and of its baselines, by segment and so far."""
    segments = Segments(history)
    if not len(segments.ends):
        return []
    out = []
    for so_far, title in RANGES:
        curves = {"omkl": model(segments, so_far)} | {name: of(segments, so_far) for name, of in baselines.items()}
        shown = ".1%" if percent else ".4g"
        styles = [(MODEL, None), *BASELINE_STYLES]
        data = [
            line(segments.ends.tolist(), digits(values, 5), name, colour, f"up to row %{{x}}<br>{axis} %{{y:{shown}}}",
                 dash=dash)
            for (name, values), (colour, dash) in zip(curves.items(), styles, strict=False)
        ]  # fmt: skip
        top = max((float(np.nanmax(v)) for v in curves.values() if np.isfinite(v).any()), default=1.0)
        style: Part = {"tickformat": ".0%"} if percent else {"rangemode": "tozero"}
        about = f"{axis} of {title}: the model" + "".join(f", the baseline {name}" for name in baselines)
        made = chart(data + change_lines(history, top), "row", axis, about, hovermode="x unified",
                     yaxis={"title": {"text": axis}, **style})  # fmt: skip
        out.append(choice(title, made))
    return out


def coverage_over_time(history: History, coverages: Sequence[float]) -> list[Choice]:
    """The share of targets inside their interval, for each coverage, beside its nominal value."""
    segments = Segments(history)
    out = []
    for so_far, title in RANGES:
        data, lowest = [], 1.0
        for coverage, colour in zip(coverages, itertools.cycle(COVERAGE_COLOURS)):
            share = segments.mean(f"covered {coverage}", f"with_interval {coverage}", so_far)
            lowest = min(lowest, float(np.nanmin(share, initial=1.0)), coverage)
            ends = [int(segments.ends[0]), int(segments.ends[-1])]
            data += [
                line(segments.ends.tolist(), digits(share, 5), f"{percent(coverage)} interval", colour,
                     "up to row %{x}<br>coverage %{y:.1%}"),
                line(ends, [coverage] * 2, f"nominal {percent(coverage)}", colour, "nominal %{y}<extra></extra>",
                     dash="dash"),
            ]  # fmt: skip
        about = f"coverage of {title}: of {', '.join(map(percent, coverages))} intervals, and nominal"
        style = {"tickformat": ".0%", "range": [lowest - 0.02, 1.01]}
        made = chart(data + change_lines(history, 1.0), "row", "coverage", about, hovermode="x unified",
                     yaxis={"title": {"text": "coverage"}, **style})  # fmt: skip
        out.append(choice(title, made))
    return out


def percent(coverage: float) -> str:
    """A coverage as people write it.

    >>> percent(0.9), percent(0.975)
    ('90 %', '97.5 %')
    """
    return f"{100 * coverage:.6g} %"
