"""Pooled fleets compared with models per key and with one model: python -m omkl_lab.pooling [few] [many] [page]

Generated streams with few and with many rows per key, of four kinds: keys that are alike, that differ by a constant, by
slopes too, or in everything. Writes results/pooling.json, and from it the table in docs/scaling.md; `page` only writes
the table. PRIOR and the other constants of omkl.fleet.corrections were chosen on such streams, with other seeds; so was
that of GraphMKL's settings for keys as a key's own model.
"""

import sys
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
KINDS = ("alike", "offsets", "slopes", "unrelated")
STREAMS = {"few": (2000, 5, 50), "many": (20, 1000, 1000)}  # keys, least and most rows of a key
LEARNERS = {
    "separate": "a model per key (SFG-MKL)", "separate GraphMKL": "a model per key (GraphMKL, small)",
    "one": "one model (GraphMKL)", "category": "one, key as a category", "pooled": "pooled",
    "pooled GraphMKL": "pooled (GraphMKL per key)",
}  # fmt: skip
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
    }[kind]
    return key, X, y + NOISE * rng.standard_normal(len(key))


def errors(kind: str, size: str) -> dict[str, float]:
    """Mean squared errors, each row predicted before it is learned."""
    key, X, y = stream(kind, *STREAMS[size])
    parts = [slice(start, start + BATCH) for start in range(0, len(y), BATCH)]
    frame = pd.DataFrame(X, columns=[f"x{k}" for k in range(d)]).assign(key=[f"key {k}" for k in key])
    fleets: dict[str, Fleet | PooledFleet] = {
        "separate": Fleet(SFGMKLRegressor(), seed=0),
        "separate GraphMKL": Fleet(GraphMKLRegressor(budget="small"), seed=0),
        "pooled": PooledFleet(SFGMKLRegressor(), seed=0),
        "pooled GraphMKL": PooledFleet("graph-mkl", seed=0),
    }
    predictions = {
        name: np.concatenate([fleet.learn_rows(key[part], X[part], y[part]) for part in parts])
        for name, fleet in fleets.items()
    } | {
        "one": GraphMKLRegressor(random_state=0).predict_then_learn(X, y),
        "category": GraphMKLRegressor(random_state=0).predict_then_learn(frame, y),
    }
    return {name: float(np.mean((values - y) ** 2)) for name, values in predictions.items()}


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
    return {"pooling": "\n".join((f"{about}\n", markdown.table(head, rows), f"{ratios}\n", compared(results)))}


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
    pooled = ("pooled", "pooled GraphMKL")
    head = ["rows per key", *(f"{LEARNERS[name]} / {title}" for title in others for name in pooled)]
    rows = []
    for name, found in results.items():
        ratios = [found[one] / min(found[other] for other in some) for some in others.values() for one in pooled]
        rows.append((titled(name), *(f"{ratio:.3f}" for ratio in ratios)))
    return markdown.table(head, rows)


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
