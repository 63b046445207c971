"""Odd, broken and unsupported inputs: each ends with a message, and the good rows are learned."""

import contextlib
import io
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from command import OMKL, invoke, omkl
from hypothesis import given, settings
from hypothesis import strategies as st
from tables import compressed

from omkl import persist
from omkl.encoder.columns import Encoder
from omkl.stream.parsers import Reading, check_unique
from omkl.stream.raw import DataError, Raw
from omkl.stream.source import Source

ROWS = 40
PROGRESS = re.compile(r"[\d,]+ rows, [\d,]+ rows/s, ")  # a slow machine shows some
Content = bytes | str | Callable[[Path], None]


def lines(start: int = 0, stop: int = ROWS, sep: str = ",", end: str = "\n", point: str = ".") -> str:
    """Rows of a, b and y, without a header."""
    cells = ((k % 7 / 2, k * 3 % 5 - 1.5, k % 7 - k * 3 % 5 / 4) for k in range(start, stop))
    return "".join(sep.join(f"{cell:.2f}".replace(".", point) for cell in row) + end for row in cells)


GOOD = "a,b,y\n" + lines()
JSON = "".join(json.dumps({"a": k % 7, "b": k * 3 % 5, "y": k % 4}) + "\n" for k in range(ROWS))
GZIP, ZSTD = compressed("gzip", GOOD.encode()), compressed("zstd", GOOD.encode())


def with_column(name: str, cells: Any) -> str:
    """The good table with one more column."""
    wide = [f"{row},{cell}" for row, cell in zip(GOOD.splitlines(), [name, *cells], strict=True)]
    return "\n".join(wide) + "\n"


def target(cells: Any) -> str:
    return "a,y\n" + "".join(f"{k % 7},{cell}\n" for k, cell in enumerate(cells))


def parquet(path: Path) -> None:
    pa.parquet.write_table(pa.csv.read_csv(io.BytesIO(GOOD.encode())), path)


def arrow(path: Path, stream: bool = False) -> None:
    table = pa.csv.read_csv(io.BytesIO(GOOD.encode()))
    with (pa.ipc.new_stream if stream else pa.ipc.new_file)(path, table.schema) as writer:
        writer.write_table(table)


def damaged(make: Callable[[Path], None], at: float, keep: bool = True) -> Callable[[Path], None]:
    """The file with some bytes overwritten, or cut off there."""

    def build(path: Path) -> None:
        make(path)
        data = path.read_bytes()
        k = int(len(data) * at)
        path.write_bytes(data[:k] + b"\xff" * 8 + data[k + 8 :] if keep else data[:k])

    return build


def long_line(before: str, after: str = "") -> Callable[[Path], None]:
    def build(path: Path) -> None:
        with path.open("wb") as file:
            file.write(before.encode())
            for _ in range(100):
                file.write(b"1" * (1 << 20))
            file.write(after.encode())

    return build


class Case(NamedTuple):
    """A data file, the message about it, and how many rows are learned from it: None for an error."""

    content: Content
    message: str
    learned: int | None
    arguments: tuple[str, ...] = ()
    name: str = "data.csv"
    others: dict[str, Content] | None = None


WIDE = "y," + ",".join(f"c{k}" for k in range(9_999)) + "\n" + "\n".join(",".join(["1.5"] * 10_000) for _ in range(3))
DEEP = '{"a": ' + "[" * 100_000 + "]" * 100_000 + ', "y": 1}\n'

