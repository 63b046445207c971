"""One pass over a user's data: predict, write, learn, and lose nothing when stopped."""

import errno
import os
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from omkl import persist
from omkl.errors import BudgetWarning, ModelFileError
from omkl.persist import Arrays, Codec
from omkl.stream import model as models
from omkl.stream.history import History
from omkl.stream.model import StreamModel, Task
from omkl.stream.parsers import Format, Reading
from omkl.stream.predictions import WRITTEN, Writer
from omkl.stream.raw import DataError, Stop
from omkl.stream.source import Source

PIECE_ROWS = 10_000
MOST_NEWS = 20


@dataclass(frozen=True)
class Options:
    """What `omkl run` was asked for. The first part decides what is learned."""

    target: str = ""
    task: Task | None = None
    learner: str = "graph-mkl"
    features: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    date_format: str | None = None
    seed: int = 0
    key: str | None = None
    pending: int = 10_000
    by: str | None = None
    format: Format | None = None
    delimiter: str | None = None
    encoding: str | None = None
    header: bool = True

    data: tuple[str, ...] = field(default=(), metadata={"free": True})
    every: int = field(default=PIECE_ROWS, metadata={"free": True})
    predictions: str | None = field(default=None, metadata={"free": True})
    model: str | None = field(default=None, metadata={"free": True})
    checkpoint: str | None = field(default=None, metadata={"free": True})
    report: str | None = field(default=None, metadata={"free": True})

    def decisive(self) -> dict[str, Any]:
        """As JSON, what two runs must share to be the same."""
        values = {f.name: getattr(self, f.name) for f in fields(self) if not f.metadata.get("free")}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}

    def wants(self, name: str) -> bool:
        if name in (self.target, self.key, self.by):
            return True
        return (not self.features or name in self.features) and name not in self.drop


@dataclass
class Progress:
    """What a checkpoint holds beside the model: how far it got, and what was written by then."""

    options: dict[str, Any]
    records: int = 0
    digest: str = ""
    written: int | None = None  # bytes of predictions
    beside: bool = False  # predictions go to another file first, as one of that name was there before
    skipped: int = 0
    finished: bool = False
    told: dict[str, str] = field(default_factory=dict)


@dataclass
class Kept:
    """A checkpoint."""

    model: StreamModel
    history: History | None
    progress: Progress


@dataclass
class Outcome:
    """How a run ended."""

    summary: dict[str, Any]
    model: StreamModel
    history: History | None
    stopped: bool = False
    nothing_new: bool = False
    data: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()


