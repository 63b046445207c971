"""The command as a whole: streams, runs, files."""

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

from omkl.persist import write_atomically
from omkl_lab.data.download import ARCHIVES, DownloadError
from omkl_lab.data.sets import PAPER, SETS, MissingSetError, how_to_get, is_path, load, locate
from omkl_lab.data.shelf import get
from omkl_lab.entrants import Entrant, algorithms_named, default_entrants, paper_entrants
from omkl_lab.files import read_json, read_lines, write_lines
from omkl_lab.progress import Patience
from omkl_lab.reproduce import beyond, claims, tables
from omkl_lab.reproduce.experiments import printed
from omkl_lab.reproduce.graphs import drawn
from omkl_lab.reproduce.measure import measure
from omkl_lab.reproduce.results import Detail, Result, cells
from omkl_lab.reproduce.tables import sections
from omkl_lab.reproduce.theory import job as theory
from omkl_lab.reproduce.theory import pictures
from omkl_lab.streams import Stream

DRAWERS = ("plotly", "jinja2", "matplotlib")
NEEDS_PLOT = "figures and report.html need {}: pip install 'omkl[plot]'"


class Options(NamedTuple):
    """What was asked for, checked."""

    datasets: list[str]
    algorithms: list[str]
    runs: int
    jobs: int
    seed: int
    out: Path
    defaults: bool = False
    theory: bool = False
    beyond: bool = False

    @classmethod
    def checked(cls, datasets: list[str], algorithms: list[str], **others: object) -> "Options":
        """Names are looked up before anything runs."""
        for name in datasets:
            if name not in SETS and not is_path(name):
                raise ValueError(
                    f"no data set is called {name!r}; there are {', '.join(SETS)}, or a file's path (.csv)"
                )
            if name in SETS and SETS[name].task == "classification" and not others["beyond"]:
                raise ValueError(f"{name} is a classification set and no part of the tables; add --beyond")
        unique = list(dict.fromkeys(datasets))
        return cls(unique, algorithms_named(algorithms), **others)  # type: ignore[arg-type]  # the command line has typed them


def streams(names: list[str], seed: int, console: Console, download: bool = True) -> list[Stream]:
    """The streams at hand or to be had; each missing one is told in one line."""
    out = []
    for name in names:
        try:
            if download and name in ARCHIVES and locate(name) is None:
                get(name, console)
            stream = load(name, seed)
        except MissingSetError as error:
            console.print(f"skipped: {error}", style="yellow", soft_wrap=True, highlight=False)
        except DownloadError as error:
            line = f"skipped: {name} is not at hand and could not be fetched ({error}); {how_to_get(name)}"
            console.print(line, style="yellow", soft_wrap=True, highlight=False, markup=False)
        else:
            known = SETS.get(name)
            if known and printed(name, "SFG-MKL") and stream.X.shape != (known.rows, known.features):
                line = (
                    f"note: {name} has {stream.X.shape} rows and features, the paper's ({known.rows}, {known.features})"
                )
                console.print(line, style="yellow", soft_wrap=True, highlight=False, markup=False)
            out.append(stream)
    return out


def reproduce(options: Options, console: Console, progress: Console) -> None:
    """Everything that `omkl reproduce` was asked for."""
    regression = [n for n in options.datasets or PAPER if n not in SETS or SETS[n].task == "regression"]
    found = streams(regression, options.seed, progress)
    options.out.mkdir(parents=True, exist_ok=True)
    if found:
        results, _ = run_tables(found, options, progress)
        for dataset, title in tables.titles(results).items():
            console.print()
            console.print(tables.for_terminal(results, dataset, title))
        done, of_all = tables.within(results)
        if of_all:
            console.print(f"{done} of {of_all} published cells come out within the tolerance, in the form in bold.")
    elif not options.beyond:
        raise ValueError("none of the data sets is at hand, so there is nothing to run")
    if options.theory:
        theory.run(found, options, console, progress)
    if options.beyond:
        named = [name for name in options.datasets if name in beyond.CLASSIFICATION]
        wanted = named if options.datasets else list(beyond.CLASSIFICATION)
        beyond.run(found, streams(wanted, options.seed, progress), options, console, progress)
    finish(options.out, console)


def run_tables(found: list[Stream], options: Options, progress: Console) -> tuple[list[Result], list[Detail]]:
    everyone = [*paper_entrants(), *(default_entrants() if options.defaults else [])]
    entrants = [entrant for entrant in everyone if entrant.algorithm in options.algorithms]
    return run_cells(found, entrants, options, progress)


def run_cells(
    found: list[Stream], entrants: list[Entrant], options: Options, progress: Console
) -> tuple[list[Result], list[Detail]]:
    options.out.mkdir(parents=True, exist_ok=True)
    plan = cells(found, entrants, options.runs, options.seed)
    rows = sum(len(cell.stream.y) * len(cell.seeds) for cell in plan)
    with Patience(rows, progress) as patience:
        measured = measure(plan, options.out, options.jobs, patience.tick)
    names = [stream.name for stream in found]
    kept = [g for g in read_lines(options.out / "graphs.jsonl") if g["dataset"] not in names]
    write_lines(options.out / "graphs.jsonl", [*kept, *(drawn(stream, options.seed) for stream in found)])
    return measured


def finish(out: Path, console: Console) -> None:
    """Tables, figures and the report, from the files in `out` alone."""
    results: list[Result] = read_lines(out / "results.jsonl")
    details: list[Detail] = read_lines(out / "details.jsonl")
    proved = read_json(out / "theory.json")
    write_atomically(out / "tables.md", text(results, details, proved, read_lines(out / "sweeps.jsonl")).encode())
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


def text(results: list[Result], details: list[Detail], proved: Any = None, sweeps: Sequence[Any] = ()) -> str:
    """tables.md."""
    parts = ["# The paper's tables, measured again\n", tables.markdown(results)]
    if told := claims.disagreements(results):
        parts.append("# Where the text and the tables disagree\n")
        parts += [f"**{title}.** {words}\n" for title, words in told]
    if found := claims.claims(results, details, sweeps):
        parts.append(claims.markdown(found))
    if proved:
        parts.append(sections("Theory", pictures.tables_of(proved)))
    if sweeps:
        parts.append(sections("Beyond the paper", beyond.tables_of(sweeps)))
    return "\n".join(parts)
