"""`--theory`: measures regret over growing horizons, with a journal, and writes theory.json."""

from collections.abc import Sequence
from contextlib import closing
from typing import Any, TypedDict

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from omkl import algorithms
from omkl._version import __version__
from omkl.algorithms.settings import Settings
from omkl.features import column_names, frequencies
from omkl.kernels import dictionary
from omkl_lab.configurations import NAMES
from omkl_lab.files import write_json
from omkl_lab.parallel import Journal, Record, Unit, run_parallel
from omkl_lab.progress import Progress
from omkl_lab.reproduce.results import fingerprint
from omkl_lab.reproduce.theory import bounds, complexity, hindsight
from omkl_lab.reproduce.theory.regret import SUBSETS, RegretTracker, track
from omkl_lab.streams import Stream, mixture

LEARNERS: tuple[str, ...] = ("sfg-mkl", "sfg-mkl-r", "omkl-gf", "raker")
EXACT = 2000  # up to this many rows the best function is computed exactly, in the RKHS of the kernels
HORIZONS = 7  # from a sixteenth of the stream to the whole, evenly spaced in the logarithm
RUNS = 3
STATIONARY = 8000  # rows of the generated stream, the only stationary one here


class Point(TypedDict):
    """One algorithm at one horizon, means over the runs."""

    algorithm: str
    T: int
    regret: float | None  # None if a run diverged
    regret_std: float | None
    average_loss: float | None
    best_loss: float  # of f*, per round
    star: int  # j*
    C: float
    L: float
    epsilon: float
    least_q: float | None
    beta: float | None
    bound: float | None
    bound_without_features: float | None  # |f*|^2 for (1 + epsilon) C^2, and no epsilon L T C
    losses_out_of_range: float  # share of (round, kernel) whose loss is not in [0, 1]
    large_gradients: float  # share whose gradient is longer than 2
    mean_inverse_q_bar: float | None
    mean_inverse_q: float | None


def horizons(rows: int) -> list[int]:
    """
    >>> horizons(1600)
    [100, 159, 252, 400, 635, 1008, 1600]
    """
    at = np.geomspace(max(rows / 16, min(rows, 20)), rows, HORIZONS)
    return [int(T) for T in np.unique(at.round())]


def run(found: Sequence[Stream], options: Any, console: Console, stderr: Console) -> None:
    streams = [*found, *([] if options.datasets else [mixture(STATIONARY, options.seed)])]
    learners = [name for name in LEARNERS if NAMES[name] in options.algorithms]
    runs = min(options.runs, RUNS)
    seeds = range(options.seed, options.seed + runs)
    results = []
    with Journal(options.out / "theory_journal.jsonl") as journal:
        units = {unit.keys[0]: unit for stream in streams for unit in plan(stream, learners, seeds)}
        missing = [unit for key, unit in units.items() if key not in journal.records]
        with Progress(sum(cost(unit) for unit in units.values()), stderr, "regret") as bar:
            bar.tick(sum(cost(unit) for key, unit in units.items() if key in journal.records))
            with closing(run_parallel(missing, options.jobs, prefer="processes")) as coming:
                for keys, records in coming:
                    journal.add(keys, records)
                    bar.tick(cost(units[keys[0]]))
        for stream in streams:
            records = [journal.records[unit.keys[0]] for unit in plan(stream, learners, seeds)]
            results.append(summarise(stream, learners, records))
    with Progress(complexity.ticks(), stderr, "complexity") as bar:
        exponents = complexity.measure(bar.tick)
    write_json(
        options.out / "theory.json", {"runs": runs, "subsets": SUBSETS, "streams": results, "complexity": exponents}
    )
    show(results, exponents, console)


def plan(stream: Stream, learners: Sequence[str], seeds: Sequence[int]) -> list[Unit]:
    """One unit per seed; for a short stream, first one for the best function."""
    at = horizons(len(stream.y))
    name = f"{__version__} / {stream.name} / {fingerprint(stream)}"
    units = [
        Unit((f"{name} / {', '.join(learners)} / {seed}",), track_regret,
             {"stream": stream, "seed": seed, "at": at, "learners": list(learners)})
        for seed in seeds
    ]  # fmt: skip
    if len(stream.y) <= EXACT:
        units.insert(0, Unit((f"{name} / best",), best_exactly, {"stream": stream, "at": at}))
    return units


