"""Charts of a run's predictions: of numbers with their intervals and residuals, and of labels."""

from collections.abc import Callable, Sequence
from html import escape

import numpy as np

from omkl.arrays import Matrix, Vector
from omkl.estimators.rows import in_order
from omkl.report.charts import Chart, Choice, Part, chart, choice, digits
from omkl.stream.detail_charts import roc_curves
from omkl.stream.error_charts import BASELINE, MODEL, Curve, coverage_over_time, line, over_time, percent
from omkl.stream.history import History

TRUTH, BAND = "#d55e00", "rgba(86,180,233,0.3)"
MAX_NAME = 24  # characters of a label in a chart


# Numbers


def regression_charts(history: History, target: str) -> dict[str, list[Choice]]:
    """The charts of a target that is a number, by the name of their figure."""
    charts = {
        "error": over_time(
            history, "RMSE", lambda segments, so_far: np.sqrt(segments.mean("loss", so_far=so_far)),
            baselines(history, "running mean", np.sqrt),
        ),
        "predictions": all_predictions(history, target),
        "residuals": residuals(history.sample.rows),
    }  # fmt: skip
    counts = history.bins.sum(axis=0)
    known = [c for c in history.coverages if counts[history.columns.index(f"with_interval {c}")]]
    if known:
        charts["coverage"] = coverage_over_time(history, known)
    return charts


def baselines(history: History, name: str, of: Callable[[Vector], Vector]) -> dict[str, Curve]:
    """The errors of the baselines over time, as `of` shows their mean losses; the simplest is called `name`."""
    out: dict[str, Curve] = {name: lambda segments, so_far: of(segments.mean("baseline", so_far=so_far))}
    if history.linear is not None:
        out["linear model"] = lambda segments, so_far: of(segments.mean("linear", so_far=so_far))
    return out


def all_predictions(history: History, target: str) -> list[Choice]:
    """By row, and true against predicted values; these first where rows have no times."""
    sample = history.sample.rows
    by_row = [
        choice(title, predictions(rows, target, joined, history.coverages))
        for title, rows, joined in (
            (f"the last {len(history.last):,} rows", history.last, True),
            (f"{len(sample):,} rows from the whole stream", sample, False),
        )
        if len(rows)
    ]
    if not len(sample):
        return by_row
    against = [choice(f"{len(sample):,} rows, true against predicted", true_against_predicted(sample, target))]
    return against + by_row if history.details.time_axis() is None else by_row + against


def true_against_predicted(rows: Matrix, target: str) -> Chart:
    """A dot for each row, and the line on which exact predictions are."""
    at, y_true, y_pred = rows[:, 0].astype(int).tolist(), rows[:, 1], rows[:, 2]
    ends = digits((rows[:, 1:3].min(), rows[:, 1:3].max()), 5)
    dots = {"type": "scatter", "mode": "markers", "x": digits(y_pred, 5), "y": digits(y_true, 5), "customdata": at,
            "name": "row", "marker": {"color": MODEL, "size": 4, "opacity": 0.6},
            "hovertemplate": "row %{customdata}<br>predicted %{x}<br>true %{y}<extra></extra>"}  # fmt: skip
    exact = line(ends, ends, "exact", BASELINE, "", dash="dash", hoverinfo="skip")
    about = f"True against predicted values of {len(at)} rows"
    return chart([dots, exact], "predicted", escape(target), about)


def predictions(rows: Matrix, target: str, joined: bool, coverages: Sequence[float]) -> Chart:
    """Predictions with their intervals and the true values, by row."""
    at = rows[:, 0].astype(int).tolist()
    y_true, y_pred, *ends = (digits(column, 5) for column in rows[:, 1:].T)
    data: list[Part] = []
    for coverage, lower, upper in zip(coverages, ends[0::2], ends[1::2], strict=True):
        if any(v is not None for v in lower):
            edge = {"mode": "lines", "line": {"width": 0, "color": MODEL}, "hoverinfo": "skip"}
            data += [
                {"type": "scatter", "x": at, "y": lower, "showlegend": False, **edge},
                {"type": "scatter", "x": at, "y": upper, "name": f"{percent(coverage)} interval", "fill": "tonexty",
                 "fillcolor": BAND, **edge},
            ]  # fmt: skip
    hover = "row %{x}<br>%{y:.5g}"
    if joined:
        data.append(line(at, y_pred, "predicted", MODEL, hover))
    else:
        data.append({"type": "scatter", "mode": "markers", "x": at, "y": y_pred, "name": "predicted",
                     "hovertemplate": hover, "marker": {"color": MODEL, "size": 4}})  # fmt: skip
    data.append({"type": "scatter", "mode": "markers", "x": at, "y": y_true, "name": "true", "hovertemplate": hover,
                 "marker": {"color": TRUTH, "size": 5 if joined else 4, "opacity": 0.8}})  # fmt: skip
    return chart(data, "row", escape(target), f"Predicted and true values of {len(at)} rows", hovermode="x")


