"""From columns of any kind to named numeric features.

A number is used as it is. A missing one is NaN, which every learner fills with the running mean; a column that has had
gaps gets a second feature that marks them. A timestamp becomes its day and its place in the day, the week and the year.
A text value has a feature of its own, 0 or 1, in a column of text as well as among numbers: the first at once, others
once they have come twice (`Column.meet`). Where a column has more than MAX_CATEGORIES values, each is also hashed to a
bucket, whose place a core's statistics of the targets of that bucket take. Features are added with the row that first
needs them, and each cell is parsed by itself, so what is learned does not depend on how rows were cut into pieces.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omkl.arrays import Mask, Vector
from omkl.encoder.categories import ALL_DIFFERENT, MAX_CATEGORIES, Column, Kind, buckets
from omkl.encoder.cells import (
    LIKE_A_NUMBER,
    NUMBER,
    as_doubles,
    as_strings,
    calendar_features,
    commas,
    hint_about,
    is_coded,
    is_text,
    is_timestamp,
    matches,
    read_numbers,
    read_timestamps,
    short,
    timestamps,
    usable,
)
from omkl.encoder.rows import LARGEST, NO_CELLS, Plan, QuickCells, quick_cells, quick_row
from omkl.encoder.table import Batch, flat_row, of_row, text_names
from omkl.names import CALENDAR, MAX_CODES, id_features, own_feature, own_feature_before
from omkl.notices import Notify
from omkl.persist import Json, claims, demand

MAX_FEATURES = 10_000


class Encoded(NamedTuple):
    """The rows of a batch as features."""

    features: dict[str, Vector]  # (n,) each
    arrivals: dict[str, int]  # the new ones among them, and the row where each begins


class Encoder:
    """The columns known so far, and how they become features."""

    def __init__(self, notify: Notify, date_format: str | None = None, categorical: tuple[str, ...] = ()) -> None:
        self.notify, self.date_format, self.categorical = notify, date_format, categorical
        self.codes = 0  # numbers that describe a target, where columns of many categories have statistics of it
        self.eager = False  # text values have features as soon as they come
        self.whole = False  # in `encode_whole`
        self.columns: dict[str, Column] = {}
        self.with_booleans: set[str] = set()  # columns of numbers, some of which are written as true and false
        self.features: dict[str, float] = {}  # every feature known, and its value where nothing is known
        self._plans: dict[str, Plan | None] | None = None  # for single rows; None after a change

    def body(self) -> Json:
        """As JSON, for model files."""
        return {"date_format": self.date_format, "categorical": list(self.categorical),
                "columns": [[name, asdict(column)] for name, column in self.columns.items()],
                "features": sorted(self.features), "codes": self.codes}  # fmt: skip

    @classmethod
    def from_body(cls, body: Json, notify: Notify) -> "Encoder":
        if body["date_format"] is not None:
            claims.text(body["date_format"], "the format of dates")
        self = cls(notify, body["date_format"], tuple(claims.strings(body["categorical"], "the columns of codes")))
        self.codes = claims.count(body.get("codes", 0), "the numbers that describe a target")
        demand(self.codes <= MAX_CODES, f"a target is described by at most {MAX_CODES} numbers")
        self.columns = {  # in older files text had features at once
            claims.string(name, "a column"): Column(**({"begun": True} | column)) for name, column in body["columns"]
        }
        for name, column in self.columns.items():
            column.check(name in self.categorical)
        claims.strings(body["features"], "the features")
        for name, column in self.columns.items():
            column.own = column.own or own_feature_before(name)
        own = {column.own for column in self.columns.values()}
        plain = own | {f"{name}:{part}" for name in own for part in CALENDAR}
        plain |= {feature for name in own for feature in id_features(name, self.codes)}
        self.features = {str(name): np.nan if name in plain else 0.0 for name in body["features"]}
        return self

    @classmethod
    def of_numbers(cls, names: Iterable[str], notify: Notify) -> "Encoder":
        """An encoder that has seen numbers in these columns, which have been features under their names."""
        self = cls(notify)
        self.columns = {name: Column("number", own=name) for name in names}
        self.features = dict.fromkeys(self.columns, np.nan)
        return self

    def copy(self) -> "Encoder":
        """An encoder that knows the same and learns on its own."""
        other = Encoder(self.notify, self.date_format, self.categorical)
        other.codes, other.eager = self.codes, self.eager
        other.columns = {
            name: replace(c, categories=list(c.categories), seen=list(c.seen)) for name, c in self.columns.items()
        }
        other.with_booleans, other.features = set(self.with_booleans), dict(self.features)
        return other

    def plain_numbers(self) -> set[str]:
        """Columns that a reader may parse as numbers straight away."""
        return {
            name for name, column in self.columns.items()
            if column.kind == "number" and column.comma is None and not column.categories
            and name not in self.with_booleans
        }  # fmt: skip

    def encode_whole(self, batch: Batch) -> Encoded:
        """The features of all rows that there are for now, as in `fit`: no text value waits until it comes again."""
        self.whole = True
        try:
            return self.encode(batch)
        finally:
            self.whole = False

    def encode(self, batch: Batch, learn: bool = True, quick: QuickCells = NO_CELLS) -> Encoded:
        """The features of these rows, for a single one in part from `quick`; with `learn` new ones become known."""
        n = len(batch.rows)
        out = Encoded({}, {})
        self._plans = None if learn else self._plans
        if not n:
            return Encoded({name: np.empty(0) for name in self.features}, {})
        begun = bool(self.columns)
        known = {*self.columns, *batch.columns}
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
                coded = given is not None and is_coded(given.type)
                self.columns[name] = Column(coded=coded, own=own_feature(name, known))
            if (cells := quick.get(name)) is None:
                self._features(name, self.columns[name], pa.nulls(n) if array is None else array, learn, out)
            else:
                out.features.update({feature: np.array([value]) for feature, value in cells.items()})
        for name in self.features:
            if name not in out.features:
                out.features[name] = np.full(n, self.features[name])
        return out

    # One row

    def row(self, x: Mapping[Any, object], learn: bool = True) -> dict[Any, float]:
        """The features of one row, as `encode` has them; numbers that are missing are left out."""
        x = flat_row(x)
        if not all(type(name) is str for name in x):
            x = dict(zip(text_names(x), x.values(), strict=True))
        if self._plans is None:
            self._plans = {name: self._plan(name, column) for name, column in self.columns.items()}
        known = not learn or self._plans.keys() >= x.keys()
        if known and (out := quick_row(self._plans, x)) is not None:
            return out
        features = self.encode(of_row(x), learn, quick_cells(self._plans, x)).features
        return {name: float(values[0]) for name, values in features.items() if not np.isnan(values[0])}

    def _plan(self, name: str, column: Column) -> Plan | None:
        own = column.own
        mixed = column.kind != "category" and (column.categories or own not in self.features)
        undecided = column.kind == "category" and not (column.begun or column.unique)
        if column.kind is None or mixed or undecided:
            return None
        present = {f"{own} missing": 0.0} if column.gaps else {}
        zeros = {f"{own}={text}": 0.0 for text in column.categories if f"{own}={text}" in self.features} | present
        other = {f"{own} other"} & self.features.keys()
        zeros |= dict.fromkeys(other, 0.0)
        texts = {text: zeros | {f"{own}={text}": 1.0} for text in column.categories if f"{own}={text}" in zeros}
        empty = zeros | dict.fromkeys(present, 1.0) if column.gaps else None
        by_hash = tuple(name for name in id_features(own, self.codes) if name in self.features and column.others)
        rest = (
            zeros | dict.fromkeys(other, 1.0) if self.date_format is None and (column.others or column.unique) else None
        )
        kind: Literal["number", "text", "time"] = "text" if column.kind == "category" else column.kind
        return Plan(kind, own, present, empty, texts, rest, by_hash)

    # One column

    def _features(self, name: str, column: Column, array: pa.Array, learn: bool, out: Encoded) -> None:
        own = column.own
        if own in self.features and column.takes_as_numbers(array, LARGEST):
            out.features[own] = array.to_numpy()
            return
        begun = column.kind is not None
        cells = self._read(name, column, array, learn)
        fits = ~np.isnan(cells.values)
        gaps = ~fits & ~cells.is_text
        if not begun:
            if not learn or cells.empty.all():
                return
            gaps[: np.argmin(cells.empty)] = False  # the column begins with its first cell
            column.kind = column.kind or "category"
        number = 0 if own in self.features else int(np.argmax(fits)) if fits.any() else None
        if fits.any() or own in self.features:
            first = int(np.argmax(fits))
            for part, feature in (
                {"": cells.values} if column.kind == "number" else calendar_features(cells.values)
            ).items():
                self._put(out, own if part == "" else f"{own}:{part}", feature, first, np.nan, learn)
        if cells.is_text.any() or column.categories:
            self._text_features(name, column, cells, number, learn, out)
        if not column.gaps and learn and gaps.any():
            column.gaps = True
            remedy = "are a category of their own" if column.kind == "category" else "are filled with the running mean"
            self.notify(f"gaps {name}", f"column {name!r} has empty cells; they {remedy}")
            self._put(out, f"{own} missing", gaps.astype(float), int(np.argmax(gaps)), 0.0, learn)
        elif column.gaps:
            self._put(out, f"{own} missing", gaps.astype(float), 0, 0.0, learn)

    def _read(self, name: str, column: Column, array: pa.Array, learn: bool) -> "Cells":
        """What each cell is; the first number or timestamp decides which of the two the column holds."""
        forced = name in self.categorical or column.coded
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

    def _text_features(
        self, name: str, column: Column, cells: "Cells", number: int | None, learn: bool, out: Encoded
    ) -> None:
        """`number` is the row of the first number or timestamp of the column, 0 if it came before."""
        own = column.own
        strings = pa.nulls(len(cells.is_text), pa.string()) if cells.text is None else cells.text
        arrivals, first = dict[str, int](), 0
        if learn and not (column.others or column.unique):
            before = len(column.categories)
            declared = column.coded or name in self.categorical
            few = self.whole and before + len(column.new_values(strings)) <= MAX_CATEGORIES
            arrivals, first = column.meet(strings, number, declared, self.codes > 0, self.eager or few)
            self._notify_text(name, column, column.categories[before:])
            if column.unique:
                self.notify(f"unique {name}", f"column {name!r} names the rows: of {ALL_DIFFERENT} values no two are "
                            "the same; it is left out (--categorical, or a type of categories, keeps it)")  # fmt: skip
            elif column.others:
                use = "statistics of its targets describe each" if self.codes else 'later ones are merged into "other"'
                self.notify(f"others {name}", f"column {name!r} has more than {MAX_CATEGORIES} categories; {use}")
        place = pc.fill_null(pc.index_in(strings, value_set=pa.array(column.categories, pa.string())), -1)
        places = place.to_numpy(zero_copy_only=False)
        for k, text in enumerate(column.categories):
            if text in arrivals or f"{own}={text}" in self.features:
                self._put(out, f"{own}={text}", (places == k).astype(float), arrivals.get(text, 0), 0.0, learn)
        other = (places < 0) & cells.is_text
        if column.others and (not self.codes or f"{own} other" in self.features):
            self._put(out, f"{own} other", other.astype(float), first, 0.0, learn)
        elif column.others:
            values = buckets(strings)
            for feature in id_features(own, self.codes):
                self._put(out, feature, values, first, np.nan, learn)
        elif other.any() and column.begun and not learn:
            text = strings[int(np.argmax(other))].as_py()
            self.notify(f"unknown {name}", f"column {name!r}: category {short(text)!r} was never learned")

    def _notify_text(self, name: str, column: Column, new: list[str]) -> None:
        if name in self.categorical or column.coded:
            return
        if new and column.kind != "category":
            what = "numbers" if column.kind == "number" else "timestamps"
            self.notify(f"mixed {name}", f"column {name!r} holds {what} and text such as {short(new[0])!r}; each text "
                        "value is a feature of its own")  # fmt: skip
        almost = next((text for text in new if LIKE_A_NUMBER.match(text)), None)
        if almost is not None:
            self.notify(f"almost {name}", f"column {name!r}: {short(almost)!r} is read as text, not as a number or a "
                        f"timestamp ({hint_about(almost, self.date_format)})")  # fmt: skip

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
