"""What a run remembers of itself: errors over time, some rows, the weights; of bounded size."""

from typing import Any

import numpy as np

from omkl.arrays import Index, Matrix, Vector
from omkl.persist import Arrays, demand
from omkl.stream.baselines import most_frequent, running_means
from omkl.stream.model import Answers, Said, StreamModel, Task

BINS = 256
SAMPLED = 2048
LAST = 300
SNAPSHOTS = 128
FIRST_STEP = 16  # rows between the first snapshots
MOST_LABELS = 24  # with counts of their own in the confusion table; the others share a place
CONFIDENCES = 10  # stretches of [0, 1] in which a label's chance is held against how often it was right
JUMP, BEFORE, AFTER = 2.0, 16, 4  # so many stretches, each with twice the error of those before, tell a change


class Thinned:
    """A fair sample of rows: a row's number decides by lot whether it is in, and half are given up when there are too
    many. So neither pieces nor periods in the data matter.

    >>> some = Thinned(2, 4)
    >>> some.add(np.arange(1, 11), np.arange(10.0)[:, None])
    >>> some.rows.tolist(), some.stride
    ([[2.0, 1.0], [4.0, 3.0], [8.0, 7.0]], 4)
    """

    def __init__(self, width: int, most: int) -> None:
        self.most, self.stride = most, 1
        self.rows: Matrix = np.empty((0, width))

    def add(self, at: Any, values: Matrix) -> None:
        """Rows with their numbers, which must grow."""
        table = np.column_stack((at, values))
        self.rows = np.vstack((self.rows, table[lots(at) % self.stride == 0]))
        while len(self.rows) > self.most:
            self.stride *= 2
            self.rows = self.rows[lots(self.rows[:, 0]) % self.stride == 0]


def lots(at: Any) -> Any:
    """A number of 64 bits for each row number, as good as drawn at random: the mixing of SplitMix64."""
    z = np.asarray(at).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        z = (z ^ (z >> np.uint64(shift))) * np.uint64(factor)
    return z ^ (z >> np.uint64(31))


