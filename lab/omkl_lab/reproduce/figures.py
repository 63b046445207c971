"""Draws the paper's two figures, kernel weights, feedback graphs and regret as PNG and SVG."""

import io
from collections.abc import Sequence
from math import log10
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")  # no display needed

from matplotlib import rc_context
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullLocator

from omkl.persist import write_atomically
from omkl_lab.configurations import is_matching
from omkl_lab.files import read_json, read_lines
from omkl_lab.prequential import snapshots
from omkl_lab.reproduce.charts import COLOURS, arc, positive
from omkl_lab.reproduce.experiments import paper_figures
from omkl_lab.reproduce.graphs import Drawn
from omkl_lab.reproduce.results import Detail

# Reproducible files: no dates, no random ids
STYLE = {"svg.hashsalt": "omkl", "svg.fonttype": "none"}
HEAT = ("Raker", "OMKL-GF", "SFG-MKL", "SFG-MKL-R")


def draw(out: Path) -> list[Path]:
    """All figures that can be drawn from the files in `out`."""
    details: list[Detail] = read_lines(out / "details.jsonl")
    graphs: list[Drawn] = read_lines(out / "graphs.jsonl")
    folder = out / "figures"
    folder.mkdir(exist_ok=True)
    made: list[Path] = []
    scales = {g["dataset"]: g["scales"] for g in graphs}
    for figure in paper_figures():
        lines = [
            d for name in figure.algorithms for d in details
            if d["dataset"] == figure.dataset and d["algorithm"] == name and is_matching(d) and d["curve"]
        ]  # fmt: skip
        if lines:
            made += save(curves(lines, f"Figure {figure.number}: {figure.title}"), folder / f"figure{figure.number}")
    for g in graphs:
        made += save(graph(g), folder / f"graph_{safe(g['dataset'])}")
        heat = [
            d for d in details
            if d["dataset"] == g["dataset"] and d["algorithm"] in HEAT and d["variant"] == form(d["algorithm"])
            and d["history"]
        ]  # fmt: skip
        if heat:
            made += save(weights(heat, scales[g["dataset"]]), folder / f"weights_{safe(g['dataset'])}")
    for stream in (read_json(out / "theory.json") or {"streams": []})["streams"]:
        made += save(regret(stream), folder / f"regret_{safe(stream['dataset'])}")
    return made


def regret(stream: Any) -> Figure:
    figure = Figure(figsize=(7, 4.2), layout="constrained")
    ax = figure.subplots()
    for name in dict.fromkeys(p["algorithm"] for p in stream["points"]):
        points = [p for p in stream["points"] if p["algorithm"] == name]
        for key, style, label in (("regret", "o-", "regret"), ("bound", "--", "bound")):
            known = [p for p in points if p[key] is not None and p[key] > 0]
            if known:
                ax.plot([p["T"] for p in known], [p[key] for p in known], style, color=COLOURS[name], ms=4,
                        label=f"{name}, {label}")  # fmt: skip
    ax.set(xscale="log", yscale="log", xlabel="T", title=plain(f"regret and bounds on {stream['dataset']}"))
    ax.grid(alpha=0.25)
    ax.legend(fontsize="small", frameon=False)
    return figure


def form(algorithm: str) -> str:
    return {"Raker": "every kernel", "OMKL-GF": "drawn on, step / q"}.get(algorithm, "commit never")


def safe(name: str) -> str:
    """A data set's name with only characters that are safe in file names."""
    return "".join(c if c.isalnum() or c in "-_" else "_" for c in name)


def save(figure: Figure, stem: Path) -> list[Path]:
    paths = []
    for kind in ("png", "svg"):
        buffer = io.BytesIO()
        with rc_context(STYLE):  # type: ignore[arg-type]  # its keys are literals to matplotlib's types
            figure.savefig(buffer, format=kind, dpi=120, metadata={"Date": None} if kind == "svg" else None)
        figure.set_layout_engine("none")  # the layout is computed once, for both files
        path = stem.with_suffix(f".{kind}")
        write_atomically(path, buffer.getvalue())
        paths.append(path)
    return paths


