"""From columns of any kind to named numbers.

A number is itself, a missing one NaN, which every learner takes for the mean so far; a column that
has had gaps gets a second feature that says so. A moment has its day and its place in the day, the
week and the year. Every word has a feature of its own, in a column of words as well as among
numbers. Features appear with the row that first needs them, and each cell is read by itself, so
what is learned does not depend on how rows were cut into pieces.
"""

import datetime
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omkl.arrays import Mask, Vector
from omkl.stream.parsers import NULLS, Batch
from omkl.stream.raw import DataError

Kind = Literal["number", "category", "time"]
Comma = Literal["thousands", "decimal"]
SNIFF = 1000  # cells with commas, as far as they are at hand, decide what the commas are
MOST_CATEGORIES = 32  # of a column; the words that come later share one feature
MOST_FEATURES = 10_000
LARGEST = 1e100
NUMBER = r"(?i)^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$|^[+-]?(inf|infinity)$"
THOUSANDS = r"^[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d*)?$"
DECIMAL_COMMA = r"^[+-]?\d*,\d+$"
TRUTH = r"(?i)^(true|false)$"
MOMENT = r"^\d{4}(-|\d{4}[T ]|W)"  # what may be a date and time as ISO 8601 has it, and no number
ALMOST = re.compile(r"[-+($€£]?\d")  # a word that its writer may have meant as a number or a date
DAY_IN_US = 86_400_000_000
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
CYCLES = {"day": (1.0, 0.0), "week": (7.0, 3.0), "year": (365.2425, 0.0)}  # days; 1970 began on a Thursday

Tell = Callable[[str, str], None]


