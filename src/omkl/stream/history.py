"""What a run remembers of itself: errors over time, some rows, the weights; of bounded size."""

from typing import Any

import numpy as np

from omkl.arrays import Matrix, Vector
from omkl.persist import Arrays, demand
from omkl.stream.model import Answers, Said, StreamModel, Task

BINS = 256
SAMPLED = 1024
LAST = 300
SNAPSHOTS = 128
JUMP = 2.0  # a stretch with so many times the error of those before it counts as a moment of change


class Thinned:
    """Rows at even distances: when there are too many, every other one is given up and the distance doubles.

    >>> some = Thinned(2, 4)
    >>> some.add(np.arange(1, 11), np.arange(10.0)[:, None])
    >>> some.rows.tolist(), some.stride
    ([[4.0, 3.0], [8.0, 7.0]], 4)
    """

    def __init__(self, width: int, most: int) -> None:
        self.most, self.stride = most, 1
        self.rows: Matrix = np.empty((0, width))

    def add(self, at: Any, values: Matrix) -> None:
        """Rows with their numbers, which must grow; those whose number the distance divides are kept."""
        table = np.column_stack((at, values))
        self.rows = np.vstack((self.rows, table[np.asarray(at) % self.stride == 0]))
        while len(self.rows) > self.most:
            self.stride *= 2
            self.rows = self.rows[self.rows[:, 0] % self.stride == 0]