def plain(text: str) -> str:
    """Text in which matplotlib does not interpret $ as mathematics."""
    return text.replace("$", r"\$")


def curves(lines: Sequence[Detail], title: str) -> Figure:
    figure = Figure(figsize=(7, 4.2), layout="constrained")
    ax = figure.subplots()
    for d in lines:
        t, mse = positive(d)
        ax.plot(t, [1e3 * v for v in mse], label=f"{d['algorithm']} ({d['variant']})",
                color=COLOURS[d["algorithm"]], ls="--" if d["algorithm"] == "SFG-MKL-R" else "-")  # fmt: skip
    ax.set(yscale="log", xlabel="t", ylabel="MSE x 1e-3", title=plain(title))
    ax.grid(alpha=0.25)
    ax.legend(fontsize="small", frameon=False)
    return figure


def weights(details: Sequence[Detail], scales: Sequence[float]) -> Figure:
    figure = Figure(figsize=(3 * len(details) + 1, 3.6))
    axes = figure.subplots(1, len(details), sharey=True, squeeze=False)[0]
    # manual layout: the automatic one takes longer than drawing with this many log axes
    width = 3 * len(details) + 1
    figure.subplots_adjust(left=0.7 / width, right=1 - 0.9 / width, bottom=0.14, top=0.78, wspace=0.08)
    top = max(max(map(max, d["history"])) for d in details)
    for ax, d in zip(axes, details, strict=True):
        z = list(zip(*d["history"], strict=True))
        mesh = ax.pcolormesh(snapshots(d["rows"]), scales, z, shading="nearest", vmin=0, vmax=top, rasterized=True)
        ax.set(yscale="log", xlabel="t", title=f"{d['algorithm']}\n{d['variant']}")
        ax.yaxis.set_minor_locator(NullLocator())
        ax.xaxis.set_major_locator(MaxNLocator(4, prune="upper"))
    figure.colorbar(mesh, cax=figure.add_axes((1 - 0.75 / width, 0.14, 0.15 / width, 0.64)), label="w / W")
    axes[0].set_ylabel("length scale")
    figure.suptitle(plain(f"kernel weights on {details[0]['dataset']}"))
    return figure


def graph(g: Drawn) -> Figure:
    figure = Figure(figsize=(9, 3.2), layout="constrained")
    ax = figure.subplots()
    x = [log10(s) for s in g["scales"]]
    for edges, colour, z in ((g["edges"], "#9aa6b4", 1), (g["added"], "#d55e00", 2)):
        ax.add_collection(LineCollection([arc(x[i], x[j]) for i, j in edges], colors=colour, linewidths=0.8, zorder=z))
    others = [i for i in range(len(x)) if i not in g["dominating"]]
    ax.plot([x[i] for i in others], [0] * len(others), "o", color="#56b4e9", ms=5, label="node", zorder=3)
    ax.plot([x[i] for i in g["dominating"]], [0] * len(g["dominating"]), "D", color="#cc79a7", ms=8,
            label="dominating set", zorder=4)  # fmt: skip
    ax.plot([], [], color="#9aa6b4", label="similarity graph")
    ax.plot([], [], color="#d55e00", label=f"added by refinement, round {g['round']}")
    ax.set(xlabel="log10 of the length scale", yticks=[], aspect="equal",
           title=plain(f"feedback graph on {g['dataset']}: edges to wider kernels curve up"))  # fmt: skip
    ax.autoscale_view()
    ax.legend(fontsize="small", frameon=False, ncols=4, loc="upper center", bbox_to_anchor=(0.5, -0.2))
    ax.spines[["left", "right", "top"]].set_visible(False)
    return figure
