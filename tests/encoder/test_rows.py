"""A single row becomes the features that a table of that row becomes, to the last bit."""

import datetime
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omkl.encoder.columns import Encoder
from omkl.encoder.table import of_cells, of_row

WHEN = st.datetimes(datetime.datetime(1950, 1, 1), datetime.datetime(2100, 1, 1))
NUMBERS = st.floats(-1e6, 1e6) | st.integers(-5, 5) | st.booleans()
WORDS = st.sampled_from(["red", "green", " red ", "blue", "7", "2024-05-01", "", "NA"])
CELLS = {
    "number": NUMBERS, "gaps": NUMBERS | st.none() | st.just(float("nan")), "word": WORDS | st.none(),
    "when": WHEN | st.none(), "any": NUMBERS | WORDS | WHEN | st.none(), "zone": st.datetimes(timezones=st.timezones()),
    "large": st.sampled_from([1.0, 1e99, 1e101, -1e300]),
}  # fmt: skip
ROWS = st.lists(st.fixed_dictionaries({}, optional=CELLS), min_size=1, max_size=12)


def quiet(about: str, text: str) -> None:
    pass


@given(ROWS, st.sampled_from([(), ("any", "number")]))
def test_a_row_gives_what_a_table_of_it_gives(rows: list[dict[str, Any]], categorical: tuple[str, ...]):
    by_row, by_table = Encoder(quiet, categorical=categorical), Encoder(quiet, categorical=categorical)
    for x in rows:
        for learn in (False, True):
            table = by_table.encode(of_row(x), learn).features
            expected = {name: repr(float(values[0])) for name, values in table.items() if not np.isnan(values[0])}
            assert {name: repr(value) for name, value in by_row.row(x, learn).items()} == expected
    assert by_row.body() == by_table.body()


def test_rows_like_those_before_need_no_table(monkeypatch: pytest.MonkeyPatch):
    encoder = Encoder(quiet)
    x = {"a": 1.0, "b": "red", "c": datetime.datetime(2024, 5, 1)}
    encoder.row(x)
    encoder.row({"a": None, "b": "blue", "c": datetime.datetime(2024, 5, 2)})
    encoder.row(x)
    encoder.row(x)

    def refuse(*_: object) -> None:
        raise AssertionError("a table was made")

    monkeypatch.setattr(encoder, "encode", refuse)
    assert encoder.row({**x, "a": 3})["a"] == 3.0
    assert encoder.row({**x, "a": float("nan")})["a missing"] == 1.0


def test_only_the_cells_that_need_a_closer_look_are_read_as_a_table(monkeypatch: pytest.MonkeyPatch):
    """A row is not slower the more columns there are that it does not have."""
    encoder, read = Encoder(quiet), []
    for k in range(30):
        encoder.row({"a": 1.0, f"word {k}": 1.0})
    encoder.row({"a": 1.0})
    whole = Encoder._read

    def counted(self: Encoder, name: str, *more: Any) -> Any:
        read.append(name)
        return whole(self, name, *more)

    monkeypatch.setattr(Encoder, "_read", counted)
    encoder.row({"a": "1.5", "new": 2.0})
    assert read == ["a", "new"]


@pytest.mark.parametrize("cell", [object(), 1j, {1: 2}, [1, 2]], ids=["object", "complex", "dictionary", "list"])
def test_a_cell_that_cannot_be_used_is_refused(cell: object):
    with pytest.raises(ValueError, match="number, text, a boolean, a timestamp or empty"):
        of_cells([cell])


def test_a_boolean_is_written_the_same_beside_text_and_alone() -> None:
    assert of_cells([True, "x", False]).to_pylist() == ["true", "x", "false"]
    assert of_cells([True, False]).cast("string").to_pylist() == ["true", "false"]
