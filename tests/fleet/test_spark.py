"""Every key has the same model on Spark as in a Fleet, even if processes are killed meanwhile."""

import json
import os
import shutil
import subprocess
import sys
from datetime import timedelta

import numpy as np
import pandas as pd
import pytest
import spark_cluster
from spark_cluster import (
    ALL,
    ENVIRONMENT,
    HERE,
    Cluster,
    check,
    finish,
    kill,
    result,
    start_driver,
    wait_for_batch,
    write_files,
)

import omkl
from omkl.fleet import Fleet

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not shutil.which("java"), reason="Spark needs Java: apt-get install openjdk-17-jre-headless"),
    pytest.mark.filterwarnings("ignore"),  # PySpark's own, about pandas 3 and its sockets
]
pyspark = pytest.importorskip("pyspark", reason="Spark's tests need pyspark: pip install omkl[spark]")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    cluster = Cluster(tmp_path_factory.mktemp("cluster"))
    yield cluster
    cluster.stop()


@pytest.fixture(scope="module")
def expected():
    return spark_cluster.expected_of(ALL)


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


@pytest.mark.parametrize(
    "learner", [omkl.RakerClassifier(n_features=6), omkl.GraphMKLClassifier(n_features=6), "graph-mkl"]
)
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


def test_a_sink_evaluates_a_batch_once_and_writes_it_again_in_its_place(spark, tmp_path):
    from omkl.fleet.spark import Sink

    def counted(batches):
        for part in batches:
            evaluated.add(part.num_rows)
            yield part

    schema, sink = "k BIGINT, reason STRING", Sink(tmp_path)
    for reasons in (["bad", None, None], [None], ["bad", "worse"], []):
        evaluated = spark.sparkContext.accumulator(0)
        table = spark.createDataFrame(list(enumerate(reasons)), schema)
        sink(table.mapInArrow(counted, schema), 7)
        assert evaluated.value == len(reasons)
        for name, wanted in (("learned", [None]), ("refused", ["bad", "worse"])):
            found = spark.read.parquet(str(tmp_path / name)).toPandas().sort_values("k")
            assert found.columns.tolist() == ["k", "reason", "batch"]
            assert found["k"].tolist() == [k for k, reason in enumerate(reasons) if reason in wanted]
            assert (tmp_path / name / "batch=7" / "_SUCCESS").exists()
        assert sorted(path.name for path in tmp_path.iterdir()) == ["learned", "refused"]


def test_rows_with_the_same_order_give_the_same_model_however_they_are_shuffled(spark):
    from omkl.fleet.spark import learned_states

    rows = pd.DataFrame({"k": "a", "t": 1, "u": np.arange(30.0), "y": np.arange(30.0) % 4})
    learner = omkl.SFGMKLRegressor(n_features=6)
    states = {
        bytes(learned_states(spark.createDataFrame(rows.sample(frac=1, random_state=k)), learner, **COLUMNS).first()[1])
        for k in range(2)
    }
    assert len(states) == 1


@pytest.mark.parametrize("order", [np.inf, -np.inf])
def test_rows_whose_order_is_infinite_are_sorted_by_their_values_too(order):
    import pyarrow as pa

    from omkl.fleet.spark_columns import REASON, Columns

    table = pa.table({"k": ["a"] * 6, "t": [order] * 6, "u": np.arange(6.0), "y": np.zeros(6),
                      REASON: pa.nulls(6, pa.string())})  # fmt: skip
    columns = Columns("k", "t", "y", ("u",), None)
    for rows in (table, table.take(pa.array([3, 1, 5, 0, 2, 4]))):
        assert columns.sorted_rows(rows, 0, 0)[0].X.ravel().tolist() == list(range(6))


def test_a_row_whose_order_is_nan_is_refused(spark):
    from omkl.fleet.spark import learn_history

    rows = [("a", 1.0, 2.0, 3.0), ("a", float("nan"), 2.0, 3.0), ("a", 2.0, 2.0, 3.0)]
    table = spark.createDataFrame(rows, "k STRING, t DOUBLE, u DOUBLE, y DOUBLE")
    out = learn_history(table, omkl.SFGMKLRegressor(n_features=6), **COLUMNS).toPandas()
    assert out["reason"].fillna("").tolist() == ["", "", "the order is NaN"]


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
    refuses("algorithm must be one of graph-mkl, ", learner="sfg")
    refuses("must be an estimator", TypeError, learner=3)
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


# States in a checkpoint


LEARNER = omkl.SFGMKLRegressor(n_features=6)
FEATURES = ["u", "v", "w"]
ROWS_ = ALL.rename(columns={"meter": "k"})


def stream(spark, folder, rows, batches, first=0, **options):
    """Learn rows as a stream, as new files of its source; returns all that it has written."""
    from omkl.fleet.spark import Sink, learn_stream

    (folder / "in").mkdir(exist_ok=True)
    each = len(rows) // batches
    for k in range(batches):
        path = folder / "in" / f"{first + k}.parquet"
        rows[k * each : (k + 1) * each].to_parquet(path)
        os.utime(path, (1e9 + first + k, 1e9 + first + k))
    schema = "k STRING, t BIGINT, u DOUBLE, v DOUBLE, w DOUBLE, y DOUBLE"
    source = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
    out = learn_stream(source, LEARNER, **COLUMNS, checkpoint=folder / "check", **options)
    writer = out.writeStream.foreachBatch(Sink(folder / "out")).option("checkpointLocation", str(folder / "check"))
    writer.trigger(availableNow=True).start().awaitTermination()
    return spark.read.parquet(str(folder / "out" / "learned")).toPandas().sort_values("t", ignore_index=True)


