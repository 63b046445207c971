"""Importance against functions whose inputs are known, sums of contributions, and what explanations cost.

python -m omkl_lab.explanations

Names of functions as arguments measure these alone again, and keep the rest of the results.
"""

import math
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import make_friedman1, make_friedman2, make_friedman3

from omkl import GraphMKLClassifier, GraphMKLRegressor, RakerRegressor
from omkl.arrays import Matrix, Vector
from omkl_lab import markdown
from omkl_lab.commands import run_without_arguments
from omkl_lab.files import brief, read_json, write_json
from omkl_lab.parallel import Unit, run_parallel

RESULTS, PAGE = Path("results/explanations.json"), Path("docs/explain.md")
COMMAND = "python -m omkl_lab.explanations"
ROWS, SEEDS, EXPLAINED = 2000, 3, 5
COSTS = (5, 10, 30, 100)  # columns

Function = Callable[[Matrix], Vector]


def friedman(
    make: Callable[..., tuple[Matrix, Vector]], scale: float
) -> Callable[[int, int, int], tuple[Matrix, Vector]]:
    """A function of scikit-learn, whose inputs come first, with further inputs that it does not use."""

    def made(rows: int, d: int, seed: int) -> tuple[Matrix, Vector]:
        X, y = make(rows, noise=scale, random_state=seed)
        more = np.random.default_rng(seed).uniform(X.min(axis=0)[0], X.max(axis=0)[0], (rows, max(d - X.shape[1], 0)))
        return np.hstack((X, more))[:, :d], y

    return made


def uniform(f: Function, noise: float = 0.1) -> Callable[[int, int, int], tuple[Matrix, Vector]]:
    """A function of inputs that are uniform between -1 and 1."""

    def made(rows: int, d: int, seed: int) -> tuple[Matrix, Vector]:
        rng = np.random.default_rng(seed)
        X = rng.uniform(-1, 1, (rows, d))
        return X, f(X) + noise * rng.standard_normal(rows)

    return made


# How the rows are made, the number of inputs, and those that matter: whose total effect on the function without noise
# is at least 5 % of its standard deviation. By Friedman's formulas his second function has 2.5 % of its first input and
# 0.00009 % of its fourth, his third 0.002 % of its fourth.
FUNCTIONS: dict[str, tuple[Callable[[int, int, int], tuple[Matrix, Vector]], int, tuple[int, ...]]] = {
    "Friedman 1": (friedman(make_friedman1, 1.0), 10, (0, 1, 2, 3, 4)),
    "Friedman 2": (friedman(make_friedman2, 50.0), 12, (1, 2)),
    "Friedman 3": (friedman(make_friedman3, 0.1), 12, (0, 1, 2)),
    "linear": (uniform(lambda X: 2 * X[:, 3] - X[:, 7] + 0.5 * X[:, 11]), 20, (3, 7, 11)),
    "product of two": (uniform(lambda X: 2 * X[:, 2] * X[:, 5]), 10, (2, 5)),
    "product of three": (uniform(lambda X: 4 * X[:, 0] * X[:, 4] * X[:, 8]), 10, (0, 4, 8)),
    "sines": (uniform(lambda X: np.sin(3 * X[:, 1]) + np.cos(5 * X[:, 6])), 30, (1, 6)),
    "steps": (uniform(lambda X: np.sign(X[:, 0]) + 2 * (X[:, 9] > 0.3) * (X[:, 5] > 0)), 15, (0, 5, 9)),
    "radius": (uniform(lambda X: np.sqrt((X[:, 1:5] ** 2).sum(axis=1))), 20, (1, 2, 3, 4)),
    "switch": (uniform(lambda X: np.where(X[:, 2] > 0, X[:, 10], -X[:, 20]) * 2), 25, (2, 10, 20)),
}  # fmt: skip


def judged(name: str, seeds: int = SEEDS) -> list[dict[str, Any]]:
    """A record with the ranks of the inputs of a function, for each seed."""
    make, d, relevant = FUNCTIONS[name]
    first, ratios, errors = [], [], []
    for seed in range(seeds):
        X, y = make(ROWS + EXPLAINED, d, seed)
        model = GraphMKLRegressor(random_state=seed).partial_fit(X[:ROWS], y[:ROWS])
        found = model.importance_
        values = np.array([found[str(k)] for k in range(d)])
        others = np.delete(values, relevant)
        first.append(bool(values[list(relevant)].min() > others.max()))
        ratios.append(float(values[list(relevant)].min() / others.max()))
        explained = model.explain(X[ROWS:])
        total = explained.base + explained.contributions.sum(axis=1)
        errors.append(float(np.abs(total - model.predict(X[ROWS:])).max()))
    return [{"function": name, "inputs": d, "relevant": len(relevant), "first": first,
             "ratio": [brief(r) for r in ratios], "error": max(errors)}]  # fmt: skip


