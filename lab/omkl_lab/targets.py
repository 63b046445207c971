"""The cost of several targets: python -m omkl_lab.targets

One target, five in one estimator, and five estimators: processor time of a chunk of rows, and memory of what has
learned it, in one run. Writes results/targets.json, and from it a table in docs/interfaces.md.
"""

import gc
import time
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np

import omkl
from omkl.arrays import Matrix
from omkl_lab import markdown
from omkl_lab.commands import run_without_arguments
from omkl_lab.files import write_json

RESULTS, PAGE = Path("results/targets.json"), Path("docs/interfaces.md")
COMMAND = "python -m omkl_lab.targets"
ROWS, D, OUTPUTS, REPEATS = 2000, 15, 5, 5
LEARNERS = {"GraphMKL": omkl.GraphMKLRegressor, "SFG-MKL": omkl.SFGMKLRegressor, "Raker": omkl.RakerRegressor}


def data(rows: int, outputs: int) -> tuple[Matrix, Matrix]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, D))
    return X, np.sin(X @ rng.normal(size=(D, outputs))) + 0.1 * rng.normal(size=(rows, outputs))


def learned(learner: Any, X: Matrix, Y: Matrix, together: bool) -> list[Any]:
    """One estimator for all targets, or one for each."""
    if together:
        return [learner(random_state=0).partial_fit(X, Y if Y.shape[1] > 1 else Y[:, 0])]
    return [learner(random_state=0).partial_fit(X, y) for y in Y.T]


def micros(learner: Any, X: Matrix, Y: Matrix, together: bool) -> float:
    """Microseconds of processor time for a row and all its targets, the best of several passes."""
    times = []
    for _ in range(REPEATS):
        start = time.process_time()
        learned(learner, X, Y, together)
        times.append(time.process_time() - start)
    return 1e6 * min(times) / len(X)


def size(learner: Any, X: Matrix, Y: Matrix, together: bool) -> int:
    """Bytes."""
    gc.collect()
    tracemalloc.start()
    models = learned(learner, X, Y, together)
    gc.collect()
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    del models
    return held


def measured(rows: int = ROWS) -> dict[str, dict[str, list[float]]]:
    """(microseconds, bytes) by learner and case."""
    X, Y = data(rows, OUTPUTS)
    cases = {"1 target": (Y[:, :1], True), f"{OUTPUTS} targets": (Y, True), f"{OUTPUTS} estimators": (Y, False)}
    return {
        name: {case: [micros(learner, X, *what), size(learner, X, *what)] for case, what in cases.items()}
        for name, learner in LEARNERS.items()
    }


def quoted(results: dict[str, Any]) -> dict[str, str]:
    """The generated part of docs/interfaces.md."""
    rows = [(name, case, f"{time:.1f}", f"{held / 1000:.0f}")
            for name, cases in results.items() for case, (time, held) in cases.items()]  # fmt: skip
    head = (f"chunks, {D} features", "", "microseconds for a row with all its targets", "kB")
    return {"targets": markdown.table(head, rows, left=2)}


def main() -> None:
    results = measured()
    write_json(RESULTS, results)
    markdown.fill(PAGE, quoted(results), COMMAND)
    print(quoted(results)["targets"])


if __name__ == "__main__":
    run_without_arguments("omkl_lab.targets", __doc__, main)