@dataclass
class Column:
    """What is known about one column."""

    kind: Kind | None = None  # None as long as every cell was empty, "category" as long as there were only words
    comma: Comma | None = None
    categories: list[str] = field(default_factory=list)
    others: bool = False  # there were more words than MOST_CATEGORIES
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
        self.rough: set[str] = set()  # columns of numbers some of which are written as true and false
        self.features: dict[str, float] = {}  # every feature met, and what it is where nothing is known

    def body(self) -> Any:
        """As JSON, for model files."""
        return {"date_format": self.date_format, "categorical": list(self.categorical),
                "columns": [[name, asdict(column)] for name, column in self.columns.items()],
                "features": sorted(self.features)}  # fmt: skip

    @classmethod
    def from_body(cls, body: Any, tell: Tell) -> "Encoder":
        self = cls(tell, body["date_format"], tuple(body["categorical"]))
        self.columns = {str(name): Column(**column) for name, column in body["columns"]}
        own = [own_feature(name) for name in self.columns]
        plain = set(own) | {f"{name}:{part}" for name in own for part in PARTS}
        self.features = {str(name): np.nan if name in plain else 0.0 for name in body["features"]}
        return self

    def plain_numbers(self) -> set[str]:
        """Columns that a reader may parse as numbers straight away."""
        return {
            name for name, column in self.columns.items()
            if column.kind == "number" and column.comma is None and not column.categories and name not in self.rough
        }  # fmt: skip

    def encode(self, batch: Batch, learn: bool = True) -> Encoded:
        """The features of these rows; with `learn` new columns, categories and gaps become known."""
        n = len(batch.rows)
        out = Encoded({}, {})
        if not n:
            return Encoded({name: np.empty(0) for name in self.features}, {})
        begun = bool(self.columns)
        for name in [*self.columns, *(name for name in batch.columns if name not in self.columns)]:
            given = batch.columns.get(name)
            array = None if given is None else usable(given)
            if given is None:
                self.tell(f"absent {name}", f"column {name!r} is not there; it counts as missing")
            elif array is None:
                self.tell(f"nested {name}", f"column {name!r} holds {given.type}, which is not used; flatten it first")
                if name not in self.columns:
                    continue
            if name not in self.columns:
                if not learn:
                    self.tell(f"extra {name}", f"column {name!r} was not there in training; it is not used")
                    continue
                if begun:
                    self.tell(f"new {name}", f"column {name!r} is new; it is learned from here on")
                self.columns[name] = Column()
            self._features(name, self.columns[name], pa.nulls(n) if array is None else array, learn, out)
        for name in self.features:
            if name not in out.features:
                out.features[name] = np.full(n, self.features[name])
        return out

    # One column

    def _features(self, name: str, column: Column, array: pa.Array, learn: bool, out: Encoded) -> None:
        own = own_feature(name)
        begun = column.kind is not None
        cells = self._read(name, column, array, learn)
        fits = ~np.isnan(cells.values)
        gaps = ~fits & ~cells.words
        if not begun:
            if not learn or cells.empty.all():
                return
            gaps[: np.argmin(cells.empty)] = False  # the column begins with its first cell
            column.kind = column.kind or "category"
        if fits.any() or own in self.features:
            first = int(np.argmax(fits))
            for part, feature in ({"": cells.values} if column.kind == "number" else moments(cells.values)).items():
                self._put(out, own if part == "" else f"{own}:{part}", feature, first, np.nan, learn)
        if cells.words.any() or column.categories:
            self._words(name, column, cells, learn, out)
        if not column.gaps and learn and gaps.any():
            column.gaps = True
            self.tell(f"gaps {name}", f"column {name!r} has empty cells; the mean so far stands for them")
            self._put(out, f"{own} missing", gaps.astype(float), int(np.argmax(gaps)), 0.0, learn)
        elif column.gaps:
            self._put(out, f"{own} missing", gaps.astype(float), 0, 0.0, learn)

    def _read(self, name: str, column: Column, array: pa.Array, learn: bool) -> "Cells":
        """What each cell is; the first number or moment decides which of them the column has."""
        forced = name in self.categorical
        kind = None if column.kind == "category" else column.kind
        n = len(array)
        typed: Kind = "time" if _is_time(array.type) else "number"
        if not _is_text(array.type) and not forced and kind in (None, typed):
            values = times(array)[0] if typed == "time" else _as_double(array)
            empty = np.isnan(values)
            if learn and not empty.all():
                column.kind = typed
                if pa.types.is_boolean(array.type):
                    self.rough.add(name)
            return Cells(self._within(name, values), np.zeros(n, dtype=bool), empty, None)
        # every text is read once, however often it occurs
        coded = pc.utf8_trim_whitespace(_texts(array)).dictionary_encode()
        texts = coded.dictionary
        at = pc.fill_null(coded.indices, len(texts)).to_numpy(zero_copy_only=False)
        values, right = np.full(len(texts), np.nan), np.zeros(len(texts), dtype=bool)
        if not forced and kind != "time":
            comma = column.comma
            values, right = _numbers(texts, comma)
            if comma is None and not right.all() and (comma := commas(texts)) is not None:
                values, right = _numbers(texts, comma)
        if not forced and kind != "number":
            days, moment = (values, right) if right.all() else _times(texts, self.date_format)
            if kind is None:
                known = np.append(right | moment, False)[at]
                kind = None if not known.any() else "number" if right[at[np.argmax(known)]] else "time"
            if kind == "time":
                values, right = days, moment
        if learn and kind is not None:
            column.kind = kind
            if kind == "number" and not _match(texts, NUMBER)[right].all():
                self.rough.add(name)
            if kind == "number" and column.comma is None and comma is not None:
                column.comma = comma
                what = "thousands separators" if comma == "thousands" else "decimal points"
                self.tell(f"comma {name}", f"column {name!r}: commas are taken for {what}")
        values = np.append(values, np.nan)[at]
        words = np.append(~right, False)[at]
        return Cells(
            self._within(name, values) if kind == "number" else values, words, at == len(texts),
            pc.if_else(pa.array(words), coded.dictionary_decode(), None),
        )  # fmt: skip

    def _within(self, name: str, values: Vector) -> Vector:
        far = np.abs(values) > LARGEST
        if far.any():
            self.tell(f"far {name}", f"column {name!r}: {values[np.argmax(far)]:g} is no usable number; "
                      "such cells count as missing")  # fmt: skip
            values = np.where(far, np.nan, values)
        return values

    def _words(self, name: str, column: Column, cells: "Cells", learn: bool, out: Encoded) -> None:
        own = own_feature(name)
        texts = pa.nulls(len(cells.words), pa.string()) if cells.texts is None else cells.texts
        if learn and len(column.categories) < MOST_CATEGORIES:
            known = set(column.categories)
            news = [text for text in pc.unique(texts).to_pylist() if text is not None and text not in known]
            column.categories += news[: MOST_CATEGORIES - len(column.categories)]
            self._tell_words(name, column, news)
        place = pc.fill_null(pc.index_in(texts, value_set=pa.array(column.categories, pa.string())), -1)
        places = place.to_numpy(zero_copy_only=False)
        for k, text in enumerate(column.categories):
            hit = places == k
            if f"{own}={text}" in self.features or hit.any():
                self._put(out, f"{own}={text}", hit.astype(float), int(np.argmax(hit)), 0.0, learn)
        other = (places < 0) & cells.words
        if other.any() and learn and not column.others:
            column.others = True
            self._put(out, f"{own} other", other.astype(float), int(np.argmax(other)), 0.0, learn)
            self.tell(f"others {name}", f"column {name!r} has more than {MOST_CATEGORIES} categories; the later ones "
                      "share one feature")  # fmt: skip
        elif column.others:
            self._put(out, f"{own} other", other.astype(float), 0, 0.0, learn)
        elif other.any():
            text = texts[int(np.argmax(other))].as_py()
            self.tell(f"unknown {name}", f"column {name!r}: category {_short(text)!r} was never learned")

    def _tell_words(self, name: str, column: Column, news: list[str]) -> None:
        if name in self.categorical:
            return
        if news and column.kind != "category":
            what = "numbers" if column.kind == "number" else "moments"
            self.tell(f"mixed {name}", f"column {name!r} holds {what} and words such as {_short(news[0])!r}; each word "
                      "is a feature of its own")  # fmt: skip
        almost = next((text for text in news if ALMOST.match(text)), None)
        if almost is not None:
            hint = "--date-format says how dates are written" if self.date_format is None else \
                f"it is no date like {self.date_format!r}"  # fmt: skip
            self.tell(f"almost {name}", f"column {name!r}: {_short(almost)!r} is taken for a word, not for a number or "
                      f"a moment ({hint})")  # fmt: skip

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


