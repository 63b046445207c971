"""The charts of the report. Names are escaped, since plotly.js interprets some HTML."""

import math
from collections.abc import Sequence
from html import escape
from typing import Any

from omkl.report.charts import COLOURS as BY_LEARNER
from omkl.report.charts import Chart, chart, digits, log_axis
from omkl_lab.configurations import DEFAULTS, NAMES, is_matching
from omkl_lab.prequential import snapshots
from omkl_lab.reproduce.graphs import Drawn
from omkl_lab.reproduce.results import Detail

COLOURS = {NAMES[learner]: colour for learner, colour in BY_LEARNER.items() if learner in NAMES}
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot", "2px 6px", "8px 2px 2px 2px")


def curves(details: Sequence[Detail]) -> Chart:
    """MSE_t against t for one data set; published forms are visible, the others can be shown from the legend."""
    data = []
    known = any(is_matching(d) for d in details)
    numbers: dict[str, int] = {}
    for d in details:
        k = numbers[d["algorithm"]] = numbers.get(d["algorithm"], -1) + 1
        if not d["curve"]:
            continue
        shown = is_matching(d) if known else d["variant"] == DEFAULTS
        data.append({
            "type": "scatter", "mode": "lines", "x": positive(d)[0],
            "y": [1e3 * v for v in positive(d)[1]],
            "name": escape(f"{d['algorithm']}, {d['variant']}"),
            "line": {"color": COLOURS[d["algorithm"]], "width": 2,
                     "dash": DASHES[1 + k % 7] if not shown else "dash" if d["algorithm"] == "SFG-MKL-R" else "solid"},
            "visible": True if shown else "legendonly",
            "hovertemplate": "t = %{x}<br>MSE = %{y:.2f} x 1e-3",
        })  # fmt: skip
    about = f"Running mean squared error against time on {details[0]['dataset']}"
    return chart(data, "t", "MSE x 1e-3", about, yaxis=log_axis("MSE x 1e-3"))


def positive(d: Detail) -> tuple[list[int], list[float]]:
    """The positive part of a curve, for a logarithmic axis: a first target of 0 is predicted without error."""
    pairs = [(t, v) for t, v in zip(d["t"], d["curve"], strict=True) if v > 0]
    return [t for t, _ in pairs], [v for _, v in pairs]


def weights(d: Detail, scales: Sequence[float]) -> Chart:
    """Kernel weights over time, the narrowest kernel at the bottom."""
    columns = list(zip(*d["history"], strict=True))
    data: list[Any] = [{
        "type": "heatmap", "x": snapshots(d["rows"]).tolist(), "y": list(scales), "z": [digits(c) for c in columns],
        "colorscale": "Viridis", "zmin": 0, "colorbar": {"title": {"text": "w / W"}, "thickness": 12},
        "hovertemplate": "t = %{x}<br>length scale %{y:.3g}<br>weight %{z:.3f}<extra></extra>",
    }]  # fmt: skip
    for i in d["truth"]:
        data.append({
            "type": "scatter", "mode": "lines", "x": [0, d["rows"]], "y": [scales[i]] * 2, "showlegend": False,
            "line": {"color": "white", "dash": "dot", "width": 1}, "hovertemplate": "a true kernel<extra></extra>",
        })  # fmt: skip
    about = f"Weights of the kernels over time, {d['algorithm']} {d['variant']} on {d['dataset']}, first feature set"
    return chart(data, "t", "length scale", about, yaxis=log_axis("length scale"))


def graph(g: Drawn) -> Chart:
    """Nodes on a line by length scale; edges to wider kernels curve upwards, to narrower ones downwards."""
    places = [math.log10(s) for s in g["scales"]]
    data = [
        arcs(g["edges"], places, f"similarity graph ({len(g['edges'])} edges)", "#7a8ca5", 0.6, 1),
        arcs(g["added"], places, f"added by refinement ({len(g['added'])})", "#d55e00", 0.9, 1.5),
    ]
    groups = {
        "node": ([i for i in range(len(places)) if i not in g["dominating"]], "circle", "#56b4e9", 8),
        "dominating set D": (g["dominating"], "diamond", "#cc79a7", 13),
    }
    for name, (nodes, symbol, colour, size) in groups.items():
        data.append({
            "type": "scatter", "mode": "markers", "name": name, "x": [places[i] for i in nodes], "y": [0] * len(nodes),
            "marker": {"symbol": symbol, "color": colour, "size": size, "line": {
                "width": [2.5 if i in g["leading"] else 0 for i in nodes], "color": "#d55e00"}},
            "text": [node_text(g, i) for i in nodes], "hovertemplate": "%{text}<extra></extra>",
        })  # fmt: skip
    about = (f"Feedback graph on {g['dataset']}: {len(places)} kernels by length scale, {len(g['edges'])} edges, "
             f"{len(g['dominating'])} dominating nodes, {len(g['added'])} edges added by refinement")  # fmt: skip
    ticks = [t for t in range(-3, 4) if places[0] - 0.1 <= t <= places[-1] + 0.1]
    return chart(
        data, "length scale", "", about, hovermode="closest",
        xaxis={"title": {"text": "length scale"}, "tickvals": ticks, "ticktext": [f"{10.0**t:g}" for t in ticks]},
        yaxis={"visible": False, "zeroline": False},
    )  # fmt: skip


def arc(a: float, b: float, steps: int = 24) -> list[tuple[float, float]]:
    """Half a circle from a to b, above the line where b lies to the right.

    >>> [(round(x, 2), round(y, 2)) for x, y in arc(0, 2, steps=2)]
    [(0.0, 0.0), (1.0, 1.0), (2.0, 0.0)]
    """
    centre, half = (a + b) / 2, (b - a) / 2
    angles = [math.pi * k / steps for k in range(steps + 1)]
    return [(centre - half * math.cos(angle), half * math.sin(angle)) for angle in angles]


def arcs(edges: list[list[int]], places: list[float], name: str, colour: str, opacity: float, width: float) -> Any:
    xs: list[float | None] = []
    ys: list[float | None] = []
    for i, j in edges:
        for x, y in arc(places[i], places[j]):
            xs.append(round(x, 4))
            ys.append(round(y, 4))
        xs.append(None)
        ys.append(None)
    return {"type": "scatter", "mode": "lines", "x": xs, "y": ys, "name": name, "opacity": opacity, "hoverinfo": "skip",
            "line": {"color": colour, "width": width}}  # fmt: skip


def node_text(g: Drawn, i: int) -> str:
    neighbours = [j for a, j in g["edges"] if a == i]
    added = [j for a, j in g["added"] if a == i]
    evaluated = ", ".join(str(j + 1) for j in [i, *neighbours])
    text = f"kernel {i + 1}, length scale {g['scales'][i]:g}<br>evaluates {evaluated}"
    if added:
        text += f"<br>and after refinement {', '.join(str(j + 1) for j in added)}"
    return text + ("<br>leads in round " + str(g["round"]) if i in g["leading"] else "")
