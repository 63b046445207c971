"""Benchmark of fleets (a model per key): python -m omkl_lab.fleets [local] [graph-mkl] [spark] [page]

Measures 10 000 keys and 10 million rows with `Fleet`, the engine on one stream in the same run, streams through Spark
on this machine (`omkl_lab.fleets_on_spark`), and for GraphMKL what `light_fleets` says. Parts can be measured alone:
`graph-mkl:many`, `graph-mkl:limited`, `spark:graph-mkl-cluster` and so on. Writes results/fleet.json after each part,
and from it the tables in docs/scaling.md; `page` only writes the tables.
"""

import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from omkl import persist
from omkl.algorithms.settings import Settings
from omkl.arrays import Index, Matrix, Vector
from omkl.estimators.sklearn import GraphMKLRegressor, SFGMKLClassifier, SFGMKLRegressor
from omkl.fleet import Fleet
from omkl.online import Online
from omkl_lab import fleets_on_spark, light_fleets, markdown
from omkl_lab.files import read_json, write_json
from omkl_lab.machine import peak_resident, resident

RESULTS, PAGE = Path("results/fleet.json"), Path("docs/scaling.md")
COMMAND = "python -m omkl_lab.fleets"
KEYS, ROWS, BATCH, d = 10_000, 10_000_000, 250_000, 8
COMPARED_KEYS = 20  # compared with separate estimators


