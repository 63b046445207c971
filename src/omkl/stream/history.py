"""The history of a run: errors over time, a sample of rows, kernel weights; of bounded size."""

from typing import Required, TypedDict

import numpy as np

from omkl.algorithms.base import Task
from omkl.algorithms.invariants import LARGEST_COUNT
from omkl.arrays import Array, Index, Matrix, Vector
from omkl.persist import Arrays, Json, claims, demand, float_array, require_finite
from omkl.stream import ranking
from omkl.stream.baselines import most_frequent, running_means
from omkl.stream.details import Details
from omkl.stream.linear import LinearModel
from omkl.stream.model import StreamModel
from omkl.stream.predictions import (
    DEFAULT_COVERAGE,
    Ends,
    Labels,
    LateTargets,
    Predictions,
    Targets,
    as_labels,
    as_numbers,
)
from omkl.stream.ranking import LabelErrors
from omkl.stream.sample import RowSample
from omkl.stream.targets import known

BINS = 256
SAMPLED = 2048
LAST = 300
SNAPSHOTS = 128
FIRST_STEP = 16  # rows between the first snapshots
MAX_LABELS = 24  # with counts of their own in the confusion matrix; the others share a row and a column
CALIBRATION_BINS = 10  # of [0, 1], in which predicted probabilities are compared with how often they were right
# AFTER bins, each with more than JUMP times the mean error of the BEFORE bins before them, are a change point
JUMP, BEFORE, AFTER = 2.0, 16, 4
ARRAYS = {"bins": "bins", "ends": "ends", "snapshots": "snapshots", "targets": "targets", "confusion": "confusion",
          "calibration": "confidence", "ranks": "ranks"}  # of a history, and their names in files  # fmt: skip


class Errors(TypedDict, total=False):
    """Errors over a whole run, of the model and of its baselines."""

    scored: Required[int]  # rows with a target; the errors are there if there are any
    mse: float  # of numbers
    rmse: float
    mae: float
    baseline_mse: float
    baseline_rmse: float
    linear_mse: float
    linear_rmse: float
    coverage: float  # where there is one coverage
    coverages: dict[str, float]  # by the nominal coverage, the share of targets inside the interval
    accuracy: float  # of labels
    log_loss: float
    auc: float  # mean over the labels, each against the others
    baseline_accuracy: float
    linear_accuracy: float
    per_label: dict[str, LabelErrors]


