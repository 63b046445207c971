"""Single rows of cells that are like those before them, as features, without the cost of making a table of each."""

import datetime
from collections.abc import Mapping
from typing import Literal, NamedTuple

import numpy as np

from omkl.encoder.categories import bucket_of
from omkl.encoder.cells import NULLS, calendar_features, day_of

LARGEST = 1e100  # a number beyond it is treated as missing
OTHER_WORDS = {"true", "false", "inf", "infinity", *(word.lower() for word in NULLS)}  # that are not text


class Plan(NamedTuple):
    """How a cell of one column becomes features."""

    kind: Literal["number", "text", "time"]
    own: str  # the feature of a number or a timestamp
    present: dict[str, float]  # a feature that says that the cell is not empty, where some are
    empty: dict[str, float] | None  # features of an empty cell; None while there was none
    texts: dict[str, dict[str, float]]  # features of each category
    rest: dict[str, float] | None  # of other text; None where it needs a closer look
    by_hash: tuple[str, ...]  # features whose value is the bucket of the text

    def of(self, cell: object) -> dict[str, float] | None:
        """The features of a cell; None where it needs a closer look."""
        try:
            if cell is None or cell != cell:
                return self.empty
        except (TypeError, ValueError):  # pandas.NA, or an array
            return None
        if self.kind == "number":
            if type(cell) in (float, int, bool) and abs(cell) <= LARGEST:  # type: ignore[arg-type]  # a number
                return {self.own: float(cell), **self.present}  # type: ignore[arg-type]  # a number
        elif self.kind == "text":
            if type(cell) in (str, int):
                text = str(cell)
                features = self.texts.get(text) or (self.rest if plainly_text(text) else None)
                if features is None or not self.by_hash:
                    return features
                return features | dict.fromkeys(self.by_hash, float(bucket_of(text)))
        elif type(cell) is datetime.datetime:
            parts = calendar_features(np.array([day_of(cell)]))
            return {f"{self.own}:{part}" if part else self.own: float(v[0]) for part, v in parts.items()} | self.present
        return None


def plainly_text(text: str) -> bool:
    """Whether text cannot be a number, a timestamp or a word for an empty cell, and has no space around it."""
    return text[:1].isalpha() and text.isprintable() and text == text.strip() and text.lower() not in OTHER_WORDS


QuickCells = Mapping[str, dict[str, float] | None]  # the features of each column; None where it needs a closer look
NO_CELLS: QuickCells = {}


def quick_cells(plans: dict[str, Plan | None], x: Mapping[str, object]) -> QuickCells:
    """The features of the columns of a row that need no closer look. Missing numbers are left out."""
    return {name: None if plan is None else plan.of(x.get(name)) for name, plan in plans.items()}


def quick_row(plans: dict[str, Plan | None], x: Mapping[str, object]) -> dict[str, float] | None:
    """The features of a row; None where a cell needs a closer look. Missing numbers are left out."""
    out: dict[str, float] = {}
    for name, plan in plans.items():
        features = None if plan is None else plan.of(x.get(name))
        if features is None:
            return None
        out.update(features)
    return out
