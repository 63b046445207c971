"""The command line: a thin door. Words come in, are checked, and the lab or the library does the work."""

# Commands import what they need when they run: NumPy and scikit-learn take longer to load than
# `omkl --help` may take altogether.

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@contextmanager
def plainly() -> Iterator[None]:
    """Turn what can go wrong into one line on stderr and an exit code."""
    try:
        yield
    except KeyboardInterrupt:
        typer.echo("omkl: interrupted", err=True)
        raise typer.Exit(130) from None
    except (OSError, ValueError) as error:
        typer.echo(f"omkl: {error}", err=True)
        raise typer.Exit(1) from None


def version(wanted: bool) -> None:
    if wanted:
        from omkl._version import __version__

        typer.echo(f"omkl {__version__}")
        raise typer.Exit


def in_a_folder(path: Path | None) -> Path | None:
    """Refuse before the work what could not be written after it."""
    if path is not None and not path.parent.is_dir():
        raise typer.BadParameter(f"there is no folder {str(path.parent)!r}; make it first")
    return path


Json = Annotated[
    Path | None,
    typer.Option("--json", metavar="FILE", dir_okay=False, writable=True, callback=in_a_folder,
                 help="Also write the results to FILE."),
]  # fmt: skip


@app.callback()
def door(
    show_version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=version, is_eager=True)
    ] = False,
) -> None:
    """Online multi-kernel learning: predict, see the answer, learn.

    \b
    Examples:
      omkl demo                           every algorithm, in a few seconds
      omkl demo --quick --json demo.json  shorter, and the results as a file
      omkl bench                          time per sample on this machine
    """


@app.command()
def demo(
    quick: Annotated[bool, typer.Option("--quick", help="Short streams, one random-feature set.")] = False,
    json: Json = None,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Seed of streams, features and draws.")] = 0,
) -> None:
    """Run every algorithm over two embedded streams.

    One is scikit-learn's diabetes set, the other is generated from three known kernels, which are
    shown beside the weights that each algorithm learned.

    \b
    Example:
      omkl demo --quick --seed 7 --json demo.json
    """
    with plainly():
        from rich.console import Console

        from omkl.lab import demo as job
        from omkl.lab.files import write_json
        from omkl.lab.patience import Patience

        with Patience(job.rows_to_run(quick), Console(stderr=True)) as patience:
            results = job.run(quick, seed, patience.tick)
        if json is not None:
            write_json(json, results)
        job.show(results, Console())


@app.command()
def bench(json: Json = None) -> None:
    """Time every algorithm, compiled and in NumPy.

    \b
    Example:
      omkl bench --json bench.json
    """
    with plainly():
        from rich.console import Console

        from omkl.lab import bench as job
        from omkl.lab.files import write_json
        from omkl.lab.patience import Patience

        with Patience(job.ticks(), Console(stderr=True)) as patience:
            results = job.run(patience.tick)
        if json is not None:
            write_json(json, results)
        job.show(results, Console())


def main() -> None:
    app()
