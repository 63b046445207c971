"""From columns to features: properties that hold for any cells, and what each kind of cell becomes."""

import datetime
import itertools
import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from omkl.encoder import columns
from omkl.encoder.cells import commas, numbers, timestamps
from omkl.encoder.columns import Encoder
from omkl.encoder.table import Batch
from omkl.names import BUCKETS, CALENDAR, id_features, own_feature
from omkl.stream import parsers

STRINGS = st.sampled_from(["red", "green", "blue", " red ", "A7", '5"', "x=y", "0x1F", "12%", "über", "-"])
DIGITS = st.sampled_from(["1", "2.5", "-3e4", " 7 ", "+0.5", "1e400", "inf", "NAN", "true", "False", "1e99", "007"])
EMPTY = st.sampled_from([None, "", "NA", "?", " ", "null", "+nan"])
DATES = st.sampled_from(["2024-05-01", "2024-05-01 12:00", "2024-05-01T12:00:00+02:00", "20240501T12", "1969-07-20"])
TEXT = st.one_of(DIGITS, STRINGS, EMPTY, DATES)


def twelve(cells: Any) -> Any:
    return st.lists(cells, min_size=12, max_size=12)


TABLES = st.fixed_dictionaries(
    {"a": twelve(TEXT), "b": twelve(DIGITS | EMPTY), "c": twelve(STRINGS | EMPTY)},
    optional={"d": twelve(DATES | EMPTY), "a=red": twelve(TEXT), "b missing": twelve(DIGITS)},
)


def batch(table: dict[str, list[Any]], start: int = 0, stop: int | None = None) -> Batch:
    arrays = {
        name: cells[start:stop] if isinstance(cells, pa.Array) else pa.array(cells[start:stop], pa.string())
        for name, cells in table.items()
    }
    return Batch(np.arange(start, start + len(next(iter(arrays.values())))) + 1, arrays)


def quiet(about: str, text: str) -> None:
    pass


def encoded(encoder: Encoder, batches: list[Batch]) -> dict[str, tuple[int, list[float]]]:
    """Of every feature, the row that brought it and its values from there on."""
    arrived: dict[str, int] = {}
    values: dict[str, list[float]] = {}
    for part in batches:
        out = encoder.encode(part)
        for name, feature in out.features.items():
            at = out.arrivals.get(name, 0)
            if name in out.arrivals:
                arrived[name] = int(part.rows[at])
            values.setdefault(name, []).extend(feature[at:].tolist())
    return {name: (row, [repr(value) for value in values[name]]) for name, row in arrived.items()}


@given(TABLES, st.lists(st.integers(0, 12), max_size=5), st.sampled_from([(), ("a",)]))
@example({"a": ["1", "red"] * 6, "b": ["", "1"] * 6, "c": ["red"] * 12}, [1], ())
@example({"a": ["red"] * 5 + ["2024-05-01", "20240501T12"] * 3 + ["7"], "b": ["1"] * 12, "c": [""] * 12}, [6], ())
def test_features_do_not_depend_on_how_rows_were_cut(table: dict[str, Any], cuts: list[int], forced: tuple[str, ...]):
    whole, cut = Encoder(quiet, "%d/%m/%Y", forced), Encoder(quiet, "%d/%m/%Y", forced)
    edges = [0, *sorted(cuts), 12]
    parts = [batch(table, start, stop) for start, stop in itertools.pairwise(edges)]
    assert encoded(whole, [batch(table)]) == encoded(cut, [part for part in parts if len(part.rows)])
    assert whole.body() == cut.body()


@given(TABLES, TABLES, st.booleans())
def test_encoding_without_learning_leaves_the_encoder_as_it_was(
    seen: dict[str, Any], new: dict[str, Any], any_seen: bool
):
    encoder = Encoder(quiet)
    if any_seen:
        encoder.encode(batch(seen))
    before = json.dumps(encoder.body())
    out = encoder.encode(batch(new), learn=False)
    assert json.dumps(encoder.body()) == before
    assert set(out.features) == set(encoder.features)
    assert not out.arrivals


