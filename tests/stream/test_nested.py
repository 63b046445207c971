"""Objects of JSON, structs of Parquet and Arrow: their fields are columns; booleans stay booleans in all formats."""

import json
import tracemalloc
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from command import invoke
from hypothesis import given, settings
from hypothesis import strategies as st

from omkl import persist
from omkl.stream import binary
from omkl.stream.json_lines import JsonParser
from omkl.stream.parsers import Piece, Reading, characters_of
from omkl.stream.raw import DataError

ROWS: list[dict[str, Any]] = [
    {"a": k, "o": {"p": 2 * k, "q": {"r": "xy"[k % 2], "when": "2024-05-01 10:00"}} if k % 5 else None,
     "flag": k % 3 == 0, "y": 3.5 * k}
    for k in range(40)
]  # fmt: skip
FLAT = [
    {"a": row["a"], "o.p": (row["o"] or {}).get("p"), "o.q.r": (row["o"] or {}).get("q", {}).get("r"),
     "o.q.when": (row["o"] or {}).get("q", {}).get("when"), "flag": row["flag"], "y": row["y"]}
    for row in ROWS
]  # fmt: skip


def lines(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def test_fields_of_objects_are_columns(tmp_path: Path):
    data = {name: tmp_path / name for name in ("flat.jsonl", "nested.jsonl", "slow.jsonl")}
    data["flat.jsonl"].write_text(lines(FLAT))
    data["nested.jsonl"].write_text(lines(ROWS))
    data["slow.jsonl"].write_text(lines(ROWS) + "[1]\n")  # a line that pyarrow cannot read
    found = {}
    for name, path in data.items():
        out, model = tmp_path / f"{name}.csv", tmp_path / f"{name}.omkl"
        result = invoke("run", path, "-t", "y", "--predictions", out, "--model", model, "--every", 15)
        assert result.exit_code == 0, result.stderr
        columns = persist.read(model).encoder.columns
        found[name] = out.read_text(), {name for name, column in columns.items() if column.kind is not None}
    assert set(found["flat.jsonl"][1]) == {"a", "o.p", "o.q.r", "o.q.when", "flag"}
    assert all(each == found["flat.jsonl"] for each in found.values())
    assert invoke("run", data["nested.jsonl"], "-t", "y", "--drop", "o.p").exit_code == 0
    assert "did you mean 'o.p'?" in invoke("run", data["nested.jsonl"], "-t", "y", "--drop", "o.pp").stderr


SCALARS = st.none() | st.integers(-9, 9) | st.text("ab.", max_size=3) | st.booleans()
RECORDS = st.recursive(
    st.dictionaries(st.text("ab.", min_size=1, max_size=2), SCALARS, min_size=1, max_size=3),
    lambda inner: st.dictionaries(st.text("ab.", min_size=1, max_size=2), SCALARS | inner, min_size=1, max_size=3),
    max_leaves=4,
)


@settings(max_examples=60, deadline=None)
@given(st.lists(RECORDS, min_size=1, max_size=3))
def test_the_fields_of_a_record_have_precedence_over_those_of_its_objects(records: list[dict[str, Any]]):
    def walk(record: dict[str, Any], prefix: str = "") -> dict[str, Any]:
        inner = {k: v for n, o in record.items() if isinstance(o, dict) for k, v in walk(o, f"{prefix}{n}.").items()}
        return inner | {prefix + n: v for n, v in record.items() if not isinstance(v, dict)}

    content = (lines(records) + "0\n").encode()  # the last line is not an object, so that records are read one by one
    batch = JsonParser(Reading()).parse(Piece("t", len(records) + 1, 0, 0, content, JsonParser.parse))
    for k, record in enumerate(records):
        found = {name: array[k].as_py() for name, array in batch.columns.items() if array[k].is_valid}
        wanted = {name: value for name, value in walk(record).items() if value is not None}
        assert set(found) == set(wanted)
        assert all(str(value).lower() == str(found[name]).lower() for name, value in wanted.items())


def nested(depth: int, name: str) -> dict[str, Any]:
    """Objects in objects, each with a number and a name that is that long."""
    record: dict[str, Any] = {}
    for _ in range(depth):
        record = {"n": 1.0, name: record}
    return record


LONG_NAMES = {
    "one object": [{"x" * 200_000: {str(k): 1.0 for k in range(2000)}}],
    "objects in objects": [nested(150, "x" * 3000)],
    "very deep": [nested(700, "x" * 1500)],
    "many records": [{f"{k}" + "x" * 10_000: {str(j): 1.0 for j in range(100)}} for k in range(100)],
}


@pytest.mark.parametrize("last", ["", "0\n"], ids=["fast", "slow"])
@pytest.mark.parametrize("records", LONG_NAMES.values(), ids=LONG_NAMES.keys())
def test_names_that_repeat_those_of_objects_do_not_exhaust_memory(records: list[dict[str, Any]], last: str):
    """A file of a megabyte would have columns whose names have a hundred million characters and more."""
    content = (lines(records) + last).encode()
    count = len(records) + bool(last)
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match="t: the names of its columns have more than 16777216 characters"):
            JsonParser(Reading()).parse(Piece("t", count, 0, 0, content, JsonParser.parse))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 20 << 20


