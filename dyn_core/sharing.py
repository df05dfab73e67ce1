"""Objects shared by the threads of a process: locks, and results computed once.

A fork copies a lock in its current state; a closed lock would stay closed in the child,
because no thread of the child opens it. So every lock of a module, or of an object that
more than one thread may call first, is a Lock, and every unbounded cache uses `once`.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from weakref import WeakSet

Result = TypeVar("Result")


class Lock:
    """A fair lock that one thread may acquire again, or several may share.

    `with lock:` acquires it exclusively, `with lock.shared():` shares it.
    A thread that releases it and acquires it again comes after the waiting ones; no
    thread shares it while another waits for exclusive use. In the child of a fork it is
    open.
    """

    def __init__(self) -> None:
        self._begin()
        _LOCKS.add(self)

    def _begin(self) -> None:
        self._lock, self._door = threading.RLock(), threading.Lock()
        self._sharing: list[int] = []  # thread ids, one entry for each shared block
        self._left = threading.Condition(threading.Lock())

    def __enter__(self) -> None:
        if self._lock._is_owned():  # type: ignore[attr-defined]
            self._lock.acquire()
            return
        mine = threading.get_ident()
        with self._door:
            self._lock.acquire()
            try:
                with self._left:
                    self._left.wait_for(lambda: all(x == mine for x in self._sharing))
            except BaseException:  # Ctrl-C
                self._lock.release()
                raise

    def __exit__(self, *_: object) -> None:
        if self._lock._is_owned():  # type: ignore[attr-defined]
            self._lock.release()  # not owned after a fork inside the block opened it

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Share the lock in this block: no other thread has it exclusively meanwhile.

        The thread waits at the beginning while another one has the lock exclusively or
        waits for it. A thread that has the lock itself, exclusively or shared, enters
        at once. Acquiring the lock exclusively in the block waits forever if any other
        thread, sharing or not, waits for exclusive use.
        """
        mine, left, sharing = threading.get_ident(), self._left, self._sharing
        if self._lock._is_owned() or mine in sharing:  # type: ignore[attr-defined]
            yield
            return
        # A waiting exclusive user closes the door, too, and is thus not overtaken.
        with self._door, self._lock, left:
            sharing.append(mine)
        try:
            yield
        finally:
            with left:
                sharing.remove(mine)
                left.notify_all()


_LOCKS: WeakSet[Lock] = WeakSet()


def _open_all() -> None:
    """Make all locks unused, and forget forks and computations in progress.

    Called in a child after a fork: the threads with the locks do not exist there.
    """
    for lock in _LOCKS:
        lock._begin()
    _FORKS._begin()


class _Forks:
    """Coordinates forks with threads that compute a `once` result.

    They wait for each other: an import or load in progress would stay unfinished in the
    child, behind Python's own locks. These waits end after PATIENCE, so a deadlock
    cannot last; that of a fork for registered locks has no limit. A thread that forks
    within its own computation does not wait.
    """

    PATIENCE = 60.0  # maximum wait [s]

    def __init__(self) -> None:
        self.locks: list[Lock] = []  # acquired during a fork
        self._begin()

    def _begin(self) -> None:
        self._changed = threading.Condition()
        self._making: list[int] = []  # thread ids, one entry for each computation
        self._forking: list[int] = []

    @contextmanager
    def kept_off(self) -> Iterator[None]:
        """Context manager: other threads cannot fork inside its block.

        The block begins when no fork is in progress, or after PATIENCE; at once within
        another such block of this thread.
        """
        mine, changed, making = threading.get_ident(), self._changed, self._making
        with changed:
            if mine not in making:
                changed.wait_for(lambda: not self._forking, self.PATIENCE)
            making.append(mine)
        try:
            yield
        finally:
            with changed:
                making.remove(mine)
                changed.notify_all()

    def begin(self) -> None:
        """Wait for computing threads, at most PATIENCE; then acquire all locks.

        Called before a fork, by the thread that forks; the wait for locks has no limit.
        """
        mine, making = threading.get_ident(), self._making
        with self._changed:
            self._forking.append(mine)
            if mine not in making:
                self._changed.wait_for(lambda: not making, self.PATIENCE)
        for lock in self.locks:  # after the wait: a computing thread may need them
            lock.__enter__()

    def end(self) -> None:
        """Release the locks and let other threads go on, in the parent after a fork."""
        for lock in self.locks:
            lock.__exit__()
        with self._changed:
            self._forking.remove(threading.get_ident())
            self._changed.notify_all()


_FORKS = _Forks()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_FORKS.begin, after_in_parent=_FORKS.end, after_in_child=_open_all
    )


def forks_wait_for(lock: Lock) -> None:
    """Register a lock that is acquired before every fork and released after it.

    It is released in the parent and unused in the child.
    """
    _FORKS.locks.append(lock)


class CommonSetting:
    """A context manager for a process-wide setting, changed while any thread is inside.

    The first thread that enters calls `begin`, which changes the setting and returns
    the previous value; the last one that leaves calls `end` with that value.
    """

    def __init__(self, begin: Callable[[], Any], end: Callable[[Any], None]) -> None:
        self._change, self._restore = begin, end
        self._lock, self._users, self._before = Lock(), 0, None

    def __enter__(self) -> None:
        with self._lock:
            if not self._users:
                self._before = self._change()
            self._users += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._users -= 1
            if not self._users:
                self._restore(self._before)


class once(Generic[Result]):
    """A function whose result is computed once for each set of arguments.

    It is functools.cache under a lock: of threads that call at the same time one
    computes, and all get the same object. The function must not wait for another thread
    that may call it. Exceptions are not cached.

        @once
        def machine() -> Machine: ...
    """

    def __init__(self, function: Callable[..., Result]) -> None:
        functools.update_wrapper(self, function)
        self._function = function
        self._results: dict[tuple[Hashable, ...], Result] = {}
        self._lock = Lock()

    def __call__(self, *arguments: Hashable) -> Result:
        """Return the stored result for these arguments; the first call computes it.

        Meanwhile threads that need a result not yet stored wait. An exception of the
        function passes through and is not stored: the next call computes again.
        """
        try:
            return self._results[arguments]
        except KeyError:
            pass
        with _FORKS.kept_off(), self._lock:
            if arguments not in self._results:
                self._results[arguments] = self._function(*arguments)
            return self._results[arguments]

    def cache_clear(self) -> None:
        """Remove all cached results."""
        with self._lock:
            self._results.clear()


if TYPE_CHECKING:
    from functools import cached_property
else:

    class cached_property(functools.cached_property):
        """A property that is computed when first read, and then stored.

        Threads that read it first at the same time may each compute it, but all get the
        value that was stored first.

        Before Python 3.12 functools.cached_property has a lock that a fork copies
        closed.
        """

        def __get__(self, instance: Any, owner: Any = None) -> Any:
            """Return the value of the object; on the class, the property itself.

            If several threads compute the value, all get the one that was stored first.
            """
            if instance is None:
                return self
            value = self.func(instance)
            return instance.__dict__.setdefault(self.attrname, value)
