"""Charts and tables of theory.json for the report."""

from typing import Any

from omkl.report.charts import Chart, Choice, chart, choice
from omkl_lab.reproduce.charts import COLOURS

CITED = {"SFG-MKL": "3/4", "SFG-MKL-R": "1/2", "OMKL-GF": "5/6", "Raker": "1/2"}


def charts_of(theory: Any) -> list[Choice]:
    """Regret and bounds against T, one chart per stream."""
    return [choice(stream["dataset"], regret_chart(stream)) for stream in theory["streams"]]


def regret_chart(stream: Any) -> Chart:
    data: list[Any] = []
    by_algorithm: dict[str, list[Any]] = {}
    for p in stream["points"]:
        by_algorithm.setdefault(p["algorithm"], []).append(p)
    for name, points in by_algorithm.items():
        alive = [p for p in points if p["regret"] is not None and p["regret"] > 0]
        data.append({
            "type": "scatter", "mode": "lines+markers", "name": f"{name}, regret", "x": [p["T"] for p in alive],
            "y": [p["regret"] for p in alive], "line": {"color": COLOURS[name], "width": 2},
            "error_y": {"type": "data", "array": [p["regret_std"] or 0 for p in alive], "thickness": 1},
            "hovertemplate": "T = %{x}<br>regret %{y:.3g}",
        })  # fmt: skip
        for key, dash, label in (
            ("bound", "dash", "bound"), ("bound_without_features", "dot", "bound without the random-feature terms")
        ):  # fmt: skip
            known = [p for p in points if p[key] is not None]
            if known:
                number = "(21)" if name == "SFG-MKL" else "(26)"
                data.append({
                    "type": "scatter", "mode": "lines", "name": f"{name}, {label} {number}",
                    "x": [p["T"] for p in known], "y": [p[key] for p in known],
                    "line": {"color": COLOURS[name], "dash": dash, "width": 1.5},
                    "hovertemplate": "T = %{x}<br>bound %{y:.3g}",
                })  # fmt: skip
    T = sorted({p["T"] for p in stream["points"]})
    data.append({"type": "scatter", "mode": "lines", "name": "T, the largest regret under (as2)", "x": T, "y": T,
                 "line": {"color": "#7a8ca5", "width": 1}})  # fmt: skip
    about = f"Stochastic regret and its bounds against the horizon T on {stream['dataset']}, both axes logarithmic"
    axis = {"type": "log", "exponentformat": "power", "dtick": 1}
    return chart(data, "T", "regret", about, xaxis={"type": "log", "title": {"text": "T"}},
                 yaxis={**axis, "title": {"text": "regret"}})  # fmt: skip


def tables_of(theory: Any) -> dict[str, Any]:
    return {
        "words": [
            "Regret (20): the learner's loss in expectation over the node of a round, given the past, minus the loss "
            "of the best function in hindsight (19), with the same regularised loss (5) on both sides, so that "
            "the ridge of the best function is T lambda. The nodes of SFG-MKL and SFG-MKL-R are enumerated; OMKL-GF's "
            f"subsets are too many and {theory['subsets']} are sampled in every round. Every horizon T is a separate "
            f"run with eta = xi = 1 / sqrt(T), {theory['runs']} feature sets each, without committing to a node "
            "(commit never).",
            "All streams except the generated one (mixture) are files in their original order, which are not "
            "stationary: "
            "regret may decrease with T or be negative, and an exponent describes the file as much as the algorithm.",
        ],
        "tables": [regret_table(theory), bound_table(theory), needed_table(theory), complexity_table(theory)],
    }


def regret_table(theory: Any) -> dict[str, Any]:
    rows = []
    for stream in theory["streams"]:
        for p in stream["points"]:
            if p["T"] != stream["rows"]:
                continue
            mine = [q for q in stream["points"] if q["algorithm"] == p["algorithm"]]
            fit = stream["growth"][p["algorithm"]]
            good = sum(q["regret"] is not None and q["regret"] > 0 for q in mine)
            rows.append([
                stream["dataset"], p["algorithm"], str(p["T"]),
                "diverges" if p["regret"] is None else f"{p['regret']:.2f}",
                "" if p["regret_std"] is None else f"{p['regret_std']:.2f}",
                "" if p["regret"] is None else f"{p['regret'] / p['T']:.4f}", f"{p['best_loss']:.4f}",
                "none" if fit is None else f"{fit['exponent']:.2f}",
                "" if fit is None else f"{fit['low']:.2f} to {fit['high']:.2f}", f"{good} of {len(mine)}",
                CITED[p["algorithm"]], stream["space"],
            ])  # fmt: skip
    return {
        "title": "Regret and its growth", "rows": rows,
        "words": ["Exponent: slope of log regret on log T at the horizons of positive regret (how many: "
                  "column positive), with its 95 % interval. Stated: the exponent of the bound in the paper or in the "
                  "work it cites."],
        "head": ("stream", "algorithm", "T", "regret", "sd", "regret / T", "best loss / T", "exponent", "95 %",
                 "positive", "stated", "best function in"),
    }  # fmt: skip


