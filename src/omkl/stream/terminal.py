"""What is shown to people: on standard output and standard error, whoever reads them and whether they are open."""

import sys
from typing import Any

from rich.console import Console

from omkl.errors import naming


class Terminal(Console):
    """A console that reports a reader who is gone, where rich would exit with code 1, and names what is full."""

    def __init__(self, name: str, **options: Any) -> None:
        super().__init__(**{"highlight": False, **options})
        self.name = name

    def on_broken_pipe(self) -> None:
        raise  # noqa: PLE0704  rich calls it while it handles the error

    def print(self, *objects: Any, **options: Any) -> None:
        with naming(self.name):
            super().print(*objects, **options)


def standard_output(**options: Any) -> Terminal:
    """Where results are shown."""
    require_output()
    return Terminal("standard output", **options)


def standard_error() -> Terminal:
    """Where progress and notices are shown, if anywhere."""
    return Terminal("standard error", stderr=True, quiet=sys.stderr is None)


def require_output() -> None:
    """Refuse before the work results that could not be shown after it."""
    if sys.stdout is None:
        raise ValueError("standard output is closed; redirect it, to /dev/null for instance")
