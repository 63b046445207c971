"""Objects in JSON: their fields are columns, named object.field, whichever way they are read."""

import json
from pathlib import Path
from typing import Any

from command import invoke
from hypothesis import given, settings
from hypothesis import strategies as st

from omkl import persist
from omkl.stream.parsers import JsonParser, Piece, Reading

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
        assert all(str(value).lower() == found[name].lower() for name, value in wanted.items())
