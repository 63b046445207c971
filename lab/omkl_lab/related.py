"""The related algorithms: the journal version's protocol, streams that change, log scores, and defaults of SFG-MKL.

OMKL_DATA=~/data python -m omkl_lab.related
"""

import argparse
import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import omkl
from omkl.algorithms.blas import one_thread
from omkl.algorithms.doebe import DOEBESettings
from omkl.algorithms.graph_mkl.constants import ONE_SIGMA
from omkl.algorithms.settings import Settings
from omkl.arrays import Matrix, Vector
from omkl.errors import DivergenceError
from omkl.features import column_names
from omkl.kernels import Gaussian
from omkl.online import Online
from omkl_lab import markdown
from omkl_lab.comparison.learners import graph_mkl
from omkl_lab.comparison.outcome import LEVELS, log_score, normal_log_score, student_log_score
from omkl_lab.comparison.streams import RawStream
from omkl_lab.data.sets import load
from omkl_lab.files import brief, write_json
from omkl_lab.peers.streams import DRIFT, evaluation_stream
from omkl_lab.prequential import running_mean_mse
from omkl_lab.reproduce.theory import hindsight

RESULTS, PAGE = Path("results/related.json"), Path("docs/related.md")
COMMAND = "OMKL_DATA=~/data python -m omkl_lab.related"
Results = Mapping[str, Any]

# The journal version's protocol

JOURNAL = {"airfoil": 300, "bias": 500, "concrete": 300, "naval": 300}  # rounds after which the node is kept
FEATURE_SETS = 20
DEGREES = (1, 5, 10, 15, 20)
EXACT = 2000  # rows of the longest stream whose best kernel in hindsight is computed exactly


def poly_2(X: Matrix, y: Vector, rate: float = 0.1) -> Vector:
    """Predictions of the kernel (x . x')^2 with the step of OMKR: x' A x, A the sum of alpha_t x_t x_t'."""
    A = np.zeros((X.shape[1], X.shape[1]))
    f = np.empty(len(y))
    for t, x in enumerate(X):
        f[t] = x @ A @ x
        A -= rate / math.sqrt(t + 1) * (f[t] - y[t]) * np.outer(x, x)
    return f


def journal_settings(rounds: int) -> dict[str, tuple[str, Settings]]:
    """Learner and settings of every row of the table that has random features."""
    rows = {"RFOMKR": ("rfomkr", Settings.jmlr(rounds=rounds)), "Raker": ("raker", Settings.jmlr(rounds=rounds))}
    for M in DEGREES:
        for J in (1, 2):
            rows[f"OMKL-GF, M = {M}, J = {J}"] = "omkl-gf", Settings.jmlr(M, rounds, nodes=J, least_q=0.05)
    for name, learner in (("SFG-MKL", "sfg-mkl"), ("SFG-MKL-R", "sfg-mkl-r")):
        rows |= {f"{name}, M = {M}": (learner, Settings.jmlr(M, rounds)) for M in DEGREES}
    return rows


def journal(name: str, feature_sets: int = FEATURE_SETS) -> dict[str, Any]:
    """Mean squared error and its standard deviation over the feature sets, by row of the table."""
    stream, begin = load(name), time.process_time()
    X, y = np.ascontiguousarray(stream.X), stream.y
    out: dict[str, Any] = {
        "running mean": [running_mean_mse(y)],
        "POLY-2": [float(np.mean((poly_2(X, y) - y) ** 2))],
        "RBF-1": [mse("omkr", Settings.jmlr(kernels=[Gaussian(math.sqrt(0.5))]), X, y)],
        "OMKR": [mse("omkr", Settings.jmlr(kernels="jmlr-omkr"), X, y)],
    }
    for row, (learner, settings) in journal_settings(JOURNAL[name]).items():
        out[row] = [mse(learner, settings, X, y, seed) for seed in range(feature_sets)]
    return {
        "rows": len(y), "features": X.shape[1], "mse": {row: spread(found) for row, found in out.items()},
        "seconds": brief(time.process_time() - begin), "hindsight": best_kernel(X, y),
    }  # fmt: skip


def best_kernel(X: Matrix, y: Vector) -> dict[str, float]:
    """The mean loss (5) of the best fixed kernel: on the random features of one set, and exact where there is time."""
    settings = Settings.jmlr()
    V = settings.frequencies(column_names(X.shape[1]), seed=0)
    with one_thread():
        fits = {"on features": hindsight.in_features(V, X, y, settings.ridge)}
        if len(y) <= EXACT:
            fits["exact"] = hindsight.exact(settings.all_kernels, X, y, settings.ridge)
    return {how: brief(min(fit.loss for fit in each) / len(y)) for how, each in fits.items()}