def cost(unit: Unit) -> int:
    """The approximate number of rounds."""
    return int(sum(unit.arguments["at"])) * len(unit.arguments.get("learners", "1"))


def best_exactly(stream: Stream, at: list[int]) -> list[Record]:
    kernels, lam = dictionary("paper"), Settings().ridge
    return [{"fits": [hindsight.exact(kernels, stream.X[:T], stream.y[:T], lam) for T in at]}]


def track_regret(stream: Stream, seed: int, at: list[int], learners: list[str]) -> list[Record]:
    d = stream.X.shape[1]
    V = frequencies(dictionary("paper"), column_names(d), Settings().n_features, seed)
    trackers = [
        RegretTracker(learner, algorithms.problem(learner, Settings.paper(T), d)._replace(V=V), T, seed)
        for T in at
        for learner in learners
    ]
    track(trackers, V, stream.X, stream.y)
    points = [
        {
            "learner": f.learner, "T": f.horizon, "loss": None if f.diverged else f.loss,
            "L": float(np.sqrt(f.gradient2)),
            "least_q": f.least_q, "inverse_q": f.inverse_q.tolist(), "inverse_q_bar": f.inverse_q_bar.tolist(),
            "losses_out_of_range": f.losses_out_of_range, "large_gradients": f.large_gradients, "seen": f.pairs,
        }
        for f in trackers
    ]  # fmt: skip
    record: Record = {"points": points}
    if len(stream.y) > EXACT:
        lam = Settings().ridge
        record["fits"] = [hindsight.in_features(V, stream.X[:T], stream.y[:T], lam) for T in at]
    return [record]


def summarise(stream: Stream, learners: Sequence[str], records: list[Record]) -> dict[str, Any]:
    """Regret, bounds and growth of one stream from its records."""
    rows, d = stream.X.shape
    at = horizons(rows)
    exact = rows <= EXACT
    fixed = records[0]["fits"] if exact else None
    runs = records[1:] if exact else records
    points = []
    for learner in learners:
        for k, T in enumerate(at):
            per_run = [next(p for p in r["points"] if (p["learner"], p["T"]) == (learner, T)) for r in runs]
            bests = hindsight.best([[hindsight.Fit(*fit) for fit in (fixed or r["fits"])[k]] for r in runs])
            points.append(point(learner, T, d, per_run, bests))
    fits = {}
    for name in (NAMES[learner] for learner in learners):
        mine = [p for p in points if p["algorithm"] == name]
        regret = np.array([np.nan if p["regret"] is None else p["regret"] for p in mine])
        fit = bounds.growth(np.array([p["T"] for p in mine], dtype=float), regret)
        fits[name] = fit and fit._asdict()
    return {
        "dataset": stream.name, "rows": rows, "features": d, "runs": len(runs), "points": points, "growth": fits,
        "space": "the kernels' own spaces" if exact else "the spaces of the random features",
        "needed": needed([p for p in points if p["T"] == at[-1]], d),
    }  # fmt: skip


def point(learner: str, T: int, d: int, runs: list[Any], bests: list[hindsight.Best]) -> Point:
    settings = Settings.paper(T)
    kernels = dictionary("paper")
    rates = bounds.Rates(T, len(kernels), settings.schedule.eta, settings.schedule.xi)
    # a mean loss above 1 counts as diverged, as in the tables
    alive = all(run["loss"] is not None and run["loss"] <= T for run in runs)
    pairs = zip(runs, bests, strict=True) if alive else ()
    regrets = [run["loss"] - best.loss for run, best in pairs]  # (20)
    star, C = bests[0].kernel, float(np.mean([best.C for best in bests]))
    sigma2 = d / kernels[star].length_scale ** 2  # second moment of the spectral density
    eps = bounds.epsilon(sigma2, d, settings.n_features)
    L = max(run["L"] for run in runs)
    graph = learner in ("sfg-mkl", "sfg-mkl-r")
    least = min(run["least_q"] for run in runs) if graph else None
    beta = bound = without = None
    mean_bar = mean_q = None
    if graph and alive and least is not None:
        inverse_q, inverse_q_bar = (
            np.mean([run[name] for run in runs], axis=0) for name in ("inverse_q", "inverse_q_bar")
        )
        norm = float(np.sqrt(np.mean([best.norm2 for best in bests])))
        A = algorithms.problem(learner, settings, d).graph.A
        mean_bar, mean_q = float(inverse_q_bar[A[:, star]].min()) / T, float(inverse_q[star]) / T
        if learner == "sfg-mkl":
            bound = bounds.theorem_3(rates, A, star, inverse_q, inverse_q_bar, eps, C, L)
            without = bounds.theorem_3(rates, A, star, inverse_q, inverse_q_bar, 0.0, norm, L)
        else:
            beta = min(1 / len(kernels), least)  # the proof needs q >= beta in every round, and beta <= 1/N
            bound = bounds.theorem_4(rates, beta, eps, C, L)
            without = bounds.theorem_4(rates, beta, 0.0, norm, L)
    seen = sum(run["seen"] for run in runs)
    return {
        "algorithm": NAMES[learner],
        "T": T,
        "regret": float(np.mean(regrets)) if alive else None,
        "regret_std": float(np.std(regrets, ddof=1)) if len(regrets) > 1 else None,
        "average_loss": float(np.mean([run["loss"] for run in runs])) / T if alive else None,
        "best_loss": float(np.mean([best.loss for best in bests])) / T,
        "star": star,
        "C": C,
        "L": L,
        "epsilon": eps,
        "least_q": least,
        "beta": beta,
        "bound": bound,
        "bound_without_features": without,
        "losses_out_of_range": sum(run["losses_out_of_range"] for run in runs) / seen,
        "large_gradients": sum(run["large_gradients"] for run in runs) / seen,
        "mean_inverse_q_bar": mean_bar,
        "mean_inverse_q": mean_q,
    }


