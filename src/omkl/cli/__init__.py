"""The command line: a thin door. Words come in, are checked, and the library or the lab does the work."""

# `omkl --help` lists the commands in the order of these lines
from omkl.cli import stream  # noqa: F401, I001  # importing registers them
from omkl.cli import lab  # noqa: F401  # as above
from omkl.cli.door import app


def main() -> None:
    app()