class Cells(NamedTuple):
    """The cells of a column."""

    values: Vector  # (n,) numbers, or days of moments; NaN where a cell is neither
    words: Mask  # (n,) where a cell is a word
    empty: Mask  # (n,) where there is nothing
    texts: pa.Array | None  # (n,) the words


# What cells mean


def numbers(texts: pa.Array, comma: Comma | None = None) -> tuple[Vector, str | None]:
    """Text as numbers, NaN where there is none; and the first cell that is neither empty nor a number.

    >>> numbers(pa.array(["1", " 2.5 ", "true", None, "three"]))
    (array([1. , 2.5, 1. , nan, nan]), 'three')
    >>> numbers(pa.array(["1,200", "7"]), "thousands")[0], numbers(pa.array(["0,5", "7"]), "decimal")[0]
    (array([1200.,    7.]), array([0.5, 7. ]))
    """
    texts = pc.utf8_trim_whitespace(texts)
    values, right = _numbers(texts, comma)
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


def _numbers(texts: pa.Array, comma: Comma | None) -> tuple[Vector, Mask]:
    right = _match(texts, NUMBER)
    if not right.all():
        if comma is not None:
            pattern, point = (THOUSANDS, "") if comma == "thousands" else (DECIMAL_COMMA, ".")
            texts = pc.if_else(pc.match_substring_regex(texts, pattern), pc.replace_substring(texts, ",", point), texts)
        truth = pc.match_substring_regex(texts, TRUTH)
        texts = pc.if_else(truth, pc.if_else(pc.equal(pc.utf8_lower(texts), "true"), "1", "0"), texts)
        right = _match(texts, NUMBER)
        texts = pc.if_else(pa.array(right), texts, None)
    return _as_double(texts.cast(pa.float64())).copy(), right


