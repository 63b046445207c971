"""The HTML report of a run. Nothing in it depends on the clock."""

import os
from collections.abc import Mapping, Sequence

import numpy as np

from omkl.estimators.explaining import Importance
from omkl.persist import write_atomically
from omkl.report.charts import Choice
from omkl.report.render import render
from omkl.stream.detail_charts import importance_charts, moment, with_times
from omkl.stream.details import mean_losses
from omkl.stream.display import leading_weights
from omkl.stream.error_charts import percent
from omkl.stream.explaining import importance_of
from omkl.stream.history import History
from omkl.stream.model import StreamModel
from omkl.stream.ranking import LabelErrors
from omkl.stream.run import Outcome, RunSummary
from omkl.stream.run_charts import classification_charts, regression_charts
from omkl.stream.weight_charts import weight_charts

SHOWN_KEYS = 50


def write(outcome: Outcome, path: str | os.PathLike[str]) -> None:
    """Write the report of a run."""
    write_atomically(path, page(outcome).encode())


def page(outcome: Outcome) -> str:
    """The report as one HTML file that opens without a network."""
    s, history, model = outcome.summary, outcome.history, outcome.model
    figures: dict[str, list[Choice]] = {}
    if history is not None:
        regression = history.task == "regression"
        figures = regression_charts(history, s["target"]) if regression else classification_charts(history)
        figures["weights"] = weight_charts(model, history, s["rows"])
        figures["importance"] = importance_charts(importance(model), history, s["rows"])
        figures = {name: choices for name, choices in figures.items() if choices}
        figures = with_times(figures, history, time_column(model))
    leading = [f"{name} ({weight:.0%})" for name, weight in leading_weights(s, model.weights())]
    return render(
        "omkl/stream", "run.html.j2", figures, s=s, cards=cards(s), leading=leading, data=sources(outcome.data),
        timed=history is not None and history.details.time_axis() is not None, time=time_column(model),
        notices=outcome.notices, stopped=outcome.stopped, figures=list(figures),
        labels=label_rows(s.get("per_label", {})), changes=changes(outcome), worst=worst_rows(history),
        keys=[] if history is None else key_rows(history), by=model.preparer.by,
        coverages=[percent(float(coverage)) for coverage in s.get("coverages", {})],
        sampled=0 if history is None else len(history.sample.rows),
    )  # fmt: skip


def importance(model: StreamModel) -> Importance:
    """Of the columns, or nothing where the model cannot say."""
    try:
        return importance_of(model)
    except (ValueError, ArithmeticError):  # a learner that knows nothing about its inputs, or a model that diverged
        return {}


def time_column(model: StreamModel) -> str:
    """The first column of timestamps."""
    return next((name for name, column in model.encoder.columns.items() if column.kind == "time"), "")


def changes(outcome: Outcome) -> list[str]:
    """The changes of the stream, and what changed as far as that is known."""
    reasons = [] if outcome.history is None else outcome.history.details.changes()
    return reasons or [f"near row {row:,}: the error rose" for row in outcome.summary["changes"]]


def worst_rows(history: History | None) -> list[list[str]]:
    """The cells of a table: the rows whose predictions were worst."""
    if history is None:
        return []
    axis = history.details.time_axis()
    out = []
    for row in history.details.worst:
        when = [] if axis is None else [moment(float(np.interp(row.row, *axis)))]
        share = (
            f"{row.loss:.4g}" if history.task == "regression" else f"{abs(row.loss):.2%}"
        )  # minus a probability, which may be 0
        out.append([f"{row.row:,}", *when, shown(row.y_true), shown(row.y_pred), share])
    return out


def shown(value: float | str | None) -> str:
    """A target in a table."""
    return f"{value:.5g}" if isinstance(value, float) else str(value)


def key_rows(history: History) -> list[list[str]]:
    """The cells of a table: the keys with the largest errors."""
    number = history.task == "regression"
    return [[key, f"{rows:,}", f"{np.sqrt(loss):.4g}" if number else f"{loss:.2%}"]
            for key, rows, loss in mean_losses(history.details.keys, SHOWN_KEYS)]  # fmt: skip


def label_rows(per_label: Mapping[str, LabelErrors]) -> list[list[str]]:
    """The cells of a table: how well each label is recognised; without areas if there are no probabilities."""
    areas = any(errors["auc"] is not None for errors in per_label.values())
    out = []
    for label, errors in per_label.items():
        values = (errors["precision"], errors["recall"], *([errors["auc"]] if areas else []))
        out.append([label, f"{errors['rows']:,}", *("none" if value is None else f"{value:.3f}" for value in values)])
    return out


def sources(data: Sequence[str]) -> str:
    """The names of the data files.

    >>> sources(["days/1.csv", "-"])
    '1.csv, standard input'
    """
    return ", ".join("standard input" if path == "-" else os.path.basename(path) for path in data)


def cards(s: RunSummary) -> list[tuple[str, str]]:
    """The main results: numbers, and what they are."""
    out = [(f"{s['rows']:,}", f"rows read, {s['learned']:,} of them learned")]
    if not s.get("scored"):
        return [*out, ("no error", "because no target was seen")]
    if s["task"] == "regression":
        linear = f", of a linear model {s['linear_rmse']:.4g}" if "linear_rmse" in s else ""
        out.append((f"{s['rmse']:.4g}", f"RMSE; of the running mean {s['baseline_rmse']:.4g}{linear}"))
        if s["baseline_mse"] > 0:
            out.append((f"{1 - s['mse'] / s['baseline_mse']:.3f}", "R², relative to the running mean"))
        out.append((f"{s['mae']:.4g}", "mean absolute error"))
        for coverage, share in s.get("coverages", {}).items():
            out.append((f"{share:.1%}", f"of the targets inside the {percent(float(coverage))} interval"))
    else:
        linear = f", of a linear model {s['linear_accuracy']:.1%}" if "linear_accuracy" in s else ""
        simple = f"accuracy; of the most frequent label {s['baseline_accuracy']:.1%}"
        out.append((f"{s['accuracy']:.1%}", simple + linear))
        if "log_loss" in s:
            out.append((f"{s['log_loss']:.3g}", "log-loss"))
        if "auc" in s:
            out.append((f"{s['auc']:.3f}", "area under the ROC curve, mean over the labels"))
    return out
