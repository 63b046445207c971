"""Other libraries' learners, timed on the same streams: each row is predicted, then learned."""

import warnings

from omkl.arrays import Matrix, Vector
from omkl_lab.data.sets import is_available
from omkl_lab.parallel import Record
from omkl_lab.peers.job import evaluate_by_name
from omkl_lab.peers.learners import LEARNERS
from omkl_lab.peers.streams import task_of

STREAMS = ("airfoil", "naval", "bias", "switch")
ROWS = 1500  # of every stream, for all learners
REFERENCE = "river RBF + linear, step 5e-4"  # the peer most similar to SFG-MKL: random features of one kernel
QUICK_LEARNERS = ("omkl SFG-MKL", "running mean", "river linear")  # with --quick


def runs(quick: bool) -> list[tuple[str, str]]:
    """(stream, learner) for the available streams and the learners that run on them."""
    return [
        (stream, learner.name)
        for stream in (STREAMS if not quick else ("switch",))
        if task_of(stream) == "drift" or is_available(stream)
        for learner in LEARNERS.values()
        if task_of(stream) in learner.tasks and (not quick or learner.name in QUICK_LEARNERS)
    ]


def unavailable() -> list[str]:
    """Streams whose data set is not found."""
    return [stream for stream in STREAMS if not (task_of(stream) == "drift" or is_available(stream))]


def evaluate_peer(stream: str, learner: str, rows: int) -> Record:
    """Error and microseconds per row, or why there are none; for seeded learners the median of three seeds."""
    return evaluate_by_name(stream, learner, rows, 3 if LEARNERS[learner].seeded else 1)[0]


def river_rbf_time(X: Matrix, y: Vector) -> float | None:
    """Microseconds per sample of river's RBFSampler pipeline, best of three; None if river is not installed."""
    learner = LEARNERS[REFERENCE]
    if learner.absent:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return min(1e6 * learner.run(X, y, 0, "numbers").seconds / len(y) for _ in range(3))
