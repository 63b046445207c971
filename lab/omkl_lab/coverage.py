"""Coverage of GraphMKL's intervals on fresh rows, by the model as it stands: python -m omkl_lab.coverage

Prequential coverage is held by the calibration itself and says little. Here the model is stopped at many moments, and
rows that it never learns are predicted. Writes results/coverage.json, and from it the tables in docs/intervals.md. A
data set that is not found is left out.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from omkl.algorithms.graph_mkl.constants import ONE_SIGMA
from omkl.algorithms.graph_mkl.intervals import half_width
from omkl.algorithms.graph_mkl.settings import GraphSettings
from omkl.arrays import Matrix, Vector
from omkl.online import Online
from omkl_lab import markdown, steadiness
from omkl_lab.commands import run_without_arguments
from omkl_lab.data.sets import is_available, load
from omkl_lab.files import brief, write_json
from omkl_lab.parallel import Unit, run_parallel

RESULTS, PAGE = Path("results/coverage.json"), Path("docs/intervals.md")
COMMAND = "python -m omkl_lab.coverage"
COVERAGES = (0.5, 0.8, 0.9, 0.95, 0.99)
ALL = (*COVERAGES, ONE_SIGMA)
MOMENTS, FIRST, EVERY, FRESH = 160, 1000, 50, 3000  # of a stream that does not change
STEADY_SEEDS = 4
CHANGE_AT, AFTER, REPEATS, FRESH_AFTER = 3000, 300, 60, 300  # of a stream that changes
CONSTANT, SETTLED, CHECKED, SEEDS = 10_000, 300, 1000, 20  # of a stream that was constant
Draw = Callable[[np.random.Generator, int], tuple[Matrix, Vector]]


# Streams


def linear(noise: Callable[[np.random.Generator, int], Vector]) -> Draw:
    def draw(rng: np.random.Generator, n: int) -> tuple[Matrix, Vector]:
        X = rng.normal(size=(n, 8))
        return X, X @ np.arange(1, 9) / 5 + noise(rng, n)

    return draw


def friedman(rng: np.random.Generator, n: int, scale: float = 1.0, first: int = 0) -> tuple[Matrix, Vector]:
    """Friedman's first function, of ten inputs that begin with column `first`."""
    X = rng.uniform(size=(n, 10))
    a, b, c, d, e = np.roll(X, -first, axis=1).T[:5]
    f = 10 * np.sin(np.pi * a * b) + 20 * (c - 0.5) ** 2 + 10 * d + 5 * e
    return X, f + scale * rng.normal(size=n)


def uneven(rng: np.random.Generator, n: int) -> tuple[Matrix, Vector]:
    """Noise that depends on an input."""
    X = rng.uniform(0, 10, (n, 2))
    return X, 10 * np.sin(X[:, 0]) + X[:, 1] + np.where(X[:, 1] > 5, 2.0, 0.5) * rng.normal(size=n)


def kinks(rng: np.random.Generator, n: int) -> tuple[Matrix, Vector]:
    X = rng.uniform(-1, 1, (n, 2))
    f = 3 * np.abs(X[:, 0] - 0.3) + 2 * np.maximum(X[:, 1], 0) - (X[:, 0] > 0.5)
    return X, f + 0.2 * rng.normal(size=n)


STEADY: dict[str, Draw] = {
    "linear, normal noise": linear(lambda rng, n: rng.normal(size=n)),
    "linear, Student t noise (3)": linear(lambda rng, n: rng.standard_t(3, size=n)),
    "linear, exponential noise": linear(lambda rng, n: rng.exponential(size=n)),
    "Friedman, normal noise": friedman,
    "noise that depends on an input": uneven,
    "two inputs, kinks": kinks,
}
SETS = {
    "wine_white": "wine, in random order",
    "naval": "naval, in random order",
    "bias": "temperature forecasts, in random order",
    "energy": "appliances energy, in random order",
}


def shuffled(name: str, seed: int) -> tuple[Matrix, Vector]:
    stream = load(name)
    order = np.random.default_rng(seed).permutation(len(stream.y))
    return np.ascontiguousarray(stream.X[order]), stream.y[order]


