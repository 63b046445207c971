"""How values are parsed: strings and typed values as numbers, timestamps and text."""

import datetime
import re
from functools import lru_cache
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omkl.arrays import Mask, Vector

Comma = Literal["thousands", "decimal"]
NULLS = ["", "NA", "N/A", "NaN", "nan", "-nan", "-NaN", "NULL", "null", "None", "none", "#N/A", "?", "<NA>"]
SNIFF = 1000  # cells with commas, at most, decide what the commas are
NUMBER = r"(?i)^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$|^[+-]?(inf|infinity)$"
THOUSANDS = r"^[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d*)?$"
DECIMAL_COMMA = r"^[+-]?(\d*|[1-9]\d{0,2}(\.\d{3})+),\d+$"  # with points between thousands, or without
TRUTH = r"(?i)^(true|false)$"
TIMESTAMP = r"^\d{4}(-|\d{4}[T ]|W)"  # what may be an ISO 8601 date and time, and cannot be a number
SLASHES = r"^(\d{4})/(\d{2})/(\d{2})($|[T ])"  # a date of that order with other separators
LIKE_A_NUMBER = re.compile(r"[-+\u2212($€£]?\d")  # text that may have been meant as a number or a date
LIKE_A_DATE = re.compile(r"\d{1,4}[-/. ]\w{1,9}[-/. ]\d{1,4}|\d{1,2}:\d\d|\d{4}-\d\d$")
DAY_IN_US = 86_400_000_000
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
CYCLES = {"day": (1.0, 0.0), "week": (7.0, 3.0), "year": (365.2425, 0.0)}  # days; 1970 began on a Thursday


def numbers(strings: pa.Array, comma: Comma | None = None) -> tuple[Vector, str | None]:
    """Strings as numbers, NaN where there is none; and the first one that is neither empty nor a number.

    >>> numbers(pa.array(["1", " 2.5 ", "true", None, "three"]))
    (array([1. , 2.5, 1. , nan, nan]), 'three')
    >>> numbers(pa.array(["1,200", "7"]), "thousands")[0], numbers(pa.array(["1.200,5", "7"]), "decimal")[0]
    (array([1200.,    7.]), array([1200.5,    7. ]))
    """
    strings = pc.utf8_trim_whitespace(strings)
    values, valid = read_numbers(strings, comma)
    return values, _first_invalid(strings, valid)


def commas(strings: pa.Array) -> Comma | None:
    """What commas mean in these strings: None if they are not in numbers.

    >>> commas(pa.array(["7", "1,200"])), commas(pa.array(["1,200", "0,5"])), commas(pa.array(["red, blue"]))
    ('thousands', 'decimal', None)
    """
    thousands, decimal = pc.match_substring_regex(strings, THOUSANDS), pc.match_substring_regex(strings, DECIMAL_COMMA)
    some = pc.or_(thousands, decimal)
    if not pc.any(some).as_py():
        return None
    thousands, decimal = (mask.filter(some)[:SNIFF] for mask in (thousands, decimal))
    if pc.all(thousands).as_py() or (thousands[0].as_py() and not pc.all(decimal).as_py()):
        return "thousands"
    return "decimal"


def read_numbers(strings: pa.Array, comma: Comma | None) -> tuple[Vector, Mask]:
    valid = matches(strings, NUMBER)
    if not valid.all():
        if comma is not None:
            pattern = THOUSANDS if comma == "thousands" else DECIMAL_COMMA
            if comma == "thousands":
                plain = pc.replace_substring(strings, ",", "")
            else:
                plain = pc.replace_substring(pc.replace_substring(strings, ".", ""), ",", ".")
            strings = pc.if_else(pc.match_substring_regex(strings, pattern), plain, strings)
        truth = pc.match_substring_regex(strings, TRUTH)
        strings = pc.if_else(truth, pc.if_else(pc.equal(pc.utf8_lower(strings), "true"), "1", "0"), strings)
        valid = matches(strings, NUMBER)
        strings = pc.if_else(pa.array(valid), strings, None)
    return as_doubles(strings.cast(pa.float64())).copy(), valid


