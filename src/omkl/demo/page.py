"""The report of the demonstration: pictures first, then the table and what to do next."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from omkl.datasets.demand import Demand
from omkl.demo.job import HEAD, WEEK, Score, noticed
from omkl.demo.learners import COVERAGE
from omkl.persist import write_atomically
from omkl.report.charts import Chart, Choice, Part, chart, choice, digits
from omkl.report.render import render

OURS, TRUTH, BAND = "#0072b2", "#d55e00", "rgba(86,180,233,0.3)"
STYLES = (  # colour and dashes of the learners, the first of which is GraphMKL
    (OURS, "solid"), ("#e69f00", "solid"), ("#009e73", "solid"), ("#8a8f98", "dash"), ("#8a8f98", "dot"),
)  # fmt: skip
OUTAGE, CHANGE = "rgba(230,159,0,0.18)", "#cc79a7"
SHOWN_CELLS = 3  # rows of the stream that the report shows


def write(path: Path, stream: Demand, scores: Sequence[Score], commands: Sequence[tuple[str, str]]) -> None:
    """Write the report."""
    write_atomically(path, page(stream, scores, commands).encode())


def page(stream: Demand, scores: Sequence[Score], commands: Sequence[tuple[str, str]]) -> str:
    """The report as one HTML file that opens without a network; the first of the scores is GraphMKL's."""
    us, ranking = scores[0], sorted(scores, key=lambda score: score.error)
    row = noticed(stream, us)
    return render(
        "omkl/demo", "demo.html.j2",
        {"errors": [choice("all", errors(stream, scores))], "predictions": predictions(stream, us),
         "ranking": [choice("all", bars(ranking))]},
        rows=len(stream.y), us=us, row=row, change=stream.change, best_other=min(scores[1:], key=lambda s: s.error),
        coverage=f"{COVERAGE:.0%}", worst=ranking[-1], head=HEAD,
        cells=[score.cells() for score in ranking], commands=commands, outage=stream.outage,
        columns=[*stream.columns, "demand"], sample=sample(stream),
    )  # fmt: skip


def bars(ranking: Sequence[Score]) -> Chart:
    """The mean error of every learner, the smallest at the top."""
    upwards = ranking[::-1]
    colours = [OURS if score.outcome.ends is not None else "#8a8f98" for score in upwards]
    data = {
        "type": "bar", "orientation": "h", "x": digits(score.error for score in upwards),
        "y": [score.name for score in upwards], "marker": {"color": colours}, "texttemplate": "%{x:.2f}",
        "textposition": "outside", "cliponaxis": False, "hovertemplate": "%{y}: %{x} MW<extra></extra>",
    }  # fmt: skip
    return chart([data], "mean absolute error, MW", "", "Mean absolute error of every learner",
                 showlegend=False, bargap=0.35, yaxis={"title": {"text": ""}, "showgrid": False},
                 xaxis={"title": {"text": "mean absolute error, MW"},
                        "range": [0, 1.15 * ranking[-1].error]})  # fmt: skip