def batches(rows: int, size: int, keys: int, seed: int = 0) -> Iterator[tuple[Index, Matrix, Vector]]:
    """Readings of many sensors, each with its own target function, in order of arrival."""
    rng = np.random.default_rng(seed)
    for _ in range(rows // size):
        key = rng.integers(keys, size=size)
        X = rng.normal(size=(size, d))
        yield key, X, np.sin(X[:, 0] + key % 7) + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(size)


class Elapsed(NamedTuple):
    """Wall-clock seconds, and processor seconds of all cores, which depend little on the machine load."""

    wall: float
    cores: float


def timed(job: Callable[..., Any], *arguments: Any) -> tuple[Any, Elapsed]:
    """The result of the call, and the time it took."""
    wall, busy = time.perf_counter(), time.process_time()
    result = job(*arguments)
    return result, Elapsed(time.perf_counter() - wall, time.process_time() - busy)


def single_stream() -> dict[str, float]:
    """Processor microseconds per row for one stream: the engine on scaled rows, and an estimator on raw rows."""
    _, X, y = next(batches(100_000, 100_000, 1))
    online, model = Online.make("sfg-mkl", Settings(), d, 0), SFGMKLRegressor(random_state=0)
    return {
        "engine": 10 * min(timed(online.run, X / 3, y)[1].cores for _ in range(5)),
        "estimator": 10 * min(timed(model.predict_then_learn, X, y)[1].cores for _ in range(5)),
    }


def large(rows: int = ROWS, keys: int = KEYS, size: int = BATCH) -> dict[str, Any]:
    """The whole stream in batches; a single stream is timed before and after."""
    before = single_stream()
    fleet = Fleet(SFGMKLRegressor(), seed=0)
    warm = Fleet(SFGMKLRegressor(), seed=0)  # so that memory shared by all fleets is not attributed to the keys
    warm.learn_rows(*next(batches(1000, 1000, 10)))
    at_start, times, compared = resident(), [], []
    for key, X, y in batches(rows, size, keys):
        predictions, elapsed = timed(fleet.learn_rows, key, X, y)
        times.append(elapsed)
        some = key < COMPARED_KEYS
        compared.append((key[some], X[some], y[some], predictions[some]))
    del key, X, y, predictions, some
    growth = resident() - at_start
    after = single_stream()
    key_seen, X_seen, y_seen, predictions_seen = (np.concatenate(part) for part in zip(*compared, strict=True))
    same = True
    for number in range(COMPARED_KEYS):
        mine = key_seen == number
        model = fleet.fresh(number)
        same = same and bool((model.predict_then_learn(X_seen[mine], y_seen[mine]) == predictions_seen[mine]).all())
        same = same and persist.to_bytes(model) == persist.to_bytes(fleet[number])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "fleet.omkl"
        before_saving = resident()
        saving = timed(persist.save, fleet, path)[1].cores
        needed_to_save = peak_resident() - before_saving
        loading = timed(persist.load, path)[1].cores
        needed_to_load = peak_resident() - before_saving
        size_on_disk = path.stat().st_size
    return {
        "keys": len(fleet), "rows": rows, "features": d, "batch": size, "threads": fleet.threads,
        "rows_per_second": rows / sum(t.wall for t in times),
        "rows_per_second_of_the_best_batch": size / min(t.wall for t in times),
        "core_microseconds": 1e6 * sum(t.cores for t in times) / rows,
        "engine_core_microseconds": min(before["engine"], after["engine"]),
        "estimator_core_microseconds": min(before["estimator"], after["estimator"]),
        "bytes_per_key": fleet.nbytes / len(fleet),
        "resident_bytes_per_key": growth / len(fleet),
        "identical_to_separate_models": same, "keys_compared": COMPARED_KEYS,
        "file_bytes": size_on_disk, "save_seconds": saving, "load_seconds": loading,
        "bytes_to_save": needed_to_save, "bytes_to_load": needed_to_load,
    }  # fmt: skip


def sizes() -> list[dict[str, float]]:
    """Processor microseconds per row by batch size, once all keys are known."""
    fleet = Fleet(SFGMKLRegressor(), seed=0)
    for batch in batches(200_000, 100_000, KEYS):
        fleet.learn_rows(*batch)
    out = []
    for size in (1_000, 10_000, 100_000, 1_000_000):
        took = [timed(fleet.learn_rows, *batch)[1].cores for batch in batches(4 * size, size, KEYS, seed=1)]
        out.append({"batch": size, "core_microseconds": 1e6 * min(took) / size})
    return out


def other_learners() -> list[dict[str, Any]]:
    """Other learners, 200 keys with 100 rows each per batch."""
    out = []
    kinds: list[tuple[Any, list[int] | None]] = [(GraphMKLRegressor(), None), (SFGMKLClassifier(), [0, 1])]
    for learner, classes in kinds:
        fleet = Fleet(learner, seed=0, classes=classes)
        took = []
        for key, X, y in batches(60_000, 20_000, 200):
            target = y if classes is None else (y > 0).astype(int)
            took.append(timed(fleet.learn_rows, key, X, target)[1].cores)
        microseconds, size = 1e6 * min(took) / 20_000, fleet.nbytes / len(fleet)
        out.append({"learner": type(learner).__name__, "core_microseconds": microseconds, "bytes_per_key": size})
    return out


def quoted(results: dict[str, Any]) -> dict[str, str]:
    """The generated part of docs/scaling.md."""
    return {"fleet": tables(results)}


def tables(results: dict[str, Any]) -> str:
    a, spark = results["large"], results.get("spark")
    out = [
        f"`Fleet`, SFG-MKL with 41 kernels, {a['keys']:,} keys, {a['rows']:,} rows of {a['features']} features in "
        f"batches of {a['batch']:,}, {a['threads']} threads:\n",
        markdown.table(("", ""), [
            ("rows per second, wall clock, including making the models", f"{a['rows_per_second']:,.0f}"),
            ("rows per second, best batch", f"{a['rows_per_second_of_the_best_batch']:,.0f}"),
            ("processor microseconds per row, all cores", f"{a['core_microseconds']:.2f}"),
            ("processor microseconds per row, estimator on one stream, same run",
             f"{a['estimator_core_microseconds']:.2f}"),
            ("processor microseconds per row, engine on one stream, same run", f"{a['engine_core_microseconds']:.2f}"),
            ("bytes per key, counted", f"{a['bytes_per_key']:,.0f}"),
            ("bytes per key, growth of the process", f"{a['resident_bytes_per_key']:,.0f}"),
            (f"identical to separate estimators, {a['keys_compared']} keys compared",
             "yes" if a["identical_to_separate_models"] else "NO"),
            ("additional memory while saving, while loading a second fleet, MB",
             f"{a['bytes_to_save'] / 1e6:,.0f}, {a['bytes_to_load'] / 1e6:,.0f}"),
            ("file size, MB; processor seconds to save, to load",
             f"{a['file_bytes'] / 1e6:,.0f}; {a['save_seconds']:.1f}, {a['load_seconds']:.1f}"),
        ]),
        markdown.table(
            ("rows per batch", "rows per key", "processor microseconds per row"),
            [(f"{row['batch']:,}", f"{row['batch'] / KEYS:g}", f"{row['core_microseconds']:.2f}")
             for row in results["sizes"]],
        ),
        markdown.table(
            ("learner, 200 keys with 100 rows each per batch", "processor microseconds per row", "bytes per key"),
            [(row["learner"], f"{row['core_microseconds']:.1f}", f"{row['bytes_per_key']:,.0f}")
             for row in results["others"]],
        ),
    ]  # fmt: skip
    if spark:
        out += fleets_on_spark.tables(spark)
    if light := results.get("graph_mkl"):
        out.append(light_fleets.tables(light))
    return "\n".join([*out, *model(results)])


def model(results: dict[str, Any]) -> list[str]:
    """An estimate for 10 million keys from the measured costs."""
    a, spark = results["large"], results.get("spark")
    n, minute = 10_000_000, 10_000_000 / 60
    each = next(row["core_microseconds"] for row in results["sizes"] if row["batch"] == KEYS) / 1e6
    out = [
        "**Estimate for 10 million keys** with a row of each every minute, from the numbers above:",
        "",
        f"- memory: 10,000,000 x {a['bytes_per_key']:,.0f} bytes = {n * a['bytes_per_key'] / 1e9:,.0f} GB",
        f"- rows: 10,000,000 / 60 s = {minute:,.0f} rows per second",
        f"- `Fleet`: {1e6 * each:.2f} processor microseconds per row with one row per key and batch; "
        f"{minute:,.0f} x {1e6 * each:.2f} us = {minute * each:.2f} cores busy. Memory is the limit, not time: "
        f"{n * a['bytes_per_key'] / 200e9:.1f}, so {-(-n * a['bytes_per_key'] // 200e9):.0f} machines with 200 GB "
        "each, keys divided among them by their hash",
    ]
    if spark and "sfg-mkl-local" in spark:
        visit = fleets_on_spark.per_key(spark["sfg-mkl-local"]) / 1000
        for name, interval in (("minute", 60), ("hour", 3600)):
            out.append(
                f"- Spark, a micro-batch every {name}: 10,000,000 keys x {1000 * visit:.2f} ms / {interval} s = "
                f"{n * visit / interval:,.1f} cores busy"
            )
    return out


def main() -> None:
    wanted = set(sys.argv[1:]) or {"local", "graph-mkl", "spark"}
    groups = {"graph-mkl": light_fleets.PARTS, "spark": fleets_on_spark.parts()}
    names = {"local", "page", *groups, *(f"{group}:{name}" for group, parts in groups.items() for name in parts)}
    if unknown := wanted - names:
        sys.exit(f"nothing is called {', '.join(sorted(unknown))}; there are {', '.join(sorted(names))}")
    if "local" in wanted:
        write_results({"large": large(), "sizes": sizes(), "others": other_learners()})
    for group, parts in groups.items():
        for name, measure in parts.items():
            if {group, f"{group}:{name}"} & wanted:
                found = {name: measure()}
                write_results({group.replace("-", "_"): results().get(group.replace("-", "_"), {}) | found})
    markdown.fill(PAGE, quoted(results()), COMMAND)
    print(tables(results()))


def results() -> dict[str, Any]:
    found: dict[str, Any] = read_json(RESULTS) or {}
    return found


def write_results(found: dict[str, Any]) -> None:
    RESULTS.parent.mkdir(exist_ok=True)
    write_json(RESULTS, results() | found)


if __name__ == "__main__":
    main()
