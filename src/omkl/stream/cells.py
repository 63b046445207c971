"""What cells mean: texts and typed values as numbers, moments and words."""

import datetime
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omkl.arrays import Mask, Vector
from omkl.stream.parsers import NULLS
from omkl.stream.raw import DataError

Comma = Literal["thousands", "decimal"]
SNIFF = 1000  # cells with commas, as far as they are at hand, decide what the commas are
NUMBER = r"(?i)^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$|^[+-]?(inf|infinity)$"
THOUSANDS = r"^[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d*)?$"
DECIMAL_COMMA = r"^[+-]?\d*,\d+$"
TRUTH = r"(?i)^(true|false)$"
MOMENT = r"^\d{4}(-|\d{4}[T ]|W)"  # what may be a date and time as ISO 8601 has it, and no number
DAY_IN_US = 86_400_000_000
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
CYCLES = {"day": (1.0, 0.0), "week": (7.0, 3.0), "year": (365.2425, 0.0)}  # days; 1970 began on a Thursday


def numbers(texts: pa.Array, comma: Comma | None = None) -> tuple[Vector, str | None]:
    """Text as numbers, NaN where there is none; and the first cell that is neither empty nor a number.

    >>> numbers(pa.array(["1", " 2.5 ", "true", None, "three"]))
    (array([1. , 2.5, 1. , nan, nan]), 'three')
    >>> numbers(pa.array(["1,200", "7"]), "thousands")[0], numbers(pa.array(["0,5", "7"]), "decimal")[0]
    (array([1200.,    7.]), array([0.5, 7. ]))
    """
    texts = pc.utf8_trim_whitespace(texts)
    values, right = read_numbers(texts, comma)
    return values, _first(texts, right)


def commas(texts: pa.Array) -> Comma | None:
    """What commas are in these texts, if they are in numbers at all.

    >>> commas(pa.array(["7", "1,200"])), commas(pa.array(["1,200", "0,5"])), commas(pa.array(["red, blue"]))
    ('thousands', 'decimal', None)
    """
    thousands, decimal = pc.match_substring_regex(texts, THOUSANDS), pc.match_substring_regex(texts, DECIMAL_COMMA)
    some = pc.or_(thousands, decimal)
    if not pc.any(some).as_py():
        return None
    thousands, decimal = (mask.filter(some)[:SNIFF] for mask in (thousands, decimal))
    if pc.all(thousands).as_py() or (thousands[0].as_py() and not pc.all(decimal).as_py()):
        return "thousands"
    return "decimal"


def read_numbers(texts: pa.Array, comma: Comma | None) -> tuple[Vector, Mask]:
    right = matches(texts, NUMBER)
    if not right.all():
        if comma is not None:
            pattern, point = (THOUSANDS, "") if comma == "thousands" else (DECIMAL_COMMA, ".")
            texts = pc.if_else(pc.match_substring_regex(texts, pattern), pc.replace_substring(texts, ",", point), texts)
        truth = pc.match_substring_regex(texts, TRUTH)
        texts = pc.if_else(truth, pc.if_else(pc.equal(pc.utf8_lower(texts), "true"), "1", "0"), texts)
        right = matches(texts, NUMBER)
        texts = pc.if_else(pa.array(right), texts, None)
    return as_doubles(texts.cast(pa.float64())).copy(), right


def times(array: pa.Array, date_format: str | None = None) -> tuple[Vector, str | None]:
    """Moments as days since 1970, UTC where no zone is given; and the first cell that is no moment.

    >>> times(pa.array(["1970-01-02", "1970-01-01T12:00:00Z", "soon"]))
    (array([1. , 0.5, nan]), 'soon')
    >>> times(pa.array(["2/1/1970", "1970-01-02"]), "%d/%m/%Y")
    (array([1., 1.]), None)
    """
    if is_moment(array.type):
        zone = array.type.tz if pa.types.is_timestamp(array.type) else None
        return _days(array.cast(pa.timestamp("us", zone), safe=False)), None
    texts = pc.utf8_trim_whitespace(array)
    days, right = read_moments(texts, date_format)
    return days, _first(texts, right)


def read_moments(texts: pa.Array, date_format: str | None) -> tuple[Vector, Mask]:
    days = np.full(len(texts), np.nan)
    if date_format is not None:
        days = _days(pc.strptime(texts, format=date_format, unit="us", error_is_null=True)).copy()
        days[matches(texts, f"{NUMBER}|{THOUSANDS}|{DECIMAL_COMMA}")] = np.nan  # what may be a number is one
    likely = matches(texts, MOMENT)
    rest = np.flatnonzero(likely & np.isnan(days))
    some = texts.take(rest)
    try:
        days[rest] = _days(some.cast(pa.timestamp("us")))
    except pa.ArrowInvalid:  # zones, or something else among them
        days[rest] = [_day(text) for text in some.to_pylist()]
    return days, ~np.isnan(days)