def residuals(rows: Matrix) -> list[Choice]:
    """True minus predicted values of the sampled rows: their histogram, against the prediction, over time."""
    if len(rows) < 2:
        return []
    residual = rows[:, 1] - rows[:, 2]
    low, high = np.quantile(residual, [0.005, 0.995])
    margin = max(0.1 * (high - low), 1e-12 * max(1.0, float(np.abs(residual).max())))
    bins = min(60, max(8, len(residual) // 10))
    counts, edges = np.histogram(residual, bins=bins, range=(low - margin, high + margin))
    outside = len(residual) - int(counts.sum())
    bars = {"type": "bar", "x": digits((edges[:-1] + edges[1:]) / 2, 4), "y": counts.tolist(), "name": "rows",
            "marker": {"color": MODEL}, "hovertemplate": "about %{x}<br>%{y} rows<extra></extra>"}  # fmt: skip
    title = "as a histogram" + (f" ({outside} rows are outside)" if outside else "")
    out = [choice(title, chart([bars], "true minus predicted", "rows", "Histogram of the residuals", bargap=0.03))]
    for title, x, axis in (("against the prediction", rows[:, 2], "prediction"), ("over time", rows[:, 0], "row")):
        dots = {"type": "scatter", "mode": "markers", "x": digits(x, 6), "y": digits(residual, 4),
                "marker": {"color": MODEL, "size": 4, "opacity": 0.6}, "name": "residual",
                "hovertemplate": f"{axis} %{{x}}<br>residual %{{y}}<extra></extra>"}  # fmt: skip
        out.append(choice(title, chart([dots], axis, "true minus predicted", f"Residuals {title}")))
    return out


# Labels


def classification_charts(history: History) -> dict[str, list[Choice]]:
    """The charts of a target that is a label, by the name of their figure."""
    charts = {
        "error": over_time(
            history, "accuracy", lambda segments, so_far: 1 - segments.mean("loss", so_far=so_far),
            baselines(history, "most frequent label", lambda loss: 1 - loss), percent=True,
        ),
        "confusion": confusion_matrix(history),
        "roc": roc_curves(history),
        "calibration": calibration_curve(history),
    }  # fmt: skip
    if history.bins[:, history.columns.index("log_loss")].any():
        charts["log_loss"] = over_time(
            history, "log-loss", lambda segments, so_far: segments.mean("log_loss", so_far=so_far)
        )
    return charts


def confusion_matrix(history: History) -> list[Choice]:
    """How often each label was predicted where each label was true."""
    if not history.places:
        return []
    labels = [str(label) for label in in_order(set(history.places))]
    places = [history.places[label] for label in labels]
    if history.confusion[-1].any() or history.confusion[:, -1].any():
        labels, places = [*labels, "other labels"], [*places, -1]
    counts = history.confusion[np.ix_(places, places)]
    share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    names = [escape(label if len(label) <= MAX_NAME else label[: MAX_NAME - 1] + "…") for label in labels]
    table = {
        "type": "heatmap", "x": names, "y": names, "z": [digits(row) for row in share], "customdata": counts.tolist(),
        "colorscale": "Viridis", "zmin": 0, "zmax": 1, "colorbar": {"thickness": 12, "tickformat": ".0%"},
        "hovertemplate": "true %{y}<br>predicted %{x}<br>%{z:.1%} (%{customdata} rows)<extra></extra>",
    }  # fmt: skip
    if len(labels) <= 10:
        table |= {"text": [[f"{value:.0%}" for value in row] for row in share], "texttemplate": "%{text}"}
    axes = {"xaxis": {"title": {"text": "predicted label"}, "type": "category", "gridcolor": "rgba(0,0,0,0)"},
            "yaxis": {"title": {"text": "true label"}, "type": "category", "autorange": "reversed",
                      "gridcolor": "rgba(0,0,0,0)"}}  # fmt: skip
    about = "Confusion matrix: of the rows of each true label, the share for which each label was predicted"
    return [choice("all rows", chart([table], "predicted label", "true label", about, **axes))]


def calibration_curve(history: History) -> list[Choice]:
    """How often the predicted label was correct, against its predicted probability."""
    rows, probability, correct = history.calibration[history.calibration[:, 0] > 0].T
    if not len(rows):
        return []
    dots = {
        "type": "scatter", "mode": "lines+markers", "x": digits(probability / rows, 4), "y": digits(correct / rows, 4),
        "customdata": rows.astype(int).tolist(), "name": "omkl", "line": {"color": MODEL, "width": 2},
        "marker": {"size": digits(6 + 12 * np.sqrt(rows / rows.max()))},
        "hovertemplate": "predicted probability %{x:.1%}<br>correct in %{y:.1%}<br>%{customdata} rows<extra></extra>",
    }  # fmt: skip
    diagonal = line([0, 1], [0, 1], "perfectly calibrated", BASELINE, "", dash="dash", hoverinfo="skip")
    share = {"tickformat": ".0%", "range": [-0.02, 1.03]}
    about = "Calibration curve: the share of correct labels against their predicted probability"
    made = chart([dots, diagonal], "", "", about, xaxis={"title": {"text": "predicted probability"}, **share},
                 yaxis={"title": {"text": "share of correct labels"}, **share})  # fmt: skip
    return [choice("all rows", made)]
