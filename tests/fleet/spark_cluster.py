"""A stream of meters on a cluster of processes on this machine, which tests start, kill and start again."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.dataset as ds

from omkl.fleet import Fleet

HERE = Path(__file__).parent
ENVIRONMENT = os.environ | {
    "SPARK_LOCAL_IP": "127.0.0.1",
    "PYSPARK_PYTHON": sys.executable,
    "PYTHONPATH": str(HERE),
    "SPARK_HOME": os.path.dirname(getattr(find_spec("pyspark"), "origin", "")),
}
METERS, FILES, ROWS = 12, 5, 240  # ROWS: of a file, each a micro-batch
TIMEOUT = 300  # seconds, for a busy machine


def rows_of_meters(n=FILES * ROWS):
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"meter": [f"meter {k}" for k in rng.integers(METERS, size=n)], "t": np.arange(n)})
    for name in ("u", "v", "w"):
        rows[name] = rng.uniform(0, 10, n)
    rows["y"] = np.sin(rows["u"]) + rows["v"] * rows["w"]
    return rows


ALL = rows_of_meters()


def write_files(folder, rows=ALL, each=ROWS):
    """A file for every micro-batch, rows shuffled within it."""
    (folder / "in").mkdir(parents=True)
    for k in range(len(rows) // each):
        path = folder / "in" / f"{k}.parquet"
        rows[k * each : (k + 1) * each].sample(frac=1, random_state=k).to_parquet(path)
        os.utime(path, (1e9 + k, 1e9 + k))  # Spark takes files by their time


def wait_for(condition, what):
    end = time.monotonic() + TIMEOUT
    while not condition():
        assert time.monotonic() < end, f"waited {TIMEOUT} s for {what}"
        time.sleep(0.1)


def answers(port):
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


class Cluster:
    """A standalone master and two workers, as processes on this machine."""

    def __init__(self, folder):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.folder, self.url = folder, f"spark://127.0.0.1:{port}"
        self.master = self._start("master", "Master", "--host", "127.0.0.1", "--port", str(port))
        wait_for(lambda: answers(port), "the master")
        self.workers = [self.worker(k) for k in range(2)]

    def worker(self, k):
        options = ("--cores", "1", "--memory", "1g", "--work-dir", str(self.folder / f"work{k}"))
        return self._start(f"worker{k}", "Worker", *options, self.url)

    def _start(self, name, kind, *options):
        command = [
            Path(ENVIRONMENT["SPARK_HOME"]) / "bin" / "spark-class",
            f"org.apache.spark.deploy.{kind.lower()}.{kind}",
        ]
        with (self.folder / f"{name}.log").open("ab") as log:
            return subprocess.Popen([*command, "--webui-port", "0", *options], stdout=log, stderr=log, env=ENVIRONMENT,
                                    start_new_session=True)  # fmt: skip

    def stop(self):
        for process in (*self.workers, self.master):
            kill(process)


def kill(process):
    """kill -9, with all its child processes."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def start_driver(cluster, folder):
    with (folder / "driver.log").open("ab") as log:
        return subprocess.Popen([sys.executable, HERE / "spark_driver.py", cluster.url, folder], stdout=log, stderr=log,
                                env=ENVIRONMENT, start_new_session=True)  # fmt: skip


def finish(driver, folder, timeout=TIMEOUT):
    try:
        assert driver.wait(timeout) == 0, (folder / "driver.log").read_text()[-3000:]
    finally:
        kill(driver)


def wait_for_batch(folder, number):
    wait_for((folder / "checkpoint" / "commits" / str(number)).exists, f"micro-batch {number}")


def result(folder):
    learned = ds.dataset(folder / "out" / "learned", partitioning="hive").to_table().to_pandas()
    refused = ds.dataset(folder / "out" / "refused", partitioning="hive").to_table()
    assert len(refused) == 0
    states = {key: bytes.fromhex(state) for key, state in json.loads((folder / "states.json").read_text()).items()}
    return learned.sort_values("t", ignore_index=True), states


def expected_of(rows):
    """The results of Fleet: predictions in order, and the state of every key."""
    import spark_driver  # needs pyspark

    fleet = Fleet(spark_driver.LEARNER, seed=spark_driver.SEED)
    predictions = fleet.learn_many(rows, key="meter", target="y", features=spark_driver.FEATURES)
    return predictions, {key: fleet.pack(key) for key in fleet}


def check(folder, expected, rows=ALL):
    learned, states = result(folder)
    assert learned["t"].tolist() == rows["t"].tolist()  # no row is lost or learned twice
    assert learned["prediction"].tolist() == expected[0].tolist()
    assert states == expected[1]
