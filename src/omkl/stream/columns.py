"""From columns of any kind to named numbers.

A number is itself, a missing one NaN, which every learner takes for the mean so far; a column that
has had gaps gets a second feature that says so. A moment has its day and its place in the day, the
week and the year. Every word has a feature of its own, in a column of words as well as among
numbers. Features appear with the row that first needs them, and each cell is read by itself, so
what is learned does not depend on how rows were cut into pieces.
"""

import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omkl.arrays import Mask, Vector
from omkl.stream.cells import (
    NUMBER,
    PARTS,
    Comma,
    as_doubles,
    as_texts,
    commas,
    is_moment,
    is_text,
    matches,
    moments,
    read_moments,
    read_numbers,
    short,
    times,
    usable,
)
from omkl.stream.parsers import Batch

Kind = Literal["number", "category", "time"]
MOST_CATEGORIES = 32  # of a column; the words that come later share one feature
MOST_FEATURES = 10_000
LARGEST = 1e100
ALMOST = re.compile(r"[-+($€£]?\d")  # a word that its writer may have meant as a number or a date

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
        typed: Kind = "time" if is_moment(array.type) else "number"
        if not is_text(array.type) and not forced and kind in (None, typed):
            values = times(array)[0] if typed == "time" else as_doubles(array)
            empty = np.isnan(values)
            if learn and not empty.all():
                column.kind = typed
                if pa.types.is_boolean(array.type):
                    self.rough.add(name)
            return Cells(self._within(name, values), np.zeros(n, dtype=bool), empty, None)
        # every text is read once, however often it occurs
        coded = pc.utf8_trim_whitespace(as_texts(array)).dictionary_encode()
        texts = coded.dictionary
        at = pc.fill_null(coded.indices, len(texts)).to_numpy(zero_copy_only=False)
        values, right = np.full(len(texts), np.nan), np.zeros(len(texts), dtype=bool)
        if not forced and kind != "time":
            comma = column.comma
            values, right = read_numbers(texts, comma)
            if comma is None and not right.all() and (comma := commas(texts)) is not None:
                values, right = read_numbers(texts, comma)
        if not forced and kind != "number":
            days, moment = (values, right) if right.all() else read_moments(texts, self.date_format)
            if kind is None:
                known = np.append(right | moment, False)[at]
                kind = None if not known.any() else "number" if right[at[np.argmax(known)]] else "time"
            if kind == "time":
                values, right = days, moment
        if learn and kind is not None:
            column.kind = kind
            if kind == "number" and not matches(texts, NUMBER)[right].all():
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
            self.tell(f"unknown {name}", f"column {name!r}: category {short(text)!r} was never learned")

    def _tell_words(self, name: str, column: Column, news: list[str]) -> None:
        if name in self.categorical:
            return
        if news and column.kind != "category":
            what = "numbers" if column.kind == "number" else "moments"
            self.tell(f"mixed {name}", f"column {name!r} holds {what} and words such as {short(news[0])!r}; each word "
                      "is a feature of its own")  # fmt: skip
        almost = next((text for text in news if ALMOST.match(text)), None)
        if almost is not None:
            hint = "--date-format says how dates are written" if self.date_format is None else \
                f"it is no date like {self.date_format!r}"  # fmt: skip
            self.tell(f"almost {name}", f"column {name!r}: {short(almost)!r} is taken for a word, not for a number or "
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


def own_feature(column: str) -> str:
    """The feature that is called as the column is, in quotes if its name looks like one that is made here.

    >>> own_feature("age"), own_feature("age missing"), own_feature("a=b")
    ('age', "'age missing'", "'a=b'")
    """
    made = (" missing", " other", *(f":{part}" for part in PARTS))
    return repr(column) if "=" in column or column.endswith(made) or column[:1] in ("'", '"') else column
