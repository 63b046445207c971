"""What a user would pick instead, each predicting and then learning on the same streams."""

import warnings

from omkl.arrays import Matrix, Vector
from omkl_lab.data.sets import at_hand
from omkl_lab.parallel import Record
from omkl_lab.peers.courses import task_of
from omkl_lab.peers.job import cell
from omkl_lab.peers.learners import LEARNERS

COURSES = ("airfoil", "naval", "bias", "switch")
ROWS = 1500  # of every course, for everybody
AGAINST = "river RBF + linear, step 5e-4"  # among the peers the most like us: random features, one kernel
FEW = ("omkl SFG-MKL", "running mean", "river linear")  # for a quick look


def runs(quick: bool) -> list[tuple[str, str]]:
    """(course, learner): the courses that are at hand and the learners that run on them."""
    return [
        (course, learner.name)
        for course in (COURSES if not quick else ("switch",))
        if task_of(course) == "drift" or at_hand(course)
        for learner in LEARNERS.values()
        if task_of(course) in learner.tasks and (not quick or learner.name in FEW)
    ]


def left_out() -> list[str]:
    """Courses whose data are not at hand."""
    return [course for course in COURSES if not (task_of(course) == "drift" or at_hand(course))]


def beside(course: str, learner: str, rows: int) -> Record:
    """One line: error and microseconds, or why there are none. Ours is the median of three seeds."""
    return cell(course, learner, rows, 3 if LEARNERS[learner].seeded else 1)[0]


def against(X: Matrix, y: Vector) -> float | None:
    """Microseconds per sample of river's RBFSampler pipeline, at best of three; None where river is missing."""
    learner = LEARNERS[AGAINST]
    if learner.absent:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return min(1e6 * learner.run(X, y, 0, "numbers").seconds / len(y) for _ in range(3))
