"""What an encoder tells its reader, and batches without rows."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from omkl.encoder import columns
from omkl.encoder.columns import Column, Encoder
from omkl.encoder.table import Batch
from omkl.errors import ModelFileError
from omkl.stream.targets import Target


def quiet(about: str, text: str) -> None:
    pass


def encoder_of(**cells: list[str | None]) -> Encoder:
    encoder = Encoder(quiet)
    n = len(next(iter(cells.values())))
    encoder.encode(Batch(np.arange(n), {name: pa.array(column, pa.string()) for name, column in cells.items()}))
    return encoder


def test_only_columns_of_nothing_but_plain_numbers_may_be_parsed_as_such():
    encoder = encoder_of(
        plain=["1", "2.5"], gaps=["1", None], time=["2020-01-01", "2020-01-02"], words=["red", "blue"],
        mixed=["1", "red"], comma=["1,200", "7"], truth=["true", "1"], empty=[None, None],
    )  # fmt: skip
    assert encoder.plain_numbers() == {"plain", "gaps"}


@pytest.mark.parametrize("odd", [None, np.nan, 1e101, -1e101, "gap", "text", "coded"])
def test_numbers_that_are_taken_as_they_are_make_the_same_features(odd: object, monkeypatch: pytest.MonkeyPatch):
    """As those of a column that may hold anything."""
    rng = np.random.default_rng(0)
    cells: list[Any] = rng.normal(size=40).tolist()
    first: list[Any] = ["1", "2.5", {"gap": None, "text": "red"}.get(str(odd), "3"), "red" if odd == "text" else "4"]
    if isinstance(odd, float):
        cells[17] = odd
    found = []
    for quick in (True, False):
        told: list[str] = []
        encoder = Encoder(lambda about, text: told.append(text), categorical=("a",) if odd == "coded" else ())  # noqa: B023  # called within the same turn of the loop
        if not quick:
            monkeypatch.setattr(Column, "takes_as_numbers", lambda *_: False)
        encoder.encode(Batch(np.arange(4), {"a": pa.array(first)}))
        encoded = encoder.encode(Batch(np.arange(40), {"a": pa.array(np.array(cells))}))
        found.append((encoder.body(), told, encoder.plain_numbers(),
                      {name: values.tolist() for name, values in encoded.features.items()}))  # fmt: skip
    assert repr(found[0]) == repr(found[1])


def test_a_batch_without_rows_has_every_feature_and_no_value():
    encoder = encoder_of(a=["1", "2"] * 2, b=["red", "blue"] * 2)
    known = set(encoder.features)
    assert {"a", "b=red", "b=blue"} <= known
    encoded = encoder.encode(Batch(np.arange(0), {"new": pa.array([], pa.string())}))
    assert set(encoded.features) == known == set(encoder.features)
    assert all(len(values) == 0 for values in encoded.features.values())
    assert encoded.arrivals == {}


def test_the_first_text_value_has_a_feature_at_once_and_others_once_they_have_come_twice():
    encoder = Encoder(lambda about, text: None)
    cells = ["red", "blue", "lime", "blue", None, "red", "red", "teal", "pink", "teal"]
    encoded = encoder.encode(Batch(np.arange(10), {"b": pa.array(cells)}))
    assert encoded.arrivals == {"b=red": 0, "b=blue": 6, "b=lime": 6, "b=teal": 9, "b missing": 4}


def test_every_text_value_has_a_feature_that_is_1_in_its_rows_and_0_elsewhere():
    encoder = Encoder(quiet)
    cells = ["red", "red", "blue", "blue", None, "green", "red", "green"]
    encoded = encoder.encode(Batch(np.arange(8), {"b": pa.array(cells)}))
    for text in ("red", "blue", "green"):
        assert encoded.features[f"b={text}"].tolist() == [float(cell == text) for cell in cells]
    assert [encoded.arrivals[f"b={text}"] for text in ("red", "blue", "green")] == [0, 3, 7]


def test_only_columns_of_numbers_that_are_not_booleans_stay_plain_numbers():
    encoder = Encoder(quiet)
    encoder.encode(Batch(np.arange(2), {"truth": pa.array([True, False]), "whole": pa.array([1, 2])}))
    assert encoder.plain_numbers() == {"whole"}


def test_features_beyond_the_most_are_left_out(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(columns, "MAX_FEATURES", 300)
    encoder = Encoder(quiet)
    encoded = encoder.encode(Batch(np.arange(1), {f"c{k}": pa.array([1.0]) for k in range(310)}))
    assert list(encoder.features) == list(encoded.features) == [f"c{k}" for k in range(300)]


@pytest.mark.parametrize("count", [0, columns.MAX_CATEGORIES - 1, columns.MAX_CATEGORIES])
def test_a_column_of_a_file_has_at_most_as_many_categories_as_one_can_have(count: int):
    Column(kind="category", categories=[str(k) for k in range(count)]).check(declared=False)


def test_a_column_of_a_file_with_too_many_categories_is_refused():
    with pytest.raises(ModelFileError, match="too many categories"):
        Column(kind="category", categories=[str(k) for k in range(columns.MAX_CATEGORIES + 1)]).check(declared=False)


@pytest.mark.parametrize("cells", [["1", None, "2.5"], [1.0, None, 2.5]], ids=["text", "numbers"])
def test_targets_are_numbers_for_regression_and_labels_for_classification(cells: list[Any]):
    values = Target("y", "regression", quiet).read(pa.array(cells), learn=True)
    np.testing.assert_array_equal(values, [1.0, np.nan, 2.5])
    labels = Target("y", "classification", quiet).read(pa.array(cells), learn=True)
    assert labels.tolist() == ["1", None, "2.5"]
