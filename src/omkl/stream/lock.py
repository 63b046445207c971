"""A lock that keeps two runs on one checkpoint apart."""

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

from omkl.errors import naming
from omkl.stream.raw import DataError

NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP)  # some network file systems have none

if sys.platform == "win32":
    import msvcrt

    def _take(file: BinaryIO) -> None:
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _take(file: BinaryIO) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def lock_path(checkpoint: str) -> str:
    """The file that is locked, which is the same for all names of a checkpoint.

    The checkpoint itself cannot be: it is replaced by a new file whenever it is saved.
    """
    return f"{os.path.realpath(checkpoint)}.lock"


@contextmanager
def locked(checkpoint: str | None) -> Iterator[None]:
    """Hold the lock of a checkpoint; the system releases it when the process ends, even if it is killed."""
    if checkpoint is None or (os.path.exists(checkpoint) and not os.path.isfile(checkpoint)):
        yield
        return
    path = lock_path(checkpoint)
    file = _acquire(path, checkpoint)
    try:
        yield
    finally:
        if sys.platform == "win32":  # where a file that is open cannot be removed
            file.close()
        with suppress(OSError):
            os.unlink(path)
        file.close()


def _acquire(path: str, checkpoint: str) -> BinaryIO:
    while True:
        with naming(path):
            file = open(path, "ab")  # noqa: SIM115  open as long as the lock is held
        try:
            _take(file)
        except OSError as error:
            if error.errno in NO_LOCKS:
                return file
            file.close()
            raise DataError(
                f"--checkpoint {checkpoint}: another run is using it; wait until it has ended, or choose another name"
            ) from None
        with suppress(FileNotFoundError):
            if os.path.samestat(os.stat(path), os.fstat(file.fileno())):
                return file
        file.close()  # the run that held the lock has just ended and removed the file
