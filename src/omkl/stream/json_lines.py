"""The parser of JSON lines: fields of objects are columns, and booleans stay booleans, whichever way they are read."""

import io
import json
from collections.abc import Iterator
from types import NoneType

import numpy as np
import pyarrow as pa
import pyarrow.json

from omkl.arrays import Index
from omkl.encoder.table import Batch, flattened
from omkl.stream.parsers import (
    MAX_COLUMNS,
    MAX_DEPTH,
    Piece,
    Reading,
    characters_of,
    check_characters,
    too_many_columns,
    whole,
)

Names = dict[str, "Names"]  # of fields, in their order, each with those of the objects in it


class JsonParser:
    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.as_text: set[str] = set()  # columns of text that pyarrow would read as timestamps
        self.seen: dict[str, None] = {}  # every name, in order
        self.objects: set[str] = set()  # names of objects, whose fields are columns
        self.characters = 0  # of the names seen

    def parse(self, piece: Piece) -> Batch:
        columns = self._fast(piece)
        rows = np.arange(1, piece.records + 1)
        if columns is None:
            columns, rows = self._slow(piece)
        columns = {
            name: array for name, array in flattened(columns).items()
            if name not in self.objects or array.null_count < len(array)
        }  # fmt: skip
        first = not self.seen
        self.characters += sum(len(name) for name in columns if name not in self.seen)
        check_characters(piece.name, self.characters)
        self.seen.update(dict.fromkeys(columns))
        if first:
            self.reading.columns.check_learned(piece.name, self.seen)
            for what in self.reading.columns.absent(self.seen):
                self.reading.notify(f"not yet {what}", f"so far no record has {what}")
        for name in self.reading.columns.needed.values():  # a record may lack it
            if name not in columns:
                columns[name] = pa.nulls(len(rows), pa.string())
        wanted = {name: array for name, array in columns.items() if self.reading.wanted(name)}
        return Batch(piece.before + rows, wanted)

    def check(self, name: str) -> None:
        """At the end: refuse a column that must be there and that no record had."""
        if self.seen:
            self.reading.columns.check_needed(name, self.seen)
            self.reading.columns.check_named(name, self.seen)

    def _fast(self, piece: Piece) -> dict[str, pa.Array] | None:
        """All records at once, or None if pyarrow cannot read one of them."""
        if not _safe(piece.content):
            return None
        # a name with a dot is that of a field in an object, which has no place in a schema of names
        schema = {name: pa.float64() for name in sorted(self.reading.numbers) if "." not in name}
        schema |= {name: pa.string() for name in sorted(self.as_text)}
        try:
            table = pa.json.read_json(
                io.BytesIO(piece.content),
                read_options=pa.json.ReadOptions(use_threads=False, block_size=len(piece.content) + 16),
                parse_options=pa.json.ParseOptions(explicit_schema=pa.schema(schema.items()), newlines_in_values=False),
            )
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return None
        if table.num_rows != piece.records or len(set(table.column_names)) < table.num_columns:
            return None
        if any(_has_timestamps(field.type) for field in table.schema if pa.types.is_struct(field.type)):
            return None
        check_characters(piece.name, characters_of(table.schema))
        timestamps = {name for name in table.column_names if pa.types.is_timestamp(table.schema.field(name).type)}
        for column in table.schema:
            self.objects.update(_objects(column.name, column.type))
        if timestamps:
            self.as_text |= timestamps
            again = self._fast(piece)
            return None if again is None else {name: again[name] for name in table.column_names}
        return {name: whole(table[name]) for name in table.column_names}

    def _slow(self, piece: Piece) -> tuple[dict[str, pa.Array], Index]:
        records: list[dict[str, object]] = []
        rows: list[int] = []
        names: Names = {}
        known: dict[str, str] = {}  # names of columns, so that records share them
        characters = 0
        for row, line in enumerate(piece.content.split(b"\n")[:-1], 1):
            try:
                record = json.loads(line)
                if not isinstance(record, dict):
                    raise ValueError(f"wanted {{...}}, got {type(record).__name__}")
            except (ValueError, RecursionError) as error:
                if line.strip():
                    self.reading.skipped += 1
                    where = f"row {piece.first + row} of {piece.name}"
                    self.reading.notify("json", f"{where} is not a JSON object ({error}); such rows are skipped")
                continue
            characters += _add_names(names, record)
            check_characters(piece.name, characters)
            fields = _fields("", record, self.objects)
            records.append({known.setdefault(name, name): value for name, value in fields})
            rows.append(row)
        present = {name for record in records for name in record}
        if len(present) > MAX_COLUMNS:
            raise too_many_columns(piece.name)
        # in the order in which pyarrow has them
        columns = {name: _column([record.get(name) for record in records]) for name in _in_order(names, "")
                   if name in present}  # fmt: skip
        for name in columns:
            if any(isinstance(record.get(name), list) for record in records):
                self.reading.notify(f"nested {name}", f"field {name!r} holds lists, which are ignored")
        return columns, np.array(rows, dtype=np.int64)


