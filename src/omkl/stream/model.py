"""A learner together with the columns it learns from: what `omkl run` makes, saves and goes on with."""

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from omkl import persist
from omkl.arrays import Index, Mask, Matrix, Vector
from omkl.estimators import files
from omkl.estimators.core import Core, LabelCore, TargetCore
from omkl.estimators.graph_core import GraphLabelCore, GraphTargetCore, kernel_weights
from omkl.kernels import Kernel
from omkl.losses import LossName
from omkl.online import LARGEST_TARGET
from omkl.persist import Arrays, Codec, demand
from omkl.rounds.weights import normalised
from omkl.settings import GraphSettings, Settings
from omkl.stream.columns import Encoded, Encoder, Tell, labels, numbers
from omkl.stream.source import Batch, DataError

Task = Literal["regression", "classification"]
COVERAGE = 0.9
BUDGET = 500  # rows that OMKR keeps, so that it neither grows nor slows down for ever
PIECE = 256  # rows of one call where rows with and without a target take turns


class Prepared(NamedTuple):
    """Rows of a table as features, for one learner or several."""

    rows: Index  # (n,)
    truth: Any  # (n,) NaN or None where it is not known
    keys: list[str] | None
    encoded: Encoded


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


class Answers(NamedTuple):
    """Targets that came later: what had been predicted, and what it was."""

    mean: list[Any]
    truth: list[Any]
    truth_chance: list[float]
    inside: list[bool]


def new_core(learner: str, task: Task, seed: int, names: list[str]) -> Core:
    """The learner of this name with its defaults."""
    if learner == "graph-mkl":
        if task == "regression":
            return GraphTargetCore(GraphSettings(), seed, names)
        return GraphLabelCore(GraphSettings(discount=0.01, memory=0.98), seed, names)
    loss: LossName = "squared" if task == "regression" else "logistic"
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
    """

    def __init__(
        self, target: str, task: Task | None, learner: str, seed: int, tell: Tell, *, key: str | None = None,
        pending: int = 10_000, date_format: str | None = None, categorical: tuple[str, ...] = (),
    ) -> None:  # fmt: skip
        self.target, self.task, self.learner, self.seed = target, task, learner, seed
        self.key, self.pending = key, pending
        self.tell = tell
        self.encoder = Encoder(tell, date_format, categorical)
        self.core: Core | None = None
        self.waiting: dict[str, tuple[Vector, Any]] = {}  # key -> features, and what was predicted
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
        return Prepared(batch.rows, truth, keys, self.encoder.encode(batch))

    def learn(self, some: Prepared, watcher: Watcher | None = None) -> tuple[Said, Answers]:
        """As `run`, from rows that this model or one with the same encoder has prepared."""
        rows, truth, keys, encoded = some
        answers = Answers([], [], [], [])
        parts = []
        for start, stop, X in self._segments(encoded, len(rows)):
            for a, b in self._stretches(rows, start, stop, watcher):
                parts += list(self._turns(rows, X[a - start : b - start], truth, keys, a, b, answers))
        if self.learner == "omkr" and self.learned > BUDGET:
            self.tell("budget", f"omkr keeps {BUDGET} rows; those after them only weigh its kernels")
        return self._said(parts), answers

    def predict(self, batch: Batch) -> Said:
        """Predict rows from the model as it is; nothing becomes known."""
        if self.core is None:
            raise DataError("the model has learned no row yet; there is nothing to predict from")
        batch, truth, keys = self._take_apart(batch, learn=False)
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
        if target is None:
            target = pa.nulls(n, pa.string())
        return Batch(batch.rows, columns), self._targets(target), keys

    def _targets(self, array: pa.Array) -> Any:
        texts = None
        if self.task is None:
            self.task = self._guess_task(array)
        if self.task == "classification":
            return np.array([*labels(array), None], dtype=object)[:-1]
        if pa.types.is_floating(array.type) or pa.types.is_integer(array.type):
            values = array.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
            strange = None
        else:
            texts = pa.array(labels(array), pa.string())
            values, strange = numbers(texts)
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
        values, strange = numbers(pa.array(texts))
        if strange is not None or {text.lower() for text in texts} <= {"true", "false"}:
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

    def _segments(self, encoded: Encoded, n: int) -> Iterator[tuple[int, int, Matrix]]:
        """Stretches of rows between which no feature arrives, and their features in the core's order."""
        starts = sorted({0, *encoded.arrivals.values()})
        for start, stop in zip(starts, [*starts[1:], n], strict=True):
            new = [name for name, row in encoded.arrivals.items() if row == start]
            if start == stop and not new:
                continue
            self._meet(new)
            yield start, stop, self._matrix(encoded.features, start, stop)

    def _stretches(self, rows: Index, start: int, stop: int, watcher: Watcher | None) -> Iterator[tuple[int, int]]:
        while start < stop:
            if watcher is not None and rows[start] > watcher.due:
                watcher.look(self, int(rows[start]))
            end = stop if watcher is None else min(stop, int(np.searchsorted(rows, watcher.due, side="right")))
            yield start, end
            start = end

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

    def _turns(
        self, rows: Index, X: Matrix, truth: Any, keys: list[str] | None, start: int, stop: int, answers: Answers
    ) -> Iterator[Said]:
        """Stretches of rows of one sort: learned at once, only asked, or answers to earlier rows."""
        known = _known(truth[start:stop])
        if self.core is None:  # every cell was empty so far
            known[:] = False
        k = 0
        for sort, count in self._sorts(known, None if keys is None else keys[start:stop]):
            here = slice(start + k, start + k + count)
            some = None if keys is None else keys[here]
            part = X[k : k + count]
            if sort == "answer":
                assert some is not None
                self._answer(some[0], truth[start + k], answers)
            elif sort == "learn":
                yield self._tell(part, rows[here], truth[here], some)
            else:
                said = self._ask(part, rows[here], truth[here], some)
                self._keep(part, said)
                yield said
            k += count

    def _sorts(self, known: Mask, keys: list[str] | None) -> Iterator[tuple[str, int]]:
        if keys is None:
            edges = np.flatnonzero(np.diff(known)) + 1
            for start, stop in zip([0, *edges], [*edges, len(known)], strict=True):
                if stop > start:
                    yield ("learn" if known[start] else "ask"), int(stop - start)
            return
        for k, key in enumerate(keys):  # each row may answer the one before it
            if not known[k]:
                yield "ask", 1
            else:
                yield ("answer" if key in self.waiting else "learn"), 1

    def _keep(self, X: Matrix, said: Said) -> None:
        if said.keys is None:
            return
        for k, key in enumerate(said.keys):
            self.waiting.pop(key, None)
            chance = None if said.chance is None else self._last_chances
            interval = (
                None if said.lower is None or said.upper is None else (float(said.lower[k]), float(said.upper[k]))
            )
            self.waiting[key] = (X[k].copy(), [said.mean[k], interval, chance])
        while len(self.waiting) > self.pending:
            oldest = next(iter(self.waiting))
            del self.waiting[oldest]
            self.tell("pending", f"more than {self.pending} rows wait for their target; the oldest are given up, key "
                      f"{oldest!r} first (--pending keeps more)")  # fmt: skip

    def _answer(self, key: str, truth: Any, answers: Answers) -> None:
        x, (mean, interval, chances) = self.waiting.pop(key)
        core: Any = self.core
        fills = [self.encoder.features[name] for name in core.names[len(x) :]]
        row = np.concatenate((x, fills))[None]
        answers.mean.append(mean)
        answers.truth.append(truth)
        answers.truth_chance.append(0.0 if chances is None else float(chances.get(truth, 0.0)))
        answers.inside.append(interval is not None and interval[0] <= truth <= interval[1])
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
        if keys is not None and len(rows):
            self._last_chances = dict(zip(names, chances[-1].tolist(), strict=True))
        return Said(rows, keys, mean, None, None, chance, told, given)

    _last_chances: dict[Any, float] | None = None

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
        return Said(joined("rows"), keys, *(joined(name) for name in Said._fields[2:]))

    # Looking

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        kernels: tuple[Kernel, ...] = () if self.core is None else self.core.settings.kernels
        return kernels

    def weights(self) -> Vector:
        """The weight of every kernel, averaged over labels."""
        core = self.core
        if core is None:
            return np.empty(0)
        if core.learner == "graph-mkl":
            return kernel_weights(core)
        each = core.each if isinstance(core, LabelCore) else [core.online]
        weights: Vector = np.mean([normalised(online.peek("log_w")) for online in each], axis=0)
        return weights


