"""The target column: whether it holds numbers or labels, and its cells as such."""

import numpy as np
import pyarrow as pa

from omkl.algorithms.base import Task
from omkl.arrays import Mask, Vector
from omkl.encoder.cells import TRUTH, Comma, as_doubles, as_strings, commas, matches, numbers, usable
from omkl.notices import Notify
from omkl.stream.predictions import Labels, Targets
from omkl.stream.raw import DataError
from omkl.validation import LARGEST_TARGET

MAX_LABELS = 100  # every label has coefficients of its own in every expert
GUESS_ROWS = 1000
MIN_TEXTS = 2  # targets that are text, and no number among them: they contradict a regression


class Target:
    """The column to predict.

    Parameters
    ----------
    name
        Of the column.
    task
        "regression" or "classification"; None to decide by the first targets.
    """

    def __init__(self, name: str, task: Task | None, notify: Notify) -> None:
        self.name, self.task, self.notify = name, task, notify
        self.comma: Comma | None = None  # what commas in numbers are
        self.labels: set[str] = set()
        self.with_booleans = False  # some numbers are written as true and false
        self.found_number = False
        self._not_numbers = 0  # targets before the first number

    def read(self, array: pa.Array, learn: bool) -> Targets:
        """(n,) numbers with NaN, or labels with None, where there is no usable target.

        >>> Target("y", None, lambda about, text: None).read(pa.array(["1", "", "2.5"]), learn=True)
        array([1. , nan, 2.5])
        """
        if self.task is None:
            self.task = self._guess_task(array)
        return self._labels(array, learn) if self.task == "classification" else self._numbers(array, learn)

    def _labels(self, array: pa.Array, learn: bool) -> Labels:
        found = labels(array)
        self.labels.update(label for label in found if label is not None and learn)
        if len(self.labels) > MAX_LABELS:
            raise DataError(
                f"target {self.name!r} has more than {MAX_LABELS} labels, such as {min(self.labels)!r}; "
                "if it is a number pass --task regression"
            )
        return np.array([*found, None], dtype=object)[:-1]

    def _numbers(self, array: pa.Array, learn: bool) -> Vector:
        if pa.types.is_floating(array.type) or pa.types.is_integer(array.type):
            values: Vector = array.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
            invalid = None
        elif pa.types.is_duration(array.type) or pa.types.is_time(array.type):
            values, invalid = as_doubles(array), None
        else:
            strings = pa.array(labels(array), pa.string())
            comma = self.comma or commas(strings)
            values, invalid = numbers(strings, comma)
            self.with_booleans |= bool(matches(strings, TRUTH).any())
            if learn and self.comma is None and comma is not None:
                self.comma = comma
                what = "thousands separators" if comma == "thousands" else "decimal points"
                self.notify("comma target", f"target {self.name!r}: commas are read as {what}")
        if learn and not self.found_number:
            self.found_number = not np.isnan(values).all()
            if invalid is not None and not self.found_number:
                self._not_numbers += len(strings) - strings.null_count
                if self._not_numbers >= MIN_TEXTS:
                    raise DataError(f"target {self.name!r} holds no numbers but text such as {invalid!r}, and the task "
                                    "is regression; pass --task classification")  # fmt: skip
        if invalid is not None:
            self.notify("invalid target", f"target {self.name!r}: {invalid!r} is not a number; such rows are predicted "
                        "and not learned (--task classification takes labels)")  # fmt: skip
        large = np.abs(values) > LARGEST_TARGET
        if large.any():
            value = values[np.argmax(large)]
            self.notify("large target", f"target {self.name!r}: {value:g} is too large; such rows are predicted "
                        "and not learned")  # fmt: skip
            values = np.where(large, np.nan, values)
        return values

    def _guess_task(self, array: pa.Array) -> Task:
        if pa.types.is_boolean(array.type):
            return "classification"
        strings = [text for text in labels(array[:GUESS_ROWS]) if text is not None]
        if not strings:
            self.notify("task", "there is no target yet: regression is assumed (--task classification otherwise)")
            return "regression"
        values, _ = numbers(pa.array(strings), commas(pa.array(strings)))
        if np.isnan(values).mean() > 0.5 or {text.lower() for text in strings} <= {"true", "false"}:
            self.notify("task", f"target {self.name!r} holds labels such as {strings[0]!r}: classification")
            return "classification"
        if set(np.unique(values)) == {0.0, 1.0}:
            self.notify("task", f"target {self.name!r} holds only 0 and 1: classification (--task regression "
                        "otherwise)")  # fmt: skip
            return "classification"
        self.notify("task", f"target {self.name!r} holds numbers: regression (--task classification if they are "
                    "labels)")  # fmt: skip
        return "regression"


def known(y: Targets) -> Mask:
    """Where a target is known.

    >>> known(np.array([1.0, np.nan])), known(np.array(["a", None], dtype=object))
    (array([ True, False]), array([ True, False]))
    """
    if y.dtype == object:
        return np.array([label is not None for label in y], dtype=bool)
    mask: Mask = ~np.isnan(y)
    return mask


def labels(array: pa.Array) -> list[str | None]:
    """A target of any kind as labels; whole numbers have no decimal point."""
    cells = usable(array)
    if cells is None:
        raise DataError(f"a target or key must hold numbers, text or timestamps, not {array.type}")
    return [None if text is None else text.strip() for text in as_strings(cells).to_pylist()]