def matches(texts: pa.Array, pattern: str) -> Mask:
    found: Mask = pc.fill_null(pc.match_substring_regex(texts, pattern), False).to_numpy(zero_copy_only=False)
    return found


def _days(stamps: pa.Array) -> Vector:
    return as_doubles(stamps.cast(pa.int64())) / DAY_IN_US


def _day(text: str) -> float:
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        return np.nan
    moment = moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)
    microseconds = (moment - EPOCH) // datetime.timedelta(microseconds=1)
    return float(microseconds) / DAY_IN_US  # rounded once more beyond 2^53, as arrays are


def moments(days: Vector) -> dict[str, Vector]:
    """A moment as features: itself, and its place in the day, the week and the year.

    >>> {name: value.round(3).tolist() for name, value in moments(np.array([0.25])).items()}
    {'': [0.25], 'day sin': [1.0], 'day cos': [0.0], 'week sin': [0.223], 'week cos': [-0.975], \
'year sin': [0.004], 'year cos': [1.0]}
    """
    out = {"": days}
    for name, (period, shift) in CYCLES.items():
        angle = 2 * np.pi * np.mod((days + shift) / period, 1)
        out[f"{name} sin"], out[f"{name} cos"] = np.sin(angle), np.cos(angle)
    return out


PARTS = [name for name in moments(np.zeros(1)) if name]


def labels(array: pa.Array) -> list[str | None]:
    """A target of any kind as labels; whole numbers have no decimal point."""
    cells = usable(array)
    if cells is None:
        raise DataError(f"a target or key must be numbers, words or moments, not {array.type}")
    return [None if text is None else text.strip() for text in as_texts(cells).to_pylist()]


def _first(texts: pa.Array, right: Mask) -> str | None:
    wrong = ~right & texts.is_valid().to_numpy(zero_copy_only=False)
    return short(texts[int(np.argmax(wrong))].as_py()) if wrong.any() else None


def short(text: str) -> str:
    return text if len(text) <= 40 else text[:37] + "..."


def usable(array: pa.Array) -> pa.Array | None:
    """Numbers, moments or text; None if a column holds something else."""
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    kind = array.type
    if pa.types.is_string_view(kind) or pa.types.is_large_string(kind):
        return array.cast(pa.string())
    no_cell = (pa.types.is_nested, pa.types.is_large_binary, pa.types.is_fixed_size_binary, pa.types.is_binary_view,
               pa.types.is_interval)  # fmt: skip
    return None if any(test(kind) for test in no_cell) else array


def as_doubles(array: pa.Array) -> Vector:
    if pa.types.is_duration(array.type) or pa.types.is_time(array.type):
        array = array.cast(pa.int64() if array.type.bit_width == 64 else pa.int32())
    values: Vector = pc.cast(array, pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return values


def is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_binary(kind) or pa.types.is_null(kind))


def is_moment(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind))


def as_texts(array: pa.Array) -> pa.Array:
    """Any array as text, empty cells and the usual words for them as null."""
    if pa.types.is_binary(array.type):
        try:
            array = array.cast(pa.string())
        except pa.ArrowInvalid:
            array = pa.array([_decoded(cell) for cell in array.to_pylist()], pa.string())
    elif pa.types.is_floating(array.type):
        array = pa.array([_digits(value) for value in array.to_pylist()], pa.string())
    elif not pa.types.is_string(array.type):
        try:
            array = array.cast(pa.string())
        except pa.ArrowNotImplementedError:
            array = pa.array([None if cell is None else str(cell) for cell in array.to_pylist()], pa.string())
    empty = pc.is_in(pc.utf8_lower(pc.utf8_trim_whitespace(array)), value_set=_NULLS)
    return pc.if_else(empty, None, array) if pc.any(empty).as_py() else array


def _digits(value: float | None) -> str | None:
    if value is None or value != value:
        return None
    return repr(int(value)) if value.is_integer() and abs(value) < 2**63 else repr(value)


_NULLS = pa.array(sorted({"+nan", *(word.lower() for word in NULLS)}))


def _decoded(cell: bytes | None) -> str | None:
    return None if cell is None else cell.decode(errors="replace")
