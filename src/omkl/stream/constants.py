"""Columns that always have the same value, which tell nothing."""

import numpy as np

from omkl.encoder.columns import Encoded, Encoder
from omkl.notices import Notify

ENOUGH = 1000  # rows with the same value


class Constants:
    """Looks at the first rows of a run, and mentions columns of one value."""

    def __init__(self, notify: Notify) -> None:
        self.notify = notify
        self.rows = 0
        self.values: dict[str, float] = {}  # of columns of numbers that have had only one
        self.varies: set[str] = set()

    def look(self, encoder: Encoder, encoded: Encoded) -> None:
        """Look at rows and at what is known about their columns, until there were enough of them."""
        rows = len(next(iter(encoded.features.values()), ()))
        if self.rows >= ENOUGH or not rows:
            return
        self.rows += rows
        for name, column in encoder.columns.items():
            if column.kind in ("number", "time") and name not in self.varies:
                values = encoded.features.get(column.own, np.empty(0))
                first = self.values.setdefault(name, float(values[0])) if len(values) else np.nan
                if not (values == first).all():
                    self.varies.add(name)
        if self.rows >= ENOUGH:
            for name, column in encoder.columns.items():
                text = column.kind == "category" and len(column.categories) == 1 and column.begun and not column.others
                number = name in self.values and name not in self.varies and not column.categories
                if (text or number) and not column.gaps:
                    self.notify(f"constant {name}", f"column {name!r} has had only one value in {self.rows} rows; it "
                                "tells nothing so far")  # fmt: skip
