"""A model for every key on Spark: time and bytes of a stream on this machine, in one process and on a cluster of two.

`python -m omkl_lab.fleets spark` runs it, see there. Processor time is that of all processes of Spark; what the machine
did beside is measured too.
"""

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from omkl import persist
from omkl.arrays import Index, Matrix, Vector
from omkl.estimators.sklearn import SFGMKLRegressor
from omkl.estimators.sklearn.base import Estimator
from omkl.fleet import Fleet
from omkl.fleet.buckets import Bucket, BucketFiles, Rows, empty_like
from omkl.fleet.state_folder import States
from omkl_lab import markdown
from omkl_lab.machine import processor_seconds

EACH, d = 10, 8  # EACH: rows of a key in a micro-batch
BUCKETS = 4
VISITS = 24  # micro-batches without Spark: the states of a bucket are copied twice
FIRST = 2  # micro-batches that start the workers and make the models, and are not counted
COMPARED_KEYS = 20  # with a fleet
MASTERS = {"local": "`local[2]`", "cluster": "cluster of two workers"}
NAMES = [f"x{k}" for k in range(d)]
PATIENCE = 120  # seconds, for a cluster to start


class Case(NamedTuple):
    """A learner, and its stream."""

    name: str
    learner: Estimator
    keys: int
    batches: int  # SFG-MKL's states are copied twice in these


CASES = {
    "sfg-mkl": Case("SFG-MKL with the paper's 41 kernels", SFGMKLRegressor(kernels="paper", out_degree=5), 20_000, 22),
    "graph-mkl": Case("GraphMKL with its settings for keys", Fleet("graph-mkl").learner, 10_000, 12),
}
STEPS = CASES["sfg-mkl"]  # of which the steps are measured one by one


def rows_of(batch: int, keys: int) -> tuple[Index, Index, Matrix, Vector]:
    """Key, order, features and target of a micro-batch: EACH rows of every key, shuffled."""
    rng = np.random.default_rng(batch)
    key = rng.permutation(np.repeat(np.arange(keys), EACH))
    X = rng.normal(size=(len(key), d))
    y = np.sin(X[:, 0] + key % 7) + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(len(key))
    return key, np.arange(batch * len(key), (batch + 1) * len(key)), X, y


def busy() -> dict[str, float]:
    """Processor seconds so far of the processes of Spark that this one started, by what they are."""
    parents: dict[int, int] = {}
    spent: dict[int, float] = {}
    names: dict[int, str] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = path.read_text().rpartition(")")
        except OSError:  # the process has ended
            continue
        pid, fields = int(path.parent.name), rest.split()
        parents[pid], names[pid] = int(fields[1]), name.partition("(")[2]
        spent[pid] = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")  # own, and of ended children
    mine = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in mine} - mine:
        mine |= more
    java = sum(spent[pid] for pid in mine if names[pid].startswith("java"))
    return {"all": sum(spent[pid] for pid in mine), "java": java}


def bytes_written(folder: Path) -> dict[str, int]:
    """Bytes of the files of the states that are there now, by kind."""
    sizes = {"rows": 0, "states": 0}
    for path in folder.glob("fleet/generation-*/*/*.omkl"):
        sizes[path.name.partition("-")[0]] += path.stat().st_size
    return sizes


