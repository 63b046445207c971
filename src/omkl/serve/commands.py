"""Changes to a model, as they are queued, logged and replayed."""

from dataclasses import dataclass, field
from typing import Any, Literal

import orjson
import pyarrow as pa

from omkl.serve.bodies import ARROW, FEW, JSON, LINES, Columns, Row, arrow_bytes, json_bytes, parse_rows, table_columns
from omkl.serve.limits import Limits
from omkl.serve.store import RequestId

Kind = Literal["rows", "labels", "forget"]
ANY = Limits(rows=2**31, columns=2**31, text=2**31)  # what was accepted once is not refused later
GROUP_ROWS = FEW  # of several requests that are learned together


@dataclass(eq=False)
class Command:
    """A request that changes a model: rows to be predicted, then learned; delayed targets; a key to be forgotten."""

    kind: Kind
    rows: list[Row] = field(default_factory=list)  # of kind "labels", {"key": ..., "target": ...} each
    columns: Columns | None = None  # the same cells, where many rows have the same columns
    table: pa.Table | None = None  # the rows of a request in Arrow
    key: str = ""
    raw: bytes | None = None  # the body from which the rows were parsed
    lines: bool = False  # it was one of JSON lines
    targets: bool = False  # every row must have a target, and predictions are not wanted
    id: RequestId | None = None
    future: Any = None  # whoever waits for the answer

    @property
    def size(self) -> int:
        """Number of rows."""
        return len(self.rows) if self.table is None else self.table.num_rows

    @property
    def arrays(self) -> Columns | None:
        """The cells by column, where there are many rows with the same columns."""
        if self.columns is None and self.table is not None:
            self.columns = table_columns(self.table)
        return self.columns

    @property
    def joins(self) -> bool:
        """Whether it can be learned together with others: a few rows in JSON."""
        return self.kind == "rows" and self.table is None and self.size <= GROUP_ROWS


def encode(commands: list[Command]) -> bytes:
    """A record of the log: a line of JSON about its requests, and their bodies."""
    bodies = [_body(command) for command in commands]
    head = [
        {"kind": command.kind, "targets": command.targets, "key": command.key, "id": command.id and [*command.id],
         "format": _format(command), "bytes": len(body)} for command, body in zip(commands, bodies, strict=True)
    ]  # fmt: skip
    return b"".join((json_bytes(head), b"\n", *bodies))


def decode(record: bytes) -> list[Command]:
    """The requests of a record."""
    head, _, rest = record.partition(b"\n")
    out: list[Command] = []
    for about in orjson.loads(head):
        body, rest = rest[: about["bytes"]], rest[about["bytes"] :]
        command = Command(about["kind"], key=about["key"], targets=about["targets"])
        command.id = None if about["id"] is None else RequestId(*about["id"])
        if about["format"] == ARROW:
            command.table = pa.ipc.open_stream(body).read_all()
        elif command.kind == "rows":
            command.rows, command.columns, _ = parse_rows(body, about["format"], ANY)
        elif command.kind == "labels":
            command.rows = orjson.loads(body)
        out.append(command)
    return out


def _format(command: Command) -> str:
    return ARROW if command.table is not None else LINES if command.lines and command.raw is not None else JSON


def _body(command: Command) -> bytes:
    if command.table is not None:
        return arrow_bytes(command.table)
    return json_bytes(command.rows) if command.raw is None else command.raw
