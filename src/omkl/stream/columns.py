"""From columns of any kind to named numbers.

A number is itself, a missing one NaN, which every learner takes for the mean so far; a column that
has had gaps gets a second feature that says so. A category has one feature for each value it has
had, a moment has its day and its place in the day, the week and the year. Features appear with
the row that first needs them, so what is learned does not depend on how rows were cut into pieces.
"""

import datetime
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omkl.arrays import Vector
from omkl.stream.source import NULLS, Batch

Kind = Literal["number", "category", "time"]
Comma = Literal["thousands", "decimal"]
SNIFF = 1000  # rows that decide what kind of column it is
MOST_CATEGORIES = 32  # of a column; the values that come later share one feature
MOST_FEATURES = 10_000
LARGEST = 1e100
NUMBER = r"(?i)^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$|^[+-]?(inf|infinity|nan)$"
THOUSANDS = r"^[+-]?\d{1,3}(,\d{3})+(\.\d*)?$"
DECIMAL_COMMA = r"^[+-]?\d*,\d+$"
TRUTH = r"(?i)^(true|false)$"
DAY_IN_US = 86_400_000_000
CYCLES = {"day": (1.0, 0.0), "week": (7.0, 3.0), "year": (365.2425, 0.0)}  # days; 1970 began on a Thursday

Tell = Callable[[str, str], None]


@dataclass
class Column:
    """What is known about one column."""

    kind: Kind | None = None  # None as long as every cell was empty
    comma: Comma | None = None
    categories: list[str] = field(default_factory=list)
    others: bool = False  # there were more categories than MOST_CATEGORIES
    gaps: bool = False


class Encoded(NamedTuple):
    """The rows of a batch as features."""

    features: dict[str, Vector]  # (n,) each
    arrivals: dict[str, int]  # of those, the new ones, and the row where each begins


