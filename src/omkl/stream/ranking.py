"""How well probabilities rank rows, from counts of bounded size: the area under the ROC curve, precision and recall."""

from typing import TypedDict

import numpy as np

from omkl.arrays import Index, Mask, Vector

BINS = 512
LARGEST_LOG_ODDS = 16.0  # probabilities beyond it share the outermost bins


class LabelErrors(TypedDict):
    """How well one label is recognised; None where nothing can be said."""

    rows: int  # with this label
    precision: float | None  # of the rows predicted to have it, the share that does
    recall: float | None  # of the rows that have it, the share predicted to
    auc: float | None


def count(counts: Index, probability: Vector, has_label: Mask) -> None:
    """Add rows to counts (2, BINS): those without the label, and those with it, by its predicted probability.

    Bins are equally wide in the log-odds, so that rare labels, whose probabilities are all small, are ranked too.
    """
    p = np.clip(probability, 1e-300, 1 - 1e-16)
    log_odds = np.log(p) - np.log1p(-p)
    place = np.clip((log_odds / LARGEST_LOG_ODDS + 1) * (BINS / 2), 0, BINS - 1).astype(np.int64)
    for k in range(2):
        counts[k] += np.bincount(place[has_label == bool(k)], minlength=BINS)


def auc(counts: Index) -> float | None:
    """The probability that a row with the label ranks above one without it; rows of one bin count half.

    >>> counts = np.zeros((2, BINS), dtype=np.int64)
    >>> count(counts, np.array([0.1, 0.4, 0.35, 0.8]), np.array([False, False, True, True]))
    >>> auc(counts)
    0.75
    """
    without, having = counts[0].astype(float), counts[1].astype(float)
    pairs = without.sum() * having.sum()
    if not pairs:
        return None
    below = np.cumsum(without) - without
    return float((having * (below + without / 2)).sum() / pairs)


def precision_recall(confusion: Index, k: int) -> tuple[float | None, float | None]:
    """Of label k, from counts of (true, predicted) labels.

    >>> precision_recall(np.array([[8, 2], [1, 3]]), 1)
    (0.6, 0.75)
    """
    hits, predicted, true = int(confusion[k, k]), int(confusion[:, k].sum()), int(confusion[k].sum())
    return hits / predicted if predicted else None, hits / true if true else None
