"""Rare labels, with and without weights."""

import numpy as np
import pytest

from omkl_lab import rare
from omkl_lab.equations import ROOT
from omkl_lab.files import read_json


@pytest.mark.parametrize("stream", rare.STREAMS)
@pytest.mark.parametrize(("labels", "share"), rare.CHOICES)
def test_rare_labels_have_their_share(stream: str, labels: int, share: float):
    _, y = rare.draw(stream, labels, share, 8000, 0)
    np.testing.assert_allclose(np.bincount(y)[1:] / 8000, share, rtol=0.25)


def test_shifted_odds_are_multiplied_by_the_ratio_of_the_weights():
    p = np.array([[0.9, 0.1], [0.5, 0.5]])
    q = rare.shifted(p, np.array([0.5, 4.0]))
    np.testing.assert_allclose(q[:, 1] / q[:, 0], 8 * p[:, 1] / p[:, 0])


def test_quality_is_of_the_rare_labels():
    p, y = np.array([[0.9, 0.1], [0.6, 0.4], [0.7, 0.3], [0.2, 0.8]]), np.array([0, 0, 1, 1])
    assert rare.quality(p, y) == {"auc": 0.75, "recall": 0.5, "balanced_accuracy": 0.75}


def test_balanced_labels_find_most_rare_rows_and_rank_better_where_the_page_says_so():
    for stream, lines in read_json(ROOT / rare.RESULTS)["rare"].items():
        for learner in ("GraphMKL", "Raker", "SFG-MKL"):
            without, balanced = lines[f"{learner}, none"], lines[f"{learner}, balanced"]
            for where in ("stream", "fresh"):
                assert balanced[where]["recall"] >= 0.7
                better = (learner, stream) != ("GraphMKL", "clusters")
                assert (balanced[where]["auc"] >= without[where]["auc"]) == better


def test_the_summary_counts_seeds_with_at_least_the_auc_without_weights():
    def record(auc: float, before: float) -> dict[str, dict[str, dict[str, float]]]:
        both = {"A, none": before, "A, balanced": auc}
        return {name: {"fresh": {"auc": value, "recall": 0.5}} for name, value in both.items()}

    found = {"rare | s | 0": record(0.9, 0.8), "rare | s | 1": record(0.7, 0.8), "rare | s | 2": record(0.8, 0.8)}
    assert rare.summary(found)["rare"]["s"]["A, balanced"]["fresh"]["seeds"] == 2
