"""Rows with few of very many features: python -m omkl_lab.wide

GraphMKL and river's linear models on words that come over time, on one-hot users, and on a million distinct words: time
of `predict_one` and `learn_one` with all growth, error, and memory, in one run. Writes results/wide.json, and from it a
table in docs/many_features.md.
"""

import gc
import time
import tracemalloc
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from river import linear_model, preprocessing

import omkl.river
from omkl.errors import SharedFeaturesWarning
from omkl_lab import markdown
from omkl_lab.commands import run_without_arguments
from omkl_lab.files import write_json

RESULTS, PAGE = Path("results/wide.json"), Path("docs/many_features.md")
COMMAND = "python -m omkl_lab.wide"
ROWS, LAST, REPEATS = 6000, 1000, 3
DISTINCT = 1_000_000

Row = tuple[dict[str, float], float]


def words(rows: int, zipf: bool, vocabulary: int = 3000, seed: int = 0) -> Iterator[Row]:
    """Counts of 20 words, and the sum of the effects of 30 of them with noise of variance 0.09."""
    rng = np.random.default_rng(seed)
    p = 1 / (10.0 + np.arange(vocabulary)) if zipf else np.ones(vocabulary)
    effect = np.zeros(vocabulary)
    effect[rng.choice(600 if zipf else vocabulary, 30, replace=False)] = rng.normal(0, 3, 30)
    for _ in range(rows):
        drawn = rng.choice(vocabulary, 20, p=p / p.sum())
        x = {f"w{k}": float(n) for k, n in zip(*np.unique(drawn, return_counts=True), strict=True)}
        yield x, float(effect[drawn].sum() + rng.normal(0, 0.3))


def users(rows: int, zeros: bool, number: int = 400, seed: int = 0) -> Iterator[Row]:
    """A one-hot user, with or without the zeros of all users so far, three numbers, and a linear function of all."""
    rng = np.random.default_rng(seed)
    effect = rng.normal(0, 2, number)
    known: dict[str, float] = {}
    for _ in range(rows):
        user, (a, b, c) = int(rng.integers(number)), rng.normal(size=3).tolist()
        known[f"user_{user}"] = 0
        x = (known if zeros else {}) | {f"user_{user}": 1, "a": a, "b": b, "c": c}
        yield x, float(effect[user] + a - 0.5 * b + rng.normal(0, 0.3))


STREAMS: dict[str, Callable[[], Iterator[Row]]] = {
    "3,000 words": lambda: words(ROWS, zipf=False),
    "3,000 words, Zipf's law": lambda: words(ROWS, zipf=True),
    "400 users, with zeros": lambda: users(ROWS, zeros=True),
    "400 users, without zeros": lambda: users(ROWS, zeros=False),
}
MODELS: dict[str, Callable[[], Any]] = {
    "river StandardScaler | LinearRegression": lambda: preprocessing.StandardScaler() | linear_model.LinearRegression(),
    "river LinearRegression": lambda: linear_model.LinearRegression(),
    "GraphMKL": lambda: omkl.river.GraphMKLRegressor(seed=0),
    "GraphMKL, small budget": lambda: omkl.river.GraphMKLRegressor(seed=0, budget="small"),
}


def passed(model: Any, rows: list[Row]) -> tuple[float, float]:
    """Microseconds of processor time for a row, and the mean squared error on the last rows."""
    squares = []
    start = time.process_time()
    for x, y in rows:
        squares.append((model.predict_one(x) - y) ** 2)
        model.learn_one(x, y)
    return 1e6 * (time.process_time() - start) / len(rows), float(np.mean(squares[-LAST:]))


def streams() -> dict[str, dict[str, dict[str, float]]]:
    """Of every stream and model, the best time of several passes, all models in turn."""
    out: dict[str, dict[str, dict[str, float]]] = {}
    for name, stream in STREAMS.items():
        rows = list(stream())
        runs = [{label: passed(make(), rows) for label, make in MODELS.items()} for _ in range(REPEATS)]
        out[name] = {
            label: {"microseconds": min(run[label][0] for run in runs), "error": runs[0][label][1]} for label in MODELS
        }
    return out


def distinct(number: int = DISTINCT) -> dict[str, int]:
    """Bytes that a model holds after a tenth of so many distinct words, and after all."""
    model, held = omkl.river.GraphMKLRegressor(seed=0), {}
    tracemalloc.start()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SharedFeaturesWarning)
        for first in range(0, number, 50):
            model.learn_one({f"w{first + k}": 1.0 for k in range(50)}, float(first % 7))
            if first + 50 in (number // 10, number):
                gc.collect()
                held[str(first + 50)] = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return held


def quoted(results: dict[str, Any]) -> dict[str, str]:
    """The generated part of docs/many_features.md."""
    return {"wide": tables(results)}


def tables(results: dict[str, Any]) -> str:
    rows = []
    for stream, models in results["streams"].items():
        ours = models["GraphMKL"]["microseconds"]
        for label, found in models.items():
            cells = (f"{found['microseconds']:.1f}", f"{ours / found['microseconds']:.1f}", f"{found['error']:.3g}")
            rows.append((stream, markdown.escaped(label), *cells))
    head = ("stream", "model", "microseconds", "GraphMKL's over these", f"squared error, last {LAST:,} rows")
    held = ", ".join(f"{size / 1e6:.0f} MB after {int(n):,}" for n, size in results["distinct"].items())
    return f"{markdown.table(head, rows, left=2)}\nDistinct words, 50 in a row: {held}."


def main() -> None:
    results = {"streams": streams(), "distinct": distinct()}
    RESULTS.parent.mkdir(exist_ok=True)
    write_json(RESULTS, results)
    markdown.fill(PAGE, quoted(results), COMMAND)
    print(tables(results))


if __name__ == "__main__":
    run_without_arguments("omkl_lab.wide", __doc__, main)
