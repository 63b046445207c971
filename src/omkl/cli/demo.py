"""The command `omkl demo`."""

from pathlib import Path
from typing import Annotated

import typer

from omkl.cli.base import app, errors_as_messages, in_existing_folder


@app.command()
def demo(
    out: Annotated[
        Path, typer.Option(metavar="DIR", file_okay=False, callback=in_existing_folder, help="Output folder.")
    ] = Path("omkl-demo"),
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Seed of the stream and of the learners.")] = 0,
) -> None:
    """Show GraphMKL beside other learners on a generated stream.

    The stream is hourly electricity demand with weather, gaps and a change of habits.

    Writes stream.csv and, with the extra `run`, report.html to DIR. Takes less than a minute.

    \b
    Example:
      omkl demo --out demo --seed 7
    """
    with errors_as_messages():
        from omkl.demo import run
        from omkl.stream.terminal import standard_error, standard_output

        run(out, seed, standard_output(), standard_error().status(""))  # the status on a terminal only
