"""Weights of rows by their label: given for each label, or such that all labels have the same weight in total."""

import math
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Self

import numpy as np

from omkl.arrays import Vector
from omkl.persist import Json, demand, plain
from omkl.validation import LARGEST_WEIGHT, is_label, is_number, require

ClassWeight = Mapping[Hashable, float] | Literal["balanced"] | None
WANTED = f"None, 'balanced', or a weight from 0 to {LARGEST_WEIGHT:g} for each label, such as {{'yes': 5, 'no': 1}}"


def checked_class_weight(given: object) -> ClassWeight:
    """What a user gave as `class_weight`, with labels as they are learned."""
    if given is None or given == "balanced":
        return given
    require(isinstance(given, Mapping), "class_weight", WANTED, given)
    assert isinstance(given, Mapping)
    out: dict[Hashable, float] = {}
    for label, weight in given.items():
        name = label.item() if isinstance(label, np.generic) else label
        require(is_label(name), "class_weight", f"{WANTED}; a label is a string, a number or a boolean", given)
        require(is_number(weight) and 0 <= weight <= LARGEST_WEIGHT, "class_weight", WANTED, given)
        out[name] = float(weight)
    return out


def check_labels(given: ClassWeight, labels: Collection[Hashable]) -> None:
    """Refuse weights of labels that do not exist while others have none, as scikit-learn does."""
    if given is None or given == "balanced":
        return
    without, unknown = [each for each in labels if each not in given], [each for each in given if each not in labels]
    if without and unknown:
        raise ValueError(
            f"class_weight has weights of {unknown}, which are no labels, and none of {without}; name the labels as "
            f"they are in y, {list(labels)}"
        )


@dataclass
class ClassWeights:
    """The weight of each label. "balanced" counts the rows of each label so far, a row as often as its weight says.

    >>> weights = ClassWeights("balanced")
    >>> [round(weights.of_row(label, 1.0), 3) for label in ("no", "no", "yes", "no")]
    [1.0, 1.0, 1.5, 0.667]
    """

    given: ClassWeight = None
    counts: dict[Hashable, float] = field(default_factory=dict)  # of the labels that have come

    def copy(self) -> Self:
        return replace(self, counts=dict(self.counts))

    def fresh(self) -> Self:
        """The same before the first row."""
        return replace(self, counts={})

    def replaced(self, given: ClassWeight, labels: Collection[Hashable]) -> Self:
        """With other weights, from the next row on; rows are counted from there if they were not before."""
        if given == self.given:
            return self
        weights = checked_class_weight(given)
        check_labels(weights, labels)
        return replace(self, given=weights, counts=dict(self.counts))

    def of_all(self, y: Sequence[Hashable], weight: Vector | None) -> tuple[Self, Vector | None]:
        """The weights of rows that are all known beforehand, by the number of rows of each label; and these numbers."""
        out = self.fresh()
        if self.given is None:
            return out, weight
        rows = list(zip(y, [1.0] * len(y) if weight is None else weight.tolist(), strict=True))
        for label, own in rows:
            out.count(label, own)
        found = np.array([out.weighted(label, own) for label, own in rows])
        require(bool(found.any()), "class_weight", "above 0 for a label in y", self.given)
        return out, found

    def count(self, label: Hashable, weight: float) -> None:
        """A row with this label and this weight of its own."""
        if self.given == "balanced" and weight > 0:
            self.counts[label] = self.counts.get(label, 0.0) + weight

    def weighted(self, label: Hashable, weight: float) -> float:
        """The weight of such a row, which has been counted."""
        if self.given is None or weight == 0:
            return weight
        if isinstance(self.given, Mapping):
            of_label = self.given.get(label, 1.0)
        else:  # the exact sum does not depend on the order in which labels came
            of_label = math.fsum(self.counts.values()) / (len(self.counts) * self.counts[label])
        return min(weight * of_label, LARGEST_WEIGHT)

    def of_row(self, label: Hashable, weight: float) -> float:
        """The weight of the next row, with this label and this weight of its own."""
        self.count(label, weight)
        return self.weighted(label, weight)

    def of_rows(self, y: Sequence[Hashable], weight: Vector | None) -> Vector | None:
        """The same for one row after the other."""
        if self.given is None:
            return weight
        own = [1.0] * len(y) if weight is None else weight.tolist()
        return np.array([self.of_row(label, each) for label, each in zip(y, own, strict=True)])

    def renamed(self, names: Mapping[Hashable, str]) -> Self:
        """The same for labels under other names; weights of labels that are not known keep theirs, as text."""
        given = self.given
        if isinstance(given, Mapping):
            given = {names.get(label, str(label)): weight for label, weight in given.items()}
        return replace(self, given=given, counts={names[label]: n for label, n in self.counts.items()})

    def encode_counts(self, labels: Sequence[Hashable]) -> list[float]:
        return [self.counts.get(label, 0.0) for label in labels]

    def decode_counts(self, body: Json, labels: Sequence[Hashable]) -> None:
        right = isinstance(body, list) and len(body) == len(labels)
        demand(
            right and all(is_number(n) and n >= 0 for n in body), "rows of labels must be counts, one for each label"
        )
        self.counts = {label: float(n) for label, n in zip(labels, body, strict=True) if n > 0}


def encode_class_weight(given: ClassWeight) -> Json:
    """As JSON: labels keep their type."""
    return [[plain(label), weight] for label, weight in given.items()] if isinstance(given, Mapping) else given


def decode_class_weight(body: Json) -> ClassWeight:
    if isinstance(body, list):
        demand(all(isinstance(pair, list) and len(pair) == 2 for pair in body), "weights of labels must be pairs")
        body = dict(body)
    return checked_class_weight(body)
