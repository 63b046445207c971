"""Pages about a run and about a comparison. Nothing on the page of a run depends on the clock."""

import os
from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

from omkl.arrays import Index, Matrix, Vector
from omkl.estimators.core import in_order
from omkl.persist import write_atomically
from omkl.report.charts import COLOURS, Chart, chart, choice, digits, log_axis
from omkl.report.render import render
from omkl.stream.compare import Comparison, cells
from omkl.stream.display import kernel_name
from omkl.stream.history import History
from omkl.stream.model import COVERAGE
from omkl.stream.run import Outcome

OURS, BASELINE, TRUTH, BAND, CHANGE = "#0072b2", "#8a8f98", "#d55e00", "rgba(86,180,233,0.3)", "#cc79a7"
AREAS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#b58900")
REST_COLOUR, BESIDE_COLOUR = "#8a8f98", "#c4c8ce"
BESIDE = "linear model and memory"  # GraphMKL's experts that are no kernels
FEWEST, MOST = 20, 120  # rows in a stretch that is drawn, and stretches
COLUMNS = len(History.COLUMNS)


def write(outcome: Outcome, path: str | os.PathLike[str]) -> None:
    """Make the page about a run."""
    write_atomically(path, page(outcome).encode())


def page(outcome: Outcome) -> str:
    """One file that opens without a network."""
    s, history = outcome.summary, outcome.history
    drawings: dict[str, list[Any]] = {}
    if history is not None:
        drawings = of_numbers(outcome, history) if history.task == "regression" else of_labels(history)
        drawings["weights"] = weights(outcome, history)
    leaders = [f"{kernel_name(k['kernel'])} ({k['weight']:.0%})" for k in s["kernels"] if k["weight"] >= 0.005]
    if outcome.model.learner == "graph-mkl" and (beside := 1 - outcome.model.weights().sum()) >= 0.005:
        leaders.append(f"{BESIDE} ({beside:.0%})")
    return render(
        "omkl/stream", "run.html.j2", {name: choices for name, choices in drawings.items() if choices},
        s=s, cards=cards(s), leaders=leaders, data=sources(outcome.data), notices=outcome.notices,
        stopped=outcome.stopped, drawn=[name for name, choices in drawings.items() if choices],
        sampled=0 if history is None else len(history.sampled.rows), coverage=f"{COVERAGE:.0%}",
    )  # fmt: skip


def sources(data: Sequence[str]) -> str:
    """Where the rows came from, in words.

    >>> sources(["days/1.csv", "-"])
    '1.csv, standard input'
    """
    return ", ".join("standard input" if path == "-" else os.path.basename(path) for path in data)


def cards(s: dict[str, Any]) -> list[tuple[str, str]]:
    """What matters most, as numbers with words below them."""
    out = [(f"{s['rows']:,}", f"rows read, {s['learned']:,} of them learned")]
    if not s.get("scored"):
        return [*out, ("no error", "as no target was seen")]
    if s["task"] == "regression":
        out.append((f"{s['rmse']:.4g}", f"RMSE; the running mean has {s['baseline_rmse']:.4g}"))
        if s["baseline_mse"] > 0:
            out.append((f"{1 - s['mse'] / s['baseline_mse']:.3f}", "R², against the running mean"))
        out.append((f"{s['mae']:.4g}", "mean absolute error"))
        if "coverage" in s:
            out.append((f"{s['coverage']:.1%}", f"of the targets inside the {COVERAGE:.0%} interval"))
    else:
        out.append((f"{s['accuracy']:.1%}", f"right; the most frequent label is right in {s['baseline_accuracy']:.1%}"))
        out.append((f"{s['log_loss']:.3g}", "log-loss"))
    return out


# Errors over time