# Measurements


def fresh_learner(d: int, seed: int) -> Online:
    return Online.make("graph-mkl", GraphSettings(), d, seed)


def on_fresh_rows(online: Online, X: Matrix, y: Vector) -> tuple[Vector, Vector, Vector]:
    """Coverages and interval scores (Winkler) of all levels, and the errors."""
    mean, deviation = online.predict_rows_unchecked(X).T
    error, share = np.abs(y - mean)[:, None], np.array(ALL)
    half = deviation[:, None] * np.array([float(half_width(online.extra, c)) for c in ALL])
    score = 2 * half + 2 / (1 - share) * np.maximum(error - half, 0)
    return (error <= half).mean(axis=0), score.mean(axis=0), error[:, 0]


def steady(name: str, seed: int) -> list[dict[str, Any]]:
    """Coverage at many moments of a stream that does not change."""
    rng, fresh = np.random.default_rng(seed + 1), np.random.default_rng(seed + 1000)
    if name in STEADY:
        X, y = STEADY[name](rng, FIRST + MOMENTS * EVERY)
        moments = FIRST + EVERY * np.arange(MOMENTS)
    else:
        X, y = shuffled(name, seed)
        kept = len(y) * 3 // 4
        held, answers = X[kept:][:FRESH], y[kept:][:FRESH]
        X, y = X[:kept], y[:kept]
        moments = np.linspace(FIRST, kept - 1, MOMENTS).astype(int)
    online = fresh_learner(X.shape[1], seed)
    coverages, scores, errors, done = [], [], [], 0
    for moment in moments:
        online.run_unchecked(X[done:moment], y[done:moment])
        done = int(moment)
        rows = STEADY[name](fresh, FRESH) if name in STEADY else (held, answers)
        coverage, score, error = on_fresh_rows(online, *rows)
        coverages.append(coverage)
        scores.append(score)
        errors.append(error)
    fixed = (np.array(errors) <= np.quantile(errors, 0.9)).mean(axis=1)  # of one interval, chosen in hindsight
    mean, deviation, score = np.mean(coverages, axis=0), np.std(coverages, axis=0), np.mean(scores, axis=0)
    return [{
        "mean": mean.tolist(), "deviation": deviation.tolist(), "score": score.tolist(), "fixed": float(fixed.std())
    }]  # fmt: skip


def noise_at(scale: float) -> Draw:
    return lambda rng, n: friedman(rng, n, scale)


def other_function(rng: np.random.Generator, n: int) -> tuple[Matrix, Vector]:
    return friedman(rng, n, first=5)


CHANGES: dict[str, Draw] = {
    "noise x 3": noise_at(3.0),
    "noise / 3": noise_at(1 / 3),
    "noise x 2": noise_at(2.0),
    "noise / 2": noise_at(1 / 2),
    "noise x 1.5": noise_at(1.5),
    "noise / 1.5": noise_at(1 / 1.5),
    "another function": other_function,
}
GRADUAL = "noise x 3 within 1,000 rows"
MOMENTS_AFTER = (*range(0, 100, 4), *range(100, AFTER + 1, 20))


def change(name: str, seed: int) -> list[dict[str, Any]]:
    """Coverage of the 0.9 interval on fresh rows, at moments after a change of the Friedman stream."""
    rng = np.random.default_rng(seed + 1)
    online = fresh_learner(10, seed)
    online.run_unchecked(*friedman(rng, CHANGE_AT))
    out, done, draw = [], 0, CHANGES[name]
    for moment in MOMENTS_AFTER:
        if moment > done:
            online.run_unchecked(*draw(rng, moment - done))
        done = moment
        out.append(float(on_fresh_rows(online, *draw(rng, FRESH_AFTER))[0][COVERAGES.index(0.9)]))
    return [{"coverage": out}]


