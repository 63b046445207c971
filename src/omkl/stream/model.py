"""A learner together with the columns it learns from: what `omkl run` makes, saves and goes on with."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from omkl import persist
from omkl.arrays import Index, Mask, Matrix, Vector
from omkl.estimators import files
from omkl.estimators.core import Core, LabelCore, TargetCore
from omkl.estimators.graph_core import USUAL, GraphLabelCore, GraphTargetCore
from omkl.kernels import Kernel
from omkl.losses import LossName
from omkl.online import LARGEST_TARGET
from omkl.persist import Arrays, Codec, demand
from omkl.settings import GraphSettings, Settings
from omkl.stream.cells import Comma, commas, labels, numbers
from omkl.stream.columns import Encoded, Encoder, Tell
from omkl.stream.parsers import Batch
from omkl.stream.raw import DataError

if TYPE_CHECKING:
    from omkl.fleet import Fleet

Task = Literal["regression", "classification"]
COVERAGE = 0.9
BUDGET = 500  # rows that OMKR keeps, so that it neither grows nor slows down for ever
MOST_LABELS = 100  # every label has coefficients of its own in every expert
LEARN, ASK, ANSWER = range(3)
# what a fleet is made of
ESTIMATORS = {"graph-mkl": "GraphMKL", "sfg-mkl": "SFGMKL", "sfg-mkl-r": "SFGMKL", "raker": "Raker",
              "omkl-gf": "OMKLGF", "omkr": "OMKR", "rfomkr": "RFOMKR"}  # fmt: skip


class Prepared(NamedTuple):
    """Rows of a table as features, for one learner or several."""

    rows: Index  # (n,)
    truth: Any  # (n,) NaN or None where it is not known
    keys: list[str] | None
    sorts: Index  # (n,) LEARN, ASK or ANSWER
    encoded: Encoded  # of those that are no answers


class Watcher(Protocol):
    """Somebody who looks at the model before the first row after row `due`."""

    due: int

    def look(self, model: "StreamModel", row: int) -> None:
        """Look, and set `due` to a row not before this one, which comes next."""


class Said(NamedTuple):
    """What was predicted, row by row, before the row was learned."""

    rows: Index  # (n,)
    keys: list[str] | None
    mean: Any  # (n,) numbers, or labels
    lower: Vector | None  # (n,) ends of the interval, where the learner has one
    upper: Vector | None
    chance: Vector | None  # (n,) of the label, for labels
    truth: Any  # (n,) NaN or None where it is not known
    truth_chance: Vector | None  # (n,) that the true label was given, for labels
    chances: list[dict[str, float]] | None = None  # of every label, where rows have keys


class Waiting(NamedTuple):
    """A row that waits for its target, and what was predicted for it."""

    x: Vector
    mean: Any
    ends: tuple[float, float] | None
    chances: dict[str, float] | None


class Answers(NamedTuple):
    """Targets that came later: what had been predicted, and what it was."""

    mean: list[Any]
    truth: list[Any]
    truth_chance: list[float]
    inside: list[bool]


def new_core(learner: str, task: Task, seed: int, names: list[str]) -> Core:
    """The learner of this name with its defaults."""
    loss: LossName = "squared" if task == "regression" else "logistic"
    if learner == "graph-mkl":
        usual: Any = USUAL[loss]
        return (GraphTargetCore if task == "regression" else GraphLabelCore)(GraphSettings(**usual), seed, names)
    settings = Settings(kernels="paper-omkr", loss=loss, budget=BUDGET) if learner == "omkr" else Settings(loss=loss)
    return (TargetCore if task == "regression" else LabelCore)(learner, settings, seed, names, "online")


class StreamModel:
    """Predicts, then learns, rows of a table.

    Parameters
    ----------
    target
        The column to predict.
    task
        "regression" or "classification"; None to decide by the first targets.
    learner
        A name out of `omkl.settings.LEARNERS`.
    seed
        Decides random features and draws.
    key, pending
        The column by which a target that comes later finds its row, and how many rows are kept waiting.
    by
        The column that says whose row it is: each of its values has a model of its own. Columns, categories
        and labels are then those of the first piece.
    """

    def __init__(
        self, target: str, task: Task | None, learner: str, seed: int, tell: Tell, *, key: str | None = None,
        pending: int = 10_000, date_format: str | None = None, categorical: tuple[str, ...] = (),
        by: str | None = None, features: tuple[str, ...] = (), drop: tuple[str, ...] = (),
    ) -> None:  # fmt: skip
        if by is not None and key is not None:
            raise ValueError("--by and --key do not go together: a fleet has no rows that wait")
        self.by = by
        self.features, self.drop = features, drop  # what a reader is to hand on, all unless named, and not
        self.fleet: Fleet | None = None
        self.target, self.task, self.learner, self.seed = target, task, learner, seed
        self.key, self.pending = key, pending
        self.tell = tell
        self.encoder = Encoder(tell, date_format, categorical)
        self.comma: Comma | None = None  # in targets
        self.core: Core | None = None
        self.names: list[str] = []  # of a fleet's features
        self.labels: set[str] = set()
        self.waiting: dict[str, Waiting] = {}  # by key, oldest first
        self.learned = 0

    # Rows

    def run(self, batch: Batch) -> tuple[Said, Answers]:
        """Predict each row, then learn it if its target is known."""
        return self.learn(self.prepare(batch))

    def prepare(self, batch: Batch) -> Prepared:
        """Rows as features; columns, categories and gaps become known, and the task if it is not."""
        batch, truth, keys = self._take_apart(batch, learn=True)
        if not batch.columns:
            raise DataError(f"there is no column to learn {self.target!r} from; give at least one more")
        sorts = self._sorts(_known(truth), keys if self.by is None else None)
        asked = sorts != ANSWER
        encoded = self.encoder.encode(batch if asked.all() else _filtered(batch, asked), learn=self.fleet is None)
        return Prepared(batch.rows, truth, keys, sorts, encoded)

    def learn(self, some: Prepared, watcher: Watcher | None = None) -> tuple[Said, Answers]:
        """As `run`, from rows that this model or one with the same encoder has prepared."""
        rows, truth, keys, sorts, encoded = some
        if self.by is not None:
            return self._learn_fleet(some), Answers([], [], [], [])
        asked = sorts != ANSWER
        place = np.cumsum(asked) - 1  # of a row among those that have features
        arrivals: dict[int, list[str]] = {}
        for name, at in encoded.arrivals.items():
            arrivals.setdefault(at, []).append(name)
        begins = np.isin(place, list(arrivals)) & asked
        edges = np.flatnonzero((np.diff(sorts) != 0) | begins[1:]) + 1
        answers = Answers([], [], [], [])
        parts = []
        for first, last in zip([0, *edges], [*edges, len(sorts)], strict=True):
            for start, stop in self._stretches(rows, first, last, watcher):
                here = slice(start, stop)
                theirs = None if keys is None else keys[here]
                if sorts[start] == ANSWER:
                    assert theirs is not None
                    for key, value in zip(theirs, truth[here], strict=True):
                        self._answer(key, value, answers)
                    continue
                if start == first:
                    self._meet(arrivals.get(int(place[start]), []))
                X = self._matrix(encoded.features, place[start], place[stop - 1] + 1)
                # without a feature there is no learner yet: every cell was empty so far
                if sorts[start] == LEARN and self.core is not None:
                    parts.append(self._tell(X, rows[here], truth[here], theirs))
                else:
                    parts.append(self._ask(X, rows[here], truth[here], theirs))
                    self._keep(X, parts[-1])
        if self.learner == "omkr" and self.learned > BUDGET:
            self.tell("budget", f"omkr keeps {BUDGET} rows; those after them only weigh its kernels")
        return self._said(parts), answers

    def _learn_fleet(self, some: Prepared) -> Said:
        rows, truth, keys, sorts, encoded = some
        assert keys is not None
        if self.fleet is None:
            self._found_fleet(truth, sorted(encoded.features))
        assert self.fleet is not None
        X = np.column_stack([encoded.features[name] for name in self.names])
        if self.fleet.classes is not None:
            known = set(self.fleet.classes.tolist())
            if news := {label for label in truth if label is not None} - known:
                self.tell("new label", f"label {min(news)!r} was not among the first rows; such rows are not learned: "
                          "a fleet's labels are those of its first piece (--every makes it longer)")  # fmt: skip
                sorts = np.where([label in known for label in truth], sorts, ASK)
        edges = np.flatnonzero(np.diff(sorts)) + 1
        out: Any = np.empty(len(rows), dtype=float if self.task == "regression" else object)
        for start, stop in zip([0, *edges], [*edges, len(rows)], strict=True):
            here = slice(start, stop)
            if sorts[start] == LEARN:
                out[here] = self.fleet.learn_rows(keys[here], X[here], truth[here], gaps=True)
                self.learned += int(stop - start)
            elif len(self.fleet) == 0:
                out[here] = 0.0 if self.task == "regression" else None
            else:
                out[here] = self.fleet.predict_rows(keys[here], X[here], gaps=True)
        return Said(rows, keys, out, None, None, None, truth, None)

    def _found_fleet(self, truth: Any, names: list[str]) -> None:
        # scikit-learn takes a second to load, and a single model does without
        from omkl.estimators import sklearn
        from omkl.fleet import Fleet

        if not names:
            raise DataError(f"there is no column to learn {self.target!r} from; give at least one more")
        self.names = names
        kind = "Regressor" if self.task == "regression" else "Classifier"
        made = getattr(sklearn, ESTIMATORS[self.learner] + kind, None)
        if made is None:
            raise DataError(f"{self.learner} has no {kind.lower()}; choose another --learner")
        refine = {"refine": True} if self.learner == "sfg-mkl-r" else {}
        classes = None if self.task == "regression" else sorted({label for label in truth if label is not None})
        if classes is not None and len(classes) < 2:
            raise DataError(f"target {self.target!r} has fewer than two labels in the first rows; --every makes the "
                            "first piece longer")  # fmt: skip
        self.fleet = Fleet(made(**refine), seed=self.seed, classes=classes)

    def _stretches(self, rows: Index, start: int, stop: int, watcher: Watcher | None) -> Iterator[tuple[int, int]]:
        while start < stop:
            if watcher is not None and rows[start] > watcher.due:
                watcher.look(self, int(rows[start]))
            end = stop if watcher is None else min(stop, int(np.searchsorted(rows, watcher.due, side="right")))
            yield start, max(end, start + 1)
            start = max(end, start + 1)

    def _sorts(self, known: Mask, keys: list[str] | None) -> Index:
        """What each row is for: LEARN at once, only ASK, or ANSWER an earlier one."""
        sorts = np.where(known, LEARN, ASK)
        if keys is None:
            return sorts
        waiting = dict.fromkeys(self.waiting)
        for k, key in enumerate(keys):
            if known[k] and key in waiting:
                sorts[k] = ANSWER
                del waiting[key]
            elif not known[k]:
                waiting.pop(key, None)
                waiting[key] = None
                if len(waiting) > self.pending:
                    del waiting[next(iter(waiting))]
        return sorts

    def predict(self, batch: Batch) -> Said:
        """Predict rows from the model as it is; nothing becomes known."""
        if self.learned == 0:
            raise DataError("the model has learned no row yet; there is nothing to predict from")
        batch, truth, keys = self._take_apart(batch, learn=False)
        if self.fleet is not None:
            features = self.encoder.encode(batch, learn=False).features
            X = np.column_stack([features[name] for name in self.names])
            said = self.fleet.predict_rows(keys or [], X, gaps=True)
            return Said(batch.rows, keys, said if self.task == "regression" else said.astype(object), None, None, None,
                        truth, None)  # fmt: skip
        X = self._matrix(self.encoder.encode(batch, learn=False).features, 0, len(batch.rows))
        return self._said([self._ask(X, batch.rows, truth, keys)])

    def _take_apart(self, batch: Batch, learn: bool) -> tuple[Batch, Any, list[str] | None]:
        columns = dict(batch.columns)
        n = len(batch.rows)
        target = columns.pop(self.target, None)
        if target is None and learn:
            there = ", ".join(repr(name) for name in list(batch.columns)[:20])
            raise DataError(f"there is no column {self.target!r} to predict; the columns are {there}")
        keys = None
        if self.key is not None:
            if self.key not in columns:
                raise DataError(f"there is no key column {self.key!r}; the columns are {', '.join(columns)}")
            texts = labels(columns.pop(self.key))
            keys = [f"row {row}" if text is None else text for row, text in zip(batch.rows, texts, strict=True)]
        if self.by is not None:
            if self.by not in columns:
                raise DataError(
                    f"there is no column {self.by!r} to keep models by; the columns are {', '.join(columns)}"
                )
            whose = labels(columns.pop(self.by))
            named = np.array([text is not None for text in whose], dtype=bool)
            if not named.all():
                self.tell("nobody", f"row {batch.rows[np.argmin(named)]}: {self.by!r} is empty; such rows are left out")
                batch = _filtered(batch, named)
                columns = {name: batch.columns[name] for name in columns}
                target = batch.columns.get(self.target)
                n = len(batch.rows)
            keys = [text for text in whose if text is not None]
        if target is None:
            target = pa.nulls(n, pa.string())
        return Batch(batch.rows, columns), self._targets(target, learn), keys

    def _targets(self, array: pa.Array, learn: bool) -> Any:
        if self.task is None:
            self.task = self._guess_task(array)
        if self.task == "classification":
            told = labels(array)
            self.labels.update(label for label in told if label is not None and learn)
            if len(self.labels) > MOST_LABELS:
                raise DataError(
                    f"target {self.target!r} has more than {MOST_LABELS} labels, such as {min(self.labels)!r}; "
                    "if it is a number pass --task regression"
                )
            return np.array([*told, None], dtype=object)[:-1]
        if pa.types.is_floating(array.type) or pa.types.is_integer(array.type):
            values = array.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
            strange = None
        else:
            texts = pa.array(labels(array), pa.string())
            comma = self.comma or commas(texts)
            values, strange = numbers(texts, comma)
            if learn and self.comma is None and comma is not None:
                self.comma = comma
                what = "thousands separators" if comma == "thousands" else "decimal points"
                self.tell("comma target", f"target {self.target!r}: commas are taken for {what}")
        if strange is not None:
            self.tell("strange target", f"target {self.target!r}: {strange!r} is not a number; such rows are predicted "
                      "and not learned (--task classification takes labels)")  # fmt: skip
        far = np.abs(values) > LARGEST_TARGET
        if far.any():
            value = values[np.argmax(far)]
            self.tell("far target", f"target {self.target!r}: {value:g} is no usable number; such rows are predicted "
                      "and not learned")  # fmt: skip
            values = np.where(far, np.nan, values)
        return values

    def _guess_task(self, array: pa.Array) -> Task:
        if pa.types.is_boolean(array.type):
            return "classification"
        texts = [text for text in labels(array[:1000]) if text is not None]
        if not texts:
            self.tell("task", "there is no target yet: taken for regression (--task classification otherwise)")
            return "regression"
        values, _ = numbers(pa.array(texts), commas(pa.array(texts)))
        if np.isnan(values).mean() > 0.5 or {text.lower() for text in texts} <= {"true", "false"}:
            self.tell("task", f"target {self.target!r} holds labels such as {texts[0]!r}: classification")
            return "classification"
        if set(np.unique(values)) == {0.0, 1.0}:
            self.tell(
                "task", f"target {self.target!r} holds only 0 and 1: classification (--task regression otherwise)"
            )
            return "classification"
        self.tell(
            "task", f"target {self.target!r} holds numbers: regression (--task classification if they are labels)"
        )
        return "regression"

    def _meet(self, new: list[str]) -> None:
        if self.core is None:
            if new:
                assert self.task is not None
                self.core = new_core(self.learner, self.task, self.seed, sorted(new))
            return
        self.core.meet(new)

    def _matrix(self, features: dict[str, Vector], start: int, stop: int) -> Matrix:
        names: Any = () if self.core is None else self.core.names
        X = np.empty((stop - start, len(names)))
        for k, name in enumerate(names):
            X[:, k] = features[name][start:stop]
        return X

    def _keep(self, X: Matrix, said: Said) -> None:
        if self.key is None or said.keys is None:
            return
        for k, key in enumerate(said.keys):
            self.waiting.pop(key, None)
            ends = None if said.lower is None or said.upper is None else (float(said.lower[k]), float(said.upper[k]))
            self.waiting[key] = Waiting(
                X[k].copy(), said.mean[k], ends, None if said.chances is None else said.chances[k]
            )
            if len(self.waiting) > self.pending:
                oldest = next(iter(self.waiting))
                del self.waiting[oldest]
                self.tell("pending", f"more than {self.pending} rows wait for their target; the oldest are given up, "
                          f"key {oldest!r} first (--pending keeps more)")  # fmt: skip

    def _answer(self, key: str, truth: Any, answers: Answers) -> None:
        waited = self.waiting.pop(key)
        core: Any = self.core
        fills = [self.encoder.features[name] for name in core.names[len(waited.x) :]]
        row = np.concatenate((waited.x, fills))[None]
        answers.mean.append(waited.mean)
        answers.truth.append(truth)
        answers.truth_chance.append(0.0 if waited.chances is None else waited.chances.get(truth, 0.0))
        answers.inside.append(waited.ends is not None and waited.ends[0] <= truth <= waited.ends[1])
        core.run(row, np.array([truth]) if self.task == "regression" else [truth])
        self.learned += 1

    # The learner

    def _tell(self, X: Matrix, rows: Index, truth: Any, keys: list[str] | None) -> Said:
        self.learned += len(rows)
        core: Any = self.core
        if self.task == "regression":
            if isinstance(core, GraphTargetCore):
                out = core.run_interval(X, truth, COVERAGE)
                return Said(rows, keys, out[:, 0], out[:, 1], out[:, 2], None, truth, None)
            return Said(rows, keys, core.run(X, truth), None, None, None, truth, None)
        told = truth.tolist()
        chances = core.run_chances(X, told)
        return self._labels(chances, rows, told, keys)

    def _ask(self, X: Matrix, rows: Index, truth: Any, keys: list[str] | None) -> Said:
        core: Any = self.core
        if self.task == "regression":
            if core is None:
                return Said(rows, keys, np.zeros(len(rows)), None, None, None, truth, None)
            if isinstance(core, GraphTargetCore):
                ends = core.interval(X, COVERAGE)
                return Said(rows, keys, core.predict(X), ends[:, 0], ends[:, 1], None, truth, None)
            return Said(rows, keys, core.predict(X), None, None, None, truth, None)
        chances = np.empty((len(rows), 0)) if core is None else core.chances(X)
        return self._labels(chances, rows, list(truth), keys)

    def _labels(self, chances: Matrix, rows: Index, truth: list[Any], keys: list[str] | None) -> Said:
        core: Any = self.core
        names: list[Any] = [] if core is None else list(core.labels)
        told = np.array([*truth, None], dtype=object)[:-1]
        if not names or not chances.shape[1]:
            none = np.zeros(len(rows))
            return Said(rows, keys, np.full(len(rows), None, dtype=object), None, None, none, told, none)
        best = chances.argmax(axis=1)
        at = np.arange(len(rows))
        place = {name: k for k, name in enumerate(names)}
        of = np.array([place.get(label, -1) for label in truth])
        given = np.where(of >= 0, chances[at, of], 0.0)
        chance = chances[at, best]
        mean = np.array([*names, None], dtype=object)[np.where(chance > 0, best, len(names))]
        every = None if keys is None else [dict(zip(names, row, strict=True)) for row in chances.tolist()]
        return Said(rows, keys, mean, None, None, chance, told, given, every)

    def _said(self, parts: list[Said]) -> Said:
        if not parts:
            empty = np.empty(0, dtype=np.int64)
            return Said(empty, [] if self.key else None, np.empty(0), None, None, None, np.empty(0), None)
        if len(parts) == 1:
            return parts[0]

        def joined(name: str) -> Any:
            values = [getattr(part, name) for part in parts]
            return (
                None
                if all(v is None for v in values)
                else np.concatenate(
                    [np.full(len(part.rows), np.nan) if v is None else v for v, part in zip(values, parts, strict=True)]
                )
            )

        keys = None if parts[0].keys is None else [key for part in parts for key in part.keys or []]
        return Said(joined("rows"), keys, *(joined(name) for name in Said._fields[2:-1]))

    # Looking

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        kernels: tuple[Kernel, ...] = () if self.core is None else self.core.settings.all_kernels
        return kernels

    def weights(self) -> Vector:
        """The weight of every kernel, averaged over labels."""
        weights: Vector = np.empty(0) if self.core is None else self.core.weights().mean(axis=0)
        return weights


def _filtered(batch: Batch, kept: Mask) -> Batch:
    mask = pa.array(kept)
    return Batch(batch.rows[kept], {name: array.filter(mask) for name, array in batch.columns.items()})


def _known(truth: Any) -> Mask:
    if truth.dtype == object:
        return np.array([label is not None for label in truth], dtype=bool)
    known: Mask = ~np.isnan(truth)
    return known


# Model files


def encode(model: StreamModel, arrays: Arrays) -> Any:
    """A model as (JSON, arrays)."""
    waiting = []
    for k, (key, waited) in enumerate(model.waiting.items()):
        arrays[f"waiting.{k}.rows"] = waited.x
        waiting.append([key, persist.plain(waited.mean), waited.ends, waited.chances])
    return {
        "target": model.target, "task": model.task, "learner": model.learner, "seed": model.seed, "key": model.key,
        "pending": model.pending, "comma": model.comma, "learned": model.learned, "waiting": waiting,
        "encoder": model.encoder.body(), "core": files.encode_core(model.core, arrays, compact=False), "by": model.by,
        "features": list(model.features), "drop": list(model.drop),
        "names": model.names,
        "fleet": None if model.fleet is None else persist.encode_part(model.fleet, arrays, "fleet:"),
    }  # fmt: skip


def decode(body: Any, arrays: Arrays, tell: Tell = lambda about, news: None) -> StreamModel:
    model = StreamModel(
        body["target"],
        body["task"],
        body["learner"],
        body["seed"],
        tell,
        key=body["key"],
        pending=body["pending"],
        by=body["by"],
        features=tuple(body["features"]),
        drop=tuple(body["drop"]),
    )
    demand(model.task in (None, "regression", "classification"), "there is no such task")
    model.encoder = Encoder.from_body(body["encoder"], tell)
    model.core = files.decode_core(body["core"], arrays)
    model.labels = set(getattr(model.core, "labels", ()))
    model.comma, model.names = body["comma"], [str(name) for name in body["names"]]
    if body["fleet"] is not None:
        model.fleet = persist.decode_part(body["fleet"], arrays, "fleet:")
        demand(body["fleet"]["kind"] == "fleet", "no fleet")
        demand(set(model.names) <= set(model.encoder.features), "columns and fleet differ")
    model.learned = int(body["learned"])
    names = () if model.core is None else model.core.names
    demand(set(names) <= set(model.encoder.features), "columns and learner differ")
    for k, (key, mean, ends, chances) in enumerate(body["waiting"]):
        x = arrays[f"waiting.{k}.rows"]
        demand(x.ndim == 1 and len(x) <= len(names), "a waiting row does not fit")
        model.waiting[str(key)] = Waiting(x, mean, None if ends is None else (ends[0], ends[1]), chances)
    return model


def _encode(model: StreamModel, compact: bool) -> tuple[Any, Arrays]:
    arrays: Arrays = {}
    return encode(model, arrays), arrays


persist.register("stream", Codec((StreamModel,), _encode, decode))
