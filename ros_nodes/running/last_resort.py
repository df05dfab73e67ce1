"""The end of a process whose executor does not come back after a signal."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Collection
from typing import Any

from ros_nodes.running.callbacks import place_of

PATIENCE = 1.5  # longest time without a sign of life after a signal [s]
FAREWELL = 0.8  # longest time for the final command and the last line [s]
TURN = 0.05  # period at which a sign of life is looked for [s]


class LastResort:
    """Ends the process, with its final command, if the main thread hangs.

    A handler of Python runs in the main thread, between two of its instructions; a
    solver that does not return may have none, or go on after it. Signals are heard
    here in a thread of its own, through the file descriptor that the interpreter
    writes them to. Code that holds the interpreter's lock for ever stops this thread,
    too: then only SIGKILL is left.

    Attributes:
        node: The node, once it is made.
    """

    def __init__(self, numbers: Collection[int]) -> None:
        """Hear signals; called in the main thread.

        Args:
            numbers: Signals that end the process.
        """
        self.node: Any = None
        self._numbers = frozenset(numbers)
        self._main, self._sign = threading.get_ident(), time.monotonic()
        self._over = threading.Event()
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._writer, False)
        self._before = signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        thread = threading.Thread(target=self._run, name="last resort", daemon=True)
        self._thread = thread
        thread.start()

    def sign_of_life(self) -> None:
        """Note that the main thread is on its way to the end."""
        self._sign = time.monotonic()

    def close(self) -> None:
        """End the thread: the process ends in order."""
        self._over.set()
        signal.set_wakeup_fd(self._before)
        os.write(self._writer, bytes(1))
        self._thread.join(1.0)
        os.close(self._reader)
        os.close(self._writer)

    def _run(self) -> None:
        number = 0
        while number not in self._numbers and not self._over.is_set():
            number = os.read(self._reader, 1)[0]
        self.sign_of_life()
        while not self._over.wait(TURN):
            if time.monotonic() - self._sign > PATIENCE:
                self._end(signal.Signals(number).name)

    def _end(self, name: str) -> None:
        """Send the final command, say why, and end the process with status 1."""
        place = place_of(self._main)
        reason = (
            f"ended {PATIENCE:g} s after {name}: the executor does not come back; it is"
            f" in {place}"
        )
        last = threading.Thread(target=self._say, args=(reason,), daemon=True)
        last.start()
        last.join(FAREWELL)
        os._exit(1)

    def _say(self, reason: str) -> None:
        node = self.node
        if node is None:
            print(reason, file=sys.stderr, flush=True)
            return
        steps: list[Callable[[], object]] = [
            node.send_final_command,
            node.wait_for_delivery,
            lambda: node.get_logger().fatal(reason),
        ]
        for step in steps:
            with contextlib.suppress(Exception):  # the others are done all the same
                step()
