"""From columns of any kind to named numeric features.

A number is used as it is. A missing one is NaN, which every learner fills with the running mean; a column that has had
gaps gets a second feature that marks them. A timestamp becomes its day and its place in the day, the week and the year.
Every text value has a feature of its own, 0 or 1, in a column of text as well as among numbers. Features are added with
the row that first needs them, and each cell is parsed by itself, so what is learned does not depend on how rows were
cut into pieces.
"""

import re
from dataclasses import asdict, dataclass, field
from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omkl.arrays import Mask, Vector
from omkl.encoder.cells import (
    CALENDAR,
    NUMBER,
    Comma,
    as_doubles,
    as_strings,
    calendar_features,
    commas,
    is_text,
    is_timestamp,
    matches,
    read_numbers,
    read_timestamps,
    short,
    timestamps,
    usable,
)
from omkl.encoder.table import Batch
from omkl.notices import Notify
from omkl.persist import Json, claims, demand

Kind = Literal["number", "category", "time"]
MAX_CATEGORIES = 32  # of a column; those that come later are merged into "other"
MAX_FEATURES = 10_000
LARGEST = 1e100
LIKE_A_NUMBER = re.compile(r"[-+($€£]?\d")  # text that may have been meant as a number or a date


@dataclass
class Column:
    """What is known about one column."""

    kind: Kind | None = None  # None while every cell was empty, "category" while there was only text
    comma: Comma | None = None
    categories: list[str] = field(default_factory=list)
    others: bool = False  # there were more text values than MAX_CATEGORIES
    gaps: bool = False

    def check(self) -> None:
        """Refuse what no column can be."""
        claims.one_of(self.kind, (None, "number", "category", "time"), "the kind of a column")
        claims.one_of(self.comma, (None, "thousands", "decimal"), "comma")
        claims.strings(self.categories, "the categories")
        demand(len(self.categories) <= MAX_CATEGORIES, "a column has too many categories")
        claims.flag(self.others, "others")
        claims.flag(self.gaps, "gaps")


class Encoded(NamedTuple):
    """The rows of a batch as features."""

    features: dict[str, Vector]  # (n,) each
    arrivals: dict[str, int]  # the new ones among them, and the row where each begins


