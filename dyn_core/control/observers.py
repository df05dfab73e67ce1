"""What watches a controller from outside its law: observers and listeners."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from dyn_core.control.reference.trajectory import Trajectory

# Called with a trajectory as it was given to `follow`, and what became of it: reached,
# replaced, or a sentence that begins with "stopped" or "dropped".
Listener = Callable[[Trajectory, str], None]


class Observer(Protocol):
    """Sees each state of a controller with the effort that answers it."""

    def restart(self) -> None:
        """Begin anew: the next state does not continue the last one."""

    def observe(
        self, t: float, q: np.ndarray, qd: np.ndarray, tau: np.ndarray
    ) -> str | None:
        """Return a sentence if the robot has to stop (on_violation), else None.

        The stop replaces the effort of the same cycle. An exception stops, too.

        Args:
            t: Time of the state as trajectories count it [s].
            q, qd: Checked state; not to be changed.
            tau: Effort that is about to be sent; it acts until the next one.
        """
        ...


def fault_seen(
    observers: Sequence[Observer],
    t: float,
    q: np.ndarray,
    qd: np.ndarray,
    tau: np.ndarray,
) -> str | None:
    """Return the first reason of some observers to stop, or None; all are called."""
    reasons = []
    for observer in observers:
        try:
            reason = observer.observe(t, q, qd, tau)
        except Exception as error:  # what fails to watch stops
            reason = f"{type(observer).__name__} fails: {error}"
        if reason is not None:
            reasons.append(reason)
    return reasons[0] if reasons else None
