"""What an encoder tells its reader, and batches without rows."""

import numpy as np
import pyarrow as pa

from omkl.encoder.columns import Encoder
from omkl.encoder.table import Batch


def encoder_of(**columns: list[str | None]) -> Encoder:
    encoder = Encoder(lambda about, text: None)
    n = len(next(iter(columns.values())))
    encoder.encode(Batch(np.arange(n), {name: pa.array(cells, pa.string()) for name, cells in columns.items()}))
    return encoder


def test_only_columns_of_nothing_but_plain_numbers_may_be_parsed_as_such():
    encoder = encoder_of(
        plain=["1", "2.5"], gaps=["1", None], time=["2020-01-01", "2020-01-02"], words=["red", "blue"],
        mixed=["1", "red"], comma=["1,200", "7"], truth=["true", "1"], empty=[None, None],
    )  # fmt: skip
    assert encoder.plain_numbers() == {"plain", "gaps"}


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
    encoder = Encoder(lambda about, text: None)
    cells = ["red", "red", "blue", "blue", None, "green", "red", "green"]
    encoded = encoder.encode(Batch(np.arange(8), {"b": pa.array(cells)}))
    for text in ("red", "blue", "green"):
        assert encoded.features[f"b={text}"].tolist() == [float(cell == text) for cell in cells]
    assert [encoded.arrivals[f"b={text}"] for text in ("red", "blue", "green")] == [0, 3, 7]
