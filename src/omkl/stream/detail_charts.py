"""Charts of what a model has learned, the ROC curves of labels, and times in place of row numbers."""

from html import escape

import numpy as np

from omkl.arrays import Matrix, Vector
from omkl.estimators.explaining import Importance
from omkl.report.charts import Chart, Choice, Part, chart, choice, digits
from omkl.stream.error_charts import BASELINE, COVERAGE_COLOURS, MODEL, change_lines, line
from omkl.stream.history import History

SHOWN_BARS, SHOWN_LINES, SHOWN_LABELS = 15, 5, 5
MAX_NAME = 22  # characters of a column in a chart
ROC_POINTS = 120


def short(name: str) -> str:
    """A name that fits beside a chart, escaped."""
    return escape(name if len(name) <= MAX_NAME else name[: MAX_NAME - 1] + "…")


def importance_charts(now: Importance, history: History, rows: int) -> list[Choice]:
    """The importance of columns: after the last row, and over time."""
    if not now or not any(now.values()):
        return []
    shown = list(now.items())[:SHOWN_BARS]
    names = [short(str(name)) for name, _ in shown]
    bars = {
        "type": "bar", "orientation": "h", "x": digits(value for _, value in shown), "y": names, "name": "importance",
        "marker": {"color": MODEL}, "hovertemplate": "%{y}<br>%{x}<extra></extra>",
    }  # fmt: skip
    about = f"Importance of the columns after the last row; the largest is that of {shown[0][0]}"
    axis = {"type": "category", "autorange": "reversed", "title": {"text": ""}, "gridcolor": "rgba(0,0,0,0)"}
    title = {"text": "importance"}
    made = chart([bars], "", "", about, yaxis=axis, xaxis={"title": title, "rangemode": "tozero"})
    out = [choice("now", made)]
    moments = [*((row, found) for row, found in history.details.importance if row < rows), (rows, now)]
    if len(moments) > 2:
        at = [row for row, _ in moments]
        table = np.array([[found.get(str(name), np.nan) for name, _ in shown] for _, found in moments[:-1]])
        table = np.vstack((table, [value for _, value in shown]))
        leading = sorted(range(len(shown)), key=lambda k: -float(np.nanmax(table[:, k])))[:SHOWN_LINES]
        data = [
            line(at, digits(table[:, k]), str(shown[k][0])[:MAX_NAME], COVERAGE_COLOURS[place], "row %{x}<br>%{y}")
            for place, k in enumerate(sorted(leading))
        ]
        data += change_lines(history, float(np.nanmax(table)))
        made = chart(data, "row", "importance", "Importance of the leading columns over time", hovermode="x unified",
                     yaxis={"title": {"text": "importance"}, "rangemode": "tozero"})  # fmt: skip
        out.insert(0, choice("over time", made))
    return out


def roc_curves(history: History) -> list[Choice]:
    """Of each label against the others: the share of its rows that are found against that of the others mistaken."""
    labels = sorted(history.places, key=lambda label: -int(history.confusion[history.places[label]].sum()))
    if len(labels) == 2:
        labels = labels[1:]  # of the rarer one; the curve of the other is its mirror image
    data: list[Part] = []
    for label, colour in zip(labels[:SHOWN_LABELS], COVERAGE_COLOURS, strict=False):
        curve = roc(history.ranks[history.places[label]])
        if curve is not None:
            hover = "of other rows %{x:.1%}<br>of its rows %{y:.1%}"
            data.append(line(digits(curve[0], 4), digits(curve[1], 4), label[:MAX_NAME], colour, hover))
    if not data:
        return []
    data.append(line([0, 1], [0, 1], "by chance", BASELINE, "", dash="dash", hoverinfo="skip"))
    share = {"tickformat": ".0%", "range": [-0.02, 1.03]}
    about = (
        f"ROC curves of {len(data) - 1} labels: the share of rows found against the share of others mistaken for them"
    )
    return [choice("all rows", chart(
        data, "", "", about, xaxis={"title": {"text": "other rows mistaken for it"}, **share},
        yaxis={"title": {"text": "rows of the label found"}, **share},
    ))]  # fmt: skip


def roc(counts: Matrix) -> tuple[Vector, Vector] | None:
    """(share of other rows, share of its rows) above each probability; None where one of the two has no rows."""
    found = np.cumsum(counts[:, ::-1], axis=1)
    if not found[:, -1].all():
        return None
    shares = np.hstack((np.zeros((2, 1)), found / found[:, -1:]))
    changes = np.append(True, np.diff(shares).any(axis=0))
    shares = shares[:, changes]
    some = np.unique(np.linspace(0, shares.shape[1] - 1, ROC_POINTS).round().astype(int))
    return shares[0, some], shares[1, some]


# Times


def with_times(charts: dict[str, list[Choice]], history: History, column: str) -> dict[str, list[Choice]]:
    """The charts with the times of this column in place of row numbers, where there are any that increase."""
    axis = history.details.time_axis()
    if axis is None:
        return charts
    return {
        name: [choice(each["name"], timed(each["chart"], *axis, column)) for each in choices]
        for name, choices in charts.items()
    }


def moment(days: float, fine: bool = True) -> str:
    """A day since 1970 as a date, or a finer one with the time of the day.

    >>> moment(0.5), moment(365.0, fine=False)
    ('1970-01-01 12:00', '1971-01-01')
    """
    found = np.datetime64("1970-01-01", "s") + np.timedelta64(round(86400 * days), "s")
    return str(found)[:16].replace("T", " ") if fine else str(found)[:10]


def timed(made: Chart, rows: Vector, days: Vector, column: str) -> Chart:
    """A chart over row numbers as one over times; others are returned as they are."""
    layout = dict(made["layout"])
    axis: Part = layout["xaxis"]  # type: ignore[assignment]  # of every chart
    if axis.get("title") != {"text": "row"}:
        return made
    fine = (days[-1] - days[0]) / max(len(rows), 2) < 1.0

    def when(row: float | None) -> str | None:
        return None if row is None else moment(float(np.interp(row, rows, days)), fine)

    data = []
    for trace in made["data"]:
        x: list[float | None] = trace["x"]  # type: ignore[assignment]  # row numbers
        hover = str(trace.get("hovertemplate", ""))
        texts = {"hovertemplate": hover.replace("row %{x}", "%{x}")} if hover else {}
        data.append({**trace, "x": [when(row) for row in x], **texts})
    layout["xaxis"] = {**axis, "title": {"text": escape(column)}, "type": "date"}
    return {"data": data, "layout": layout, "about": made["about"]}
