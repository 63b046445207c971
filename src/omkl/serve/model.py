"""A model behind the service: the stream's model and history, the log and the checkpoints that bring both back."""

import os
import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from omkl import persist
from omkl.encoder.table import Batch
from omkl.errors import ModelFileError
from omkl.log import logger
from omkl.serve import checks, commands
from omkl.serve.answers import answers_of, table_of
from omkl.serve.bodies import Row, batch_of, json_bytes
from omkl.serve.checks import Accepted
from omkl.serve.commands import Command
from omkl.serve.limits import Limits, Refused
from omkl.serve.store import Store
from omkl.serve.turns import Turns
from omkl.stream.checkpoint import Checkpoint, Progress
from omkl.stream.history import History
from omkl.stream.keyed import ModelPerKey
from omkl.stream.linear import LinearModel
from omkl.stream.model import StreamModel
from omkl.stream.predictions import DEFAULT_COVERAGE, Predictions, concatenated
from omkl.stream.raw import DataError

LABELS = 16  # that came later, each a row that is learned by itself
PREDICTED = 256  # rows that are predicted while learning waits
RECENT = 64  # rows that the dashboard knows
NOTICES = 20
CHECKPOINT, LOG = "checkpoint.omkl", "log.sqlite"
TEMPORARY = ".omkl-serve-"  # how the names begin of what is removed at the next start
Answer: TypeAlias = list[Row] | bytes | pa.Table | Row | Refused  # bytes are JSON