class Stretches:
    """The history's bins, joined until each holds some rows."""

    def __init__(self, history: History) -> None:
        group = max(-(-FEWEST // history.width), -(-len(history.bins) // MOST))
        starts = np.arange(0, len(history.bins), group)
        if len(starts) > 1 and history.bins[starts[-1] :, 0].sum() < FEWEST * 0.5:
            starts = starts[:-1]  # what is left over goes to the last one
        last = np.append(starts[1:], len(history.bins))[: len(starts)] - 1
        self.ends: Index = history.ends[last]
        self.sums: Matrix = np.add.reduceat(history.bins, starts, axis=0) if len(starts) else np.zeros((0, COLUMNS))
        self.so_far: Matrix = np.cumsum(self.sums, axis=0)

    def of(self, name: str, by: str = "rows", so_far: bool = False) -> Vector:
        """The mean of a column over each stretch, or over all rows up to its end."""
        table = self.so_far if so_far else self.sums
        top, below = (table[:, History.COLUMNS.index(column)] for column in (name, by))
        mean: Vector = np.divide(top, below, out=np.full(len(top), np.nan), where=below > 0)
        return mean


def line(x: Any, y: Any, name: str, colour: str, hover: str, **more: Any) -> dict[str, Any]:
    look = {"color": colour, "width": 2} | more.pop("line", {})
    mode = "lines" if len(x) > 1 else "markers"
    return {"type": "scatter", "mode": mode, "x": x, "y": y, "name": escape(name), "line": look,
            "hovertemplate": hover, **more}  # fmt: skip


def moments(history: History, top: float) -> list[dict[str, Any]]:
    """A line across the chart at each moment of change."""
    rows = history.moments_of_change()
    if not rows:
        return []
    x = [value for row in rows for value in (row, row, None)]
    y = [value for _ in rows for value in (0, top, None)]
    return [line(x, y, "moment of change", CHANGE, "change about row %{x}<extra></extra>", line={"dash": "dot"})]


def over_time(
    history: History, axis: str, baseline: str, mean: Any, percent: bool = False, wanted: float | None = None
) -> list[dict[str, Any]]:
    """A quantity of the model, and of the baseline if it has one, by stretch and so far."""
    stretches = Stretches(history)
    if not len(stretches.ends):
        return []
    out = []
    for so_far, words in ((False, "each stretch of rows"), (True, "all rows so far")):
        curves = {"omkl": mean(stretches, "ours", so_far)}
        if baseline:
            curves[baseline] = mean(stretches, "baseline", so_far)
        shown = ".1%" if percent else ".4g"
        data = [
            line(stretches.ends.tolist(), digits(values, 5), name, OURS if name == "omkl" else BASELINE,
                 f"up to row %{{x}}<br>{axis} %{{y:{shown}}}",
                 line={} if name == "omkl" else {"dash": "dash"})
            for name, values in curves.items()
        ]  # fmt: skip
        top = max((float(np.nanmax(v)) for v in curves.values() if np.isfinite(v).any()), default=1.0)
        looks: dict[str, Any] = {"tickformat": ".0%"} if percent else {"rangemode": "tozero"}
        if wanted is not None:
            hover = "wanted %{y:.0%}<extra></extra>"
            ends = [int(stretches.ends[0]), int(stretches.ends[-1])]
            data.append(line(ends, [wanted] * 2, f"{wanted:.0%} wanted", BASELINE, hover, line={"dash": "dash"}))
            looks["range"] = [min(0.5, float(np.nanmin(curves["omkl"]))) - 0.01, 1.01]
        about = f"{axis} of {words}, the model" + (f" beside {baseline}" if baseline else "")
        made = chart(data + moments(history, top), "row", axis, about, hovermode="x unified",
                     yaxis={"title": {"text": axis}, **looks})  # fmt: skip
        out.append(choice(words, made))
    return out


# Numbers


def of_numbers(outcome: Outcome, history: History) -> dict[str, list[Any]]:
    def rmse(stretches: Stretches, who: str, so_far: bool) -> Vector:
        return np.sqrt(stretches.of("loss" if who == "ours" else "baseline", so_far=so_far))

    def covered(stretches: Stretches, who: str, so_far: bool) -> Vector:
        return stretches.of("inside", "judged", so_far)

    name = outcome.summary["target"]
    drawings = {
        "error": over_time(history, "RMSE", "running mean", rmse),
        "predictions": [
            choice(words, predictions(rows, name, joined))
            for words, rows, joined in (
                (f"the last {len(history.last):,} rows", history.last, True),
                (f"{len(history.sampled.rows):,} rows from the whole stream", history.sampled.rows, False),
            )
            if len(rows)
        ],
        "residuals": residuals(history.sampled.rows),
    }
    if history.bins[:, History.COLUMNS.index("judged")].any():
        drawings["coverage"] = over_time(history, "inside the interval", "", covered, percent=True, wanted=COVERAGE)
    return drawings


def predictions(rows: Matrix, target: str, joined: bool) -> Chart:
    """Predictions with their interval against the truth, by row."""
    at = rows[:, 0].astype(int).tolist()
    truth, mean, lower, upper = (digits(column, 5) for column in rows[:, 1:].T)
    data: list[Any] = []
    if any(v is not None for v in lower):
        edge = {"mode": "lines", "line": {"width": 0, "color": OURS}, "hoverinfo": "skip"}
        data += [
            {"type": "scatter", "x": at, "y": lower, "showlegend": False, **edge},
            {"type": "scatter", "x": at, "y": upper, "name": f"{COVERAGE:.0%} interval", "fill": "tonexty",
             "fillcolor": BAND, **edge},
        ]  # fmt: skip
    hover = "row %{x}<br>%{y:.5g}"
    if joined:
        data.append(line(at, mean, "predicted", OURS, hover))
    else:
        data.append({"type": "scatter", "mode": "markers", "x": at, "y": mean, "name": "predicted",
                     "hovertemplate": hover, "marker": {"color": OURS, "size": 4}})  # fmt: skip
    data.append({"type": "scatter", "mode": "markers", "x": at, "y": truth, "name": "truth", "hovertemplate": hover,
                 "marker": {"color": TRUTH, "size": 5 if joined else 4, "opacity": 0.8}})  # fmt: skip
    return chart(data, "row", escape(target), f"Predictions and truth of {len(at)} rows", hovermode="x")


def residuals(rows: Matrix) -> list[dict[str, Any]]:
    """Truth less prediction in the sampled rows: how often each size, against the prediction, over time."""
    if len(rows) < 2:
        return []
    left = rows[:, 1] - rows[:, 2]
    low, high = np.quantile(left, [0.005, 0.995])
    room = max(0.1 * (high - low), 1e-12 * max(1.0, float(np.abs(left).max())))
    counts, edges = np.histogram(left, bins=min(60, max(8, len(left) // 10)), range=(low - room, high + room))
    beyond = len(left) - int(counts.sum())
    bars = {"type": "bar", "x": digits((edges[:-1] + edges[1:]) / 2, 4), "y": counts.tolist(), "name": "rows",
            "marker": {"color": OURS}, "hovertemplate": "about %{x}<br>%{y} rows<extra></extra>"}  # fmt: skip
    words = "how often" + (f" ({beyond} rows lie beyond)" if beyond else "")
    out = [choice(words, chart([bars], "truth less prediction", "rows", "Histogram of the residuals", bargap=0.03))]
    for title, x, axis in (("against the prediction", rows[:, 2], "prediction"), ("over time", rows[:, 0], "row")):
        dots = {"type": "scatter", "mode": "markers", "x": digits(x, 6), "y": digits(left, 4),
                "marker": {"color": OURS, "size": 4, "opacity": 0.6}, "name": "residual",
                "hovertemplate": f"{axis} %{{x}}<br>residual %{{y}}<extra></extra>"}  # fmt: skip
        out.append(choice(title, chart([dots], axis, "truth less prediction", f"Residuals {title}")))
    return out


# Labels


def of_labels(history: History) -> dict[str, list[Any]]:
    def right(stretches: Stretches, who: str, so_far: bool) -> Vector:
        return 1 - stretches.of("loss" if who == "ours" else "baseline", so_far=so_far)

    def log_loss(stretches: Stretches, who: str, so_far: bool) -> Vector:
        return stretches.of("log_loss", so_far=so_far)

    return {
        "error": over_time(history, "accuracy", "most frequent label", right, percent=True),
        "log_loss": over_time(history, "log-loss", "", log_loss),
        "confusion": confusion(history),
        "confidence": confidence(history),
    }


def confusion(history: History) -> list[dict[str, Any]]:
    """What was said where each label was true."""
    if not history.places:
        return []
    labels = [str(label) for label in in_order(set(history.places))]
    places = [history.places[label] for label in labels]
    if history.confusion[-1].any() or history.confusion[:, -1].any():
        labels, places = [*labels, "other labels"], [*places, -1]
    counts = history.confusion[np.ix_(places, places)]
    share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    names = [escape(label if len(label) <= 24 else label[:23] + "…") for label in labels]
    table = {
        "type": "heatmap", "x": names, "y": names, "z": [digits(row) for row in share], "customdata": counts.tolist(),
        "colorscale": "Viridis", "zmin": 0, "zmax": 1, "colorbar": {"thickness": 12, "tickformat": ".0%"},
        "hovertemplate": "true %{y}<br>said %{x}<br>%{z:.1%} (%{customdata} rows)<extra></extra>",
    }  # fmt: skip
    if len(labels) <= 10:
        table |= {"text": [[f"{value:.0%}" for value in row] for row in share], "texttemplate": "%{text}"}
    axes = {"xaxis": {"title": {"text": "said"}, "type": "category", "gridcolor": "rgba(0,0,0,0)"},
            "yaxis": {"title": {"text": "true"}, "type": "category", "autorange": "reversed",
                      "gridcolor": "rgba(0,0,0,0)"}}  # fmt: skip
    about = "Share of the rows of each true label for which each label was said"
    return [choice("all rows", chart([table], "said", "true", about, **axes))]


def confidence(history: History) -> list[dict[str, Any]]:
    """How often a label said with some chance was right; on the diagonal, chances mean what they say."""
    rows, chance, right = history.confidence[history.confidence[:, 0] > 0].T
    if not len(rows):
        return []
    dots = {
        "type": "scatter", "mode": "lines+markers", "x": digits(chance / rows, 4), "y": digits(right / rows, 4),
        "customdata": rows.astype(int).tolist(), "name": "omkl", "line": {"color": OURS, "width": 2},
        "marker": {"size": digits(6 + 12 * np.sqrt(rows / rows.max()))},
        "hovertemplate": "said with %{x:.1%}<br>right in %{y:.1%}<br>%{customdata} rows<extra></extra>",
    }  # fmt: skip
    diagonal = line([0, 1], [0, 1], "chances that mean what they say", BASELINE, "", line={"dash": "dash"},
                    hoverinfo="skip")  # fmt: skip
    share = {"tickformat": ".0%", "range": [-0.02, 1.03]}
    about = "How often a label was right, against the chance it was given"
    made = chart([dots, diagonal], "", "", about, xaxis={"title": {"text": "chance given"}, **share},
                 yaxis={"title": {"text": "share that was right"}, **share})  # fmt: skip
    return [choice("all rows", made)]


# Kernels


def weights(outcome: Outcome, history: History) -> list[dict[str, Any]]:
    """The weight of every kernel over time, and at the end."""
    model, table = outcome.model, history.snapshots
    now = model.weights()
    if not len(now):
        return []
    end = outcome.summary["rows"]
    if table.shape[1] != 1 + len(now):
        table = np.empty((0, 1 + len(now)))
    table = np.vstack((table[table[:, 0] < end], [end, *now]))
    at, shares = table[:, 0].astype(int).tolist(), table[:, 1:]
    names = [kernel_name(str(kernel)) for kernel in model.kernels]
    out = [choice("all kernels", heat(at, shares, names))]
    if len(at) > 1:
        out.insert(0, choice("the leading ones", areas(at, shares, names, model.learner == "graph-mkl")))
    return out


def areas(at: list[int], shares: Matrix, names: list[str], others: bool) -> Chart:
    """The leading kernels, one on the other; what GraphMKL gives to experts that are no kernels lies on top."""
    order = np.argsort(-shares.mean(axis=0), kind="stable")
    leading, rest = order[: len(AREAS)], order[len(AREAS) :]
    layers = [(names[k], shares[:, k], colour) for k, colour in zip(leading, AREAS, strict=False)]
    if len(rest):
        layers.append((f"{len(rest)} other kernels", shares[:, rest].sum(axis=1), REST_COLOUR))
    if others:
        layers.append((BESIDE, np.clip(1 - shares.sum(axis=1), 0, 1), BESIDE_COLOUR))
    data = [
        {"type": "scatter", "mode": "lines", "x": at, "y": digits(values), "name": escape(name), "stackgroup": "all",
         "line": {"width": 0, "color": colour}, "fillcolor": colour,
         "hovertemplate": "row %{x}<br>%{y:.1%}"}
        for name, values, colour in layers
    ]  # fmt: skip
    return chart(data, "row", "weight", "Weights of the leading kernels over time, one on the other",
                 yaxis={"title": {"text": "weight"}, "tickformat": ".0%", "range": [0, 1]})  # fmt: skip


def heat(at: list[int], shares: Matrix, names: list[str]) -> Chart:
    data = [{
        "type": "heatmap", "x": at, "y": [escape(name) for name in names], "z": [digits(column) for column in shares.T],
        "colorscale": "Viridis", "zmin": 0, "colorbar": {"title": {"text": "weight"}, "thickness": 12},
        "hovertemplate": "row %{x}<br>%{y}<br>weight %{z:.3f}<extra></extra>",
    }]  # fmt: skip
    return chart(data, "row", "", "Weights of all kernels over time",
                 yaxis={"type": "category", "title": {"text": ""}})  # fmt: skip


# Comparisons


def write_comparison(comparison: Comparison, path: str | os.PathLike[str]) -> None:
    """Make the page about a comparison."""
    write_atomically(path, comparison_page(comparison).encode())


def comparison_page(comparison: Comparison) -> str:
    s = comparison.summary()
    numbers = s["task"] == "regression"
    head = ["name", "kind", *(("RMSE", "MAE") if numbers else ("wrong", "log-loss")), "to best", "µs/row", "diverged"]
    rows = [[line["name"], line["kind"], *cells(line, numbers), line["diverged"] or ""] for line in s["ranking"]]
    drawings = {"courses": courses(comparison, s), "costs": costs(s)} if s["scored"] else {}
    return render(
        "omkl/stream", "compare.html.j2", {name: choices for name, choices in drawings.items() if choices},
        s=s, head=head, rows=rows, data=sources(comparison.options.data), notices=tuple(comparison.tell.told.values()),
        drawn=[name for name, choices in drawings.items() if choices],
    )  # fmt: skip


def courses(comparison: Comparison, s: dict[str, Any]) -> list[dict[str, Any]]:
    """The error of everybody over time, in the order of the ranking."""
    numbers = s["task"] == "regression"
    axis = "RMSE" if numbers else "wrong"
    shown = ".4g" if numbers else ".1%"
    entrants = {entrant.name: entrant for entrant in comparison.entrants}
    out = []
    for so_far, words in ((True, "all rows so far"), (False, "each stretch of rows")):
        data = []
        for ranked in s["ranking"]:
            history, learner = entrants[ranked["name"]].history, ranked["kind"] == "learner"
            stretches = Stretches(history)
            if not len(stretches.ends):
                continue
            loss = stretches.of("loss", so_far=so_far)
            data.append(
                line(stretches.ends.tolist(), digits(np.sqrt(loss) if numbers else loss, 5), ranked["name"],
                     COLOURS.get(ranked["name"], BASELINE), f"up to row %{{x}}<br>{axis} %{{y:{shown}}}",
                     line={"dash": "solid" if learner else "dash" if ranked["name"].startswith("last") else "dot"})
            )  # fmt: skip
        looks = {"type": "log"} if numbers else {"tickformat": ".0%", "rangemode": "tozero"}
        about = f"{axis} of every learner and baseline over {words}"
        out.append(choice(words, chart(data, "row", axis, about, yaxis={"title": {"text": axis}, **looks})))
    return out


def costs(s: dict[str, Any]) -> list[dict[str, Any]]:
    """Error against time per row."""
    numbers = s["task"] == "regression"
    key, axis, shown = ("rmse", "RMSE", ".4g") if numbers else ("error_rate", "wrong", ".1%")
    there = [ranked for ranked in s["ranking"] if ranked["kind"] == "learner" and key in ranked]
    if not there:
        return []
    names = [ranked["name"] for ranked in there]
    dots = {
        "type": "scatter", "mode": "markers+text", "x": digits(ranked["microseconds_per_row"] for ranked in there),
        "y": digits((ranked[key] for ranked in there), 5), "text": names, "textposition": "top center",
        "cliponaxis": False, "marker": {"size": 12, "color": [COLOURS.get(name, OURS) for name in names]},
        "hovertemplate": f"%{{text}}<br>%{{x}} µs per row<br>{axis} %{{y:{shown}}}<extra></extra>",
    }  # fmt: skip
    looks = {} if numbers else {"tickformat": ".0%"}
    about = f"{axis} of every learner against the time it took per row"
    return [choice("all", chart([dots], "", axis, about, xaxis=log_axis("µs per row"),
                                yaxis={"title": {"text": axis}, **looks}, showlegend=False))]  # fmt: skip
