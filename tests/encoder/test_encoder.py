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
    encoder = encoder_of(a=["1", "2"], b=["red", "blue"])
    known = set(encoder.features)
    assert {"a", "b=red", "b=blue"} <= known
    encoded = encoder.encode(Batch(np.arange(0), {"new": pa.array([], pa.string())}))
    assert set(encoded.features) == known == set(encoder.features)
    assert all(len(values) == 0 for values in encoded.features.values())
    assert encoded.arrivals == {}


def test_every_text_value_has_a_feature_that_is_1_in_its_rows_and_0_elsewhere():
    encoder = Encoder(lambda about, text: None)
    cells = ["red", "blue", "red", None, "green"]
    encoded = encoder.encode(Batch(np.arange(5), {"b": pa.array(cells)}))
    for text in ("red", "blue", "green"):
        assert encoded.features[f"b={text}"].tolist() == [float(cell == text) for cell in cells]
    assert [encoded.arrivals[f"b={text}"] for text in ("red", "blue", "green")] == [0, 1, 4]
