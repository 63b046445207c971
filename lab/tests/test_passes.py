"""Passes over the same rows."""

import numpy as np
import pytest

from omkl_lab import passes
from omkl_lab.equations import ROOT
from omkl_lab.files import read_json


def results():
    return read_json(ROOT / passes.RESULTS)


@pytest.mark.parametrize("name", passes.VALIDATED)
def test_by_default_every_random_state_had_an_accuracy_of_at_least_95_per_cent(name):
    found = results()["validation"][name]
    assert len(found["auto"]) == passes.FOLD_SEEDS
    assert min(found["auto"]) >= 0.95


def test_two_passes_were_better_for_labels_and_no_better_for_few_numbers():
    mean = {task: {rows: [float(cell) for cell in cells] for rows, cells in passes.ratios(sets).items()}
            for task, sets in results()["small"].items()}  # fmt: skip
    errors, losses = np.array([(error, loss) for error, _, loss, _ in mean["labels"].values()]).T
    assert errors.mean() < 1
    assert losses.mean() < 1
    assert mean["numbers"]["60"][2] > 1.05


def test_coverage_after_later_passes_was_about_that_after_the_first():
    runs = results()["again"]
    assert len(runs) == passes.STREAM_SEEDS
    for done in map(str, passes.PASSES):
        (coverage, score), (first, before) = (np.array([run[n] for run in runs]).T for n in (done, "1"))
        assert np.abs(coverage - first).max() <= 0.02
        assert (score - before).min() >= -0.02
        assert 0.87 <= coverage.mean() <= 0.91


def test_small_measurements_run():
    assert 0.8 <= passes.accuracies("iris", 1, seeds=1)[0] <= 1
    X, y = passes.stream(np.random.default_rng(0), 90)
    assert len(passes.of_numbers(X, y, 60, 2, number=1)) == 2
    wrong, loss = passes.of_labels(X, (y > y.mean()).astype(int), 60, 2, number=1)
    assert 0 <= wrong < 0.5
    assert 0 < loss < 1
    assert set(passes.again_and_again(0, rows=40)) == {str(n) for n in passes.PASSES}


def test_ratios_are_geometric_means_over_the_sets():
    sets = {"a": {"60": {"1": [1.0, 4.0], "2": [2.0, 1.0]}}, "b": {"60": {"1": [2.0, 1.0], "2": [1.0, 1.0]}}}
    assert passes.ratios(sets) == {"60": ["1.000", "2.000", "0.500", "1.000"]}