def cost(learner: str, d: int) -> list[dict[str, Any]]:
    """A record with processor time, in microseconds: of a row learned, predicted and explained, and of importance."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (ROWS + EXPLAINED, d))
    y = np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2]
    if learner == "GraphMKLClassifier":
        model: Any = GraphMKLClassifier(random_state=0)
        y = np.where(y > 0, "a", "b")
    else:
        model = {"GraphMKLRegressor": GraphMKLRegressor, "RakerRegressor": RakerRegressor}[learner](random_state=0)
    options = {"classes": ["a", "b"]} if learner == "GraphMKLClassifier" else {}

    def microseconds(work: Callable[[], object], n: int) -> float:
        began = time.process_time()
        work()
        return float(f"{1e6 * (time.process_time() - began) / n:.3g}")

    return [{
        "learner": learner, "columns": d,
        "learned": microseconds(lambda: model.partial_fit(X[:ROWS], y[:ROWS], **options), ROWS),
        "predicted": microseconds(lambda: model.predict(X[:1000]), 1000),
        "explained": microseconds(lambda: model.explain(X[ROWS:]), EXPLAINED),
        "importance": microseconds(lambda: model.importance_, 1),
    }]  # fmt: skip


def quoted(results: Mapping[str, Any]) -> dict[str, str]:
    """The generated parts of docs/explain.md."""
    lines = results["functions"]
    rows = [
        [line["function"], f"{line['relevant']} of {line['inputs']}", f"{sum(line['first'])} of {len(line['first'])}",
         f"{np.median(line['ratio']):.3g}"]
        for line in lines
    ]  # fmt: skip
    always = sum(all(line["first"]) for line in lines)
    mostly = sum(2 * sum(line["first"]) > len(line["first"]) for line in lines)
    worst = max(line["error"] for line in lines)
    judged_part = (
        f"{markdown.table(['function', 'inputs that matter', 'seeds in which they come first', 'ratio'], rows)}\n"
        f"The ratio is the median, over {results['seeds']} seeds, of the least importance of an input that matters to "
        f"the largest of one that does not. After {results['rows']:,} rows the inputs that matter come first on "
        f"{mostly} of {len(lines)} functions in most seeds, and on {always} in all of them. Base value and "
        f"contributions summed to the predictions with a largest error of {worst:.1e}."
    )
    head = ["learner", "columns", "a row learned", "predicted", "explained", "importance"]
    times = [
        [line["learner"], str(line["columns"]), *(shown(line[what]) for what in ("learned", "predicted", "explained",
                                                                                "importance"))]
        for line in results["costs"]
    ]  # fmt: skip
    return {"known": judged_part, "cost": markdown.table(head, times)}


def shown(microseconds: float) -> str:
    """A time as people read it.

    >>> shown(71.3), shown(71_300)
    ('71 µs', '71 ms')
    """
    digits = 2 - math.floor(math.log10(max(microseconds, 1e-9))) - 1
    if microseconds < 1000:
        return f"{round(microseconds, max(digits, 0)):g} µs"
    return f"{float(f'{microseconds / 1000:.2g}'):g} ms"


def main() -> None:
    chosen = sys.argv[1:]
    units = [Unit((name,), judged, {"name": name}) for name in chosen or FUNCTIONS]
    found = {keys[0]: records[0] for keys, records in run_parallel(units, 1, prefer="processes")}
    learners = ("GraphMKLRegressor", "GraphMKLClassifier", "RakerRegressor")
    before = read_json(RESULTS) if chosen else {"functions": [], "costs": []}
    found = {line["function"]: line for line in before["functions"]} | found
    results = {
        "command": COMMAND, "rows": ROWS, "seeds": SEEDS, "functions": [found[name] for name in FUNCTIONS],
        "costs": before["costs"] or [cost(learner, d)[0] for learner in learners for d in COSTS],
    }  # fmt: skip
    write_json(RESULTS, results)
    markdown.fill(PAGE, quoted(results), COMMAND)
    print("\n\n".join(quoted(results).values()))


if __name__ == "__main__":
    run_without_arguments("omkl_lab.explanations", __doc__, main)