class History:
    """The course of a run.

    Errors are kept in at most BINS stretches of equal length, which double when the run outgrows
    them. For labels an error is 0 or 1, and the baseline is the label seen most often so far.
    """

    COLUMNS = ("rows", "loss", "baseline", "absolute", "inside", "judged", "log_loss")

    def __init__(self, task: Task) -> None:
        self.task = task
        self.width = 1  # rows in a stretch
        self.bins: Matrix = np.zeros((0, len(self.COLUMNS)))
        self.scored = 0
        self.sampled = Thinned(5, SAMPLED)  # row, truth, mean, lower, upper
        self.last: Matrix = np.empty((0, 5))
        self.snapshots: list[tuple[int, list[float]]] = []
        self.changes: list[int] = []
        self._incumbent = 0
        self.targets = np.zeros(2)  # count and sum
        self.counts: dict[str, int] = {}

    def note(self, said: Said, answers: Answers, model: StreamModel) -> None:
        """Take in what a piece has brought."""
        known = np.array([label is not None for label in said.truth]) if self.task == "classification" else None
        if known is None:
            known = ~np.isnan(np.asarray(said.truth, dtype=float))
        if known.any():
            self._score(
                said.rows[known], said.mean[known], said.truth[known],
                None if said.lower is None or said.upper is None else (said.lower[known], said.upper[known]),
                None if said.truth_chance is None else said.truth_chance[known],
            )  # fmt: skip
        if answers.truth:
            n = len(answers.truth)
            numbers = self.task == "regression"
            inside = np.array(answers.inside)
            truth = np.array(answers.truth) if numbers else np.array([*answers.truth, None], dtype=object)[:-1]
            mean = np.array(answers.mean) if numbers else np.array([*answers.mean, None], dtype=object)[:-1]
            self._losses(mean, truth, inside if numbers else None, np.array(answers.truth_chance))
            self.scored += n
        self._look(model, int(said.rows[-1]) if len(said.rows) else self.scored)

    def _score(self, rows: Any, mean: Any, truth: Any, ends: Any, truth_chance: Vector | None) -> None:
        inside = None
        if self.task == "regression":
            lower, upper = ends if ends is not None else (np.full(len(mean), np.nan),) * 2
            inside = (lower <= truth) & (truth <= upper) if ends is not None else None
            table = np.column_stack((truth, mean, lower, upper))
            self.sampled.add(rows, table)
            self.last = np.vstack((self.last, np.column_stack((rows, table))))[-LAST:]
        self._losses(mean, truth, inside, truth_chance)
        self.scored += len(mean)

    def _losses(self, mean: Any, truth: Any, inside: Any, truth_chance: Vector | None) -> None:
        n = len(mean)
        log_loss = np.zeros(n)
        if self.task == "regression":
            error = mean - truth
            loss, absolute = error * error, np.abs(error)
            baseline = (truth - self._running_mean(truth)) ** 2
        else:
            loss = absolute = (mean != truth).astype(float)
            baseline = self._most_often(truth)
            if truth_chance is not None:
                log_loss = -np.log(np.clip(truth_chance, 1e-15, 1.0))
        judged = np.full(n, 0.0 if inside is None else 1.0)
        held = np.zeros(n) if inside is None else inside.astype(float)
        self._bin(np.column_stack((np.ones(n), loss, baseline, absolute, held, judged, log_loss)))

    def _running_mean(self, truth: Vector) -> Vector:
        """The mean of all targets before each row; sums row by row, so that pieces do not matter."""
        sums = np.cumsum(np.concatenate(([self.targets[1]], truth)))
        counts = self.targets[0] + np.arange(len(truth))
        self.targets[:] = counts[-1] + 1, sums[-1]
        means: Vector = np.divide(sums[:-1], counts, out=np.zeros(len(truth)), where=counts > 0)
        return means

    def _most_often(self, truth: Any) -> Vector:
        wrong = np.empty(len(truth))
        best = max(self.counts, key=lambda label: self.counts[label], default=None)
        for k, label in enumerate(truth):
            wrong[k] = label != best
            self.counts[label] = self.counts.get(label, 0) + 1
            if best is None or self.counts[label] > self.counts[best]:
                best = label
        return wrong

    def _bin(self, table: Matrix) -> None:
        at = self.scored
        while len(table):
            if at // self.width >= BINS:
                self.bins = self.bins[0::2] + np.vstack(
                    (self.bins[1::2], np.zeros((len(self.bins) % 2, table.shape[1])))
                )
                self.width *= 2
                continue
            place, room = at // self.width, self.width - at % self.width
            if place == len(self.bins):
                self.bins = np.vstack((self.bins, np.zeros(table.shape[1])))
            part, table = table[:room], table[room:]
            # row after row, as addition depends on the order
            self.bins[place] = np.cumsum(np.vstack((self.bins[place], part)), axis=0)[-1]
            at += len(part)

    def _look(self, model: StreamModel, row: int) -> None:
        core = model.core
        if core is None:
            return
        if model.learner == "graph-mkl":
            now = int(core.online.peek("incumbent"))
            if now != self._incumbent:
                self.changes = [*self.changes, row][-BINS:]
                self._incumbent = now
        step = max(1, self.snapshots[-1][0] // SNAPSHOTS) if self.snapshots else 0
        if not self.snapshots or row - self.snapshots[-1][0] >= step:
            self.snapshots.append((row, [float(w) for w in model.weights()]))
            if len(self.snapshots) > 2 * SNAPSHOTS:
                self.snapshots = self.snapshots[::2]

    # Sums

    def summary(self) -> dict[str, Any]:
        """Errors over the whole run, as JSON."""
        rows, loss, baseline, absolute, inside, judged, log_loss = (
            self.bins.sum(axis=0) if len(self.bins) else np.zeros(7)
        )
        if not rows:
            return {"scored": 0}
        out: dict[str, Any] = {"scored": int(rows)}
        if self.task == "regression":
            out |= {"mse": loss / rows, "rmse": float(np.sqrt(loss / rows)), "mae": absolute / rows,
                    "baseline_mse": baseline / rows, "baseline_rmse": float(np.sqrt(baseline / rows))}  # fmt: skip
            if judged:
                out["coverage"] = inside / judged
        else:
            out |= {"accuracy": 1 - loss / rows, "log_loss": log_loss / rows, "baseline_accuracy": 1 - baseline / rows}
        return {name: value if isinstance(value, int) else float(value) for name, value in out.items()}

    def moments_of_change(self) -> list[int]:
        """Rows about which the stream seems to have changed."""
        if self.changes or len(self.bins) < 16:
            return self.changes
        mean = self.bins[:, 1] / np.maximum(self.bins[:, 0], 1)
        found: list[int] = []
        for k in range(8, len(mean)):
            before = mean[max(0, k - 8) : k]
            if (
                mean[k] > JUMP * max(before.mean(), 1e-300)
                and mean[k] > before.max()
                and (not found or k - found[-1] > 8)
            ):
                found.append(k)
        return [k * self.width for k in found]

    # Files

    def encode(self, arrays: Arrays) -> Any:
        arrays["history.bins"] = self.bins
        # NaN stands for an end that there is not
        arrays["history.sampled.rows"], arrays["history.last.rows"] = self.sampled.rows, self.last
        arrays["history.targets"] = self.targets
        return {"task": self.task, "width": self.width, "scored": self.scored, "stride": self.sampled.stride,
                "snapshots": self.snapshots, "changes": self.changes, "incumbent": self._incumbent,
                "counts": self.counts}  # fmt: skip

    @classmethod
    def decode(cls, body: Any, arrays: Arrays) -> "History":
        self = cls(body["task"])
        self.bins, self.targets = arrays["history.bins"], arrays["history.targets"]
        demand(self.bins.ndim == 2 and self.bins.shape[1] == len(cls.COLUMNS), "the history does not fit")
        self.width, self.scored = int(body["width"]), int(body["scored"])
        self.sampled.stride, self.sampled.rows = int(body["stride"]), arrays["history.sampled.rows"]
        self.last = arrays["history.last.rows"]
        self.snapshots = [(int(row), list(weights)) for row, weights in body["snapshots"]]
        self.changes, self._incumbent = list(body["changes"]), int(body["incumbent"])
        self.counts = dict(body["counts"])
        return self
