"""Every key has the same model on Spark as in a Fleet, even if processes are killed meanwhile."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.dataset as ds
import pytest

import omkl
from omkl.fleet import Fleet

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not shutil.which("java"), reason="Spark needs Java: apt-get install openjdk-17-jre-headless"),
    pytest.mark.filterwarnings("ignore"),  # PySpark's own, about pandas 3 and its sockets
]
pyspark = pytest.importorskip("pyspark", reason="Spark's tests need pyspark: pip install omkl[spark]")

HERE = Path(__file__).parent
ENVIRONMENT = os.environ | {
    "SPARK_LOCAL_IP": "127.0.0.1",
    "PYSPARK_PYTHON": sys.executable,
    "PYTHONPATH": str(HERE),
    "SPARK_HOME": str(Path(pyspark.__file__).parent),
}
METERS, FILES, ROWS = 12, 5, 240
TIMEOUT = 300  # seconds, for a busy machine


def rows_of_meters():
    rng = np.random.default_rng(0)
    n = FILES * ROWS
    rows = pd.DataFrame({"meter": [f"meter {k}" for k in rng.integers(METERS, size=n)], "t": np.arange(n)})
    for name in ("u", "v", "w"):
        rows[name] = rng.uniform(0, 10, n)
    rows["y"] = np.sin(rows["u"]) + rows["v"] * rows["w"]
    return rows


ALL = rows_of_meters()


def write_files(folder):
    """A file for every micro-batch, rows shuffled within it."""
    (folder / "in").mkdir(parents=True)
    for k in range(FILES):
        path = folder / "in" / f"{k}.parquet"
        ALL[k * ROWS : (k + 1) * ROWS].sample(frac=1, random_state=k).to_parquet(path)
        os.utime(path, (1e9 + k, 1e9 + k))  # Spark takes files by their time


def wait_for(condition, what):
    end = time.monotonic() + TIMEOUT
    while not condition():
        assert time.monotonic() < end, f"waited {TIMEOUT} s for {what}"
        time.sleep(0.1)


class Cluster:
    """A standalone master and two workers, as processes on this machine."""

    def __init__(self, folder):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.folder, self.url = folder, f"spark://127.0.0.1:{port}"
        self.master = self._start("master", "Master", "--host", "127.0.0.1", "--port", str(port))
        wait_for(lambda: socket.socket().connect_ex(("127.0.0.1", port)) == 0, "the master")
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


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    cluster = Cluster(tmp_path_factory.mktemp("cluster"))
    yield cluster
    cluster.stop()


def start_driver(cluster, folder):
    with (folder / "driver.log").open("ab") as log:
        return subprocess.Popen([sys.executable, HERE / "spark_driver.py", cluster.url, folder], stdout=log, stderr=log,
                                env=ENVIRONMENT, start_new_session=True)  # fmt: skip


def finish(driver, folder):
    try:
        assert driver.wait(TIMEOUT) == 0, (folder / "driver.log").read_text()[-3000:]
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


@pytest.fixture(scope="module")
def expected():
    """The results of Fleet: predictions in order, and the state of every key."""
    import spark_driver

    fleet = Fleet(spark_driver.LEARNER, seed=spark_driver.SEED)
    predictions = fleet.learn_many(ALL, key="meter", target="y", features=spark_driver.FEATURES)
    return predictions, {key: fleet.pack(key) for key in fleet}


def check(folder, expected):
    learned, states = result(folder)
    assert learned["t"].tolist() == ALL["t"].tolist()  # no row is lost or learned twice
    assert learned["prediction"].tolist() == expected[0].tolist()
    assert states == expected[1]


@pytest.fixture(scope="module")
def undisturbed(cluster, tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed")
    write_files(folder)
    finish(start_driver(cluster, folder), folder)
    return folder


def test_two_workers_give_every_key_the_model_of_a_fleet(undisturbed, expected):
    check(undisturbed, expected)


def test_a_killed_driver_continues_from_its_checkpoint(cluster, undisturbed, expected, tmp_path):
    write_files(tmp_path)
    driver = start_driver(cluster, tmp_path)
    wait_for_batch(tmp_path, 1)
    kill(driver)
    assert not (tmp_path / "states.json").exists()
    finish(start_driver(cluster, tmp_path), tmp_path)
    check(tmp_path, expected)
    assert result(tmp_path)[1] == result(undisturbed)[1]


def test_a_killed_worker_does_not_change_the_results(cluster, undisturbed, expected, tmp_path):
    write_files(tmp_path)
    driver = start_driver(cluster, tmp_path)
    try:
        wait_for_batch(tmp_path, 1)
        kill(cluster.workers[0])
        assert not (tmp_path / "states.json").exists()
        cluster.workers[0] = cluster.worker(0)
    finally:
        finish(driver, tmp_path)
    check(tmp_path, expected)
    assert result(tmp_path)[1] == result(undisturbed)[1]


# The other tests run Spark in one process


@pytest.fixture(scope="module")
def spark():
    os.environ |= {name: ENVIRONMENT[name] for name in ("SPARK_LOCAL_IP", "PYSPARK_PYTHON")}
    session = (
        pyspark.sql.SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    yield session
    session.stop()


COLUMNS = {"key": "k", "order": "t", "target": "y"}


def test_a_table_is_learned_as_by_a_fleet_and_a_fleet_continues_from_its_states(spark):
    from omkl.fleet.spark import learn_history, learned_states, to_fleet

    learner = omkl.OMKLGFRegressor(n_features=6)
    rows = ALL.rename(columns={"meter": "k"})[:600]
    table = spark.createDataFrame(rows.sample(frac=1, random_state=0))
    fleet = Fleet(learner, seed=2)
    predictions = fleet.learn_many(rows, key="k", target="y", features=["u", "v", "w"])
    history = learn_history(table, learner, **COLUMNS, seed=2).toPandas().sort_values("t")
    assert history["prediction"].tolist() == predictions.tolist()
    assert history["y"].tolist() == rows["y"].tolist()
    local = to_fleet(learned_states(table, learner, **COLUMNS, seed=2), learner, features=["u", "v", "w"], seed=2)
    assert {key: local.pack(key) for key in local} == {key: fleet.pack(key) for key in fleet}
    more = ALL.rename(columns={"meter": "k"})[600:800]
    assert (local.learn_many(more, key="k", target="y") == fleet.learn_many(more, key="k", target="y")).all()


@pytest.mark.parametrize("learner", [omkl.RakerClassifier(n_features=6), omkl.GraphMKLClassifier(n_features=6)])
def test_classifiers_and_integer_keys_work(spark, learner):
    from omkl.fleet.spark import learn_history

    rows = pd.DataFrame({"k": ALL["t"] % 3, "t": ALL["t"], "u": ALL["u"], "y": np.where(ALL["u"] < 4, "low", "high")})[
        :90
    ]
    rows.loc[7, "y"] = "middle"
    rows.loc[8, "y"] = None
    labels = ["high", "low"]
    out = learn_history(spark.createDataFrame(rows), learner, **COLUMNS, classes=labels).toPandas().sort_values("t")
    valid = rows.drop([7, 8])
    fleet = Fleet(learner, seed=0, classes=labels)
    expected = fleet.learn_many(valid, key="k", target="y", features=["u"])
    assert out["prediction"].drop(out.index[[7, 8]]).tolist() == expected.tolist()
    assert out["reason"].tolist()[7:9] == ["the target is not among the classes: middle", "the target is null"]
    assert out["y"].isna().sum() == 1


def test_invalid_rows_are_returned_with_the_reason_and_other_rows_are_learned(spark, tmp_path):
    from omkl.fleet.spark import Sink, learn_stream, stream_states

    check = tmp_path / "check"
    rows = [{"k": "ab"[t % 2], "t": t, "u": float(t % 5), "v": t / 7, "y": float(t % 3)} for t in range(40)]
    invalid = {
        5: ({"u": None}, "feature 'u' is null"),
        6: ({"u": "hot"}, "feature 'u' is null"),  # the column has changed its type
        11: ({"v": "NaN"}, "feature 'v' is NaN"),
        12: ({"v": "Infinity"}, "feature 'v' is infinite"),
        23: ({"y": None}, "the target is null"),
        24: ({"y": "-Infinity"}, "the target is infinite"),
        31: ({"k": None}, "the key is null"),
        32: ({"t": None}, "the order is null"),
    }
    (tmp_path / "in").mkdir()
    lines = [json.dumps(row | invalid.get(row["t"], [{}])[0]) for row in rows]
    for part in range(2):
        (tmp_path / "in" / f"{part}.json").write_text("\n".join(lines[part * 20 : part * 20 + 20]))
        os.utime(tmp_path / "in" / f"{part}.json", (1e9 + part, 1e9 + part))
    schema = "k STRING, t BIGINT, u DOUBLE, v DOUBLE, y DOUBLE"
    source = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).json(str(tmp_path / "in"))
    learner = omkl.SFGMKLRegressor(n_features=6)
    out = learn_stream(source, learner, **COLUMNS, seed=4, checkpoint=check)
    query = out.writeStream.foreachBatch(Sink(tmp_path / "out")).option("checkpointLocation", str(check))
    query.trigger(availableNow=True).start().awaitTermination()

    learned = spark.read.parquet(str(tmp_path / "out" / "learned")).toPandas().sort_values("t")
    refused = spark.read.parquet(str(tmp_path / "out" / "refused")).toPandas()
    valid = pd.DataFrame([row for row in rows if row["t"] not in invalid])
    fleet = Fleet(learner, seed=4)
    expected = fleet.learn_many(valid, key="k", target="y", features=["u", "v"])
    assert learned["t"].tolist() == valid["t"].tolist()
    assert learned["prediction"].tolist() == expected.tolist()
    assert sorted(refused["reason"]) == sorted(reason for _, reason in invalid.values())
    assert refused["t"].isna().sum() == refused["k"].isna().sum() == 1
    assert refused["prediction"].isna().all()
    states = {key: bytes(state) for key, state, _ in stream_states(spark, check).collect()}
    assert states == {key: fleet.pack(key) for key in fleet}


def test_rows_with_the_same_order_give_the_same_model_however_they_are_shuffled(spark):
    from omkl.fleet.spark import learned_states

    rows = pd.DataFrame({"k": "a", "t": 1, "u": np.arange(30.0), "y": np.arange(30.0) % 4})
    learner = omkl.SFGMKLRegressor(n_features=6)
    states = {
        bytes(learned_states(spark.createDataFrame(rows.sample(frac=1, random_state=k)), learner, **COLUMNS).first()[1])
        for k in range(2)
    }
    assert len(states) == 1


def test_a_model_that_diverges_learns_nothing_of_the_batch(spark):
    from omkl.fleet.spark import learn_history

    rows = pd.DataFrame({"k": ["good", "bad"] * 40, "t": range(80), "u": 1.0, "y": 1.0})
    learner = omkl.RakerRegressor(n_features=6, stabiliser="none", scale="none", learning_rate=1e6, horizon=10)
    out = learn_history(spark.createDataFrame(rows), learner, **COLUMNS).toPandas()
    assert out["reason"].str.startswith("the model diverged, nothing of this batch was learned").all()
    assert out["prediction"].isna().all()


def test_wrong_arguments_are_refused_on_the_driver_before_anything_runs(spark):
    from omkl.fleet.spark import learn_history, learn_stream

    table = spark.createDataFrame([("a", 1, 0.5, "x", 1.0)], "k STRING, t INT, u DOUBLE, s STRING, y DOUBLE")
    learner = omkl.SFGMKLRegressor(n_features=6)

    def refuses(message, error=ValueError, table=table, learner=learner, **changes):
        with pytest.raises(error, match=message):
            learn_history(table, learner, **(COLUMNS | {"features": ["u"]} | changes))

    refuses(r"the key column 'meter' is not in the DataFrame, which has \['k', 't'", key="meter")
    refuses("the order column 'when' is not", order="when")
    refuses("the feature column 'z' is not", features=["z"])
    refuses("the feature column 's' must be a number, got string; cast it", features=None)
    refuses("the target column 's' must be a number, got string", target="s")
    refuses("the key column 'u' must be a string or an integer, got double", key="u", features=["s"])
    refuses("must be different columns", features=["u", "k"])
    refuses("must be different columns", features=[])
    refuses("classes must be given", learner=omkl.RakerClassifier())
    refuses(
        "the target column 'y' must be of the type of its labels", learner=omkl.RakerClassifier(), classes=["a", "b"]
    )
    refuses("must be an estimator", TypeError, learner="sfg")
    refuses("out_degree", learner=omkl.SFGMKLRegressor(out_degree=99))
    refuses(r"unknown \['weight'\]", TypeError, weight="u")
    untyped = table.selectExpr("NULL AS k", "t", "u", "y")
    refuses("the key column 'k' has no type, only nulls", table=untyped)
    with pytest.raises(
        ValueError, match="learn_stream needs a streaming DataFrame; for the other kind use learn_history"
    ):
        learn_stream(table, learner, **COLUMNS, checkpoint="unused")


def test_the_example_runs():
    path = HERE.parents[1] / "examples" / "spark" / "fleet_on_spark.py"
    run = subprocess.run([sys.executable, path], capture_output=True, text=True, env=ENVIRONMENT, check=False)
    assert run.returncode == 0, run.stderr[-3000:]
    assert "meter" in run.stdout
