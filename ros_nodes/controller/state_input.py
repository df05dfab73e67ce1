"""Joint states of a topic: whole ones, parts that are merged, and those of others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from sensor_msgs.msg import JointState

from dyn_core.control.safety.health import WARN, Condition
from dyn_core.control.states.state_parts import FIELDS, NONE, PART, PartMerger, Sources
from ros_nodes.conversions import JointReader, MissingJoint, stamp_seconds

SHOWN = 3  # joints of others that are listed
REST = 0.2  # part of a slow answer's duration for which other callbacks go first
SLOW = 1e-3  # duration of an answer that is slow [s]
ROW = 3  # slow answers in a row before a rest: single ones carry other work, too


class ReadState(NamedTuple):
    """A state of all joints.

    Attributes:
        message: The message, or the one that its parts make.
        q, qd: Position and velocity, (n,); qd may be None.
        stamp: Time stamp [s], or None.
        t: Time of receipt, of parts that of the oldest [s].
    """

    message: JointState
    q: np.ndarray
    qd: np.ndarray | None
    stamp: float | None
    t: float


class StateInput:
    """Reads joint states in the order of the controlled joints.

    Attributes:
        joints: Controlled joints.
        reader: Reads a message that has all of them.
        sources: Who publishes what.
        merger: Merges parts; None: parts are refused.
    """

    def __init__(self, joints: Sequence[str], spread: float | None) -> None:
        """Prepare; `spread` is as for PartMerger, None refuses parts."""
        self.joints = tuple(joints)
        self.reader, self.sources = JointReader(joints), Sources(joints)
        self.merger = None if spread is None else PartMerger(joints, spread)
        self._busy_until, self._slow = 0.0, 0

    def rests(self, t: float) -> bool:
        """Return whether a state of the executor is left out, for other callbacks.

        Where answers take longer than the period of the states, an event of a state
        always waits, and services would wait behind more and more of them.
        """
        return self.merger is None and t < self._busy_until

    def answered(self, started: float, ended: float) -> None:
        """Note how long an answer took; after ROW slow ones in a row a rest begins."""
        took = ended - started
        self._slow = self._slow + 1 if took > SLOW else 0
        self._busy_until = ended + REST * took if self._slow >= ROW else 0.0

    def restart(self) -> None:
        """Drop the parts that wait for others."""
        self._busy_until, self._slow = 0.0, 0
        if self.merger is not None:
            self.merger.restart()

    def read(self, t: float, message: JointState) -> ReadState | None:
        """Return the state of a message; None if it has other joints, or a part waits.

        Raises:
            DynError: The message is invalid, or a part, and parts are not merged.
        """
        names = tuple(message.name)
        share = self.sources.sort(t, names)
        if share == NONE and names:
            return None
        stamp = stamp_seconds(message.header.stamp)
        if share == PART and self.merger is None:
            missing = next(name for name in self.joints if name not in names)
            raise MissingJoint(
                f"joint '{missing}'",
                "one entry in name",
                "not there; valid: all joints, or merge_joint_states: true where"
                " several publishers send parts",
            )
        if share == PART and self.merger is not None:
            fields = {name: getattr(message, name) for name in FIELDS}
            merged = self.merger.add(t, names, fields, stamp)
            if merged is None:
                return None
            rows = {name: row.tolist() for name, row in merged.fields.items()}
            message = JointState(header=message.header, name=list(self.joints), **rows)
            t, stamp = merged.t, merged.stamp
        return ReadState(message, *self.reader.read(message), stamp, t)

    def conditions(self, t: float, robot_seen: bool) -> list[Condition]:
        """Return that states come, but of other joints alone."""
        others = self.sources.recent(t, NONE)
        if robot_seen or not others:
            return []
        heard, wanted = _listed(others[0]), _listed(self.joints)
        message = (
            f"joint states have {heard}, and none of this robot's joints: {wanted}"
        )
        return [Condition(WARN, "other joints", message)]


def spread_of(node: Any) -> float | None:
    """Return the spread of parts by the parameters of a node; None: no merging."""
    timeout: float = node.value("state_timeout")
    return timeout if node.value("merge_joint_states") else None


def _listed(names: Sequence[str]) -> str:
    more = ", ..." if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more
