"""A Ctrl-C that is not lost where foreign code catches or ignores it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def kept_interrupts() -> Iterator[Callable[[], None]]:
    """Context manager of a function that raises KeyboardInterrupt after a Ctrl-C.

    Python ignores a KeyboardInterrupt that is raised while an object is deleted, as
    objects of Dask often are: call the function regularly to raise it again. It does
    nothing on other threads than the main one, and if the program has a SIGINT handler
    of its own.
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
