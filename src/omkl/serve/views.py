"""What there is to see of a model: for its description, the dashboard and the metrics."""

import time
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from omkl.arrays import Matrix
from omkl.encoder.table import Batch
from omkl.serve import answers
from omkl.serve.answers import answers_of
from omkl.serve.bodies import Row, batch_of, batch_of_table, finite
from omkl.serve.limits import invalid
from omkl.serve.model import ServedModel
from omkl.stream.display import kernel_name
from omkl.stream.explaining import explain_rows, importance_of
from omkl.stream.loaded import TableModel
from omkl.stream.predictions import DEFAULT_COVERAGE

SHOWN_KERNELS, SHOWN_INPUTS, SHOWN_ROWS, SHOWN_KEYS = 8, 12, 12, 1000
COVERED = 200  # rows of which the share inside their intervals is drawn: of a few it says nothing
JUDGED_ROWS = 16  # that the model keeps, by which the importance of inputs is judged
View = dict[str, Any]


class Want(NamedTuple):
    """What a request for predictions asks for."""

    coverages: tuple[float, ...] = ()
    probabilities: bool = False
    explain: bool = False


def predict(served: ServedModel, rows: list[Row], table: pa.Table | None, want: Want) -> list[Row]:
    """Predictions for rows, with what was asked for."""
    model = served.model
    if want.coverages and model.task == "classification":
        raise invalid(f"coverage is for numbers, and {model.target!r} holds labels")
    if want.probabilities and (model.task == "regression" or model.preparer.by is not None):
        what = "models per key do not predict" if model.preparer.by else f"numbers such as {model.target!r} do not have"
        raise invalid(f"probabilities are for labels, which {what}")
    batch = batch_of(rows, 1) if table is None else batch_of_table(table, 1)
    preparer = model.preparer
    if preparer.key is not None and preparer.key not in batch.columns:  # nothing waits here
        batch.columns[preparer.key] = pa.nulls(len(batch.rows), pa.string())
    found = served.predict(batch, want.coverages or (DEFAULT_COVERAGE,))
    out = answers_of(found, want.probabilities)
    if preparer.by is not None and want.coverages and found.lower is None:
        _add_intervals(served, out, batch.columns, want.coverages)
    if want.explain:
        if len(batch.rows) > answers.MAX_EXPLAINED:
            raise invalid(f"at most {answers.MAX_EXPLAINED} rows of a request can be explained")
        for k, answer in enumerate(out):
            _add_contributions(
                served, answer, Batch(batch.rows[:1], {n: a[k : k + 1] for n, a in batch.columns.items()})
            )
    for answer in out:
        del answer["row"]
    return out


def _add_contributions(served: ServedModel, answer: Row, row: Batch) -> None:
    """What each column contributes to a number, or to the probability of the label that is predicted."""
    with served.turns:  # of each row, so that learning need not wait for many
        try:
            found = explain_rows(served.model, row)
        except ValueError as error:
            raise invalid(str(error)) from None
    base, parts = found.base[0], found.contributions[0]
    if found.outputs:
        place = found.place(0, answer["prediction"])
        base, parts = base[place], parts[:, place]
    answer["base"] = finite(float(base))
    answer["contributions"] = {str(name): finite(float(v)) for name, v in zip(found.columns, parts, strict=True)}


def _add_intervals(
    served: ServedModel, out: list[Row], columns: dict[str, pa.Array], shares: tuple[float, ...]
) -> None:
    with served.turns:
        try:
            ends = np.asarray(TableModel(served.model).predict_interval(pa.table(columns), list(shares)))
        except NotImplementedError as error:
            raise invalid(str(error)) from None
    for answer, pair in zip(out, ends, strict=True):
        found = {str(share): [finite(low), finite(high)] for share, low, high in zip(shares, *pair, strict=True)}
        if len(shares) == 1:
            answer["interval"] = next(iter(found.values()))
        else:
            answer["intervals"] = found


class Importance:
    """The importance of inputs by the last rows, judged anew no more often than every few seconds."""

    def __init__(self, served: ServedModel, seconds: float = 5.0) -> None:
        self._served, self._seconds = served, seconds
        self._next = 0.0
        self._found: dict[str, float] = {}

    def get(self) -> dict[str, float]:
        """By column, how much it accounts for in the predictions for rows that the model keeps."""
        served = self._served
        if time.monotonic() < self._next or served.model.learned == 0:
            return self._found
        try:
            with served.turns:
                found = importance_of(served.model, JUDGED_ROWS)
        except (ValueError, ArithmeticError):  # a model without rows to compare with, or one that diverged
            found = {}
        self._found = {str(name): value for name, value in list(found.items())[:SHOWN_INPUTS]}
        self._next = time.monotonic() + self._seconds
        return self._found


