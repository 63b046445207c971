"""One model per meter on Spark Structured Streaming; afterwards the models are loaded on this machine.

Requires Java 17 and pip install 'omkl[spark]'. Usage: python examples/spark/fleet_on_spark.py
On a cluster: spark-submit --master spark://host:7077 fleet_on_spark.py, with the files and the checkpoint on storage
that all workers can access.
"""

import json
import os
import sys
import tempfile
from pathlib import Path

import numpy as np
from pyspark.sql import SparkSession

import omkl
from omkl.fleet.spark import Sink, learn_stream, stream_states, to_fleet

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
spark = (
    SparkSession.builder.config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", "2").getOrCreate()
)
spark.sparkContext.setLogLevel("ERROR")

with tempfile.TemporaryDirectory() as name:
    folder = Path(name)

    # Readings arrive as files of JSON lines; one line of each file has an invalid value.
    rng = np.random.default_rng(0)
    (folder / "readings").mkdir()
    for part in range(3):
        lines = []
        for second in range(part * 400, part * 400 + 400):
            meter = int(rng.integers(4))
            hour, wind = rng.uniform(0, 24), rng.gamma(2.0, 3.0)
            load = 100 * (meter + 1) + 30 * np.sin(hour / 4) - 2 * wind + rng.normal()
            lines.append({"meter": f"meter {meter}", "second": second, "hour": hour, "wind": wind, "load": load})
        lines[7]["wind"] = "broken"
        (folder / "readings" / f"{part}.json").write_text("\n".join(map(json.dumps, lines)))
        os.utime(folder / "readings" / f"{part}.json", (part, part))  # Spark reads files in order of time

    schema = "meter STRING, second BIGINT, hour DOUBLE, wind DOUBLE, load DOUBLE"
    readings = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).json(str(folder / "readings"))

    # Every reading is predicted before it is learned. The folder of the checkpoint holds the models of all meters: if
    # the query is killed and started again, it ends with the same models and the same files.
    learner = omkl.SFGMKLRegressor()
    checkpoint = folder / "checkpoint"
    roles = {"key": "meter", "order": "second", "target": "load"}
    predictions = learn_stream(readings, learner, **roles, seed=0, checkpoint=checkpoint)
    query = (
        predictions.writeStream.foreachBatch(Sink(folder / "out"))
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)  # without this line the query keeps running
        .start()
    )
    query.awaitTermination()

    learned = spark.read.parquet(str(folder / "out" / "learned"))
    learned.where("second >= 800").selectExpr("meter", "abs(prediction - load) AS error").groupBy("meter").avg(
        "error"
    ).orderBy("meter").show()
    spark.read.parquet(str(folder / "out" / "refused")).select("meter", "second", "reason").show(truncate=False)

    # Load the models from the checkpoint into a Fleet on this machine.
    fleet = to_fleet(stream_states(spark, checkpoint), learner, features=["hour", "wind"], seed=0)
    print(fleet, fleet.predict_rows(["meter 0", "meter 3"], [[6.0, 5.0], [6.0, 5.0]]).round())
    spark.stop()
