"""The work of `omkl-lab reproduce`: loads the streams, runs the cases, writes tables, figures and report."""

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

from omkl.persist import write_atomically
from omkl_lab.configurations import Configuration, algorithms_named, default_configurations, paper_configurations
from omkl_lab.data.commands import get
from omkl_lab.data.download import ARCHIVES, DownloadError
from omkl_lab.data.sets import PAPER, SETS, DataSetNotFoundError, how_to_get, is_path, load, locate
from omkl_lab.files import read_json, read_lines, write_lines
from omkl_lab.progress import Progress
from omkl_lab.reproduce import claims, parameter_sweeps, tables
from omkl_lab.reproduce.experiments import printed
from omkl_lab.reproduce.graphs import drawn
from omkl_lab.reproduce.measure import measure
from omkl_lab.reproduce.results import Detail, Result, cases
from omkl_lab.reproduce.tables import sections
from omkl_lab.reproduce.theory import job as theory
from omkl_lab.reproduce.theory import report as theory_report
from omkl_lab.streams import Stream

DRAWERS = ("plotly", "jinja2", "matplotlib")
NEEDS_PLOT = "figures and report.html need {}: pip install 'omkl[plot]'"


class Options(NamedTuple):
    """The options of the command."""

    datasets: list[str]
    algorithms: list[str]
    runs: int
    jobs: int
    seed: int
    out: Path
    defaults: bool = False
    theory: bool = False
    sweeps: bool = False

    @classmethod
    def checked(cls, datasets: list[str], algorithms: list[str], **others: object) -> "Options":
        """Options with names validated before anything runs."""
        for name in datasets:
            if name not in SETS and not is_path(name):
                raise ValueError(
                    f"unknown data set {name!r}; choose from {', '.join(SETS)}, or give the path of a .csv file"
                )
            if name in SETS and SETS[name].task == "classification" and not others["sweeps"]:
                raise ValueError(f"{name} is a classification set, which is not in the tables; add --sweeps")
        unique = list(dict.fromkeys(datasets))
        return cls(unique, algorithms_named(algorithms), **others)  # type: ignore[arg-type]  # typed by the command line


def streams(names: list[str], seed: int, console: Console, download: bool = True) -> list[Stream]:
    """Load the streams, downloading if allowed; each one that is not available is reported in one line."""
    out = []
    for name in names:
        try:
            if download and name in ARCHIVES and locate(name) is None:
                get(name, console)
            stream = load(name, seed)
        except DataSetNotFoundError as error:
            console.print(f"skipped: {error}", style="yellow", soft_wrap=True, highlight=False)
        except DownloadError as error:
            line = f"skipped: data set {name} not found and not downloaded ({error}); {how_to_get(name)}"
            console.print(line, style="yellow", soft_wrap=True, highlight=False, markup=False)
        else:
            known = SETS.get(name)
            if known and printed(name, "SFG-MKL") and stream.X.shape != (known.rows, known.features):
                size = (known.rows, known.features)
                line = f"note: {name} has {stream.X.shape} rows and features, in the paper {size}"
                console.print(line, style="yellow", soft_wrap=True, highlight=False, markup=False)
            out.append(stream)
    return out


def reproduce(options: Options, console: Console, stderr: Console) -> None:
    """Run the command."""
    regression = [n for n in options.datasets or PAPER if n not in SETS or SETS[n].task == "regression"]
    found = streams(regression, options.seed, stderr)
    options.out.mkdir(parents=True, exist_ok=True)
    if found:
        results, _ = run_tables(found, options, stderr)
        for dataset, title in tables.titles(results).items():
            console.print()
            console.print(tables.for_terminal(results, dataset, title))
        done, of_all = tables.within(results)
        if of_all:
            console.print(
                f"{done} of {of_all} published results are reproduced within the tolerance, in the form in bold."
            )
    elif not options.sweeps:
        raise ValueError(
            "none of the data sets was found, so there is nothing to run; `omkl-lab data fetch all` downloads them, or "
            "set OMKL_DATA to the folder where they are"
        )
    if options.theory:
        theory.run(found, options, console, stderr)
    if options.sweeps:
        named = [name for name in options.datasets if name in parameter_sweeps.CLASSIFICATION]
        wanted = named if options.datasets else list(parameter_sweeps.CLASSIFICATION)
        parameter_sweeps.run(found, streams(wanted, options.seed, stderr), options, console, stderr)
    finish(options.out, console)


def run_tables(found: list[Stream], options: Options, stderr: Console) -> tuple[list[Result], list[Detail]]:
    every = [*paper_configurations(), *(default_configurations() if options.defaults else [])]
    configurations = [configuration for configuration in every if configuration.algorithm in options.algorithms]
    return run_cases(found, configurations, options, stderr)


def run_cases(
    found: list[Stream], configurations: list[Configuration], options: Options, stderr: Console
) -> tuple[list[Result], list[Detail]]:
    options.out.mkdir(parents=True, exist_ok=True)
    plan = cases(found, configurations, options.runs, options.seed)
    rows = sum(len(case.stream.y) * len(case.seeds) for case in plan)
    with Progress(rows, stderr) as bar:
        measured = measure(plan, options.out, options.jobs, bar.tick)
    names = [stream.name for stream in found]
    kept = [g for g in read_lines(options.out / "graphs.jsonl") if g["dataset"] not in names]
    write_lines(options.out / "graphs.jsonl", [*kept, *(drawn(stream, options.seed) for stream in found)])
    return measured


def finish(out: Path, console: Console) -> None:
    """Write tables, figures and the report, from the files in `out` alone."""
    results: list[Result] = read_lines(out / "results.jsonl")
    details: list[Detail] = read_lines(out / "details.jsonl")
    theory_results = read_json(out / "theory.json")
    write_atomically(
        out / "tables.md", text(results, details, theory_results, read_lines(out / "sweeps.jsonl")).encode()
    )
    write_atomically(out / "tables.tex", tables.latex(results).encode())
    console.print()
    console.print(f"tables  {out / 'tables.md'}", soft_wrap=True, highlight=False, markup=False)
    missing = [name for name in DRAWERS if importlib.util.find_spec(name) is None]
    if missing:
        console.print(NEEDS_PLOT.format(", ".join(missing)), soft_wrap=True, highlight=False, markup=False)
        return
    from omkl_lab.reproduce import figures, report

    figures.draw(out)
    console.print(f"report  {report.write(out)}", soft_wrap=True, highlight=False, markup=False)


def text(results: list[Result], details: list[Detail], theory_results: Any = None, sweeps: Sequence[Any] = ()) -> str:
    """The text of tables.md."""
    parts = ["# Reproduction of the paper's tables\n", tables.markdown(results)]
    if differences := claims.disagreements(results):
        parts.append("# Where the text and the tables disagree\n")
        parts += [f"**{title}.** {words}\n" for title, words in differences]
    if found := claims.claims(results, details, sweeps):
        parts.append(claims.markdown(found))
    if theory_results:
        parts.append(sections("Theory", theory_report.tables_of(theory_results)))
    if sweeps:
        parts.append(sections("Parameter sweeps", parameter_sweeps.tables_of(sweeps)))
    return "\n".join(parts)
