"""One pass over a user's data: predict, write, learn, and lose nothing when stopped."""

import os
import time
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TypedDict

import numpy as np

from omkl import persist
from omkl.algorithms.base import Task
from omkl.errors import BudgetWarning
from omkl.estimators.label_order import SORTED
from omkl.notices import Notices
from omkl.stream.checkpoint import Checkpoint, Progress, load_checkpoint
from omkl.stream.history import Errors, History
from omkl.stream.linear import LinearModel
from omkl.stream.lock import locked
from omkl.stream.model import StreamModel
from omkl.stream.names import listed, suggestion
from omkl.stream.options import PIECE_ROWS, Options
from omkl.stream.parsers import Reading
from omkl.stream.paths import check_files
from omkl.stream.prepare import Preparer
from omkl.stream.raw import DataError, Stop
from omkl.stream.source import Source
from omkl.stream.targets import Target
from omkl.stream.writer import Writer

LEADING = 3  # kernels that a summary names


class KernelWeight(TypedDict):
    """A kernel by its name, and its weight in the prediction."""

    kernel: str
    weight: float


class KeyCount(TypedDict, total=False):
    keys: int  # where every key has a model


class RunSummary(Errors, KeyCount):
    """The results of a run, as JSON."""

    target: str
    task: Task | None
    learner: str
    rows: int
    learned: int
    skipped: int
    waiting: int
    features: int
    kernels: list[KernelWeight]  # those with the largest weights
    changes: list[int]  # rows near which the stream seems to have changed


class FinalSummary(RunSummary):
    """The results of a run that is over, and how long it took."""

    seconds: float
    rows_per_second: float


@dataclass
class Outcome:
    """How a run ended."""

    summary: FinalSummary
    model: StreamModel
    history: History | None
    stopped: bool = False
    nothing_new: bool = False
    data: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()


def new_model(options: Options, notices: Notices) -> StreamModel:
    """A model that has learned nothing, as the options want it."""
    preparer = Preparer(
        Target(options.target, options.task, notices), notices, key=options.key, pending=options.pending,
        by=options.by, date_format=options.date_format, categorical=options.categorical, features=options.features,
        drop=options.drop, lags=options.lag_settings(),
    )  # fmt: skip
    return StreamModel(preparer, options.learner, options.seed, options.parameters, options.pooled)


