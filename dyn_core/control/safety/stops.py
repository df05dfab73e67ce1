"""Stops of a controller, and the gate that discards efforts computed before a stop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from threading import RLock
from typing import Any

STOPS = ("zero", "ramp", "hold")  # the strongest first
AUTO = "auto"  # ramp where the efforts can carry the weight, else zero


@dataclass(frozen=True)
class Stop:
    """A stop, in force until it is reset.

    Attributes:
        kind: hold (the position), ramp (brake under gravity compensation for a bounded
            time, then zero) or zero.
        reason: Explanation, as a sentence.
        since: Time of the stop [s].
        cause: Such as estop, violation, collision or shutdown.
    """

    kind: str
    reason: str
    since: float
    cause: str


class Gate:
    """Passes efforts computed after the last stop, and discards earlier ones.

    An effort takes a ticket before it is computed. A stop increases the generation
    under the lock that `send` holds, so that an effort computed before the stop is
    discarded, whatever thread it comes from.

    Attributes:
        generation: Number of stops and resets.
        discarded: Number of discarded efforts.
    """

    def __init__(self) -> None:
        self._lock = RLock()
        self.generation = 0
        self.discarded = 0

    def ticket(self) -> int:
        """Return the ticket of an effort: the present generation."""
        return self.generation

    def close(self, act: Callable[[], Any] | None = None) -> int:
        """Discard all efforts that are being computed; return the new generation.

        Args:
            act: Function called under the lock, for example to send zero; None: none.
                Its errors pass through, after the discarding.
        """
        with self._lock:
            self.generation += 1
            if act is not None:
                act()
            return self.generation

    def send(self, ticket: int, publish: Callable[..., Any], *args: Any) -> bool:
        """Call publish(*args) if no stop or reset has come since the ticket.

        It is called under the lock. Otherwise the effort is counted in `discarded`.

        Args:
            ticket: Result of `ticket` before the effort was computed.
            publish: Function that sends the effort; its errors pass through.
            args: Its arguments.

        Returns:
            Whether `publish` was called.
        """
        with self._lock:
            if ticket != self.generation:
                self.discarded += 1
                return False
            publish(*args)
            return True
