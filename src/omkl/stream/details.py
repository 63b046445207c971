"""What the report of a run shows beside its curves: times, the worst rows, errors by key, what the model has learned.

All of it is of bounded size, and depends on the rows alone, not on the pieces in which they came.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from omkl.arrays import Index, Vector
from omkl.explain import Change
from omkl.persist import Json, claims, demand
from omkl.stream.explaining import columns, importance_of, last_changes
from omkl.stream.model import StreamModel
from omkl.stream.predictions import Predictions

WORST = 10
MAX_KEYS = 1000  # whose errors are counted; the first that come
MAX_TIMES = 512
MOMENTS = 16  # at which the importance of columns is judged
JUDGED, MAX_JUDGED = 64, 1600  # rows by which it is judged, and predictions for it
BACKWARDS = 0.01  # share of steps of a time axis that may lead into the past


class WorstRow(NamedTuple):
    """A row whose prediction was far off."""

    loss: float  # absolute error, or minus the probability of the true label, which is the larger the worse
    row: int
    y_true: float | str
    y_pred: float | str | None


class Details:
    """Everything but errors over time and weights, of which `History` keeps account."""

    def __init__(self) -> None:
        self.worst: list[WorstRow] = []
        self.keys: dict[str, list[float]] = {}  # rows, and sum of losses, of each key
        self.times: list[tuple[int, float]] = []  # rows, and days since 1970
        self.stride = 1
        self.importance: list[tuple[int, dict[str, float]]] = []
        self.reasons: list[tuple[int, list[str], list[str]]] = []  # of changes: row, what, and inputs
        self.by_key = False  # whether there is a model per key, whose errors are counted
        self.judges = False  # whether the importance of columns is followed; for reports, since it takes time

    def score(self, predictions: Predictions, losses: Vector) -> None:
        """Rows with a target. `losses` are squared errors, or 1 where the label is wrong."""
        p = predictions
        number = p.y_true.dtype != object
        off: Vector = np.sqrt(losses) if p.true_probability is None else -p.true_probability
        least = 0.0 if number else -0.5
        bad = (off > least) & np.isfinite(off)
        known = np.flatnonzero(bad if p.y_pred.dtype != object else bad & (p.y_pred != None))  # noqa: E711  # of each row
        if not number and p.true_probability is None:
            known = known[:0]  # all wrong labels are as bad as each other
        if len(self.worst) == WORST:  # most rows are not among the worst
            known = known[off[known] >= self.worst[-1].loss]
        some = known[np.argsort(-off[known], kind="stable")[:WORST]]
        found = [WorstRow(float(off[k]) + 0.0, int(p.rows[k]), plain(p.y_true[k]), plain(p.y_pred[k])) for k in some]
        self.worst = sorted([*self.worst, *found], key=lambda row: (-row.loss, row.row))[:WORST]
        for key, loss in zip((p.keys or ()) if self.by_key else (), losses.tolist(), strict=False):
            if key in self.keys or len(self.keys) < MAX_KEYS:
                counts = self.keys.setdefault(key, [0.0, 0.0])
                counts[0] += 1
                counts[1] += loss

    def note_times(self, rows: Index, days: Vector) -> None:
        """The times of rows, of which some are kept at equal distances, and that of the latest."""
        rows, days = rows[~np.isnan(days)], days[~np.isnan(days)]
        some = (rows - 1) % self.stride == 0
        times = [*self.times[: len(self.times) - self.odd], *zip(rows[some].tolist(), days[some].tolist(), strict=True)]
        while len(times) > MAX_TIMES:
            self.stride *= 2
            times = [pair for pair in times if (pair[0] - 1) % self.stride == 0]
        self.times = times
        if len(rows) and (rows[-1] - 1) % self.stride:
            self.times = [*times, (int(rows[-1]), float(days[-1]))]

    @property
    def odd(self) -> int:
        """How many of the times are of the latest row only."""
        return int(bool(self.times) and (self.times[-1][0] - 1) % self.stride != 0)

    def time_axis(self) -> tuple[Vector, Vector] | None:
        """(rows, days) for a time axis; None where there is no column of times, or they do not increase."""
        if len(self.times) < 2:
            return None
        rows, days = np.array(self.times).T
        steps = np.diff(days)
        ordered = (steps < 0).mean() <= BACKWARDS and days[-1] > days[0]
        return (rows, np.maximum.accumulate(days)) if ordered else None

    def observe(self, model: StreamModel, row: int, step: int) -> None:
        """Judge the importance of columns before this row, if it is time to, with snapshots of weights every `step`."""
        apart = 8 * step
        if not self.judges or row % apart or row == 0:
            return
        names = () if model.learner is None else model.learner.names
        rows = max(4, min(JUDGED, MAX_JUDGED // max(len(columns(model, names)), 1)))
        try:
            found = importance_of(model, rows)
        except (ValueError, ArithmeticError):  # a learner that knows nothing about its inputs, or a model that diverged
            return
        self.importance.append((row, {str(name): value for name, value in found.items()}))
        self.importance = [pair for pair in self.importance if pair[0] % apart == 0][-MOMENTS:]

    def note_change(self, model: StreamModel, row: int) -> None:
        """Other experts have taken over, because of what changed near this row."""
        for change in last_changes(model):
            self.reasons = [*self.reasons, (row, list(change.what), [str(name) for name in change.inputs])][-256:]

    def changes(self) -> list[str]:
        """Changes with what was different from before."""
        return [str(Change(row, tuple(what), tuple(inputs))) for row, what, inputs in self.reasons]

    # Files

    def encode(self) -> Json:
        """As JSON."""
        return {"worst": [list(row) for row in self.worst], "keys": [[key, *n] for key, n in self.keys.items()],
                "times": [list(pair) for pair in self.times], "stride": self.stride,
                "importance": [[row, list(found.items())] for row, found in self.importance],
                "reasons": [list(reason) for reason in self.reasons]}  # fmt: skip

    @classmethod
    def decode(cls, body: Json) -> "Details":
        """What `encode` returned; histories of earlier versions have nothing."""
        self = cls()
        if body is None:
            return self
        lists = [claims.mapping(body, "the details")[name] for name in ("worst", "keys", "times", "importance",
                                                                        "reasons")]  # fmt: skip
        most = (WORST, MAX_KEYS, MAX_TIMES + 1, MOMENTS, 256)
        demand(all(isinstance(part, list) and len(part) <= n for part, n in zip(lists, most, strict=True)),
               "the details of the history are too long")  # fmt: skip
        self.stride = claims.count(body["stride"], "the stride of times", 1)
        for loss, row, y_true, y_pred in body["worst"]:
            self.worst.append(WorstRow(number(loss), claims.count(row, "a row"), value(y_true), value(y_pred)))
        self.keys = {claims.string(key, "a key"): [number(n), number(loss)] for key, n, loss in body["keys"]}
        self.times = [(claims.count(row, "a row"), number(days)) for row, days in body["times"]]
        for row, found in body["importance"]:
            judged = {claims.string(name, "a column"): number(share) for name, share in found}
            self.importance.append((claims.count(row, "a row"), judged))
        for row, what, inputs in body["reasons"]:
            words = claims.strings(what, "what changed"), claims.strings(inputs, "the inputs")
            self.reasons.append((claims.count(row, "a row"), list(words[0]), list(words[1])))
        return self


def number(found: object) -> float:
    """A finite number from a file."""
    demand(type(found) in (int, float) and math.isfinite(found), "the details of the history must be numbers")  # type: ignore[arg-type]  # a number
    return float(found)  # type: ignore[arg-type]  # a number


def value(found: object) -> float | str:
    """A target from a file."""
    return found if isinstance(found, str) else number(found)


def plain(target: Any) -> Any:
    """A target or prediction as Python's text, number or None."""
    return target if target is None or isinstance(target, str) else float(target)


def mean_losses(keys: dict[str, list[float]], most: int) -> Sequence[tuple[str, int, float]]:
    """Key, rows and mean loss of the keys with the largest mean loss."""
    found = [(key, int(n), loss / n) for key, (n, loss) in keys.items() if n]
    return sorted(found, key=lambda line: (-line[2], line[0]))[:most]
