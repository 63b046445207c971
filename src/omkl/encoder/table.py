"""Rows of a table, column by column, whatever they came from."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from omkl.arrays import Index


class Batch(NamedTuple):
    """Rows as they were parsed: text, numbers or whatever the file holds."""

    rows: Index  # (n,) their numbers, from 1
    columns: dict[str, pa.Array]

    def only(self, wanted: Callable[[str], bool]) -> "Batch":
        """The same rows with fewer columns."""
        return Batch(self.rows, {name: array for name, array in self.columns.items() if wanted(name)})

    def at(self, rows: Index, names: Iterable[str]) -> dict[str, pa.Array]:
        """The cells of some of these rows, by their numbers, in these columns; empty where a column is absent."""
        place = pa.array(np.searchsorted(self.rows, rows))
        return {name: self.columns.get(name, pa.nulls(len(self.rows), pa.string())).take(place) for name in names}
