"""The benchmark of fleets."""

import json
from pathlib import Path

from omkl_lab import fleets

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