def times(array: pa.Array, date_format: str | None = None) -> tuple[Vector, str | None]:
    """Moments as days since 1970, UTC where no zone is given; and the first cell that is no moment.

    >>> times(pa.array(["1970-01-02", "1970-01-01T12:00:00Z", "soon"]))
    (array([1. , 0.5, nan]), 'soon')
    >>> times(pa.array(["2/1/1970", "1970-01-02"]), "%d/%m/%Y")
    (array([1., 1.]), None)
    """
    if _is_time(array.type):
        zone = array.type.tz if pa.types.is_timestamp(array.type) else None
        return _days(array.cast(pa.timestamp("us", zone), safe=False)), None
    texts = pc.utf8_trim_whitespace(array)
    days, right = _times(texts, date_format)
    return days, _first(texts, right)


def _times(texts: pa.Array, date_format: str | None) -> tuple[Vector, Mask]:
    days = np.full(len(texts), np.nan)
    if date_format is not None:
        days = _days(pc.strptime(texts, format=date_format, unit="us", error_is_null=True)).copy()
        days[_match(texts, f"{NUMBER}|{THOUSANDS}|{DECIMAL_COMMA}")] = np.nan  # what may be a number is one
    likely = _match(texts, MOMENT)
    rest = np.flatnonzero(likely & np.isnan(days))
    some = texts.take(rest)
    try:
        days[rest] = _days(some.cast(pa.timestamp("us")))
    except pa.ArrowInvalid:  # zones, or something else among them
        days[rest] = [_day(text) for text in some.to_pylist()]
    return days, ~np.isnan(days)


def _match(texts: pa.Array, pattern: str) -> Mask:
    found: Mask = pc.fill_null(pc.match_substring_regex(texts, pattern), False).to_numpy(zero_copy_only=False)
    return found


def _days(stamps: pa.Array) -> Vector:
    return _as_double(stamps.cast(pa.int64())) / DAY_IN_US


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


def labels(array: pa.Array) -> list[str | None]:
    """A target of any kind as labels; whole numbers have no decimal point."""
    cells = usable(array)
    if cells is None:
        raise DataError(f"a target or key must be numbers, words or moments, not {array.type}")
    return [None if text is None else text.strip() for text in _texts(cells).to_pylist()]


PARTS = [name for name in moments(np.zeros(1)) if name]


def own_feature(column: str) -> str:
    """The feature that is called as the column is, in quotes if its name looks like one that is made here.

    >>> own_feature("age"), own_feature("age missing"), own_feature("a=b")
    ('age', "'age missing'", "'a=b'")
    """
    made = (" missing", " other", *(f":{part}" for part in PARTS))
    return repr(column) if "=" in column or column.endswith(made) or column[:1] in ("'", '"') else column


def _first(texts: pa.Array, right: Mask) -> str | None:
    wrong = ~right & texts.is_valid().to_numpy(zero_copy_only=False)
    return _short(texts[int(np.argmax(wrong))].as_py()) if wrong.any() else None


def _short(text: str) -> str:
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


def _as_double(array: pa.Array) -> Vector:
    if pa.types.is_duration(array.type) or pa.types.is_time(array.type):
        array = array.cast(pa.int64() if array.type.bit_width == 64 else pa.int32())
    values: Vector = pc.cast(array, pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return values


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_binary(kind) or pa.types.is_null(kind))


def _is_time(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind))


def _texts(array: pa.Array) -> pa.Array:
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
