"""Bodies of requests as rows, and answers as bodies: JSON, JSON lines and Arrow."""

import io
import json
import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from types import NoneType
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from omkl.encoder.cells import is_usable
from omkl.encoder.table import Batch, of_cells
from omkl.serve.limits import Limits, Refused, invalid

JSON, LINES, ARROW = "application/json", "application/x-ndjson", "application/vnd.apache.arrow.stream"
FORMATS = (JSON, LINES, ARROW)
Row = dict[str, Any]  # a cell is a number, text, a boolean or None
Columns = dict[str, pa.Array]  # the same cells by column
MAX_DEPTH = 20
NO_NUMBER = re.compile(rb"[:\[,]\s*-?(NaN|Infinity)\b")
UNREADABLE = (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError)
FEW = 64  # rows, whose columns are not worth making before it is known with which others they are learned
UNPACKED = 4  # times the size of a body, for tables that are compressed


def parse_json(body: bytes) -> Any:
    """What JSON says; it has no NaN, no infinity and no half of a surrogate pair."""
    try:
        return orjson.loads(body)
    except ValueError as error:
        hint = "; JSON has no NaN and no Infinity: an empty cell is null" if NO_NUMBER.search(body) else ""
        raise Refused(400, f"the body is not JSON: {_reason(error)}{hint}") from None


def parse_rows(body: bytes, kind: str, limits: Limits) -> tuple[list[Row], Columns | None, bool]:
    """The rows of a request in JSON or JSON lines; their columns where many have the same; whether it is one row."""
    if kind == LINES:
        lines = [line for line in body.split(b"\n") if line.strip()]
        check_count(len(lines), limits)
        found, single = [parse_json(line) for line in lines], False
    else:
        given = parse_json(body)
        single = isinstance(given, dict)
        found = [given] if single else given
        if not isinstance(found, list):
            raise invalid("the body must be a row, {...}, or a list of rows, [{...}, {...}]")
    check_count(len(found), limits)
    cells = None if single else columns_of(found)
    if cells is not None and len(cells) <= limits.columns and max(map(len, cells), default=0) <= limits.text:
        kinds = {name: plain_type(own, limits) for name, own in cells.items()}
        if None not in kinds.values():
            floats = {name for name, kind in kinds.items() if kind is float}
            # columns are made at once, while the cells are in the processor's cache
            made = (
                (name, pa.array(own, pa.float64()) if name in floats else of_cells(own)) for name, own in cells.items()
            )
            return found, dict(made) if len(found) > FEW else None, single
    names: dict[str, str] = {}
    return [checked_row(row, number, limits, names) for number, row in enumerate(found, 1)], None, single


def check_names(body: bytes, kind: str, rows: list[Row], columns: Columns | None) -> None:
    """Refuse rows in which a column comes twice, of which a parser keeps one; `rows` are what was parsed."""
    members = sum(map(len, rows)) if columns is None else len(columns) * len(rows)
    if len(body) < 4096 and body.count(b":") == members:
        return
    if (most := most_members(body)) == members:
        return
    lines = [line for line in body.split(b"\n") if line.strip()] if kind == LINES else [body]
    found = [orjson.loads(line) for line in lines]
    given = found if kind == LINES or type(found[0]) is dict else found[0]
    for number, (row, cells) in enumerate(zip(rows, given, strict=True), 1):
        if len(row) < _count(cells, objects=False):
            raise invalid(f"row {number}: two columns have the same name")
    if most > sum(_count(cells, objects=True) for cells in given):
        for line in lines:
            json.loads(line, object_pairs_hook=_unique)


def most_members(body: bytes) -> int:
    """At least the number of members of all objects: the colon of a member follows a quote or a space."""
    text = np.frombuffer(body, np.uint8)
    before = text[np.flatnonzero(text == ord(":")) - 1]
    return int(np.count_nonzero((before == ord('"')) | (before <= ord(" "))))


def _unique(pairs: list[tuple[str, Any]]) -> Row:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise invalid(f"{shown(max(found, key=names.count))} comes twice in an object")
    return found


def _count(row: Row, objects: bool) -> int:
    """The cells of a row, in its objects too, and perhaps those objects."""
    return sum(objects + _count(cell, objects) if type(cell) is dict else 1 for cell in row.values())


def check_count(rows: int, limits: Limits) -> None:
    """Refuse a request without rows, or with too many."""
    if not rows:
        raise invalid("there is no row in the body")
    if rows > limits.rows:
        raise Refused(413, f"a request may have {limits.rows:,} rows, and this one has {rows:,}; send several")