def states_of(spark, folder):
    from omkl.fleet.spark import stream_states

    return {key: bytes(state) for key, state, _ in stream_states(spark, folder / "check").collect()}


def states_in(fleet):
    return {key: fleet.pack(key) for key in fleet}


def test_a_history_is_learned_and_the_stream_continues_from_it_also_later_and_in_other_buckets(spark, tmp_path):
    from omkl.fleet.spark import forget, learn_history, rebucket, stream_states, to_fleet

    fleet = Fleet(LEARNER, seed=0)
    fleet.restore([], FEATURES)

    def learned_locally(rows):
        return fleet.learn_many(rows, key="k", target="y").tolist()

    def learned_as_history(rows):
        table = spark.createDataFrame(rows.sample(frac=1, random_state=0))
        out = learn_history(table, LEARNER, **COLUMNS, checkpoint=tmp_path / "check").toPandas()
        return out.sort_values("t")["prediction"].tolist()

    history, first, later, second, last = (ROWS_[k * 240 : (k + 1) * 240] for k in range(5))
    assert learned_as_history(history) == learned_locally(history)
    assert states_of(spark, tmp_path) == states_in(fleet)
    out = stream(spark, tmp_path, first, 2)
    assert out["prediction"].tolist() == learned_locally(first)
    assert learned_as_history(later) == learned_locally(later)  # into states that a stream has left
    out = stream(spark, tmp_path, second, 2, first=2)
    assert out["prediction"][240:].tolist() == learned_locally(second)
    assert states_of(spark, tmp_path) == states_in(fleet)

    rebucket(spark, tmp_path / "check", 3)
    assert states_of(spark, tmp_path) == states_in(fleet)
    forget(spark, tmp_path / "check", ["meter 3", "meter 5", "unknown"])
    del fleet["meter 3"], fleet["meter 5"]
    assert states_of(spark, tmp_path) == states_in(fleet)
    with pytest.raises(ValueError, match="in 3 buckets, not 4"):
        stream(spark, tmp_path, last, 1, first=4, buckets=4)
    out = stream(spark, tmp_path, last, 1, first=4)
    assert out["prediction"][480:].tolist() == learned_locally(last)
    local = to_fleet(stream_states(spark, tmp_path / "check"), LEARNER, features=FEATURES)
    assert states_in(local) == states_in(fleet)


def test_keys_without_rows_are_forgotten_after_a_time(spark, tmp_path):
    stream(spark, tmp_path, ROWS_[:240], 1)
    few = ROWS_[240:480].query("k < 'meter 2'")  # of some keys
    out = stream(spark, tmp_path, few, 1, first=1, forget_after=timedelta(seconds=0.001), buckets=None)
    fleet = Fleet(LEARNER, seed=0)
    fleet.restore([], FEATURES)
    assert out["prediction"][240:].tolist() == fleet.learn_many(few, key="k", target="y").tolist()


def test_a_query_with_other_settings_or_another_checkpoint_is_refused(spark, tmp_path):
    from omkl.fleet.spark import forget, learn_stream, rebucket

    stream(spark, tmp_path, ROWS_[:240], 1)
    source = spark.readStream.schema("k STRING, t BIGINT, u DOUBLE, v DOUBLE, w DOUBLE, y DOUBLE").parquet(
        str(tmp_path / "in")
    )
    for learner, options in ((omkl.SFGMKLRegressor(n_features=7), {}), (LEARNER, {"seed": 1}),
                             (LEARNER, {"features": ["v", "u"]})):  # fmt: skip
        with pytest.raises(ValueError, match="learned with another learner, other parameters"):
            learn_stream(source, learner, **COLUMNS, checkpoint=tmp_path / "check", **options)
    out = learn_stream(source, LEARNER, **COLUMNS, checkpoint=tmp_path / "check")
    query = out.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "elsewhere"))
    with pytest.raises(Exception, match="does not keep its checkpoint in"):
        query.trigger(availableNow=True).start().awaitTermination()
    with pytest.raises(FileNotFoundError, match="no states in"):
        forget(spark, tmp_path / "elsewhere", ["a"])
    with pytest.raises(TypeError, match=r"give \['meter 3'\]"):
        forget(spark, tmp_path / "check", "meter 3")
    with pytest.raises(TypeError, match="are of type str, got 3"):
        forget(spark, tmp_path / "check", [3])
    for number in (0, 2.5, 2**16 + 1, "3"):
        with pytest.raises(ValueError, match="buckets must be a whole number from 1 to"):
            rebucket(spark, tmp_path / "check", number)
    for options, message in (({"memory": -1}, "memory must be a whole number"),
                             ({"forget_after": timedelta(0)}, "forget_after must be a time above 0")):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            learn_stream(source, LEARNER, **COLUMNS, checkpoint=tmp_path / "check", **options)
    assert states_of(spark, tmp_path)
