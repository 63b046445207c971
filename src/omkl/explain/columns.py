"""The columns that users know, and which features of a row each of them became."""

from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from omkl.arrays import Index, Vector
from omkl.names import ID_PARTS, MADE


class InputColumn(NamedTuple):
    """A column of the user."""

    name: Hashable
    places: Index  # of its features in a row
    features: tuple[str, ...]  # what follows the column's name in the names of these features: "" for its number
    time: bool = False  # whether it holds timestamps

    def value(self, x: Vector) -> "float | str":
        """The cell that features were made of, as far as they tell.

        >>> column = InputColumn("town", np.array([0, 1, 2]), ("=north", "=south", " missing"))
        >>> column.value(np.array([0.0, 1.0, 0.0])), column.value(np.array([0.0, 0.0, 1.0]))
        ('south', 'missing')
        """
        values = x[self.places]
        for value, feature in zip(values, self.features, strict=True):
            if value == 1 and (feature.startswith("=") or feature in (" missing", " other")):
                return feature[1:]
        plain = [value for value, feature in zip(values, self.features, strict=True) if not is_mark(feature)]
        if not plain or np.isnan(plain[0]):
            return "missing" if plain else "other"
        if self.time:
            return str(np.datetime64("1970-01-01", "s") + np.timedelta64(round(86400 * float(plain[0])), "s"))
        return float(plain[0])


def is_mark(feature: str) -> bool:
    """Whether a feature is 1 where something is so and else 0."""
    return feature.startswith("=") or feature in (" missing", " other")


def columns_of(names: Sequence[Hashable], owns: Mapping[str, str], times: Collection[str] = ()) -> list[InputColumn]:
    """The columns of a row with features of these names: in the order of `owns`, others in that of their features.

    `owns` has the columns by the names of their first features, and `times` are the columns of timestamps.

    >>> found = columns_of(["size", "town=south", "town=north"], {"size": "size", "town": "town"})
    >>> [(column.name, column.places.tolist()) for column in found]
    [('size', [0]), ('town', [1, 2])]
    """
    parts: dict[Hashable, list[tuple[int, str]]] = {name: [] for name in owns.values()}
    for place, name in enumerate(names):
        own = source(str(name), owns)
        column: Hashable = name if own is None else owns[own]
        parts.setdefault(column, []).append((place, "" if own is None else suffix(str(name), own)))
    return [
        InputColumn(name, np.array([place for place, _ in some]), tuple(part for _, part in some), name in times)
        for name, some in parts.items()
        if some
    ]


def source(feature: str, owns: Collection[str]) -> str | None:
    """Which of the first features of columns a feature belongs to; `names.own_feature` sees to it that one does."""
    if feature in owns:
        return feature
    found = [feature[:k] for k, character in enumerate(feature) if character == "="]
    found += [feature.removesuffix(end) for end in MADE if feature.endswith(end)]
    found += [feature.removeprefix(part) for part in ID_PARTS if feature.startswith(part)]
    return next((own for own in found if own in owns), None)


def suffix(feature: str, own: str) -> str:
    return feature.removeprefix(own) if feature.startswith(own) else feature