@pytest.mark.parametrize("ending", ["arrow", "stream.arrow"])
def test_names_of_structs_do_not_exhaust_memory(ending: str, tmp_path: Path):
    path = tmp_path / f"data.{ending}"
    fields = pa.struct({str(k): pa.int8() for k in range(2000)})
    table = pa.table({"y": [1.0], "x" * 200_000: pa.nulls(1, fields)})
    new = pa.ipc.new_stream if ending.startswith("stream") else pa.ipc.new_file
    with new(path, table.schema) as writer:
        writer.write_table(table)
    tracemalloc.start()
    try:
        result = invoke("run", path, "-t", "y")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert result.exit_code == 2
    assert "the names of its columns have more than 16777216 characters" in result.stderr
    assert peak < 64 << 20


def test_structs_that_are_nested_very_deep_are_no_endless_recursion():
    kind = pa.float64()
    for _ in range(3000):
        kind = pa.struct({"a": kind})
    schema = pa.schema({"y": pa.float64(), "x": kind})
    names = binary.leaves(schema).names
    assert names[0] == "y"
    assert characters_of(schema) >= sum(map(len, names))


def test_names_of_all_pieces_count_together():
    parser, record = JsonParser(Reading()), {"x" * 10_000: {str(j): 1.0 for j in range(500)}}
    for k in range(5):
        content = lines([{str(k): record}]).encode()
        piece = Piece("t", 1, k, k, content, JsonParser.parse)
        if k < 3:
            assert len(parser.parse(piece).columns) >= 500
        else:
            with pytest.raises(DataError, match="have more than 16777216 characters"):
                parser.parse(piece)


def test_records_share_the_names_of_their_columns():
    """Sixty records of columns whose names are long."""
    record = {"x" * 10_000: {str(j): j for j in range(50)}}
    content = (lines([record] * 60) + "0\n").encode()
    tracemalloc.start()
    try:
        batch = JsonParser(Reading()).parse(Piece("t", 61, 0, 0, content, JsonParser.parse))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(batch.columns) == 50
    assert peak < 10 << 20  # one by one, the names alone would have thirty megabytes


# The same table in every format

TYPED: list[dict[str, Any]] = [
    {"flag": k % 3 == 0 if k % 11 else None, "word": "true" if k % 2 else "x",
     "o": {"p": k / 2, "ok": k % 4 == 0, "q": {"r": "xy"[k % 2]}, "l": [1, 2]} if k % 5 else None,
     "y": (k % 7 > 2) != (k % 3 == 0)}
    for k in range(60)
]  # fmt: skip


