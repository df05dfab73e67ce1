"""Age of joint states: time stamps compared with a clock, and clocks that differ."""

from __future__ import annotations

import math

from dyn_core.errors import StateError

OLD = "state of another time"
STEADY = 0.05  # variation of ages up to which two clocks are said to differ [s]
SEVERAL = 10  # refused states after which two clocks may be said to differ


class StateAge:
    """Refuses states that are too old or in the future.

    Attributes:
        longest: Largest age and largest lead [s]; 0: no limit.
        unstamped: Whether a state without a stamp, whose age cannot be checked, has
            come.
    """

    def __init__(self, longest: float) -> None:
        self.longest = longest
        self.restart()

    def restart(self) -> None:
        """Discard the history of refused states and unstamped ones."""
        self.unstamped = False
        self._accept()

    def _accept(self) -> None:
        """Discard the history of refused states, but not `unstamped`."""
        self._refused, self._least, self._most = 0, math.inf, -math.inf

    def check(self, stamp: float | None, clock: float | None) -> None:
        """Check the age of a state.

        Args:
            stamp: Time stamp of the state [s]; None: not checked.
            clock: Present time of the same clock [s]; None: not checked.

        Raises:
            StateError: The state is too old or in the future. After SEVERAL refusals of
                nearly the same age the message says that the clocks differ.
        """
        if stamp is None:
            self.unstamped = True
        if stamp is None or clock is None or not self.longest:
            return
        age = clock - stamp
        if abs(age) <= self.longest:
            if self._refused:
                self._accept()
            return
        self._refused += 1
        self._least, self._most = min(self._least, age), max(self._most, age)
        valid = f"valid: at most {self.longest:.6g} s (max_state_age)"
        side = "old" if age > 0 else "ahead of the clock"
        if self._refused >= SEVERAL and self._most - self._least <= STEADY:
            raise StateError(
                f"the state is {abs(age):.3f} s {side}, as all of the last"
                f" {self._refused}: the clock of its source differs by that; {valid},"
                " or clocks that are synchronised",
                OLD,
            )
        raise StateError(f"the state is {abs(age):.6g} s {side}; {valid}", OLD)
