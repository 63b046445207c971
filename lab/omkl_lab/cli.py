"""Commands of the laboratory: demo, reproduce, data, bench."""

# Commands import what they need when they run: NumPy and scikit-learn take longer to load than
# `omkl --help` may take altogether.

from pathlib import Path
from typing import Annotated

import typer

from omkl.cli.base import FAILED, Jobs, Json, Seed, errors_as_messages, in_existing_folder, split_names

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="The experiments of omkl: reproduce the paper, measure, and get the data sets.",
)


def main() -> None:
    app()


@app.command()
def reproduce(
    names: Annotated[list[str] | None, typer.Argument(hidden=True)] = None,
    datasets: Annotated[
        list[str] | None,
        typer.Option(
            "--datasets", metavar="NAME...", help="Data sets, or paths of CSV files; the paper's four unless named."
        ),
    ] = None,
    algorithms: Annotated[
        list[str] | None, typer.Option("--algorithms", metavar="NAME...", help="Algorithms; all of them unless named.")
    ] = None,
    runs: Annotated[int, typer.Option(min=1, metavar="R", help="Random-feature sets to average over.")] = 50,
    jobs: Jobs = 0,
    seed: Seed = 0,
    defaults: Annotated[bool, typer.Option("--defaults", help="Also the library's own defaults, Settings().")] = False,
    theory: Annotated[bool, typer.Option("--theory", help="Also regret, bounds and complexity (minutes).")] = False,
    beyond: Annotated[bool, typer.Option("--beyond", help="Also what the paper does not vary (minutes).")] = False,
    out: Annotated[
        Path, typer.Option(metavar="DIR", file_okay=False, callback=in_existing_folder, help="Where the files go.")
    ] = Path("reproduction"),
) -> None:
    """Measure the paper's tables and figures again.

    Writes results.jsonl, tables.md, figures/ and report.html to DIR. Interrupted, it goes on where it
    stopped when it is called again.

    \b
    Examples:
      omkl-lab reproduce
      omkl-lab reproduce --datasets airfoil,concrete --algorithms Raker,SFG-MKL --runs 10
      omkl-lab reproduce --datasets my.csv --out mine
      omkl-lab reproduce --theory --beyond
    """
    with errors_as_messages():
        from rich.console import Console

        from omkl.engine import cores
        from omkl_lab.entrants import NAMES
        from omkl_lab.reproduce import job

        sets, learners = split_names(datasets), split_names(algorithms)
        known = {name.lower() for name in NAMES.values()}
        for name in split_names(names):  # --datasets a b: what follows the first name arrives here
            (learners if name.lower() in known else sets).append(name)
        options = job.Options.checked(
            sets, learners, runs=runs, jobs=jobs or cores(), seed=seed, out=out, defaults=defaults, theory=theory,
            beyond=beyond,
        )  # fmt: skip
        job.reproduce(options, Console(), Console(stderr=True))


@app.command()
def demo(
    quick: Annotated[bool, typer.Option("--quick", help="The embedded streams, shortened, one feature set.")] = False,
    jobs: Jobs = 0,
    seed: Seed = 0,
    out: Annotated[
        Path, typer.Option(metavar="DIR", file_okay=False, callback=in_existing_folder, help="Where the files go.")
    ] = Path("demo"),
) -> None:
    """Reproduce in small: two embedded streams, and the paper's sets at hand.

    One stream is scikit-learn's diabetes set, the other is generated from three known kernels, which
    are shown beside the weights that each algorithm learned.

    \b
    Example:
      omkl-lab demo --quick --seed 7 --out demo
    """
    with errors_as_messages():
        from rich.console import Console

        from omkl.engine import cores
        from omkl_lab import demo as job

        job.run(quick, seed, jobs or cores(), out, Console(), Console(stderr=True))


data = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Data sets: what there is, and where.")
app.add_typer(data, name="data")


@data.command("list")
def data_list() -> None:
    """Show every data set and where it lies.

    \b
    Example:
      OMKL_DATA=~/data omkl-lab data list
    """
    with errors_as_messages():
        from rich.console import Console

        from omkl_lab.data.shelf import listing

        Console().print(listing())


@data.command("path")
def data_path(name: Annotated[str, typer.Argument(metavar="NAME")]) -> None:
    """Print the path of a data set's file.

    \b
    Example:
      omkl-lab data path airfoil
    """
    with errors_as_messages():
        from omkl_lab.data.shelf import path_of

        typer.echo(path_of(name))


@data.command("fetch")
def data_fetch(names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Names, or all.")]) -> None:
    """Fetch data sets into the user's cache.

    \b
    Examples:
      omkl-lab data fetch airfoil naval
      omkl-lab data fetch all
    """
    with errors_as_messages():
        from rich.console import Console

        from omkl_lab.data.download import ARCHIVES
        from omkl_lab.data.sets import find
        from omkl_lab.data.shelf import get

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
    quick: Annotated[bool, typer.Option("--quick", help="A look in some seconds; its numbers mean little.")] = False,
    json: Json = None,
    html: Annotated[
        Path | None,
        typer.Option("--html", metavar="FILE", dir_okay=False, writable=True, callback=in_existing_folder,
                     help="Also write a page with scatter and growth to FILE."),
    ] = None,
    docs: Annotated[
        Path | None,
        typer.Option("--docs", metavar="FILE", dir_okay=False, writable=True, callback=in_existing_folder,
                     help="Also write the tables as Markdown to FILE."),
    ] = None,
) -> None:  # fmt: skip
    """Time every algorithm against the machine's floor, NumPy and the peers.

    Takes some minutes on an idle machine. Peers that are not installed are lines that say so.

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
        from omkl_lab.progress import Patience

        if html is not None:
            from omkl_lab.bench import web  # before the work: it needs the extra `plot`
        with Patience(job.ticks(quick), Console(stderr=True), "measuring") as patience:
            results = job.run(quick, patience.tick)
        if json is not None:
            write_json(json, results)
        if docs is not None:
            write_atomically(docs, table.page(results).encode())
        if html is not None:
            write_atomically(html, web.page(results).encode())
        table.show(results, Console())