@given(TABLES, TABLES)
def test_an_encoder_read_from_a_file_continues_as_the_one_written(first: dict[str, Any], second: dict[str, Any]):
    encoder = Encoder(quiet, "%d/%m/%Y", ("c",))
    encoder.encode(batch(first))
    again = Encoder.from_body(json.loads(json.dumps(encoder.body())), quiet)
    assert again.body() == encoder.body()
    assert {name: repr(fill) for name, fill in again.features.items()} == {
        name: repr(fill) for name, fill in encoder.features.items()
    }
    assert encoded(again, [batch(second)]) == encoded(encoder, [batch(second)])


@given(st.lists(st.none() | st.floats() | st.integers(-1000, 1000).map(float), min_size=3, max_size=20))
def test_numbers_mean_the_same_as_text_and_as_numbers(values: list[float | None]):
    typed = {"x": pa.array(values, pa.float64())}
    text = {"x": [None if value is None else repr(value) for value in values]}
    assert encoded(Encoder(quiet), [batch(typed)]) == encoded(Encoder(quiet), [batch(text)])


@given(st.lists(st.none() | st.datetimes(min_value=datetime.datetime(1678, 1, 1)), min_size=1, max_size=20))
def test_timestamps_mean_the_same_as_text_and_as_timestamps(moments: list[datetime.datetime | None]):
    typed = {"t": pa.array(moments, pa.timestamp("us"))}
    text = {"t": [None if moment is None else str(moment) for moment in moments]}
    assert encoded(Encoder(quiet), [batch(typed)]) == encoded(Encoder(quiet), [batch(text)])


# Cells against Python's own reading of them

NUMERIC = st.text("0123456789.eE+-_ infatyNx", max_size=8) | st.floats().map(repr) | st.integers().map(str)


@given(NUMERIC)
@example("1e400")
@example("+.5e-3")
@example("1_000")
@example("-Infinity")
@example("\N{ARABIC-INDIC DIGIT ONE}")
def test_text_is_a_number_where_python_says_so(text: str):
    values, strange = numbers(pa.array([text]))
    try:
        expected = float(text)
    except ValueError:
        assert strange is not None
        return
    if "_" in text or not text.isascii() or "n" in text.lower().replace("inf", "").replace("init", ""):
        # which no program writes into a table, or what stands for an empty cell
        assert strange is not None
    else:
        assert strange is None
        assert repr(float(values[0])) == repr(expected)


@given(st.lists(NUMERIC.filter(lambda text: text.strip()), min_size=1, max_size=10))
def test_the_reader_and_the_encoder_parse_the_same_numbers(texts: list[str]):
    content = ("x,y\n" + "".join(f"{text},1\n" for text in texts)).encode()
    parser = parsers.CsvParser(parsers.Reading(numbers={"x", "y"}), "", b"x,y\n", "csv")
    fast = parser.parse(parsers.Piece("", len(texts), 0, 0, content[4:], parser.parse)).columns["x"]
    slow = {"x": texts}
    assert encoded(known_numbers(), [batch({"x": fast})]) == encoded(known_numbers(), [batch(slow)])


def known_numbers() -> Encoder:
    encoder = Encoder(quiet)
    encoder.encode(batch({"x": ["1"]}))
    return encoder


TIMESTAMPS = st.datetimes(min_value=datetime.datetime(1, 1, 2), timezones=st.none() | st.just(datetime.UTC)).map(
    lambda moment: moment.isoformat()
) | st.text("0123456789-:T W+Z.", max_size=20)


@given(TIMESTAMPS)
@example("2024-05-01 12:00")
@example("2024-05-01T12:00:00.123456789")
@example("2024-W18-3")
@example("0001-01-01T00:00:00+23:59")
@example("20240501")
def test_text_is_a_timestamp_where_python_says_so(text: str):
    assume(text.strip())
    days, strange = timestamps(pa.array([text]))
    try:
        moment = datetime.datetime.fromisoformat(text.strip())
    except ValueError:
        assert strange is not None
        return
    if text.strip().isdigit():  # a number, as far as can be known
        assert strange is not None
        return
    assert strange is None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)
    microseconds = (moment - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)) // datetime.timedelta(microseconds=1)
    assert days[0] == float(microseconds) / 86_400_000_000


