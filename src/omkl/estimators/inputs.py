"""Named inputs: rows as dictionaries or matrices of features, their scaling, and features that become known later."""

import warnings
from collections.abc import Hashable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from omkl.algorithms.base import AlgorithmSettings
from omkl.arrays import Matrix, Vector
from omkl.engine import gather, gather_indexed
from omkl.errors import SharedFeaturesWarning
from omkl.estimators.columns import Columns, problem_of
from omkl.estimators.ids import WithIds
from omkl.estimators.rows import Cells, NotANumber, Row, as_row, check_row, encoder_after, in_order, not_a_number
from omkl.lock import Locked, ModelLock, locked
from omkl.online import Online
from omkl.scaling import InputScaler

if TYPE_CHECKING:
    from omkl.encoder import Encoder

NOT_FILLED: Mapping[Any, float] = MappingProxyType({})


class NamedInputs(WithIds, Locked):
    """The features of a core, and its learners, which grow with them."""

    learner: str
    settings: AlgorithmSettings
    seed: int
    inputs: InputScaler | None
    online: Online
    encoder: "Encoder | None" = None  # makes features of cells, once there were others than numbers
    _not_copied: ClassVar[tuple[str, ...]] = ("_lock", "_raw", "_row", "_missing")

    def _set_up(self) -> None:
        self._lock = ModelLock()
        self._raw, self._row = np.empty(self.columns.number), np.empty(self.columns.number)
        self._missing = self.missing

    @property
    def learners(self) -> list[Online]:
        """Everything that learns."""
        return [self.online]

    @property
    def names(self) -> tuple[Hashable, ...]:
        """The features known so far."""
        return self.columns.names

    def _problem(self, columns: Columns) -> Any:
        return problem_of(self.learner, self.settings, columns, self.seed)

    @property
    def missing(self) -> float:
        """What stands for a feature that a row does not have."""
        return np.nan if self.inputs is not None or self.online.shape.missing else 0.0

    @property
    def lock(self) -> ModelLock:
        """Whoever needs several calls to see one moment holds it."""
        return self._lock

    def __setstate__(self, attributes: dict[str, object]) -> None:
        self.__dict__.update(attributes)
        self._set_up()

    def row(self, x: Cells, learn: bool) -> Vector:
        """The values of a dictionary of cells, in the order of `names`, scaled. With `learn` new ones become known.

        A missing feature counts as its running mean, or as 0 where inputs are not scaled.
        """
        if type(x) is not dict:
            x = as_row(x)
        if self.encoder is not None:
            return self._table_features(self.encoder.row(x, learn), learn)
        if self.ids is None and not self.columns.room:  # as below, for known numbers; a call less for most rows
            names = self.columns.names
            if self.inputs is None:
                if gather(x, names, self._missing, self._raw) == len(x):
                    return self._raw
            elif self.inputs.transform_dict(x, names, self._raw, self._row) == len(x):
                return self._row
        try:
            if self.ids is None:
                return self._features(x, learn)
            check_row(x)  # features, numbers, of an encoder that others have, as Lags do
            return self._table_features(x, learn)
        except NotANumber:
            encoder = encoder_after(self.columns.own, self.codes)
            features = encoder.row(x, learn)
            if learn:
                self.columns, self.encoder = self.columns.as_text(), encoder
            return self._table_features(features, learn)

    def _table_features(self, x: Row, learn: bool) -> Vector:
        """The same for features that an encoder has made."""
        if self.ids is None:
            row = self._features(x, learn)
            if self.ids is None:  # still, with what is new in this row
                return row
        elif learn:
            self._add_new(x)
        return self._features(self.row_with_ids(x), learn)

    def _features(self, x: Row, learn: bool) -> Vector:
        """The same for a dictionary of numbers."""
        names = self.columns.names
        if self.columns.room:
            return self._row_of_many(x, learn)
        if self.inputs is None:
            found, row = gather(x, names, self.missing, self._raw), self._raw
        else:
            found, row = self.inputs.transform_dict(x, names, self._raw, self._row), self._row
        if found < 0:
            raise not_a_number(x, names[-1 - found])
        if learn and found < len(x):
            check_row(x)
            self._add_new(x)
            return self._features(x, learn)
        return row

    def _add_new(self, x: Row) -> None:
        self.add_features(x, {} if self.encoder is None else self.encoder.features)

    def _row_of_many(self, x: Row, learn: bool) -> Vector:
        """The same where features are looked up by name, since a row has few of them."""
        found = gather_indexed(x, self.columns.index, self.missing, self._raw)
        if found < 0:
            raise not_a_number(x, list(x)[-1 - found])
        if found < len(x) and (learn or self.columns.full):
            values = check_row(x)
            if learn:
                self._add_new(x)
            self._raw.fill(self.missing)
            self.columns.fill(self._raw, x, values.tolist())
        if self.inputs is None:
            return self._raw
        self.inputs.transform_row(self._raw, self._row)
        return self._row

    @locked
    def add_features(self, names: Iterable[Hashable], fills: Mapping[Any, float] = NOT_FILLED) -> None:
        """Make the features of a row known: a problem with a column for each of them, the state grown to fit.

        Once there are many, features are given columns made ahead, those that came after the first rows for ever: to
        add one by its name changes what the random features of all others are. `fills` has the values of features that
        stand for something where nothing is known, as 0 does for a category: where there are such, all features of the
        first rows are added by their names, however many they are. What the features are decides, not how they came:
        all interfaces give the same. An error, such as too little memory, leaves everything as it was.
        """
        names = set(names)
        if not (new := in_order({name for name in names if self.columns.place(name) is None})):
            return
        rows = None if self.columns.room else self._all_rows()
        by_name = rows is not None or self.online.algorithm.widened is None
        if by_name and not (
            self.columns.room or all(np.isnan(fills.get(name, np.nan)) for name in (*self.names, *new))
        ):
            columns = self.columns.with_names(new)
        elif rows is None:
            columns = self.columns.with_late(new)
        else:
            columns = self.columns.with_often(new, names, rows[0][0])
        if columns.sharing > self.columns.sharing:
            warnings.warn(SharedFeaturesWarning.of(columns.limits.own, columns.limits.shared), stacklevel=5)
        if columns.number == self.columns.number:
            self.columns = columns
        elif rows is None:
            self._grow(columns)
        else:
            self._learn_again(columns, fills, rows)
        self._add_ids([name for name in new if name in fills])

    def _grow(self, columns: Columns) -> None:
        """Continue with these columns, which begin with those that there are."""
        widened = None if columns.named > self.columns.named else self.online.algorithm.widened
        problem = self._problem(columns) if widened is None else widened(self.online.problem, columns.room)
        grown = [online.with_problem(problem) for online in self.learners]
        inputs = None if self.inputs is None else self.inputs.extended(columns.number - self.columns.number)
        raw, row = np.empty(columns.number), np.empty(columns.number)
        for online, longer in zip(self.learners, grown, strict=True):
            online.become(longer)
        self.columns, self.inputs, self._raw, self._row = columns, inputs, raw, row

    def _all_rows(self) -> list[tuple[Matrix, Vector, Vector]] | None:
        """(X, y, weights) of all rows so far, for each learner; None if these are no longer stored."""
        stored = []
        for online in self.learners:
            if (rows := online.look(online.algorithm.first_rows)) is None:
                return None
            stored.append(rows)
        return stored

    def _learn_again(
        self, columns: Columns, fills: Mapping[Any, float], rows: list[tuple[Matrix, Vector, Vector]]
    ) -> None:
        """Continue as if there had been these columns from the start: all rows so far are learned again."""
        first = Online(self.learner, self._problem(columns), self.seed)
        again = [first, *(first.fresh_copy(self.seed) for _ in rows[1:])]
        for after, online, (X, y, weight) in zip(again, self.learners, rows, strict=True):
            wider = np.full((len(X), columns.number), self.missing)
            columns.fill(wider.T, fills.keys(), fills.values())
            columns.fill(wider.T, self.names, X.T)
            after.run_unchecked(wider, y, weight)
            if after.t < online.t:  # rows of weight 0 are not stored
                end = after.checkpoint()
                after.restore(end._replace(state=end.state._replace(t=online.t)))
        raw, row = np.empty((2, columns.number))
        for online, after in zip(self.learners, again, strict=True):
            online.become(after)
        self.columns, self._raw, self._row = columns, raw, row

    def rows_of(self, names: Sequence[Hashable], X: Matrix) -> Matrix:
        """Rows as a core learns and predicts them, from rows of these features."""
        return self.columns.rows_of(names, X, self.missing)

    def scaled(self, X: Matrix) -> Matrix:
        return X if self.inputs is None else self.inputs.transform(X)