class History:
    """The course of a run.

    Errors are summed in at most BINS bins of equally many rows, whose width doubles when the run outgrows them. For
    labels an error is 0 or 1, and the baseline is the most frequent label so far. As an Observer it stores the kernel
    weights at no more than SNAPSHOTS rows, at equal distances that double likewise.

    Parameters
    ----------
    task
        Whether targets are numbers or labels.
    coverages
        Of the intervals that predictions may have.
    linear
        A linear model that predicts the same rows, as a further baseline.
    """

    def __init__(
        self, task: Task, coverages: tuple[float, ...] = (DEFAULT_COVERAGE,), linear: LinearModel | None = None
    ) -> None:
        self.task, self.coverages, self.linear = task, coverages, linear
        inside = (name for coverage in coverages for name in (f"covered {coverage}", f"with_interval {coverage}"))
        self.columns = ("rows", "loss", "baseline", "linear", "absolute", "log_loss", *inside)
        self.width = 1  # rows in a bin
        self.bins: Matrix = np.zeros((0, len(self.columns)))
        self.ends: Index = np.zeros(0, dtype=np.int64)  # the last row of each bin
        self.scored = 0
        self.sample = RowSample(3 + 2 * len(coverages), SAMPLED)  # row, y_true, y_pred, lower and upper ends
        self.last: Matrix = np.empty((0, 3 + 2 * len(coverages)))
        self.step = self.due = FIRST_STEP
        self.snapshots: Matrix = np.empty((0, 1))  # row, the weight of each kernel
        self.changes: list[int] = []
        self._incumbent_start: int | None = None  # the round in which the experts in use began to learn
        self.targets = np.zeros(2)  # count and sum
        self.counts: dict[str, int] = {}
        self.places: dict[str, int] = {}
        self.confusion: Index = np.zeros((MAX_LABELS + 1, MAX_LABELS + 1), dtype=np.int64)  # true, predicted
        self.calibration: Matrix = np.zeros((CALIBRATION_BINS, 3))  # rows, sum of probabilities, correct rows
        self.ranks: Index = np.zeros((MAX_LABELS, 2, ranking.BINS), dtype=np.int64)  # rows by predicted probability
        self.details = Details()

    def update(self, predictions: Predictions, late: LateTargets) -> None:
        """Add what a piece has brought."""
        mask = known(predictions.y_true)
        if mask.any():
            self._score(predictions if mask.all() else predictions.where(mask))
        if late.y_true:
            n, number = len(late.y_true), self.task == "regression"
            y_true, y_pred = (np.array([*part, None], dtype=object)[:-1] for part in (late.y_true, late.y_pred))
            if number:
                y_true, y_pred = y_true.astype(float), y_pred.astype(float)
            rows = predictions.rows
            row = int(rows[-1]) if len(rows) else int(self.ends[-1]) if len(self.ends) else 0
            linear: Targets | None = None
            if self.linear is not None:
                linear = np.array([*late.linear, None], dtype=object)[:-1].astype(float if number else object)
            inside = np.array([self._inside(ends, y) for ends, y in zip(late.intervals, y_true, strict=True)])
            before = set(self.places)
            self._add_losses(np.full(n, row), y_pred, y_true, inside, np.array(late.true_probability), linear)
            if not number:
                labels = tuple(dict.fromkeys(label for row in late.probabilities for label in row))
                table = np.array([[row.get(label, 0.0) for label in labels] for row in late.probabilities])
                self._rank(labels, table, as_labels(y_true), before)
            self.scored += n

    def _score(self, p: Predictions) -> None:
        inside = np.zeros((len(p.rows), 2 * len(self.coverages)))
        if self.task == "regression":
            ends = np.full((len(p.rows), 2 * len(self.coverages)), np.nan)
            if p.lower is not None and p.upper is not None:
                y = as_numbers(p.y_true)[:, None]
                ends[:, 0::2], ends[:, 1::2] = p.lower, p.upper
                inside[:, 0::2], inside[:, 1::2] = (p.lower <= y) & (y <= p.upper), ~np.isnan(p.lower)
            table = np.column_stack((p.y_true, p.y_pred, ends))
            self.sample.add(p.rows, table)
            self.last = np.vstack((self.last, np.column_stack((p.rows, table))))[-LAST:]
        elif p.probability is not None:
            predicted = p.probability > 0  # there was a label to predict
            probability, correct = p.probability[predicted], (p.y_pred == p.y_true)[predicted]
            place = np.minimum((probability * CALIBRATION_BINS).astype(int), CALIBRATION_BINS - 1)
            # row after row, as addition depends on the order
            np.add.at(self.calibration, place, np.column_stack((np.ones(len(correct)), probability, correct)))
        before = set(self.places)
        losses = self._add_losses(p.rows, p.y_pred, p.y_true, inside, p.true_probability, p.linear)
        self.details.score(p, losses)
        if p.probabilities is not None:
            self._rank(p.labels, p.probabilities, as_labels(p.y_true), before)
        self.scored += len(p.rows)

    def _rank(self, labels: tuple[str, ...], probabilities: Matrix, y_true: Labels, before: set[str]) -> None:
        """Count rows by the probability of each label; `before` these rows some labels were known."""
        for label, k in self.places.items():
            predicted = probabilities[:, labels.index(label)] if label in labels else np.zeros(len(y_true))
            start = 0 if label in before else int(np.argmax(y_true == label))  # with the row that brings the label
            ranking.count(self.ranks[k], predicted[start:], (y_true == label)[start:])

    def _inside(self, ends: Ends, y: float | str) -> list[float]:
        """Of one row, for each coverage whether the target is inside its interval, and whether there is one."""
        found = [ends.get(coverage) for coverage in self.coverages]
        return [float(value) for pair in found for value in (
            pair is not None and not isinstance(y, str) and pair[0] <= y <= pair[1], pair is not None)]  # fmt: skip

    def _add_losses(
        self, rows: Index, y_pred: Targets, y_true: Targets, inside: Matrix, true_probability: Vector | None,
        linear: Targets | None,
    ) -> Vector:  # fmt: skip
        """Squared errors, or 1 for each label that is wrong."""
        n = len(y_pred)
        log_loss = linear_loss = np.zeros(n)
        if self.task == "regression":
            numbers = as_numbers(y_true)
            error = as_numbers(y_pred) - numbers
            loss, absolute = error * error, np.abs(error)
            baseline = (numbers - running_means(self.targets, numbers)) ** 2
            if linear is not None:
                linear_loss = (as_numbers(linear) - numbers) ** 2
        else:
            loss = absolute = (y_pred != y_true).astype(float)
            baseline = (most_frequent(self.counts, as_labels(y_true)) != y_true).astype(float)
            if linear is not None:
                linear_loss = (linear != y_true).astype(float)
            for label, truth in zip(y_pred, y_true, strict=True):
                place = self._place(truth)
                if label is not None:
                    self.confusion[place, self._place(label)] += 1
            if true_probability is not None:
                log_loss = -np.log(np.clip(true_probability, 1e-15, 1.0))
        self._bin(rows, np.column_stack((np.ones(n), loss, baseline, linear_loss, absolute, log_loss, inside)))
        return loss

    def _place(self, label: str) -> int:
        if label not in self.places and len(self.places) < MAX_LABELS:
            self.places[label] = len(self.places)
        return self.places.get(label, MAX_LABELS)

    def _bin(self, rows: Index, table: Matrix) -> None:
        at = self.scored
        while len(table):
            if at // self.width >= BINS:
                odd = np.zeros((len(self.bins) % 2, table.shape[1]))
                self.bins = self.bins[0::2] + np.vstack((self.bins[1::2], odd))
                self.ends = np.concatenate((self.ends[1::2], self.ends[len(self.ends) - len(odd) :]))
                self.width *= 2
                continue
            place, free = at // self.width, self.width - at % self.width
            if place == len(self.bins):
                self.bins = np.vstack((self.bins, np.zeros(table.shape[1])))
                self.ends = np.append(self.ends, 0)
            part, table = table[:free], table[free:]
            # row after row, as addition depends on the order
            self.bins[place] = np.cumsum(np.vstack((self.bins[place], part)), axis=0)[-1]
            self.ends[place], rows = rows[len(part) - 1], rows[free:]
            at += len(part)

    def observe(self, model: StreamModel, row: int) -> None:
        """Store the kernel weights before this row, and note whether other experts have taken over."""
        weights, incumbent = (np.empty(0), None) if model.learner is None else model.learner.observed()
        if len(weights):
            if incumbent is not None:
                # a challenger that has taken over began to learn when the stream seemed to change
                if self._incumbent_start not in (None, incumbent.start):
                    self.changes = [*self.changes, max(1, self.due - incumbent.age)][-BINS:]
                    self.details.note_change(model, self.changes[-1])
                self._incumbent_start = incumbent.start
            if self.snapshots.shape[1] == 1:
                self.snapshots = np.empty((0, 1 + len(weights)))
            self.snapshots = np.vstack((self.snapshots, [self.due, *weights]))
            while len(self.snapshots) > SNAPSHOTS:
                self.step *= 2
                self.snapshots = self.snapshots[self.snapshots[:, 0] % self.step == 0]
        self.details.observe(model, self.due, self.step)
        self.due = -(-row // self.step) * self.step

    # Results

    def summary(self) -> Errors:
        """Errors over the whole run, as JSON."""
        rows, loss, baseline, linear, absolute, log_loss, *inside = self.bins.sum(axis=0).tolist()
        if not rows:
            return {"scored": 0}
        out: Errors = {"scored": int(rows)}
        if self.task == "regression":
            out |= {"mse": loss / rows, "rmse": float(np.sqrt(loss / rows)), "mae": absolute / rows,
                    "baseline_mse": baseline / rows, "baseline_rmse": float(np.sqrt(baseline / rows))}  # fmt: skip
            if self.linear is not None:
                out |= {"linear_mse": linear / rows, "linear_rmse": float(np.sqrt(linear / rows))}
            pairs = zip(self.coverages, inside[0::2], inside[1::2], strict=True)
            coverages = {str(coverage): covered / n for coverage, covered, n in pairs if n}
            if len(coverages) == 1:
                out["coverage"] = next(iter(coverages.values()))
            if coverages:
                out["coverages"] = coverages
        else:
            out["accuracy"] = 1 - loss / rows
            if log_loss:  # models by key predict no probabilities
                out["log_loss"] = log_loss / rows
            out["baseline_accuracy"] = 1 - baseline / rows
            if self.linear is not None:
                out["linear_accuracy"] = 1 - linear / rows
            out["per_label"] = per_label = {label: self._label_errors(k) for label, k in self.places.items()}
            if areas := [errors["auc"] for errors in per_label.values() if errors["auc"] is not None]:
                out["auc"] = float(np.mean(areas))
        return out

    def _label_errors(self, k: int) -> LabelErrors:
        precision, recall = ranking.precision_recall(self.confusion, k)
        return {"rows": int(self.confusion[k].sum()), "precision": precision, "recall": recall,
                "auc": ranking.auc(self.ranks[k])}  # fmt: skip

    def change_points(self) -> list[int]:
        """Rows near which the stream seems to have changed."""
        mean = self.bins[:, 1] / np.maximum(self.bins[:, 0], 1)
        found: list[int] = []
        for k in range(BEFORE, len(mean) - AFTER + 1):
            risen = mean[k : k + AFTER].min() > JUMP * max(mean[k - BEFORE : k].mean(), 1e-300)
            if risen and (not found or k - found[-1] > BEFORE):
                found.append(k)
        return self.changes or [int(self.ends[k - 1]) + 1 for k in found]

    # Files

    def encode(self, arrays: Arrays) -> Json:
        """The JSON body of a history; its arrays are added to `arrays`."""
        for name, in_file in ARRAYS.items():
            arrays[f"history.{in_file}"] = getattr(self, name)
        # NaN where there is no interval
        arrays["history.sampled.rows"], arrays["history.last.rows"] = self.sample.rows, self.last
        linear = None if self.linear is None else self.linear.encode(arrays)
        return {"task": self.task, "coverages": list(self.coverages), "linear": linear,
                "width": self.width, "scored": self.scored, "stride": self.sample.stride,
                "step": self.step, "due": self.due, "changes": self.changes, "born": self._incumbent_start,
                "counts": list(self.counts.items()), "places": list(self.places),
                "details": self.details.encode()}  # fmt: skip

    @classmethod
    def decode(cls, body: Json, arrays: Arrays) -> "History":
        """The history that `encode` was called on."""
        claims.one_of(body["task"], ("regression", "classification"), "the task of the history")
        older = "coverages" not in body
        coverages = () if older else tuple(claims.coverage(value) for value in body["coverages"])
        demand(len(set(coverages)) == len(coverages), "a coverage comes twice")
        linear = body.get("linear")  # a run that began without this baseline has none
        self = cls(body["task"], (DEFAULT_COVERAGE,) if older else coverages,
                   None if linear is None else LinearModel.decode(body["task"], linear, arrays))  # fmt: skip
        if older:
            arrays = arrays | {"history.bins": with_linear(arrays["history.bins"])}
        for name, in_file in ARRAYS.items():
            fresh = getattr(self, name)
            stored = arrays.get("history.ranks", fresh) if name == "ranks" else arrays[f"history.{in_file}"]
            fixed = name not in ("bins", "ends", "snapshots")
            fits = stored.shape == fresh.shape if fixed else stored.shape[1:] == fresh.shape[1:] or name == "snapshots"
            demand(stored.ndim == fresh.ndim and stored.dtype == fresh.dtype and fits, "the history does not fit")
            require_finite(stored, f"history.{in_file}")
            setattr(self, name, stored)
        self.width, self.scored = claims.count(body["width"], "width", 1), claims.count(body["scored"], "scored")
        demand(len(self.ends) == len(self.bins) == -(-self.scored // self.width), "the history does not fit")
        self.step, self.due = claims.count(body["step"], "step", 1), claims.count(body["due"], "due")
        self.sample.stride = claims.count(body["stride"], "stride", 1)
        self.sample.rows = float_array(arrays, "history.sampled.rows")
        self.last = float_array(arrays, "history.last.rows")
        width = 3 + 2 * len(self.coverages)
        demand(all(rows.ndim == 2 and rows.shape[1] == width for rows in (self.sample.rows, self.last)),
               "the sample of the history does not fit")  # fmt: skip
        demand(len(self.bins) <= BINS and len(self.last) <= LAST, "the history is too long")
        rows = self.bins[:, 0]
        demand(bool(((rows >= 0) & (rows <= self.width)).all()), "a bin of the history has too many rows")
        # what has too many rows is thinned out by their numbers, which must be such that this ends
        for table, most in ((self.sample.rows, SAMPLED), (self.snapshots, SNAPSHOTS)):
            numbers = table[:, 0]
            demand(len(numbers) <= most, "the history is too long")
            demand(bool((np.diff(numbers, prepend=0) > 0).all() and (numbers < LARGEST_COUNT).all()),
                   "the rows of the history are not in order")  # fmt: skip
        self.changes = [claims.count(row, "a change") for row in body["changes"]]
        if body["born"] is not None:
            self._incumbent_start = claims.count(body["born"], "born")
        self.details = Details.decode(body.get("details"))
        self.counts = {claims.string(label, "a label"): claims.count(n, "a count") for label, n in body["counts"]}
        self.places = {label: k for k, label in enumerate(claims.strings(body["places"], "the labels"))}
        demand(len(body["places"]) == len(self.places) <= MAX_LABELS, "the labels of the history do not fit")
        return self


def with_linear(bins: Array) -> Array:
    """Bins of an older history, which has other columns: no linear baseline, and the 90 % interval alone."""
    demand(bins.ndim == 2 and bins.shape[1] == 7, "the history does not fit")
    return np.column_stack((bins[:, :3], np.zeros(len(bins)), bins[:, [3, 6, 4, 5]]))