class Encoder:
    """The columns known so far, and how they become features."""

    def __init__(self, notify: Notify, date_format: str | None = None, categorical: tuple[str, ...] = ()) -> None:
        self.notify, self.date_format, self.categorical = notify, date_format, categorical
        self.columns: dict[str, Column] = {}
        self.with_booleans: set[str] = set()  # columns of numbers, some of which are written as true and false
        self.features: dict[str, float] = {}  # every feature known, and its value where nothing is known

    def body(self) -> Json:
        """As JSON, for model files."""
        return {"date_format": self.date_format, "categorical": list(self.categorical),
                "columns": [[name, asdict(column)] for name, column in self.columns.items()],
                "features": sorted(self.features)}  # fmt: skip

    @classmethod
    def from_body(cls, body: Json, notify: Notify) -> "Encoder":
        if body["date_format"] is not None:
            claims.string(body["date_format"], "the format of dates")
        self = cls(notify, body["date_format"], tuple(claims.strings(body["categorical"], "the columns of codes")))
        self.columns = {claims.string(name, "a column"): Column(**column) for name, column in body["columns"]}
        for column in self.columns.values():
            column.check()
        claims.strings(body["features"], "the features")
        own = [own_feature(name) for name in self.columns]
        plain = set(own) | {f"{name}:{part}" for name in own for part in CALENDAR}
        self.features = {str(name): np.nan if name in plain else 0.0 for name in body["features"]}
        return self

    def plain_numbers(self) -> set[str]:
        """Columns that a reader may parse as numbers straight away."""
        return {
            name for name, column in self.columns.items()
            if column.kind == "number" and column.comma is None and not column.categories
            and name not in self.with_booleans
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
                self.notify(f"absent {name}", f"column {name!r} is absent; its values are treated as missing")
            elif array is None:
                self.notify(f"nested {name}", f"column {name!r} holds {given.type}, which is ignored; flatten it first")
                if name not in self.columns:
                    continue
            if name not in self.columns:
                if not learn:
                    self.notify(f"extra {name}", f"column {name!r} was not there in training; it is ignored")
                    continue
                if begun:
                    self.notify(f"new {name}", f"column {name!r} is new; it is learned from here on")
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
        gaps = ~fits & ~cells.is_text
        if not begun:
            if not learn or cells.empty.all():
                return
            gaps[: np.argmin(cells.empty)] = False  # the column begins with its first cell
            column.kind = column.kind or "category"
        if fits.any() or own in self.features:
            first = int(np.argmax(fits))
            for part, feature in (
                {"": cells.values} if column.kind == "number" else calendar_features(cells.values)
            ).items():
                self._put(out, own if part == "" else f"{own}:{part}", feature, first, np.nan, learn)
        if cells.is_text.any() or column.categories:
            self._text_features(name, column, cells, learn, out)
        if not column.gaps and learn and gaps.any():
            column.gaps = True
            remedy = "are a category of their own" if column.kind == "category" else "are filled with the running mean"
            self.notify(f"gaps {name}", f"column {name!r} has empty cells; they {remedy}")
            self._put(out, f"{own} missing", gaps.astype(float), int(np.argmax(gaps)), 0.0, learn)
        elif column.gaps:
            self._put(out, f"{own} missing", gaps.astype(float), 0, 0.0, learn)

    def _read(self, name: str, column: Column, array: pa.Array, learn: bool) -> "Cells":
        """What each cell is; the first number or timestamp decides which of the two the column holds."""
        forced = name in self.categorical
        kind = None if column.kind == "category" else column.kind
        n = len(array)
        typed: Kind = "time" if is_timestamp(array.type) else "number"
        if not is_text(array.type) and not forced and kind in (None, typed):
            values = timestamps(array)[0] if typed == "time" else as_doubles(array)
            empty = np.isnan(values)
            if learn and not empty.all():
                column.kind = typed
                if pa.types.is_boolean(array.type):
                    self.with_booleans.add(name)
            return Cells(self._within(name, values), np.zeros(n, dtype=bool), empty, None)
        # every distinct string is parsed once
        coded = pc.utf8_trim_whitespace(as_strings(array)).dictionary_encode()
        strings = coded.dictionary
        at = pc.fill_null(coded.indices, len(strings)).to_numpy(zero_copy_only=False)
        values, valid = np.full(len(strings), np.nan), np.zeros(len(strings), dtype=bool)
        if not forced and kind != "time":
            comma = column.comma
            values, valid = read_numbers(strings, comma)
            if comma is None and not valid.all() and (comma := commas(strings)) is not None:
                values, valid = read_numbers(strings, comma)
        if not forced and kind != "number":
            days, is_time = (values, valid) if valid.all() else read_timestamps(strings, self.date_format)
            if kind is None:
                known = np.append(valid | is_time, False)[at]
                kind = None if not known.any() else "number" if valid[at[np.argmax(known)]] else "time"
            if kind == "time":
                values, valid = days, is_time
        if learn and kind is not None:
            column.kind = kind
            if kind == "number" and not matches(strings, NUMBER)[valid].all():
                self.with_booleans.add(name)
            if kind == "number" and column.comma is None and comma is not None:
                column.comma = comma
                what = "thousands separators" if comma == "thousands" else "decimal points"
                self.notify(f"comma {name}", f"column {name!r}: commas are read as {what}")
        values = np.append(values, np.nan)[at]
        text_cells = np.append(~valid, False)[at]
        return Cells(
            self._within(name, values) if kind == "number" else values, text_cells, at == len(strings),
            pc.if_else(pa.array(text_cells), coded.dictionary_decode(), None),
        )  # fmt: skip

    def _within(self, name: str, values: Vector) -> Vector:
        large = np.abs(values) > LARGEST
        if large.any():
            self.notify(f"large {name}", f"column {name!r}: {values[np.argmax(large)]:g} is too large; such cells "
                        "are treated as missing")  # fmt: skip
            values = np.where(large, np.nan, values)
        return values

    def _text_features(self, name: str, column: Column, cells: "Cells", learn: bool, out: Encoded) -> None:
        own = own_feature(name)
        strings = pa.nulls(len(cells.is_text), pa.string()) if cells.text is None else cells.text
        if learn and len(column.categories) < MAX_CATEGORIES:
            known = set(column.categories)
            new = [text for text in pc.unique(strings).to_pylist() if text is not None and text not in known]
            column.categories += new[: MAX_CATEGORIES - len(column.categories)]
            self._notify_text(name, column, new)
        place = pc.fill_null(pc.index_in(strings, value_set=pa.array(column.categories, pa.string())), -1)
        places = place.to_numpy(zero_copy_only=False)
        for k, text in enumerate(column.categories):
            hit = places == k
            if f"{own}={text}" in self.features or hit.any():
                self._put(out, f"{own}={text}", hit.astype(float), int(np.argmax(hit)), 0.0, learn)
        other = (places < 0) & cells.is_text
        if other.any() and learn and not column.others:
            column.others = True
            self._put(out, f"{own} other", other.astype(float), int(np.argmax(other)), 0.0, learn)
            self.notify(f"others {name}", f"column {name!r} has more than {MAX_CATEGORIES} categories; later ones are "
                        'merged into "other"')  # fmt: skip
        elif column.others:
            self._put(out, f"{own} other", other.astype(float), 0, 0.0, learn)
        elif other.any():
            text = strings[int(np.argmax(other))].as_py()
            self.notify(f"unknown {name}", f"column {name!r}: category {short(text)!r} was never learned")

    def _notify_text(self, name: str, column: Column, new: list[str]) -> None:
        if name in self.categorical:
            return
        if new and column.kind != "category":
            what = "numbers" if column.kind == "number" else "timestamps"
            self.notify(f"mixed {name}", f"column {name!r} holds {what} and text such as {short(new[0])!r}; each text "
                        "value is a feature of its own")  # fmt: skip
        almost = next((text for text in new if LIKE_A_NUMBER.match(text)), None)
        if almost is not None:
            hint = "--date-format tells how dates are written" if self.date_format is None else \
                f"it is not a date like {self.date_format!r}"  # fmt: skip
            self.notify(f"almost {name}", f"column {name!r}: {short(almost)!r} is read as text, not as a number or a "
                        f"timestamp ({hint})")  # fmt: skip

    def _put(self, out: Encoded, name: str, values: Vector, first: int, fill: float, learn: bool) -> None:
        if name not in self.features:
            if not learn:
                return
            if len(self.features) >= MAX_FEATURES:
                self.notify("most features", f"there are more than {MAX_FEATURES} features; {name!r} is ignored")
                return
            self.features[name] = fill
            out.arrivals[name] = first
        out.features[name] = values


class Cells(NamedTuple):
    """The cells of a column."""

    values: Vector  # (n,) numbers, or days of timestamps; NaN where a cell is neither
    is_text: Mask  # (n,)
    empty: Mask  # (n,)
    text: pa.Array | None  # (n,) null where a cell is no text


def own_feature(column: str) -> str:
    """The feature with the name of the column, in quotes if that looks like a name that is made here.

    >>> own_feature("age"), own_feature("age missing"), own_feature("a=b")
    ('age', "'age missing'", "'a=b'")
    """
    made = (" missing", " other", *(f":{part}" for part in CALENDAR))
    return repr(column) if "=" in column or column.endswith(made) or column[:1] in ("'", '"') else column