def spread(errors: Sequence[float]) -> dict[str, float | None]:
    """Mean and standard deviation; None where a run diverged."""
    if not np.isfinite(errors).all():
        return {"mse": None, "sd": 0.0}
    return {"mse": brief(float(np.mean(errors))), "sd": brief(float(np.std(errors)))}


def mse(learner: str, settings: Any, X: Matrix, y: Vector, seed: int = 0) -> float:
    try:
        f = Online.make(learner, settings, X.shape[1], seed).run(X, y)
    except DivergenceError:
        return math.inf
    return float(np.mean((f - y) ** 2))


# Streams that change

LEARNERS: dict[str, Callable[[int], Any]] = {
    "Raker": lambda seed: omkl.RakerRegressor(random_state=seed),
    "AdaRaker": lambda seed: omkl.AdaRakerRegressor(random_state=seed),
    "AdaRaker, started anew": lambda seed: omkl.AdaRakerRegressor(random_state=seed, warm=False),
    "SFG-MKL-R": lambda seed: omkl.SFGMKLRegressor(random_state=seed, refine=True),
    "FOGD": lambda seed: omkl.FOGDRegressor(random_state=seed),
    "NOGD": lambda seed: omkl.NOGDRegressor(random_state=seed),
    "KRLS-T": lambda seed: omkl.KRLSTRegressor(random_state=seed),
    "VAW^2": lambda seed: omkl.VAW2Regressor(random_state=seed),
    "DOEBE": lambda seed: omkl.DOEBERegressor(random_state=seed),
    "online Bayesian stacking": lambda seed: omkl.DOEBERegressor(random_state=seed, mixing="stacking"),
    "GraphMKL": lambda seed: omkl.GraphMKLRegressor(random_state=seed),
}
AFTER = 500  # rows after a change that are reported on their own
DRIFT_SEEDS = 3
DRIFT_ROWS = 3000


def changing(name: str, rows: int = DRIFT_ROWS) -> dict[str, Any]:
    """Squared error of every learner: over the stream, and over the rows after its changes; medians over seeds."""
    stream = evaluation_stream(name, rows)
    after = np.zeros(len(stream.y), dtype=bool)
    for change in stream.changes:
        after[change : change + AFTER] = True
    out = {}
    for learner, make in LEARNERS.items():
        found = []
        for seed in range(DRIFT_SEEDS):
            begin = time.thread_time()
            error = (make(seed).predict_then_learn(stream.X, stream.y) - stream.y) ** 2
            found.append((np.mean(error), np.mean(error[after]), (time.thread_time() - begin) / len(error) * 1e6))
        mean, changed, microseconds = np.median(found, axis=0)
        out[learner] = {"mse": brief(mean), "after": brief(changed), "microseconds": brief(microseconds)}
    return {"rows": len(stream.y), "learners": out, "running mean": brief(running_mean_mse(stream.y))}


# Log scores

BAYESIAN = ("airfoil", "naval", "wine_white", "bias", "air_quality", "energy")
FIRST = 1000  # rows by which the noise and the random walk are chosen, and which are not counted
MOST = 3000
NOISES, WALKS = (0.003, 0.01, 0.03, 0.1, 0.3), (1e-4, 1e-3, 1e-2)


def standardised(name: str) -> tuple[Matrix, Vector]:
    """Inputs and target with the mean and deviation of the first rows."""
    stream = load(name)
    X, y = stream.X[:MOST], stream.y[:MOST]
    deviation = X[:FIRST].std(axis=0)
    X = (X - X[:FIRST].mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)
    return np.ascontiguousarray(X / math.sqrt(X.shape[1])), (y - y[:FIRST].mean()) / y[:FIRST].std()


def evidence(X: Matrix, y: Vector, **choice: Any) -> float:
    online = Online.make("doebe", DOEBESettings(**choice), X.shape[1])
    online.run(X[:FIRST], y[:FIRST])
    return float(online.state.log_score)


