"""The options of a pass over data."""

from dataclasses import dataclass, field, fields

from omkl.algorithms.base import Task
from omkl.persist import Json
from omkl.stream.parsers import Format

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
    start: str | None = field(default=None, metadata={"free": True})  # the model to continue with
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