def view(served: ServedModel, queue: tuple[int, int], rollbacks: int, importance: Importance | None) -> View:
    """All about a model, or about one worker's part of it, at one moment."""
    judged = importance.get() if importance is not None else {}
    store = served.store
    with served.turns:
        model, history, learner = served.model, served.history, served.model.learner
        weights = model.weights()
        best = np.argsort(-weights, kind="stable")[:SHOWN_KERNELS]
        out: View = {
            "target": model.target, "task": model.task, "learner": model.algorithm, "by": model.preparer.by,
            "key": model.preparer.key, "parameters": model.parameters, "horizon": model.horizon,
            "rows": served.rows, "learned": model.learned, "waiting": len(model.waiting),
            "pending": model.waiting.capacity, "keys": None if learner is None else learner.n_keys,
            "columns": {name: column.kind for name, column in model.encoder.columns.items()},
            "labels": list(learner.labels) if learner is not None and model.task == "classification" else [],
            "kernels": [[kernel_name(str(model.kernels[k])), float(weights[k])] for k in best],
            "width": 1 if history is None else history.width,
            "bins": [] if history is None else history.bins.tolist(),
            "changes": [] if history is None else history.change_points(),
            "notices": list(served.notices),
        }  # fmt: skip
    out |= {
        "importance": judged, "last": [list(pair) for pair in list(served.recent)[-SHOWN_ROWS:]],
        "queue": queue[0], "queue_rows": queue[1], "log_bytes": store.bytes, "disk_bytes": served.disk,
        "checkpoints": served.checkpoints, "failed_checkpoints": served.failed_checkpoints, "rollbacks": rollbacks,
        "replayed": served.replayed,
    }  # fmt: skip
    return out


SUMS = ("rows", "learned", "waiting", "pending", "queue", "queue_rows", "log_bytes", "disk_bytes", "checkpoints",
        "failed_checkpoints", "rollbacks", "replayed")  # fmt: skip


def merged(views: list[View]) -> View:
    """The views of all workers as one; errors are pooled over rows with the same number within their worker."""
    if len(views) == 1:
        return views[0]
    out = dict(next((view for view in views if view["task"]), views[0]))
    for name in SUMS:
        out[name] = sum(view[name] for view in views)
    out["keys"] = sum(view["keys"] or 0 for view in views)
    out["columns"] = {name: kind for view in views for name, kind in view["columns"].items()}
    out["labels"] = sorted({label for view in views for label in view["labels"]})
    out["width"] = max(view["width"] for view in views)
    tables = [_coarser(np.array(view["bins"]), view["width"], out["width"]) for view in views if view["bins"]]
    length = max((len(table) for table in tables), default=0)
    padded = [np.vstack((table, np.zeros((length - len(table), table.shape[1])))) for table in tables]
    out["bins"] = np.sum(padded, axis=0).tolist() if padded else []
    out["changes"] = sorted(row for view in views for row in view["changes"])
    out["notices"] = list(dict.fromkeys(text for view in views for text in view["notices"]))
    names = {name for view in views for name in view["importance"]}
    out["importance"] = {name: float(np.mean([view["importance"].get(name, 0.0) for view in views])) for name in names}
    out["last"] = [
        pair for pairs in zip(*(view["last"][-SHOWN_ROWS:] for view in views), strict=False) for pair in pairs
    ]
    return out


def _coarser(bins: Matrix, width: int, wanted: int) -> Matrix:
    """The same sums in bins of more rows."""
    many = wanted // width
    padded = np.vstack((bins, np.zeros((-len(bins) % many, bins.shape[1]))))
    out: Matrix = padded.reshape(-1, many, bins.shape[1]).sum(axis=1)
    return out


def errors(found: View) -> View:
    """Errors over all rows, as JSON: those of the model and of its baselines, and the coverage."""
    bins = np.array(found["bins"])
    rows, loss, baseline, linear, absolute, log_loss, covered, n = bins.sum(axis=0) if len(bins) else np.zeros(8)
    if not rows:
        return {"scored": 0}
    number = found["task"] == "regression"
    with_linear = found["horizon"] == 1
    if number:
        out = {"rmse": np.sqrt(loss / rows), "mae": absolute / rows, "baseline_rmse": np.sqrt(baseline / rows)}
        out |= {"linear_rmse": np.sqrt(linear / rows)} if with_linear else {}
        out |= {"coverage": covered / n} if n else {}
    else:
        out = {"accuracy": 1 - loss / rows, "baseline_accuracy": 1 - baseline / rows}
        out |= {"linear_accuracy": 1 - linear / rows} if with_linear else {}
        out |= {"log_loss": log_loss / rows} if log_loss else {}
    return {"scored": int(rows)} | {name: finite(value) for name, value in out.items()}


def curves(found: View) -> View:
    """Errors over time, for the dashboard: RMSE, or the share of wrong labels, of each bin of rows."""
    bins = np.array(found["bins"]).reshape(-1, 8)
    rows = np.maximum(bins[:, 0], 1)
    number = found["task"] == "regression"

    def curve(column: int) -> list[float | None]:
        mean = bins[:, column] / rows
        return [finite(value) for value in (np.sqrt(mean) if number else mean)]

    out: View = {"ends": np.cumsum(bins[:, 0]).astype(int).tolist(), "error": curve(1), "baseline": curve(2)}
    out["linear"] = curve(3) if found["horizon"] == 1 else []
    covered = _latest(bins[:, 6:8], -(-COVERED // found["width"]))
    judged = covered[:, 1] > 0
    out["coverage"] = [finite(c / n) if ok else None for (c, n), ok in zip(covered, judged, strict=True)]
    return out if judged.any() else out | {"coverage": []}


def _latest(bins: Matrix, many: int) -> Matrix:
    """The sums of so many bins, up to each of them."""
    sums = np.cumsum(np.vstack((np.zeros((many, bins.shape[1])), bins)), axis=0)
    out: Matrix = sums[many:] - sums[:-many]
    return out