def scores(name: str) -> dict[str, Any]:
    """Normalised squared error and mean log predictive density after the first rows."""
    X, y = standardised(name)
    rest = y[FIRST:]
    noise, walk = max(((n, w) for n in NOISES for w in WALKS), key=lambda c: evidence(X, y, noise=c[0], walk=c[1]))
    still = max(NOISES, key=lambda n: evidence(X, y, noise=n, walk=0.0))
    out: dict[str, Any] = {"noise": noise, "walk": walk}
    choices: dict[str, dict[str, Any]] = {
        "averaging, coefficients stay": {"noise": still, "walk": 0.0},
        "averaging (DOEBE)": {"noise": noise, "walk": walk},
        "stacking (OBS)": {"noise": noise, "walk": walk, "mixing": "stacking"},
    }
    for row, choice in choices.items():
        online = Online.make("doebe", DOEBESettings(**choice), X.shape[1])
        online.run(X[:FIRST], y[:FIRST])
        before = online.state.log_score
        f = online.run(X[FIRST:], rest)
        out[row] = score(f, rest, (online.state.log_score - before) / len(rest))
    done = graph_mkl({})(RawStream(name, "numbers", X, y, unit=1.0, ordered=False), 0)
    assert done.half_widths is not None
    f, half_widths = done.predictions[FIRST:], done.half_widths[FIRST:]
    deviation = half_widths[:, LEVELS.index(ONE_SIGMA)]
    out["GraphMKL, its intervals"] = score(f, rest, -float(np.mean(log_score(rest - f, half_widths))))
    out["GraphMKL, Student's t"] = score(f, rest, -float(np.mean(student_log_score(rest - f, half_widths))))
    out["GraphMKL, normal"] = score(f, rest, -float(np.mean(normal_log_score(rest - f, deviation))))
    raker = Online.make("raker", Settings(), X.shape[1]).run(X, y)[FIRST:]
    out["Raker"] = score(raker, rest, None)
    return out


def score(f: Vector, y: Vector, log_density: float | None) -> dict[str, Any]:
    nmse = float(np.mean((f - y) ** 2) / np.var(y))
    return {"nmse": brief(nmse), "log_score": None if log_density is None else brief(float(log_density))}


# SFG-MKL for practitioners

TEN = ("airfoil", "concrete", "naval", "wine_white", "bias", "air_quality", "energy", "toms_hardware", "twitter",
       "istanbul", "diabetes", "mixture")  # fmt: skip
SEEDS = 3
ROWS = 2000
FORMS: dict[str, tuple[str, Settings]] = {
    "Raker, `Settings()`": ("raker", Settings()),
    "SFG-MKL, `Settings()`": ("sfg-mkl", Settings()),
    "SFG-MKL-R, `Settings()`": ("sfg-mkl-r", Settings()),
    "SFG-MKL, `Settings.practical()`": ("sfg-mkl", Settings.practical()),
    "SFG-MKL-R, `Settings.practical()`": ("sfg-mkl-r", Settings.practical()),
    "Raker, `Settings.practical()`": ("raker", Settings.practical()),
    "SFG-MKL, practical, `learning_rate=3`": ("sfg-mkl", Settings.practical(learning_rate=3.0)),
    "SFG-MKL-R, practical, `learning_rate=3`": ("sfg-mkl-r", Settings.practical(learning_rate=3.0)),
    "Raker, practical, `learning_rate=3`": ("raker", Settings.practical(learning_rate=3.0)),
}


def defaults(name: str) -> dict[str, Any]:
    """Mean squared error and microseconds of a row of every form."""
    stream = load(name)
    X, y = np.ascontiguousarray(stream.X[:ROWS]), stream.y[:ROWS]
    out: dict[str, Any] = {"running mean": {"mse": brief(running_mean_mse(y))}}
    for form, (learner, settings) in FORMS.items():
        found = []
        for seed in range(SEEDS):
            online = Online.make(learner, settings, X.shape[1], seed)
            begin = time.thread_time()
            f = online.run(X, y)
            found.append((float(np.mean((f - y) ** 2)), (time.thread_time() - begin) / len(y) * 1e6))
        error, microseconds = np.mean(found, axis=0)
        out[form] = {"mse": brief(error), "microseconds": brief(microseconds)}
    return out


# The page


def quoted(results: Results) -> dict[str, str]:
    """The generated parts of docs/related.md."""
    return {
        "journal": journal_table(results["journal"]),
        "drift": drift_table(results["drift"]),
        "scores": score_table(results["scores"]),
        "defaults": defaults_table(results["defaults"]),
    }


