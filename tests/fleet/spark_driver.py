"""A driver that the tests start, kill and start again: python spark_driver.py MASTER FOLDER

It learns all of FOLDER/in (Parquet, one file per micro-batch), writes the results to FOLDER/out and the states of
all keys to FOLDER/states.json. With FOLDER/checkpoint it continues where it was killed.
"""

import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession

import omkl
from omkl.fleet.spark import Sink, learn_stream, stream_states

LEARNER = omkl.SFGMKLRegressor(n_features=10)
SEED, FEATURES = 11, ["u", "v", "w"]
SCHEMA = "meter STRING, t BIGINT, u DOUBLE, v DOUBLE, w DOUBLE, y DOUBLE"


def main(master: str, folder: Path) -> None:
    spark = (
        SparkSession.builder.master(master)
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.executor.memory", "512m")
        .config("spark.executor.cores", "1")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    source = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
    roles = {"key": "meter", "order": "t", "target": "y", "features": FEATURES}
    out = learn_stream(source, LEARNER, **roles, seed=SEED, checkpoint=folder / "checkpoint")
    query = (
        out.writeStream.foreachBatch(Sink(folder / "out"))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    states = {key: bytes(state).hex() for key, state, _ in stream_states(spark, folder / "checkpoint").collect()}
    (folder / "states.json").write_text(json.dumps(states))
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
