"""Conversion of incoming joint states to a robot's position; without ROS."""

from __future__ import annotations

from typing import Any

import numpy as np

from dyn_core.errors import one_line
from dyn_core.model import Model


class JointFollower:
    """State of a robot from the last joint states: position and relative efforts.

    Joints that are in no message remain where they are; numbers that are not finite,
    joints with several coordinates, and efforts of joints without an effort limit are
    ignored.

    Attributes:
        q: Position, (nq,) [rad | m]; the array passed in, changed in place.
        shares: Efforts divided by their limits, (nv,) [1]; None before the first
            effort, zero for joints without one.
        count: Number of messages with a joint of the robot.
        changed: Set to True by such a message; the caller sets it to False.
        note: Sentence on the first message, if it has no joint of the robot; else "".
    """

    def __init__(self, model: Model, q: np.ndarray) -> None:
        self.model, self.q = model, q
        self.shares: np.ndarray | None = None
        self.count = 0
        self.changed = False
        self.note, self._first = "", True

    def take(self, message: Any) -> None:
        """Update q and shares in place from a JointState; ignore unknown joints."""
        known = False
        for k, name in enumerate(message.name):
            if name not in self.model.joint_names:
                continue
            known = True
            place, v = self.model.q_slice(name), self.model.v_slice(name)
            if place.stop - place.start != 1:
                continue
            if k < len(message.position) and np.isfinite(message.position[k]):
                self.q[place.start] = message.position[k]
            limit = float(self.model.effort_limit[v.start])
            if limit > 0 and k < len(message.effort) and np.isfinite(message.effort[k]):
                if self.shares is None:
                    self.shares = np.zeros(self.model.nv)
                self.shares[v.start] = message.effort[k] / limit
        if self._first and not known:
            theirs = one_line(", ".join(message.name) or "no joints")
            ours = one_line(", ".join(self.model.joint_names))
            self.note = (
                f"joint states have {theirs}; valid: joints of the robot, {ours}"
            )
        self._first = False
        self.count += known
        self.changed |= known
