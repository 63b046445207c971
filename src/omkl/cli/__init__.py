"""The command line: a thin door. Words come in, are checked, and the library or the lab does the work."""

# `omkl --help` lists the commands in the order of these lines
from omkl.cli import stream  # noqa: F401  # importing registers them
from omkl.cli.base import app


def main() -> None:
    app()
