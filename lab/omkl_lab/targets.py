"""The cost of several targets: python -m omkl_lab.targets

One, two, five and ten targets, in one estimator and in an estimator each: processor time of a chunk of rows, and memory
of what has learned it, in one run. Writes results/targets.json, and from it a table in docs/interfaces.md.
"""

import gc
import time
import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import omkl
from omkl.arrays import Matrix
from omkl_lab import markdown
from omkl_lab.commands import run_without_arguments
from omkl_lab.files import write_json

RESULTS, PAGE = Path("results/targets.json"), Path("docs/interfaces.md")
COMMAND = "python -m omkl_lab.targets"
ROWS, D, REPEATS = 2000, 15, 2
OUTPUTS = (1, 2, 5, 10)
LEARNERS: dict[str, Callable[..., Any]] = {
    "GraphMKL": omkl.GraphMKLRegressor,
    "GraphMKL, budget 1.5": partial(omkl.GraphMKLRegressor, budget=1.5),
    "GraphMKL, small": partial(omkl.GraphMKLRegressor, budget="small"),
    "SFG-MKL": omkl.SFGMKLRegressor,
    "Raker": omkl.RakerRegressor,
}


class Cost(NamedTuple):
    micros: float  # of processor time, for a row and all its targets
    bytes: int


def data(rows: int, outputs: int) -> tuple[Matrix, Matrix]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, D))
    return X, np.sin(X @ rng.normal(size=(D, outputs))) + 0.1 * rng.normal(size=(rows, outputs))


def learned(learner: Callable[..., Any], X: Matrix, Y: Matrix, together: bool) -> list[Any]:
    """One estimator for all targets, or one for each."""
    if together:
        return [learner(random_state=0).partial_fit(X, Y if Y.shape[1] > 1 else Y[:, 0])]
    return [learner(random_state=0).partial_fit(X, y) for y in Y.T]


def micros(learner: Callable[..., Any], X: Matrix, Y: Matrix, together: bool) -> float:
    """The best of several passes."""
    times = []
    for _ in range(REPEATS):
        start = time.process_time()
        learned(learner, X, Y, together)
        times.append(time.process_time() - start)
    return 1e6 * min(times) / len(X)


def size(learner: Callable[..., Any], X: Matrix, Y: Matrix, together: bool) -> int:
    """Bytes."""
    gc.collect()
    tracemalloc.start()
    models = learned(learner, X, Y, together)
    gc.collect()
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    del models
    return held


def measured(rows: int = ROWS) -> dict[str, dict[str, list[Cost]]]:
    """By learner and number of targets, together and one by one."""
    return {
        name: {
            str(n): [Cost(micros(learner, X, Y, each), size(learner, X, Y, each)) for each in (True, False)]
            for n in OUTPUTS
            for X, Y in [data(rows, n)]
        }
        for name, learner in LEARNERS.items()
    }


def quoted(results: dict[str, Any]) -> dict[str, str]:
    """The generated part of docs/interfaces.md."""
    rows = []
    for name, cases in results.items():
        one = cases["1"][0][0]
        for n, ((together, held), (apart, held_apart)) in cases.items():
            times = f"{together:.1f}", f"{apart:.1f}", f"{together / one:.1f}"
            rows.append((name, n, *times, f"{held / 1e3:.0f}", f"{held_apart / 1e3:.0f}"))
    head = ("", "targets", "µs a row, together", "an estimator each", "together, times one target", "kB, together",
            "an estimator each")  # fmt: skip
    return {"targets": markdown.table(head, rows, left=1)}


def main() -> None:
    results = measured()
    write_json(RESULTS, results)
    markdown.fill(PAGE, quoted(results), COMMAND)
    print(quoted(results)["targets"])


if __name__ == "__main__":
    run_without_arguments("omkl_lab.targets", __doc__, main)
