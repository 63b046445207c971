"""Lags of a table: past targets and inputs become features beside those of the encoder."""

import re
from itertools import pairwise

import numpy as np

from omkl.arrays import Index, Matrix
from omkl.encoder.columns import Encoded, Encoder
from omkl.estimators.lagged import hidden_features, lagged_values
from omkl.lags import LARGEST_LAG, LagSettings, Past
from omkl.notices import Notify
from omkl.stream.names import listed
from omkl.stream.predictions import Targets, as_numbers
from omkl.stream.raw import DataError
from omkl.stream.waiting import LATE

_LAGS = re.compile(r"\s*(\d+)\s*(?:-\s*(\d+)\s*)?")


class LaggedColumns:
    """Adds lags to the rows of a table, and knows the last values."""

    def __init__(self, settings: LagSettings, notify: Notify) -> None:
        self.settings, self.notify = settings, notify
        self.past = Past(settings)
        self.names = tuple(feature.name for feature in settings.features)

    def add(
        self, encoder: Encoder, encoded: Encoded, y: Targets, roles: Index, origins: Index, keys: list[str] | None
    ) -> tuple[Encoded, Index]:
        """Rows with their lags, and the position of each in its series.

        A row that brings a late target has the position of the last row before it; `origins` has that of its own row.
        """
        if y.dtype == object:
            raise DataError("--lags are past numbers, and the target holds labels (--task regression if it does not)")
        with_features = roles != LATE
        values = self._values(encoder, encoded, as_numbers(y)[with_features])
        for name in self.names:
            if name in encoded.features:
                raise DataError(f"the column {name!r} has the name of a lag; rename it, or leave it out with --drop")
        new = not self.past.counts
        positions = np.empty(len(roles), dtype=np.int64)
        lagged = np.empty((len(values), len(self.names)))
        place = np.cumsum(with_features)  # how many rows with features come up to each
        for first, last in _runs(with_features):
            rows = slice(int(place[first]) - 1, int(place[last - 1])) if with_features[first] else slice(0, 0)
            if with_features[first]:
                own_keys = None if keys is None else keys[first:last]
                positions[first:last], lagged[rows] = self.past.follow(values[rows], own_keys)
            else:
                for row in range(first, last):
                    positions[row] = self.past.arrive(int(origins[row]), float(y[row]))
        hidden = self.hidden(encoder)
        features = {name: array for name, array in encoded.features.items() if name not in hidden}
        arrivals = {name: row for name, row in encoded.arrivals.items() if name not in hidden}
        for k, name in enumerate(self.names):
            features[name] = np.ascontiguousarray(lagged[:, k])
            if new:
                arrivals[name] = 0
        self._notify_known_ahead(encoder)
        return Encoded(features, arrivals), positions

    def hidden(self, encoder: Encoder) -> set[str]:
        """Features of lagged columns whose value in the row itself is not used."""
        return hidden_features(self.settings, encoder)

    def _values(self, encoder: Encoder, encoded: Encoded, y: Matrix) -> Matrix:
        """(rows, 1 + columns): the target and the lagged columns as numbers."""
        try:
            return lagged_values(self.settings, encoder, encoded.features, y, "--lag-columns")
        except ValueError as error:
            raise DataError(str(error)) from None

    def _notify_known_ahead(self, encoder: Encoder) -> None:
        own = [name for name, column in encoder.columns.items()
               if column.kind in ("number", "category") and name not in self.settings.replaced]  # fmt: skip
        if own and self.settings.horizon > 1:
            self.notify("ahead", f"{listed(own)}: the value of the row itself is used, as if it were known "
                        f"{self.settings.horizon} rows ahead; --lag-columns uses past values instead")  # fmt: skip

    def notify_missing(self, rows: Index, encoded: Encoded) -> None:
        """Say from which row on there is no last value to predict from."""
        if self.settings.lags and (missing := np.isnan(encoded.features[self.names[0]])).any():
            self.notify("no lags", f"row {rows[np.argmax(missing)]}: lag {self.settings.lags[0]} is missing, as in all "
                        "rows further ahead of the last target than the horizon of the model, "
                        f"{self.settings.horizon}; their predictions are worse")  # fmt: skip


def _runs(mask: Index) -> list[tuple[int, int]]:
    edges = [0, *(np.flatnonzero(np.diff(mask)) + 1).tolist(), len(mask)]
    return [(first, last) for first, last in pairwise(edges) if first < last]


def parse_lags(option: str, text: str, least: int = 1) -> list[int]:
    """Lags as they are written: whole numbers and ranges of them.

    >>> parse_lags("--lags", "1-3,24")
    [1, 2, 3, 24]
    """
    lags: list[int] = []
    for part in text.split(","):
        found = _LAGS.fullmatch(part)
        first, last = (0, -1) if found is None else (int(found[1][:9]), int((found[2] or found[1])[:9]))
        if not least <= first <= last <= LARGEST_LAG:
            raise ValueError(f"{option} must be whole numbers from {least} to {LARGEST_LAG}, such as 1,2,24 or 1-24, "
                             f"got {part or text!r}")  # fmt: skip
        lags += range(first, last + 1)
    return lags


def parse_lag_settings(
    lags: str | None, columns: tuple[str, ...], horizon: int | None, target: str
) -> LagSettings | None:
    """The settings that `--lags`, `--lag-columns` and `--horizon` describe; None without them.

    >>> parse_lag_settings("1,2", ("temp,wind", "rain=0,24"), 24, "load").columns
    {'temp': (1, 2), 'wind': (1, 2), 'rain': (0, 24)}
    """
    if lags is None and not columns:
        if horizon is not None:
            raise ValueError("--horizon is for --lags: which past values to predict from, such as --lags 1,2,24")
        return None
    own = [] if lags is None else parse_lags("--lags", lags)
    by_column: dict[str, list[int]] = {}
    for text in columns:
        name, sign, given = text.partition("=")
        if not sign and not own:
            raise ValueError(f"--lag-columns {text} needs lags: --lags 1,24, or --lag-columns {text}=1,24")
        for each in [name] if sign else text.split(","):
            by_column[each] = parse_lags(f"--lag-columns {each}", given, 0) if sign else own
    if target in by_column:
        raise ValueError(f"--lag-columns names {target!r}, the target; --lags are its lags")
    return LagSettings.make(own, by_column, 1 if horizon is None else horizon)
