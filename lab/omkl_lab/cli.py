"""The command line of the laboratory, `omkl-lab`: reproduce, regret, demo, data, bench."""

# Commands import what they need when they run, so that `omkl-lab --help` does not load NumPy and scikit-learn.

from pathlib import Path
from typing import Annotated

import typer

from omkl.cli.base import FAILED, errors_as_messages, in_existing_folder, split_names

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Experiments of omkl: reproduce the paper, run benchmarks, download data sets.",
)

Seed = Annotated[int, typer.Option(min=0, metavar="N", help="First seed of random features, draws and streams.")]
Jobs = Annotated[int, typer.Option(min=0, metavar="N", help="Runs in parallel; 0 for the number of cores.")]


def main() -> None:
    app()


@app.command()
def reproduce(
    names: Annotated[list[str] | None, typer.Argument(hidden=True)] = None,
    datasets: Annotated[
        list[str] | None,
        typer.Option(
            "--datasets", metavar="NAME...", help="Data sets, or paths of CSV files; by default the paper's four."
        ),
    ] = None,
    algorithms: Annotated[
        list[str] | None, typer.Option("--algorithms", metavar="NAME...", help="Algorithms; by default all.")
    ] = None,
    runs: Annotated[int, typer.Option(min=1, metavar="R", help="Number of random-feature sets to average over.")] = 50,
    jobs: Jobs = 0,
    seed: Seed = 0,
    defaults: Annotated[bool, typer.Option("--defaults", help="Also run the library's defaults, Settings().")] = False,
    theory: Annotated[
        bool, typer.Option("--theory", help="Also measure regret, bounds and complexity (minutes).")
    ] = False,
    sweeps: Annotated[
        bool, typer.Option("--sweeps", help="Also vary M, D, N, horizon and kernels; classify (minutes).")
    ] = False,
    out: Annotated[
        Path, typer.Option(metavar="DIR", file_okay=False, callback=in_existing_folder, help="Output folder.")
    ] = Path("reproduction"),
) -> None:
    """Reproduce the paper's tables and figures.

    Writes results.jsonl, tables.md, figures/ and report.html to DIR. After an interruption the same
    command resumes where it stopped.

    \b
    Examples:
      omkl-lab reproduce
      omkl-lab reproduce --datasets airfoil,concrete --algorithms Raker,SFG-MKL --runs 10
      omkl-lab reproduce --datasets my.csv --out mine
      omkl-lab reproduce --theory --sweeps
    """
    with errors_as_messages():
        from rich.console import Console

        from omkl.engine import cores
        from omkl_lab.configurations import NAMES
        from omkl_lab.reproduce import job

        sets, learners = split_names(datasets), split_names(algorithms)
        known = {name.lower() for name in NAMES.values()}
        for name in split_names(names):  # of `--datasets a b`, b arrives here
            (learners if name.lower() in known else sets).append(name)
        options = job.Options.checked(
            sets, learners, runs=runs, jobs=jobs or cores(), seed=seed, out=out, defaults=defaults, theory=theory,
            sweeps=sweeps,
        )  # fmt: skip
        job.reproduce(options, Console(), Console(stderr=True))


@app.command()
def regret(
    learners: Annotated[
        list[str] | None, typer.Option("--learners", metavar="NAME...", help="Algorithms; by default nine of them.")
    ] = None,
    rows: Annotated[int, typer.Option(min=100, metavar="T", help="Length of the streams.")] = 4000,
    seeds: Annotated[int, typer.Option(min=2, metavar="N", help="Seeds of features and streams.")] = 5,
    jobs: Jobs = 0,
    out: Annotated[Path, typer.Option(metavar="FILE", dir_okay=False, help="Output file, JSON.")] = Path("regret.json"),
) -> None:
    """Measure regret against the best fixed kernel in hindsight.

    On a stationary, an adversarial and a drifting stream, with the exponent of its growth, intervals over the
    seeds, and bounds.

    \b
    Example:
      omkl-lab regret --learners raker,adaraker,vaw2 --rows 2000
    """
    with errors_as_messages():
        from rich.console import Console

        from omkl.engine import cores
        from omkl_lab import regret as job

        job.run(split_names(learners), rows, seeds, jobs or cores(), out, Console(), Console(stderr=True))