def timestamps(array: pa.Array, date_format: str | None = None) -> tuple[Vector, str | None]:
    """Timestamps as days since 1970, UTC where no zone is given; and the first cell that is not a timestamp.

    >>> timestamps(pa.array(["1970-01-02", "1970-01-01T12:00:00Z", "soon"]))
    (array([1. , 0.5, nan]), 'soon')
    >>> timestamps(pa.array(["2/1/1970", "1970-01-02"]), "%d/%m/%Y")
    (array([1., 1.]), None)
    >>> timestamps(pa.array(["1970/01/02", "1970/01/01 12:00"]))[0]
    array([1. , 0.5])
    """
    if is_timestamp(array.type):
        zone = array.type.tz if pa.types.is_timestamp(array.type) else None
        return _days(array.cast(pa.timestamp("us", zone), safe=False)), None
    strings = pc.utf8_trim_whitespace(array)
    days, valid = read_timestamps(strings, date_format)
    return days, _first_invalid(strings, valid)


def read_timestamps(strings: pa.Array, date_format: str | None) -> tuple[Vector, Mask]:
    days = np.full(len(strings), np.nan)
    if date_format is not None:
        days = _days(pc.strptime(strings, format=date_format, unit="us", error_is_null=True)).copy()
        days[matches(strings, f"{NUMBER}|{THOUSANDS}|{DECIMAL_COMMA}")] = np.nan  # what may be a number is a number
    strings = pc.replace_substring_regex(strings, SLASHES, r"\1-\2-\3\4")
    likely = matches(strings, TIMESTAMP)
    rest = np.flatnonzero(likely & np.isnan(days))
    some = strings.take(rest)
    try:
        days[rest] = _days(some.cast(pa.timestamp("us")))
    except pa.ArrowInvalid:  # zones, or something else among them
        days[rest] = [_day(text) for text in some.to_pylist()]
    return days, ~np.isnan(days)


def matches(strings: pa.Array, pattern: str) -> Mask:
    found: Mask = pc.fill_null(pc.match_substring_regex(strings, pattern), False).to_numpy(zero_copy_only=False)
    return found


def _days(stamps: pa.Array) -> Vector:
    return as_doubles(stamps.cast(pa.int64())) / DAY_IN_US


def _day(text: str) -> float:
    try:
        return day_of(datetime.datetime.fromisoformat(text))
    except ValueError:
        return np.nan


def day_of(timestamp: datetime.datetime) -> float:
    """Days since 1970, UTC where no zone is given."""
    timestamp = timestamp if timestamp.tzinfo else timestamp.replace(tzinfo=datetime.UTC)
    microseconds = (timestamp - EPOCH) // datetime.timedelta(microseconds=1)
    return float(microseconds) / DAY_IN_US  # above 2^53 rounded as arrays are


def calendar_features(days: Vector) -> dict[str, Vector]:
    """A timestamp as features: the day itself, and sine and cosine of its place in the day, the week and the year.

    >>> {name: value.round(3).tolist() for name, value in calendar_features(np.array([0.25])).items()}
    {'': [0.25], 'day sin': [1.0], 'day cos': [0.0], 'week sin': [0.223], 'week cos': [-0.975], \
'year sin': [0.004], 'year cos': [1.0]}
    """
    out = {"": days}
    for name, (period, shift) in CYCLES.items():
        angle = 2 * np.pi * np.mod((days + shift) / period, 1)
        out[f"{name} sin"], out[f"{name} cos"] = np.sin(angle), np.cos(angle)
    return out


def _first_invalid(strings: pa.Array, valid: Mask) -> str | None:
    wrong = ~valid & strings.is_valid().to_numpy(zero_copy_only=False)
    return short(strings[int(np.argmax(wrong))].as_py()) if wrong.any() else None


