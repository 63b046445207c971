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


def rows_that_count(length: int, rows: int) -> int:
    """After how many rows a new learner has taken steps of the same total length.

    The steps of the paper's algorithms fall as 1 / sqrt(t), and t counts the rows of the beginning too: the next `rows`
    rows move a learner as far as the first (sqrt(length + rows) - sqrt(length))^2 rows would have. The first third of
    the length does not count either: so many rows pass until the latest quarter, from which the scaling starts again,
    has nothing of the beginning.
    """
    return int((np.sqrt(length + rows) - np.sqrt(length * 4 / 3)) ** 2)


@pytest.mark.parametrize("learner", recovery.LEARNERS)
def test_after_every_beginning_a_learner_is_nearly_as_good_as_a_new_one(learner):
    """GraphMKL as a new one after the same rows, since its challenger is new; the others by their smaller steps."""
    start, stop = recovery.WINDOWS[1]
    streams = [recovery.stream(stop, seed) for seed in range(recovery.SEEDS)]
    residuals = [y - recovery.estimator(learner, seed).predict_then_learn(X, y) for seed, (X, y) in enumerate(streams)]
    for length in recovery.LENGTHS:
        first, last = start, stop
        if learner != "GraphMKLRegressor":
            first, last = rows_that_count(length, start), rows_that_count(length, stop)
        of_new = [np.mean(r[first:last] ** 2) / np.var(y) for r, (_, y) in zip(residuals, streams, strict=True)]
        for beginning in recovery.BEGINNINGS:
            unexplained = 1 - committed()[length, beginning, learner]["median"][1]
            assert unexplained < 1.25 * np.median(of_new), (length, beginning)


@pytest.mark.parametrize("beginning", recovery.BEGINNINGS)
def test_a_beginning_changes_its_rows_alone(beginning):
    X, y = recovery.stream(120, 0)
    X_clean, y_clean = recovery.stream(120, 0)
    recovery.BEGINNINGS[beginning](X[:100], y[:100])
    np.testing.assert_array_equal(X[100:], X_clean[100:])
    np.testing.assert_array_equal(y[100:], y_clean[100:])
    changed = not np.array_equal(X, X_clean) or not np.array_equal(y, y_clean)
    assert changed == (beginning != "as the rest")
