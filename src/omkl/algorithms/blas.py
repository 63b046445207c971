"""Linear algebra on one thread: on many small matrices threads wait for each other."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from threadpoolctl import ThreadpoolController

from omkl.lock import ProcessLock

_THREADS = ProcessLock()  # for their number


@cache
def libraries() -> ThreadpoolController:
    """The libraries in use. To look for them takes longer than what is computed here."""
    return ThreadpoolController()


@contextmanager
def one_thread() -> Iterator[None]:
    with _THREADS, libraries().limit(limits=1, user_api="blas"):
        yield
