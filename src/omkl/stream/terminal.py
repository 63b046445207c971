"""What is shown to people: on standard output and standard error, whoever reads them and whether they are open."""

import re
import sys
from typing import Any

from rich.console import Console
from rich.text import Text

from omkl.errors import naming

# control characters, line separators, marks that change the order of text, and halves of characters
HIDDEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: str) -> str:
    r"""Text with its control characters escaped: names and labels come from files, and a terminal would obey them.

    >>> print(visible("caf\u00e9 \x1b[2J\n"))
    café \x1b[2J\n
    """
    return HIDDEN.sub(lambda match: ascii(match.group())[1:-1], text)


class Terminal(Console):
    """A console for text from files: it obeys neither control characters nor names of emoji in them.

    It raises an error when its reader is gone, where rich would exit with code 1.
    """

    def __init__(self, name: str, **options: Any) -> None:
        super().__init__(**{"highlight": False, "emoji": False, **options})
        self.name = name

    def on_broken_pipe(self) -> None:
        raise

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(visible(text), **options)

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
