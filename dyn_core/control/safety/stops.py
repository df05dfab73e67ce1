"""Stops of a controller, and the gate that no effort of before a stop passes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from threading import RLock
from typing import Any

STOPS = ("zero", "ramp", "hold")  # the strongest first
AUTO = "auto"  # ramp where the efforts can carry the weight, else zero


@dataclass(frozen=True)
class Stop:
    """A stop that lasts until it is reset.

    Attributes:
        kind: hold (the position), ramp (brake under gravity compensation for a bounded
            time, then zero) or zero.
        reason: A sentence.
        since: Its time [s].
        cause: estop, violation, collision or shutdown.
    """

    kind: str
    reason: str
    since: float
    cause: str


class Gate:
    """Lets an effort pass that was computed after the last stop.

    An effort takes a ticket before it is computed. A stop raises the generation under
    the lock that sending takes, so that what was computed before is discarded, in
    whatever thread.

    Attributes:
        generation: Number of stops and resets.
        discarded: Number of efforts that did not pass.
    """

    def __init__(self) -> None:
        self._lock = RLock()
        self.generation = 0
        self.discarded = 0

    def ticket(self) -> int:
        """Return what an effort needs to pass: the present generation."""
        return self.generation

    def close(self, act: Callable[[], Any] | None = None) -> int:
        """Discard all efforts that are being computed.

        Args:
            act: Called under the lock, such as a function that sends zero.
        """
        with self._lock:
            self.generation += 1
            if act is not None:
                act()
            return self.generation

    def send(self, ticket: int, publish: Callable[..., Any], *args: Any) -> bool:
        """Call publish(*args) if no stop came since the ticket; else return False."""
        with self._lock:
            if ticket != self.generation:
                self.discarded += 1
                return False
            publish(*args)
            return True
