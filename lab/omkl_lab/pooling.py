"""Pooled fleets compared with models per key and with one model: python -m omkl_lab.pooling [few] [many] [page]

Generated streams with few and with many rows per key, of five kinds: keys that are alike, that differ by a constant,
by slopes too, or in everything, and functions in which nothing is linear. Writes results/pooling.json, and from it the
tables of docs/scaling.md; `page` only writes these. The constants of omkl.fleet.corrections and the default model of a
key were chosen on such streams, with other seeds, numbers of features and of rows.
"""

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from omkl.arrays import Index, Matrix, Vector
from omkl.estimators.sklearn import GraphMKLRegressor, SFGMKLRegressor
from omkl.fleet import Fleet, PooledFleet
from omkl_lab import markdown
from omkl_lab.files import read_json, write_json

RESULTS, PAGE = Path("results/pooling.json"), Path("docs/scaling.md")
COMMAND = "python -m omkl_lab.pooling"
KINDS = ("alike", "offsets", "slopes", "unrelated", "products")
STREAMS = {"few": (2000, 5, 50), "many": (20, 1000, 1000)}  # keys, least and most rows of a key
LEARNERS = {
    "separate": "a model per key (SFG-MKL)", "separate GraphMKL": "a model per key (GraphMKL, small)",
    "one": "one model (GraphMKL)", "category": "one, key as a category", "pooled": "pooled",
    "pooled SFG": "pooled (SFG-MKL per key)",
}  # fmt: skip
COSTS = ("separate", "separate GraphMKL", "pooled", "pooled SFG")
SEED, BATCH, NOISE, d = 7, 2000, 0.3, 5


def stream(kind: str, keys: int, least: int, most: int, seed: int = SEED) -> tuple[Index, Matrix, Vector]:
    """Rows of all keys in random order."""
    rng = np.random.default_rng(seed)
    key = rng.permutation(np.repeat(np.arange(keys), rng.integers(least, most + 1, keys)))
    X, offset, slope = rng.normal(size=(len(key), d)), rng.normal(size=keys), rng.normal(size=(keys, d))
    shared = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * X[:, 3]
    linear = (slope[key] * X).sum(axis=1)
    y = {
        "alike": shared,
        "offsets": shared + offset[key],
        "slopes": shared + offset[key] + 0.5 * linear,
        "unrelated": offset[key] + linear + np.sin(2 * (slope[key][:, ::-1] * X).sum(axis=1)),
        "products": slope[key, 0] * X[:, 0] * X[:, 1]
        + slope[key, 1] * X[:, 2] ** 2
        + np.cos(2 * slope[key, 2] * X[:, 3]),
    }[kind]
    return key, X, y + NOISE * rng.standard_normal(len(key))


def errors(kind: str, size: str) -> dict[str, Any]:
    """Mean squared errors, each row predicted before it is learned; bytes of a key and microseconds of a row."""
    key, X, y = stream(kind, *STREAMS[size])
    parts = [slice(start, start + BATCH) for start in range(0, len(y), BATCH)]
    frame = pd.DataFrame(X, columns=[f"x{k}" for k in range(d)]).assign(key=[f"key {k}" for k in key])
    fleets: dict[str, Fleet | PooledFleet] = {
        "separate": Fleet(SFGMKLRegressor(), seed=0),
        "separate GraphMKL": Fleet(GraphMKLRegressor(budget="small"), seed=0),
        "pooled": PooledFleet(seed=0),
        "pooled SFG": PooledFleet(SFGMKLRegressor(), seed=0),
    }
    predictions, costs = {}, {}
    for name, fleet in fleets.items():
        began = time.process_time()
        predictions[name] = np.concatenate([fleet.learn_rows(key[part], X[part], y[part]) for part in parts])
        seconds = time.process_time() - began
        costs[name] = {"bytes per key": fleet.nbytes // len(fleet), "us per row": 1e6 * seconds / len(y)}
    predictions["one"] = GraphMKLRegressor(random_state=0).predict_then_learn(X, y)
    predictions["category"] = GraphMKLRegressor(random_state=0).predict_then_learn(frame, y)
    return {name: float(np.mean((values - y) ** 2)) for name, values in predictions.items()} | {"costs": costs}


def quoted(results: dict[str, Any]) -> dict[str, str]:
    """The generated part of docs/scaling.md."""
    head = ("rows per key", *LEARNERS.values())
    rows = []
    for name, found in results.items():
        values = [found.get(learner, np.nan) for learner in LEARNERS]  # nan: not measured
        best = f"{np.nanmin(values):.3g}"
        shown = [{best: f"**{best}**", "nan": ""}.get(f"{value:.3g}", f"{value:.3g}") for value in values]
        rows.append((titled(name), *shown))
    about = f"Mean squared errors; the noise has a variance of {NOISE**2:.2g}:"
    ratios = "Errors of pooled fleets over those of others; above 1, pooling loses:"
    costs = "Processor microseconds per row, and bytes per key at the end:"
    parts = (about, markdown.table(head, rows), ratios, compared(results), costs, cost(results))
    return {"pooling": "\n\n".join(part.strip() for part in parts)}


def titled(name: str) -> str:
    """What a stream is called in the tables: rows per key, number of keys, kind."""
    size, kind = name.split()
    keys, least, most = STREAMS[size]
    return f"{least}, {keys:,} keys, {kind}" if least == most else f"{least} to {most}, {keys:,} keys, {kind}"


def compared(results: dict[str, Any]) -> str:
    """How pooled fleets do against the better of the models per key, and the better of the single models."""
    others = {
        "the better model per key": ("separate", "separate GraphMKL"),
        "the better single model": ("one", "category"),
    }
    pooled = ("pooled", "pooled SFG")
    head = ["rows per key", *(f"{LEARNERS[name]} / {title}" for title in others for name in pooled)]
    rows = []
    for name, found in results.items():
        ratios = [found[one] / min(found[other] for other in some) for some in others.values() for one in pooled]
        rows.append((titled(name), *(f"{ratio:.3f}" for ratio in ratios)))
    return markdown.table(head, rows)


def cost(results: dict[str, Any]) -> str:
    """What a row and a key cost, where the keys are alike."""
    rows = []
    for name, found in results.items():
        if name.endswith(KINDS[0]):
            shown = (found["costs"][learner] for learner in COSTS)
            rows.append((titled(name), *(f"{each['us per row']:.0f}; {each['bytes per key']:,}" for each in shown)))
    return markdown.table(("rows per key", *(LEARNERS[name] for name in COSTS)), rows)


def main() -> None:
    results: dict[str, Any] = read_json(RESULTS) or {}
    wanted = set(sys.argv[1:]) or set(STREAMS)
    for size in STREAMS:
        for kind in KINDS if size in wanted else ():
            results[f"{size} {kind}"] = errors(kind, size)
            write_json(RESULTS, results)
            print(size, kind, results[f"{size} {kind}"], flush=True)
    markdown.fill(PAGE, quoted(results), COMMAND)


if __name__ == "__main__":
    main()