class ServedModel:
    """A model in a folder. One thread learns (`check`, `record`, `apply`); others predict and look at it meanwhile."""

    def __init__(self, folder: Path, limits: Limits) -> None:
        self.folder, self.limits = folder, limits
        self.turns = Turns()
        self.accepted = Accepted()
        self.recent: deque[tuple[Row, Row]] = deque(maxlen=RECENT)  # rows and their answers
        self.notices: deque[str] = deque(maxlen=NOTICES)
        self.checkpoints = self.failed_checkpoints = self.replayed = 0
        self._writing: threading.Thread | None = None
        self.unsound: int | None = None  # a record that is learned in part, and has to be taken back
        self._written = 0  # the last record that the checkpoint contains
        self.store = Store(str(folder / LOG), limits)
        try:
            self.recover()
        except BaseException:
            self.store.close()
            raise

    @classmethod
    def create(
        cls, folder: Path, model: StreamModel, history: History | None, rows: int, source: str,
        request: str | None = None,
    ) -> None:  # fmt: skip
        """A folder for a model that the service has not had before; it is there whole or not at all.

        `source` says what it began with, and `request` which request asked for it.
        """
        progress = Progress({"seq": 0, "source": source, "request": request}, records=rows)
        new = folder.with_name(f"{TEMPORARY}new-{folder.name}")
        new.mkdir(parents=True, exist_ok=True)
        persist.save(Checkpoint(model, history, progress), new / CHECKPOINT)
        new.rename(folder)
        persist.flush_folder(folder.parent)

    # Recovery

    def recover(self) -> None:
        """The model of the checkpoint, and what was logged after it."""
        path = str(self.folder / CHECKPOINT)
        found = persist.read(path)
        if not isinstance(found, Checkpoint) or "seq" not in found.progress.options:
            raise ModelFileError(f"{path}: not a checkpoint of omkl serve")
        other = ServedModel.__new__(ServedModel)
        other.__dict__ |= self.__dict__ | {"turns": Turns()}
        other._take(found)
        self.replayed = 0
        last = self.store.last()
        for seq, record in self.store.records(other.seq):
            try:
                other.apply(seq, commands.decode(record))
            except Exception as error:
                if seq < last:
                    raise DataError(f"{self.folder}: record {seq} of the log cannot be learned ({error}); it was, "
                                    "by another version of omkl") from error  # fmt: skip
                # the service was killed while it found out that this request cannot be learned: nobody got an answer
                logger.warning("%s: the last record cannot be learned and is left out", self.folder.name)
                self.store.remove(seq)
                self.recover()
                return
            self.replayed += 1
        with self.turns:
            self._take(Checkpoint(other.model, other.history, Progress({**found.progress.options, "seq": other.seq},
                                                                       records=other.rows)))  # fmt: skip
        if self.replayed:
            logger.info("%s: %d records of the log replayed", self.folder.name, self.replayed)

    def _take(self, found: Checkpoint) -> None:
        self.model, self.history = found.model, found.history
        self.seq: int = found.progress.options["seq"]
        self.began = {name: value for name, value in found.progress.options.items() if name != "seq"}
        self.rows = found.progress.records
        self.model.coverages = (DEFAULT_COVERAGE,)
        self.model.notices.show = self.notices.append
        self.rows_since = 0  # the checkpoint
        self.unsound = None
        self.accepted = Accepted()

    # Learning: by one thread

    def check(self, command: Command) -> None:
        """Refuse what the model cannot learn."""
        checks.check(self.model, command, self.limits, self.accepted)

    def record(self, seq: int, group: list[Command]) -> None:
        """Write requests to the log, as this record; they survive from here on."""
        ids = [(place, command.id) for place, command in enumerate(group) if command.id is not None]
        self.store.append(seq, commands.encode(group), ids)

    def apply(self, seq: int, group: list[Command], logged: Callable[[], object] | None = None) -> list[Answer]:
        """Learn a record of the log; the same record always has the same effect and the same answers.

        `logged` returns when the record is in the log, or raises; then the record must be taken back.
        """
        first = group[0]
        if first.kind == "forget":
            out: list[Answer] = [self._forget_key(first.key)]
        elif first.kind == "labels":
            out = [self._learn_labels(first.rows)]
        else:
            out = self._learn_rows(group)
        self.seq = seq
        if logged is not None:
            logged()
        for command, answer in zip(group, out, strict=True):
            if command.id is not None:
                rows = answer.to_pylist() if isinstance(answer, pa.Table) else answer
                self.store.keep_answer(seq, command.id, rows if isinstance(rows, bytes) else json_bytes(rows))
        return out

    def _learn_rows(self, group: list[Command]) -> list[Answer]:
        start = self.rows + 1
        rows = [row for command in group for row in command.rows]
        table, columns = group[0].table, group[0].arrays
        batch = batch_of(rows, start) if columns is None else Batch(np.arange(start, start + group[0].size), columns)
        names = checks.wanted_columns(self.model, batch.columns)
        found = self._run(batch.only(names.__contains__))
        whole = len(found.rows) == len(batch.rows)  # no target of a row that waited
        last = rows[-RECENT:] if table is None else table.slice(max(0, table.num_rows - RECENT)).to_pylist()
        of_table, of_none = table is not None and whole, all(command.targets for command in group)
        few = of_table or of_none  # who asked needs no answers row by row
        answers: Any = answers_of(found.where(found.rows > batch.rows[-1] - RECENT) if few else found)
        by_row = {answer["row"]: answer for answer in (answers[-RECENT:] if whole else answers)}
        for number, row in zip(batch.rows[-RECENT:].tolist(), last, strict=True):
            self.recent.append((row, by_row.get(number, {"row": number})))
        if of_table:
            answers = table_of(found)
        elif not whole:
            answers = [by_row.get(n, {"row": n, "late": True}) for n in batch.rows.tolist()]
        out: list[Answer] = []
        for command in group:
            first, self.rows = self.rows + 1, self.rows + command.size
            own = slice(first - start, self.rows + 1 - start)
            out.append({"learned": command.size, "row": first} if command.targets else answers[own])
        if columns is not None and table is None and not of_none and not group[0].lines:
            out = [json_bytes(answers)]  # while the rows are in the processor's cache
        return out

    def _run(self, batch: Batch) -> Predictions:
        with self.turns:
            prepared = self.model.prepare(batch)
            if self.history is None:
                linear = LinearModel(self.model.task or "regression") if self.model.horizon == 1 else None
                self.history = History(self.model.task or "regression", (DEFAULT_COVERAGE,), linear)
        with self.turns:
            found, late = self.model.learn(prepared, self.history, self.history.linear, self.turns.pause)
        with self.turns:
            self.history.update(found, late)
        self.rows_since += len(batch.rows)
        return found

    def _learn_labels(self, rows: list[Row]) -> Row:
        preparer = self.model.preparer
        assert preparer.key is not None
        known = {row["key"] for row in rows if row["key"] in preparer.waiting.rows}
        waiting = [row for row in rows if row["key"] in known]
        for start in range(0, len(waiting), LABELS):
            part = waiting[start : start + LABELS]
            batch = batch_of([{preparer.key: row["key"], self.model.target: row["target"]} for row in part], self.rows)
            some = next(iter(self.model.encoder.columns), "no column")  # no row of this batch has features
            batch.columns[some] = pa.nulls(len(part), pa.string())
            self._run(batch._replace(rows=np.full(len(part), max(self.rows, 1))))
        unknown = [row["key"] for row in rows if row["key"] not in known]
        return {"learned": len(waiting), "unknown": unknown}

    def _forget_key(self, key: str) -> Row:
        learner = self.model.learner
        assert isinstance(learner, ModelPerKey)
        assert learner.fleet is not None
        with self.turns:
            del learner.fleet[key]
            learner._bytes = None
        self.rows_since += 1
        return {"forgotten": key}

    # Checkpoints

    def checkpoint(self, wait: bool = False) -> None:
        """Write what was learned; the log up to here is not needed any more once that is on the disk."""
        self.finish_checkpoint(wait=True)
        if self.unsound is not None:
            return
        try:
            self.store.write_answers()  # of records that are not replayed any more once the checkpoint is there
        except Refused as error:
            self.checkpoint_failed(str(error))
            return
        seq = self.seq
        progress = Progress({"seq": seq, **self.began}, records=self.rows)
        data = persist.to_bytes(Checkpoint(self.model, self.history, progress))  # the thread that learns makes it
        self.rows_since = 0
        self._writing = threading.Thread(target=self._write, args=(data, seq), name="omkl-checkpoint")
        self._writing.start()
        self.finish_checkpoint(wait)

    def _write(self, data: bytes, seq: int) -> None:
        try:
            persist.write_atomically(self.folder / CHECKPOINT, data)
            self._written = seq
            self.checkpoints += 1
        except OSError as error:
            self.checkpoint_failed(error.strerror or str(error))

    def checkpoint_failed(self, why: str) -> None:
        """Count and log it."""
        self.failed_checkpoints += 1
        logger.error("%s: no checkpoint: %s; the log keeps what was learned", self.folder.name, why)

    def finish_checkpoint(self, wait: bool) -> None:
        """Shorten the log once a checkpoint has been written."""
        if self._writing is None or (self._writing.is_alive() and not wait):
            return
        self._writing.join()
        self._writing = None
        try:
            self.store.truncate(self._written)
        except Refused as error:
            logger.error("%s: %s", self.folder.name, error)

    def close(self) -> None:
        """Write what is left."""
        if self.rows_since:
            self.checkpoint(wait=True)
        self.finish_checkpoint(wait=True)
        self.store.close()

    # Predicting and looking: by any thread

    def predict(self, batch: Batch, coverages: tuple[float, ...]) -> Predictions:
        """Predictions from the model as it is; learning goes on in between where there are many rows."""
        model = self.model
        if model.learned == 0:
            raise Refused(409, "the model has learned no row yet; there is nothing to predict from")
        checks.check_columns(model, batch.columns, self.limits, "the rows")
        by = model.preparer.by
        if by is not None:
            checks.check_present(batch.columns[by].to_pylist(), by, "by")
        batch = batch.only(checks.wanted_columns(model, batch.columns).__contains__)
        step = PREDICTED if model.preparer.lagged is None else len(batch.rows)
        parts = []
        for start in range(0, len(batch.rows), step):
            here = slice(start, start + step)
            piece = Batch(batch.rows[here], {name: array[here] for name, array in batch.columns.items()})
            with self.turns:
                kept, self.model.coverages = self.model.coverages, coverages
                try:
                    parts.append(self.model.following().predict(piece))
                finally:
                    self.model.coverages = kept
        return concatenated(parts, model.preparer.key is not None or by is not None)

    def to_bytes(self) -> bytes:
        """The model as a file of omkl."""
        with self.turns:
            return persist.to_bytes(self.model)

    def keys(self, start: int, count: int) -> dict[str, Any]:
        """Some of the keys that have a model, in the order in which they came."""
        learner = self.model.learner
        if self.model.preparer.by is None:
            raise Refused(409, "this is one model for all rows, not one per key")
        with self.turns:
            found = list(learner.fleet or ()) if isinstance(learner, ModelPerKey) else []
        return {"keys": [str(key) for key in found[start : start + count]], "total": len(found)}

    @property
    def disk(self) -> int:
        """Bytes on the disk."""
        path = self.folder / CHECKPOINT
        return self.store.size + (os.path.getsize(path) if path.exists() else 0)
