"""Signals that end a command: noted in a list instead of ending the process at once."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

RUNS_WHILE_TRACED = "never"  # a mark, see engines/llvm/cached/fingerprint.py

ENDING = signal.SIGINT, signal.SIGTERM


def note_signals(*numbers: int) -> list[int]:
    """Install handlers that append the numbers of signals to a list; return the list.

    The handlers stay for the rest of the process, and the signals no longer end it. An
    ignored SIGHUP, as under nohup, stays ignored. Call it in the main thread.
    """
    stop: list[int] = []
    hangup = getattr(signal, "SIGHUP", None)
    for number in numbers:
        if number != hangup or signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, lambda n, _: stop.append(n))
    return stop


@contextmanager
def noted_signals(*numbers: int) -> Iterator[list[int]]:
    """Yield the list of note_signals for a block; restore the handlers at its end.

    A handler that was not installed from Python is not restored. Forked children
    inherit handlers: where one stays, SIGTERM does not end a child. Must be called in
    the main thread.
    """
    before = {number: signal.getsignal(number) for number in numbers}
    try:
        yield note_signals(*numbers)
    finally:
        for number, handler in before.items():
            if handler is not None:  # None: not installed from Python
                signal.signal(number, handler)
