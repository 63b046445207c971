"""The lock of a model: calls from several threads take turns, and a forked process knows which models were in use."""

import copy
import os
from _thread import RLock
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, ClassVar, Concatenate, Never, ParamSpec, Self, TypeVar
from weakref import WeakSet

A = ParamSpec("A")
R = TypeVar("R")


class ModelLock(RLock):  # type: ignore[misc]  # final for typeshed alone
    """A re-entrant lock. A copy of it is a new lock, because a copy of a model can be used independently.

    A process that was forked while another thread held the lock has a model in the middle of a change, and no thread
    that would complete the change. There, taking the lock raises an error; a lock that was free stays usable.
    """

    __slots__ = ()

    if TYPE_CHECKING:  # as all locks of the standard library have them

        def _is_owned(self) -> bool: ...
        def _at_fork_reinit(self) -> None: ...

    def __init__(self) -> None:
        _LOCKS.add(self)

    def __reduce__(self) -> tuple[type["ModelLock"], tuple[()]]:
        return ModelLock, ()

    def after_fork(self) -> None:
        """Called in the new process."""
        if self._is_owned():  # by the thread that forked, which goes on in the new process
            return
        free = self.acquire(blocking=False)
        if free:
            self.release()
        self._at_fork_reinit()
        if not free:
            self.__class__ = AbandonedLock


class AbandonedLock(ModelLock):  # type: ignore[misc]  # the type of C locks is not public
    """What a lock becomes in a process that was forked while another thread held it."""

    __slots__ = ()

    def acquire(self, blocking: bool = True, timeout: float = -1) -> Never:
        raise RuntimeError(
            "this process was forked while another thread used this model, which may therefore be in the middle of a "
            "change; use a copy that was made or a file that was saved before, or start processes with the method "
            "'spawn' or 'forkserver' instead of 'fork'"
        )

    __enter__ = acquire


class ProcessLock(ModelLock):  # type: ignore[misc]  # the type of C locks is not public
    """A lock for what a process has once; in a new process it is free."""

    __slots__ = ()

    def after_fork(self) -> None:
        if not self._is_owned():
            self._at_fork_reinit()


_LOCKS: WeakSet[ModelLock] = WeakSet()


def _after_fork() -> None:
    for lock in list(_LOCKS):
        lock.after_fork()


if hasattr(os, "register_at_fork"):  # not on Windows, where nothing forks
    os.register_at_fork(after_in_child=_after_fork)


class Locked:
    """An object with a lock. Deep copies and pickles are of one moment, and have a lock of their own."""

    _lock: ModelLock
    _not_copied: ClassVar[tuple[str, ...]] = ("_lock",)

    def __getstate__(self) -> dict[str, object]:
        return self._copied_attributes({})

    def __setstate__(self, attributes: dict[str, object]) -> None:
        self.__dict__.update(attributes | {"_lock": ModelLock()})

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        memo[id(self)] = other = object.__new__(type(self))
        other.__setstate__(self._copied_attributes(memo))
        return other

    def __copy__(self) -> Self:
        other = object.__new__(type(self))
        other.__setstate__({k: v for k, v in self.__dict__.items() if k not in self._not_copied})
        return other

    def _copied_attributes(self, memo: dict[int, object]) -> dict[str, object]:
        with self._lock:
            attributes = list(self.__dict__.items())  # what is not of the model may be set without the lock
            return {k: copy.deepcopy(v, memo) for k, v in attributes if k not in self._not_copied}


class LockOnDemand:
    """Makes the lock of an object whose constructor must not set an attribute, when it is first asked for."""

    def __get__(self, instance: object, owner: type) -> ModelLock:
        # setdefault is atomic: two threads get the same lock
        lock: ModelLock = instance.__dict__.setdefault("_lock", ModelLock())
        return lock


L = TypeVar("L", bound=Locked)


def locked(method: Callable[Concatenate[L, A], R]) -> Callable[Concatenate[L, A], R]:
    """The method, called while holding the lock of its object."""

    @wraps(method)
    def call(self: L, /, *args: A.args, **kwargs: A.kwargs) -> R:
        with self._lock:
            return method(self, *args, **kwargs)

    return call
