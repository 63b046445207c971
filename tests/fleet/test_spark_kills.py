"""Twenty kills of the driver and twenty of workers at random moments: every state is that of an undisturbed fleet."""

import random
import shutil
import time

import pytest
import spark_cluster
from spark_cluster import Cluster, finish, kill, start_driver, wait_for

pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(not shutil.which("java"), reason="Spark needs Java: apt-get install openjdk-17-jre-headless"),
]
pytest.importorskip("pyspark", reason="Spark's tests need pyspark: pip install omkl[spark]")


KILLS, BATCHES, EACH = 20, 240, 20  # KILLS: of the driver, and as many of workers


def last_commit(commits):
    """The number of the last micro-batch; Spark keeps the files of the last hundred."""
    return max((int(path.name) for path in commits.glob("[0-9]*")), default=-1)


def test_twenty_kills_change_nothing(tmp_path):
    rows = spark_cluster.rows_of_meters(BATCHES * EACH)
    spark_cluster.write_files(tmp_path, rows, EACH)
    choice, commits = random.Random(0), tmp_path / "checkpoint" / "commits"
    targets = ["driver"] * KILLS + ["worker"] * KILLS
    choice.shuffle(targets)
    (tmp_path / "cluster").mkdir()
    cluster = Cluster(tmp_path / "cluster")
    driver = start_driver(cluster, tmp_path)
    try:
        for target in targets:
            done = last_commit(commits)
            wait_for(lambda done=done: last_commit(commits) > done, "a micro-batch")
            time.sleep(choice.uniform(0, 2))  # a moment of the next ones
            assert not (tmp_path / "states.json").exists(), "all was learned before the last kill"
            if target == "driver":
                kill(driver)
                driver = start_driver(cluster, tmp_path)
            else:
                number = choice.randrange(2)
                kill(cluster.workers[number])
                cluster.workers[number] = cluster.worker(number)
    finally:
        try:
            finish(driver, tmp_path, BATCHES * 10)  # seconds, for a busy machine
        finally:
            cluster.stop()
    spark_cluster.check(tmp_path, spark_cluster.expected_of(rows), rows)
