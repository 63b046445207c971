"""The benchmark of fleets."""

import json
from pathlib import Path

import pytest

from omkl_lab import fleets, fleets_on_spark, light_fleets

ROOT = Path(__file__).parents[2]


def test_the_fleet_that_was_measured_was_identical_to_separate_models():
    results = json.loads((ROOT / "results" / "fleet.json").read_text())
    assert results["large"]["identical_to_separate_models"]


def test_a_small_measurement_runs():
    results = fleets.large(rows=4000, keys=50, size=2000)
    assert results["identical_to_separate_models"]
    assert results["keys"] == 50


def test_the_streams_on_spark_that_were_measured_had_the_states_of_a_fleet():
    results = json.loads((ROOT / "results" / "fleet.json").read_text())["spark"]
    runs = [run for name, run in results.items() if name.endswith(("-local", "-cluster"))]
    assert runs
    assert all(run["identical_to_a_fleet"] for run in runs)


def test_a_part_that_is_not_known_is_refused(monkeypatch):
    monkeypatch.setattr("sys.argv", ["fleets", "spark:lokal"])
    with pytest.raises(SystemExit, match=r"nothing is called spark:lokal; there are graph-mkl, .*spark:sfg-mkl-local"):
        fleets.main()


def test_a_fleet_larger_than_its_memory_is_measured():
    found = light_fleets.limited(memory=40_000_000, keys=400, rows=20)
    assert found["in_memory"] <= 40_000_000 < found["bytes"]
    assert set(found["milliseconds_per_visit"]) == {"cached", "cold"}


def test_every_stream_on_spark_is_a_part():
    parts = fleets_on_spark.parts()
    assert {f"{case}-{kind}" for case in fleets_on_spark.CASES for kind in fleets_on_spark.MASTERS} < set(parts)