class Encoder:
    """Columns met so far, and how they become features."""

    def __init__(self, tell: Tell, date_format: str | None = None, categorical: tuple[str, ...] = ()) -> None:
        self.tell, self.date_format, self.categorical = tell, date_format, categorical
        self.columns: dict[str, Column] = {}
        self.rough: set[str] = set()  # columns of numbers among which there is something else
        self.features: dict[str, float] = {}  # every feature met, and what it is where nothing is known

    def body(self) -> Any:
        """As JSON, for model files."""
        return {"date_format": self.date_format, "categorical": list(self.categorical),
                "columns": [[name, asdict(column)] for name, column in self.columns.items()],
                "features": list(self.features)}  # fmt: skip

    @classmethod
    def from_body(cls, body: Any, tell: Tell) -> "Encoder":
        self = cls(tell, body["date_format"], tuple(body["categorical"]))
        self.columns = {str(name): Column(**column) for name, column in body["columns"]}
        plain = set(self.columns) | {f"{name}:{part}" for name in self.columns for part in _parts()}
        self.features = {str(name): np.nan if name in plain else 0.0 for name in body["features"]}
        return self

    def plain_numbers(self) -> set[str]:
        """Columns that a reader may parse as numbers straight away."""
        plain = {name for name, column in self.columns.items() if column.kind == "number" and column.comma is None}
        return plain - self.rough

    def encode(self, batch: Batch, learn: bool = True) -> Encoded:
        """The features of these rows; with `learn` new columns, categories and gaps become known."""
        n = len(batch.rows)
        out = Encoded({}, {})
        begun = bool(self.columns)
        for name in [*self.columns, *(name for name in batch.columns if name not in self.columns)]:
            array = batch.columns.get(name)
            column = self.columns.get(name)
            if array is None:
                array = pa.nulls(n)
                self.tell(f"absent {name}", f"column {name!r} is not there; it counts as missing")
            if column is None:
                if not learn:
                    if len(self.columns):
                        self.tell(f"extra {name}", f"column {name!r} was not there in training; it is not used")
                    continue
                column = self._meet(name, array, begun)
                if column is None:
                    continue
            first = 0
            if column.kind is None:
                if not learn or array.null_count == n or (present := _texts_or_same(array)).null_count == n:
                    continue
                first = int(np.argmax(present.is_valid().to_numpy(zero_copy_only=False)))
                self._decide(name, column, present)
            self._features(name, column, array, first, learn, out)
        for name in self.features:
            if name not in out.features:
                out.features[name] = np.full(n, self.features[name])
        return out

    # One column

    def _meet(self, name: str, array: pa.Array, begun: bool) -> Column | None:
        if pa.types.is_nested(array.type) or _is_blob(array.type):
            self.tell(f"nested {name}", f"column {name!r} holds {array.type}, which is not used; flatten it first")
            return None
        if begun:
            self.tell(f"new {name}", f"column {name!r} is new; it is learned from here on")
        self.columns[name] = Column()
        return self.columns[name]

    def _decide(self, name: str, column: Column, array: pa.Array) -> None:
        """What kind of column this is, from the first cells that are not empty."""
        if name in self.categorical:
            column.kind = "category"
        elif _is_time(array.type):
            column.kind = "time"
        elif not _is_text(array.type):
            column.kind = "number"
        else:
            column.kind, column.comma = sniff(_texts(array).drop_null()[:SNIFF], self.date_format)
            if column.comma == "thousands":
                self.tell(f"comma {name}", f"column {name!r}: commas are taken for thousands separators")
            elif column.comma == "decimal":
                self.tell(f"comma {name}", f"column {name!r}: commas are taken for decimal points")

    def _features(self, name: str, column: Column, array: pa.Array, first: int, learn: bool, out: Encoded) -> None:
        if column.kind == "category":
            gaps = self._categories(name, column, array, learn, out)
        else:
            values = self._numbers(name, column, array) if column.kind == "number" else self._times(name, array)
            gaps = np.isnan(values)
            if column.kind == "number":
                self._put(out, name, values, first, np.nan, learn)
            else:
                for part, feature in moments(values).items():
                    self._put(out, name if part == "" else f"{name}:{part}", feature, first, np.nan, learn)
        gaps[:first] = False
        if not column.gaps and learn and gaps.any():
            column.gaps = True
            self._put(out, f"{name} missing", gaps.astype(float), int(np.argmax(gaps)), 0.0, learn)
            self.tell(f"gaps {name}", f"column {name!r} has empty cells; the mean so far stands for them")
        elif column.gaps:
            self._put(out, f"{name} missing", gaps.astype(float), 0, 0.0, learn)

    def _put(self, out: Encoded, name: str, values: Vector, first: int, fill: float, learn: bool) -> None:
        if name not in self.features:
            if not learn:
                return
            if len(self.features) >= MOST_FEATURES:
                self.tell("most features", f"there are more than {MOST_FEATURES} features; {name!r} is not used")
                return
            self.features[name] = fill
            out.arrivals[name] = first
        out.features[name] = values

    def _numbers(self, name: str, column: Column, array: pa.Array) -> Vector:
        if _is_text(array.type):
            texts = _texts(array)
            values, strange = numbers(texts, column.comma)
            if strange is not None:
                self.rough.add(name)
                self.tell(
                    f"strange {name}", f"column {name!r}: {strange!r} is not a number; such cells count as missing"
                )
        else:
            values = _as_double(array)
        far = np.abs(values) > LARGEST
        if far.any():
            self.tell(f"far {name}", f"column {name!r}: {values[np.argmax(far)]:g} is no usable number; "
                      "such cells count as missing")  # fmt: skip
            values = np.where(far, np.nan, values)
        return values

    def _times(self, name: str, array: pa.Array) -> Vector:
        days, strange = times(array, self.date_format)
        if strange is not None:
            self.tell(
                f"strange {name}", f"column {name!r}: {strange!r} is not a date and time; such cells count as missing"
            )
        return days

    def _categories(self, name: str, column: Column, array: pa.Array, learn: bool, out: Encoded) -> Any:
        texts = _texts(array)
        if learn and len(column.categories) < MOST_CATEGORIES:
            known = set(column.categories)
            news = [value for value in pc.unique(texts).to_pylist() if value is not None and value not in known]
            column.categories += news[: MOST_CATEGORIES - len(column.categories)]
        codes = pc.index_in(texts, value_set=pa.array(column.categories, pa.string()))
        place = pc.fill_null(codes, -1).to_numpy(zero_copy_only=False)
        empty = texts.is_null().to_numpy(zero_copy_only=False).copy()
        for k, value in enumerate(column.categories):
            hit = place == k
            if f"{name}={value}" in self.features or hit.any():
                self._put(out, f"{name}={value}", hit.astype(float), int(np.argmax(hit)), 0.0, learn)
        other = (place < 0) & ~empty
        if other.any() and len(column.categories) >= MOST_CATEGORIES and learn and not column.others:
            column.others = True
            self._put(out, f"{name} other", other.astype(float), int(np.argmax(other)), 0.0, learn)
            self.tell(f"others {name}", f"column {name!r} has more than {MOST_CATEGORIES} categories; the later ones "
                      "share one feature")  # fmt: skip
        elif column.others:
            self._put(out, f"{name} other", other.astype(float), 0, 0.0, learn)
        elif other.any() and not learn:
            self.tell(
                f"unknown {name}",
                f"column {name!r}: category {texts[int(np.argmax(other))].as_py()!r} was never learned",
            )
        return empty


