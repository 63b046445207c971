"""What all commands share: the application, types of options, errors as messages, and exit codes."""

# Commands import what they need when they run: NumPy and scikit-learn take longer to load than
# `omkl --help` may take altogether.

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from omkl.errors import naming


class Commands(TyperGroup):
    """All commands. Who types one that there is not is told which there are.

    What they show of themselves can fail to be written as their results can.
    """

    def make_context(self, *args: Any, **options: Any) -> Any:
        with errors_as_messages(), naming("standard output"):
            return super().make_context(*args, **options)

    def invoke(self, ctx: Any) -> Any:
        with errors_as_messages(), naming("standard output"):
            return super().invoke(ctx)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args == ["help"]:
            typer.echo(ctx.get_help())
            ctx.exit()
        if args[0] == "help":
            args = [args[1], "--help"]
        name, names = args[0], self.list_commands(ctx)
        if name not in names:
            ctx.fail(f"No such command {name!r}; the commands are {', '.join(names)}.")
        return super().resolve_command(ctx, args)


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


FAILED, INTERRUPTED, BROKEN_PIPE = 2, 130, 141  # exit codes, as `omkl --help` lists them
EXTRAS = {
    "plotly": "run",
    "jinja2": "run",
    "matplotlib": "plot",
    "pyspark": "spark",
    "starlette": "serve",
    "uvicorn": "serve",
    "httptools": "serve",
    "orjson": "serve",
}


@contextmanager
def errors_as_messages() -> Iterator[None]:
    """Turn errors into one line on standard error and an exit code."""
    try:
        yield
        if sys.stdout is not None:
            with naming("standard output"):
                sys.stdout.flush()
    except (KeyboardInterrupt, ImportError) as error:
        if from_interrupt(error):
            typer.echo("omkl: interrupted", err=True)
            raise typer.Exit(INTERRUPTED) from None
        missing = (error.name if isinstance(error, ModuleNotFoundError) else None) or ""
        extra = EXTRAS.get(missing.partition(".")[0])
        if extra is None:
            raise
        typer.echo(f"omkl: this needs {missing}; install it with pip install 'omkl[{extra}]'", err=True)
        raise typer.Exit(FAILED) from None
    except BrokenPipeError:  # the reader is gone, as after `| head`
        discard_unwritten()
        raise typer.Exit(BROKEN_PIPE) from None
    except OSError as error:
        discard_unwritten()
        named = error.filename if error.filename is not None else ""
        reason = error.strerror or str(error)
        show_error(f"{f'{named}: ' if named else ''}{reason}")
        raise typer.Exit(FAILED) from None
    except (ValueError, LookupError, ArithmeticError) as error:
        show_error(str(error))
        raise typer.Exit(FAILED) from None


def from_interrupt(error: BaseException | None) -> bool:
    """Whether it is Ctrl-C, or an import that failed through it: compiled modules turn it into an ImportError."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


def show_error(message: str) -> None:
    """One line on standard error."""
    from omkl.stream.terminal import visible

    typer.echo(f"omkl: {visible(message)}", err=True)


def discard_unwritten() -> None:
    """Empty the buffers of standard streams that fail: Python would try to write them again when it ends."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def print_line(text: str) -> None:
    """One line on standard output."""
    with naming("standard output"):
        typer.echo(text)


def show_version(wanted: bool) -> None:
    """Print the version and exit."""
    if wanted:
        from omkl._version import __version__

        typer.echo(f"omkl {__version__}")
        raise typer.Exit


def in_existing_folder(path: Path | None) -> Path | None:
    """Refuse before the work a file that could not be written after it."""
    if path is not None and not path.parent.is_dir():
        raise typer.BadParameter(f"there is no folder {str(path.parent)!r}; make it first")
    return path


Json = Annotated[
    Path | None,
    typer.Option("--json", metavar="FILE", dir_okay=False, writable=True, callback=in_existing_folder,
                 help="Also write the results to FILE."),
]  # fmt: skip


Seed = Annotated[int, typer.Option(min=0, metavar="N", help="First seed of features, draws and streams.")]
Jobs = Annotated[int, typer.Option(min=0, metavar="N", help="Runs at a time; 0 for as many as there are cores.")]


def split_names(values: list[str] | None) -> list[str]:
    """Names given one by one or separated by commas.

    >>> split_names(["airfoil,naval", "concrete"])
    ['airfoil', 'naval', 'concrete']
    """
    return [name for value in values or [] for name in value.split(",") if name]


@app.callback()
def main_callback(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=show_version, is_eager=True)
    ] = False,
) -> None:
    """Online multi-kernel learning: predict each row of a stream, then learn it.

    \b
    Examples:
      omkl run data.csv --target price       predict, then learn, row after row
      omkl serve price.omkl                  predict and learn over HTTP
      omkl inspect price.omkl                show what a model file holds
      omkl compare data.csv --target price   rank every learner on your data
      omkl demo                              compare learners on an example

    \b
    Exit codes: 0 success; 1 internal error; 2 invalid arguments or input;
    130 interrupted, with all output complete so far; 141 broken pipe.
    """
