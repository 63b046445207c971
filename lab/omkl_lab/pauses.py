"""How long a single learn_one takes at most, and what a model holds: python -m omkl_lab.pauses

GraphMKL learns 100,000 rows one by one, for each budget and task in a process of its own. Writes results/pauses.json,
and from it the table in docs/budget.md. Takes about five minutes.
"""

import tempfile
import time
from collections.abc import Hashable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

import omkl
import omkl.river
from omkl_lab import machine, markdown
from omkl_lab.commands import run_without_arguments
from omkl_lab.files import write_json

ROWS, INPUTS, LABELS = 100_000, 10, 10
SLOW = 5e-3  # seconds
BUDGETS, TASKS = ("small", "standard", "large"), ("numbers", f"{LABELS} labels")
RESULTS, PAGE = Path("results/pauses.json"), Path("docs/budget.md")
COMMAND = "python -m omkl_lab.pauses"


def stream(labels: bool, rows: int) -> tuple[Any, Any]:
    """Friedman's function, or the nearest of thirty centres, each of which has a label."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(rows, INPUTS))
    if labels:
        centres = rng.uniform(size=(3 * LABELS, INPUTS))
        return X, np.array([int(np.argmin(((centres - x) ** 2).sum(axis=1))) % LABELS for x in X])
    smooth = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]
    return X, smooth + rng.standard_normal(rows)


def measured(budget: str, task: str, rows: int = ROWS) -> dict[str, float]:
    """Of every learn_one the processor time of its thread, which other programs do not lengthen."""
    labels = task != "numbers"
    X, y = stream(labels, rows)
    names = [f"x{k}" for k in range(INPUTS)]
    model = (omkl.river.GraphMKLClassifier if labels else omkl.river.GraphMKLRegressor)(seed=0, budget=budget)
    before = machine.resident()
    seconds = np.empty(rows)
    for i, (row, target) in enumerate(zip(X.tolist(), y.tolist(), strict=True)):
        x: dict[Hashable, object] = dict(zip(names, row, strict=True))
        start = time.thread_time()
        model.learn_one(x, target)
        seconds[i] = time.thread_time() - start
    with tempfile.TemporaryDirectory() as folder:
        omkl.save(model, path := Path(folder) / "model")
        size = path.stat().st_size
    return {
        "median": float(np.median(seconds)), "rare": float(np.quantile(seconds, 0.999)),
        "longest": float(seconds.max()), "at": int(seconds.argmax()) + 1, "slow": int((seconds > SLOW).sum()),
        "memory": machine.resident() - before, "file": size,
    }  # fmt: skip


def tables(results: dict[str, Any]) -> str:
    rows = [
        (
            escaped(budget), task, f"{1e6 * found['median']:.0f} µs", f"{1e3 * found['rare']:.2f} ms",
            f"{1e3 * found['longest']:.1f} ms", f"{found['at']:,}", f"{found['slow']:,}",
            f"{found['memory'] / 1e6:.0f} MB", f"{found['file'] / 1e6:.1f} MB",
        )
        for task, budgets in results["tasks"].items() for budget, found in budgets.items()
    ]  # fmt: skip
    head = (
        "`budget`", "task", "median", "99.9 %", "longest", "at row", f"rows above {1e3 * SLOW:.0f} ms", "memory",
        "model file",
    )  # fmt: skip
    note = (
        f"`learn_one` of the river API over {ROWS:,} rows with {INPUTS} inputs, processor time of its thread; "
        "memory is what the process held more at the end."
    )
    return f"{note}\n\n{markdown.table(head, rows, left=2)}"


def escaped(budget: str) -> str:
    return f'`"{budget}"`'


def quoted(results: dict[str, Any]) -> dict[str, str]:
    """The generated part of docs/budget.md."""
    return {"pauses": tables(results)}


def main() -> None:
    results: dict[str, Any] = {"machine": machine.described(), "tasks": {}}
    for task in TASKS:
        results["tasks"][task] = {}
        for budget in BUDGETS:
            with ProcessPoolExecutor(1, get_context("spawn")) as one:  # so that memory is this model's alone
                results["tasks"][task][budget] = found = one.submit(measured, budget, task).result()
            print(f"{task}, {budget}: longest {1e3 * found['longest']:.1f} ms", flush=True)
    write_json(RESULTS, results)
    markdown.fill(PAGE, quoted(results), COMMAND)


if __name__ == "__main__":
    run_without_arguments("omkl_lab.pauses", __doc__, main)
