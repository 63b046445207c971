"""Checkpoints: the model of a run, its history, and how far it has got."""

import os
from dataclasses import dataclass, field

from omkl import persist
from omkl.errors import ModelFileError
from omkl.persist import Arrays, Codec, Json, claims, demand
from omkl.stream import codec
from omkl.stream.history import History
from omkl.stream.model import StreamModel
from omkl.stream.options import Options
from omkl.stream.raw import DataError


@dataclass
class Progress:
    """How far a run has got, and what was written by then."""

    options: dict[str, Json]
    records: int = 0
    digest: str = ""
    written: int | None = None  # bytes of predictions
    partial: bool = False  # predictions go to a .part file first, as a file of that name was there before
    skipped: int = 0
    finished: bool = False
    notices: dict[str, str] = field(default_factory=dict)


@dataclass
class Checkpoint:
    """All that a run needs to go on as if it had never stopped."""

    model: StreamModel
    history: History | None
    progress: Progress


def load_checkpoint(options: Options) -> Checkpoint | None:
    """The checkpoint of the same run; None if there is none yet."""
    path = options.checkpoint
    if path is None or not os.path.exists(path):
        return None
    found = persist.load(path)
    if not isinstance(found, Checkpoint):
        raise ModelFileError(f"{path}: not a checkpoint but a model; choose another name for the checkpoint")
    before = Options().decisive() | found.progress.options  # older checkpoints lack the newer options
    for name, value in options.decisive().items():
        if before.get(name) != value:
            raise DataError(
                f"{path}: the checkpoint of another run, with {name}={before.get(name)!r} instead of {value!r}; "
                "run the same command, or remove the checkpoint to start from the beginning"
            )
    return found


# The names of these two in files are older than the names of the fields.
FILE_NAMES = {"partial": "beside", "notices": "told"}


def _encode(checkpoint: Checkpoint, compact: bool) -> tuple[Json, Arrays]:
    arrays: Arrays = {}
    body = {
        "model": codec.encode(checkpoint.model, arrays),
        "history": None if checkpoint.history is None else checkpoint.history.encode(arrays),
        "progress": {FILE_NAMES.get(name, name): value for name, value in vars(checkpoint.progress).items()},
    }
    return body, arrays


def _decode(body: Json, arrays: Arrays) -> Checkpoint:
    history = None if body["history"] is None else History.decode(body["history"], arrays)
    names = {in_file: name for name, in_file in FILE_NAMES.items()}
    progress = Progress(**{names.get(name, name): value for name, value in body["progress"].items()})
    _check(progress)
    model = codec.decode(body["model"], arrays)
    if history is not None:
        demand(history.task == (model.task or "regression"), "the model and its history differ in their task")
        demand(history.snapshots.shape[1] in (1, 1 + len(model.weights())), "the history is one of other kernels")
    return Checkpoint(model, history, progress)


def _check(progress: Progress) -> None:
    claims.mapping(progress.options, "the options")
    claims.count(progress.records, "the number of records")
    claims.count(progress.skipped, "the number of skipped rows")
    claims.string(progress.digest, "the digest of the data")
    if progress.written is not None:
        claims.count(progress.written, "the length of the predictions")
    claims.flag(progress.partial, "partial")
    claims.flag(progress.finished, "finished")
    for about, notice in claims.mapping(progress.notices, "the notices").items():
        claims.string(notice, f"the notice {about!r}")


persist.register("checkpoint", Codec((Checkpoint,), _encode, _decode))