@given(st.lists(st.integers(-(10**12), 10**12), min_size=1))
def test_thousands_separators_are_recognised_and_left_out(values: list[int]):
    texts = pa.array([f"{value:,}" for value in values])
    comma = commas(texts)
    assert comma == ("thousands" if any(abs(value) >= 1000 for value in values) else None)
    assert numbers(texts, comma)[0].tolist() == values


@given(st.lists(st.decimals(-1000, 1000, places=2), min_size=1))
def test_decimal_commas_are_recognised(values: list[Any]):
    texts = pa.array([f"{value}".replace(".", ",") for value in values])
    assert commas(texts) == "decimal"
    assert numbers(texts, "decimal")[0].tolist() == [float(value) for value in values]


@given(st.text(max_size=12), st.text(max_size=12), st.text(max_size=5))
@example("a", "a=b", "b")
@example("a", "a missing", "")
@example("'a", "a", "")
@example("t", "t:day sin", "")
@example("u", "id mean of u", "")
@example("id fit of u", "u", "=")
def test_two_columns_never_share_a_feature(one: str, other: str, word: str):
    assume(one != other)

    def features(name: str) -> set[str]:
        own = own_feature(name, (one, other))
        made = {f"{own}={word}", f"{own} missing", f"{own} other", *(f"{own}:{part}" for part in CALENDAR)}
        return {own, *made, *id_features(own, 2)}

    assert not features(one) & features(other)


# Columns of many categories

VALUES = st.integers(0, 60).map("v{}".format) | st.sampled_from(["NA", "7", "true", " v1 ", None])


@given(st.lists(VALUES, min_size=1, max_size=90), st.lists(st.integers(0, 90), max_size=5), st.sampled_from([0, 1, 2]))
@example([f"v{k}" for k in range(61)] * 2, [70], 1)
def test_features_of_many_categories_do_not_depend_on_how_rows_were_cut(cells: list[Any], cuts: list[int], codes: int):
    whole, cut, single = (Encoder(quiet) for _ in range(3))
    whole.codes = cut.codes = single.codes = codes
    edges = [0, *sorted(min(place, len(cells)) for place in cuts), len(cells)]
    parts = [batch({"x": cells}, start, stop) for start, stop in itertools.pairwise(edges) if start < stop]
    out = encoded(whole, [batch({"x": cells})])
    assert encoded(cut, parts) == out
    for k, cell in enumerate(cells):
        row = single.row({"x": cell})
        assert {name: repr(value) for name, value in row.items()} == {
            name: values[k + 1 - first] for name, (first, values) in out.items()
            if first <= k + 1 and values[k + 1 - first] != "nan"
        }  # fmt: skip
    again = Encoder.from_body(json.loads(json.dumps(cut.body())), quiet)
    assert whole.body() == cut.body() == single.body() == again.body()
    assert {name: repr(fill) for name, fill in again.features.items()} == {
        name: repr(fill) for name, fill in whole.features.items()
    }
    assert whole.copy().body() == whole.body()


def test_memory_is_bounded_however_many_values_come():
    encoder = Encoder(quiet)
    encoder.codes = 2
    for start in range(0, 100_000, 10_000):
        encoder.encode(batch({"x": [f"v{k}" for k in (0, 0, *range(start, start + 10_000))]}))
    assert len(encoder.features) == 1 + 5
    assert len(json.dumps(encoder.body())) < 2000
    buckets = encoder.encode(batch({"x": [f"v{k}" for k in range(20_000)]})).features["id count of x"]
    assert set(buckets) == set(range(BUCKETS))


def test_a_column_of_categories_is_used_though_all_its_values_are_different():
    encoder = Encoder(quiet, categorical=("x",))
    encoder.codes = 1
    out = encoder.encode(batch({"x": [f"v{k}" for k in range(300)]}))
    assert out.arrivals["id count of x"] == 199
    assert not encoder.columns["x"].unique


# What each kind of cell becomes, and with which notices


def encode_with_notices(table: dict[str, Any], **options: Any) -> tuple[Encoder, list[str]]:
    notices: dict[str, str] = {}
    encoder = Encoder(notices.setdefault, **options)
    encoder.encode(batch(table))
    return encoder, list(notices.values())


