"""What is known about one column, and which of its text values are worth a feature."""

import zlib
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omkl.arrays import Vector
from omkl.encoder.cells import Comma
from omkl.names import BUCKETS
from omkl.persist import claims, demand

Kind = Literal["number", "category", "time"]
MAX_CATEGORIES = 32  # of a column that have a feature of their own
ALL_DIFFERENT = 200  # values of a column that are all different: it names the rows, and tells nothing about them


@dataclass
class Column:
    """What is known about one column."""

    kind: Kind | None = None  # None while every cell was empty, "category" while there was only text
    comma: Comma | None = None
    categories: list[str] = field(default_factory=list)
    others: bool = False  # there were more text values than MAX_CATEGORIES
    begun: bool = False  # text values have features; until then only the first has one
    texts: int = 0  # text cells, while not begun
    seen: list[int] = field(default_factory=list)  # hashes of text values that wait for a feature
    unique: bool = False  # there were ALL_DIFFERENT text values, none of them twice
    gaps: bool = False
    coded: bool = False  # its type says that it holds categories, be they written as numbers
    own: str = ""  # the feature of its numbers or timestamps

    def check(self, declared: bool) -> None:
        """Refuse what no column can be; `declared` says that it was declared to hold categories."""
        claims.one_of(self.kind, (None, "number", "category", "time"), "the kind of a column")
        claims.one_of(self.comma, (None, "thousands", "decimal"), "comma")
        for category in claims.strings(self.categories, "the categories"):
            claims.text(category, "a category")
        demand(len(self.categories) <= MAX_CATEGORIES, "a column has too many categories")
        for flag in ("others", "begun", "unique"):
            claims.flag(getattr(self, flag), flag)
        demand(isinstance(self.seen, list) and len(self.seen) < ALL_DIFFERENT, "a column has too many values")
        for value in self.seen:
            claims.count(value, "the hash of a value")
        claims.count(self.texts, "the cells of text")
        demand(not self.seen or not (self.others or self.unique), "values of a column that are not needed")
        claims.flag(self.gaps, "gaps")
        claims.flag(self.coded, "coded")
        demand(self.kind in (None, "category") or not (declared or self.coded), "a column of categories holds numbers")
        claims.string(self.own, "the feature of a column")

    def takes_as_numbers(self, array: pa.Array, largest: float) -> bool:
        """Whether there have been only numbers, and these cells are numbers up to `largest`, none missing."""
        if self.kind != "number" or self.gaps or self.categories or not pa.types.is_float64(array.type):
            return False
        return not array.null_count and bool(np.abs(array.to_numpy()).max() <= largest)

    def new_values(self, strings: pa.Array) -> set[str]:
        """Those that are not categories yet."""
        return {text for text in pc.unique(strings).to_pylist() if text is not None} - set(self.categories)

    def meet(self, strings: pa.Array, number: int | None, declared: bool, hashing: bool, at_once: bool) -> "Arrivals":
        """Learn which text values there are; returns those that have a feature from a row of these on.

        Values wait until they have come twice on average, or until there is text as well as a number (the first one is
        in row `number`); each that comes later waits until it has come twice itself. As soon as there are more than
        MAX_CATEGORIES and any came twice, no further one has a feature; with `hashing` none but the first has, if all
        were waiting. A column that was declared to hold categories does not name the rows, though all its values may
        be different. With `at_once` no value waits.
        """
        arrivals, others = dict[str, int](), 0
        known, seen = set(self.categories), set(self.seen)
        if self.begun and not self.new_values(strings):
            return Arrivals(arrivals, others)
        self.begun |= at_once
        for row, text in enumerate(strings.to_pylist()):
            if self.others or self.unique:
                break
            if text is not None and text not in known:
                value = hashed(text)
                if len(known) < MAX_CATEGORIES and (not self.begun or at_once or value in seen):
                    seen.discard(value)
                    known.add(text)
                    self.categories.append(text)
                    if self.begun or len(known) == 1:
                        arrivals[text] = row
                else:
                    seen.add(value)
            different = len(known) + len(seen)
            if not self.begun:
                self.texts += text is not None
                enough, again = different >= ALL_DIFFERENT, self.texts > different
                self.unique = enough and not again and not declared
                many = different > MAX_CATEGORIES and (again or enough)
                mixed = different > 0 and number is not None and number <= row
                self.begun = not self.unique and (many or mixed or self.texts >= 2 * different > 0)
                if self.unique or (many and hashing):
                    del self.categories[1:]
                if self.begun:
                    arrivals |= dict.fromkeys(self.categories[1:], row)
            self.others, others = self.begun and different > MAX_CATEGORIES, row
        self.seen = [] if self.others or self.unique else sorted(seen)
        self.texts = 0 if self.begun or self.unique else self.texts
        return Arrivals(arrivals, others)


class Arrivals(NamedTuple):
    """What begins in which row of a batch."""

    categories: dict[str, int]  # that get a feature
    others: int  # where there are more of them than get one


def hashed(text: str) -> int:
    return zlib.crc32(text.encode(errors="replace"))  # the same in every process, as Python's own is not


def bucket_of(text: str) -> int:
    return hashed(text) % BUCKETS


def buckets(strings: pa.Array) -> Vector:
    """The bucket of each text, NaN where there is none."""
    coded = strings.dictionary_encode()
    each = [float(bucket_of(text)) for text in coded.dictionary.to_pylist()]
    at = pc.fill_null(coded.indices, len(each)).to_numpy(zero_copy_only=False)
    values: Vector = np.array([*each, np.nan])[at]
    return values
