"""Parquet and Arrow files that stand for far more than their size: read in pieces of bounded memory, or refused."""

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from command import invoke
from hypothesis import given
from hypothesis import strategies as st

from omkl.encoder import cells
from omkl.stream import binary, parsers
from omkl.stream.parsers import Reading
from omkl.stream.raw import DataError
from omkl.stream.source import Source

ROWS = 300
LONG = "x" * (1 << 20)


def write(path: Path, table: pa.Table) -> str:
    if path.suffix == ".parquet":
        pa.parquet.write_table(table, path, compression="zstd")
    else:
        options = pa.ipc.IpcWriteOptions(compression="zstd")
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema, options=options) as writer:
            writer.write_table(table)
    return str(path)


def dictionary(values: list[str], indices: Any) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(indices, pa.int32()), pa.array(values))


def batches(path: str, **choices: Any) -> list[Any]:
    return list(Source([path], Reading(**choices), 1000))


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_text_that_is_stored_once_is_decoded_in_small_pieces(tmp_path: Path, ending: str):
    table = pa.table({"a": dictionary([LONG, "short"], [0] * ROWS), "y": np.arange(ROWS) / 2})
    path = write(tmp_path / f"table.{ending}", table)
    assert Path(path).stat().st_size < 12_000
    rows = 0
    for batch in Source([path], Reading(), 1000):
        decoded = cells.usable(batch.columns["a"])
        assert decoded.nbytes <= binary.MAX_PIECE + (1 << 16)
        assert batch.rows.tolist() == list(range(rows + 1, rows + 1 + len(batch.rows)))
        assert batch.columns["y"].to_pylist() == [k / 2 for k in range(rows, rows + len(batch.rows))]
        rows += len(batch.rows)
    assert rows == ROWS


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_a_row_of_very_long_text_is_refused(tmp_path: Path, ending: str):
    path = write(tmp_path / f"table.{ending}", pa.table({"a": dictionary(["short", LONG * 17], [0, 0, 1, 1])}))
    with pytest.raises(DataError, match=r"(row 3|column 'a') of .*: longer than 16 MiB"):
        batches(path)


def test_text_that_begins_like_the_one_before_is_decoded_in_small_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(binary, "MAX_DECODED", 1 << 22)
    path = tmp_path / "table.parquet"
    table = pa.table({"a": [LONG[: 1 << 16] + str(k) for k in range(ROWS)], "y": np.arange(ROWS)})
    encodings = {"a": "DELTA_BYTE_ARRAY", "y": "PLAIN"}
    pa.parquet.write_table(table, path, compression="zstd", use_dictionary=False, column_encoding=encodings)
    found = batches(str(path))
    assert sum(len(batch.rows) for batch in found) == ROWS
    assert max(batch.columns["a"].nbytes for batch in found) <= binary.MAX_DECODED


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_columns_that_cannot_be_learned_from_are_not_read(tmp_path: Path, ending: str, monkeypatch: pytest.MonkeyPatch):
    table = pa.table({"a": [[0] * 1000] * 5, "y": np.arange(5)})
    path = write(tmp_path / f"table.{ending}", table)
    found = batches(path)
    assert [batch.columns["a"].null_count for batch in found] == [5]
    assert pa.types.is_list(found[0].columns["a"].type)
    assert found[0].columns["y"].to_pylist() == [0, 1, 2, 3, 4]


def test_runs_are_not_decoded(tmp_path: Path):
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([2**20], pa.int32()), pa.array(["x"]))
    assert cells.usable(runs) is None


def test_views_of_one_string_are_measured():
    texts = pa.array([LONG, "short", None, LONG], pa.string_view())
    batch = pa.record_batch({"a": texts, "b": texts.cast(pa.string()).dictionary_encode()})
    assert binary.decoded_sizes(batch)[[0, 1, 3]].tolist() == [2 * len(LONG), 10, 2 * len(LONG)]
    assert binary.decoded_sizes(batch.slice(1, 1)).tolist() == [10]


@given(st.lists(st.integers(0, 3 << 20), min_size=1, max_size=40), st.integers(1, 50))
def test_pieces_are_all_rows_in_their_order_and_none_is_too_large(sizes: list[int], limit: int):
    values = [LONG[:1] * size for size in sorted(set(sizes))]
    at = [sorted(set(sizes)).index(size) for size in sizes]
    batch = pa.record_batch({"a": dictionary(values, at), "n": np.arange(len(sizes))})
    parts = list(binary.pieces("table", batch, lambda: limit, 0))
    assert [n for part in parts for n in part.column("n").to_pylist()] == list(range(len(sizes)))
    for part in parts:
        assert 1 <= len(part) <= limit
        assert len(part) == 1 or binary.decoded_sizes(part).sum() <= binary.MAX_PIECE


def test_very_many_columns_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(binary, "MAX_COLUMNS", 2)
    for ending in ("parquet", "arrow"):
        path = write(tmp_path / f"table.{ending}", pa.table({"a": [1], "b": [1], "c": [1]}))
        with pytest.raises(DataError, match=r"more than .* columns"):
            batches(path)


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_a_text_of_very_many_columns_is_refused(tmp_path: Path, ending: str):
    path = tmp_path / f"table.{ending}"
    wide = parsers.MAX_COLUMNS + 1
    if ending == "csv":
        path.write_text("a" + "," * wide + "\n" + "1" + "," * wide + "\n")
    else:
        path.write_text("{" + ",".join(f'"{k}":{k}' for k in range(wide)) + "}\n3\n")
    with pytest.raises(DataError, match="more than 100000 columns"):
        batches(str(path))


@pytest.mark.parametrize("unit", ["s", "ms", "ns"])
def test_durations_are_targets_in_seconds(tmp_path: Path, unit: str):
    seconds = np.random.default_rng(0).integers(1, 10**5, 40)
    spans = pa.array(seconds, pa.duration("s")).cast(pa.duration(unit))
    for name, target in {"spans": spans, "seconds": pa.array(seconds)}.items():
        pa.parquet.write_table(pa.table({"x": np.arange(40.0), "y": target}), tmp_path / f"{name}.parquet")
        result = invoke("run", tmp_path / f"{name}.parquet", "-t", "y", "--predictions", tmp_path / f"{name}.csv")
        assert result.exit_code == 0
    columns = [
        [row[1:4] for row in csv.reader((tmp_path / f"{name}.csv").read_text().splitlines())]
        for name in ("spans", "seconds")
    ]
    assert columns[0] == columns[1]