@pytest.mark.parametrize(
    ("cells", "features", "notices"),
    [
        (["1", "2"], ["x"], []),
        (["true", "false"], ["x"], []),
        (["red", "blue", "red"], ["x=red"], []),
        (["red", "blue", "red", "red"], ["x=blue", "x=red"], []),
        (["1", "", "2"], ["x", "x missing"], ["column 'x' has empty cells; they are filled with the running mean"]),
        (["red", "", "red"], ["x=red", "x missing"], ["column 'x' has empty cells; they are a category of their own"]),
        (["", "1", "2"], ["x"], []),
        (["", "?", None], [], []),
        (["1", "two"], ["x", "x=two"], [
            "column 'x' holds numbers and text such as 'two'; each text value is a feature of its own"]),
        (["-", "1"], ["x", "x=-"], [
            "column 'x' holds numbers and text such as '-'; each text value is a feature of its own"]),
        (["1,200", "7"], ["x"], ["column 'x': commas are read as thousands separators"]),
        (["1,200", "0,5"], ["x"], ["column 'x': commas are read as decimal points"]),
        (["1", "1e200"], ["x", "x missing"], [
            "column 'x': 1e+200 is too large; such cells are treated as missing",
            "column 'x' has empty cells; they are filled with the running mean"]),
        (["12%", "5%"] * 2, ["x=12%", "x=5%"], [
            "column 'x': '12%' is read as text, not as a number or a timestamp (numbers are written like -1234.5, "
            "without signs)"]),
        (["1.234,5", "12,5", "7"], ["x"], ["column 'x': commas are read as decimal points"]),
        (["2024/05/01", "2024/05/02 12:30"], ["x", *(f"x:{part}" for part in CALENDAR)], []),
        (["2024/5/1", "2024/5/2"] * 2, ["x=2024/5/1", "x=2024/5/2"], [
            "column 'x': '2024/5/1' is read as text, not as a number or a timestamp (--date-format, or date_format of "
            "TableEncoder, tells how dates are written)"]),
        (["2024-05-01", "soon"], ["x", *(f"x:{part}" for part in CALENDAR), "x=soon"], [
            "column 'x' holds timestamps and text such as 'soon'; each text value is a feature of its own"]),
        ([f"w{k}" for k in range(40)], ["x=w0"], []),
        ([f"w{k}" for k in range(201)], ["x=w0"], [
            "column 'x' names the rows: of 200 values no two are the same; it is left out (--categorical, or a type "
            "of categories, keeps it)"]),
        ([f"w{k % 39}" for k in range(40)], ["x other", *(f"x=w{k}" for k in range(32))], [
            'column \'x\' has more than 32 categories; later ones are merged into "other"']),
    ],
    ids=lambda value: None if isinstance(value, list) and len(value) > 2 else str(value)[:30],
)  # fmt: skip
def test_cells_become_these_features_with_these_notices(cells: list[Any], features: list[str], notices: list[str]):
    encoder, shown = encode_with_notices({"x": cells})
    assert sorted(encoder.features) == sorted(features)
    assert shown == notices


def test_a_date_in_another_format_needs_the_format():
    cells = ["01/05/2024", "02/05/2024"] * 2
    encoder, notices = encode_with_notices({"x": cells})
    assert "x=01/05/2024" in encoder.features
    assert "--date-format" in notices[0]
    encoder, notices = encode_with_notices({"x": cells}, date_format="%d/%m/%Y")
    assert sorted(encoder.features) == ["x", *sorted(f"x:{part}" for part in CALENDAR)]
    assert notices == []
    encoder, notices = encode_with_notices({"x": cells}, date_format="%Y.%m.%d")
    assert notices == [
        "column 'x': '01/05/2024' is read as text, not as a number or a timestamp (it is not a date like '%Y.%m.%d')"
    ]


@pytest.mark.parametrize(
    "array",
    [
        pa.array([[1], [2]]), pa.array([{"a": 1}, {"a": 2}]),
        pa.array([b"ab", b"cd"], pa.binary(2)), pa.array([(1, 2, 3)] * 2, pa.month_day_nano_interval()),
    ],
    ids=lambda array: str(array.type),
)  # fmt: skip
def test_columns_of_unsupported_types_are_left_out(array: pa.Array):
    encoder, notices = encode_with_notices({"x": array, "y": ["1", "2"]})
    assert list(encoder.features) == ["y"]
    assert notices == [f"column 'x' holds {array.type}, which is ignored; flatten it first"]
    later = encoder.encode(batch({"y": array}))  # and a known column that turns into such is empty
    assert np.isnan(later.features["y"]).all()


