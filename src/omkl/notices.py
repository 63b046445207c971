"""Notices about the data: each is shown once, and only so many of one kind."""

from collections.abc import Callable

from omkl.log import DATA, logger

MAX_PER_KIND = 20  # a file may have thousands of columns

Notify = Callable[[str, str], None]  # (what the notice is about, its text); once for each `about`


def not_shown(text: str) -> None:
    """Notices that nobody reads."""


class Notices:
    """Shows notices and remembers which were shown.

    >>> notices = Notices(print)
    >>> notices("gaps a", "column 'a' has empty cells")
    column 'a' has empty cells
    >>> notices("gaps a", "column 'a' has empty cells")
    """

    def __init__(self, show: Callable[[str], None] = not_shown) -> None:
        self.show = show
        self.shown: dict[str, str] = {}

    def __call__(self, about: str, text: str) -> None:
        kind = about.partition(" ")[0]
        if about in self.shown or f"more {kind}" in self.shown:
            return
        if sum(other.partition(" ")[0] == kind for other in self.shown) >= MAX_PER_KIND:
            about, text = f"more {kind}", "and more notices of this kind"
        self.shown[about] = text
        logger.info(text, extra={DATA: True})
        self.show(text)
