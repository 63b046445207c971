"""Fleets of GraphMKL with its settings for keys: bytes per key, many keys in one run, more than fits into memory.

Measured and shown by `python -m omkl_lab.fleets graph-mkl`; `python -m omkl_lab.light_fleets LIMIT KEYS ROWS` learns a
fleet within so many bytes of memory in a process of its own, and prints what it took as JSON.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from omkl import algorithms, persist
from omkl.arrays import Index, Matrix, Vector
from omkl.estimators.sklearn import GraphMKLClassifier, GraphMKLRegressor
from omkl.fleet import Fleet
from omkl_lab import markdown
from omkl_lab.data.sets import SETS, is_available, load, locate
from omkl_lab.data.table import read_table
from omkl_lab.machine import Meter, peak_resident, resident

FEATURES = (2, 8, 30)
KEYS, ROWS, BATCH = 10_000, 10_000_000, 250_000
FULL_ROWS = 1200  # rows of a key, whose model grows no more
COMPARED_KEYS = 10
LIMITED = {"memory": 700_000_000, "keys": 27_000, "rows": 20}
VISITS, VISITED = 5, 300  # batches that come back to so many keys
SMALL, FOR_KEYS = {"budget": "small"}, dict(algorithms.get("graph-mkl").for_keys)
SEEDS, MOST_ROWS = (0, 1), 4000
CHOSEN_ON = {
    "airfoil", "concrete", "bias", "diamonds", "weather_nyc", "deliveries", "txhousing", "rain_ibk",
    "penbased", "spambase", "hpc", "cells", "credit", "letter",
}  # fmt: skip
COMPARED = (
    *("airfoil", "concrete", "wine_white", "naval", "bias", "air_quality", "istanbul", "diamonds", "weather_nyc"),
    *("ames", "deliveries", "txhousing", "cps1988", "rain_ibk", "key_west_water", "loans"),
    *("penbased", "spambase", "letter", "hpc", "cells", "credit"),
)


def readings(rng: np.random.Generator, key: Index, d: int) -> tuple[Matrix, Vector]:
    """A row of each of these sensors, which have target functions of their own."""
    X = rng.normal(size=(len(key), d))
    return X, np.sin(X[:, 0] + key % 7) + X[:, 1] * X[:, d // 2] + 0.1 * rng.standard_normal(len(key))


def batches(rows: int, size: int, keys: int, d: int, seed: int = 0) -> Iterator[tuple[Index, Matrix, Vector]]:
    rng = np.random.default_rng(seed)
    for _ in range(rows // size):
        key = rng.integers(keys, size=size)
        yield key, *readings(rng, key, d)


def sizes() -> list[dict[str, Any]]:
    """Bytes of a key that has learned so many rows that its model grows no more."""
    out: list[dict[str, Any]] = []
    for d in FEATURES:
        for name, settings in (("small", SMALL), ("for keys", FOR_KEYS)):
            fleet, keys = Fleet(GraphMKLRegressor(**settings), seed=0), 40
            for batch in batches(keys * FULL_ROWS, keys * FULL_ROWS // 10, keys, d):
                fleet.learn_rows(*batch)
            out.append({"features": d, "settings": name, "bytes": fleet.nbytes / len(fleet)})
    return out


def many_keys(rows: int = ROWS) -> dict[str, Any]:
    """All keys in one run; some are compared with separate estimators."""
    fleet, compared = Fleet("graph-mkl", seed=0), []
    Fleet("graph-mkl", seed=0).learn_rows(*next(batches(2000, 2000, 10, 8)))  # what all fleets share is there
    at_start, meter, most = resident(), Meter(), 0
    for number, (key, X, y) in enumerate(batches(rows, BATCH, KEYS, 8)):
        with meter:
            predictions = fleet.learn_rows(key, X, y)
        most = max(most, resident())
        some = key < COMPARED_KEYS
        compared.append((key[some], X[some], y[some], predictions[some]))
        print(f"{(number + 1) * BATCH:,} rows, {(number + 1) * BATCH / meter.wall:,.0f} a second", flush=True)
    keys, X_seen, y_seen, predicted = (np.concatenate(part) for part in zip(*compared, strict=True))
    same = True
    for number in range(COMPARED_KEYS):
        model, mine = fleet.fresh(number), keys == number
        same = same and bool((model.predict_then_learn(X_seen[mine], y_seen[mine]) == predicted[mine]).all())
        same = same and persist.to_bytes(model) == persist.to_bytes(fleet[number])
    return {
        "keys": len(fleet), "rows": rows, "features": 8, "batch": BATCH, "threads": fleet.threads,
        "rows_per_second": rows / meter.wall, "core_microseconds": 1e6 * meter.cores / rows, "others": meter.others,
        "bytes_per_key": fleet.nbytes / len(fleet), "resident_bytes_per_key": (most - at_start) / len(fleet),
        "peak_resident_bytes": peak_resident(), "identical_to_separate_models": same, "keys_compared": COMPARED_KEYS,
    }  # fmt: skip


def limited(memory: int, keys: int, rows: int) -> dict[str, Any]:
    """A fleet that is larger than the memory that it may use; then batches that come back to a few random keys."""
    fleet, rng, first = Fleet("graph-mkl", seed=0, memory=memory), np.random.default_rng(0), Meter()
    for start in range(0, keys, 1000):  # all rows of a thousand keys at a time, as files of history have them
        key = np.repeat(np.arange(start, min(start + 1000, keys)), rows)
        X, y = readings(rng, key, 8)
        with first:
            fleet.learn_rows(key, X, y)
    visits: dict[str, dict[str, float]] = {}
    for name in ("cached", "cold"):
        found = []
        for _ in range(VISITS):
            if name == "cold":
                drop_cached(fleet)
            key = rng.choice(keys, VISITED, replace=False)
            X, y = readings(rng, key, 8)
            with (visit := Meter()):
                fleet.learn_rows(key, X, y)
            found.append(visit)
        visits[name] = {part: 1000 * float(np.median([getattr(visit, part) for visit in found])) / VISITED
                        for part in ("wall", "cores")}  # fmt: skip
    return {
        "memory": memory, "keys": keys, "rows_per_key": rows,
        "bytes": fleet.nbytes, "in_memory": fleet.nbytes_in_memory, "peak_resident_bytes": peak_resident(),
        "rows_per_second": keys * rows / first.wall, "core_microseconds": 1e6 * first.cores / keys / rows,
        "others": first.others, "milliseconds_per_visit": visits,
    }  # fmt: skip


def drop_cached(fleet: Fleet) -> None:
    """Have the system forget what it has of the fleet's temporary file in memory, where it can be told to."""
    assert fleet._models is not None
    disk = fleet._models._storage._shelf._disk  # type: ignore[attr-defined]  # of the limited kind
    if hasattr(os, "posix_fadvise"):
        os.fsync(disk._file.fileno())  # what is not written yet cannot be forgotten
        os.posix_fadvise(disk._file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def limited_alone() -> dict[str, Any]:
    """`limited` in a process of its own, whose peak of memory is that of the fleet."""
    command = [sys.executable, "-m", "omkl_lab.light_fleets", *(str(value) for value in LIMITED.values())]
    found: dict[str, Any] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return found


def rows_of(name: str) -> tuple[Matrix, Vector]:
    """The first rows of a data set."""
    if SETS[name].task == "regression":
        stream = load(name)
        return stream.X[:MOST_ROWS], stream.y[:MOST_ROWS]
    path = locate(name)
    assert path is not None
    table = read_table(path)
    return table.X[:MOST_ROWS], table.y[:MOST_ROWS]


def errors() -> list[dict[str, Any]]:
    """Squared error over the target's variance, or share of wrong labels, with both settings; means over seeds."""
    out: list[dict[str, Any]] = []
    for name in filter(is_available, COMPARED):
        X, y = rows_of(name)
        found: dict[str, Any] = {"set": name, "rows": len(X)}
        for label, settings in (("small", SMALL), ("for keys", FOR_KEYS)):
            each, spent = [], time.process_time()
            for seed in SEEDS:
                if SETS[name].task == "regression":
                    number = GraphMKLRegressor(**settings, random_state=seed)
                    each.append(float(np.mean((number.predict_then_learn(X, y)[1:] - y[1:]) ** 2) / np.var(y)))
                else:
                    labels = GraphMKLClassifier(**settings, random_state=seed)
                    each.append(float(np.mean(labels.predict_then_learn(X, y, classes=np.unique(y))[1:] != y[1:])))
            found[label] = float(np.mean(each))
            found[f"microseconds {label}"] = 1e6 * (time.process_time() - spent) / len(SEEDS) / len(X)
        out.append(found)
        print(found, flush=True)
    return out


PARTS = {"sizes": sizes, "errors": errors, "limited": limited_alone, "many": many_keys}


def tables(results: dict[str, Any]) -> str:
    """The section of docs/scaling.md."""
    out = []
    if "sizes" in results:
        each = {(row["features"], row["settings"]): row for row in results["sizes"]}
        out += ["Bytes of a key of GraphMKL that has learned more than 1,024 rows:\n",
                markdown.table(("features", "`budget=\"small\"`", "settings for keys"), [
                    (str(d), f"{each[d, 'small']['bytes']:,.0f}", f"{each[d, 'for keys']['bytes']:,.0f}")
                    for d in FEATURES])]  # fmt: skip
    if many := results.get("many"):
        out += [f"`Fleet(\"graph-mkl\")`, {many['keys']:,} keys, {many['rows']:,} rows of {many['features']} features, "
                f"batches of {many['batch']:,}, {many['threads']} threads:\n",
                markdown.table(("", ""), [
                    ("rows per second, wall clock", f"{many['rows_per_second']:,.0f}"),
                    ("cores busy with other work of this machine meanwhile", f"{many['others']:.1f}"),
                    ("rows per second of two cores, from the processor time",
                     f"{2e6 / many['core_microseconds']:,.0f}"),
                    ("processor microseconds per row, all cores", f"{many['core_microseconds']:.0f}"),
                    ("bytes per key, counted", f"{many['bytes_per_key']:,.0f}"),
                    ("bytes per key, growth of the process at its peak", f"{many['resident_bytes_per_key']:,.0f}"),
                    ("peak memory of the process, MB", f"{many['peak_resident_bytes'] / 1e6:,.0f}"),
                    (f"identical to separate estimators, {many['keys_compared']} keys compared",
                     "yes" if many["identical_to_separate_models"] else "NO")])]  # fmt: skip
    if found := results.get("limited"):
        out += [f"`Fleet(\"graph-mkl\", memory={found['memory']:_})`, {found['keys']:,} keys with "
                f"{found['rows_per_key']} rows each, then batches of one row of {VISITED} random keys:\n",
                markdown.table(("", ""), [
                    ("models, MB", f"{found['bytes'] / 1e6:,.0f}"),
                    ("of these in memory, MB", f"{found['in_memory'] / 1e6:,.0f}"),
                    ("peak memory of the process, MB", f"{found['peak_resident_bytes'] / 1e6:,.0f}"),
                    ("rows per second, first rows of all keys, wall clock", f"{found['rows_per_second']:,.0f}"),
                    ("processor microseconds per row, first rows", f"{found['core_microseconds']:.0f}"),
                    ("cores busy with other work of this machine meanwhile", f"{found['others']:.1f}"),
                    *((f"milliseconds per visit of a key, {of}: wall clock; processor",
                       f"{found['milliseconds_per_visit'][name]['wall']:.2f}; "
                       f"{found['milliseconds_per_visit'][name]['cores']:.2f}")
                      for name, of in (("cached", "the file in the system's cache"),
                                       ("cold", "the file not in its cache")))])]  # fmt: skip
    if "errors" in results:
        out += [error_table(results["errors"])]
    return "\n".join(out)


def error_table(rows: list[dict[str, Any]]) -> str:
    """Both settings on every set, and geometric means of their ratio."""

    def mean(some: list[dict[str, Any]]) -> str:
        return f"{np.exp(np.mean([np.log(row['for keys'] / row['small']) for row in some])):.3f}" if some else "-"

    def group(row: dict[str, Any]) -> tuple[bool, bool]:
        return SETS[row["set"]].task == "regression", row["set"] in CHOSEN_ON

    lines = [
        (row["set"] + (" *" if row["set"] in CHOSEN_ON else ""), f"{row['small']:.4g}", f"{row['for keys']:.4g}",
         f"{row['for keys'] / row['small']:.3f}", f"{row['microseconds small']:.0f}",
         f"{row['microseconds for keys']:.0f}") for row in rows]  # fmt: skip
    header = ("set", '`budget="small"`', "settings for keys", "ratio", "us", "us, for keys")
    means = ", ".join(f"{text} {mean([row for row in rows if group(row) == which])}" for which, text in (
        ((True, True), "numbers, sets that they were chosen on (*)"), ((True, False), "numbers, other sets"),
        ((False, True), "labels (all *)")))  # fmt: skip
    return (
        f"Errors of a single model, the first {MOST_ROWS:,} rows: squared error over the target's variance, or share "
        f"of wrong labels; means of {len(SEEDS)} seeds, and processor microseconds per row:\n\n"
        f"{markdown.table(header, lines)}\nGeometric means of the ratio: {means}.\n"
    )


if __name__ == "__main__":
    print(json.dumps(limited(*(int(word) for word in sys.argv[1:4]))))
