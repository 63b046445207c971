"""`--sweeps`: varies one setting at a time, other kernels, and classification; writes sweeps.jsonl."""

from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any, NamedTuple, TypedDict

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from omkl import algorithms, losses
from omkl._version import __version__
from omkl.algorithms.settings import Settings
from omkl.kernels import Gaussian, log_grid
from omkl.online import Online
from omkl.report.charts import Chart, Choice, chart, choice
from omkl_lab.configurations import NAMES
from omkl_lab.data.sets import SETS
from omkl_lab.files import write_lines
from omkl_lab.parallel import Journal, Record, Unit, raise_if_stopped, run_parallel
from omkl_lab.prequential import DIVERGED, Features, run_stream
from omkl_lab.progress import Progress
from omkl_lab.reproduce.charts import COLOURS
from omkl_lab.reproduce.results import fingerprint
from omkl_lab.streams import Stream

RUNS = 5
LEARNERS: tuple[str, ...] = ("raker", "omkl-gf", "sfg-mkl", "sfg-mkl-r")
CLASSIFICATION = tuple(name for name, s in SETS.items() if s.task == "classification")


class Setting(NamedTuple):
    """One value of one factor: changes to the paper's protocol, and the horizon relative to the stream's length."""

    factor: str
    value: str
    changes: dict[str, Any]
    horizon: float | None = 1.0  # None if unknown
    learners: tuple[str, ...] = LEARNERS

    def settings(self, rows: int) -> Settings:
        horizon = None if self.horizon is None else max(1, round(self.horizon * rows))
        return Settings(**{"stabiliser": "none", "horizon": horizon, **self.changes})


class Sweep(TypedDict):
    """A line of sweeps.jsonl."""

    factor: str
    value: str
    dataset: str
    algorithm: str
    runs: int
    mse: float | None  # of a regression set
    log_loss: float | None  # of a classification set
    error_rate: float | None
    std: float | None  # between runs, of the MSE or the log-loss
    seconds: float
    kernels: float
    diverged: bool


def sweep() -> list[Setting]:
    """Settings around N = 41, D = 50, M = 5, horizon T; the paper's protocol with the importance-weight-aware step."""

    def setting(factor: str, value: object, horizon: float | None = 1.0, **changes: Any) -> Setting:
        return Setting(factor, str(value), {"stabiliser": "aware", **changes}, horizon)

    kernels_evaluated = (1, 2, 5, 10, 20, 41)
    return [
        *(setting("M", M, out_degree=M)._replace(learners=("sfg-mkl", "sfg-mkl-r")) for M in kernels_evaluated),
        *(setting("M", M, draws=M)._replace(learners=("omkl-gf",)) for M in kernels_evaluated),
        *(setting("D", D, n_features=D) for D in (10, 25, 50, 100, 200)),
        *(setting("N", N, kernels=log_grid(Gaussian, 0.1, 10.0, N)) for N in (11, 21, 41, 81)),
        *(setting("horizon", f"{share:g} T", share) for share in (1 / 64, 1 / 16, 1 / 4, 1, 4)),
        setting("horizon", "unknown", None),
        *(setting("dictionary", name, kernels=name) for name in ("paper", "mixed")),
    ]


def classification() -> list[Setting]:
    logistic = {"loss": "logistic"}
    return [
        Setting("classification", "paper's protocol", logistic),
        Setting("classification", "Settings()", {**logistic, "stabiliser": "aware"}, None),
    ]


class SweepCase(NamedTuple):
    """A learner with one setting on one stream."""

    stream: Stream
    setting: Setting
    learner: str


