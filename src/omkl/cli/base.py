"""What all commands share: the door itself, words that come in, and what happens when things go wrong."""

# Commands import what they need when they run: NumPy and scikit-learn take longer to load than
# `omkl --help` may take altogether.

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


FAILED, INTERRUPTED, BROKEN_PIPE = 2, 130, 141  # exit codes, as `omkl --help` lists them
EXTRAS = {
    "pyarrow": "run",
    "plotly": "run",
    "jinja2": "run",
    "matplotlib": "plot",
    "pyspark": "spark",
}


@contextmanager
def plainly() -> Iterator[None]:
    """Turn what can go wrong into one line on stderr and an exit code."""
    try:
        yield
    except KeyboardInterrupt:
        typer.echo("omkl: interrupted", err=True)
        raise typer.Exit(INTERRUPTED) from None
    except BrokenPipeError:  # nobody reads on, as after `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        raise typer.Exit(BROKEN_PIPE) from None
    except ModuleNotFoundError as error:
        extra = EXTRAS.get((error.name or "").partition(".")[0])
        if extra is None:
            raise
        typer.echo(f"omkl: this needs {error.name}; pip install 'omkl[{extra}]' brings it", err=True)
        raise typer.Exit(FAILED) from None
    except OSError as error:
        named = error.filename if error.filename is not None else ""
        reason = error.strerror or str(error)
        typer.echo(f"omkl: {f'{named}: ' if named else ''}{reason}", err=True)
        raise typer.Exit(FAILED) from None
    except (ValueError, LookupError, ArithmeticError) as error:
        typer.echo(f"omkl: {error}", err=True)
        raise typer.Exit(FAILED) from None


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


Seed = Annotated[int, typer.Option(min=0, metavar="N", help="First seed of features, draws and streams.")]
Jobs = Annotated[int, typer.Option(min=0, metavar="N", help="Runs at a time; 0 for as many as there are cores.")]


def words(values: list[str] | None) -> list[str]:
    """Names given one by one or with commas between them.

    >>> words(["airfoil,naval", "concrete"])
    ['airfoil', 'naval', 'concrete']
    """
    return [word for value in values or [] for word in value.split(",") if word]


@app.callback()
def door(
    show_version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=version, is_eager=True)
    ] = False,
) -> None:
    """Online multi-kernel learning: predict, see the answer, learn.

    \b
    Examples:
      omkl run data.csv --target price       predict, then learn, row after row
      omkl inspect price.omkl                what a model is and has seen
      omkl compare data.csv --target price   every learner on your data
      omkl demo                              every algorithm, in a few seconds
      omkl reproduce                         the paper's tables and figures, measured again

    \b
    Exit codes: 0 done; 1 a fault of omkl itself; 2 what was asked or given cannot be used;
    130 interrupted, with everything so far in order; 141 nobody reads the output any more.
    """