def _has_timestamps(kind: pa.DataType) -> bool:
    return any(pa.types.is_timestamp(field.type) or (pa.types.is_struct(field.type) and _has_timestamps(field.type))
               for field in kind)  # fmt: skip


def _objects(name: str, kind: pa.DataType) -> Iterator[str]:
    """The names of a struct and of those in it."""
    if pa.types.is_struct(kind):
        yield name
        for field in kind:
            yield from _objects(f"{name}.{field.name}", field.type)


def _add_names(names: Names, record: dict[str, object], before: int = 0) -> int:
    """Add the fields of a record, and within each those of the object that it holds.

    Returns how many characters the names have that are new, with as many before each.
    """
    more = 0
    for name, value in record.items():
        cleaned = _clean(name)
        length = before + len(cleaned)
        if cleaned not in names:
            names[cleaned] = {}
            more += length
        if isinstance(value, dict):
            more += _add_names(names[cleaned], value, length + 1)
    return more


def _in_order(names: Names, prefix: str) -> Iterator[str]:
    for name, inner in names.items():
        yield prefix + name
        yield from _in_order(inner, f"{prefix}{name}.")


def _fields(prefix: str, record: dict[str, object], objects: set[str]) -> Iterator[tuple[str, object]]:
    """The fields of a record and of the objects in it, whose names are added to `objects`.

    Those of the record itself come last, and so have precedence.
    """
    for name, value in record.items():
        if isinstance(value, dict):
            objects.add(prefix + _clean(name))
            yield from _fields(f"{prefix}{_clean(name)}.", value, objects)
    for name, value in record.items():
        if not isinstance(value, dict):
            yield prefix + _clean(name), value


def _safe(content: bytes) -> bool:
    """Whether pyarrow may read these JSON lines: it crashes on deep nesting and on lines that are not objects."""
    marks = np.frombuffer(content, dtype=np.uint8)
    ends = np.flatnonzero(marks == 10)
    if not (marks[np.concatenate(([0], ends[:-1] + 1))] == ord("{")).all():
        return False
    deeper = np.cumsum((marks == ord("{")) | (marks == ord("[")))[ends]
    if np.diff(deeper, prepend=0).max() > MAX_DEPTH:
        return False
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


def _clean(text: str) -> str:
    """Without lone surrogates, which JSON allows."""
    return text if text.isascii() else text.encode(errors="surrogatepass").decode(errors="replace")


def _column(values: list[object]) -> pa.Array:
    """Booleans as they are, and all else as text; a column of lists is one, and so is ignored."""
    kinds = {type(value) for value in values} - {NoneType}
    if kinds == {bool}:
        return pa.array(values, pa.bool_())
    if kinds == {list}:
        return pa.nulls(len(values), pa.list_(pa.null()))
    return pa.array([_text(value) for value in values], pa.string())


def _text(value: object) -> str | None:
    if value is None or isinstance(value, (list, dict)):
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    return _clean(value) if isinstance(value, str) else repr(value)
