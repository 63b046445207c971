"""Recovery from a spoiled beginning: the committed results, and how they are measured."""

import numpy as np
import pytest

from omkl_lab import recovery
from omkl_lab.equations import ROOT
from omkl_lab.files import read_json


def committed():
    lines = read_json(ROOT / recovery.RESULTS)["lines"]
    return {(line["length"], line["beginning"], line["learner"]): line for line in lines}


def test_the_committed_results_have_every_learner_after_every_beginning():
    found = committed()
    assert len(found) == len(recovery.LENGTHS) * len(recovery.BEGINNINGS) * len(recovery.LEARNERS)
    for length in recovery.LENGTHS:
        for learner in recovery.LEARNERS:
            for beginning in recovery.BEGINNINGS:  # more than half of the variance is explained again
                assert found[length, beginning, learner]["median"][1] > 0.5, (beginning, learner)


@pytest.mark.parametrize("beginning", recovery.BEGINNINGS)
def test_a_beginning_changes_its_rows_alone(beginning):
    X, y = recovery.stream(120, 0)
    X_clean, y_clean = recovery.stream(120, 0)
    recovery.BEGINNINGS[beginning](X[:100], y[:100])
    np.testing.assert_array_equal(X[100:], X_clean[100:])
    np.testing.assert_array_equal(y[100:], y_clean[100:])
    changed = not np.array_equal(X, X_clean) or not np.array_equal(y, y_clean)
    assert changed == (beginning != "as the rest")