class Run:
    """A pass over data, from a new model, a checkpoint or a given model."""

    def __init__(self, options: Options, show: Callable[[str], None], start: StreamModel | None = None) -> None:
        self.options = options
        self.stop = Stop()
        check_files(options)
        with ExitStack() as lock:
            lock.enter_context(locked(options.checkpoint))
            self._prepare(load_checkpoint(options), show, start)
            self._lock = lock.pop_all()  # held until the run is over, or now if this fails

    def _prepare(self, checkpoint: Checkpoint | None, show: Callable[[str], None], start: StreamModel | None) -> None:
        options = self.options
        self.resumed = checkpoint is not None
        if checkpoint is None:
            self.progress = Progress(options.decisive())
            self.model = start or new_model(options, Notices())
            self.history: History | None = None
        else:
            self.progress, self.model, self.history = checkpoint.progress, checkpoint.model, checkpoint.history
        self.model.threshold, self.model.coverages = options.label_threshold(), options.coverages
        options.check_outputs(self.model)
        if options.probabilities and not (options.predictions or "").lower().endswith(".jsonl"):
            raise DataError("--probabilities wants predictions in a .jsonl file here, as labels may still come; "
                            "omkl predict writes them to .csv too")  # fmt: skip
        self.notices = self.model.notices
        self.notices.show, self.notices.shown = show, dict(self.progress.notices)
        self.reading = Reading(
            options.format, options.delimiter, options.encoding, options.header, options.reads, self.notices,
            stop=self.stop, skipped=self.progress.skipped, columns=options.columns(tuple(self.model.encoder.columns)),
        )  # fmt: skip
        self.writer: Writer | None = None
        self.source = Source(options.data, self.reading, min(options.every, PIECE_ROWS))

    def run(self, after_piece: Callable[["Run"], None] = lambda run: None) -> Outcome:
        """To the end of the data, or until a stop is requested."""
        began, rows_before = time.monotonic(), self.progress.records
        with self._lock, self.stop, warnings.catch_warnings():
            warnings.simplefilter("ignore", BudgetWarning)  # the model has a notice of its own
            if self.resumed:
                self.source.skip(self.progress.records, self.progress.digest)
                self._open()
            try:
                new = self._pieces(after_piece)
                if self.source.rows == 0 and not self.resumed and not self.stop.requested:
                    why = "no row can be used" if self.source.records else "a header and no rows"
                    raise DataError(f"{', '.join(self.options.data)}: {why}; nothing was learned")
                self._notify_threshold()
                self._finish(new)
            finally:
                if self.writer is not None:
                    self.writer.close()
        seconds = time.monotonic() - began
        summary: FinalSummary = {
            **self.summary(),
            "seconds": seconds,
            "rows_per_second": (self.source.records - rows_before) / max(seconds, 1e-9),
        }
        return Outcome(
            summary, self.model, self.history, self.stop.requested,
            self.resumed and not new and not self.stop.requested, self.options.data,
            tuple(self.notices.shown.values()),
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
                            "checkpoint to start from the beginning")  # fmt: skip
        else:
            self.writer = Writer(where, progress.written, progress.partial)

    def _pieces(self, after_piece: Callable[["Run"], None]) -> bool:
        new = False
        for batch in self.source:
            if len(batch.rows):
                prepared = self.model.prepare(batch.only(self.options.wants))
                self.options.check_outputs(self.model)
                if self.history is None:
                    task = self.model.task or "regression"
                    linear = LinearModel(task) if self.model.horizon == 1 else None  # it predicts one row ahead only
                    self.history = History(task, self.options.coverages, linear)
                self.history.details.by_key = self.model.preparer.by is not None
                self.history.details.judges = self.options.report is not None
                predictions, late = self.model.learn(prepared, self.history, self.history.linear)
                # what is carried along stays as it is written: 007 is not 7
                self.reading.numbers = self.model.preparer.plain_numbers() - set(self.options.keep)
                self.history.update(predictions, late)
                if (days := prepared.days(self.model.encoder)) is not None:
                    self.history.details.note_times(*days)
                if self.writer is None:  # not before there is something to write, so that an error leaves no empty file
                    self._open()
                if self.writer is not None:
                    kept = batch.at(predictions.rows, self.options.keep)
                    self.writer.write(predictions, kept, self.options.probabilities)
                new = True
            if self.source.records - self.progress.records >= self.options.every:
                self._checkpoint()
            after_piece(self)
            if self.stop.requested:
                break
        return new

    def _checkpoint(self) -> None:
        self.source.check_unchanged()
        progress = self.progress
        progress.records, progress.digest = self.source.records, self.source.digest.hexdigest()
        progress.skipped, progress.notices = self.reading.skipped, dict(self.notices.shown)
        if self.options.checkpoint is None:
            return
        if self.writer is not None:
            self.writer.sync()
            progress.written, progress.partial = self.writer.size, self.writer.partial
        persist.save(Checkpoint(self.model, self.history, progress), self.options.checkpoint)

    def _notify_threshold(self) -> None:
        threshold, learner = self.model.threshold, self.model.learner
        if threshold is not None and learner is not None and threshold.label not in (None, *learner.labels):
            name = threshold.label or ""
            self.notices("threshold", f"there was no label {name!r} (--threshold){suggestion(name, learner.labels)}; "
                         "no prediction was changed by it")  # fmt: skip

    def _finish(self, new: bool) -> None:
        """Everything in its place. If it is killed in between, the same command does these steps again."""
        complete = self.options.model is None or os.path.exists(self.options.model)
        if self.progress.finished and not new and complete:
            return
        if self.model.order.grouped and not self.resumed:
            self.notices("sorted", f"the {self.model.order.rows:,} {SORTED}")
        self._check_weighted_labels()
        self.progress.finished = False
        self._checkpoint()
        if self.options.model is not None:
            persist.save(self.model, self.options.model)
        if self.writer is not None:
            self.writer.finish()
        self.progress.finished = not self.stop.requested
        self._checkpoint()

    def _check_weighted_labels(self) -> None:
        weights, learner = self.model.parameters.get("class_weight"), self.model.learner
        if isinstance(weights, dict) and learner is not None:
            labels = learner.labels
            for label in sorted(set(weights) - set(labels)):
                self.notices(f"weighted {label}", f"class_weight has a weight of {label!r}, which did not come"
                             f"{suggestion(label, labels)}; the labels are {listed(labels)}")  # fmt: skip

    def summary(self) -> RunSummary:
        """The results so far, as JSON; nothing in it depends on time."""
        model, history = self.model, self.history
        weights = model.weights()
        leading = np.argsort(-weights, kind="stable")[:LEADING]
        n_keys = None if model.learner is None else model.learner.n_keys
        keys: KeyCount = {} if n_keys is None else {"keys": n_keys}
        errors: Errors = {"scored": 0} if history is None else history.summary()
        return {
            "target": model.target, "task": model.task, "learner": model.algorithm,
            "rows": self.source.records, "learned": model.learned, "skipped": self.reading.skipped,
            "waiting": len(model.waiting), **keys,
            "features": len(model.preparer.fills),
            **errors,
            "kernels": [{"kernel": str(model.kernels[k]), "weight": float(weights[k])} for k in leading],
            "changes": [] if history is None else history.change_points(),
        }  # fmt: skip