class History:
    """The course of a run.

    Errors are kept in at most BINS stretches of equal length, which double when the run outgrows
    them. For labels an error is 0 or 1, and the baseline is the label seen most often so far.
    As a Watcher it keeps the weights of at most SNAPSHOTS moments, at even distances that double likewise.
    """

    COLUMNS = ("rows", "loss", "baseline", "absolute", "inside", "judged", "log_loss")

    def __init__(self, task: Task) -> None:
        self.task = task
        self.width = 1  # rows in a stretch
        self.bins: Matrix = np.zeros((0, len(self.COLUMNS)))
        self.ends: Index = np.zeros(0, dtype=np.int64)  # the row that each stretch ends with
        self.scored = 0
        self.sampled = Thinned(5, SAMPLED)  # row, truth, mean, lower, upper
        self.last: Matrix = np.empty((0, 5))
        self.step = self.due = FIRST_STEP
        self.snapshots: Matrix = np.empty((0, 1))  # row, the weight of each kernel
        self.changes: list[int] = []
        self._born: int | None = None  # the round in which GraphMKL's incumbents began
        self.targets = np.zeros(2)  # count and sum
        self.counts: dict[str, int] = {}
        self.places: dict[str, int] = {}
        self.confusion: Index = np.zeros((MOST_LABELS + 1, MOST_LABELS + 1), dtype=np.int64)  # truth, said
        self.confidence: Matrix = np.zeros((CONFIDENCES, 3))  # rows, sum of chances, rows that were right

    def note(self, said: Said, answers: Answers) -> None:
        """Take in what a piece has brought."""
        known = np.array([label is not None for label in said.truth]) if self.task == "classification" else None
        if known is None:
            known = ~np.isnan(np.asarray(said.truth, dtype=float))
        if known.any():
            self._score(
                said.rows[known], said.mean[known], said.truth[known],
                None if said.lower is None or said.upper is None else (said.lower[known], said.upper[known]),
                None if said.truth_chance is None else said.truth_chance[known],
                None if said.chance is None else said.chance[known],
            )  # fmt: skip
        if answers.truth:
            n = len(answers.truth)
            numbers = self.task == "regression"
            inside = np.array(answers.inside)
            truth = np.array(answers.truth) if numbers else np.array([*answers.truth, None], dtype=object)[:-1]
            mean = np.array(answers.mean) if numbers else np.array([*answers.mean, None], dtype=object)[:-1]
            row = int(said.rows[-1]) if len(said.rows) else int(self.ends[-1]) if len(self.ends) else 0
            self._losses(np.full(n, row), mean, truth, inside if numbers else None, np.array(answers.truth_chance))
            self.scored += n

    def _score(
        self, rows: Any, mean: Any, truth: Any, ends: Any, truth_chance: Vector | None, chance: Vector | None
    ) -> None:
        inside = None
        if self.task == "regression":
            lower, upper = ends if ends is not None else (np.full(len(mean), np.nan),) * 2
            inside = (lower <= truth) & (truth <= upper) if ends is not None else None
            table = np.column_stack((truth, mean, lower, upper))
            self.sampled.add(rows, table)
            self.last = np.vstack((self.last, np.column_stack((rows, table))))[-LAST:]
        elif chance is not None:
            given = chance > 0  # a label was said at all
            chance, right = chance[given], (mean == truth)[given]
            place = np.minimum((chance * CONFIDENCES).astype(int), CONFIDENCES - 1)
            # row after row, as addition depends on the order
            np.add.at(self.confidence, place, np.column_stack((np.ones(len(right)), chance, right)))
        self._losses(rows, mean, truth, inside, truth_chance)
        self.scored += len(mean)

    def _losses(self, rows: Any, mean: Any, truth: Any, inside: Any, truth_chance: Vector | None) -> None:
        n = len(mean)
        log_loss = np.zeros(n)
        if self.task == "regression":
            error = mean - truth
            loss, absolute = error * error, np.abs(error)
            baseline = (truth - running_means(self.targets, truth)) ** 2
        else:
            loss = absolute = (mean != truth).astype(float)
            baseline = (most_frequent(self.counts, truth) != truth).astype(float)
            for label, answer in zip(mean, truth, strict=True):
                if label is not None:
                    self.confusion[self._place(answer), self._place(label)] += 1
            if truth_chance is not None:
                log_loss = -np.log(np.clip(truth_chance, 1e-15, 1.0))
        judged = np.full(n, 0.0 if inside is None else 1.0)
        held = np.zeros(n) if inside is None else inside.astype(float)
        self._bin(rows, np.column_stack((np.ones(n), loss, baseline, absolute, held, judged, log_loss)))

    def _place(self, label: str) -> int:
        if label not in self.places and len(self.places) < MOST_LABELS:
            self.places[label] = len(self.places)
        return self.places.get(label, MOST_LABELS)

    def _bin(self, rows: Any, table: Matrix) -> None:
        at = self.scored
        while len(table):
            if at // self.width >= BINS:
                odd = np.zeros((len(self.bins) % 2, table.shape[1]))
                self.bins = self.bins[0::2] + np.vstack((self.bins[1::2], odd))
                self.ends = np.concatenate((self.ends[1::2], self.ends[len(self.ends) - len(odd) :]))
                self.width *= 2
                continue
            place, room = at // self.width, self.width - at % self.width
            if place == len(self.bins):
                self.bins = np.vstack((self.bins, np.zeros(table.shape[1])))
                self.ends = np.append(self.ends, 0)
            part, table = table[:room], table[room:]
            # row after row, as addition depends on the order
            self.bins[place] = np.cumsum(np.vstack((self.bins[place], part)), axis=0)[-1]
            self.ends[place], rows = rows[len(part) - 1], rows[room:]
            at += len(part)

    def look(self, model: StreamModel, row: int) -> None:
        """Keep the weights as they are before this row, and note whether GraphMKL has begun anew."""
        weights = model.weights()
        if len(weights):
            if model.learner == "graph-mkl" and model.core is not None:
                online = model.core.online
                age = int(online.peek("age")[int(online.peek("incumbent"))])
                born = int(online.peek("t")) - age
                if self._born not in (None, born):  # others took over, who had begun when the stream seemed to change
                    self.changes = [*self.changes, max(1, self.due - age)][-BINS:]
                self._born = born
            if self.snapshots.shape[1] == 1:
                self.snapshots = np.empty((0, 1 + len(weights)))
            self.snapshots = np.vstack((self.snapshots, [self.due, *weights]))
            while len(self.snapshots) > SNAPSHOTS:
                self.step *= 2
                self.snapshots = self.snapshots[self.snapshots[:, 0] % self.step == 0]
        self.due = -(-row // self.step) * self.step

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
            out["accuracy"] = 1 - loss / rows
            if log_loss:  # a fleet tells no chances
                out["log_loss"] = log_loss / rows
            out["baseline_accuracy"] = 1 - baseline / rows
        return {name: value if isinstance(value, int) else float(value) for name, value in out.items()}

    def moments_of_change(self) -> list[int]:
        """Rows about which the stream seems to have changed."""
        mean = self.bins[:, 1] / np.maximum(self.bins[:, 0], 1)
        found: list[int] = []
        for k in range(BEFORE, len(mean) - AFTER + 1):
            risen = mean[k : k + AFTER].min() > JUMP * max(mean[k - BEFORE : k].mean(), 1e-300)
            if risen and (not found or k - found[-1] > BEFORE):
                found.append(k)
        return self.changes or [int(self.ends[k - 1]) + 1 for k in found]

    # Files

    def encode(self, arrays: Arrays) -> Any:
        for name in ("bins", "ends", "snapshots", "targets", "confusion", "confidence"):
            arrays[f"history.{name}"] = getattr(self, name)
        # NaN stands for an end that there is not
        arrays["history.sampled.rows"], arrays["history.last.rows"] = self.sampled.rows, self.last
        return {"task": self.task, "width": self.width, "scored": self.scored, "stride": self.sampled.stride,
                "step": self.step, "due": self.due, "changes": self.changes, "born": self._born,
                "counts": list(self.counts.items()), "places": list(self.places)}  # fmt: skip

    @classmethod
    def decode(cls, body: Any, arrays: Arrays) -> "History":
        self = cls(body["task"])
        for name in ("bins", "ends", "snapshots", "targets", "confusion", "confidence"):
            fresh, kept = getattr(self, name), arrays[f"history.{name}"]
            fits = kept.shape[1:] == fresh.shape[1:] or name == "snapshots"
            demand(kept.ndim == fresh.ndim and kept.dtype == fresh.dtype and fits, "the history does not fit")
            setattr(self, name, kept)
        demand(len(self.ends) == len(self.bins), "the history does not fit")
        self.width, self.scored = int(body["width"]), int(body["scored"])
        self.step, self.due = int(body["step"]), int(body["due"])
        self.sampled.stride, self.sampled.rows = int(body["stride"]), arrays["history.sampled.rows"]
        self.last = arrays["history.last.rows"]
        self.changes, self._born = list(body["changes"]), body["born"]
        self.counts = {str(label): int(count) for label, count in body["counts"]}
        self.places = {str(label): k for k, label in enumerate(body["places"])}
        return self
