"""Runs a laboratory command that takes no arguments."""

import argparse
import sys
from collections.abc import Callable


def run_without_arguments(module: str, doc: str | None, main: Callable[[], None]) -> None:
    """Call `main` for python -m `module`; --help shows `doc`, anything else is refused, and Ctrl-C ends with 130."""
    argparse.ArgumentParser(prog=f"python -m {module}", description=doc).parse_args()
    try:
        main()
    except KeyboardInterrupt:
        print("interrupted; results are written when all are there", file=sys.stderr)
        sys.exit(130)
