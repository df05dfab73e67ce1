"""Joint states of a topic: complete, merged from parts, or of other joints."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from sensor_msgs.msg import JointState

from dyn_core.control.safety.health import WARN, WINDOW, Condition
from dyn_core.control.states.state_parts import FIELDS, NONE, PART, PartMerger, Sources
from ros_nodes.conversions import JointReader, MissingJoint, stamp_seconds

TURN = 2 * math.pi
MOST_NAMES = 16  # largest number of sequences of names that are remembered
SHOWN = 3  # largest number of joints in a message
REST = 0.2  # duration of a rest, relative to the slow answer before it
SLOW = 1e-3  # duration above which an answer is slow [s]
ROW = 3  # consecutive slow answers before a rest: single ones include other work


class ReadState(NamedTuple):
    """A state of all controlled joints, in their order.

    Attributes:
        message: The JointState message; for merged parts, the message made of them.
        q, qd: Position (n,) [rad | m] and velocity (n,) [rad/s | m/s]; qd may be None.
        stamp: Time stamp [s]; None if it is zero.
        t: Time of receipt, monotonic [s]; of merged parts, the oldest.
    """

    message: JointState
    q: np.ndarray
    qd: np.ndarray | None
    stamp: float | None
    t: float


class StateInput:
    """Reads joint states in the order of the controlled joints.

    Attributes:
        sources: Joint names of recent messages, by which publishers are distinguished.
        merger: Merges parts; None: parts are refused.
        latest: Time of receipt [s] and last message, by its names.
    """

    def __init__(self, joints: Sequence[str], spread: float | None) -> None:
        """Create a reader.

        Args:
            joints: Controlled joints.
            spread: Parts are merged if they differ in time by less than this [s]; None:
                parts are refused.
        """
        self.joints = tuple(joints)
        self.reader, self.sources = JointReader(joints), Sources(joints)
        self.merger = None if spread is None else PartMerger(joints, spread)
        self.latest: dict[tuple[str, ...], tuple[float, JointState]] = {}
        self._busy_until, self._slow = 0.0, 0

    def rests(self, t: float) -> bool:
        """Return whether a state that arrives now is skipped for other callbacks.

        If answers take longer than the period of the states, a state is always waiting,
        and services would wait behind more and more of them. So `answered` begins a
        rest, and states are skipped until it ends; never where there is a `merger`.
        """
        return self.merger is None and t < self._busy_until

    def answered(self, started: float, ended: float) -> None:
        """Record the duration of an answer; after ROW slow ones in a row a rest begins.

        Each further slow answer begins a new rest. An answer is slow above SLOW (1 ms);
        the rest lasts REST (0.2) times the duration of the last answer.
        """
        took = ended - started
        self._slow = self._slow + 1 if took > SLOW else 0
        self._busy_until = ended + REST * took if self._slow >= ROW else 0.0

    def restart(self) -> None:
        """Drop incomplete parts; states are no longer skipped, see `rests`."""
        self._busy_until, self._slow = 0.0, 0
        if self.merger is not None:
            self.merger.restart()

    def read(self, t: float, message: JointState) -> ReadState | None:
        """Return the state of a message received at t [s], or None (yet).

        It is None for other joints only, and for a part whose other parts are missing.
        A DynError on parts too far apart in time drops the earlier ones.
        """
        names = tuple(message.name)
        if len(self.latest) > MOST_NAMES:  # a publisher that permutes its names
            self.latest.clear()
        self.latest[names] = t, message
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
        """Return a warning if only states of other joints arrive; else []."""
        others = self.sources.recent(t, NONE)
        if robot_seen or not others:
            return []
        heard, wanted = _listed(others[0]), _listed(self.joints)
        message = (
            f"joint states have {heard}, and none of this robot's joints: {wanted}"
        )
        return [Condition(WARN, "other joints", message)]

    def elsewhere(
        self, t: float, places: Mapping[str, float], far: float
    ) -> list[Condition]:
        """Return a warning on the joint farthest from its place in the model; else [].

        `places` are positions by name in the model: of locked joints, and of followers
        [rad | m]. Distances above `far` count, without whole turns, also of sliding
        joints (2 pi m). Messages count for a second; t is monotonic [s].
        """
        worst: tuple[float, str, float] | None = None
        for seen, message in self.latest.values() if places else ():
            if t - seen > WINDOW:
                continue
            for name, x in zip(message.name, message.position, strict=False):
                if name not in places or not math.isfinite(x):
                    continue
                away = abs(math.remainder(x - places[name], TURN))
                if away > (far if worst is None else worst[0]):
                    worst = away, name, x
        if worst is None:
            return []
        _, name, x = worst
        message = (
            f"joint '{name}' stands at {x:.3g}; the robot's model has it at"
            f" {places[name]:.3g} (locked, or a follower): its weight and inertia are"
            " those of another posture"
        )
        return [Condition(WARN, "elsewhere", message)]


def spread_of(node: Any) -> float | None:
    """Return state_timeout [s], below which parts are merged; None: never."""
    timeout: float = node.value("state_timeout")
    return timeout if node.value("merge_joint_states") else None


def _listed(names: Sequence[str]) -> str:
    """Return the first three names, with commas, and ", ..." if there are more."""
    more = ", ..." if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more
