"""Empirical regret of any learner against the best fixed kernel in hindsight: omkl-lab regret

The best fixed kernel is ridge regression on the whole stream, on the same random features, or exactly (kernel ridge
regression) where the stream is short enough. A learner's regret is its sum of squared errors, each row predicted
before it is learned, less the regularised loss of the best.
"""

import math
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy import stats

from omkl import algorithms
from omkl.algorithms.outputs import outputs
from omkl.arrays import Matrix, Vector
from omkl.features import column_names, frequencies
from omkl.kernels import dictionary
from omkl.online import Online
from omkl.validation import require
from omkl_lab import markdown
from omkl_lab.files import brief, write_json
from omkl_lab.parallel import Unit, run_parallel
from omkl_lab.progress import Progress
from omkl_lab.reproduce.theory import hindsight
from omkl_lab.streams import mixture

RESULTS, PAGE = Path("results/regret.json"), Path("docs/regret.md")
COMMAND = "omkl-lab regret --out results/regret.json"
STREAMS = ("stationary", "adversarial", "drifting")
DICTIONARY, FEATURES, RIDGE = "gaussian", 50, 1e-3
EXACT = 400  # longest stream for which kernel ridge regression is computed exactly
HORIZONS = 7
CONFIDENCE = 0.95
BOUNDED = ("raker", "fogd", "vaw2")
LEARNERS = ("raker", "adaraker", "omkl-gf", "sfg-mkl", "sfg-mkl-r", "vaw2", "doebe", "fogd", "graph-mkl")
Results = Mapping[str, Any]


def horizons(rows: int) -> list[int]:
    """
    >>> horizons(4000)
    [250, 397, 630, 1000, 1587, 2520, 4000]
    """
    return [int(T) for T in np.unique(np.geomspace(max(rows / 16, 20), rows, HORIZONS).round())]


def learner_of(name: str, d: int, seed: int) -> Online:
    """With its default settings, on the dictionary of the best fixed kernel where it takes one."""
    settings = algorithms.get(name).settings
    many = name not in ("fogd", "nogd", "krls-t", "graph-mkl")
    return Online.make(name, settings(kernels=DICTIONARY) if many else settings(), d, seed)


