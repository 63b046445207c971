"""Compares the paper's complexity statements with the exponents of the measured time per sample."""

import time
from collections.abc import Callable
from typing import Any, TypedDict

import numpy as np

from omkl import algorithms
from omkl.algorithms.settings import Settings
from omkl.kernels import Gaussian, log_grid
from omkl.online import Online
from omkl_lab.configurations import NAMES
from omkl_lab.reproduce.theory.bounds import growth

ROWS, REPLAYS = 300, 5  # the fastest repetition counts
HORIZON = 10_000
BASE = {"d": 15, "D": 50, "N": 41, "M": 5, "t": 0}
VALUES = {
    "d": (8, 16, 32, 64, 128),
    "D": (32, 64, 128, 256, 512),
    "N": (20, 40, 80, 160),
    "M": (2, 5, 10, 20, 40),
    "t": (500, 1000, 2000, 4000),
}
# Printed exponents of the per-sample cost. SFG-MKL-R's is its worst case; M of OMKL-GF is its number of draws.
PRINTED: dict[str, tuple[str, dict[str, float]]] = {
    "omkr": ("O(t d N)", {"t": 1, "d": 1, "N": 1}),
    "rfomkr": ("O(d D N)", {"d": 1, "D": 1, "N": 1}),
    "raker": ("O(d D N)", {"d": 1, "D": 1, "N": 1}),
    "omkl-gf": ("O(d D M + J N)", {"d": 1, "D": 1, "M": 1, "N": 0}),
    "sfg-mkl": ("O(d D M)", {"d": 1, "D": 1, "M": 1, "N": 0}),
    "sfg-mkl-r": ("O(d D N), worst case", {"d": 1, "D": 1, "M": 0, "N": 1}),
}


class Exponent(TypedDict):
    algorithm: str
    printed: str
    factor: str
    expected: float
    fitted: float
    low: float
    high: float
    values: list[int]
    microseconds: list[float]


def ticks() -> int:
    return sum(len(VALUES[factor]) for _, factors in PRINTED.values() for factor in factors)


def measure(tick: Callable[[int], object]) -> list[Exponent]:
    out: list[Exponent] = []
    for learner, (printed, factors) in PRINTED.items():
        for factor, expected in factors.items():
            times = []
            for value in VALUES[factor]:
                times.append(microseconds(learner, {**BASE, factor: value}))
                tick(1)
            fit = growth(np.array(VALUES[factor], dtype=float), np.array(times))
            assert fit is not None
            out.append({
                "algorithm": NAMES[learner], "printed": printed, "factor": factor, "expected": expected,
                "fitted": fit.exponent, "low": fit.low, "high": fit.high, "values": list(VALUES[factor]),
                "microseconds": times,
            })  # fmt: skip
    return out


def microseconds(learner: str, size: dict[str, int]) -> float:
    """Processor microseconds per sample on one core."""
    d, D, N, M, t = (size[name] for name in "dDNMt")
    settings = Settings.paper(
        HORIZON, kernels=log_grid(Gaussian, 0.1, 10.0, N), n_features=D, out_degree=M, draws=2 * M
    )
    rng = np.random.default_rng(0)
    start = (t or 1000) if learner == "omkr" else 0  # OMKR's cost depends on the number of stored samples
    rows = 40 if learner == "omkr" else ROWS
    X = rng.standard_normal((start + rows, d)) / np.sqrt(4 * d)
    y = 0.5 + np.tanh(X.sum(axis=1)) / 2
    problem: Any = algorithms.problem(learner, settings, d)
    best = np.inf
    online = Online(learner, problem, 0)
    if start:
        online.run(X[:start], y[:start])
    for _ in range(REPLAYS):
        copy = online.copy()
        begin = time.thread_time()
        copy.run(X[start:], y[start:])
        best = min(best, time.thread_time() - begin)
    return 1e6 * best / rows
