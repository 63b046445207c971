"""The command that shows what a model file holds: inspect."""

from typing import Annotated

import typer

from omkl.cli.base import app, errors_as_messages, print_line


@app.command()
def inspect(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="Any model file or checkpoint of omkl.")],
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show what a model file holds: columns, importance, weights.

    Also rows learned, other experts, the last change, metadata, and the graph of the kernels.

    \b
    Examples:
      omkl inspect price.omkl
      omkl inspect price.omkl --json
    """
    with errors_as_messages():
        from omkl.stream.inspect import as_json, facts, show
        from omkl.stream.terminal import standard_output

        console = standard_output()
        found = facts(model)
        if json:
            print_line(as_json(found))
        else:
            show(found, console)
