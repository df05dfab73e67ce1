"""Ctrl-C that is not lost where code of others catches or forgets it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def kept_interrupts() -> Iterator[Callable[[], None]]:
    """Return a function that raises KeyboardInterrupt where one came before.

    Python forgets one that comes while an object is deleted, as those of Dask often
    are. Where somebody else listens to the signal, and on other threads, nothing is
    done.
    """
    usual = signal.default_int_handler
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGINT) is not usual:
        yield lambda: None
        return
    came: list[int] = []

    def listen(number: int, _: FrameType | None) -> None:
        came.append(number)
        raise KeyboardInterrupt

    def check() -> None:
        if came:
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, listen)
    try:
        yield check
    finally:
        signal.signal(signal.SIGINT, usual)
