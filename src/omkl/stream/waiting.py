"""Delayed labels: rows that wait for their target, which comes in a later row with the same key."""

from typing import NamedTuple

import numpy as np

from omkl.arrays import Index, Mask, Matrix, Vector
from omkl.notices import Notify
from omkl.stream.predictions import Ends, LateTargets, Predictions

LEARN, PREDICT, LATE = range(3)  # what a row is for: to be learned, only predicted, or the target of an earlier one


class WaitingRow(NamedTuple):
    """A row without its target, and what was predicted for it."""

    x: Vector
    y_pred: float | str | None
    intervals: Ends | None
    probabilities: dict[str, float] | None
    position: int = 0  # among the rows of the stream, where there are lags
    scale: float = 0.0  # of its interval, where rows are predicted more than one ahead


class WaitingRows:
    """Rows by key, the oldest first; no more than `capacity` of them."""

    def __init__(self, capacity: int, notify: Notify) -> None:
        self.capacity, self.notify = capacity, notify
        self.rows: dict[str, WaitingRow] = {}

    def __len__(self) -> int:
        return len(self.rows)

    def roles(self, known: Mask, keys: list[str], count: int = 0) -> tuple[Index, Index]:
        """What each row of a batch is for, as far as that follows from its key: LEARN, PREDICT or LATE.

        Also the position of the row that each late target is for, if `count` rows came before the batch.
        """
        roles, origins = np.where(known, LEARN, PREDICT), np.zeros(len(keys), dtype=np.int64)
        waiting = {key: row.position for key, row in self.rows.items()}
        for k, key in enumerate(keys):
            if known[k] and key in waiting:
                roles[k] = LATE
                origins[k] = waiting.pop(key)
                continue
            if not known[k]:
                waiting.pop(key, None)
                waiting[key] = count
                if len(waiting) > self.capacity:
                    del waiting[next(iter(waiting))]
            count += 1
        return roles, origins

    def add(self, X: Matrix, predictions: Predictions, positions: Index, scales: Vector | None = None) -> None:
        """Keep rows that were predicted until their targets come."""
        for k, key in enumerate(predictions.keys or ()):
            self.rows.pop(key, None)
            intervals, probabilities = predictions.intervals_of(k), predictions.probabilities_of(k)
            scale = 0.0 if scales is None else float(scales[k])
            self.rows[key] = WaitingRow(
                X[k].copy(), predictions.y_pred[k], intervals, probabilities, int(positions[k]), scale
            )
            if len(self.rows) > self.capacity:
                oldest = next(iter(self.rows))
                del self.rows[oldest]
                self.notify("pending", f"more than {self.capacity} rows wait for their target; the oldest are dropped, "
                            f"key {oldest!r} first (--pending keeps more)")  # fmt: skip

    def resolve(self, key: str, y_true: float | str, late: LateTargets) -> WaitingRow:
        """Take a row out, and compare its prediction with the target that has come."""
        row = self.rows.pop(key)
        late.y_pred.append(row.y_pred)
        late.y_true.append(y_true)
        late.probabilities.append(row.probabilities or {})
        late.intervals.append(row.intervals or {})
        late.true_probability.append((row.probabilities or {}).get(y_true, 0.0) if isinstance(y_true, str) else 0.0)
        return row