@app.command()
def demo(
    quick: Annotated[bool, typer.Option("--quick", help="Embedded streams only, shortened, one feature set.")] = False,
    jobs: Jobs = 0,
    seed: Seed = 0,
    out: Annotated[
        Path, typer.Option(metavar="DIR", file_okay=False, callback=in_existing_folder, help="Output folder.")
    ] = Path("demo"),
) -> None:
    """Run the paper's algorithms on two embedded streams and the available data sets.

    One stream is scikit-learn's diabetes set, the other is generated from three known kernels, which
    are shown with the kernel weights that each algorithm learned.

    \b
    Example:
      omkl-lab demo --quick --seed 7 --out demo
    """
    with errors_as_messages():
        from rich.console import Console

        from omkl.engine import cores
        from omkl_lab import demo as job

        job.run(quick, seed, jobs or cores(), out, Console(), Console(stderr=True))


data = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="List, locate and download data sets.")
app.add_typer(data, name="data")


@data.command("list")
def data_list() -> None:
    """List the data sets and their files.

    \b
    Example:
      OMKL_DATA=~/data omkl-lab data list
    """
    with errors_as_messages():
        from rich.console import Console

        from omkl_lab.data.commands import listing

        Console().print(listing())


@data.command("path")
def data_path(name: Annotated[str, typer.Argument(metavar="NAME")]) -> None:
    """Print the path of a data set's file.

    \b
    Example:
      omkl-lab data path airfoil
    """
    with errors_as_messages():
        from omkl_lab.data.commands import path_of

        typer.echo(path_of(name))


@data.command("fetch")
def data_fetch(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Names of data sets, or all.")],
) -> None:
    """Download data sets into the user's cache.

    \b
    Examples:
      omkl-lab data fetch airfoil naval
      omkl-lab data fetch all
    """
    with errors_as_messages():
        from rich.console import Console

        from omkl_lab.data.commands import get
        from omkl_lab.data.download import ARCHIVES
        from omkl_lab.data.sets import find

        wanted = list(ARCHIVES) if split_names(names) == ["all"] else [find(name).name for name in split_names(names)]
        failed = []
        for name in wanted:
            try:
                typer.echo(get(name, Console(stderr=True)))
            except OSError as error:
                failed.append(name)
                typer.echo(f"omkl: {error}", err=True)
        if failed:
            raise typer.Exit(FAILED)


@app.command()
def bench(
    quick: Annotated[bool, typer.Option("--quick", help="A rough measurement in some seconds.")] = False,
    json: Annotated[
        Path | None,
        typer.Option("--json", metavar="FILE", dir_okay=False, writable=True, callback=in_existing_folder,
                     help="Also write the results to FILE."),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option("--html", metavar="FILE", dir_okay=False, writable=True, callback=in_existing_folder,
                     help="Also write a page with charts to FILE."),
    ] = None,
    docs: Annotated[
        Path | None,
        typer.Option("--docs", metavar="FILE", dir_okay=False, writable=True, callback=in_existing_folder,
                     help="Also write the tables as Markdown to FILE."),
    ] = None,
) -> None:  # fmt: skip
    """Measure the time per row of every algorithm, of NumPy and of other libraries.

    Takes some minutes on an idle machine. Libraries that are not installed are listed as missing.

    \b
    Examples:
      omkl-lab bench --quick
      omkl-lab bench --json bench.json --html bench.html
    """
    with errors_as_messages():
        from rich.console import Console

        from omkl.persist import write_atomically
        from omkl_lab.bench import job, table
        from omkl_lab.files import write_json
        from omkl_lab.progress import Progress

        if html is not None:
            from omkl_lab.bench import web  # fails before the measurement if the extra `plot` is missing
        with Progress(job.ticks(quick), Console(stderr=True), "measuring") as bar:
            results = job.run(quick, bar.tick)
        if json is not None:
            write_json(json, results)
        if docs is not None:
            write_atomically(docs, table.page(results).encode())
        if html is not None:
            write_atomically(html, web.page(results).encode())
        table.show(results, Console())
