"""The overhead of the interfaces: python -m omkl_lab.interfaces

Times single rows through the river API, river's own StandardScaler | LinearRegression, `Online` and the
engine, and the memory of every learner, all in one run. Writes results/interfaces.json, and from it the tables
in docs/interfaces.md.
"""

import gc
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from omkl import algorithms, engine
from omkl.algorithms.graph_mkl.settings import GraphSettings
from omkl.algorithms.settings import Settings
from omkl.online import Online
from omkl_lab import markdown
from omkl_lab.commands import run_without_arguments
from omkl_lab.files import write_json

RESULTS, PAGE = Path("results/interfaces.json"), Path("docs/interfaces.md")
COMMAND = "python -m omkl_lab.interfaces"
N, D, d, ROWS = 41, 50, 15, 2000
FORMULAE = {
    "omkr": "8 t (N + d), t samples so far",
    "rfomkr": "8 N D (d + 2)",
    "raker": "8 N D (d + 2)",
    "omkl-gf": "8 N D (d + 2)",
    "sfg-mkl": "8 N D (d + 2) + 9 N^2",
    "sfg-mkl-r": "8 N D (d + 2) + 9 N^2",
    "graph-mkl, small budget": "64 N D^2 + 8 N D (d + 2 (1 + B) K) + 16 * 1280 (d + K)",
}


def best_of(job: Callable[[], object], rows: int, repeats: int = 5) -> float:
    """Microseconds of processor time per row, the best of several passes."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        job()
        times.append(time.process_time() - start)
    return 1e6 * min(times) / rows


def speed() -> dict[str, float]:
    from river import linear_model, preprocessing

    import omkl.river

    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(ROWS, d)), rng.normal(size=ROWS)
    rows = [{f"x{k}": float(v) for k, v in enumerate(x)} for x in X]
    targets = y.tolist()

    def loop(model: Any) -> Callable[[], None]:
        def run() -> None:
            for x, target in zip(rows, targets, strict=True):
                model.predict_one(x)
                model.learn_one(x, target)

        return run

    river_model = preprocessing.StandardScaler() | linear_model.LinearRegression()
    online = Online.make("sfg-mkl", Settings(), d, 0)
    uniforms, sfg_mkl = np.full(ROWS, 0.5), algorithms.get("sfg-mkl")
    runner = engine.runner(
        engine.compile_problem("sfg-mkl", sfg_mkl.native, online.problem), sfg_mkl.native, online.problem, online.state
    )

    def through_online() -> None:
        for x, target in zip(X, targets, strict=True):
            online.learn(x, target)

    def through_engine() -> None:
        runner.supply(uniforms)
        for x, target in zip(X, targets, strict=True):
            runner.learn(x, target, 1.0)

    return {
        "river StandardScaler | LinearRegression": best_of(loop(river_model), ROWS),
        "river API, SFG-MKL": best_of(loop(omkl.river.SFGMKLRegressor(seed=0)), ROWS),
        "river API, GraphMKL, small budget": best_of(loop(omkl.river.GraphMKLRegressor(seed=0, budget="small")), ROWS),
        "river API, GraphMKL": best_of(loop(omkl.river.GraphMKLRegressor(seed=0)), ROWS),
        "Online.learn": best_of(through_online, ROWS),
        "engine, one row": best_of(through_engine, ROWS),
        "engine, chunk": best_of(lambda: online.run(X, y), ROWS),
    }


def memory() -> dict[str, int]:
    """Bytes of a learner with (N, D, d) = (41, 50, 15) after 2000 rows; GraphMKL has its own kernels, and a
    small budget, since what grows is not in the formula.
    """
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(ROWS, d)), rng.normal(size=ROWS)
    held: dict[str, int] = {}
    for learner in FORMULAE:
        name, *small = learner.split(", ")
        settings = GraphSettings(budget="small") if small else Settings()
        Online.make(name, settings, d, 0).run(X[:10], y[:10])  # what is imported or cached stays
        gc.collect()
        tracemalloc.start()
        online = Online.make(name, settings, d, 0)
        online.run(X, y)
        gc.collect()
        held[learner] = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        del online
    return held


def quoted(results: dict[str, Any]) -> dict[str, str]:
    """The generated part of docs/interfaces.md."""
    return {"interfaces": tables(results)}


def tables(results: dict[str, Any]) -> str:
    speed = [(markdown.escaped(name), f"{micros:.2f}") for name, micros in results["speed"].items()]
    held = []
    for learner, size in results["memory"].items():
        notes = {"graph-mkl, small budget": f" ({len(GraphSettings().all_kernels)} kernels)", "omkr": f" (t = {ROWS})"}
        held.append((learner, FORMULAE[learner], f"{size / 1000:.0f} kB{notes.get(learner, '')}"))
    return "\n".join((
        markdown.table((f"one row at a time, {d} features", "microseconds"), speed),
        markdown.table(("learner", "bytes, as a formula", f"measured, N = {N}, D = {D}, d = {d}"), held, left=2),
    ))  # fmt: skip


def main() -> None:
    results = {"speed": speed(), "memory": memory()}
    RESULTS.parent.mkdir(exist_ok=True)
    write_json(RESULTS, results)
    markdown.fill(PAGE, quoted(results), COMMAND)
    print(tables(results))


if __name__ == "__main__":
    run_without_arguments("omkl_lab.interfaces", __doc__, main)
