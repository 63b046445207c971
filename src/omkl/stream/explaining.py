"""Explanations of the models of the command line, one for all rows or one per key."""

from collections.abc import Hashable, Sequence

import numpy as np

from omkl.arrays import Matrix
from omkl.encoder import Batch
from omkl.estimators.core import Core
from omkl.estimators.explaining import Importance, by_column, view_of
from omkl.explain import Change, Effect, Expert, Explanation, View, changes_of, effect, experts_of, explain, importance
from omkl.explain.background import spread
from omkl.explain.columns import InputColumn, columns_of
from omkl.stream.keyed import ModelPerKey
from omkl.stream.learner import SingleModel
from omkl.stream.model import StreamModel
from omkl.stream.predictions import as_numbers
from omkl.stream.raw import DataError

MOST_KEYS = 16  # by whose models the importance of columns is judged


def explain_rows(model: StreamModel, batch: Batch) -> Explanation:
    """The contributions of columns, and of lags, to the predictions for these rows from the model as it is."""
    learner = model.learner
    if model.learned == 0 or learner is None:
        raise DataError("the model has learned no row yet; there is nothing to explain")
    rows, _, keys, _, _, encoded = model.following().preparer.prepare_unlearned(batch)
    X = np.column_stack([np.empty((len(rows), 0)), *(encoded.features[name] for name in learner.names)])
    if isinstance(learner, SingleModel) and learner.core is not None:
        core = learner.core
        with core.lock:
            return explain(view(model), core.with_ids(core.rows_of(learner.names, X)))
    return joined([explain(view(model, key), x[None]) for key, x in zip(keys or (), X, strict=True)])


def joined(parts: Sequence[Explanation]) -> Explanation:
    """Explanations of one row each, or more, as one."""
    if not parts:
        return Explanation(np.empty(0), np.empty((0, 0)), np.empty(0), [], [], [])
    return Explanation(
        np.concatenate([part.base for part in parts]),
        np.concatenate([part.contributions for part in parts]),
        np.concatenate([part.predictions for part in parts]),
        parts[0].columns, [row for part in parts for row in part.values], parts[0].outputs,
    )  # fmt: skip


def view(model: StreamModel, key: str | None = None) -> View:
    """The model, or that of a key, as explanations see it."""
    learner = model.learner
    if isinstance(learner, SingleModel) and learner.core is not None:
        return view_of(learner.core, columns=columns(model, learner.core.names))
    if not isinstance(learner, ModelPerKey) or not learner.fleet:
        raise DataError("the model has learned no row yet; there is nothing to explain")
    found = columns(model, learner.names)
    if not learner.pooled:
        if key not in learner.fleet:
            raise DataError(f"no row of key {key!r} has been learned; there is nothing to explain")
        core: Core = learner.fleet[key].core_  # type: ignore[index]  # it is not pooled
        return view_of(core, columns=found)
    pool = learner.first_core()
    assert pool is not None

    def predict(X: Matrix) -> Matrix:
        return as_numbers(learner.predict(X, [key or ""] * len(X), ()).y_pred)[:, None]

    return view_of(pool, columns=found)._replace(predict=predict)


def columns(model: StreamModel, names: Sequence[Hashable]) -> list[InputColumn]:
    """The columns that features of these names were made of."""
    encoded = model.encoder.columns
    owns = {column.own: name for name, column in encoded.items()}
    return columns_of(names, owns, {name for name, column in encoded.items() if column.kind == "time"})


def importance_of(model: StreamModel, rows: int | None = None) -> Importance:
    """By column, as `importance_` of estimators; of models per key the mean over some keys."""
    learner = model.learner
    if isinstance(learner, ModelPerKey) and learner.fleet and not learner.pooled:
        keys = [str(key) for key in learner.fleet]
        views = [view(model, keys[k]) for k in spread(len(keys), MOST_KEYS)]
        return by_column(views[0], np.mean([importance(each, rows) for each in views], axis=0))
    found = view(model)
    return by_column(found, importance(found, rows))


def effect_of(model: StreamModel, column: Hashable, coverage: float, key: str | None = None) -> Effect:
    """The effect of a column, on the predictions of a key where each has a model."""
    return effect(view(model, key), column, coverage)


def experts(model: StreamModel) -> list[Expert]:
    """All experts with their weights, the largest first; none of models per key."""
    core = model.learner.core if isinstance(model.learner, SingleModel) else None
    if core is None:
        return []
    return experts_of(core.online, core.settings.all_kernels, core.kernel_weights().mean(axis=0))


def last_changes(model: StreamModel) -> list[Change]:
    """The last change, if there was any; none of models per key."""
    core = model.learner.core if isinstance(model.learner, SingleModel) else None
    if core is None:
        return []
    places = {place: column.name for column in columns(model, core.names) for place in column.places.tolist()}
    return changes_of(core.online, [places[k] for k in range(len(places))])
