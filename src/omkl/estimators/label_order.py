"""Whether rows are sorted by label: whoever learns them in that order forgets the first labels."""

import warnings
from collections.abc import Hashable, Iterable

MANY = 50  # rows; fewer may be sorted by chance, or because they are all there is
SORTED = "rows are sorted by label and are learned in this order, so that the last label counts most; shuffle the rows"


class LabelOrder:
    """Follows the labels of a stream for as long as each has come in one run of rows.

    >>> order = LabelOrder()
    >>> order.update(["a"] * 40 + ["b"] * 40)
    >>> order.grouped, order.grouped_after("a"), order.grouped
    (True, False, False)
    """

    def __init__(self) -> None:
        self.mixed = False  # whether a label has come back after another one
        self.rows = 0
        self._last: Hashable = None
        self._begun = self._shortest = 0  # row of the present run, length of the shortest one before it
        self._labels: set[Hashable] = set()

    def update(self, labels: Iterable[Hashable]) -> None:
        """Rows with these labels, one after the other."""
        for label in labels:
            if self.mixed:
                return
            self.grouped_after(label)

    def grouped_after(self, label: Hashable) -> bool:
        """The next row; whether it brings the third label or a later one, after long runs of all labels before.

        Two runs are no evidence on a stream that goes on: labels may stay for long and come back later.
        """
        self.rows += 1
        if label == self._last:
            return False
        if label in self._labels:
            self.mixed = True
            self._labels.clear()
            return False
        run = self.rows - 1 - self._begun
        self._shortest = run if len(self._labels) < 2 else min(self._shortest, run)
        self._labels.add(label)
        self._last, self._begun = label, self.rows - 1
        return len(self._labels) > 2 and self._shortest >= MANY

    @property
    def grouped(self) -> bool:
        """Whether the rows so far, if these are all, were sorted by label."""
        return not self.mixed and self.rows >= MANY and len(self._labels) > 1


def warn_of_order(rows: int, stacklevel: int) -> None:
    warnings.warn(f"the {rows} {SORTED}", stacklevel=stacklevel)


def warn_if_sorted(labels: Iterable[Hashable], stacklevel: int) -> None:
    """A warning where these rows, which are learned together, are sorted by label."""
    order = LabelOrder()
    order.update(labels)
    if order.grouped:
        warn_of_order(order.rows, stacklevel)