def errors(stream: Demand, scores: Sequence[Score]) -> Chart:
    """The mean error of each week, with what happened."""
    weeks = range(WEEK, len(stream.y) - WEEK // 2, WEEK)
    ends = times(stream)
    data: list[Part] = []
    worst = max(scores, key=lambda score: score.error)  # whose error would make all others look alike
    for (colour, dash), score in zip(STYLES, scores, strict=True):
        error = np.abs(score.outcome.y_pred - stream.y)
        data.append({
            "type": "scatter", "mode": "lines", "name": score.name, "line": {"color": colour, "dash": dash, "width": 2},
            "x": [ends[min(week + WEEK, len(ends)) - 1] for week in weeks],
            "y": digits(float(error[week : week + WEEK].mean()) for week in weeks),
            "hovertemplate": "week until %{x}<br>%{y:.2f} MW",
            "visible": "legendonly" if score is worst else True,
        })  # fmt: skip
    about = "Mean absolute error of every learner by week; the failure of the sensor and the change are marked"
    return chart(data, "", "mean absolute error of the week, MW", about, hovermode="x unified",
                 yaxis={"title": {"text": "mean error of the week, MW"}, "rangemode": "tozero"},
                 **events(stream, scores[0]))  # fmt: skip


def predictions(stream: Demand, us: Score) -> list[Choice]:
    """Predictions with their intervals and the truth, where something happens and at the end."""
    windows = {
        "the days around the change of habits": stream.change - 72,
        "the days in which the thermometer fails": stream.outage[0] - 48,
        "the last week": len(stream.y) - WEEK,
    }
    return [choice(name, days(stream, us, max(start, 0))) for name, start in windows.items()]


def days(stream: Demand, us: Score, start: int) -> Chart:
    """A week from this row on."""
    assert us.outcome.ends is not None
    rows = slice(start, start + WEEK)
    x, (low, high) = times(stream)[rows], us.outcome.ends[rows].T
    edge = {"type": "scatter", "mode": "lines", "x": x, "line": {"width": 0, "color": OURS}, "hoverinfo": "skip"}
    band = f"{COVERAGE:.0%} interval"
    data: list[Part] = [
        {**edge, "y": digits(low, 4), "showlegend": False},
        {**edge, "y": digits(high, 4), "name": band, "fill": "tonexty", "fillcolor": BAND},
        {"type": "scatter", "mode": "lines", "x": x, "y": digits(us.outcome.y_pred[rows], 4), "name": "predicted",
         "line": {"color": OURS, "width": 2}, "hovertemplate": "%{y:.1f} MW"},
        {"type": "scatter", "mode": "markers", "x": x, "y": digits(stream.y[rows], 4), "name": "true",
         "marker": {"color": TRUTH, "size": 5}, "hovertemplate": "%{y:.1f} MW"},
    ]  # fmt: skip
    marked = events(stream, us)
    return chart(data, "", "demand, MW", f"Predictions of a week, their {band}s, and the true demand",
                 hovermode="x unified", xaxis={"title": {"text": ""}, "range": [x[0], x[-1]]}, **marked)  # fmt: skip


def events(stream: Demand, us: Score) -> dict[str, list[Part]]:
    """The failure of the sensor as an area, the change and its detection as lines, each with its name."""
    x, (first, after), row = times(stream), stream.outage, noticed(stream, us)
    shapes: list[Part] = [
        {"type": "rect", "xref": "x", "yref": "paper", "x0": x[first], "x1": x[after], "y0": 0, "y1": 1,
         "fillcolor": OUTAGE, "line": {"width": 0}, "layer": "below"},
        line_at(x[stream.change], "dash"),
    ]  # fmt: skip
    names = {x[first]: "thermometer fails", x[stream.change]: "habits change"}
    if row is not None:
        shapes.append(line_at(x[row], "solid"))
        names[x[stream.change]] += f", noticed {row - stream.change} h later"
    labels: list[Part] = [  # one above the other and to different sides, so that there is room on a phone
        {"x": moment, "xref": "x", "y": 1, "yref": "paper", "yshift": 14 * k, "text": name, "showarrow": False,
         "xanchor": ("left", "right")[k], "yanchor": "bottom", "font": {"size": 11}}
        for k, (moment, name) in enumerate(names.items())
    ]  # fmt: skip
    return {"shapes": shapes, "annotations": labels}


def line_at(moment: str, dash: str) -> Part:
    return {"type": "line", "xref": "x", "yref": "paper", "x0": moment, "x1": moment, "y0": 0, "y1": 1,
            "line": {"color": CHANGE, "width": 1.5, "dash": dash}}  # fmt: skip


def times(stream: Demand) -> list[str]:
    """The hours of the rows, as plotly.js reads them."""
    moments: list[str] = stream.columns["time"].astype(str).tolist()
    return moments


def sample(stream: Demand) -> list[list[str]]:
    """The first rows, and the first without a temperature."""
    shown = [*range(SHOWN_CELLS - 1), stream.outage[0]]
    values = [stream.columns["time"].astype(str), *list(stream.columns.values())[1:], stream.y]
    return [["missing" if v[k] is None or v[k] != v[k] else str(v[k]).replace("T", " ") for v in values] for k in shown]
