"""The benchmark of rows with few of very many features."""

import json
from pathlib import Path

from omkl_lab import wide

ROOT = Path(__file__).parents[2]


def results():
    return json.loads((ROOT / wide.RESULTS).read_text(encoding="utf-8"))


def test_the_errors_that_were_measured_are_below_those_of_linear_models():
    for models in results()["streams"].values():
        assert models["GraphMKL"]["error"] < min(models[label]["error"] for label in wide.MODELS if label != "GraphMKL")


def test_the_memory_that_was_measured_does_not_grow_with_the_words():
    some, all_of_them = results()["distinct"].values()
    assert all_of_them < 1.1 * some


def test_a_small_measurement_runs():
    for stream in (wide.words(30, zipf=True, vocabulary=700), wide.users(30, zeros=True)):
        rows = list(stream)
        for make in wide.MODELS.values():
            micros, error = wide.passed(make(), rows)
            assert micros > 0
            assert error >= 0
    some, all_of_them = wide.distinct(1000).values()
    assert some > 0
    assert all_of_them > 0