def run(found: Sequence[Stream], labelled: Sequence[Stream], options: Any, console: Console, stderr: Console) -> None:
    runs = min(options.runs, RUNS)
    learners = [name for name in LEARNERS if NAMES[name] in options.algorithms]
    cases = [
        SweepCase(stream, setting, learner)
        for streams, settings in ((found, sweep()), (labelled, classification()))
        for stream in streams
        for setting in settings
        for learner in setting.learners
        if learner in learners
    ]
    seeds = range(options.seed, options.seed + runs)
    prints = {stream.name: fingerprint(stream) for stream in (*found, *labelled)}

    def key(case: SweepCase, seed: int) -> str:
        name, setting = case.stream.name, case.setting
        about = f"{setting.factor} = {setting.value}"
        return f"{__version__} / {name} / {prints[name]} / {about} / {case.learner} / {seed}"

    with Journal(options.out / "sweeps_journal.jsonl") as journal:
        missing = [(case, seed) for case in cases for seed in seeds if key(case, seed) not in journal.records]
        all_rows = runs * sum(len(case.stream.y) for case in cases)
        with Progress(all_rows, stderr, "sweeps") as bar:
            bar.tick(all_rows - sum(len(case.stream.y) for case, _ in missing))
            with closing(run_parallel(plan(missing, key), options.jobs)) as coming:
                for names, records in coming:
                    journal.add(names, records)
                    bar.tick(sum(r["rows"] for r in records))
        lines = [summarise(case, [journal.records[key(case, seed)] for seed in seeds]) for case in cases]
    write_lines(options.out / "sweeps.jsonl", lines)
    show(lines, console)


def plan(missing: Sequence[tuple[SweepCase, int]], key: Callable[[SweepCase, int], str]) -> list[Unit]:
    """Units of up to 8 cases of one stream and seed, which share random features; a killed run loses little."""
    groups: dict[tuple[str, int], list[SweepCase]] = {}
    for case, seed in missing:
        groups.setdefault((case.stream.name, seed), []).append(case)
    units = []
    for (_, seed), group in groups.items():
        for start in range(0, len(group), 8):
            part = group[start : start + 8]
            entries = [(case.learner, case.setting.settings(len(case.stream.y))) for case in part]
            arguments = {"stream": part[0].stream, "seed": seed, "entries": entries}
            units.append(Unit(tuple(key(case, seed) for case in part), replicate, arguments))
    return units


def replicate(stream: Stream, seed: int, entries: list[tuple[str, Settings]]) -> list[Record]:
    rows, d = stream.X.shape
    features = Features(d, seed)
    records: list[Record] = []
    for learner, settings in entries:
        problem = features.assign(algorithms.problem(learner, settings, d), settings)
        online = Online(learner, problem, seed)
        run = run_stream(online, stream, between=raise_if_stopped)
        f, y = run.predictions, stream.y[: len(run.predictions)]
        record: Record = {"rows": rows, "seconds": run.seconds, "kernels": online.evaluations / max(online.t, 1)}
        if len(f) < rows:
            record |= {"loss": None}
        elif settings.loss == "squared":
            record |= {"loss": float(np.mean((f - y) ** 2))}
        else:
            record |= {"loss": float(np.mean([losses.value("logistic", a, b) for a, b in zip(f, y, strict=True)])),
                       "error_rate": float(np.mean(np.where(f >= 0, 1, -1) != y))}  # fmt: skip
        records.append(record)
    return records


def summarise(case: SweepCase, runs: list[Record]) -> Sweep:
    stream, setting, learner = case
    labels = setting.factor == "classification"
    values = [r["loss"] for r in runs if r["loss"] is not None]
    diverged = len(values) < len(runs) or (not labels and max(values) > DIVERGED)
    mean = None if diverged else float(np.mean(values))
    return {
        "factor": setting.factor,
        "value": setting.value,
        "dataset": stream.name,
        "algorithm": NAMES[learner],
        "runs": len(runs),
        "mse": None if labels else mean,
        "log_loss": mean if labels else None,
        "error_rate": float(np.mean([r["error_rate"] for r in runs])) if labels and not diverged else None,
        "std": float(np.std(values, ddof=1)) if not diverged and len(runs) > 1 else None,
        "seconds": float(np.mean([r["seconds"] for r in runs])),
        "kernels": float(np.mean([r["kernels"] for r in runs])),
        "diverged": diverged,
    }


# Tables and charts


def shown(line: Sweep) -> str:
    if line["diverged"]:
        return "diverges"
    if line["error_rate"] is not None:
        return f"{100 * line['error_rate']:.2f} %"
    return f"{1e3 * (line['mse'] or 0):.2f}"


