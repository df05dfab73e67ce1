"""Interfaces for observers of a controller and for listeners to its trajectories."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from dyn_core.control.reference.trajectory import Trajectory

# Called with the trajectory object given to `follow` and its outcome: "reached",
# "replaced", or a sentence that begins with "stopped" or "dropped".
Listener = Callable[[Trajectory, str], None]


class Observer(Protocol):
    """Interface of an object that sees each state with the effort computed for it."""

    def restart(self) -> None:
        """Discard the history: the next state does not continue the last one."""

    def observe(
        self, t: float, q: np.ndarray, qd: np.ndarray, tau: np.ndarray
    ) -> str | None:
        """Return the reason why the robot has to stop (on_violation), or None.

        Any text, also an empty one, is a reason, and so is an exception. The stop
        replaces the effort of the same cycle. `t` is on the clock of trajectories [s];
        q and qd must not be changed; tau [N·m | N] is about to be sent.
        """
        ...


def fault_seen(
    observers: Sequence[Observer],
    t: float,
    q: np.ndarray,
    qd: np.ndarray,
    tau: np.ndarray,
) -> str | None:
    """Call all observers; return the first reason (or exception) to stop, or None."""
    reasons = []
    for observer in observers:
        try:
            reason = observer.observe(t, q, qd, tau)
        except Exception as error:  # an observer that fails stops the robot
            reason = f"{type(observer).__name__} fails: {error}"
        if reason is not None:
            reasons.append(reason)
    return reasons[0] if reasons else None