def bound_table(theory: Any) -> dict[str, Any]:
    rows = []
    for stream in theory["streams"]:
        for p in stream["points"]:
            if p["T"] == stream["rows"] and p["least_q"] is not None:
                rows.append([
                    stream["dataset"], p["algorithm"], "(21)" if p["algorithm"] == "SFG-MKL" else "(26)",
                    "diverges" if p["bound"] is None else f"{p['bound'] / p['T']:.4g}",
                    "" if p["bound"] is None else f"{p['bound_without_features'] / p['T']:.4g}",
                    "" if p["bound"] is None else "yes" if p["bound"] >= p["T"] else "no",
                    f"{p['epsilon']:.2f}", f"{p['C']:.1f}", f"{p['L']:.3g}", f"{p['least_q']:.2g}",
                    "" if p["beta"] is None else f"{p['beta']:.2g}", f"{100 * p['losses_out_of_range']:.3f} %",
                    f"{100 * p['large_gradients']:.3f} %",
                ])  # fmt: skip
    return {
        "title": "The bounds on the same runs", "rows": rows,
        "words": [
            "Losses lie in [0, 1] by (as2), so regret cannot exceed T: a bound of more than 1 per round is vacuous"
            + ("; all of these are. " if all(row[5] != "no" for row in rows) else ", as the column says. ")
            + "There are two reasons. The probability statement at D = 50 and 95 % forces epsilon to about 2 or above, "
            "while a kernel's error is never above 2, and the term epsilon L T C alone is then hundreds of times T. "
            "And C, the sum of the absolute coefficients of the best function, is in the hundreds, which makes "
            "(1 + epsilon) C^2 / (2 eta) large as well. The column without the random-feature terms has |f*|^2 in "
            "place of (1 + epsilon) C^2 and no epsilon L T C.",
            "L is the largest gradient norm over all rounds and kernels; epsilon belongs to the best kernel; "
            "beta is the least q of the run, or 1/N, whichever is less, which is all that the proof of Theorem 4 uses. "
            "(21) is taken at the node i for which it is least. Loss > 1 and gradient > 2 are the shares of (round, "
            "kernel) pairs outside what (as2) assumes of targets in [0, 1].",
        ],
        "head": ("stream", "algorithm", "bound", "bound / T", "without features", "vacuous", "epsilon", "C", "L",
                 "least q", "beta", "loss > 1", "gradient > 2"),
    }  # fmt: skip


def needed_table(theory: Any) -> dict[str, Any]:
    rows = [
        [stream["dataset"], n["algorithm"], f"{n['epsilon']:.2g}", f"{n['D']:.2g}", f"{n['T']:.2g}"]
        for stream in theory["streams"]
        for n in stream["needed"]
    ]
    return {
        "title": "How D and T would have to grow", "rows": rows,
        "words": ["The least D (random features) and T (samples) for which the bound falls to T, with C, L and means "
                  "of 1/q as measured: a quarter of T for epsilon L T C, which D must reduce, the rest for the terms "
                  "that grow like sqrt(T)."],
        "head": ("stream", "algorithm", "epsilon", "D needed", "T needed"),
    }  # fmt: skip


def complexity_table(theory: Any) -> dict[str, Any]:
    rows = [
        [e["algorithm"], e["printed"], e["factor"], f"{e['values'][0]} to {e['values'][-1]}", f"{e['expected']:g}",
         f"{e['fitted']:.2f}", f"{e['low']:.2f} to {e['high']:.2f}",
         f"{e['microseconds'][0]:.2f} to {e['microseconds'][-1]:.2f}"]
        for e in theory["complexity"]
    ]  # fmt: skip
    return {
        "title": "The complexity paragraph", "rows": rows,
        "words": [
            "Time per sample on one core against one factor at a time, about N = 41, D = 50, M = 5, d = 15 (OMKR: 1000 "
            "stored samples), and the slope in logarithms. The printed O(.) count inner products. A sine and a cosine "
            "per feature cost as much as a few dimensions do and do not grow with d, so the slopes in d stay below 1 "
            "at these sizes. OMKR here computes each distance once for all N kernels, t (d + N) instead of t d N, and "
            "N exponentials outweigh d products, so its slope in d is small. SFG-MKL also normalises N weights "
            "and sums q over the graph, which the printed O(d D M) leaves out; it shows as a small slope in N. "
            "SFG-MKL-R's printed cost is its worst case: refinement adds few edges, so it grows with M as SFG-MKL "
            "does. Memory is O(d D N) exactly: the frequencies are N x d x D numbers, and everything else is smaller."
        ],
        "head": ("algorithm", "printed", "factor", "from to", "printed exponent", "fitted", "95 %", "microseconds"),
    }  # fmt: skip