def needed(last: list[Point], d: int) -> list[dict[str, Any]]:
    """How D and T would have to grow for the bound to fall to T, the regret that (as2) allows anybody.

    A quarter of T for epsilon L T C, the rest for what grows like sqrt(T); C, L and the mean of 1/q as measured.
    """
    out = []
    for p in last:
        if p["bound"] is None or p["mean_inverse_q_bar"] is None or p["mean_inverse_q"] is None:
            continue
        N = len(dictionary("paper"))
        sigma2 = d / dictionary("paper")[p["star"]].length_scale ** 2
        eps = 1 / (4 * p["L"] * p["C"])
        start = np.log(N * 5) if p["beta"] is None else 2 * np.log(N)
        inverse_terms = (
            (p["mean_inverse_q_bar"] + p["L"] ** 2 * p["mean_inverse_q"]) / 2 + N / 2
            if p["beta"] is None
            else (p["L"] ** 2 + N * p["beta"] + 1) / (2 * p["beta"])
        )
        constant = float(start + (1 + eps) * p["C"] ** 2 / 2 + 1 + inverse_terms)
        out.append({"algorithm": p["algorithm"], "epsilon": eps, "D": bounds.features_needed(eps, sigma2, d),
                    "T": bounds.rounds_needed(constant, 0.75)})  # fmt: skip
    return out


def show(results: list[dict[str, Any]], exponents: list[complexity.Exponent], console: Console) -> None:
    out = Table(title="regret at the end of the stream", title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("stream", "algorithm"):
        out.add_column(name, no_wrap=True)
    for name in ("regret / T", "exponent (95 %)", "bound / T", "loss > 1"):
        out.add_column(name, justify="right", no_wrap=True)
    for r in results:
        for p in r["points"]:
            if p["T"] == r["rows"]:
                fit = r["growth"][p["algorithm"]]
                out.add_row(
                    r["dataset"], p["algorithm"], "diverges" if p["regret"] is None else f"{p['regret'] / p['T']:.4f}",
                    f"{fit['exponent']:.2f} [{fit['low']:.2f}, {fit['high']:.2f}]".replace("[", r"\[") if fit else "",
                    "" if p["bound"] is None else f"{p['bound'] / p['T']:.3g}", f"{100 * p['losses_out_of_range']:.2f} "
                    "%",
                )  # fmt: skip
    console.print()
    console.print(out)
    console.print("A bound above 1 per round says nothing: (as2) keeps every loss in [0, 1].", style="dim")
    parts = Table(title="time per sample ~ factor^exponent", title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("algorithm", "printed", "factor", "printed exponent", "fitted (95 %)"):
        parts.add_column(name, no_wrap=True)
    for e in exponents:
        span = f"{e['fitted']:.2f} \\[{e['low']:.2f}, {e['high']:.2f}]"
        parts.add_row(e["algorithm"], e["printed"], e["factor"], f"{e['expected']:g}", span)
    console.print(parts)