# What cells mean


def sniff(texts: pa.Array, date_format: str | None = None) -> tuple[Kind, Comma | None]:
    """The kind of a column from some of its cells, none of them empty.

    >>> sniff(pa.array(["1", "2.5", "-3e4"])), sniff(pa.array(["1,200", "7"])), sniff(pa.array(["0,5", "7"]))
    (('number', None), ('number', 'thousands'), ('number', 'decimal'))
    >>> sniff(pa.array(["2024-05-01 12:00"])), sniff(pa.array(["red", "12"]))
    (('time', None), ('category', None))
    """
    texts = pc.utf8_trim_whitespace(texts)
    number = pc.or_(pc.match_substring_regex(texts, NUMBER), pc.match_substring_regex(texts, TRUTH))
    if pc.all(number).as_py():
        return "number", None
    commas: tuple[tuple[Comma, str], ...] = (("thousands", THOUSANDS), ("decimal", DECIMAL_COMMA))
    for comma, pattern in commas:
        if pc.all(pc.or_(number, pc.match_substring_regex(texts, pattern))).as_py():
            return "number", comma
    _, strange = times(texts, date_format)
    return ("time", None) if strange is None else ("category", None)


def numbers(texts: pa.Array, comma: Comma | None = None) -> tuple[Vector, str | None]:
    """Text as numbers, NaN where there is none; and the first cell that is neither empty nor a number.

    >>> numbers(pa.array(["1", " 2.5 ", "true", None, "three"]))
    (array([1. , 2.5, 1. , nan, nan]), 'three')
    """
    texts = pc.utf8_trim_whitespace(texts)
    if comma == "thousands":
        texts = pc.replace_substring(texts, ",", "")
    elif comma == "decimal":
        texts = pc.replace_substring(texts, ",", ".")
    truth = pc.match_substring_regex(texts, TRUTH)
    if pc.any(truth).as_py():
        texts = pc.if_else(truth, pc.if_else(pc.equal(pc.utf8_lower(texts), "true"), "1", "0"), texts)
    right = pc.match_substring_regex(texts, NUMBER)
    values = _as_double(pc.if_else(right, texts, None).cast(pa.float64()))
    wrong = pc.fill_null(pc.invert(right), False)
    return values, _first(texts, wrong)