CASES = {
    # the shape of the table
    "a row too long": Case(GOOD + "1,2,3,4\n" + lines(), "row 41 of data.csv has 4 fields instead of 3; such", 80),
    "a row too short": Case("a,b,y\n1,2\n" + lines(), "row 1 of data.csv has 2 fields instead of 3; such rows are", 40),
    "a delimiter at the end of each row": Case("a,y\n" + "1,2,\n" * 9, "no row can be used; nothing was learned", None),
    "an empty file": Case("", "data.csv: empty; wanted a header line and rows", None),
    "only blank lines": Case("\n\r\n\n", "data.csv: empty; wanted a header line and rows", None),
    "only a header": Case("a,b,y\n", "data.csv: a header and no rows; nothing was learned", None),
    "blank lines between rows": Case(GOOD.replace("\n", "\n\n"), "", 40),
    "blank lines before the header": Case("\n\n" + GOOD, "", 40),
    "a header of numbers": Case(lines(), "the first line holds only numbers, so it is not a header; pass", None),
    "no header, as declared": Case(lines(), "target '3' holds numbers", 40, ("--no-header", "-t", "3")),
    "no newline at the end": Case(GOOD.rstrip("\n"), "", 40),
    "duplicate names": Case(GOOD.replace("a,b", "a,a", 1), "data.csv: two columns are called 'a'; rename one of", None),
    "an empty name": Case(GOOD.replace("b", "", 1), "", 40),
    "ten thousand columns": Case(WIDE, "target 'y' holds numbers", 3),
    "a hundred megabytes without a line": Case(long_line(""), "the header of data.csv: longer than 16 MiB", None),
    "a long line in the middle": Case(long_line(GOOD + "1,", "\n" + lines()), "row 41 of data.csv: longer than", None),
    # text
    "latin-1 in a cell": Case(with_column("c", ["f\xfcr", *"x" * 39]).encode("latin-1"),
                              "row 1 of data.csv: byte 0xfc is not UTF-8; such characters are lost (pass --enco", 40),
    "latin-1 in the header": Case(with_column("gr\xfcn", "x" * 40).encode("latin-1"),
                                  "data.csv: its first line is not UTF-8; pass --encoding, latin-1 for instance", None),
    "latin-1, as declared": Case(with_column("gr\xfcn", "\xe4" * 40).encode("latin-1"), "", 40,
                                 ("--encoding", "latin-1")),
    "an unknown encoding": Case(GOOD, "encoding 'klingon' is not known; try utf-8, latin-1 or utf-16", None,
                                     ("--encoding", "klingon")),
    "an encoding of no text": Case(GOOD, "encoding 'hex' is not known", None, ("--encoding", "hex")),
    "the wrong encoding": Case(with_column("c", "\xfc" * 40).encode(), "data.csv: not ascii text", None,
                               ("--encoding", "ascii")),
    "UTF-8 with a mark": Case("\ufeff" + GOOD, "", 40),
    "UTF-16 with a mark": Case(GOOD.encode("utf-16"), "", 40),
    "UTF-32 with a mark": Case(GOOD.encode("utf-32"), "", 40),
    "UTF-16 without a mark": Case(GOOD.encode("utf-16-le"), "if it is UTF-16 text, pass --encoding utf-16-le", None),
    "UTF-16 without a mark, as declared": Case(GOOD.encode("utf-16-be"), "", 40, ("--encoding", "utf-16-be")),
    "UTF-16 cut in a letter": Case(GOOD.encode("utf-16")[:-1], "data.csv: not utf-16 text", None),
    "CRLF": Case(GOOD.replace("\n", "\r\n"), "", 40),
    "CR alone": Case(GOOD.replace("\n", "\r"), r"its lines end in CR alone; convert them: tr '\r' '\n'", None),
    "a CR in a cell": Case(GOOD + "1\r,2,3\n", "", 41),
    "latin-1 in a row too long": Case((GOOD + "\xfc,2,3,4\n").encode("latin-1"), "has 4 fields instead of 3", 40),
    "zero bytes in a cell": Case(with_column("c", ["1\x00", *"2" * 39]), "holds numbers and text", 40),
    "zero bytes in the header": Case("abcdefghi\x00,y\n1,2\n", "data.csv: binary, not text", None),
    "a picture": Case(b"\x89PNG\r\n\x1a\n" + bytes(999), "data.csv: a picture; wanted CSV, TSV, JSON lines,", None),
    "an Excel workbook": Case(b"PK\x03\x04" + bytes(999), "an Excel workbook; unpack it, or save it as CSV", None),
    "a Parquet file called CSV": Case(parquet, "", 40),
    # quotes
    "newlines in quotes": Case(with_column("c", ['"one\ntwo"', *"x" * 39]), "", 40),
    "quotes in quotes": Case(with_column("c", ['"say ""hi"", you"', *"x" * 39]), "", 40),
    "a quote in a field": Case(with_column("c", ['5" pipe', *"x" * 39]), "'5\" pipe' is read as text", 40),
    "a quote that is not closed": Case(with_column("c", ['"open', *"x" * 39]),
                                       "row 1 of data.csv: a quote is opened and not closed; it is ignored", 40),
    "a quote that is not closed in the header": Case('"' + GOOD, "the header of data.csv: a quote is opened and", 40),
    # numbers
    "thousands separators": Case(with_column("c", ['"1,234"', '"12,345,678.9"', *"7" * 38]),
                                 "column 'c': commas are read as thousands separators", 40),
    "decimal commas": Case("a;b;y\n" + lines(sep=";", point=","),
                           "column 'a': commas are read as decimal points", 40),
    "cells that stand for nothing": Case(with_column("c", ["1", "NaN", "", "?", "NULL", "N/A", *"2" * 34]),
                                   "column 'c' has empty cells; they are filled with the running mean", 40),
    "infinite cells": Case(with_column("c", ["1", "inf", "-Infinity", *"2" * 37]), "'c': inf is too large", 40),
    "1e400": Case(with_column("c", ["1", "1e400", *"2" * 38]), "column 'c': inf is too large", 40),
    "1e200": Case(with_column("c", ["1", "1e200", *"2" * 38]), "column 'c': 1e+200 is too large", 40),
    "hexadecimal numbers": Case(with_column("c", ["0x1F"] * 40), "'0x1F' is read as text, not as a number", 40),
    "percent signs": Case(with_column("c", ["12%"] * 40), "'12%' is read as text, not as a number", 40),
    "booleans": Case(with_column("c", ["true", "False"] * 20), "", 40),
    "a column that turns into text": Case(with_column("c", [*"1" * 20, *"x" * 20]),
                                           "column 'c' holds numbers and text such as 'x'; each text", 40),
    "a column without a cell": Case(with_column("c", [""] * 40), "", 40),
    "a column that never changes": Case(with_column("c", "5" * 40), "", 40),
    "no end of categories": Case(with_column("c", [f"id-{k}" for k in [*range(39), 0]]),
                                 "column 'c' has more than 32 categories; statistics of its targets describe each", 40),
    # dates
    "dates in another format": Case(with_column("c", ["31/12/2024"] * 40), "tells how dates are written)", 40),
    "dates in another format, as declared": Case(with_column("c", ["31/12/2024"] * 40), "", 40,
                                                 ("--date-format", "%d/%m/%Y")),
    "the wrong date format": Case(with_column("c", ["2024.12.31"] * 40), "it is not a date like '%d/%m/%Y'", 40,
                                  ("--date-format", "%d/%m/%Y")),
    "a date format that is none": Case(with_column("c", ["31/12/2024"] * 40), "it is not a date like '%q'", 40,
                                       ("--date-format", "%q")),
    "dates in two formats": Case(with_column("c", ["2024-12-31", "31/12/2024"] * 20),
                                 "column 'c' holds timestamps and text such as '31/12/2024'", 40),
    "time zones": Case(with_column("c", ["2024-12-31T10:00:00+02:00", "2024-12-31T08:00:00Z"] * 20), "", 40),
    # the target
    "no such target": Case(GOOD, "data.csv: there is no column 'z' (--target); the columns are 'a', 'b', 'y'", None,
                           ("-t", "z")),
    "nothing but the target": Case("y\n1\n2\n", "there is no column to learn 'y' from; give at least one more", None),
    "some targets empty": Case(target(["", "1", "2.5", "NA"] * 10), "target 'y' holds numbers: regression", 20),
    "all targets empty": Case(target([""] * 9), "there is no target yet: regression is assumed", 0),
    "a target that is no number": Case(target([*"1234", "soon", *"678"]), "'soon' is not a number; such", 7),
    "far too many labels": Case(target([f"id{k}" for k in range(200)]), "more than 100 labels, such as 'id0'", None),
    "a number that is no number": Case(target([*"1234", "soon", *"678"]), "target 'y': 'soon' is not a number; such",
                                       7, ("--task", "regression")),
    "a target that is too large": Case(target([*"1234", "1e300", *"678"]), "1e+300 is too large; such rows are", 7),
    "a target with thousands separators": Case(target(["7", '"1,234"', '"12,345.5"'] * 5),
                                               "target 'y': commas are read as thousands separators", 15),
    "a target with decimal commas": Case("a;y\n" + "3;1,5\n4;-0,25\n" * 9, "commas are read as decimal points", 18),
    "a label seen once": Case(target(["no"] * 20 + ["yes"] + ["no"] * 19), "'y' holds labels such as 'no'", 40),
    "only one label": Case(target(["no"] * 40), "target 'y' holds labels such as 'no': classification", 40),
    # delimiters and formats
    "semicolons": Case("a;b;y\n" + lines(sep=";"), "fields are separated by ';'", 40),
    "tabs": Case("a\tb\ty\n" + lines(sep="\t"), r"fields are separated by '\t'", 40),
    "pipes": Case("a|b|y\n" + lines(sep="|"), "fields are separated by '|'", 40),
    "colons, as declared": Case("a:b:y\n" + lines(sep=":"), "", 40, ("--delimiter", ":")),
    "a tab as it is typed": Case("a\tb\ty\n" + lines(sep="\t"), "", 40, ("--delimiter", r"\t")),
    "the wrong delimiter": Case(GOOD, "no column 'y' (--target); the columns are 'a,b,y'", None, ("--delimiter", ";")),
    "a delimiter that is none": Case(GOOD, "--delimiter must be one ASCII character other than a quote, got '::'", None,
                                     ("--delimiter", "::")),
    "a quote as delimiter": Case(GOOD, "--delimiter must be one ASCII character other than a quote", None,
                                 ("--delimiter", '"')),
    "a format that is none": Case(GOOD, "--format must be one of csv, tsv, jsonl, parquet, arrow, got 'xml'", None,
                                  ("--format", "xml")),
    "CSV called JSON lines": Case(GOOD, "no row can be used; nothing was learned", None, ("--format", "jsonl")),
    "JSON lines called CSV": Case(JSON, "there is no column 'y' (--target)", None, ("--format", "csv")),
    "CSV called Parquet": Case(GOOD, "data.csv: damaged or cut off (Parquet magic bytes not found", None,
                               ("--format", "parquet")),
    "CSV called Arrow": Case(GOOD, "data.csv: damaged or cut off", None, ("--format", "arrow")),
    "CSV in a file called Parquet": Case(GOOD, "data.parquet: not parquet, its first bytes are b'a,b,y", None,
                                         name="data.parquet"),
    # JSON lines
    "a JSON array": Case('[\n {"a": 1, "y": 2}\n]', "one JSON array; wanted JSON lines, one object per line", None,
                         name="data.json"),
    "a JSON array on one line": Case('[{"a": 1, "y": 2}]', "one JSON array; wanted JSON lines", None, name="data.txt"),
    "a JSON object over many lines": Case('{\n "a": 1,\n "y": 2\n}\n', "no row can be used", None, name="data.json"),
    "a broken JSON line": Case(JSON + '{"a": 1, "y"\n' + JSON, "row 41 of data.jsonl is not a JSON object (", 80,
                               name="data.jsonl"),
    "a JSON line cut off at the end": Case(JSON + '{"a": 1, "y": 2', "row 41 of data.jsonl is not a JSON object", 40,
                                           name="data.jsonl"),
    "JSON lines that are no objects": Case('null\n[1]\n"x"\n' + JSON, "(wanted {...}, got NoneType); such rows", 40,
                                           (), "data.jsonl"),
    "two JSON objects on a line": Case(JSON + '{"a": 1, "y": 2}{"a": 1, "y": 2}\n', "row 41 of data.jsonl is not", 40,
                                       name="data.jsonl"),
    "JSON lists and objects": Case(JSON.replace("}", ', "l": [1, 2], "o": {"p": 1}}'),
                                   "column 'l' holds list<item: int64>, which is ignored; flatten it first", 40,
                                   name="data.jsonl"),
    "JSON of many types": Case(JSON + '{"a": "x", "b": true, "y": 1.5}\n{"a": [1], "b": null, "y": "2"}\n',
                               "column 'a' holds numbers and text such as 'x'", 42, name="data.jsonl"),
    "deep JSON": Case(JSON + DEEP, "row 41 of data.jsonl is not a JSON object", 40, name="data.jsonl"),
    "latin-1 in JSON": Case(JSON.encode() + b'{"a": "\xfc", "y": 1}\n', "row 41 of data.jsonl is not a JSON object", 40,
                            name="data.jsonl"),
    "half a letter in JSON": Case(JSON + r'{"a": "\ud800", "y": 1}' + "\n", "holds numbers and text", 41,
                                  name="data.jsonl"),
    "JSON that lacks the target here and there": Case('{"a": 3}\n' * 5 + JSON, "", 40, name="data.jsonl"),
    "JSON without the target": Case(JSON, "there is no column 'z' (--target); the columns are 'a', 'b', 'y'", None,
                                    ("-t", "z"), "d.jsonl"),
    "JSON dates as labels": Case("".join(f'{{"a": {k}, "y": "2024-05-0{k % 3 + 1}"}}\n' for k in range(9)),
                                 "holds labels such as '2024-05-01': classification", 9, name="data.jsonl"),
    # files
    "a folder": Case(lambda path: path.mkdir(), "data.csv: a folder; name the files in it", None),
    "no file": Case(lambda path: None, "data.csv: No such file or directory", None),
    "no second file": Case(GOOD, "b.csv: No such file or directory", None, ("b.csv",)),
    "gzip cut off": Case(GZIP[:-20], "the gzip data is damaged or cut off (", None, name="data.csv.gz"),
    "gzip damaged": Case(GZIP[:40] + b"\xff" * 9 + GZIP[49:],
                         "the gzip data is damaged or cut off (", None, name="data.csv.gz"),
    "gzip of nothing": Case(compressed("gzip", b""), "data.csv.gz: empty", None, name="data.csv.gz"),
    "gzip in parts": Case(GZIP + compressed("gzip", lines().encode()), "", 80, name="data.csv.gz"),
    "zstd cut off": Case(ZSTD[:-20], "the zstd data is damaged or cut off (", None, name="data.csv.zst"),
    "zstd in parts": Case(ZSTD + compressed("zstd", lines().encode()), "", 80, name="data.csv.zst"),
    "bz2": Case(compressed("bz2", GOOD.encode()), "", 40, name="data.csv.bz2"),
    "compressed twice": Case(compressed("gzip", ZSTD), "compressed twice; unpack it once", None),
    "a compressed Parquet file": Case(compressed("gzip", b"PAR1" + bytes(99)), "parquet inside another compress", None),
    "Parquet cut off": Case(damaged(parquet, 0.9, keep=False), "data.parquet: damaged or cut off (Parquet magic", None,
                            name="data.parquet"),
    "Parquet damaged in its footer": Case(damaged(parquet, 0.8), "data.parquet: damaged or cut off (", None,
                                          name="data.parquet"),
    "Arrow cut off": Case(damaged(arrow, 0.7, keep=False), "data.arrow: damaged or cut off (", None, (), "data.arrow"),
    "Arrow damaged in its footer": Case(damaged(arrow, 0.95), "data.arrow: damaged or cut off (", None,
                                        name="data.arrow"),
    "an Arrow stream cut off": Case(damaged(lambda path: arrow(path, stream=True), 0.7, keep=False),
                                    "data.arrow: damaged or cut off (", None, name="data.arrow"),
    "an output that is the data": Case(GOOD, "--model m.omkl: the same file as the data", None, (), "m.omkl"),
    # many files
    "columns in another order": Case(GOOD, "", 80, ("b.csv",), others={
        "b.csv": "y,b,a\n" + "".join(",".join(row.split(",")[::-1]) + "\n" for row in lines().splitlines())}),
    "columns more": Case(GOOD, "column 'c' is new; it is learned from here on", 80, ("b.csv",),
                         others={"b.csv": with_column("c", "7" * 40)}),
    "columns fewer": Case(GOOD, "column 'b' is absent; its values are treated as missing", 44, ("b.csv",),
                          others={"b.csv": target("1234")}),
    "files of many formats": Case(GOOD, "", 160, ("b.jsonl", "c.parquet", "d.arrow"),
                                  others={"b.jsonl": JSON, "c.parquet": parquet, "d.arrow": arrow}),
    "an empty file among others": Case(GOOD, "b.csv: empty; skipped", 80, ("b.csv", "c.csv"),
                                       others={"b.csv": "", "c.csv": GOOD}),
    "only a header among others": Case(GOOD, "", 80, ("b.csv", "c.csv"), others={"b.csv": "a,b,y\n", "c.csv": GOOD}),
    "only empty files": Case("", "nothing was learned", None, ("b.csv",), others={"b.csv": ""}),
    "standard input twice": Case(GOOD, "standard input (-) is named twice, and can be read once", None, ("-", "-")),
}  # fmt: skip


