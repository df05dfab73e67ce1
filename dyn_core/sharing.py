"""What the threads of a process share: locks, and values that are made once.

A fork copies a lock in the state it has, and in the child nobody opens a closed one.
Every lock of a module, or of an object that more than one thread may call first, is
therefore a Lock, and every cache without a bound is `once`.
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
    """A lock one thread may take twice, or several share; a fork gets it anew, free.

    It is fair: who releases it and takes it again comes after those who wait, and
    nobody joins those who share it while another waits to have it alone.
    """

    def __init__(self) -> None:
        self._begin()
        _LOCKS.add(self)

    def _begin(self) -> None:
        self._lock, self._door = threading.RLock(), threading.Lock()
        self._sharing: list[int] = []  # threads, one entry for each time
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
            self._lock.release()  # else a fork inside has opened it

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Share the lock: nobody has it alone meanwhile but who has it already."""
        mine, left, sharing = threading.get_ident(), self._left, self._sharing
        if self._lock._is_owned():  # type: ignore[attr-defined]
            yield
            return
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
    """Open all locks: the threads that hold them are not in a child process."""
    for lock in _LOCKS:
        lock._begin()
    _FORKS._begin()


class _Forks:
    """Forks wait while another thread makes a value once, and it waits while they fork.

    What it imports or loads would stay half done in the child for ever, behind locks of
    Python's own. Who forks while it makes a value itself waits for nobody, and nobody
    waits longer than PATIENCE: so this cannot hold anything up for ever.
    """

    PATIENCE = 60.0  # [s]

    def __init__(self) -> None:
        self.locks: list[Lock] = []  # which a fork takes, too
        self._begin()

    def _begin(self) -> None:
        self._changed = threading.Condition()
        self._making: list[int] = []  # threads, one entry for each value
        self._forking: list[int] = []

    @contextmanager
    def kept_off(self) -> Iterator[None]:
        """Let no other thread fork meanwhile."""
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
        """Wait until a fork may be."""
        mine, making = threading.get_ident(), self._making
        with self._changed:
            self._forking.append(mine)
            if mine not in making:
                self._changed.wait_for(lambda: not making, self.PATIENCE)
        for lock in self.locks:  # who makes a value may need them
            lock.__enter__()

    def end(self) -> None:
        """Let others make values again."""
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
    """Let forks take a lock first."""
    _FORKS.locks.append(lock)


class CommonSetting:
    """A setting of the process that is another one while any thread needs it so.

    Args:
        begin: Called by the first thread that needs it; returns what was before.
        end: Called with that by the last one.
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
    """A function that makes its result once for each set of arguments, for all threads.

    It is functools.cache under a lock: of threads that ask at the same time one calls
    the function, and all get its result. Two results would be two objects, and who got
    the one that is not kept would hold the only reference to it. What such a function
    calls must not wait for another thread that may call it.

        @once
        def machine() -> Machine: ...
    """

    def __init__(self, function: Callable[..., Result]) -> None:
        functools.update_wrapper(self, function)
        self._function = function
        self._results: dict[tuple[Hashable, ...], Result] = {}
        self._lock = Lock()

    def __call__(self, *arguments: Hashable) -> Result:
        """Return the result for these arguments."""
        try:
            return self._results[arguments]
        except KeyError:
            pass
        with _FORKS.kept_off(), self._lock:
            if arguments not in self._results:
                self._results[arguments] = self._function(*arguments)
            return self._results[arguments]

    def cache_clear(self) -> None:
        """Forget all results."""
        with self._lock:
            self._results.clear()


if TYPE_CHECKING:
    from functools import cached_property
else:

    class cached_property(functools.cached_property):
        """A property that is computed when first read: one object for all threads.

        The one of functools has a lock before Python 3.12 that a fork copies closed.
        """

        def __get__(self, instance: Any, owner: Any = None) -> Any:
            """Return the value, the same for threads that compute it side by side."""
            if instance is None:
                return self
            value = self.func(instance)
            return instance.__dict__.setdefault(self.attrname, value)
