"""The one adapter from a simulated plant to topics, driven by the plant's channels.

Effort commands come in by topics, are checked and counted.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from geometry_msgs.msg import Transform, Twist, WrenchStamped
from geometry_msgs.msg import Wrench as WrenchMessage
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import JointState, MultiDOFJointState
from std_msgs.msg import Float64MultiArray

import dyn_core as dyn
from dyn_core.simulation.plant import SimulatedPlant
from ros_nodes.base.node import RobotNode
from ros_nodes.base.qos import publisher, subscription
from ros_nodes.controller.guard_topics import publishers_beside_guard
from ros_nodes.controller.payload_changes import serve_payload
from ros_nodes.conversions import JointReader, joint_motion, point_wrench, stamp_seconds
from ros_nodes.messages.effort_commands import EffortReader, RefusedCommand
from ros_nodes.simulator.simulator_status import RoundTrips

COMMANDS = "effort_controller/commands"  # Float64MultiArray, in the order of joints
JOINT_COMMANDS = "joint_commands"  # JointState
# Receives from reliable and from best-effort publishers.
LATEST = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
COUNTED = 500  # number of commands over which limited_share is computed
ENOUGH = 50  # least number of commands for a share
NO_COMMAND = "no effort command: effort is zero"
RECENT = 1.0  # duration of a warning after a fault [s]
# Topic of a channel of forces, and the parameter with its header.frame_id, if any.
FORCES = {
    "contacts": ("~/contact_wrenches", "contact.frame_id"),
    "reactions": ("~/joint_reactions", ""),
}


class CommandInput:
    """Passes the effort commands of two topics to the plant.

    The age of a command counts from its reception. After the node was busy for longer
    than command_timeout, a queued message may be older than that; it is refused unless
    a stamp shows its age.

    Attributes:
        answered: Number of published states that were followed by a command.
        round_trips: Times from the publication of a state to its command.
        largest: Largest applied effort, relative to the limit of its joint.
        limited: Whether each of the last commands was clipped at an effort limit.
        published: Time of the last unanswered state, monotonic [s], or None.
        patience: Longest gap between calls of check_gap without doubt on the queue [s].
    """

    def __init__(
        self,
        node: RobotNode,
        robot: SimulatedPlant,
        unlimited: Mapping[int, str],
        ros_time: Callable[[], float],
    ) -> None:
        """Subscribe to the efforts on effort_controller/commands and joint_commands.

        The former are Float64MultiArray, the latter JointState.

        Args:
            node: The simulator node.
            robot: The plant.
            unlimited: Names of joints without an effort limit by index, see
                EffortReader.
            ros_time: Returns the time to which stamps refer [s].

        Raises:
            SettingError: A QoS override of a topic is not valid.
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
        self.limited: deque[bool] = deque(maxlen=COUNTED)
        self.published: float | None = None
        self._warned = False
        self.patience = self.reader.timeout + 2.0 / node.value("update_rate")
        self.restart()
        self.topics = [
            self._listen(Float64MultiArray, COMMANDS, self.on_array),
            self._listen(JointState, JOINT_COMMANDS, self.on_joint_state),
        ]

    def _listen(self, kind: Any, topic: str, take: Callable[[Any], None]) -> str:
        """Subscribe to a topic; return its full name after remapping."""
        return str(subscription(self.node, kind, topic, take, LATEST).topic_name)

    def restart(self) -> None:
        """Start anew to measure how long the node is busy; doubt no message."""
        self._alive: float | None = None
        self._doubtful: set[str] = set()

    def check_gap(self, now: float) -> None:
        """Mark queued messages as doubtful if the node was busy since the last call.

        Busy: that is over `patience` ago. The first call after `restart` marks none.
        """
        if self._alive is not None and now - self._alive > self.patience:
            self._doubtful = {COMMANDS, JOINT_COMMANDS}
        self._alive = now

    def on_array(self, message: Any) -> None:
        """Pass a command as Float64MultiArray to the plant; refuse an invalid one.

        Efforts are in the order of reader.joints [N·m | N]. A command that may be too
        old is refused, see check_gap.
        """
        self._take(COMMANDS, lambda: self.reader.array(message))

    def on_joint_state(self, message: Any) -> None:
        """Pass a command as JointState to the plant; refuse an invalid one.

        Joints without a name in it get zero effort. A stamp more than command_timeout
        from now is refused; without one, a command that may be too old (check_gap).
        """
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

        The first command on a topic that check_gap has marked as doubtful is refused,
        too. After a refusal the previous command remains; efforts beyond a limit are
        clipped. If a command answers a state, the round trip is recorded, and an idle
        job runs. `read` returns efforts in the order of the joints, or raises
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
        """Return the largest effort relative to its joint's limit; 0 without limits."""
        limit = self.robot.effort_limit
        shares = np.divide(np.abs(tau), limit, out=np.zeros_like(tau), where=limit > 0)
        return float(shares.max(initial=0.0))

    @property
    def limited_share(self) -> float:
        """Share of the last COUNTED commands clipped at a limit; 0 before ENOUGH."""
        enough = len(self.limited) >= ENOUGH
        return sum(self.limited) / len(self.limited) if enough else 0.0

    def values(self) -> dict[str, Any]:
        """Return counts and times of commands by name, for /diagnostics."""
        return {
            "commands": self.count,
            "limited share": f"{self.limited_share:.2f}",
            "answered": self.answered,
            "largest effort [of limit]": f"{self.largest:.3f}",
            **self.round_trips.values(),
        }

    def publishers(self) -> dict[str, int]:
        """Return the number of publishers by full name of a topic, without guards."""
        return {name: publishers_beside_guard(self.node, name) for name in self.topics}

    def warnings(self, share: float) -> dict[str, str]:
        """Return the warnings on commands: a sentence by kind; empty if there are none.

        `share` of clipped commands, 0 to 1, is compared with limited_share.
        """
        odd = {}
        counts = self.publishers()
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


