"""A lock whose holders take turns: whoever releases it lets those in who wait."""

import threading


class Turns:
    """A lock that is given in turns.

    A thread that releases an ordinary lock and takes it again at once usually gets it, and others starve.
    """

    def __init__(self) -> None:
        self._lock, self._next = threading.Lock(), threading.Lock()

    def __enter__(self) -> None:
        with self._next:  # whoever waits for the lock holds this, and so comes before those who come later
            self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def pause(self) -> None:
        """Let those in who wait, by the thread that has the lock."""
        self.__exit__()
        self.__enter__()
