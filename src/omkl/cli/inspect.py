"""The command that shows what a model file holds: inspect."""

from typing import Annotated

import typer

from omkl.cli.base import app, errors_as_messages


@app.command()
def inspect(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="Any model file or checkpoint of omkl.")],
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show what a model file holds: columns, rows learned, kernels, their weights and their graph.

    \b
    Examples:
      omkl inspect price.omkl
      omkl inspect price.omkl --json
    """
    with errors_as_messages():
        from rich.console import Console

        from omkl.stream.inspect import as_json, facts, show

        found = facts(model)
        if json:
            typer.echo(as_json(found))
        else:
            show(found, Console(highlight=False))
