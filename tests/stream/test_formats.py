"""One table in every format, through every pipe, in pieces of every size: the same predictions, the same model."""

import itertools
import json
import os
import sys
import threading
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from command import invoke
from hypothesis import given, settings
from hypothesis import strategies as st
from tables import compressed

from omkl.stream.names import NamedColumns
from omkl.stream.options import Options
from omkl.stream.parsers import Reading
from omkl.stream.raw import Stop
from omkl.stream.run import Run
from omkl.stream.source import Source


def measured(rows: int = 300) -> pa.Table:
    """Numbers, integers, booleans, text, timestamps, gaps, quoted text and a target that is missing at times."""
    rng = np.random.default_rng(7)
    a = rng.normal(size=rows)
    moments = np.datetime64("2024-03-01T06:30:00") + 3_600 * np.arange(rows)
    return pa.table({
        "a": a, "whole": rng.integers(-5, 5, rows), "truth": a > 0, "when": moments.astype("datetime64[us]"),
        "word": rng.choice(["red", "green, blue", 'say "hi"', "two\nlines"], rows),
        "gap": pa.array(rng.normal(size=rows), mask=rng.random(rows) < 0.2),
        "y": pa.array(np.sin(2 * a) + 0.1 * rng.normal(size=rows), mask=rng.random(rows) < 0.1),
    })  # fmt: skip


def as_csv(table: pa.Table, mark: str = ",", header: bool = True) -> bytes:
    sink = pa.BufferOutputStream()
    pa.csv.write_csv(table, sink, pa.csv.WriteOptions(delimiter=mark, include_header=header))
    return sink.getvalue().to_pybytes()


def as_json(table: pa.Table) -> bytes:
    return "".join(json.dumps(row, default=str) + "\n" for row in table.to_pylist()).encode()


def as_arrow(table: pa.Table, make: Any = pa.ipc.new_file) -> bytes:
    sink = pa.BufferOutputStream()
    with make(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=70)
    return sink.getvalue().to_pybytes()