def played(name: str, stream: str, rows: int, seed: int) -> tuple[Matrix, Vector, Vector]:
    """(X, y, predictions). Inputs lie in the unit ball and targets in [0, 1]."""
    whole = mixture(rows, seed)
    X, y = whole.X, whole.y.copy()
    online = learner_of(name, X.shape[1], seed)
    if stream == "adversarial":  # the target is the value of 0 and 1 that is farther from the prediction
        f = np.empty(rows)
        for t, x in enumerate(X):
            f[t] = mean_of(online.predict(x))
            y[t] = float(f[t] < 0.5)
            online.learn(x, y[t])
        return X, y, f
    if stream == "drifting":  # another function in the second half
        y[rows // 2 :] = 1 - mixture(rows, seed + 1000).y[rows // 2 :]
    predictions = online.run(X, y)
    return X, y, predictions[:, 0] if predictions.ndim > 1 else predictions


def mean_of(prediction: Any) -> float:
    return float(np.ravel(prediction)[0])


def measure(name: str, stream: str, rows: int, seed: int) -> list[dict[str, Any]]:
    """Loss of the learner and of the best fixed kernel at every horizon."""
    X, y, f = played(name, stream, rows, seed)
    learner = learner_of(name, X.shape[1], seed)
    V = frequencies(dictionary(DICTIONARY), column_names(X.shape[1]), FEATURES, seed)
    reached = np.maximum.accumulate(reach(name, learner.problem, X, y)) if name in BOUNDED else None
    points = []
    for T in horizons(rows):
        fits = hindsight.in_features(V, X[:T], y[:T], RIDGE)
        star = min(fits, key=lambda fit: fit.loss)
        point = {"T": T, "loss": float(np.sum((f[:T] - y[:T]) ** 2)), "best": star.loss}
        if reached is not None:
            own = min(hindsight.in_features(learner.problem.V, X[:T], y[:T], RIDGE), key=lambda fit: fit.loss)
            point |= {"own": own.loss, "norm2": own.norm2, "reached": reached[T - 1].tolist()}
        if T <= EXACT:
            point["exact"] = min(fit.loss for fit in hindsight.exact(dictionary(DICTIONARY), X[:T], y[:T], RIDGE))
        points.append(point)
    return [{"learner": name, "stream": stream, "seed": seed, "points": points}]


def reach(name: str, problem: Any, X: Matrix, y: Vector) -> Matrix:
    """What the bounds depend on, for every row and the largest over the kernels.

    The sizes of the predictions for VAW^2; else the length of the gradient of the loss (5), and the loss.
    """
    algorithm: Any = algorithms.get(name)  # whose Info depends on the name
    found, state = [], algorithm.init(problem, np.empty(0))
    for x, target in zip(X, y, strict=True):
        if name == "vaw2":
            state, info = algorithm.step(problem, state, x, target, np.empty(0), 1.0)
            found.append((np.abs(info.v).max(), 0.0))
            continue
        gap = np.abs(outputs(problem.V, state.theta, x)[1] - target)
        norm, ridge = np.linalg.norm(state.theta, axis=(1, 2)), problem.descent.lam
        found.append((np.max(2 * gap + 2 * ridge * norm), np.max(gap**2 + ridge * norm**2)))
        state, _ = algorithm.step(problem, state, x, target, np.empty(0), 1.0)
    return np.array(found)


# Bounds


def gradient_bound(T: int, N: int, norm2: float, G: float, B: float) -> float:
    """Of gradients of at most G and exponential weights over losses in [0, B], both with eta = 1 / sqrt(T).

    log N / eta + |theta*|^2 / (2 eta) + eta (G^2 + B^2) T / 2
    """
    return math.sqrt(T) * (math.log(N) + norm2 / 2 + (G**2 + B**2) / 2)


def forecaster_bound(T: int, ridge: float, mixing_ridge: float, N: int, n: int, V: float) -> float:
    """Of VAW^2 with |z| = 1 and |y| <= 1 against the best kernel: of its forecaster, and of that over the kernels.

    n log(1 + T / (lambda n)) + mu + N log(1 + T V^2 / mu), the kernels' predictions within [-V, V]
    """
    return n * math.log(1 + T / (ridge * n)) + mixing_ridge + N * math.log(1 + T * V**2 / mixing_ridge)


def bound(name: str, T: int, points: Sequence[Results]) -> float | None:
    """The mean over the seeds, where there is one for the learner.

    What bounds the regret against the best of the learner's own kernels and features bounds that against the best
    fixed kernel with what the one loses more than the other.
    """
    if name not in BOUNDED:
        return None
    N = len(dictionary(DICTIONARY))
    settings: Any = algorithms.get(name).settings()  # whose fields depend on the algorithm

    def against_own(point: Results) -> float:
        first, second = point["reached"]
        if name == "vaw2":
            return forecaster_bound(T, settings.ridge, settings.mixing_ridge, N, 2 * settings.n_features, first)
        return gradient_bound(T, N if name == "raker" else 1, point["norm2"], first, second)

    return float(np.mean([against_own(point) + point["own"] - point["best"] for point in points]))


# Summary


def interval(values: Vector) -> tuple[float, float]:
    """The mean, and half the width of its interval by Student's t."""
    half = stats.t.ppf((1 + CONFIDENCE) / 2, len(values) - 1) * values.std(ddof=1) / math.sqrt(len(values))
    return float(values.mean()), float(half)


def slope(points: Sequence[Results]) -> float | None:
    """b of regret ~ T^b; None where the regret is not positive at every horizon."""
    pairs = np.array([(p["T"], p["loss"] - p["best"]) for p in points])
    if not (pairs > 0).all():
        return None
    rows, regret = np.log(pairs.T)
    return float(np.polyfit(rows, regret, 1)[0])


def summarise(records: Sequence[Results], learners: Sequence[str], rows: int, seeds: int) -> dict[str, Any]:
    lines = []
    for stream in STREAMS:
        for name in learners:
            mine = [r for r in records if (r["learner"], r["stream"]) == (name, stream)]
            last = [r["points"][-1] for r in mine]
            regret, half = interval(np.array([p["loss"] - p["best"] for p in last]))
            slopes = [b for r in mine if (b := slope(r["points"])) is not None]
            line: dict[str, Any] = {
                "stream": stream, "learner": name, "regret": brief(regret), "half_width": brief(half),
                "loss": brief(float(np.mean([p["loss"] for p in last]))),
                "best": brief(float(np.mean([p["best"] for p in last]))),
            }  # fmt: skip
            if len(slopes) == len(mine):
                line["slope"], line["slope_half_width"] = (brief(each) for each in interval(np.array(slopes)))
            if (most := bound(name, rows, last)) is not None:
                line["bound"] = brief(most)
            short = [k for k, p in enumerate(mine[0]["points"]) if "exact" in p]
            if short:
                exact = [r["points"][short[-1]] for r in mine]
                line["exact_T"] = exact[0]["T"]
                line["exact_regret"] = brief(float(np.mean([p["loss"] - p["exact"] for p in exact])))
                line["features_regret"] = brief(float(np.mean([p["loss"] - p["best"] for p in exact])))
            lines.append(line)
    return {"command": COMMAND, "rows": rows, "seeds": seeds, "horizons": horizons(rows), "lines": lines}


def study(learners: Sequence[str], rows: int, seeds: int, jobs: int, stderr: Console) -> dict[str, Any]:
    """Measure and summarise."""
    learners = [algorithms.named(name) for name in learners]
    for name in learners:
        require(name in algorithms.names(), "learners", f"among {', '.join(algorithms.names())}", name)
    units = [
        Unit((f"{stream} / {name} / {seed}",), measure, {"name": name, "stream": stream, "rows": rows, "seed": seed})
        for stream in STREAMS for name in learners for seed in range(seeds)
    ]  # fmt: skip
    found = {}
    with Progress(len(units), stderr, "regret") as bar, closing(run_parallel(units, jobs)) as coming:
        for keys, records in coming:
            found[keys[0]] = records[0]
            bar.tick(1)
    return summarise([found[unit.keys[0]] for unit in units], learners, rows, seeds)


def cells(line: Results) -> list[str]:
    growth = f"{line['slope']:.2f} ± {line['slope_half_width']:.2f}" if "slope" in line else ""
    return [
        line["learner"], f"{line['loss']:.4g}", f"{line['best']:.4g}",
        f"{line['regret']:.4g} ± {line['half_width']:.2g}",
        growth, f"{line['bound']:.4g}" if "bound" in line else "",
        f"{line['exact_regret']:.4g} / {line['features_regret']:.4g}" if "exact_regret" in line else "",
    ]  # fmt: skip


def head(results: Results) -> list[str]:
    exact = next((line["exact_T"] for line in results["lines"] if "exact_T" in line), None)
    last = f"exact / features, T = {exact}" if exact else "exact / features"
    return ["learner", "loss", "best fixed kernel", "regret", "exponent", "bound", last]


def show(results: Results, console: Console) -> None:
    for stream in STREAMS:
        table = Table(title=f"{stream}, {results['rows']} rows, {results['seeds']} seeds")
        for k, name in enumerate(head(results)):
            table.add_column(name, justify="left" if k == 0 else "right")
        for line in results["lines"]:
            if line["stream"] == stream:
                table.add_row(*cells(line))
        console.print(table)


def page(results: Results) -> str:
    """The text of docs/regret.md."""
    lines = results["lines"]
    broken = [line for line in lines if "bound" in line and line["regret"] > line["bound"]]
    sublinear = [line for line in lines if "slope" in line and line["slope"] + line["slope_half_width"] < 1]
    kept = "No bound is exceeded." if not broken else f"A bound is exceeded in {len(broken)} rows."
    bounds = (
        "Bounds: for Raker and FOGD sqrt(T) (log N + |theta*|^2 / 2 + (G^2 + B^2) / 2), that of gradient steps and "
        "exponential weights with eta = 1 / sqrt(T), with the measured |theta*|, the longest gradient G and the "
        "largest loss B of any kernel; for VAW^2 n log(1 + T / (lambda n)) + mu + N log(1 + T V^2 / mu), that of a "
        "forecaster of n features and of one over N kernels whose predictions are at most V, measured too, without its "
        "first term "
        "lambda |theta*|^2, which the loss of the best contains. They hold "
        "against the best of the learner's own kernels and features, and are shown with what that loses more than the "
        "best fixed kernel: FOGD has one kernel, Gaussian(2.0) on 100 random features, and VAW^2 has 25 random "
        "features of each of the 11. The bound of VAW^2 is a theorem about what was measured. Those of Raker and FOGD "
        "are theorems about steps of a fixed length; here the length decreases, as the length of the stream is not "
        "known, and a step cannot overshoot, so that they are there to compare. The bounds of "
        "Theorems 3 and 4, for SFG-MKL and SFG-MKL-R with a known horizon, are in [reproduction](reproduction.md). The "
        "others have no bound here. In the last column the best fixed kernel is computed exactly, by kernel ridge "
        "regression, beside the random features."
    )
    ridge = (
        f"The ridge is counted once for each row, as in (5) and (19): for the whole stream it is "
        f"{results['rows'] * RIDGE:g} |theta|^2, which makes the best fixed kernel a smooth one. Learners with less or "
        "no ridge, such as VAW^2, DOEBE and GraphMKL, can be better, and then their regret is negative."
    )
    parts = [
        "# Regret",
        "",
        f"Written by `{COMMAND}` and `python -m omkl_lab.readme` from `results/regret.json`; do not edit.",
        "",
        "A learner's regret is its sum of squared errors, each row predicted before it is learned, less the loss of "
        "the best fixed kernel in hindsight: ridge regression on the whole stream, sum of squares + T 1e-3 |theta|^2, "
        f'with the best of the {len(dictionary(DICTIONARY))} Gaussian kernels of the dictionary "{DICTIONARY}", on '
        f"{FEATURES} random features of each. Learners have their default settings and that dictionary, where they "
        "take one; the length of the stream is not known to them.",
        "",
        ridge,
        "",
        f"Streams of {results['rows']:,} rows, {results['seeds']} seeds; inputs in the unit ball of R^3, targets in "
        "[0, 1]:",
        "",
        "- **stationary**: a sum of three kernels, with noise;",
        "- **adversarial**: the target of a row is the one of 0 and 1 that is farther from the learner's own "
        "prediction, so that each learner has a stream of its own;",
        "- **drifting**: another function in the second half, to which no fixed kernel adapts: regret may be negative.",
        "",
        "The exponent b of regret ~ T^b is fitted to "
        f"T = {', '.join(str(T) for T in results['horizons'])} for each seed. Intervals are mean ± half width at 95 % "
        "over the seeds. There is none where the regret is not positive at each of them: there the learner is better "
        "than the best fixed kernel.",
        "",
        bounds,
        "",
        f"{kept} The exponent is below 1 by more than its interval in {len(sublinear)} of {len(lines)} rows.",
    ]
    for stream in STREAMS:
        rows = [cells(line) for line in lines if line["stream"] == stream]
        parts += ["", f"## {stream.capitalize()}", "", markdown.table(head(results), rows)]
    return "\n".join(parts).rstrip("\n") + "\n"


def run(
    learners: Sequence[str], rows: int, seeds: int, jobs: int, out: Path, console: Console, stderr: Console
) -> None:
    results = study(learners or LEARNERS, rows, seeds, jobs, stderr)
    write_json(out, results)
    show(results, console)