def build(path: Path, content: Content) -> None:
    if callable(content):
        content(path)
    else:
        path.write_bytes(content.encode() if isinstance(content, str) else content)


def learned(model: str) -> int:
    """The rows that a model has learned; it must be whole."""
    found = persist.read(model)
    assert np.isfinite(found.weights()).all()
    return int(found.learned)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_every_input_ends_with_a_plain_message_and_the_good_rows_learned(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    for name, content in {case.name: case.content, **(case.others or {})}.items():
        build(tmp_path / name, content)
    before = sorted(path.name for path in tmp_path.iterdir())
    target = [] if "-t" in case.arguments else ["-t", "y"]
    result = invoke("run", case.name, *target, "--learner", "sfg-mkl", "--model", "m.omkl", *case.arguments)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert case.message in " ".join(result.stderr.split())
    assert "Traceback" not in result.stderr
    if case.learned is None:
        assert result.exit_code == 2
        assert result.stderr.splitlines()[-1].startswith("omkl: ")
        assert sorted(path.name for path in tmp_path.iterdir()) == before
        return
    assert result.exit_code == 0
    assert learned("m.omkl") == case.learned
    notes = [line for line in result.stderr.splitlines() if not PROGRESS.match(line)]
    assert all(line.startswith("note: ") for line in notes)
    assert len(set(notes)) == len(notes)
    if not case.message:
        assert all("target" in line for line in notes)  # there is nothing else to say


@pytest.mark.parametrize(
    ("data", "arguments", "message", "rows"),
    [
        (b"", ("-",), "standard input: empty; wanted a header line and rows", None),
        (
            b"PAR1" + bytes(99),
            ("-",),
            "standard input: Parquet cannot be read from a pipe; give the file, or pipe",
            None,
        ),
        (long_line, ("-",), "the header of standard input: longer than 16 MiB", None),
        (GOOD.encode(), ("-", "data.csv"), "target 'y' holds numbers", 80),
        (compressed("zstd", JSON.encode()), ("-",), "target 'y' holds numbers", 40),
    ],
    ids=["nothing", "Parquet", "a long line", "and a file", "compressed JSON"],
)
def test_standard_input_is_read_as_files_are(
    data: Any, arguments: tuple[str, ...], message: str, rows: int | None, tmp_path: Path
):
    (tmp_path / "data.csv").write_text(GOOD)
    data = b"1" * (100 << 20) if data is long_line else data
    command = [*OMKL, "run", *arguments, "-t", "y", "--learner", "sfg-mkl", "--model", "m.omkl"]
    result = subprocess.run(command, input=data, capture_output=True, cwd=tmp_path, timeout=300)
    assert message in result.stderr.decode()
    assert b"Traceback" not in result.stderr
    assert result.returncode == (2 if rows is None else 0)
    assert rows is None or learned(str(tmp_path / "m.omkl")) == rows


def test_a_duplicate_among_many_columns_is_found_at_once():
    names = [f"c{k}" for k in range(60_000)]
    began = time.process_time()
    with pytest.raises(DataError, match="two columns are called 'c59999'; rename one of them"):
        check_unique("data.csv", [*names, "c59999"])
    assert time.process_time() - began < 2


def test_a_closed_standard_input_is_named(tmp_path: Path):
    command = " ".join(f"'{word}'" for word in [*OMKL, "run", "-", "-t", "y"])
    result = subprocess.run(f"{command} <&-", shell=True, capture_output=True, text=True, timeout=300)
    assert (result.returncode, result.stderr) == (
        2, "omkl: standard input is closed; pipe data into it, or name a file\n")  # fmt: skip


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_named(tmp_path: Path):
    (tmp_path / "data.csv").write_text(GOOD)
    (tmp_path / "data.csv").chmod(0)
    result = invoke("run", str(tmp_path / "data.csv"), "-t", "y")
    assert (result.exit_code, result.stderr) == (2, f"omkl: {tmp_path / 'data.csv'}: Permission denied\n")


def test_a_line_of_a_hundred_megabytes_takes_no_such_memory(tmp_path: Path):
    script = (
        "import resource, sys; from omkl.cli import main\n"
        "try: main()\n"
        "except SystemExit: print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10)"
    )

    def megabytes(path: Path) -> int:
        command = [sys.executable, "-c", script, "run", str(path), "-t", "y", "--learner", "sfg-mkl", "-q"]
        return int(subprocess.run(command, capture_output=True, text=True, timeout=300).stdout)

    (tmp_path / "good.csv").write_text(GOOD)
    long_line(GOOD)(tmp_path / "long.csv")
    assert megabytes(tmp_path / "long.csv") - megabytes(tmp_path / "good.csv") < 100


@pytest.mark.parametrize("make", [parquet, arrow], ids=["Parquet", "Arrow"])
def test_no_thread_of_pyarrow_calls_python(make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Such a thread aborts the process if Python ends meanwhile."""
    threads: set[int] = set()
    for method in ("read", "seek", "tell", "close"):
        original = getattr(Raw, method)

        def recorded(self: Raw, *arguments: int, original: Any = original) -> Any:
            threads.add(threading.get_ident())
            return original(self, *arguments)

        monkeypatch.setattr(Raw, method, recorded)
    make(tmp_path / "data")
    source = Source([str(tmp_path / "data")], Reading(), 10)
    assert sum(len(batch.rows) for batch in source) == ROWS
    assert threads == {threading.get_ident()}
    assert source.at == source.size


@pytest.mark.parametrize("ending", ["arrow", "feather"])
def test_an_arrow_file_cut_anywhere_is_an_error_message(ending: str, tmp_path: Path):
    path = tmp_path / f"data.{ending}"
    arrow(path)
    whole = path.read_bytes()
    for k in range(8):
        path.write_bytes(whole[: len(whole) * k // 8])
        result = omkl("run", path, "-t", "y", "--learner", "sfg-mkl", "-q")
        assert result.returncode == 2
        assert result.stderr.startswith(f"omkl: {path}: ")
        assert result.stderr.count("\n") == 1


@given(st.data())
@settings(max_examples=60)
def test_damaged_files_are_refused_or_read_but_never_crash(tmp_path_factory: pytest.TempPathFactory, data: Any):
    make = data.draw(st.sampled_from([parquet, arrow, lambda path: arrow(path, stream=True)]))
    path = tmp_path_factory.mktemp("damaged") / "data"
    make(path)
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content[: data.draw(st.integers(len(content) // 2, len(content)))])
    encoder = Encoder(lambda about, text: None)
    with contextlib.suppress(DataError):  # anything else is a fault
        for batch in Source([str(path)], Reading(), 100):
            encoder.encode(batch)