def times(array: pa.Array, date_format: str | None = None) -> tuple[Vector, str | None]:
    """Moments as days since 1970, UTC where no zone is given; and the first cell that is no moment.

    >>> times(pa.array(["1970-01-02", "1970-01-01T12:00:00Z", "soon"]))
    (array([1. , 0.5, nan]), 'soon')
    """
    if _is_time(array.type):
        if pa.types.is_timestamp(array.type):
            stamps = array.cast(pa.timestamp("us", array.type.tz), safe=False)
        else:
            stamps = array.cast(pa.timestamp("us"))
        return _as_double(stamps.cast(pa.int64())) / DAY_IN_US, None
    texts = _texts(array)
    if date_format is not None:
        try:
            stamps = pc.strptime(texts, format=date_format, unit="us", error_is_null=True)
        except pa.ArrowInvalid as error:
            raise ValueError(f"--date-format {date_format!r} is not understood ({error})") from None
        wrong = pc.and_(texts.is_valid(), stamps.is_null())
        return _as_double(stamps.cast(pa.int64())) / DAY_IN_US, _first(texts, wrong)
    try:
        return _as_double(texts.cast(pa.timestamp("us")).cast(pa.int64())) / DAY_IN_US, None
    except pa.ArrowInvalid:
        pass  # zones, or something else among them
    days = np.full(len(texts), np.nan)
    strange = None
    for k, text in enumerate(texts.to_pylist()):
        try:
            moment = datetime.datetime.fromisoformat(text.strip()) if text is not None else None
        except ValueError:
            strange = strange if strange is not None else text
            continue
        if moment is not None:
            moment = moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)
            epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
            days[k] = (moment - epoch) / datetime.timedelta(days=1)
    return days, strange


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


def labels(array: pa.Array) -> list[str | None]:
    """A target of any kind as labels; whole numbers have no decimal point."""
    return [None if text is None else text.strip() for text in _texts(array).to_pylist()]


def _parts() -> list[str]:
    return [name for name in moments(np.zeros(1)) if name]


def _first(texts: pa.Array, wrong: pa.Array) -> str | None:
    if not pc.any(wrong).as_py():
        return None
    text: str = texts[pc.index(wrong, True).as_py()].as_py()
    return text if len(text) <= 40 else text[:37] + "..."


def _as_double(array: pa.Array) -> Vector:
    if pa.types.is_duration(array.type) or pa.types.is_time(array.type):
        array = array.cast(pa.int64() if array.type.bit_width == 64 else pa.int32())
    values: Vector = pc.cast(array, pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return values


def _is_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        return _is_text(kind.value_type)
    return any(test(kind) for test in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view,
                                       pa.types.is_binary, pa.types.is_null))  # fmt: skip


def _is_time(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind))


def _is_blob(kind: pa.DataType) -> bool:
    return bool(pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind))


def _texts_or_same(array: pa.Array) -> pa.Array:
    return _texts(array) if _is_text(array.type) else array


def _texts(array: pa.Array) -> pa.Array:
    """Any array as text, empty cells and the usual words for them as null."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_binary(array.type):
        try:
            array = array.cast(pa.string())
        except pa.ArrowInvalid:
            array = pa.array([_decoded(cell) for cell in array.to_pylist()], pa.string())
    elif pa.types.is_floating(array.type):
        values = array.to_pylist()
        array = pa.array(
            [None if v is None or v != v else repr(int(v)) if v == int(v) else repr(v) for v in values], pa.string()
        )
    elif not pa.types.is_string(array.type):
        array = array.cast(pa.string())
    empty = pc.is_in(pc.utf8_trim_whitespace(array), value_set=_NULLS)
    return pc.if_else(empty, None, array) if pc.any(empty).as_py() else array


_NULLS = pa.array(NULLS)


def _decoded(cell: bytes | None) -> str | None:
    return None if cell is None else cell.decode(errors="replace")
