"""Forced exit of a process whose main thread does not react to a signal."""

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
TURN = 0.05  # period of the checks for a sign of life [s]


class LastResort:
    """Ends the process, after its final command, if it hangs after a signal.

    Python runs signal handlers in the main thread, between two of its instructions; a
    solver that does not return may block them. Therefore a second thread reads the
    signals, through the file descriptor that the interpreter writes them to. Code that
    never releases the interpreter's lock also stops this thread: then only SIGKILL
    remains.

    Attributes:
        node: The node; None until it is made.
    """

    def __init__(self, numbers: Collection[int]) -> None:
        """Start to watch signals; must be called in the main thread.

        Args:
            numbers: Numbers of the signals that end the process.
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
        """Record that the main thread is making progress towards the exit."""
        self._sign = time.monotonic()

    def close(self) -> None:
        """Stop the thread and restore the previous wake-up file descriptor."""
        self._over.set()
        signal.set_wakeup_fd(self._before)
        os.write(self._writer, bytes(1))
        self._thread.join(1.0)
        os.close(self._reader)
        os.close(self._writer)

    def _run(self) -> None:
        """Wait for a signal; end the process if no sign of life comes for PATIENCE."""
        number = 0
        while number not in self._numbers and not self._over.is_set():
            number = os.read(self._reader, 1)[0]
        self.sign_of_life()
        while not self._over.wait(TURN):
            if time.monotonic() - self._sign > PATIENCE:
                self._end(signal.Signals(number).name)

    def _end(self, name: str) -> None:
        """Send the final command, report the reason, exit the process with status 1.

        Args:
            name: Name of the signal.
        """
        place = place_of(self._main)
        reason = (
            f"ended {PATIENCE:g} s after {name}: the executor does not come back; it is"
            f" in {place}"
        )
        # In a thread of its own with a bounded wait: the final command may hang, too.
        last = threading.Thread(target=self._say, args=(reason,), daemon=True)
        last.start()
        last.join(FAREWELL)
        os._exit(1)

    def _say(self, reason: str) -> None:
        """Send the final command and log the reason; without a node, print it."""
        node = self.node
        if node is None:
            print(reason, file=sys.stderr, flush=True)
            return
        steps: list[Callable[[], object]] = [
            node.send_final_command,
            lambda: node.get_logger().fatal(reason),
            node.wait_for_delivery,  # last, since it may take all of FAREWELL
        ]
        for step in steps:
            # An error must not skip the other steps.
            with contextlib.suppress(Exception):
                step()
