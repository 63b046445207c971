"""The exceptions and warnings of omkl."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self


class DivergenceError(ArithmeticError):
    """A prediction overflowed or became NaN: the learning rate was too large for the data."""

    @classmethod
    def of(cls, algorithm: str, t: int, row: int, why: str) -> Self:
        return cls(
            f"{algorithm} diverged in round {t + 1} (row {row} of this call): {why}. The rows before are learned, the "
            f"state is that of round {t}."
        )


class BudgetWarning(UserWarning):
    """A learner that stores samples has reached its budget."""

    @classmethod
    def of(cls, algorithm: str, budget: int) -> Self:
        return cls(
            f"{algorithm} stores {budget} support points, its budget; later samples are predicted and update the "
            "weights of the kernels, but are not stored. Raise budget, or use an algorithm with random features, whose "
            "memory does not grow"
        )


class SharedFeaturesWarning(UserWarning):
    """More features have come than have columns of their own."""

    @classmethod
    def of(cls, own: int, shared: int) -> Self:
        return cls(
            f"{own} features are known, as many as have columns of their own; all others share {shared} columns, "
            "chosen by a hash of their names. Leave out rare features to prevent that"
        )


class ModelFileError(ValueError):
    """A model file that is truncated, corrupted, not one of omkl's, of a newer version, or inconsistent."""


@contextmanager
def naming(path: str | os.PathLike[str]) -> Iterator[None]:
    """Make errors of writing say which file it was: the system names none when a disk is full.

    >>> with naming("out.csv"):
    ...     raise OSError(28, "No space left on device")
    Traceback (most recent call last):
    OSError: [Errno 28] cannot be written (No space left on device): 'out.csv'
    """
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, f"cannot be written ({error.strerror})", os.fspath(path)) from error
