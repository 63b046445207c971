"""Predictions for rows of a table, each made before its row was learned."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from omkl.arrays import Index, Mask, Matrix, Vector
from omkl.stream.raw import DataError

Labels = NDArray[np.object_]  # (n,) strings, None where there is no label
DEFAULT_COVERAGE = 0.9
Ends = dict[float, tuple[float, float]]  # by coverage, lower and upper end of an interval
Targets = Vector | Labels  # (n,) numbers with NaN, or labels with None, where nothing is known


def as_numbers(y: Targets) -> Vector:
    """Targets of a regression; nothing is copied."""
    return y.astype(np.float64, copy=False)


def as_labels(y: Targets) -> Labels:
    """Targets of a classification; nothing is copied."""
    return y.astype(np.object_, copy=False)


def concatenated_targets(parts: Sequence[Targets]) -> Targets:
    """Parts of one kind as one array."""
    joined: Targets = np.concatenate(parts)  # type: ignore[assignment]  # all are numbers, or all are labels
    return joined


class Outputs(NamedTuple):
    """What a learner predicts for some rows: numbers, or labels with their probabilities."""

    y_pred: Targets
    lower: Matrix | None = None  # (n, coverages) ends of the intervals, where the learner has them
    upper: Matrix | None = None
    labels: tuple[str, ...] = ()
    probabilities: Matrix | None = None  # (n, labels)


class Forecast(NamedTuple):
    """Outputs of which the scale of the intervals is known, where they are for more than one row ahead."""

    out: Outputs
    scale: Vector | None = None  # (n,)

    @classmethod
    def in_order(cls, parts: "list[Forecast]", order: list[int]) -> "Forecast":
        """Numbers predicted in another order: the rows of the parts, one after another, are those of `order`."""
        back = np.argsort(order)

        def joined(values: list[Vector | None]) -> Vector | None:
            given = [value for value in values if value is not None]
            return np.concatenate(given)[back] if given else None

        y_pred = np.concatenate([as_numbers(part.out.y_pred) for part in parts])[back]
        lower, upper = joined([part.out.lower for part in parts]), joined([part.out.upper for part in parts])
        return cls(Outputs(y_pred, lower, upper), joined([part.scale for part in parts]))


class Predictions(NamedTuple):
    """Predictions for rows of a table, and the targets as far as they are known."""

    rows: Index  # (n,)
    keys: list[str] | None
    y_pred: Targets
    lower: Matrix | None  # (n, coverages) ends of the intervals, where the learner has them
    upper: Matrix | None
    probability: Vector | None  # (n,) of the predicted label
    y_true: Targets
    true_probability: Vector | None  # (n,) predicted for the true label
    labels: tuple[str, ...] = ()  # known when the rows were predicted
    probabilities: Matrix | None = None  # (n, labels)
    coverages: tuple[float, ...] = ()  # of the intervals
    linear: Targets | None = None  # (n,) predictions of the linear baseline, where there is one

    def probabilities_of(self, k: int) -> dict[str, float] | None:
        """The probability of every label in one row."""
        if self.probabilities is None:
            return None
        return dict(zip(self.labels, self.probabilities[k].tolist(), strict=True))

    def intervals_of(self, k: int) -> "Ends | None":
        """The intervals of one row."""
        if self.lower is None or self.upper is None:
            return None
        ends = zip(self.lower[k].tolist(), self.upper[k].tolist(), strict=True)
        return dict(zip(self.coverages, ends, strict=True))

    def where(self, mask: Mask) -> "Predictions":
        """Some of the rows."""

        def some(values: NDArray[np.float64] | None) -> NDArray[np.float64] | None:
            return None if values is None else values[mask]

        keys = None if self.keys is None else [key for key, there in zip(self.keys, mask, strict=True) if there]
        return Predictions(
            self.rows[mask], keys, self.y_pred[mask], some(self.lower), some(self.upper), some(self.probability),
            self.y_true[mask], some(self.true_probability), self.labels, some(self.probabilities), self.coverages,
            None if self.linear is None else self.linear[mask],
        )  # fmt: skip


class LateTargets(NamedTuple):
    """Targets that came after their row: what had been predicted, and what was true."""

    y_pred: list[float | str | None]
    y_true: list[float | str | None]
    true_probability: list[float]
    intervals: list[Ends]
    probabilities: list[dict[str, float]]  # predicted, of every label
    linear: list[float | str | None]  # predicted by the linear baseline, where there is one

    @classmethod
    def none(cls) -> "LateTargets":
        return cls([], [], [], [], [], [])


class Threshold(NamedTuple):
    """A label is predicted where its probability is at least `least`, however probable the others are."""

    label: str | None  # None for the second of two labels, in alphabetical order
    least: float

    def applied(self, out: Outputs) -> Outputs:
        """The same probabilities with other predictions.

        >>> out = label_outputs(np.array([[0.6, 0.4], [0.9, 0.1]]), ("no", "yes"))
        >>> Threshold(None, 0.3).applied(out).y_pred.tolist(), Threshold("no", 0.95).applied(out).y_pred.tolist()
        (['yes', 'no'], ['yes', 'yes'])
        """
        if out.probabilities is None or len(out.labels) < 2:
            return out
        if self.label is None and len(out.labels) > 2:
            raise DataError(f"--threshold {self.least:g} is for two labels, and there are {len(out.labels)}; write "
                            f"LABEL={self.least:g}")  # fmt: skip
        label = max(out.labels) if self.label is None else self.label
        if label not in out.labels:
            return out
        k = out.labels.index(label)
        others = np.array(out.probabilities)
        others[:, k] = -1.0
        chosen = np.where(out.probabilities[:, k] >= self.least, k, others.argmax(axis=1))
        return out._replace(y_pred=np.array(out.labels, dtype=object)[chosen])


def label_outputs(probabilities: Matrix, labels: tuple[str, ...]) -> Outputs:
    """The most probable label of each row; None where none has any probability.

    >>> label_outputs(np.array([[0.2, 0.8], [0.0, 0.0]]), ("no", "yes")).y_pred.tolist()
    ['yes', None]
    """
    n, known = probabilities.shape
    if not known:
        return Outputs(np.full(n, None, dtype=object), probabilities=probabilities)
    best = probabilities.argmax(axis=1)
    certain = probabilities[np.arange(n), best] > 0
    y_pred = np.array([*labels, None], dtype=object)[np.where(certain, best, len(labels))]
    return Outputs(y_pred, labels=labels, probabilities=probabilities)


def with_targets(
    out: Outputs, rows: Index, y_true: Targets, keys: list[str] | None, coverages: tuple[float, ...] = ()
) -> Predictions:
    """Outputs of a learner with the targets of their rows; `coverages` are those of the intervals, if there are any."""
    if out.probabilities is None:
        covered = () if out.lower is None else coverages
        return Predictions(rows, keys, out.y_pred, out.lower, out.upper, None, y_true, None, coverages=covered)
    if not out.labels:
        zero = np.zeros(len(rows))
        return Predictions(rows, keys, out.y_pred, None, None, zero, y_true, zero)
    at = np.arange(len(rows))
    place = {label: k for k, label in enumerate(out.labels)}
    of_true = np.array([place.get(label, -1) for label in y_true])
    true_probability = np.where(of_true >= 0, out.probabilities[at, of_true], 0.0)
    of_predicted = np.array([place.get(label, -1) for label in out.y_pred])
    probability = np.where(of_predicted >= 0, out.probabilities[at, of_predicted], 0.0)
    return Predictions(
        rows, keys, out.y_pred, None, None, probability, y_true, true_probability, out.labels, out.probabilities
    )


def concatenated(parts: list[Predictions], keyed: bool) -> Predictions:
    """The parts as one; NaN where only some of them have a value."""
    if not parts:
        empty = np.empty(0, dtype=np.int64)
        return Predictions(empty, [] if keyed else None, np.empty(0), None, None, None, np.empty(0), None)
    if len(parts) == 1:
        return parts[0]

    def joined(values: list[NDArray[np.float64] | None]) -> NDArray[np.float64] | None:
        shape = next((value.shape[1:] for value in values if value is not None), None)
        if shape is None:
            return None
        return np.concatenate([np.full((len(part.rows), *shape), np.nan) if value is None else value
                               for value, part in zip(values, parts, strict=True)])  # fmt: skip

    labels = max((part.labels for part in parts), key=len)  # labels that come later are added at the end
    probabilities = None
    if labels:
        probabilities = np.zeros((sum(len(part.rows) for part in parts), len(labels)))
        start = 0
        for part in parts:
            if part.probabilities is not None:
                probabilities[start : start + len(part.rows), : len(part.labels)] = part.probabilities
            start += len(part.rows)
    keys = None if parts[0].keys is None else [key for part in parts for key in part.keys or []]
    return Predictions(
        np.concatenate([part.rows for part in parts]), keys, np.concatenate([part.y_pred for part in parts]),
        joined([part.lower for part in parts]), joined([part.upper for part in parts]),
        joined([part.probability for part in parts]), np.concatenate([part.y_true for part in parts]),
        joined([part.true_probability for part in parts]), labels, probabilities,
        max((part.coverages for part in parts), key=len),
        None if any(part.linear is None for part in parts) else np.concatenate([part.linear for part in parts]),
    )  # fmt: skip