def as_parquet(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pa.parquet.write_table(table, sink, row_group_size=110)
    return sink.getvalue().to_pybytes()


FORMATS: dict[str, Callable[[pa.Table], bytes]] = {
    "t.csv": as_csv,
    "t.tsv": lambda table: as_csv(table, "\t"),
    "semicolons.csv": lambda table: as_csv(table, ";"),
    "crlf.csv": lambda table: as_csv(table).replace(b"\n", b"\r\n").replace(b"two\r\n", b"two\n"),
    "utf16.csv": lambda table: as_csv(table).decode().encode("utf-16"),
    "t.jsonl": as_json,
    "t.parquet": as_parquet,
    "t.arrow": as_arrow,
    "stream.arrow": lambda table: as_arrow(table, pa.ipc.new_stream),
    "t.csv.gz": lambda table: compressed("gzip", as_csv(table)),
    "t.csv.zst": lambda table: compressed("zstd", as_csv(table)),
    "t.jsonl.zst": lambda table: compressed("zstd", as_json(table)),
}


def predictions(
    folder: Path, *data: str, learner: str = "sfg-mkl", every: int = 10_000, task: str = "auto", target: str = "y"
) -> tuple[bytes, bytes]:
    """What a run over these files leaves: predictions and model."""
    names = (str(folder / "out.csv"), str(folder / "out.omkl"))
    result = invoke("run", *data, "-t", target, "--learner", learner, "--predictions", names[0], "--model", names[1],
                    "--every", str(every), "--task", task, "-q")  # fmt: skip
    assert result.exit_code == 0, result.output
    return Path(names[0]).read_bytes(), Path(names[1]).read_bytes()


@pytest.fixture(scope="module")
def from_csv(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, bytes]:
    folder = tmp_path_factory.mktemp("csv")
    (folder / "t.csv").write_bytes(as_csv(measured()))
    return predictions(folder, str(folder / "t.csv"))


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_gives_the_same_predictions_and_the_same_model(
    name: str, tmp_path: Path, from_csv: tuple[bytes, bytes]
):
    (tmp_path / name).write_bytes(FORMATS[name](measured()))
    assert predictions(tmp_path, str(tmp_path / name)) == from_csv


def test_many_files_are_one_table(tmp_path: Path, from_csv: tuple[bytes, bytes]):
    names = list(FORMATS)
    edges = [0, 1, 20, 21, 90, 150, 151, 152, 200, 222, 280, 290, 300]
    for name, (start, stop) in zip(names, itertools.pairwise(edges), strict=True):
        (tmp_path / name).write_bytes(FORMATS[name](measured().slice(start, stop - start)))
    assert predictions(tmp_path, *(str(tmp_path / name) for name in names)) == from_csv


@pytest.mark.parametrize("name", ["t.csv", "t.jsonl", "stream.arrow", "t.arrow", "t.csv.gz"])
def test_a_pipe_is_a_file(name: str, tmp_path: Path, from_csv: tuple[bytes, bytes]):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    data = FORMATS[name](measured())
    writer = threading.Thread(target=path.write_bytes, args=(data,))
    writer.start()
    assert predictions(tmp_path, str(path)) == from_csv
    writer.join()


class Delivery(Stop):
    """Standard input that comes in given portions."""

    def __init__(self, portions: list[bytes]) -> None:
        super().__init__()
        self.portions = portions

    def read(self, descriptor: int, n: int) -> bytes:
        if not self.portions:
            return b""
        out, rest = self.portions[0][:n], self.portions[0][n:]
        self.portions = [rest, *self.portions[1:]] if rest else self.portions[1:]
        return out


ODD = (  # what makes it hard to see where a row ends
    b'a,b,y\r\n1,"x\r\n,\n",2\n\n\n2,"say ""\n""",3\r\n3,5" pipe,4\n"4",\xc3\xbc,5\n5,"",6\n6,""",",7\n'
    b'7\r,"a"b,8\n8,9\n,,\n9,"open,10\n10,x,11'
)


@pytest.fixture(scope="module")
def standard_input() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", types.SimpleNamespace(buffer=types.SimpleNamespace(fileno=lambda: 0)))
        yield


SHORT = measured(25)


@pytest.mark.usefixtures("standard_input")
@given(
    st.sampled_from([ODD, as_csv(SHORT), as_json(SHORT) + b"\n{}\n\n", FORMATS["stream.arrow"](SHORT),
                     FORMATS["t.csv.gz"](SHORT), FORMATS["t.csv.zst"](SHORT), FORMATS["utf16.csv"](SHORT)]),
    st.sampled_from([1, 3, 10, 10_000]), st.lists(st.integers(0, 2000), max_size=12), st.booleans(),
)  # fmt: skip
def test_pieces_do_not_depend_on_how_a_pipe_delivers_them(data: bytes, rows: int, cuts: list[int], drops: bool):
    def read(portions: list[bytes]) -> list[Any]:
        stop = Delivery([portion for portion in portions if portion])
        reading = Reading(stop=stop, columns=NamedColumns({"--target": "y"}))
        stdin = Source(["-"], reading, rows)
        batches = [[batch.rows.tolist(), *(array.to_pylist() for array in batch.columns.values())] for batch in stdin]
        return [batches, stdin.records, stdin.digest.hexdigest(), reading.skipped]

    edges = range(len(data) + 1) if drops else sorted({0, len(data), *(cut % len(data) for cut in cuts)})
    assert read([data[start:stop] for start, stop in itertools.pairwise(edges)]) == read([data])


@pytest.mark.usefixtures("standard_input")
@given(st.lists(st.integers(0, 2000), max_size=12))
@settings(max_examples=20)
def test_predictions_do_not_depend_on_how_a_pipe_delivers_rows(
    tmp_path_factory: pytest.TempPathFactory, cuts: list[int]
):
    data, folder = as_csv(SHORT), tmp_path_factory.mktemp("pipe")

    def run(name: str, edges: list[int]) -> bytes:
        options = Options(target="y", learner="sfg-mkl", data=("-",), predictions=str(folder / name), every=7)
        run = Run(options, lambda text: None)
        run.stop = run.reading.stop = Delivery([data[start:stop] for start, stop in itertools.pairwise(edges)])
        run.run()
        return (folder / name).read_bytes()

    assert run("a.csv", sorted({0, len(data), *(cut % len(data) for cut in cuts)})) == run("b.csv", [0, len(data)])


@pytest.mark.parametrize("task", ["regression", "classification"])
@pytest.mark.parametrize("learner", ["sfg-mkl", "graph-mkl"])
def test_predictions_do_not_depend_on_how_often_they_are_written(learner: str, task: str, tmp_path: Path):
    (tmp_path / "t.csv").write_bytes(as_csv(measured()))
    target = "y" if task == "regression" else "word"
    predicted = {
        every: predictions(tmp_path, str(tmp_path / "t.csv"), learner=learner, every=every, task=task, target=target)[0]
        for every in (1, 7, 1000, 10_000)
    }
    assert len(set(predicted.values())) == 1