def number(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"


def best(values: Sequence[float | None], shown: Callable[[float | None], str], highest: bool = False) -> list[str]:
    """The values as text, the best in bold."""
    known = [value for value in values if value is not None]
    top = (max if highest else min)(known) if known else None
    return [f"**{shown(value)}**" if value is not None and value == top else shown(value) for value in values]


def columns(head: Sequence[str], rows: Sequence[str], cells: Sequence[Sequence[str]]) -> str:
    return markdown.table(["", *head], [[row, *(column[k] for column in cells)] for k, row in enumerate(rows)])


def journal_table(found: Results) -> str:
    rows = list(next(iter(found.values()))["mse"])
    cells = []
    for cell in found.values():
        values = [cell["mse"][row]["mse"] for row in rows]
        texts = best(values, lambda v: "diverges" if v is None else number(1e3 * v))
        deviations = [cell["mse"][row]["sd"] for row in rows]
        texts = [f"{t} ± {number(1e3 * s)}" if s else t for t, s in zip(texts, deviations, strict=True)]
        known = (cell["hindsight"].get(how) for how in ("on features", "exact"))
        cells.append([*texts, *(number(loss and 1e3 * loss) for loss in known)])
    rows += ["best kernel in hindsight, on features", "best kernel in hindsight, exact"]
    head = (
        f"MSE x 1e-3, mean ± standard deviation over {FEATURE_SETS} sets of random features; measured in "
        f"{sum(cell['seconds'] for cell in found.values()):.0f} seconds of one core, without the last rows."
    )
    return f"{head}\n\n{columns(list(found), rows, cells)}"


def drift_table(found: Results) -> str:
    rows = ["running mean", *LEARNERS]
    cells, head = [], []
    for name, cell in found.items():
        head += [name, "after changes"]
        learners = cell["learners"]
        cells.append(best([cell["running mean"], *(learners[row]["mse"] for row in LEARNERS)], number))
        cells.append(best([None, *(learners[row]["after"] for row in LEARNERS)], number))
    times = [[found[name]["learners"][row]["microseconds"] for name in found] for row in LEARNERS]
    cells.append(["", *(number(float(np.mean(each))) for each in times)])
    return columns([*head, "microseconds"], rows, cells)


def score_table(found: Results) -> str:
    rows = [row for row in next(iter(found.values())) if row not in ("noise", "walk")]
    cells, head = [], []
    for name, cell in found.items():
        head += [f"{name}, nMSE", "log score"]
        cells.append(best([cell[row]["nmse"] for row in rows], number))
        cells.append(best([cell[row]["log_score"] for row in rows], number, highest=True))
    return columns(head, rows, cells)


def defaults_table(found: Results) -> str:
    rows = ["running mean", *FORMS]
    reference = "Raker, `Settings()`"
    cells = [best([1e3 * cell[row]["mse"] for row in rows], number) for cell in found.values()]
    ratios = {row: [cell[row]["mse"] / cell[reference]["mse"] for cell in found.values()] for row in rows}
    cells.append([f"{np.exp(np.mean(np.log(ratios[row]))):.2f}" for row in rows])
    cells.append([f"{max(ratios[row]):.2f}" for row in rows])
    times = [np.mean([c[row]["microseconds"] / c[reference]["microseconds"] for c in found.values()]) for row in FORMS]
    cells.append(["", *(f"{each:.2f}" for each in times)])
    head = [*found, "ratio to Raker, geometric mean", "largest", "time, ratio to Raker"]
    return columns(head, rows, cells)


def main() -> None:
    parts: dict[str, tuple[Callable[[str], Any], Sequence[str]]] = {
        "journal": (journal, list(JOURNAL)),
        "drift": (changing, DRIFT),
        "scores": (scores, BAYESIAN),
        "defaults": (defaults, TEN),
    }
    chosen = argparse.ArgumentParser(prog="python -m omkl_lab.related", description=__doc__)
    chosen.add_argument("parts", nargs="*", choices=[[], *parts], help=f"all unless named: {', '.join(parts)}")
    wanted = chosen.parse_args().parts or list(parts)
    results: dict[str, Any] = {} if len(wanted) == len(parts) else json.loads(RESULTS.read_text(encoding="utf-8"))
    results["command"] = COMMAND
    for part in wanted:
        work, names = parts[part]
        results[part] = {}
        for name in names:
            print(f"{part}: {name}", flush=True)
            results[part][name] = work(name)
    write_json(RESULTS, results)
    markdown.fill(PAGE, quoted(results), COMMAND)


if __name__ == "__main__":
    main()
