"""A progress bar on a terminal, for jobs that take longer than two seconds."""

import time
from types import TracebackType
from typing import Self

from rich import progress as rich_progress
from rich.console import Console

WAIT = 2.0  # seconds before the bar appears


class Progress:
    """Counts up to `total`; after two seconds a bar appears if the console is a terminal."""

    def __init__(self, total: int | None, console: Console, description: str = "running") -> None:
        self._progress = rich_progress.Progress(
            rich_progress.TextColumn("{task.description}"),
            rich_progress.BarColumn(),
            rich_progress.TaskProgressColumn(),
            rich_progress.TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._progress.add_task(description, total=total)
        self._started = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def tick(self, count: int) -> None:
        """Advance by `count`."""
        self._progress.advance(self._task, count)
        self._show_when_due()

    def update(self, done: int, total: int | None) -> None:
        """Set progress and total, for a job whose size is known only while it runs."""
        self._progress.update(self._task, completed=done, total=total)
        self._show_when_due()

    def _show_when_due(self) -> None:
        if not self._progress.live.is_started and time.monotonic() - self._started > WAIT:
            self._progress.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._progress.stop()