@pytest.mark.parametrize(
    "array",
    [
        pa.array([1, 2], pa.uint8()), pa.array([1, 2], pa.float16()), pa.array([1, 2], pa.decimal128(5, 2)),
        pa.array([1.0, 2.0]).dictionary_encode(), pa.array([1, 2], pa.duration("s")), pa.array([1, 2], pa.time32("s")),
        *(pa.array([k, 2 * k], pa.duration(unit)) for unit, k in (("ms", 1000), ("us", 10**6), ("ns", 10**9))),
        pa.array([1000, 2000], pa.time32("ms")), pa.array([10**6, 2 * 10**6], pa.time64("us")),
        pa.array([10**9, 2 * 10**9], pa.time64("ns")),
        pa.array([b"1", b"2"], pa.large_binary()), pa.array(["1", "2"], pa.large_string()),
        pa.array(["1", "2"], pa.string_view()), pa.array([b"1", b"2"]),
    ],
    ids=lambda array: str(array.type).replace(" ", ""),
)  # fmt: skip
def test_numbers_of_every_type_are_numbers(array: pa.Array):
    encoder, notices = encode_with_notices({"x": array})
    assert (list(encoder.features), notices) == (["x"], [])
    assert encoder.encode(batch({"x": array})).features["x"].tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    "array",
    [
        pa.array([1, 2], pa.date32()), pa.array([86_400_000, 2 * 86_400_000], pa.date64()),
        pa.array([1, 2], pa.date32()).dictionary_encode(), pa.array([86_400, 2 * 86_400], pa.timestamp("s")),
        pa.array([86_400, 2 * 86_400], pa.timestamp("s", "Europe/Berlin")),
        pa.array([86_400 * 10**9, 2 * 86_400 * 10**9], pa.timestamp("ns")),
    ],
    ids=lambda array: str(array.type).replace(" ", ""),
)  # fmt: skip
def test_timestamps_of_every_type_are_days(array: pa.Array):
    encoder, _ = encode_with_notices({"x": array})
    assert encoder.encode(batch({"x": array})).features["x"].tolist() == [1.0, 2.0]


def test_features_above_the_limit_are_left_out(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(columns, "MAX_FEATURES", 3)
    encoder, notices = encode_with_notices({name: ["1"] for name in "abcde"})
    assert list(encoder.features) == ["a", "b", "c"]
    assert notices == ["there are more than 3 features; 'd' is ignored"]


@pytest.mark.parametrize("kind", [pa.int64(), pa.string(), pa.large_string()], ids=str)
def test_a_type_for_categories_makes_categories_of_numbers(kind: pa.DataType):
    cells = pa.array([1, 2]).cast(kind)
    encoder, notices = encode_with_notices({"x": pa.concat_arrays([cells, cells]).dictionary_encode()})
    assert (list(encoder.features), notices) == (["x=1", "x=2"], [])
    again = Encoder.from_body(json.loads(json.dumps(encoder.body())), quiet)
    assert again.encode(batch({"x": cells}), learn=False).features["x=2"].tolist() == [0.0, 1.0]


def test_all_rows_at_once_give_every_one_of_few_values_a_feature():
    cells, many = ["red", "blue", "lime", "blue"], [f"w{k % 40}" for k in range(60)]
    waiting, whole = Encoder(quiet), Encoder(quiet)
    assert set(waiting.encode(Batch(np.arange(4), {"b": pa.array(cells)})).features) == {"b=red"}
    encoded = whole.encode_whole(Batch(np.arange(4), {"b": pa.array(cells)}))
    assert encoded.arrivals == {"b=red": 0, "b=blue": 1, "b=lime": 2}
    assert set(whole.encode(Batch(np.arange(1), {"b": pa.array(["pink"])})).features) == set(encoded.features)
    each = [encoder.encode_whole if k else encoder.encode for k, encoder in enumerate((Encoder(quiet), Encoder(quiet)))]
    first, second = (encode(Batch(np.arange(60), {"b": pa.array(many)})) for encode in each)
    assert first.arrivals == second.arrivals