def measure(case: Case, master: str) -> dict[str, Any]:
    """A stream of files through Spark: seconds and processor seconds of each micro-batch."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyspark.sql import SparkSession

    from omkl.fleet.spark import Sink, learn_stream

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "in").mkdir()
        for part in range(case.batches):
            key, order, X, y = rows_of(part, case.keys)
            table = pa.table({"key": key, "order": order, "y": y} | dict(zip(NAMES, X.T, strict=True)))
            pq.write_table(table, folder / "in" / f"{part}.parquet")
            os.utime(folder / "in" / f"{part}.parquet", (part, part))
        spark = (
            SparkSession.builder.master(master)
            .config("spark.ui.enabled", "false")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.executor.memory", "1g")
            .getOrCreate()
        )
        spark.sparkContext.setLogLevel("ERROR")
        schema = ", ".join(["key BIGINT", "order BIGINT", "y DOUBLE", *(f"{name} DOUBLE" for name in NAMES)])
        source = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
        out = learn_stream(source, case.learner, key="key", order="order", target="y", features=NAMES, seed=0,
                           checkpoint=folder / "checkpoint", buckets=BUCKETS)  # fmt: skip
        sink, marks, sizes = Sink(folder / "out"), [], []

        def mark(batch: Any, number: int) -> None:
            sink(batch, number)
            marks.append({"wall": time.perf_counter(), "machine": processor_seconds(), **busy()})
            print(f"batch {number}: {marks[-1]['wall'] - marks[max(len(marks) - 2, 0)]['wall']:.1f} s", file=sys.stderr)
            sizes.append(bytes_written(folder / "checkpoint"))

        query = out.writeStream.foreachBatch(mark).trigger(availableNow=True)
        query.option("checkpointLocation", str(folder / "checkpoint")).start().awaitTermination()
        took = [{name: b[name] - a[name] for name in a} for a, b in pairwise(marks)][FIRST - 1 :]
        states = States.open(folder / "checkpoint")
        assert states is not None
        bucket = states.bucket(0).before(states.next_batch())
        same = is_that_of_a_fleet(bucket.fleet, case)
        spark.stop()
    return {
        "keys": case.keys, "rows_per_key": EACH, "batches": took, "sizes": sizes[FIRST - 1 :],
        "identical_to_a_fleet": same,
    }  # fmt: skip


def is_that_of_a_fleet(fleet: Fleet, case: Case) -> bool:
    """The states of the first keys are those that a Fleet learns."""
    keys = list(fleet)[:COMPARED_KEYS]
    other = Fleet(case.learner, seed=0)
    other.restore([], NAMES)
    for part in range(case.batches):
        key, _, X, y = rows_of(part, case.keys)
        some = np.isin(key, keys)
        other.learn_rows(key[some], X[some], y[some])
    return all(fleet.pack(key) == other.pack(key) for key in keys)


@contextmanager
def cluster(workers: int = 2) -> Iterator[str]:
    """A standalone master and workers of one core each, as processes on this machine."""
    import pyspark

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    home = Path(pyspark.__file__).parent
    environment = os.environ | {
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_HOME": str(home),
        "PYSPARK_PYTHON": sys.executable,
    }
    started: list[subprocess.Popen[bytes]] = []

    def start(kind: str, *options: str) -> None:
        command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{kind.lower()}.{kind}"]
        started.append(subprocess.Popen([*command, "--webui-port", "0", *options], env=environment,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))  # fmt: skip

    with tempfile.TemporaryDirectory() as folder:
        try:
            start("Master", "--host", "127.0.0.1", "--port", str(port))
            end = time.monotonic() + PATIENCE
            while socket.socket().connect_ex(("127.0.0.1", port)):
                if time.monotonic() > end:
                    raise TimeoutError(f"no master of Spark after {PATIENCE} s")
                time.sleep(0.1)
            for k in range(workers):
                start("Worker", "--cores", "1", "--memory", "1g", "--work-dir", f"{folder}/{k}",
                      f"spark://127.0.0.1:{port}")  # fmt: skip
            yield f"spark://127.0.0.1:{port}"
        finally:
            for process in reversed(started):
                process.terminate()
                process.wait()


def steps() -> dict[str, float]:
    """Processor milliseconds per key and micro-batch of what a worker does, in this process.

    Two buckets take turns to be the one that is held, as where two workers share the buckets at random.
    """
    spent = dict.fromkeys(("catching up", "copies of the states", "learning", "files of rows"), 0.0)
    keys = STEPS.keys // BUCKETS
    first = Fleet(STEPS.learner, seed=0)
    first.restore([], NAMES)
    with tempfile.TemporaryDirectory() as folder:
        files = BucketFiles(Path(folder), lambda: empty_like(first))
        held: list[Bucket | None] = [None, None]
        for batch in range(VISITS):
            key, order, X, y = rows_of(batch, STEPS.keys)
            by = np.lexsort((order, key))[: keys * EACH]
            rows = Rows(batch, 0, [], list(range(keys)), key[by], X[by], y[by])
            marks = [time.process_time()]
            bucket = files.before(batch, held[batch // 2 % 2])  # half of the time it was held by the other
            marks.append(time.process_time())
            files.tidy(bucket)
            marks.append(time.process_time())
            bucket.learn(rows)
            marks.append(time.process_time())
            files.write(rows)
            marks.append(time.process_time())
            held[batch // 2 % 2] = bucket
            if batch >= FIRST:
                for name, (a, b) in zip(spent, pairwise(marks), strict=True):
                    spent[name] += 1000 * (b - a) / keys / (VISITS - FIRST)
    return spent


def whole_states() -> dict[str, float]:
    """What the alternative takes: all states written and flushed to the disk in every micro-batch."""
    fleet = Fleet(STEPS.learner, seed=0)
    key, _, X, y = rows_of(0, STEPS.keys)
    fleet.learn_rows(key, X, y)
    assert fleet._models is not None
    _, records = fleet._models.records()
    assert records is not None
    with tempfile.TemporaryDirectory() as folder:
        wall, cores = time.perf_counter(), time.process_time()
        persist.write_atomically(Path(folder) / "states", records.data.cast("B"))
        return {
            "bytes_per_key": records.nbytes / STEPS.keys,
            "wall": time.perf_counter() - wall,
            "core_milliseconds_per_key": 1000 * (time.process_time() - cores) / STEPS.keys,
        }


def on_a_cluster(case: Case) -> dict[str, Any]:
    with cluster() as url:
        return measure(case, url)


def parts() -> dict[str, Callable[[], Any]]:
    """What can be measured one by one, by the name that it has in the results."""
    out: dict[str, Callable[[], Any]] = {"steps": steps, "whole-states": whole_states}
    for name, case in CASES.items():
        out[f"{name}-local"] = partial(measure, case, "local[2]")
        out[f"{name}-cluster"] = partial(on_a_cluster, case)
    return out


def per_key(run: dict[str, Any], what: str = "all") -> float:
    """Processor milliseconds per key and micro-batch, the mean over the micro-batches."""
    total = sum(one[what] for one in run["batches"])
    return float(1000 * total / len(run["batches"]) / run["keys"])


def column(run: dict[str, Any]) -> list[str]:
    """What is said of a run."""
    batches, rows, sizes = run["batches"], run["keys"] * run["rows_per_key"], run["sizes"]
    best, wall = min(one["all"] for one in batches), sum(one["wall"] for one in batches)
    others = sum(one.get("machine", np.nan) - one["all"] for one in batches) / wall
    return [
        f"{rows / min(one['wall'] for one in batches):,.0f}",
        f"{rows * len(batches) / wall:,.0f}",
        "not measured" if np.isnan(others) else f"{others:.1f}",
        f"{2 * rows / best:,.0f}",
        f"{2 * run['rows_per_key'] / per_key(run) * 1000:,.0f}",
        f"{1000 * best / run['keys']:.2f}",
        f"{per_key(run):.2f}",
        f"{per_key(run, 'java'):.2f}",
        f"{(sizes[1]['rows'] - sizes[0]['rows']) / run['keys']:,.0f}",
        "yes" if run["identical_to_a_fleet"] else "NO",
    ]


def tables(results: dict[str, Any]) -> list[str]:
    """The part of docs/scaling.md about Spark."""
    names = [
        "rows per second by the clock, best micro-batch",
        "rows per second by the clock, mean",
        "cores busy with other work of this machine meanwhile",
        "rows per second of two cores, from the processor time of the best micro-batch",
        "the same from the mean of all micro-batches, copies of the states included",
        "processor milliseconds per key, best micro-batch",
        "processor milliseconds per key, mean",
        "of which in Java",
        "bytes of rows written per key",
        f"identical to a `Fleet`, {COMPARED_KEYS} keys compared",
    ]
    out = []
    for name, case in CASES.items():
        runs = {title: results[f"{name}-{kind}"] for kind, title in MASTERS.items() if f"{name}-{kind}" in results}
        if runs:
            first = next(iter(runs.values()))
            out += [
                f"Spark on two cores of this machine, {case.name}, {first['keys']:,} keys with "
                f"{first['rows_per_key']} rows each in every micro-batch, {len(first['batches'])} micro-batches after "
                f"the first {FIRST}:\n",
                markdown.table(("", *runs), list(zip(names, *map(column, runs.values()), strict=True))),
            ]
    if {"steps", "whole-states", "sfg-mkl-local"} <= set(results):
        steps_, whole, run = results["steps"], results["whole-states"], results["sfg-mkl-local"]
        moved = sum(value for name, value in steps_.items() if name != "learning")
        megabytes = whole["bytes_per_key"] * run["keys"] / 1e6
        out += [
            "What a worker does in Python with a bucket of SFG-MKL, measured without Spark; half of the visits are by "
            "a worker that did not have the last rows:\n",
            markdown.table(("", "processor milliseconds per key and micro-batch"),
                           [(name, f"{value:.3f}") for name, value in steps_.items()]),
            f"All of these but learning move states and rows: {moved / per_key(run):.0%} of the mean above. "
            f"All {megabytes:,.0f} MB of states, written and flushed in every micro-batch, would take "
            f"{whole['core_milliseconds_per_key']:.2f} processor milliseconds per key and {whole['wall']:.1f} s by the "
            "clock.\n",
        ]  # fmt: skip
    return out