class Teller:
    """News, each told once, and of one sort no more than MOST_NEWS: a file may have thousands of columns."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self.say = say
        self.told: dict[str, str] = {}

    def __call__(self, about: str, news: str) -> None:
        sort = about.partition(" ")[0]
        if about in self.told or f"more {sort}" in self.told:
            return
        if sum(other.partition(" ")[0] == sort for other in self.told) >= MOST_NEWS:
            about, news = f"more {sort}", "and more of this sort"
        self.told[about] = news
        self.say(news)


class Run:
    """A pass over data, from a fresh model, a checkpoint or a given model."""

    def __init__(self, options: Options, say: Callable[[str], None], start: StreamModel | None = None) -> None:
        self.options = options
        self.tell = Teller(say)
        self.stop = Stop()
        check_outputs(options)
        kept = self._kept()
        if kept is None:
            self.progress = Progress(options.decisive())
            self.model = start or StreamModel(
                options.target, options.task, options.learner, options.seed, self.tell, key=options.key,
                pending=options.pending, date_format=options.date_format, categorical=options.categorical,
                by=options.by, features=options.features, drop=options.drop,
            )  # fmt: skip
            self.history: History | None = None
        else:
            self.progress, self.model, self.history = kept.progress, kept.model, kept.history
            self.tell.told = dict(kept.progress.told)
        self.resumed = kept is not None
        self.model.tell = self.model.encoder.tell = self.tell
        self.reading = Reading(
            options.format, options.delimiter, options.encoding, options.header, options.wants, self.tell,
            stop=self.stop, skipped=self.progress.skipped,
            needed=tuple(filter(None, (options.target, options.key, options.by))),
        )  # fmt: skip
        self.writer: Writer | None = None
        self.source = Source(options.data, self.reading, min(options.every, PIECE_ROWS))

    def _kept(self) -> Kept | None:
        path = self.options.checkpoint
        if path is None or not os.path.exists(path):
            return None
        kept = persist.load(path)
        if not isinstance(kept, Kept):
            raise ModelFileError(f"{path}: not a checkpoint but a model; choose another name for the checkpoint")
        now, then = self.options.decisive(), kept.progress.options
        for name, value in now.items():
            if then.get(name) != value:
                raise DataError(
                    f"{path}: the checkpoint of another run, with {name}={then.get(name)!r} instead of {value!r}; "
                    "run the same command, or remove the checkpoint to start anew"
                )
        return kept

    def run(self, watch: Callable[["Run"], None] = lambda run: None) -> Outcome:
        """To the end of the data, or until told to stop."""
        began, rows_before = time.monotonic(), self.progress.records
        with self.stop, warnings.catch_warnings():
            warnings.simplefilter("ignore", BudgetWarning)  # the model says it in fewer words
            if self.resumed:
                self.source.skip(self.progress.records, self.progress.digest)
                self._open()
            try:
                new = self._pieces(watch)
                if self.source.rows == 0 and not self.resumed and not self.stop.asked:
                    why = "no row can be used" if self.source.records else "a header and no rows"
                    raise DataError(f"{', '.join(self.options.data)}: {why}; nothing was learned")
                self._finish(new)
            finally:
                if self.writer is not None:
                    self.writer.close()
        seconds = time.monotonic() - began
        summary = self.summary() | {
            "seconds": seconds,
            "rows_per_second": (self.source.records - rows_before) / max(seconds, 1e-9),
        }
        return Outcome(
            summary, self.model, self.history, self.stop.asked, self.resumed and not new and not self.stop.asked,
            self.options.data, tuple(self.tell.told.values()),
        )  # fmt: skip

    def _open(self) -> None:
        """The predictions: where the checkpoint left them, or a new file."""
        where, progress = self.options.predictions, self.progress
        if where is None:
            return
        if not self.resumed:
            self.writer = Writer(where, None, None)
        elif progress.written is None:
            raise DataError("the checkpoint was written without --predictions; leave them out, or remove the "
                            "checkpoint to start anew")  # fmt: skip
        else:
            self.writer = Writer(where, progress.written, progress.beside)

    def _pieces(self, watch: Callable[["Run"], None]) -> bool:
        new = False
        for batch in self.source:
            if len(batch.rows):
                some = self.model.prepare(batch)
                if self.history is None:
                    self.history = History(self.model.task or "regression")
                said, answers = self.model.learn(some, self.history)
                self.reading.numbers = self.model.encoder.plain_numbers()
                if self.model.task == "regression" and self.model.comma is None:
                    self.reading.numbers.add(self.options.target)
                self.history.note(said, answers)
                if self.writer is None:  # not before there is something to write, so that an error leaves no empty file
                    self._open()
                if self.writer is not None:
                    self.writer.write(said)
                new = True
            if self.source.records - self.progress.records >= self.options.every:
                self._checkpoint()
            watch(self)
            if self.stop.asked:
                break
        return new

    def _checkpoint(self) -> None:
        self.source.check_unchanged()
        progress = self.progress
        progress.records, progress.digest = self.source.records, self.source.digest.hexdigest()
        progress.skipped, progress.told = self.reading.skipped, dict(self.tell.told)
        if self.options.checkpoint is None:
            return
        if self.writer is not None:
            self.writer.settle()
            progress.written, progress.beside = self.writer.size, self.writer.beside
        persist.save(Kept(self.model, self.history, progress), self.options.checkpoint)

    def _finish(self, new: bool) -> None:
        """Everything in its place. A kill in between is mended by the same steps when it is run again."""
        there = self.options.model is None or os.path.exists(self.options.model)
        if self.progress.finished and not new and there:
            return
        self.progress.finished = False
        self._checkpoint()
        if self.options.model is not None:
            persist.save(self.model, self.options.model)
        if self.writer is not None:
            self.writer.finish()
        self.progress.finished = not self.stop.asked
        self._checkpoint()

    def summary(self) -> dict[str, Any]:
        """How it went so far, as JSON; nothing in it depends on time."""
        weights = self.model.weights()
        order = np.argsort(-weights, kind="stable")[:3]
        return {
            "target": self.model.target, "task": self.model.task, "learner": self.model.learner,
            "rows": self.source.records, "learned": self.model.learned, "skipped": self.reading.skipped,
            "waiting": len(self.model.waiting), **({} if (fleet := self.model.fleet) is None else {"keys": len(fleet)}),
            "features": len(self.model.encoder.features),
            **(self.history.summary() if self.history is not None else {"scored": 0}),
            "kernels": [{"kernel": str(self.model.kernels[k]), "weight": float(weights[k])} for k in order],
            "changes": [] if self.history is None else self.history.moments_of_change(),
        }  # fmt: skip


def check_outputs(options: Options) -> None:
    """Refuse before the work what could not be written after it."""
    named = {"predictions": options.predictions, "model": options.model, "checkpoint": options.checkpoint,
             "report": options.report}  # fmt: skip
    files = {what: where for what, where in named.items() if where not in (None, "-")}
    for what, where in files.items():
        path = Path(where)
        folder = path.resolve().parent
        if not folder.is_dir():
            raise DataError(f"--{what} {where}: there is no folder {str(path.parent)!r}; make it first")
        if path.is_dir():
            raise DataError(f"--{what} {where}: a folder; wanted the name of a file")
        if not os.access(folder, os.W_OK):
            raise PermissionError(
                errno.EACCES, f"--{what}: the folder cannot be written to", str(path.resolve().parent)
            )
        if where in options.data:
            raise DataError(f"--{what} {where}: the same file as the data")
        device = path.exists() and not path.is_file()
        if what == "predictions" and path.suffix.lower() not in WRITTEN and not device:
            raise DataError(
                f"--predictions {where}: wanted a name that ends in {', '.join(WRITTEN)}, or - for standard output"
            )
    if len({os.path.realpath(where) for where in files.values()}) < len(files):
        raise DataError("predictions, model, checkpoint and report must be four different files")


# Checkpoint files


def _encode(kept: Kept, compact: bool) -> tuple[Any, Arrays]:
    arrays: Arrays = {}
    body = {
        "model": models.encode(kept.model, arrays),
        "history": None if kept.history is None else kept.history.encode(arrays),
        "progress": vars(kept.progress),
    }
    return body, arrays


def _decode(body: Any, arrays: Arrays) -> Kept:
    history = None if body["history"] is None else History.decode(body["history"], arrays)
    return Kept(models.decode(body["model"], arrays), history, Progress(**body["progress"]))


persist.register("checkpoint", Codec((Kept,), _encode, _decode))


# Asking only


def predict(model: StreamModel, options: Options, say: Callable[[str], None]) -> bool:
    """Predictions for all rows from a model that stays as it is; tells whether it was stopped."""
    assert options.predictions is not None
    check_outputs(options)
    tell = Teller(say)
    model.tell = model.encoder.tell = tell
    stop = Stop()
    wanted = {*model.encoder.columns, model.target, model.key, model.by}
    reading = Reading(options.format, options.delimiter, options.encoding, options.header,
                      lambda name: name in wanted, tell, stop=stop,
                      needed=tuple(filter(None, (model.key, model.by))))  # fmt: skip
    reading.numbers = model.encoder.plain_numbers()
    source = Source(options.data, reading, min(options.every, PIECE_ROWS))
    writer: Writer | None = None
    try:
        with stop:
            for batch in source:
                said = model.predict(batch)
                writer = writer or Writer(options.predictions, None, None)
                writer.write(said)
                if stop.asked:
                    break
            if writer is None and not stop.asked:
                raise DataError(f"{', '.join(options.data)}: a header and no rows; there is nothing to predict")
            if writer is not None:
                writer.finish()
    finally:
        if writer is not None:
            writer.close()
    return stop.asked
