"""What the estimators of both APIs say about what they have learned."""

import copy
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from omkl.arrays import Array, Matrix, Vector
from omkl.estimators.core import Core, LabelCore
from omkl.estimators.cores import AnyCore, core_of
from omkl.estimators.outputs import OutputsCore
from omkl.estimators.rows import Cells, NotANumber, check_row
from omkl.estimators.tables import features_of
from omkl.estimators.tally import tally_of
from omkl.explain import Change, Effect, Expert, Explanation, View, effect, experts_of, explain, importance
from omkl.explain.background import background_of
from omkl.explain.columns import InputColumn

Importance = dict[Any, Any]  # by column a number; with several targets one such dictionary for each of them


class Explaining:
    """Explanations of an estimator that has a core."""

    def explain(self, X: Any, background: Any = None) -> Explanation:
        """How much each column contributes to the prediction for each row; base value and contributions sum to it.

        X has the rows as `predict` takes them, or one row as a dictionary. `background` has the rows that they are
        compared with; by default those that the model keeps, or is made to know by its statistics. Contributions are
        estimates of Shapley values, made from several hundred predictions for each row.
        """
        core = self._explained()
        with core.lock:
            return explain(self._view(background), core.with_ids(self._explained_rows(X)))

    def effect(self, column: Hashable, coverage: float = 0.8, background: Any = None) -> Effect:
        """The mean prediction by the value of one column, and the interval that holds `coverage` of the predictions."""
        with self._explained().lock:
            return effect(self._view(background), column, coverage)

    def importance(self, background: Any = None) -> Importance:
        """How much of the predictions each column accounts for, the largest first: `importance_` for these rows."""
        with self._explained().lock:
            view = self._view(background)
            return by_column(view, importance(view))

    @property
    def importance_(self) -> Importance:
        """By column, how much it accounts for in the predictions for rows that the model keeps, the largest first.

        This is the root mean square of the change when the column is that of another row, divided by the square root
        of 2: for a column that acts alone the standard deviation of what it adds, in units of the target. With labels
        the changes of all probabilities are added up; with several targets there is a dictionary for each. Computed
        when it is asked for, from a prediction for each row and column.
        """
        return self.importance()

    @property
    def experts_(self) -> list[Expert]:
        """All parts of the prediction by name, with their weights at present, the largest first."""
        core = self._explained()
        with core.lock:
            return experts_of(core.online, core.settings.all_kernels, core.kernel_weights().mean(axis=0))

    @property
    def changes_(self) -> list[Change]:
        """Changes of the stream that new experts were the answer to: when they were noticed, and what had changed.

        Those since the estimator was made, as seen at calls that are 250 rows apart and by this one, and of a model
        from a file also the last one before. A change is listed once the new experts have proved better.
        """
        tally = tally_of(self)
        tally.follow(self._explained(), least=1)
        return list(tally.events)

    def _explained(self) -> AnyCore | OutputsCore:
        core = core_of(self)
        if core is None:
            raise ValueError("the model has learned no row yet; there is nothing to explain")
        return core

    def _view(self, background: Any) -> View:
        core = self._explained()
        return view_of(core, None if background is None else self._explained_rows(background), self._output_order())

    def _explained_rows(self, X: Any) -> Matrix:
        """Rows, or one as a dictionary, as features."""
        if isinstance(X, Mapping):
            return features_of_row(self._explained(), X)
        return self._rows_to_explain(X)

    def _rows_to_explain(self, X: Any) -> Matrix:
        """Rows of an array or a frame, as features."""
        raise NotImplementedError

    def _output_order(self) -> Array | None:
        """The labels in the order of the probabilities, where it is not that in which they came."""
        return None


def view_of(
    core: Core, background: Matrix | None = None, classes: Array | None = None,
    columns: Sequence[InputColumn] | None = None,
) -> View:  # fmt: skip
    """A core as explanations see it; hold its lock, so that all predictions are of one moment.

    `columns` are those that its features were made of, where it does not know them itself.
    """
    columns = core.input_columns() if columns is None else columns
    if background is None:
        background = background_of(core.online, core.inputs, columns)
        if background is None:
            raise ValueError(f"{core.learner} with scale={'online' if core.inputs else 'none'!r} keeps no rows to "
                             "compare with; give some as background=")  # fmt: skip
    elif len(background):
        background = core.with_ids(background)
    if not len(background):
        raise ValueError("there are no rows to compare with; give some as background=, or learn some first")
    plain = copy.copy(core)
    plain.ids = None  # rows have their statistics already, and each column changes with its own
    if isinstance(plain, LabelCore):
        labels = plain.labels if classes is None else classes.tolist()
        return View(lambda X: plain.probabilities(X, classes), columns, background, labels, labels=True)
    if isinstance(plain, OutputsCore):
        return View(plain.predict, columns, background, plain.outputs)
    return View(lambda X: plain.predict(X)[:, None], columns, background)  # type: ignore[attr-defined]  # a NumberCore


def features_of_row(core: Core, x: Cells) -> Matrix:
    """(1, features): a dictionary of cells, for a prediction."""
    if core.encoder is not None:
        row = core.encoder.row(x, learn=False)
        return core.rows_of(list(row), np.array([list(row.values())]))
    try:
        return core.rows_of(list(x), check_row(x)[None])
    except NotANumber:
        from omkl.encoder import of_row

        return features_of(core, of_row(x))


def by_column(view: View, found: Matrix) -> Importance:
    """Importances as users see them: (columns, outputs) of labels as one number, of several targets as several."""
    names = [column.name for column in view.columns]

    def sorted_by_value(values: Vector) -> dict[Hashable, float]:
        return dict(sorted(zip(names, map(float, values), strict=True), key=lambda pair: -pair[1]))

    if not view.outputs or view.labels:
        return sorted_by_value(np.sqrt((found**2).sum(axis=1)))
    return {name: sorted_by_value(found[:, k]) for k, name in enumerate(view.outputs)}
