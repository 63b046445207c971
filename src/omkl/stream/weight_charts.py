"""Charts of the kernel weights over time."""

from html import escape

import numpy as np

from omkl.arrays import Matrix
from omkl.report.charts import Chart, Choice, chart, choice, digits
from omkl.stream.display import NO_KERNEL, VISIBLE, kernel_name, without_kernel
from omkl.stream.history import History
from omkl.stream.model import StreamModel

LEADING_COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#b58900")
REST_COLOUR, NO_KERNEL_COLOUR = "#8a8f98", "#c4c8ce"
NEWEST = 0.15  # share of the newest snapshot in an average


def weight_charts(model: StreamModel, history: History, rows: int) -> list[Choice]:
    """The weight of every kernel over time, and after the last of the rows."""
    now = model.weights()
    if not len(now):
        return []
    table = history.snapshots
    if table.shape[1] != 1 + len(now):
        table = np.empty((0, 1 + len(now)))
    table = np.vstack((table[table[:, 0] < rows], [rows, *now]))
    at, weights = table[:, 0].astype(int).tolist(), averaged(table[:, 1:])
    names = [kernel_name(str(kernel)) for kernel in model.kernels]
    out = [choice("all kernels", heat_map(at, weights, names))]
    if len(at) > 1:
        out.insert(0, choice("the leading kernels", stacked_areas(at, weights, names)))
    return out


def averaged(weights: Matrix) -> Matrix:
    """Each row the mean over it and those before it, of which the latest count most.

    Evidence is forgotten within some ten rows, and weights jump with it: their plot would be unreadable.
    """
    out = weights.copy()
    for k in range(1, len(out)):
        out[k] = out[k - 1] + max(1 / (k + 1), NEWEST) * (weights[k] - out[k - 1])
    return out


def stacked_areas(at: list[int], weights: Matrix, names: list[str]) -> Chart:
    """The leading kernels, stacked; experts without a kernel are on top."""
    order = np.argsort(-weights.mean(axis=0), kind="stable")
    leading, others = order[: len(LEADING_COLOURS)], order[len(LEADING_COLOURS) :]
    layers = [(names[k], weights[:, k], colour) for k, colour in zip(leading, LEADING_COLOURS, strict=False)]
    if len(others):
        layers.append((f"{len(others)} other kernels", weights[:, others].sum(axis=1), REST_COLOUR))
    if (rest := without_kernel(weights)).max() >= VISIBLE:
        layers.append((NO_KERNEL, rest, NO_KERNEL_COLOUR))
    data = [
        {"type": "scatter", "mode": "lines", "x": at, "y": digits(values), "name": escape(name), "stackgroup": "all",
         "line": {"width": 0, "color": colour}, "fillcolor": colour,
         "hovertemplate": "row %{x}<br>%{y:.1%}"}
        for name, values, colour in layers
    ]  # fmt: skip
    return chart(data, "row", "weight", "Weights of the leading kernels over time, stacked",
                 yaxis={"title": {"text": "weight"}, "tickformat": ".0%", "range": [0, 1]})  # fmt: skip


def heat_map(at: list[int], weights: Matrix, names: list[str]) -> Chart:
    data = [{
        "type": "heatmap", "x": at, "y": [escape(name) for name in names],
        "z": [digits(column) for column in weights.T],
        "colorscale": "Viridis", "zmin": 0, "colorbar": {"title": {"text": "weight"}, "thickness": 12},
        "hovertemplate": "row %{x}<br>%{y}<br>weight %{z:.3f}<extra></extra>",
    }]  # fmt: skip
    return chart(data, "row", "", "Weights of all kernels over time",
                 yaxis={"type": "category", "title": {"text": ""}})  # fmt: skip
