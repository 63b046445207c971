"""From a batch of a table to features, targets and keys: what one learner, or several, learn from."""

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from omkl.arrays import Index, Mask, Vector
from omkl.encoder.columns import Encoded, Encoder
from omkl.encoder.table import Batch
from omkl.estimators.id_column import CODES
from omkl.lags import ONE_SERIES, LagSettings
from omkl.notices import Notices
from omkl.stream.constants import Constants
from omkl.stream.lagged import LaggedColumns
from omkl.stream.names import listed
from omkl.stream.predictions import Targets
from omkl.stream.raw import DataError
from omkl.stream.targets import Target, known, labels
from omkl.stream.waiting import LATE, LEARN, PREDICT, WaitingRows


class Prepared(NamedTuple):
    """Rows of a table as features and targets."""

    rows: Index  # (n,)
    y: Targets
    keys: list[str] | None
    roles: Index  # (n,) LEARN, PREDICT or LATE
    positions: Index  # (n,) of each row in its series, where there are lags; of the last row where it is LATE
    encoded: Encoded  # of the rows that are not LATE

    def days(self, encoder: Encoder) -> tuple[Index, Vector] | None:
        """Rows and their times, in days since 1970, by the first column of timestamps; None if there is none."""
        own = next((column.own for column in encoder.columns.values() if column.kind == "time"), None)
        if own is None or own not in self.encoded.features:
            return None
        return self.rows[self.roles != LATE], self.encoded.features[own]


class Preparer:
    """What is known about the columns of a table, and what becomes of each.

    Parameters
    ----------
    target
        The column to predict.
    key, pending
        The column by which a target that comes later finds its row, and how many rows may wait.
    by
        The column that says whose row it is: each of its values has a model of its own.
    features, drop
        The columns that a reader is to hand on, all unless named, and those that it is not.
    lags
        Past values that are features, and how far ahead rows are predicted.
    """

    def __init__(
        self, target: Target, notices: Notices, *, key: str | None = None, pending: int = 10_000,
        by: str | None = None, date_format: str | None = None, categorical: tuple[str, ...] = (),
        features: tuple[str, ...] = (), drop: tuple[str, ...] = (), lags: LagSettings | None = None,
    ) -> None:  # fmt: skip
        if by is not None and key is not None:
            raise ValueError("--by and --key cannot be combined: the models of --by have no rows that wait")
        self.target, self.notices = target, notices
        self.key, self.by, self.features, self.drop = key, by, features, drop
        self.encoder = Encoder(notices, date_format, categorical)
        self.waiting = WaitingRows(pending, notices)
        self.constants = Constants(notices)
        self.lagged = None if lags is None else LaggedColumns(lags, notices)

    def prepare(self, batch: Batch, new_features: bool = True) -> Prepared:
        """Rows as features; targets decide the task, and new columns, categories and gaps become known if they may."""
        batch, y, keys = self.split(batch, learn=True)
        if not batch.columns and self.lagged is None:
            raise self.no_features()
        roles = np.where(known(y), LEARN, PREDICT)
        positions = origins = np.zeros(len(roles), dtype=np.int64)
        if self.key is not None and keys is not None:
            roles, origins = self.waiting.roles(known(y), keys, self.count)
        with_features = roles != LATE
        if self.by is None and self.target.task is not None:  # the models of --by have no statistics of categories
            self.encoder.codes = CODES[self.target.task]
        encoded = self.encoder.encode(batch if with_features.all() else filtered(batch, with_features), new_features)
        self.constants.look(self.encoder, encoded)
        if self.lagged is not None:
            encoded, positions = self.lagged.add(self.encoder, encoded, y, roles, origins, self.series(keys))
        return Prepared(batch.rows, y, keys, roles, positions, encoded)

    def prepare_unlearned(self, batch: Batch) -> Prepared:
        """Rows to be predicted by the model as it is: their targets are past values for the rows after them."""
        batch, y, keys = self.split(batch, learn=False)
        encoded = self.encoder.encode(batch, learn=False)
        roles, positions = np.full(len(y), PREDICT), np.zeros(len(y), dtype=np.int64)
        if self.lagged is not None:
            encoded, positions = self.lagged.add(self.encoder, encoded, y, roles, positions, self.series(keys))
            self.lagged.notify_missing(batch.rows, encoded)
        return Prepared(batch.rows, y, keys, roles, positions, encoded)

    def series(self, keys: list[str] | None) -> list[str] | None:
        """Whose past each row continues; None where there is one series."""
        return None if self.by is None else keys

    @property
    def count(self) -> int:
        """The number of rows so far, where there are lags."""
        return 0 if self.lagged is None else self.lagged.past.counts.get(ONE_SERIES, 0)

    @property
    def fills(self) -> dict[str, float]:
        """Every feature known, and its value where nothing is known."""
        if self.lagged is None:
            return self.encoder.features
        hidden = self.lagged.hidden(self.encoder)
        own = {name: fill for name, fill in self.encoder.features.items() if name not in hidden}
        return own | dict.fromkeys(self.lagged.names, np.nan)

    def split(self, batch: Batch, learn: bool) -> tuple[Batch, Targets, list[str] | None]:
        """A batch without its target and key columns, its targets, and its keys."""
        columns = dict(batch.columns)
        target = columns.pop(self.target.name, None)
        for option, name in (("--key", self.key), ("--by", self.by)):
            if name is not None and name not in columns:
                raise DataError(f"there is no column {name!r} ({option}) beside the target; the columns are "
                                f"{listed(batch.columns)}")  # fmt: skip
        keys = None
        if self.key is not None:
            given = labels(columns.pop(self.key))
            keys = [f"row {row}" if key is None else key for row, key in zip(batch.rows, given, strict=True)]
        if self.by is not None:
            given = labels(columns.pop(self.by))
            present_keys = np.array([key is not None for key in given], dtype=bool)
            if not present_keys.all():
                row = batch.rows[np.argmin(present_keys)]
                self.notices("no key", f"row {row}: {self.by!r} is empty; such rows are left out")
                batch = filtered(batch, present_keys)
                columns = {name: batch.columns[name] for name in columns}
                target = batch.columns.get(self.target.name)
            keys = [key for key in given if key is not None]
        if target is None:
            target = pa.nulls(len(batch.rows), pa.string())
        return Batch(batch.rows, columns), self.target.read(target, learn), keys

    def plain_numbers(self) -> set[str]:
        """Columns that a reader may parse as numbers straight away."""
        names = self.encoder.plain_numbers()
        target = self.target
        plain = target.task == "regression" and target.comma is None and not target.with_booleans
        return names | {target.name} if plain else names

    def no_features(self) -> DataError:
        return DataError(f"there is no column to learn {self.target.name!r} from; give at least one more")


def filtered(batch: Batch, mask: Mask) -> Batch:
    arrow_mask = pa.array(mask)
    return Batch(batch.rows[mask], {name: array.filter(arrow_mask) for name, array in batch.columns.items()})
