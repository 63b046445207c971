"""The options of a pass over data, and the checks that come before any work."""

import errno
import os
from dataclasses import dataclass, field, fields
from pathlib import Path

from omkl.algorithms.base import Task
from omkl.persist import Json
from omkl.stream.parsers import Format
from omkl.stream.raw import DataError
from omkl.stream.writer import WRITTEN

PIECE_ROWS = 10_000


@dataclass(frozen=True)
class Options:
    """The options of `omkl run`. Those of the first part decide what is learned."""

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

    def decisive(self) -> dict[str, Json]:
        """As JSON, what two runs must share to be the same."""
        values = {f.name: getattr(self, f.name) for f in fields(self) if not f.metadata.get("free")}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}

    def needed(self) -> tuple[str, ...]:
        """Columns without which nothing can be learned."""
        return tuple(name for name in (self.target, self.key, self.by) if name)

    def wants(self, name: str) -> bool:
        """Whether a column is to be read."""
        if name in (self.target, self.key, self.by):
            return True
        return (not self.features or name in self.features) and name not in self.drop


def check_outputs(options: Options) -> None:
    """Refuse before the work what could not be written after it."""
    named = {"predictions": options.predictions, "model": options.model, "checkpoint": options.checkpoint,
             "report": options.report}  # fmt: skip
    files = {what: where for what, where in named.items() if where is not None and where != "-"}
    for what, where in files.items():
        path = Path(where)
        folder = path.resolve().parent
        if not folder.is_dir():
            raise DataError(f"--{what} {where}: there is no folder {str(path.parent)!r}; make it first")
        if path.is_dir():
            raise DataError(f"--{what} {where}: a folder; wanted the name of a file")
        if not os.access(folder, os.W_OK):
            raise PermissionError(errno.EACCES, f"--{what}: the folder cannot be written to", str(folder))
        if where in options.data:
            raise DataError(f"--{what} {where}: the same file as the data")
        device = path.exists() and not path.is_file()
        if what == "predictions" and path.suffix.lower() not in WRITTEN and not device:
            raise DataError(
                f"--predictions {where}: wanted a name that ends in {', '.join(WRITTEN)}, or - for standard output"
            )
    if len({os.path.realpath(where) for where in files.values()}) < len(files):
        raise DataError("predictions, model, checkpoint and report must be four different files")