def _known(truth: Any) -> Mask:
    if truth.dtype == object:
        return np.array([label is not None for label in truth], dtype=bool)
    known: Mask = ~np.isnan(truth)
    return known


# Model files


def encode(model: StreamModel, arrays: Arrays) -> Any:
    """A model as (JSON, arrays)."""
    waiting = []
    for k, (key, (x, said)) in enumerate(model.waiting.items()):
        arrays[f"waiting.{k}.rows"] = x
        waiting.append(
            [key, said[0] if said[0] is None or isinstance(said[0], str) else float(said[0]), said[1], said[2]]
        )
    return {
        "target": model.target, "task": model.task, "learner": model.learner, "seed": model.seed, "key": model.key,
        "pending": model.pending, "learned": model.learned, "encoder": model.encoder.body(), "waiting": waiting,
        "core": files.encode_core(model.core, arrays, compact=False),
    }  # fmt: skip


def decode(body: Any, arrays: Arrays, tell: Tell = lambda about, news: None) -> StreamModel:
    model = StreamModel(
        body["target"], body["task"], body["learner"], body["seed"], tell, key=body["key"], pending=body["pending"]
    )
    demand(model.task in (None, "regression", "classification"), "there is no such task")
    model.encoder = Encoder.from_body(body["encoder"], tell)
    model.core = files.decode_core(body["core"], arrays)
    model.learned = int(body["learned"])
    names = () if model.core is None else model.core.names
    demand(set(names) <= set(model.encoder.features), "columns and learner differ")
    for k, (key, mean, interval, chances) in enumerate(body["waiting"]):
        x = arrays[f"waiting.{k}.rows"]
        demand(x.ndim == 1 and len(x) <= len(names), "a waiting row does not fit")
        model.waiting[str(key)] = (x, [mean, None if interval is None else tuple(interval), chances])
    return model


def _encode(model: StreamModel, compact: bool) -> tuple[Any, Arrays]:
    arrays: Arrays = {}
    return encode(model, arrays), arrays


persist.register("stream", Codec((StreamModel,), _encode, decode))
