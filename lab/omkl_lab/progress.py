"""A progress bar for those who wait: none for a short job, none where nobody watches."""

import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

WAIT = 2.0  # seconds before the bar appears


class Patience:
    """Counts to `total`; after two seconds, on a terminal, a bar shows how far it is."""

    def __init__(self, total: int | None, console: Console, what: str = "running") -> None:
        self._progress = Progress(
            TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn(),
            console=console, transient=True, disable=not console.is_terminal,
        )  # fmt: skip
        self._task = self._progress.add_task(what, total=total)
        self._begin = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def tick(self, count: int) -> None:
        self._progress.advance(self._task, count)
        self._appear()

    def at(self, done: int, total: int | None) -> None:
        """So far, of so much: for a job whose size shows only while it runs."""
        self._progress.update(self._task, completed=done, total=total)
        self._appear()

    def _appear(self) -> None:
        if not self._progress.live.is_started and time.monotonic() - self._begin > WAIT:
            self._progress.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._progress.stop()