class PlantTopics:
    """Publishes the outputs of a plant, and subscribes to its inputs.

    - joint_states, multi_dof_joint_states: once a call of `publish`; the latter if the
      plant has such joints.
    - ~/wrench (WrenchStamped): with contact.wrench_link, once a call of `publish`.
    - ~/contact_wrenches, ~/joint_reactions (MultiDOFJointState), as far as the plant
      offers them: at contact.publish_rate while there are subscribers.
    - the topics of CommandInput: joint forces.
    - ~/accelerations (Float64MultiArray): if joints have prescribed accelerations.
    - ~/state (JointState): if states can be set; only while the plant is paused.
    - the service ~/attach_payload: if the plant may carry a payload.

    `trouble` is the time [s] and description of the last fault, or None.
    """

    def __init__(
        self,
        node: RobotNode,
        plant: SimulatedPlant,
        unlimited: Mapping[int, str],
        ros_time: Callable[[], float],
    ) -> None:
        """Create the topics and the service that the class lists, as far as they apply.

        Args:
            node: The simulator node, which destroys them at clean-up.
            plant: The plant.
            unlimited: Names of joints without an effort limit by index, see BuiltPlant.
            ros_time: Returns the time to which stamps refer [s].

        Raises:
            SettingError: A QoS override, the payload or contact.wrench_link is not
                valid.
            UnsupportedError: The plant has no wrench at contact.wrench_link.
        """
        self.node = node
        self.plant: Any = plant
        self.channels = channels = plant.channels()
        self.message = JointState(name=channels.measured.names)
        self.message.header.frame_id = node.value("frame_id")
        self.every, self.due = 1.0 / node.value("contact.publish_rate"), 0.0
        self.trouble: tuple[float, str] | None = None
        self._faults = {name: plant.counters[name] for name in channels.faults}
        self._reader = JointReader(channels.joints)
        deep = QoSProfile(depth=10)
        self.states = publisher(node, JointState, "joint_states", deep)

        def publisher_of(topic: str) -> Any:
            return node.keep(node.create_publisher(MultiDOFJointState, topic, deep))

        several = bool(channels.poses())
        self.poses = publisher_of("multi_dof_joint_states") if several else None
        self.forces = {name: publisher_of(FORCES[name][0]) for name in channels.forces}
        self._wrench = self._wrench_publisher()
        self.commands = CommandInput(node, plant, unlimited, ros_time)
        listen = node.create_subscription
        if channels.accelerations:
            topic = "~/accelerations"
            kind: Any = Float64MultiArray
            node.keep(listen(kind, topic, self.on_accelerations, LATEST))
        if channels.place is not None:
            latest = QoSProfile(depth=1)
            node.keep(listen(JointState, "~/state", self.on_state, latest))
        if channels.carrier is not None:
            serve_payload(node, channels.carrier)

    # ---- outputs

    def _wrench_publisher(self) -> Any:
        """Return the publisher of ~/wrench, set its noise; None without contacts."""
        node, link = self.node, self.node.value("contact.wrench_link")
        if not link or not node.value("contact.enabled"):
            return None
        if self.channels.wrench is None:
            reason = "this plant has no force-torque sensor"
            raise dyn.SettingError(f"contact.wrench_link: {reason}", "wrench_link")
        self.channels.wrench(link)
        self._noise = np.repeat(node.value("contact.wrench_noise"), 3)
        self._random = np.random.default_rng(node.value("contact.wrench_seed"))
        return node.keep(node.create_publisher(WrenchStamped, "~/wrench", LATEST))

    def _publish_wrench(self, stamp: Any) -> None:
        """Publish the wrench of the sensor, with noise; nothing before the first step.

        It is about the origin of contact.wrench_link, in its axes.
        """
        link = self.node.value("contact.wrench_link")
        w = None if self.channels.wrench is None else self.channels.wrench(link)
        if w is None:
            return
        w = w + self._noise * self._random.standard_normal(6)
        message = WrenchStamped()
        message.header.stamp, message.header.frame_id = stamp, link
        set_vector(message.wrench.torque, w[:3])
        set_vector(message.wrench.force, w[3:])
        self._wrench.publish(message)

    def publish(self, stamp: Any) -> None:
        """Publish the state; check for faults; publish forces at their rate.

        Each call sets the time of the unanswered state, also after an unanswered one.
        """
        channels, plant, message = self.channels, self.plant, self.message
        joints = channels.measured.read(plant.q, plant.qd, plant.effort)
        message.header.stamp = stamp
        message.position, message.velocity = joints.position, joints.velocity
        message.effort = joints.effort
        self.commands.published = time.monotonic()
        self.states.publish(message)
        if self.poses is not None:
            self.poses.publish(self._poses_message(stamp))
        if self._wrench is not None:
            self._publish_wrench(stamp)
        now = time.monotonic()
        self._check_faults(now)
        if self.forces and now >= self.due:
            self.due = now + self.every
            self._publish_forces(stamp)

    def _publish_forces(self, stamp: Any) -> None:
        """Publish the forces that have subscribers; refuse what cannot be computed."""
        for name, topic in self.forces.items():
            if not topic.get_subscription_count():
                continue
            try:
                forces = self.channels.forces[name]()
            except dyn.DynError as error:
                self.node.refuse(name, str(error))
                continue
            if forces is not None:
                parameter = FORCES[name][1]
                frame = self.node.value(parameter) if parameter else ""
                topic.publish(_forces_message(stamp, frame, forces))

    def _poses_message(self, stamp: Any) -> MultiDOFJointState:
        """Return the message of multi_dof_joint_states: pose and twist of each joint.

        For a robot they are relative to the joint's frame on the parent link, the twist
        in axes of the child; the header has frame_id, whatever they refer to.
        """
        message = _message(stamp, self.node.value("frame_id"))
        for pose in self.channels.poses():
            joint, twist = joint_motion(pose), Twist()
            set_vector(twist.linear, joint.linear)
            set_vector(twist.angular, joint.angular)
            message.joint_names.append(joint.name)
            message.transforms.append(
                transform_message(joint.translation, joint.rotation)
            )
            message.twist.append(twist)
        return message

    # ---- inputs

    def on_accelerations(self, message: Float64MultiArray) -> None:
        """Set the accelerations of prescribed joints [rad/s² | m/s²], in model order.

        Without new ones for command_timeout they become zero.
        """
        if not self.node.active:
            return
        try:
            self.plant.accelerate(time.monotonic(), np.asarray(message.data, float))
        except dyn.DynError as error:
            self.node.get_logger().warning(str(error), throttle_duration_sec=1.0)

    def on_state(self, message: JointState) -> None:
        """Set the simulated state; refuse it if invalid or if the plant is not paused.

        It has all joints, by name in any order; at rest if it has no velocities.
        """
        if not self.node.active or self.channels.place is None:
            return
        try:
            if not self.plant.paused:
                raise dyn.SettingError("pause first (~/pause)", "state")
            self.channels.place(*self._reader.read(message))
        except dyn.DynError as error:
            self.node.refuse("state refused", str(error))

    # ---- diagnostics

    def _check_faults(self, now: float) -> None:
        """Store time and description of the last new fault, if any, in `trouble`."""
        for name, describe in self.channels.faults.items():
            count = self.plant.counters[name]
            if count > self._faults[name]:
                self.trouble = now, describe()
            self._faults[name] = count

    def warning(self, now: float) -> str | None:
        """Return a warning on a recent fault, the state or stale commands, or None.

        A fault is recent for RECENT (1 s). A plant that also moves without commands
        gets this warning only once a command has become too old.
        """
        if self.trouble is not None and now - self.trouble[0] < RECENT:
            return self.trouble[1]
        if warning := self.channels.warning():
            return warning
        stopped = self.plant.counters["command stale"] or not self.channels.free
        return NO_COMMAND if stopped and self.plant.stale(now) else None


