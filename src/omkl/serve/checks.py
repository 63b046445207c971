"""Whether a model can learn what a request brings: asked before the request is logged."""

import copy
from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from omkl.encoder.table import of_cells
from omkl.serve.bodies import Row, shown
from omkl.serve.commands import Command
from omkl.serve.limits import Limits, Refused, invalid
from omkl.stream.keyed import ModelPerKey
from omkl.stream.model import StreamModel
from omkl.stream.names import listed, suggestion
from omkl.stream.targets import MAX_LABELS, labels
from omkl.validation import LARGEST_TARGET

MOST_ACCEPTED = 1_000


def wanted_columns(model: StreamModel, names: Iterable[str]) -> set[str]:
    """Those that the model learns from, or needs for that."""
    preparer = model.preparer
    own = {preparer.target.name, preparer.by, preparer.key}
    if preparer.lagged is not None:
        own |= set(preparer.lagged.settings.columns)
    features = set(preparer.features)
    return {name for name in names if name in own
            or ((not features or name in features) and name not in preparer.drop)}  # fmt: skip


class Accepted:
    """Sets of columns that were found to be those of rows which a model can learn, as long as it has no others."""

    def __init__(self) -> None:
        self.known = -1
        self.names: set[frozenset[str]] = set()

    def of(self, model: StreamModel) -> set[frozenset[str]]:
        """Those that are still accepted."""
        if self.known != len(model.encoder.columns) or len(self.names) > MOST_ACCEPTED:
            self.known, self.names = len(model.encoder.columns), set()
        return self.names


def check(model: StreamModel, command: Command, limits: Limits, accepted: Accepted) -> None:
    """Refuse what the model cannot learn, with the reason."""
    if command.kind == "forget":
        check_key(model, command.key)
    elif command.kind == "labels":
        check_labels(model, command)
    else:
        check_rows(model, command, limits, accepted.of(model))


def check_key(model: StreamModel, key: str) -> None:
    """Refuse to forget a key that there is not."""
    if model.preparer.by is None:
        raise Refused(409, "this is one model for all rows, not one per key; there is no key to forget")
    fleet = model.learner.fleet if isinstance(model.learner, ModelPerKey) else None
    if fleet is None or key not in fleet:
        raise Refused(404, f"no row of key {shown(key)} has been learned")


def check_labels(model: StreamModel, command: Command) -> None:
    """Refuse delayed targets where no row can wait, and those that cannot be learned."""
    if model.preparer.key is None:
        what = "models per key have no rows that wait" if model.preparer.by else "start it with --key COLUMN"
        raise Refused(409, f"this model has no key by which a delayed target finds its row; {what}")
    keys = [row["key"] for row in command.rows]
    if len(set(keys)) < len(keys):
        twice = next(key for key in keys if keys.count(key) > 1)
        raise invalid(f"key {shown(twice)} comes twice; a row has one target")
    check_targets(model, [row["target"] for row in command.rows], all_known=True)


def check_rows(model: StreamModel, command: Command, limits: Limits, accepted: set[frozenset[str]]) -> None:
    """Refuse rows without what the model needs, or with more than it may have."""
    rows: list[Iterable[str]] = list(command.rows) if command.arrays is None else [command.arrays]
    sets = dict.fromkeys(frozenset(names) for names in dict.fromkeys(map(tuple, rows)))
    if not sets.keys() <= accepted:
        for names in sets:
            check_columns(model, names, limits, f"row {1 + next(k for k, row in enumerate(rows) if names == set(row))}")
        new = wanted_columns(model, frozenset().union(*sets)) - set(model.encoder.columns)
        if len(model.encoder.columns) + len(new) > limits.columns + 3:  # target and keys are no columns of the encoder
            raise invalid(f"the model would have more than {limits.columns:,} columns; {shown(min(new))} is new")
        accepted.update(sets)
    preparer, target = model.preparer, model.target
    for option, name in (("by", preparer.by), ("key", preparer.key)):
        if name is not None:
            check_present(_cells(command, name), name, option)
    if model.task != "regression" or not are_targets((command.arrays or {}).get(target)):
        check_targets(model, _cells(command, target), all_known=command.targets)
    if preparer.by is not None and isinstance(model.learner, ModelPerKey) and model.learner.fleet is not None:
        fleet = model.learner.fleet
        if len(fleet) + len(set(_cells(command, preparer.by))) > limits.keys:  # the count of new keys, or more
            raise Refused(409, f"there are {len(fleet):,} keys, and {limits.keys:,} are allowed; forget some")


