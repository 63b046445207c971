"""Charts as plain dictionaries that plotly.js draws; it interprets some HTML in names, so callers escape them."""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import cycle
from typing import TypedDict

from omkl import algorithms

Part = dict[str, object]  # of a chart, as plotly.js wants it: nothing reads it, it is only written as JSON
# Okabe and Ito's colours, which most colour-blind readers can tell apart, and two more
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#56b4e9", "#e69f00", "#999999", "#b58900")
COLOURS = dict(zip(algorithms.names(), cycle(PALETTE), strict=False))  # of every algorithm
# and lines, which tell those apart that have the same colour
LINES = {name: "solid" if k < len(PALETTE) else "longdash" for k, name in enumerate(algorithms.names())}
TICKS = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000]


class Chart(TypedDict):
    data: Sequence[Mapping[str, object]]  # what is drawn
    layout: Mapping[str, object]
    about: str  # for screen readers


class Choice(TypedDict):
    """A chart among several that a reader can choose from in one figure."""

    name: str
    chart: Chart


def chart(data: Sequence[Mapping[str, object]], x: str, y: str, about: str, **layout: object) -> Chart:
    """A chart with titles for its axes; `about` describes it to screen readers."""
    return {"data": data, "layout": {"xaxis": {"title": {"text": x}}, "yaxis": {"title": {"text": y}}} | layout,
            "about": about}  # fmt: skip


def log_axis(title: str) -> Part:
    """A logarithmic axis with ticks at 1, 2 and 5 times powers of ten."""
    return {"type": "log", "title": {"text": title}, "tickvals": TICKS, "ticktext": [f"{t:g}" for t in TICKS]}


def choice(name: str, made: Chart) -> Choice:
    """A chart among several that a reader can choose from in one figure."""
    return {"name": name, "chart": made}


def digits(values: Iterable[float], n: int = 3) -> list[float | None]:
    """Numbers rounded to n significant digits, to keep reports small; None, which is not drawn, for NaN and infinity.

    >>> digits([0.123456, float("nan")])
    [0.123, None]
    """
    return [float(f"{v:.{n}g}") if math.isfinite(v) else None for v in values]
