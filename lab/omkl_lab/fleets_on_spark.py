"""A model for every key on Spark: time and bytes of a stream on this machine, in one process and on a cluster of two.

`python -m omkl_lab.fleets spark` runs it, see there; `python -m omkl_lab.fleets_on_spark MASTER` measures one master.
"""

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from omkl.estimators.sklearn import SFGMKLRegressor
from omkl.fleet import Fleet

KEYS, EACH, BATCHES, d = 20_000, 10, 14, 8  # EACH: rows of a key in a micro-batch
FIRST = 2  # micro-batches that start the workers and make the models, and are not counted
COMPARED_KEYS = 20  # with separate estimators
NAMES = [f"x{k}" for k in range(d)]
PATIENCE = 120  # seconds, for a cluster to start


def rows_of(batch: int) -> tuple[Any, ...]:
    """Key, order, features and target of a micro-batch: EACH rows of every key, shuffled."""
    rng = np.random.default_rng(batch)
    key = rng.permutation(np.repeat(np.arange(KEYS), EACH))
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


def measure(master: str) -> dict[str, Any]:
    """A stream of files through Spark: seconds and processor seconds of each micro-batch."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyspark.sql import SparkSession

    from omkl.fleet.spark import Sink, learn_stream, stream_states

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "in").mkdir()
        for part in range(BATCHES):
            key, order, X, y = rows_of(part)
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
        out = learn_stream(source, SFGMKLRegressor(), key="key", order="order", target="y", features=NAMES, seed=0,
                           checkpoint=folder / "checkpoint", buckets=4)  # fmt: skip
        sink, marks, sizes = Sink(folder / "out"), [], []

        def mark(batch: Any, number: int) -> None:
            sink(batch, number)
            marks.append((time.perf_counter(), busy()))
            sizes.append(bytes_written(folder / "checkpoint"))

        query = out.writeStream.foreachBatch(mark).trigger(availableNow=True)
        query.option("checkpointLocation", str(folder / "checkpoint")).start().awaitTermination()
        took = [
            {"wall": b[0] - a[0], "cores": b[1]["all"] - a[1]["all"], "java": b[1]["java"] - a[1]["java"]}
            for a, b in pairwise(marks)
        ][FIRST - 1 :]
        started = time.perf_counter()
        states = {key: bytes(state) for key, state, _ in
                  stream_states(spark, folder / "checkpoint").where(f"key < {COMPARED_KEYS}").collect()}  # fmt: skip
        reading = time.perf_counter() - started
        spark.stop()
    return {
        "keys": KEYS, "rows_per_key": EACH, "batches": took, "sizes": sizes[FIRST - 1 :], "reading_seconds": reading,
        "identical_to_a_fleet": states == expected_states(),
    }  # fmt: skip


def expected_states() -> dict[int, bytes]:
    """The states of the first keys, as a Fleet learns them."""
    fleet = Fleet(SFGMKLRegressor(), seed=0)
    fleet.restore([], NAMES)
    for part in range(BATCHES):
        key, _, X, y = rows_of(part)
        some = key < COMPARED_KEYS
        fleet.learn_rows(key[some], X[some], y[some])
    return {key: fleet.pack(key) for key in range(COMPARED_KEYS)}


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


if __name__ == "__main__":
    if sys.argv[1] == "cluster":
        with cluster() as url:
            print(json.dumps(measure(url), indent=1))
    else:
        print(json.dumps(measure(sys.argv[1]), indent=1))