def check_columns(model: StreamModel, names: Iterable[str], limits: Limits, where: str) -> None:
    """Refuse a row from which nothing can be learned or predicted."""
    preparer, known = model.preparer, set(model.encoder.columns)
    for option, name in (("by", preparer.by), ("key", preparer.key)):
        if name is not None and name not in names:
            raise invalid(f"{where}: there is no column {name!r}, the {option} of this model"
                          f"{suggestion(name, names)}")  # fmt: skip
    inputs = wanted_columns(model, names) - {model.target, preparer.by, preparer.key}
    if known and not inputs & known:
        raise invalid(f"{where}: no column in common with the model, which has learned from {listed(sorted(known))}")
    if not inputs and preparer.lagged is None:
        raise invalid(f"{where}: there is no column to predict {model.target!r} from; give at least one more")


def check_present(cells: list[object], name: str, option: str) -> None:
    """Refuse a row without its key."""
    if None in cells or "" in cells:
        number = next(k for k, cell in enumerate(cells, 1) if cell is None or cell == "")
        raise invalid(f"row {number}: {name!r}, the {option} of this model, is empty")


def are_targets(array: pa.Array | None) -> bool:
    """Whether a column has nothing but numbers that a regression can learn."""
    if array is None or array.null_count or not (pa.types.is_float64(array.type) or pa.types.is_int64(array.type)):
        return False
    return bool(np.abs(array.to_numpy().astype(np.float64, copy=False)).max() <= LARGEST_TARGET)


def check_targets(model: StreamModel, cells: list[object], all_known: bool) -> None:
    """Refuse targets that the model cannot learn."""
    if model.task == "regression" and set(map(type, cells)) <= {int, float} and max(map(abs, cells)) <= LARGEST_TARGET:  # type: ignore[arg-type]  # cells that are numbers
        return
    for number, cell in enumerate(cells, 1):
        if cell is None and all_known:
            raise invalid(f"row {number}: there is no target {model.target!r}; nothing was learned")
    target = copy.copy(model.preparer.target)
    target.notify = lambda about, text: None
    y = target.read(of_cells(cells), learn=False)
    if target.task == "regression":
        for number, (cell, value) in enumerate(zip(cells, y, strict=True), 1):
            if cell is not None and np.isnan(value):
                raise invalid(f"row {number}: the target {model.target!r} must be a number of at most "
                              f"{LARGEST_TARGET:g}, got {shown(str(cell))}")  # fmt: skip
        return
    known = {label for label in y if label is not None}
    if any(len(label) > 200 for label in known):
        raise invalid("a label has more than 200 characters")
    if len(known | target.labels) > MAX_LABELS:
        raise invalid(f"the target {model.target!r} would have more than {MAX_LABELS} labels")
    learner = model.learner
    if model.preparer.by is not None:
        own = set() if learner is None else set(learner.labels)
        if not own and len(known) < 2:
            raise invalid("the first request to a model per key must have rows of every label, and at least two")
        if own and not known <= own:
            raise invalid(f"{shown(min(known - own))} was not among the labels of the first request: "
                          f"{listed(sorted(own))}")  # fmt: skip


def _cells(command: Command, name: str) -> list[object]:
    if command.arrays is None:
        return [row.get(name) for row in command.rows]
    array = command.arrays.get(name)
    if array is None:
        return [None] * command.size
    return list(labels(array) if pa.types.is_temporal(array.type) else array.to_pylist())


def label_rows(found: object, limits: Limits) -> list[Row]:
    """The delayed targets of a request: {"key": ..., "target": ...}, one or a list of them."""
    given = [found] if isinstance(found, dict) else found
    if not isinstance(given, list) or not given or len(given) > limits.rows:
        raise invalid(f'the body must be {{"key": ..., "target": ...}}, or a list of at most {limits.rows:,} of them')
    out: list[Row] = []
    for number, row in enumerate(given, 1):
        if not isinstance(row, dict) or set(row) != {"key", "target"}:
            raise invalid(f'row {number} must be {{"key": ..., "target": ...}}')
        key, target = row["key"], row["target"]
        if type(key) not in (str, int) or not str(key).strip() or len(str(key)) > limits.text:
            raise invalid(f"row {number}: the key must be text or a whole number")
        if not isinstance(target, (str, int, float, bool)) or len(str(target)) > limits.text:
            raise invalid(f"row {number}: the target must be a number, text or a boolean")
        large = type(target) is int and abs(target) > 2**63 - 1  # more than columns of whole numbers hold
        out.append({"key": str(key).strip(), "target": float(target) if large else target})
    return out
