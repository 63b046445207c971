"""The benchmark results as one self-contained HTML page with charts and tables."""

from html import escape
from typing import Any

from omkl.report.charts import COLOURS, Chart, chart, choice
from omkl.report.render import render
from omkl_lab.bench import table
from omkl_lab.bench.job import Results
from omkl_lab.bench.timing import TITLES, exponent

OURS, THEIRS = "#d55e00", "#56b4e9"
BY_TITLE = {title: COLOURS[learner] for learner, title in TITLES.items()}
UNITS = {"time": "microseconds per sample", "memory": "bytes"}


def page(results: Results) -> str:
    drawn = [*scatters(results), *growths(results), *long_run(results)]
    return render(
        "omkl_lab/bench", "bench.html.j2", {str(k): [choice(one["about"], one)] for k, one in enumerate(drawn)},
        machine=results["machine"], seconds=round(results["seconds"]), left_out=results["left_out"],
        tables=table.tables(results), drawn=drawn,
    )  # fmt: skip


def log(title: str, dtick: str | int = 1) -> dict[str, Any]:
    """A logarithmic axis, with a tick at each power of ten, or at 1, 2 and 5 too: "D2"."""
    return {"type": "log", "title": {"text": title}, "dtick": dtick, "exponentformat": "power"}


def scatters(results: Results) -> list[Chart]:
    """Error against time, one chart for each stream; lower left is better."""
    out = []
    for stream in dict.fromkeys(record["stream"] for record in results["peers"]):
        there = [r for r in results["peers"] if r["stream"] == stream and r["status"] == "ok"]
        data = []
        for ours, name in ((True, "omkl"), (False, "peers")):
            some = [r for r in there if r["ours"] is ours]
            data.append({
                "type": "scatter", "mode": "markers+text", "name": name, "x": [r["microseconds"] for r in some],
                "y": [1e3 * r["mse"] for r in some], "text": [escape(r["learner"]) for r in some],
                "textposition": "top center", "textfont": {"size": 10}, "cliponaxis": False,
                "marker": {"size": 11 if ours else 8, "color": OURS if ours else THEIRS,
                           "symbol": "diamond" if ours else "circle"},
                "hovertemplate": "%{text}<br>%{x:.3g} us, MSE %{y:.3g} x 1e-3<extra></extra>",
            })  # fmt: skip
        about = f"Error against microseconds per row on {escape(stream)}; lower left is better"
        out.append(chart(data, "", "", about, xaxis=log("microseconds per row, predicting and learning"),
                         yaxis=log("MSE x 1e-3", "D2"), legend={"orientation": "h", "y": 1.12}))  # fmt: skip
    return out


def growths(results: Results) -> list[Chart]:
    """Time and memory against each factor, with the exponent in the legend."""
    out = []
    for what, factor in dict.fromkeys((g["what"], g["factor"]) for g in results["growth"]):
        lines = [g for g in results["growth"] if (g["what"], g["factor"]) == (what, factor)]
        data = [
            {"type": "scatter", "mode": "lines+markers", "x": g["at"], "y": g["values"],
             "name": f"{escape(g['algorithm'])}: exponent {g['exponent']:.2f}",
             "line": {"color": BY_TITLE[g["algorithm"]]}}
            for g in lines
        ]  # fmt: skip
        about = f"{what.capitalize()} against {factor}"
        out.append(chart(data, "", "", about, xaxis=log(factor, "D2"), yaxis=log(UNITS[what], "D2")))
    return out


def long_run(results: Results) -> list[Chart]:
    run = results["long_run"]
    time = {
        "type": "scatter",
        "mode": "lines+markers",
        "x": run["t"],
        "y": run["microseconds"],
        "name": slope_of(run["t"], run["microseconds"]),
    }
    size = {"type": "scatter", "mode": "lines+markers", "x": run["t"], "y": [s / 1e6 for s in run["resident"]],
            "name": slope_of(run["t"], [float(s) for s in run["resident"]])}  # fmt: skip
    return [
        chart([time], "", "", "Time against t, SFG-MKL", xaxis=log("t"), showlegend=True,
              yaxis={"title": {"text": UNITS["time"]}, "rangemode": "tozero"}),
        chart([size], "", "", "Resident memory against t, SFG-MKL", xaxis=log("t"), showlegend=True,
              yaxis={"title": {"text": "resident megabytes"}, "rangemode": "tozero"}),
    ]  # fmt: skip


def slope_of(at: list[int], values: list[float]) -> str:
    return f"SFG-MKL: exponent {exponent(at, values):.3f}" if len(at) > 1 else "SFG-MKL"