def in_all_formats(folder: Path) -> dict[str, Path]:
    paths = {name: folder / name for name in ("fast.jsonl", "slow.jsonl", "a.parquet", "file.arrow", "stream.arrow")}
    paths["fast.jsonl"].write_text(lines(TYPED))
    paths["slow.jsonl"].write_text(lines(TYPED) + "[1]\n")  # a line that pyarrow cannot read
    table = pa.Table.from_pylist(TYPED)
    pa.parquet.write_table(table, paths["a.parquet"], row_group_size=25)
    pa.feather.write_feather(table, paths["file.arrow"], compression="uncompressed")
    with pa.ipc.new_stream(paths["stream.arrow"], table.schema) as writer:
        writer.write_table(table)
    return paths


@pytest.mark.parametrize("every", [7, 20, 100])
@pytest.mark.parametrize("task", ["auto", "regression"])
def test_structs_and_booleans_give_the_same_model_in_every_format(tmp_path: Path, task: str, every: int):
    found = {}
    for name, path in in_all_formats(tmp_path).items():
        out, model = tmp_path / f"{name}.out.jsonl", tmp_path / f"{name}.omkl"
        result = invoke("run", path, "-t", "y", "--task", task, "--predictions", out, "--model", model,
                        "--every", every, "--keep", "flag,o.ok", "--json")  # fmt: skip
        assert result.exit_code == 0, result.stderr
        found[name] = out.read_text(), model.read_bytes()
    assert all(each == found["fast.jsonl"] for each in found.values())
    rows = [json.loads(line) for line in found["fast.jsonl"][0].splitlines()]
    assert [row["flag"] for row in rows] == [row["flag"] for row in TYPED]
    assert [row["o.ok"] for row in rows] == [row["o"] and row["o"]["ok"] for row in TYPED]
    truth = [row["y"] for row in TYPED]
    assert [row["target"] for row in rows] == ([["false", "true"][y] for y in truth] if task == "auto" else truth)
    features = set(persist.read(model).encoder.features)
    assert {"flag", "o.p", "o.ok", "o.q.r=x"} <= features
    assert not any(name.startswith("o.l") or name == "o" for name in features)


@pytest.mark.parametrize("name", ["a.parquet", "file.arrow", "stream.arrow"])
def test_options_name_the_fields_of_structs(tmp_path: Path, name: str):
    path = in_all_formats(tmp_path)[name]
    model = tmp_path / "m.omkl"
    assert invoke("run", path, "-t", "y", "--features", "o.p,o.q.r", "--model", model).exit_code == 0
    assert set(persist.read(model).encoder.columns) == {"o.p", "o.q.r"}
    assert invoke("run", path, "-t", "o.ok", "--drop", "o.q.r", "--model", model).exit_code == 0
    assert {"o.q.r", "o.ok"}.isdisjoint(persist.read(model).encoder.columns)
    wrong = invoke("run", path, "-t", "y", "--drop", "o.q.rr")
    assert wrong.exit_code == 2
    assert "did you mean 'o.q.r'?" in wrong.stderr


def test_a_column_whose_name_has_a_dot_has_precedence_over_a_field(tmp_path: Path):
    table = pa.table(
        {"o": pa.array([{"p": 1.0, "z": 5.0}] * 20), "o.p": [2.0] * 20, "y": [float(k) for k in range(20)]}
    )
    pa.parquet.write_table(table, tmp_path / "a.parquet")
    pa.feather.write_feather(table, tmp_path / "a.arrow", compression="uncompressed")
    for name in ("a.parquet", "a.arrow"):
        out = tmp_path / "p.csv"
        result = invoke("run", tmp_path / name, "-t", "y", "--keep", "o.p,o.z", "--predictions", out)
        assert result.exit_code == 0, result.stderr
        assert out.read_text().splitlines()[1].endswith(",2,5")