def tables_of(lines: Sequence[Sweep]) -> dict[str, Any]:
    """One table per factor: a row per data set and value, a column per algorithm."""
    tables = []
    for factor in dict.fromkeys(line["factor"] for line in lines):
        mine = [line for line in lines if line["factor"] == factor]
        names = [name for name in NAMES.values() if any(line["algorithm"] == name for line in mine)]
        rows = []
        for dataset, value in dict.fromkeys((line["dataset"], line["value"]) for line in mine):
            found = {line["algorithm"]: line for line in mine if (line["dataset"], line["value"]) == (dataset, value)}
            rows.append([dataset, value, *(shown(found[name]) if name in found else "" for name in names)])
        tables.append(
            {"title": TITLES[factor], "words": [NOTES[factor]], "head": ("data set", factor, *names), "rows": rows}
        )
    runs = max(line["runs"] for line in lines)
    return {
        "words": [
            f"Settings that the paper keeps fixed, varied one at a time; means over {runs} feature sets. Unless the "
            "table says otherwise, runs follow the paper's protocol without committing to a node, but with the "
            "importance-weight-aware step, so that no value leads to divergence."
        ],
        "tables": tables,
    }


TITLES = {
    "M": "Kernels evaluated per round (M)", "D": "Random features (D)", "N": "Kernels in the dictionary (N)",
    "horizon": "Horizon",
    "dictionary": "Gaussian and Laplacian kernels", "classification": "Classification",
}  # fmt: skip
NOTES = {
    "M": "MSE x 1e-3. For SFG-MKL and SFG-MKL-R the out-degree of the graph, for OMKL-GF the number of draws.",
    "D": "MSE x 1e-3.",
    "N": "MSE x 1e-3. Gaussian kernels with length scales from 0.1 to 10, evenly spaced in the logarithm.",
    "horizon": "MSE x 1e-3. eta = xi = 1 / sqrt(horizon), where the horizon is a multiple of the stream's length "
    "T; 1 / sqrt(t) if it is unknown, which is the library's default, Settings().",
    "dictionary": "MSE x 1e-3. The paper's 41 Gaussians, or a grid of Gaussians and one of Laplacians summarise.",
    "classification": "Share of wrong labels, each predicted before it is learned, logistic loss. Labels come in "
    "long runs in these files, so that repeating the last label has a low error rate too.",
}


def charts_of(lines: Sequence[Sweep]) -> list[Choice]:
    out = []
    for factor in ("M", "D", "N", "horizon"):
        for dataset in dict.fromkeys(line["dataset"] for line in lines if line["factor"] == factor):
            mine = [line for line in lines if (line["factor"], line["dataset"]) == (factor, dataset)]
            out.append(choice(f"{TITLES[factor]}: {dataset}", sweep_chart(mine, factor)))
    return out


def sweep_chart(lines: Sequence[Sweep], factor: str) -> Chart:
    data = []
    for name in NAMES.values():
        mine = [line for line in lines if line["algorithm"] == name and line["mse"] is not None]
        if mine:
            data.append({
                "type": "scatter", "mode": "lines+markers", "name": name, "x": [line["value"] for line in mine],
                "y": [1e3 * (line["mse"] or 0) for line in mine], "line": {"color": COLOURS[name], "width": 2},
                "error_y": {"type": "data", "array": [1e3 * (line["std"] or 0) for line in mine], "thickness": 1},
                "hovertemplate": f"{factor} = %{{x}}<br>MSE %{{y:.2f}} x 1e-3",
            })  # fmt: skip
    about = f"Mean squared error against {factor} on {lines[0]['dataset']}"
    return chart(data, factor, "MSE x 1e-3", about, xaxis={"type": "category", "title": {"text": factor}},
                 yaxis={"title": {"text": "MSE x 1e-3"}, "rangemode": "tozero"})  # fmt: skip


def show(lines: Sequence[Sweep], console: Console) -> None:
    for table in tables_of(lines)["tables"]:
        out = Table(title=table["title"], title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
        for k, name in enumerate(table["head"]):
            out.add_column(name, justify="left" if k < 2 else "right", no_wrap=True)
        for row in table["rows"]:
            out.add_row(*row)
        console.print()
        console.print(out)
