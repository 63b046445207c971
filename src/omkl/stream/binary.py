"""Parquet and Arrow files as batches whose decoded size is bounded, whatever a small file may stand for.

The fields of structs are columns, named struct.field. Columns that cannot be learned from, such as lists, are not read.
A column of text may be a dictionary and one index for each row, or views of one long string, so that a file of some
kilobytes stands for gigabytes of text: such columns are decoded a few rows at a time.
"""

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from omkl.arrays import Index
from omkl.encoder.cells import is_usable
from omkl.encoder.table import flattened
from omkl.stream.parsers import MAX_COLUMNS, MAX_DEPTH, characters_of, check_characters, too_many_columns
from omkl.stream.raw import READ, DataError, Raw
from omkl.stream.records import MAX_PIECE, MAX_RECORD

MAX_DECODED = 1 << 27  # bytes of text in a batch that pyarrow decodes by itself
DELTA = "DELTA"  # encodings in which a text may be the beginning of the last one, and something else

Wanted = Callable[[str], bool]
ENCODED_TEXT = {b"omkl": b"text"}
Check = Callable[[list[str]], None]  # refuses a table that lacks a column


def parquet_batches(name: str, raw: Raw, rows: int, wanted: Wanted, check: Check) -> Iterator[pa.RecordBatch]:
    """Batches of at most so many rows."""
    table = pa.parquet.ParquetFile(raw.native())
    schema = _checked(name, table.schema_arrow, check)
    # columns of the file have the names that `leaves` gives them
    text = {field.name for field in schema if _is_text(field.type) and is_usable(field.type)}
    read = [field.name for field in schema if wanted(field.name) and is_usable(field.type)]
    for group in range(table.num_row_groups):
        claims = table.metadata.row_group(group)
        for k in range(claims.num_columns):
            column = claims.column(k)
            if column.path_in_schema not in read:
                continue
            if column.total_uncompressed_size > MAX_RECORD * max(claims.num_rows, 1):
                raise _too_long(f"column {column.path_in_schema!r} of {name}")
            if any(encoding.startswith(DELTA) for encoding in column.encodings):
                text.discard(column.path_in_schema)  # pyarrow has no dictionary of it
                rows = max(1, min(rows, MAX_DECODED // max(column.total_uncompressed_size, 1)))
    pieces = max(1, -(-table.metadata.num_rows // rows))
    if not read:  # the number of rows still counts
        lengths = _in_pieces(table.metadata.num_rows, rows)
        batches: Iterator[pa.RecordBatch] = (pa.record_batch({"": pa.nulls(n)}) for n in lengths)
    else:
        # text stays encoded, and a page at a time is read from the file
        table = pa.parquet.ParquetFile(raw.native(), read_dictionary=sorted(text), buffer_size=READ)
        every = range(table.num_row_groups)
        # pyarrow reads no batch of two row groups in which the field of a struct is a dictionary
        nested = (text & set(read)) - set(table.schema_arrow.names)
        groups = [[group] for group in every] if nested else [list(every)]
        batches = (batch for some in groups for batch in table.iter_batches(rows, some, read))
    for batch in raw.followed(batches, pieces):
        yield _completed(batch, schema)


def arrow_batches(name: str, raw: Raw, wanted: Wanted, check: Check) -> Iterator[pa.RecordBatch]:
    """The batches of an Arrow file or stream, validated: the offsets in a damaged file would be trusted otherwise."""
    if raw.seekable() and raw.peek(6) == b"ARROW1":
        nested = pa.ipc.open_file(raw.native()).schema
        schema = _checked(name, nested, check)
        reader = pa.ipc.open_file(raw.native(), options=_only(nested, wanted))
        n = reader.num_record_batches
        batches: Iterator[pa.RecordBatch] = raw.followed((reader.get_batch(k) for k in range(n)), n)
    else:
        if raw.peek(6) == b"ARROW1":
            raw.read(8)  # after its magic bytes an Arrow file is an Arrow stream
        stream = pa.ipc.open_stream(raw)
        schema, batches = _checked(name, stream.schema, check), iter(stream)
    for batch in batches:
        batch.validate(full=True)
        yield _completed(batch, schema)


def pieces(name: str, batch: pa.RecordBatch, limit: Callable[[], int], first: int) -> Iterator[pa.RecordBatch]:
    """A batch in pieces of at most `limit()` rows and MAX_PIECE bytes of decoded text; `first` rows come before it."""
    sizes = decoded_sizes(batch)
    if sizes.max(initial=0) > MAX_RECORD:
        raise _too_long(f"row {first + int(np.argmax(sizes)) + 1} of {name}")
    ends = np.cumsum(sizes)
    start = 0
    while start < len(batch):
        stop = start + limit()
        if len(ends):
            before = ends[start - 1] if start else 0
            stop = min(stop, max(start + 1, int(np.searchsorted(ends, before + MAX_PIECE, side="right"))))
        part = batch.slice(start, stop - start)
        start += len(part)
        yield part


def decoded_sizes(batch: pa.RecordBatch) -> Index:
    """(rows,) bytes that the text of each row takes beyond what the batch itself takes; (0,) where there is none.

    >>> decoded_sizes(pa.record_batch({"a": pa.array(["some", "text", "some"]).dictionary_encode()}))
    array([4, 4, 4])
    """
    total: Index = np.zeros(0, dtype=np.int64)
    for column in batch.columns:
        array = column.storage if isinstance(column, pa.ExtensionArray) else column
        if pa.types.is_dictionary(array.type) and _is_text(array.type.value_type):
            lengths = np.append(_lengths(array.dictionary), 0)
            at = pc.fill_null(array.indices.cast(pa.int64()), len(array.dictionary)).to_numpy(zero_copy_only=False)
            total = lengths[at] + (total if len(total) else 0)
        elif pa.types.is_string_view(array.type):
            total = _lengths(array) + (total if len(total) else 0)
    return total


def _lengths(texts: pa.Array) -> Index:
    if pa.types.is_string_view(texts.type):  # 16 bytes each, of which the first four are the length
        views = np.frombuffer(texts.buffers()[1], dtype=np.int32)[::4]
        return views[texts.offset : texts.offset + len(texts)].astype(np.int64)
    lengths: Index = pc.fill_null(pc.binary_length(texts), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    return lengths


def _is_text(kind: pa.DataType) -> bool:
    types = pa.types
    tests = (types.is_string, types.is_binary, types.is_large_string, types.is_string_view)
    return any(test(kind) for test in tests)


def _checked(name: str, schema: pa.Schema, check: Check) -> pa.Schema:
    check_characters(name, characters_of(schema))
    flat = leaves(schema)
    if len(flat) > MAX_COLUMNS:
        raise too_many_columns(name)
    check(flat.names)
    return flat


def leaves(schema: pa.Schema) -> pa.Schema:
    """The schema with the fields of structs in place of these, named struct.field; a column of such a name stays.

    >>> leaves(pa.schema({"a": pa.struct({"b": pa.int8(), "c": pa.struct({"d": pa.string()})}), "a.b": pa.bool_()}))
    a.c.d: string
    a.b: bool
    """
    names = set(schema.names)

    def inner(fields: Iterable[pa.Field], prefix: str, depth: int) -> Iterator[pa.Field]:
        for field in fields:
            name = prefix + field.name
            if pa.types.is_struct(field.type) and depth < MAX_DEPTH:
                yield from inner(field.type, f"{name}.", depth + 1)
            elif not prefix or name not in names:
                yield pa.field(name, field.type)

    return pa.schema(inner(schema, "", 0))


def _only(nested: pa.Schema, wanted: Wanted) -> pa.ipc.IpcReadOptions:
    """Read the columns that can be learned from, and structs with such a field."""
    included = [
        k for k, field in enumerate(nested)
        if any(wanted(leaf.name) and is_usable(leaf.type) for leaf in leaves(pa.schema([field])))
    ]  # fmt: skip
    return pa.ipc.IpcReadOptions(included_fields=included or [0])  # an empty list would stand for all


def _completed(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The batch with empty columns in place of those that were not read, so that they can be named in notices."""
    given = {field.name: batch.column(k) for k, field in enumerate(batch.schema)}
    here = {name: array for name, array in flattened(given).items() if is_usable(array.type)}
    columns = [here.get(field.name, _empty(len(batch), field.type)) for field in schema]
    fields = [pa.field(own.name, array.type, metadata=None if array.type == own.type else ENCODED_TEXT)
              for own, array in zip(schema, columns, strict=True)]  # fmt: skip
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))


def columns_of(batch: pa.RecordBatch, wanted: Wanted) -> dict[str, pa.Array]:
    """The columns of a piece; text that was read as a dictionary, though the file declares none, is text again."""
    return {
        field.name: array.dictionary_decode() if field.metadata == ENCODED_TEXT else array
        for field, array in zip(batch.schema, batch.columns, strict=True)
        if wanted(field.name)
    }


def _empty(rows: int, kind: pa.DataType) -> pa.Array:
    try:
        return pa.nulls(rows, kind)
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        return pa.nulls(rows, pa.list_(pa.null()))


def _in_pieces(rows: int, most: int) -> Iterator[int]:
    return (min(most, rows - start) for start in range(0, rows, most))


def _too_long(where: str) -> DataError:
    return DataError(f"{where}: longer than {MAX_RECORD >> 20} MiB; is this a table, one row per line?")