def gradual(seed: int) -> list[dict[str, Any]]:
    """The same while the noise grows."""
    rng = np.random.default_rng(seed + 1)
    online = fresh_learner(10, seed)
    online.run_unchecked(*friedman(rng, CHANGE_AT))
    out = []
    for scale in 3 ** np.linspace(0, 1, 21)[1:]:
        out.append(float(on_fresh_rows(online, *friedman(rng, FRESH_AFTER, scale))[0][COVERAGES.index(0.9)]))
        for part in scale * 3 ** (np.linspace(-0.05, 0, 10)):
            online.run_unchecked(*friedman(rng, 5, part))
    return [{"coverage": out}]


def silence(name: str, seed: int) -> tuple[Matrix, Vector]:
    """Rows without any error to learn from."""
    X, _ = friedman(np.random.default_rng(seed + 7), CONSTANT)
    match name:
        case "constant target from the first row":
            return X, np.full(CONSTANT, 14.3)
        case "1,000 ordinary rows, then a constant target":
            y = np.full(CONSTANT, 14.3)
            y[:1000] = friedman(np.random.default_rng(seed + 7), CONSTANT)[1][:1000]
            return X, y
        case "1,000 ordinary rows, then constant inputs and target":
            y = np.full(CONSTANT, 14.3)
            y[:1000] = friedman(np.random.default_rng(seed + 7), CONSTANT)[1][:1000]
            X[1000:] = 0.5
            return X, y
        case "a linear target without noise":
            return X, X @ np.arange(10.0)
    raise ValueError(name)


SILENCES = (
    "constant target from the first row",
    "1,000 ordinary rows, then a constant target",
    "1,000 ordinary rows, then constant inputs and target",
    "a linear target without noise",
)


