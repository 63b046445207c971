"""Time per sample of every algorithm: engine in chunks, engine row by row, NumPy rounds, side by side in one run.

Absolute times move with the machine and with what else it does; the ratios within one run are what counts.
"""

import time
from collections.abc import Callable
from typing import TypedDict

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table
from threadpoolctl import threadpool_limits

from omkl._version import __version__
from omkl.arrays import Matrix, Vector
from omkl.engine import instruction_set
from omkl.lab.entrants import NAMES
from omkl.online import Backend, Online
from omkl.settings import LearnerName, Settings

FEATURES = 15  # d
ROWS = 400  # of every replay; OMKR's cost grows with them
REPLAYS = {"chunk": 20, "row": 10, "numpy": 2}  # the quickest counts
HORIZON = 11_934  # the paper's longest stream sets the step, so that nobody diverges on noise


class Timing(TypedDict):
    """Microseconds per sample of one algorithm."""

    algorithm: str
    chunk: float  # engine, all rows in one call
    row: float  # engine, one call of Online.learn per row
    numpy: float  # NumPy rounds


class Results(TypedDict):
    command: str
    version: str
    instruction_set: str
    kernels: int
    random_features: int
    out_degree: int
    features: int
    rows: int
    timings: list[Timing]


def ticks() -> int:
    """How often `run` will tick."""
    return len(NAMES) * sum(REPLAYS.values())


def run(tick: Callable[[int], object] = lambda count: None) -> Results:
    settings = Settings.paper(HORIZON)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((ROWS, FEATURES)) / 8
    y = 0.5 + np.tanh(X.sum(axis=1)) / 2
    with threadpool_limits(1):
        timings = [timing(learner, settings, X, y, tick) for learner in NAMES]
    return {
        "command": "omkl bench",
        "version": __version__,
        "instruction_set": instruction_set(),
        "kernels": len(list(settings.kernels)),
        "random_features": settings.n_features,
        "out_degree": settings.out_degree,
        "features": FEATURES,
        "rows": ROWS,
        "timings": timings,
    }


def timing(learner: LearnerName, settings: Settings, X: Matrix, y: Vector, tick: Callable[[int], object]) -> Timing:
    def whole(online: Online) -> None:
        online.run(X, y)

    def one_by_one(online: Online) -> None:
        for x_t, y_t in zip(X, y, strict=True):
            online.learn(x_t, y_t)

    def quickest(way: Callable[[Online], None], backend: Backend, replays: int) -> float:
        best = np.inf
        for _ in range(replays):
            online = Online.make(learner, settings, FEATURES, backend=backend)
            begin = time.perf_counter()
            way(online)
            best = min(best, time.perf_counter() - begin)
            tick(1)
        return 1e6 * best / len(y)

    return {
        "algorithm": NAMES[learner],
        "chunk": quickest(whole, "engine", REPLAYS["chunk"]),
        "row": quickest(one_by_one, "engine", REPLAYS["row"]),
        "numpy": quickest(whole, "rounds", REPLAYS["numpy"]),
    }


def show(results: Results, console: Console) -> None:
    out = Table(
        title=f"microseconds per sample: N = {results['kernels']} kernels, D = {results['random_features']}, "
        f"M = {results['out_degree']}, d = {results['features']}, {results['rows']} rows",
        caption=f"one core, {results['instruction_set']}; a row call is Online.learn, which also predicts; "
        "OMKR keeps every row",
        title_justify="left",
        caption_justify="left",
        box=box.SIMPLE_HEAD,
    )
    out.add_column("algorithm", no_wrap=True)
    for name in ("engine, chunk", "engine, row", "NumPy", "NumPy/chunk", "NumPy/row"):
        out.add_column(name, justify="right", no_wrap=True)
    for t in results["timings"]:
        out.add_row(
            t["algorithm"], f"{t['chunk']:.2f}", f"{t['row']:.2f}", f"{t['numpy']:.0f}",
            f"{t['numpy'] / t['chunk']:.0f} x", f"{t['numpy'] / t['row']:.0f} x",
        )  # fmt: skip
    console.print()
    console.print(out)