def checked_row(row: object, number: int, limits: Limits, names: dict[str, str]) -> Row:
    """A row whose cells are plain values; an object in it becomes columns named object.field.

    `names`: of such columns in the request's rows, which share them, since a few bytes may stand for long ones.
    """
    if type(row) is not dict:
        raise invalid(f"row {number} must be an object, {{...}}, got {type(row).__name__}")
    kinds = set(map(type, row.values()))
    if dict in kinds:
        row = dict(_fields("", row, number, 0, limits, names))
        kinds = set(map(type, row.values()))
    if list in kinds:
        name = next(name for name, cell in row.items() if type(cell) is list)
        raise invalid(f"row {number}: {shown(name)} is a list; a cell is a number, text, a boolean or null")
    if len(row) > limits.columns:
        raise invalid(f"row {number} has {len(row):,} columns, and a model may have {limits.columns:,}")
    check_name(max(map(len, row), default=0), number, limits)
    if str in kinds or int in kinds:
        for name, cell in row.items():
            if type(cell) is str and len(cell) > limits.text:
                raise invalid(f"row {number}: {shown(name)} has more than {limits.text:,} characters")
            if type(cell) is int and abs(cell) > 2**63 - 1:
                if abs(cell) > 10**300:
                    raise invalid(f"row {number}: {shown(name)} is too large a number")
                row[name] = float(cell)
    return row


def columns_of(rows: Sequence[Any]) -> dict[str, list[Any]] | None:
    """The columns of rows that all have the same names; None where they do not, or are no rows."""
    if set(map(type, rows)) != {dict} or len(set(map(len, rows))) > 1:
        return None
    try:
        return {name: [row[name] for row in rows] for name in rows[0]}
    except KeyError:
        return None


def plain_type(cells: list[Any], limits: Limits) -> type | None:
    """The type of cells about which `checked_row` has nothing to say; None of others."""
    kinds = set(map(type, cells))
    plain = kinds <= {float, bool, NoneType}
    if kinds == {int}:
        plain = min(cells) > -(2**63) and max(cells) < 2**63
    elif kinds == {str}:
        plain = max(map(len, cells)) <= limits.text
    return (kinds.pop() if len(kinds) == 1 else object) if plain else None


def shown(name: str) -> str:
    """A name for a message."""
    return repr(name if len(name) <= 50 else name[:50] + "...")


def batch_of(rows: Sequence[Row], first: int) -> Batch:
    """Rows as columns; a cell that a row does not have is empty."""
    columns = {name: of_cells(cells) for name, cells in cells_of(rows).items()}
    return Batch(np.arange(first, first + len(rows)), columns)


def cells_of(rows: Sequence[Row]) -> dict[str, list[Any]]:
    """The cells of rows by column; None where a row has none."""
    columns = columns_of(rows)
    if columns is not None:
        return columns
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}


def read_arrow(body: bytes, limits: Limits) -> pa.Table:
    """The table of a request in Arrow's format for streams, of columns that are numbers, text, booleans, times."""
    try:
        _check_unpacked(body, limits)
        reader = pa.ipc.open_stream(io.BytesIO(body))
        if any(_compressed(field.type) for field in reader.schema):
            raise invalid("columns of dictionaries are not taken; cast them to text")
        parts, rows, size = [], 0, 0
        for part in reader:
            rows, size = rows + part.num_rows, size + part.nbytes
            check_count(max(rows, 1), limits)
            if size > UNPACKED * limits.body:
                raise _too_large(limits)
            part.validate(full=True)
            parts.append(part)
        table = pa.Table.from_batches(parts, reader.schema).combine_chunks()
    except (*UNREADABLE, OSError, MemoryError, struct.error) as error:
        raise Refused(400, f"the body is not an Arrow stream: {_reason(error)}") from None
    check_count(table.num_rows, limits)
    check_table(table, limits)
    return table


def _check_unpacked(body: bytes, limits: Limits) -> None:
    """Refuse a stream of which a few bytes stand for very many, before they are unpacked."""
    size = 0
    for message in pa.ipc.MessageReader.open_stream(pa.py_buffer(body)):
        if message.type == "record batch":
            size += _unpacked(memoryview(message.metadata), memoryview(message.body))
        elif message.type == "dictionary":
            raise invalid("columns of dictionaries are not taken; cast them to text")
    if size > UNPACKED * limits.body:
        raise _too_large(limits)


def _unpacked(about: memoryview, body: memoryview) -> int:
    """Bytes of a batch of rows whose buffers may be compressed, by what each says of itself; a few are as they are.

    The description is a FlatBuffer: a table begins with the distance to the list of the places of its fields.
    """

    def place(table: int, field: int) -> int:
        fields = table - struct.unpack_from("<i", about, table)[0]
        at, (size,) = 4 + 2 * field, struct.unpack_from("<H", about, fields)
        found: int = struct.unpack_from("<H", about, fields + at)[0] if at < size else 0
        return table + found if found else 0

    def follow(at: int) -> int:
        return int(at + struct.unpack_from("<I", about, at)[0])

    batch = follow(place(follow(0), 2))
    if not place(batch, 3) or not place(batch, 2):  # no compression, or no buffers
        return len(body)
    buffers = follow(place(batch, 2))
    (count,) = struct.unpack_from("<I", about, buffers)
    pairs = struct.iter_unpack("<qq", about[buffers + 4 : buffers + 4 + 16 * count])  # of place and length
    return sum(max(struct.unpack_from("<q", body, start)[0], length) for start, length in pairs if length)


