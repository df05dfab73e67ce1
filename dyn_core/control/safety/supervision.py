"""Supervisor of a controller in another process: timeout, latched stop, reset.

Without ROS; the node `guard` wraps this class with topics. It is not a certified safety
component.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any
from uuid import uuid4

import numpy as np

from dyn_core.control.safety.guard_link import Beat
from dyn_core.errors import SettingError
from dyn_core.validation import known_keywords

REPEAT = 0.01  # period at which zero effort is sent while stopped [s]
LATE = 0.005  # delay of a check that shows that the supervisor was suspended [s]
GRACE = 0.02  # time for reading the efforts that arrived meanwhile [s]


@known_keywords
class Supervisor:
    """Stops a robot whose controller falls silent while its last effort is not zero.

    A controller rightly sends nothing while it is inactive, waits for states, or has
    ended with zero effort. Silence therefore counts only after an effort other than
    zero: a driver without a timeout would apply that effort for ever. A stop is
    latched: only reset ends it, and efforts of a controller that resumes are replaced
    by zero.

    Attributes:
        timeout: Silence after which zero is sent; longer than any pause between two
            efforts of a correct controller, such as its own state_timeout [s].
        stopped: Reason of the stop in force, or None.
        uuid: Identifier of this supervisor in its beats.
        resets: Number of resets that were handled.
        size: Number of efforts in the last command.
        counters: Numbers of stops, key "stops", and of efforts that were replaced, key
            "efforts after a stop".

    Raises:
        SettingError: The timeout is not finite and above 0.
    """

    def __init__(self, timeout: float = 0.2) -> None:
        if not 0 < timeout < math.inf:
            raise SettingError(f"timeout {timeout:g} s; valid: more than 0", "timeout")
        self.timeout = timeout
        self.stopped: str | None = None
        self.uuid, self.resets = uuid4().hex, 0
        self.size = 0
        self.counters: Counter[str] = Counter()
        self._forget()

    def _forget(self) -> None:
        """Discard the last effort and its deadline."""
        self._deadline: float | None = None
        self._graced = False
        self._standing = 0.0
        self._driven: float | None = None

    @property
    def stands(self) -> bool:
        """Whether the controller's last effort was not zero."""
        return self._deadline is not None

    def hear(self, t: float, effort: Any) -> bool:
        """Process an effort of the controller.

        An effort other than zero starts the timeout anew; zero ends it. An effort that
        is not finite stops. An empty effort changes nothing.

        Args:
            t: Time of receipt, monotonic [s].
            effort: Efforts of the joints, of any number [N·m | N].

        Returns:
            Whether the caller must send zero instead: a stop is in force, and the
            effort is neither zero nor empty.

        Raises:
            ValueError, TypeError: NumPy cannot convert the effort to floats.
        """
        tau = np.asarray(effort, float)
        if not tau.size:
            return False  # drivers refuse it, and the previous effort remains
        self.size = tau.size
        if not tau.any():
            self._deadline = None
            return False
        self._deadline, self._graced, self._driven = t + self.timeout, False, t
        self._standing = float(np.abs(tau).max())
        if self.stopped is not None:
            self.counters["efforts after a stop"] += 1
        elif not np.isfinite(tau).all():
            self.stop("an effort is not finite")
        return self.stopped is not None

    def check(self, t: float) -> bool:
        """Return whether zero effort must be sent at time t [s]; stops after a timeout.

        The result is True at every call while a stop is in force. If the check comes
        more than 5 ms after the deadline, the supervisor itself was suspended, and
        efforts of that time are still unread: then the deadline becomes t + 20 ms, once
        after each effort.
        """
        if self.stopped is None and self._deadline is not None and t >= self._deadline:
            if t > self._deadline + LATE and not self._graced:
                self._deadline, self._graced = t + GRACE, True
                return False
            silence = t - (self._driven or 0.0)
            self.stop(
                f"no effort for {silence:.3f} s, while up to {self._standing:.4g} N·m"
                " (N) stood: the controller hangs or has ended, or the machine is too"
                f" busy for effort_timeout ({self.timeout:g} s)"
            )
        return self.stopped is not None

    def wait(self, t: float) -> float | None:
        """Return the time from t [s] until the next check [s].

        It is 0.01 during a stop, 0 after the deadline, and None if no check is needed
        before the next effort.
        """
        if self.stopped is not None:
            return REPEAT
        return None if self._deadline is None else max(0.0, self._deadline - t)

    def stop(self, reason: str) -> None:
        """Stop for `reason` until a reset, and count it; nothing if stopped already."""
        if self.stopped is None:
            self.stopped = reason
            self.counters["stops"] += 1

    def reset(self, t: float) -> None:
        """End a stop and forget the last effort, on a person's request.

        The reset is counted; without a stop that is all.

        Args:
            t: Present time, monotonic [s].

        Raises:
            SettingError: There is a stop, and the controller's last effort is not zero
                and came less than `timeout` ago: it would drive the robot at once.
                Nothing changes then.
        """
        if self.stopped is None:
            self.resets += 1
            return
        if self._driven is not None and t - self._driven < self.timeout and self.stands:
            raise SettingError(
                f"the controller sent effort {t - self._driven:.3f} s ago; valid: a"
                " reset once it sends zero, or nothing"
            )
        self.stopped, self.resets = None, self.resets + 1
        self._forget()

    def beat(self, ends: bool = False) -> Beat:
        """Return the present status message for controllers.

        Args:
            ends: Whether it is the last beat.
        """
        stopped, reason = self.stopped is not None, self.stopped or ""
        return Beat(self.uuid, stopped, reason, self.resets, self.timeout, ends)
