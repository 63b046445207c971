"""Where rows of a batch that are alike are cut: where somebody looks at the model, and for pauses."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Protocol

import numpy as np

from omkl.arrays import Index

if TYPE_CHECKING:
    from omkl.stream.model import StreamModel

PIECE = 256  # rows at most that are learned without a pause; one comes after each multiple of it


class Observer(Protocol):
    """Looks at the model before the first row after row `due`."""

    due: int

    def observe(self, model: "StreamModel", row: int) -> None:
        """Look at the model before this row, and set `due` to a row not before it."""


def pieces(
    model: "StreamModel",
    rows: Index,
    start: int,
    stop: int,
    observer: Observer | None,
    pause: Callable[[], None] | None,
) -> Iterator[tuple[int, int]]:
    """The rows from `start` to `stop`, cut where the observer is due, and for pauses."""
    while start < stop:
        if observer is not None and rows[start] > observer.due:
            observer.observe(model, int(rows[start]))
        last = rows[stop - 1] if pause is None else -(-rows[start] // PIECE) * PIECE
        if observer is not None:
            last = min(last, observer.due)
        end = min(stop, int(np.searchsorted(rows, last, side="right")))
        yield start, end
        start = end
        if pause is not None and start < stop:
            pause()
