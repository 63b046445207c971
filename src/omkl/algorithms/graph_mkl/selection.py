"""GraphMKL's selection: which experts are evaluated in a round.

All of them during the warm-up; then the leaders by evidence, and one explorer, drawn among the others where the graph
shows no neighbour of a leader. An explorer learns and gathers evidence, but is no part of the mixture until it leads.
The incumbent's large experts are always evaluated where there are any.
"""

from typing import NamedTuple

import numpy as np

from omkl.algorithms.graph_mkl.constants import CHALLENGER_WARM_UP_DIVISOR, MIN_ROW_SHARE, RANK_EVERY, SILENT_ROUNDS
from omkl.algorithms.graph_mkl.problem import Problem
from omkl.algorithms.graph_mkl.repeats import Weights
from omkl.arrays import Index, Mask, Vector


class Selection(NamedTuple):
    rank: Index  # (E,)  experts, that of most evidence first
    explorer: int


def init(problem: Problem) -> Selection:
    return Selection(np.arange(problem.first_large), 0)


def warm_up(problem: Problem, incumbent: bool) -> int:
    """Rounds in which all experts of a set are evaluated: a challenger has to know its own before its trial ends."""
    return problem.warm_up if incumbent else max(1, problem.warm_up // CHALLENGER_WARM_UP_DIVISOR)  # (G32)


def row_share(weights: Weights) -> float:
    """The share of the rows that their weights count for: where a few are heavy, these decide which expert is best."""
    return max(weights.mean**2 / weights.square, MIN_ROW_SHARE) if weights.square > 0 else 1.0  # (G32)


def chooses(problem: Problem, age: int, incumbent: bool, share: float) -> bool:
    """Whether only some of a set's experts are evaluated in the next round."""
    return not (age * share < warm_up(problem, incumbent) or problem.active >= problem.first_large)  # (G32)


def evaluated(problem: Problem, selection: Selection, age: int, incumbent: bool, share: float, ready: Mask) -> Mask:
    """(E,): experts of a set that are evaluated in the next round; none of a set that is not there.

    `ready`: the large experts that the incumbent has.
    """
    mask = np.zeros(problem.experts, dtype=bool)
    if age < 0:
        return mask
    if chooses(problem, age, incumbent, share):
        mask[selection.rank[: problem.active - 1]] = True
        mask[selection.explorer] = True
    else:
        mask[: problem.first_large] = True
    mask[problem.first_large :] = ready & incumbent
    return mask


def counted(
    problem: Problem, selection: Selection, age: int, incumbent: bool, share: float, ready: Mask, rounds: Index
) -> Mask:
    """(E,): those of them that are part of the mixture; `rounds`: in which each has been judged."""
    mask = evaluated(problem, selection, age, incumbent, share, ready)
    if age >= 0 and chooses(problem, age, incumbent, share):
        mask[selection.explorer] = False
    mask[problem.first_large :] &= rounds[problem.first_large :] >= SILENT_ROUNDS  # (G64)
    return mask & (incumbent or age >= SILENT_ROUNDS)  # (G32)


def update(
    problem: Problem, selection: Selection, evidence: Vector, age: int, incumbent: bool, uniform: float
) -> Selection:
    """The selection after a round that brought a set to this age."""
    warm = warm_up(problem, incumbent)
    if age < warm or problem.active >= problem.first_large:
        return selection
    rank = selection.rank
    if (age - warm) % RANK_EVERY == 0:
        rank = ranked(problem, evidence)
    return Selection(rank, explore(problem, rank, uniform))


def ranked(problem: Problem, evidence: Vector) -> Index:
    """Experts by evidence; the linear one first where it has sparse inputs, which take it long to learn."""
    first = problem.on_kernels if problem.sparse else -1
    E = problem.first_large
    return np.lexsort((-evidence[:E], np.arange(E) != first))  # (G33)


def explore(problem: Problem, rank: Index, uniform: float) -> int:
    """An expert that does not lead, where there is one on no neighbour of a kernel on which the same learner leads.

    Neighbours in the similarity graph (11) would predict much the same as the leader.
    """
    B = problem.learners
    leaders, others = rank[: problem.active - 1], np.sort(rank[problem.active - 1 :])
    near = {
        int(j) * B + int(e) % B
        for e in leaders
        if e < problem.on_kernels
        for j in np.flatnonzero(problem.graph.A[int(e) // B])
    }
    among = [e for e in others if int(e) not in near] or list(others)
    return int(among[min(int(uniform * len(among)), len(among) - 1)])  # (G34)