def set_vector(vector: Any, values: np.ndarray) -> None:
    """Set the fields x, y, z of the message `vector` to the array `values`, (3,)."""
    vector.x, vector.y, vector.z = values.tolist()


def _message(stamp: Any, frame: str) -> MultiDOFJointState:
    """Return a message without joints; its header has this stamp and frame_id."""
    message = MultiDOFJointState()
    message.header.stamp, message.header.frame_id = stamp, frame
    return message


def transform_message(translation: np.ndarray, rotation: np.ndarray) -> Transform:
    """Return a Transform message of a position (3,) and a quaternion (x, y, z, w)."""
    pose = Transform()
    set_vector(pose.translation, translation)
    r = pose.rotation
    r.x, r.y, r.z, r.w = rotation.tolist()
    return pose


def _forces_message(stamp: Any, frame: str, forces: Iterable[Any]) -> Any:
    """Return PointForces as a MultiDOFJointState: names, transforms and wrenches.

    A wrench is the force in its own axes, not turned by the rotation.
    """
    message = _message(stamp, frame)
    for each in forces:
        wrench, said = WrenchMessage(), point_wrench(each)
        set_vector(wrench.force, said.force)
        set_vector(wrench.torque, said.torque)
        message.joint_names.append(said.name)
        message.transforms.append(transform_message(said.point, said.rotation))
        message.wrench.append(wrench)
    return message