def _too_large(limits: Limits) -> Refused:
    return Refused(413, f"the table has more than {UNPACKED * limits.body >> 20} MiB")


def check_table(table: pa.Table, limits: Limits) -> None:
    """Refuse columns that no model takes."""
    if len(set(table.column_names)) < table.num_columns:
        raise invalid("two columns have the same name")
    if table.num_columns > limits.columns:
        raise invalid(f"there are {table.num_columns:,} columns, and a model may have {limits.columns:,}")
    for field in table.schema:
        if not is_usable(field.type):
            raise invalid(f"column {shown(field.name)} holds {field.type}; wanted numbers, text, booleans or times")
        text = pa.types.is_string(field.type) or pa.types.is_large_string(field.type)
        longest = pa.compute.max(pa.compute.utf8_length(table[field.name])).as_py() if text else 0
        if len(field.name) > limits.text or (longest or 0) > limits.text:
            raise invalid(f"column {shown(field.name)} has more than {limits.text:,} characters in a cell or its name")


def batch_of_table(table: pa.Table, first: int) -> Batch:
    """The columns of a table."""
    return Batch(np.arange(first, first + table.num_rows), table_columns(table))


def table_columns(table: pa.Table) -> Columns:
    """Each column in one piece."""
    return {name: whole(table[name]) for name in table.column_names}


def whole(column: pa.ChunkedArray) -> pa.Array:
    """A column in one piece."""
    found = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    return found.chunk(0) if isinstance(found, pa.ChunkedArray) and found.num_chunks else found


def arrow_bytes(table: pa.Table) -> bytes:
    """A table in Arrow's format for streams."""
    out = io.BytesIO()
    with pa.ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table)
    return out.getvalue()


def answer_body(answers: list[Row] | bytes | pa.Table, kind: str, single: bool) -> bytes:
    """Answers for the rows of a request, in the format in which they came."""
    if isinstance(answers, bytes):
        return answers
    if isinstance(answers, pa.Table):
        return arrow_bytes(answers)
    if kind == ARROW:
        columns = dict(_flat("", cells_of(answers)))
        return arrow_bytes(pa.table({name: of_cells(cells) for name, cells in columns.items()}))
    if kind == LINES:
        return b"".join(json_bytes(answer) + b"\n" for answer in answers)
    return json_bytes(answers[0] if single else answers)


def json_bytes(value: Any) -> bytes:
    """JSON without spaces."""
    return orjson.dumps(value)


def finite(value: float) -> float | None:
    """A number that JSON has; None for others."""
    return float(value) if np.isfinite(value) else None


def check_name(length: int, number: int, limits: Limits) -> None:
    if length > limits.text:
        raise invalid(f"row {number}: the name of a column has more than {limits.text:,} characters")


def _fields(
    prefix: str, row: Mapping[str, Any], number: int, depth: int, limits: Limits, names: dict[str, str]
) -> Iterator[tuple[str, Any]]:
    """The cells of a row under their whole names, which are not made where they would be too long or too many."""
    if depth > MAX_DEPTH:
        raise invalid(f"row {number}: objects are nested more than {MAX_DEPTH} deep")
    check_name(len(prefix) + max(map(len, row), default=0), number, limits)
    for name, cell in row.items():
        if type(cell) is dict:
            yield from _fields(f"{prefix}{name}.", cell, number, depth + 1, limits, names)
    for name, cell in row.items():
        if type(cell) is not dict:
            whole = prefix + name
            if len(names) >= limits.columns and whole not in names:
                raise invalid(f"the rows have more than {limits.columns:,} columns, and a model may have no more")
            yield names.setdefault(whole, whole), cell


def _flat(prefix: str, columns: Mapping[str, list[Any]]) -> Iterator[tuple[str, list[Any]]]:
    """Columns of plain cells: objects by their names, and intervals by their ends."""
    for name, cells in columns.items():
        kinds = set(map(type, cells))
        if dict in kinds:
            yield from _flat(f"{prefix}{name}.", cells_of([cell or {} for cell in cells]))
        elif list in kinds:
            ends = zip(*(cell or (None, None) for cell in cells), strict=True)
            yield from zip((f"{prefix}{name}.lower", f"{prefix}{name}.upper"), map(list, ends), strict=True)
        else:
            yield prefix + name, cells


def _compressed(kind: pa.DataType) -> bool:
    """Whether a few bytes of it may stand for very many."""
    return bool(pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind))


def _reason(error: BaseException) -> str:
    return str(error)[:200] or type(error).__name__
