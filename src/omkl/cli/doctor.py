"""The command that examines an installation: doctor."""

import typer

from omkl.cli.base import app, errors_as_messages, print_line


@app.command()
def doctor() -> None:
    """Check the installation, and measure how long a row takes.

    \b
    Example:
      omkl doctor
    """
    with errors_as_messages():
        from omkl.doctor import findings

        good = True
        for finding in findings():
            print_line(f"{finding.name:<16}{finding.text}")
            good = good and finding.good
        if not good:
            raise typer.Exit(1)