def after_silence(name: str, seed: int) -> list[dict[str, Any]]:
    """Coverage of the 0.9 interval on the Friedman stream that follows, row 300 on."""
    rng, level = np.random.default_rng(seed + 1), COVERAGES.index(0.9)
    online = fresh_learner(10, seed)
    online.run_unchecked(*silence(name, seed))
    online.run_unchecked(*friedman(rng, SETTLED))
    fresh, inside = [], 0
    for _ in range(CHECKED // 100):
        fresh.append(float(on_fresh_rows(online, *friedman(rng, FRESH_AFTER * 3))[0][level]))
        X, y = friedman(rng, 100)
        widths = np.empty((100, online.shape.extras))
        mean, deviation = online.run_unchecked(X, y, extra=widths).T
        inside += int((np.abs(y - mean) <= deviation * half_width(widths, 0.9)).sum())
    return [{"fresh": fresh, "prequential": inside / CHECKED}]


def rows_until_back(curve: Vector) -> int | None:
    """Rows after a change from which the mean coverage stays near the nominal one; None if it does not."""
    moment = steadiness.first_back(curve)
    return None if moment is None else MOMENTS_AFTER[moment]


def summary(found: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """What the page says, from the records of all runs by "kind | name | seed"."""
    kinds: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for key, record in found.items():
        kind, name, _ = key.split(" | ")
        kinds.setdefault(kind, {}).setdefault(name, []).append(record)
    out: dict[str, Any] = {kind: {} for kind in ("steady", "change", "silence", "steadiness")}
    for name, runs in kinds.get("steady", {}).items():
        mean, deviation = ([[r[field] for r in runs]] for field in ("mean", "deviation"))
        out["steady"][SETS.get(name, name)] = {
            "mean": [brief(v) for v in np.mean(mean[0], axis=0)],
            "deviation": [brief(v) for v in np.sqrt(np.mean(np.square(deviation[0]), axis=0))],
            "score": [brief(v) for v in np.mean([r["score"] for r in runs], axis=0)],
            "fixed": brief(float(np.sqrt(np.mean([r["fixed"] ** 2 for r in runs])))),
        }
    for name, runs in kinds.get("change", {}).items():
        curve = np.mean([r["coverage"] for r in runs], axis=0)
        gap = brief(float(np.mean(np.abs(np.array([r["coverage"] for r in runs]) - 0.9))))
        back = {} if name == GRADUAL else {"rows": rows_until_back(curve)}
        out["change"][name] = {"mean": brief(float(curve.mean())), "gap": gap, **back}
    for name, runs in kinds.get("silence", {}).items():
        fresh, prequential = [v for r in runs for v in r["fresh"]], [r["prequential"] for r in runs]
        within = float(np.mean([0.8 <= share <= 0.97 for share in fresh]))
        out["silence"][name] = {
            "fresh": [brief(min(fresh)), brief(float(np.mean(fresh))), brief(max(fresh))],
            "within": brief(within),
            "prequential": [brief(min(prequential)), brief(max(prequential))],
        }
    for name, runs in kinds.get("steadiness", {}).items():
        out["steadiness"][name] = runs[0] | {"deviation": brief(runs[0]["deviation"]), "mean": brief(runs[0]["mean"]),
                                             "gradual": brief(runs[0]["gradual"])}  # fmt: skip
    return out


# The page


def quoted(results: Mapping[str, Any]) -> dict[str, str]:
    """The generated parts of docs/intervals.md."""
    return {"coverage": tables(results), "steadiness": steadiness_table(results["steadiness"])}


def steadiness_table(results: Mapping[str, Any]) -> str:
    names = [f"x {f:g}" if f > 1 else f"/ {1 / f:g}" for f in steadiness.FACTORS]
    rows = [
        [
            name,
            percent(line["deviation"]),
            *("-" if row is None else str(row) for row in line["rows"]),
            percent(line["gradual"]),
        ]
        for name, line in results.items()
    ]
    return markdown.table(["calibration", "deviation, %", *names, "gradual, %"], rows)


def percent(share: float) -> str:
    return f"{100 * share:.1f}"


def tables(results: Mapping[str, Any]) -> str:
    names = [*(f"{100 * c:.0f} %" for c in COVERAGES), "one std", "fixed 90 %"]
    rows = []
    for name, line in results["steady"].items():
        found = [f"{percent(m)} ± {percent(s)}" for m, s in zip(line["mean"], line["deviation"], strict=True)]
        rows.append([name, *found, f"± {percent(line['fixed'])}"])
    changes = [
        [name, str(line.get("rows", "-")), percent(line["mean"]), percent(line["gap"])]
        for name, line in results["change"].items()
    ]
    silences = [
        [
            name,
            " / ".join(map(percent, line["fresh"])),
            percent(line["within"]),
            " to ".join(map(percent, line["prequential"])),
        ]
        for name, line in results["silence"].items()
    ]
    return "\n".join((
        markdown.table(["coverage, %", *names], rows),
        markdown.table(["90 % interval after a change", "rows", "mean, %", "mean gap, %"], changes),
        markdown.table(
            ["90 % interval after", "fresh rows, %: least / mean / most", "80 to 97 %, % of moments", "prequential, %"],
            silences,
        ),
    ))  # fmt: skip


def units() -> list[Unit]:
    streams = [*STEADY, *(name for name in SETS if is_available(name))]
    seeds = range(SEEDS)
    kinds: dict[str, float | None] = {"fixed gain": None}
    kinds |= {"as it is" if m == 1 else f"odds x {m:g}": m for m in steadiness.MULTIPLES}
    return [
        *(Unit((f"steady | {n} | {s}",), steady, {"name": n, "seed": s}) for n in streams for s in range(STEADY_SEEDS)),
        *(Unit((f"change | {n} | {s}",), change, {"name": n, "seed": s}) for n in CHANGES for s in range(REPEATS)),
        *(Unit((f"change | {GRADUAL} | {s}",), gradual, {"seed": s}) for s in range(REPEATS)),
        *(Unit((f"silence | {n} | {s}",), after_silence, {"name": n, "seed": s}) for n in SILENCES for s in seeds),
        *(Unit((f"steadiness | {n} | 0",), steadiness.measured, {"multiple": m}) for n, m in kinds.items()),
    ]


def main() -> None:
    planned = units()
    found = {keys[0]: records[0] for keys, records in run_parallel(planned, 2)}
    results = summary({unit.keys[0]: found[unit.keys[0]] for unit in planned})
    write_json(RESULTS, results)
    markdown.fill(PAGE, quoted(results), COMMAND)
    print(tables(results))


if __name__ == "__main__":
    run_without_arguments("omkl_lab.coverage", __doc__, main)
