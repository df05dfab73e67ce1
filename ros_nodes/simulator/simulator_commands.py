"""Effort commands of the simulator node: topics, checks and statistics."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from dyn_core.simulation.plant import SimulatedPlant
from ros_nodes.base.node import RobotNode
from ros_nodes.base.qos import subscription
from ros_nodes.controller.guard_topics import publishers_beside_guard
from ros_nodes.conversions import stamp_seconds
from ros_nodes.messages.effort_commands import EffortReader, RefusedCommand
from ros_nodes.simulator.round_trips import RoundTrips

COMMANDS = "effort_controller/commands"  # Float64MultiArray, in the order of joints
JOINT_COMMANDS = "joint_commands"  # JointState
# Receives from reliable and from best-effort publishers.
LATEST = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
RECENT = 500  # number of commands over which limited_share is computed
ENOUGH = 50  # least number of commands for a share


class CommandInput:
    """Passes the effort commands of two topics to the plant.

    The age of a command counts from its reception. After the node was busy for longer
    than command_timeout, a queued message may be older than that; it is refused unless
    a stamp shows its age.

    Attributes:
        node, robot, ros_time: As in __init__.
        reader: Reads efforts from messages.
        count: Number of accepted commands.
        answered: Number of states that were answered by a command.
        round_trips: Times from a state to its command.
        largest: Largest applied effort, relative to the limit of its joint.
        limited: Whether each of the last commands was beyond an effort limit.
        published: Time of the last unanswered state, monotonic [s]; None if there is
            none.
        patience: Longest gap between two calls of check_gap before queues are doubted
            [s].
        topics: Full names of the two topics.
    """

    def __init__(
        self,
        node: RobotNode,
        robot: SimulatedPlant,
        unlimited: Mapping[int, str],
        ros_time: Callable[[], float],
    ) -> None:
        """Subscribe to both topics.

        Args:
            node: The simulator node.
            robot: The plant.
            unlimited: Joints without an effort limit, see EffortReader.
            ros_time: Returns the time to which stamps refer [s].
        """
        self.node, self.robot, self.ros_time = node, robot, ros_time
        channels = robot.channels()
        self._columns = channels.columns
        self.reader = EffortReader(
            channels.joints, unlimited, node.value("command_timeout")
        )
        self.count = self.answered = 0
        self.round_trips = RoundTrips()
        self.largest = 0.0
        self.limited: deque[bool] = deque(maxlen=RECENT)
        self.published: float | None = None
        self._warned = False
        self.patience = self.reader.timeout + 2.0 / node.value("update_rate")
        self.restart()
        self.topics = [
            self._listen(Float64MultiArray, COMMANDS, self.on_array),
            self._listen(JointState, JOINT_COMMANDS, self.on_joint_state),
        ]

    def _listen(self, kind: Any, topic: str, take: Callable[[Any], None]) -> str:
        """Subscribe to a topic; return its name after remapping."""
        return str(subscription(self.node, kind, topic, take, LATEST).topic_name)

    def restart(self) -> None:
        """Forget earlier gaps: start to measure how long the node is busy."""
        self._alive: float | None = None
        self._doubtful: set[str] = set()

    def check_gap(self, now: float) -> None:
        """Mark queued messages as doubtful if the node was busy since the last call.

        Busy means that the last call is more than `patience` ago. The first message of
        each topic is then doubtful.

        Args:
            now: Time, monotonic [s].
        """
        if self._alive is not None and now - self._alive > self.patience:
            self._doubtful = {COMMANDS, JOINT_COMMANDS}
        self._alive = now

    def on_array(self, message: Any) -> None:
        """Process a command as Float64MultiArray."""
        self._take(COMMANDS, lambda: self.reader.array(message))

    def on_joint_state(self, message: Any) -> None:
        """Process a command as JointState."""
        stamp = stamp_seconds(message.header.stamp)
        age = None if stamp is None else self.ros_time() - stamp
        self.check_gap(time.monotonic())
        if age is not None:
            self._doubtful.discard(JOINT_COMMANDS)  # its stamp shows its age
        self._take(JOINT_COMMANDS, lambda: self.reader.joint_state(message, age))
        if self.reader.others and not self._warned:
            self._warned = True
            self.node.get_logger().warning(
                "positions and velocities of commands are ignored: only efforts act"
            )

    def _take(self, topic: str, read: Callable[[], np.ndarray]) -> None:
        """Pass a command to the plant; refuse it and log the reason if it is not valid.

        Ignored while the node is inactive.

        Args:
            topic: COMMANDS or JOINT_COMMANDS.
            read: Returns the efforts in the order of the joints, or raises
                RefusedCommand.
        """
        if not self.node.active:
            return
        now, robot = time.monotonic(), self.robot
        self.check_gap(now)
        try:
            if topic in self._doubtful:
                self._doubtful.remove(topic)
                raise RefusedCommand(
                    "command late",
                    "the node was busy for longer than command_timeout, and the command"
                    " may be as old; raise it where cycles take so long",
                )
            efforts = read()
        except RefusedCommand as error:
            self.node.refuse(error.kind, str(error))
            return
        tau = np.zeros_like(robot.tau)
        tau[self._columns] = efforts
        robot.command(now, tau)
        self.count += 1
        self.limited.append(not np.array_equal(robot.tau, tau))
        self.largest = max(self.largest, self._share(robot.tau))
        if self.published is not None:
            self.round_trips.add(now - self.published)
            self.answered += 1
            self.published = None
            self.node.session.idle.after_answer()

    def _share(self, tau: np.ndarray) -> float:
        """Return the largest effort relative to its joint's limit; 0 without limits.

        Args:
            tau: Joint efforts, (nv,) [N·m | N].
        """
        limit = self.robot.effort_limit
        shares = np.divide(np.abs(tau), limit, out=np.zeros_like(tau), where=limit > 0)
        return float(shares.max(initial=0.0))

    @property
    def limited_share(self) -> float:
        """Share of the last commands that were beyond an effort limit.

        It is 0 until there have been ENOUGH commands.
        """
        enough = len(self.limited) >= ENOUGH
        return sum(self.limited) / len(self.limited) if enough else 0.0

    def values(self) -> dict[str, Any]:
        """Return counts and times of commands, for /diagnostics."""
        return {
            "commands": self.count,
            "limited share": f"{self.limited_share:.2f}",
            "answered": self.answered,
            "largest effort [of limit]": f"{self.largest:.3f}",
            **self.round_trips.values(),
        }

    def warnings(self, share: float) -> dict[str, str]:
        """Return the warnings on commands: a sentence by kind; empty if there are none.

        Args:
            share: Share of limited commands above which there is a warning.
        """
        odd = {}
        counts = {
            name: publishers_beside_guard(self.node, name) for name in self.topics
        }
        if sum(counts.values()) > 1:
            listed = ", ".join(f"{n} on {name}" for name, n in counts.items() if n)
            odd["command publishers"] = (
                f"several publishers of commands ({listed}): each replaces the commands"
                " of the others"
            )
        if self.limited_share > share:
            odd["limited commands"] = (
                f"{self.limited_share:.0%} of the commands are beyond effort limits"
            )
        return odd