def hint_about(text: str, date_format: str | None) -> str:
    """What may help to read text that looks like a number or a date."""
    if date_format is not None:
        return f"it is not a date like {date_format!r}"
    if LIKE_A_DATE.match(text):
        return "--date-format, or date_format of TableEncoder, tells how dates are written"
    return "numbers are written like -1234.5, without signs"


def short(text: str) -> str:
    return text if len(text) <= 40 else text[:37] + "..."


@lru_cache(maxsize=256)
def is_usable(kind: pa.DataType) -> bool:
    """Whether a column of this type holds numbers, timestamps or text, as they are or as a dictionary."""
    types = pa.types
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    if types.is_dictionary(kind):
        kind = kind.value_type
    tests = (types.is_null, types.is_boolean, types.is_integer, types.is_floating, types.is_decimal, types.is_temporal,
             types.is_string, types.is_large_string, types.is_string_view, types.is_binary, types.is_large_binary,
             types.is_binary_view)  # fmt: skip
    return any(test(kind) for test in tests) and not types.is_interval(kind)


def is_coded(kind: pa.DataType) -> bool:
    """Whether a column of this type holds categories, as pandas' and polars' own types for them do."""
    if not pa.types.is_dictionary(kind):
        return False
    values = kind.value_type
    return bool(is_text(values) or pa.types.is_integer(values) or pa.types.is_boolean(values)
                or pa.types.is_large_string(values) or pa.types.is_string_view(values))  # fmt: skip


def usable(array: pa.Array) -> pa.Array | None:
    """Numbers, timestamps or text; None if a column holds something else."""
    if not is_usable(array.type):
        return None
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    kind = array.type
    if pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
        return array.cast(pa.binary())
    return array.cast(pa.string()) if pa.types.is_string_view(kind) or pa.types.is_large_string(kind) else array


def as_doubles(array: pa.Array) -> Vector:
    """Numbers as doubles; durations and times of day in seconds, whatever their unit is, to the microsecond."""
    types = pa.types
    if types.is_duration(array.type) or types.is_time(array.type):
        unit = pa.duration("us") if types.is_duration(array.type) else pa.time64("us")
        return as_doubles(array.cast(unit, safe=False).cast(pa.int64())) / 1e6
    if types.is_decimal(array.type):  # which are rounded twice if they are not read from their digits
        array = array.cast(pa.string())
    values: Vector = pc.cast(array, pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return values


def is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_binary(kind) or pa.types.is_null(kind))


def is_timestamp(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind))


def as_strings(array: pa.Array) -> pa.Array:
    """Any array as strings; empty cells and the usual words for them are null."""
    if pa.types.is_binary(array.type):
        try:
            array = array.cast(pa.string())
        except pa.ArrowInvalid:
            array = pa.array([_decoded(cell) for cell in array.to_pylist()], pa.string())
    elif pa.types.is_floating(array.type):
        array = pa.array([digits(value) for value in array.to_pylist()], pa.string())
    elif not pa.types.is_string(array.type):
        try:
            array = array.cast(pa.string())
        except pa.ArrowNotImplementedError:
            array = pa.array([None if cell is None else str(cell) for cell in array.to_pylist()], pa.string())
    empty = pc.is_in(pc.utf8_lower(pc.utf8_trim_whitespace(array)), value_set=_NULLS)
    return pc.if_else(empty, None, array) if pc.any(empty).as_py() else array


def digits(value: float | None) -> str | None:
    if value is None or value != value:
        return None
    return repr(int(value)) if value.is_integer() and abs(value) < 2**63 else repr(value)


_NULLS = pa.array(sorted({"+nan", *(word.lower() for word in NULLS)}))


def _decoded(cell: bytes | None) -> str | None:
    return None if cell is None else cell.decode(errors="replace")
