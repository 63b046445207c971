"""The command line: reads and checks arguments; the library does the work."""

# `omkl --help` lists the commands in the order in which these modules register them
from omkl.cli import run, serve, inspect, compare, demo, doctor  # noqa: F401, I001  # importing registers them
from omkl.cli.base import app


def main() -> None:
    app()
