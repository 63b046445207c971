"""Mean ranks of learners over streams, and which differences between them are significant."""

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from scipy.stats import friedmanchisquare, rankdata, wilcoxon

from omkl.arrays import Matrix, Vector

ALPHA = 0.05


class Ranking(NamedTuple):
    """Learners by mean rank, the best first."""

    learners: list[str]
    ranks: Vector  # mean rank of each
    streams: int
    friedman: float  # p-value of the hypothesis that all are alike
    adjusted: Matrix  # (learners, learners) p-values of Wilcoxon's signed-rank test, Holm's correction

    @property
    def cliques(self) -> list[tuple[int, int]]:
        """First and last of the largest groups of neighbours in which no pair differs significantly."""
        found: list[tuple[int, int]] = []
        for first in range(len(self.learners)):
            last = first
            while last + 1 < len(self.learners) and (self.adjusted[first : last + 1, last + 1] > ALPHA).all():
                last += 1
            if last > first and not any(last <= end for _, end in found):
                found.append((first, last))
        return found


def holm(p: Sequence[float]) -> Vector:
    """Holm's step-down correction.

    >>> holm([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(p)
    steps = np.maximum.accumulate(np.asarray(p)[order] * np.arange(len(p), 0, -1))
    out = np.empty(len(p))
    out[order] = np.minimum(steps, 1)
    return out


def ranking(errors: Mapping[str, Sequence[float]]) -> Ranking:
    """Rank learners by their errors on the same streams; an infinite error is a failure, and failures tie.

    >>> ranking({"a": [1.0, 2.0, 3.0], "b": [2.0, 3.0, math.inf], "c": [3.0, 4.0, math.inf]}).ranks.round(2).tolist()
    [1.0, 2.17, 2.83]
    """
    names = list(errors)
    table = np.array([errors[name] for name in names])
    ranks = rankdata(table, axis=0).mean(axis=1)
    order = np.argsort(ranks, kind="stable")
    table, names = table[order], [names[k] for k in order]
    adjusted = np.ones((len(names), len(names)))
    pairs = list(combinations(range(len(names)), 2))
    if pairs and table.shape[1] > 1:
        for (a, b), p in zip(pairs, holm([signed_rank(table[a], table[b]) for a, b in pairs]), strict=True):
            adjusted[a, b] = adjusted[b, a] = p
    friedman = float(friedmanchisquare(*rankdata(table, axis=0)).pvalue) if len(names) > 2 else math.nan
    return Ranking(names, ranks[order], table.shape[1], friedman, adjusted)


def signed_rank(a: Vector, b: Vector) -> float:
    """p-value of Wilcoxon's test on the logarithms of the errors, whose unit differs between streams."""
    with np.errstate(all="ignore"):
        gaps = np.log(np.maximum(a, 1e-300)) - np.log(np.maximum(b, 1e-300))
    gaps = np.where(np.isnan(gaps), 0, np.clip(gaps, -1e3, 1e3))  # two failures are alike
    return float(wilcoxon(gaps, zero_method="zsplit").pvalue) if gaps.any() else 1.0
