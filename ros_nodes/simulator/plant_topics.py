"""The one adapter from a simulated plant to topics, driven by the plant's channels."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from geometry_msgs.msg import Transform, Twist
from geometry_msgs.msg import Wrench as WrenchMessage
from rclpy.qos import QoSProfile
from sensor_msgs.msg import JointState, MultiDOFJointState
from std_msgs.msg import Float64MultiArray

import dyn_core as dyn
from dyn_core.simulation.plant import SimulatedPlant
from ros_nodes.base.node import RobotNode
from ros_nodes.base.qos import publisher
from ros_nodes.controller.payload_changes import serve_payload
from ros_nodes.conversions import JointReader, joint_motion, point_wrench
from ros_nodes.simulator.simulator_commands import LATEST, CommandInput

NO_COMMAND = "no effort command: effort is zero"
RECENT = 1.0  # duration of a warning after a fault [s]
# Topic of a channel of forces, and the parameter with its header.frame_id, if any.
FORCES = {
    "contacts": ("~/contact_wrenches", "contact.frame_id"),
    "reactions": ("~/joint_reactions", ""),
}


class PlantTopics:
    """Publishes the outputs of a plant, and subscribes to its inputs.

    - joint_states, multi_dof_joint_states: once a call of `publish`; the latter if the
      plant has such joints.
    - the topics of FORCES that the plant offers: at contact.publish_rate while there
      are subscribers.
    - the topics of CommandInput: joint forces.
    - ~/accelerations (Float64MultiArray): if joints have prescribed accelerations.
    - ~/state (JointState): if states can be set; only while the plant is paused.
    - the service ~/attach_payload: if the plant may carry a payload.

    Attributes:
        node, plant: As in __init__.
        channels: Channels of the plant.
        commands: Input of joint forces.
        message: The last message on joint_states.
        states, poses: Publishers; poses is None if there are no such joints.
        forces: Publishers by channel.
        every: Period of the topics of forces [s].
        due: Time of their next messages, monotonic [s].
        trouble: Time [s] and description of the last fault, or None.
    """

    def __init__(
        self,
        node: RobotNode,
        plant: SimulatedPlant,
        unlimited: Mapping[int, str],
        ros_time: Callable[[], float],
    ) -> None:
        """Create the publishers, subscriptions and services.

        Args:
            node: The simulator node, which destroys them at clean-up.
            plant: The plant.
            unlimited: Joints without an effort limit, see BuiltPlant.
            ros_time: Returns the time to which stamps refer [s].
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

    def publish(self, stamp: Any) -> None:
        """Publish the state; check for faults; publish forces at their rate.

        Args:
            stamp: Time of the headers, a message.
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
        now = time.monotonic()
        self._check_faults(now)
        if self.forces and now >= self.due:
            self.due = now + self.every
            self._publish_forces(stamp)

    def _publish_forces(self, stamp: Any) -> None:
        """Publish the forces for which there are subscribers.

        Forces that cannot be computed are refused, see RobotNode.refuse.
        """
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
        """Return the message on multi_dof_joint_states."""
        message = _message(stamp, self.node.value("frame_id"))
        for pose in self.channels.poses():
            joint, twist = joint_motion(pose), Twist()
            _set(twist.linear, joint.linear)
            _set(twist.angular, joint.angular)
            message.joint_names.append(joint.name)
            message.transforms.append(_transform(joint.translation, joint.rotation))
            message.twist.append(twist)
        return message

    # ---- inputs

    def on_accelerations(self, message: Float64MultiArray) -> None:
        """Set the prescribed accelerations; an invalid message is logged.

        Args:
            message: Accelerations in the order of the model [rad/s² | m/s²].
        """
        if not self.node.active:
            return
        try:
            self.plant.accelerate(time.monotonic(), np.asarray(message.data, float))
        except dyn.DynError as error:
            self.node.get_logger().warning(str(error), throttle_duration_sec=1.0)

    def on_state(self, message: JointState) -> None:
        """Set the simulated state while paused; an invalid state is refused."""
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
        """Store time and description of a fault of the last period."""
        for name, describe in self.channels.faults.items():
            count = self.plant.counters[name]
            if count > self._faults[name]:
                self.trouble = now, describe()
            self._faults[name] = count

    def warning(self, now: float) -> str | None:
        """Return a warning on a recent fault, the state or stale commands, or None.

        Only the first of these that applies is returned.

        Args:
            now: Time, monotonic [s].
        """
        if self.trouble is not None and now - self.trouble[0] < RECENT:
            return self.trouble[1]
        if warning := self.channels.warning():
            return warning
        stopped = self.plant.counters["command stale"] or not self.channels.free
        return NO_COMMAND if stopped and self.plant.stale(now) else None


def _set(vector: Any, values: np.ndarray) -> None:
    """Set x, y, z of a message."""
    vector.x, vector.y, vector.z = values.tolist()


def _message(stamp: Any, frame: str) -> MultiDOFJointState:
    """Return a message without joints; `frame` is its header.frame_id."""
    message = MultiDOFJointState()
    message.header.stamp, message.header.frame_id = stamp, frame
    return message


def _transform(translation: np.ndarray, rotation: np.ndarray) -> Transform:
    """Return a Transform message from a position and a quaternion (x, y, z, w)."""
    pose = Transform()
    _set(pose.translation, translation)
    r = pose.rotation
    r.x, r.y, r.z, r.w = rotation.tolist()
    return pose


def _forces_message(stamp: Any, frame: str, forces: Iterable[Any]) -> Any:
    """Return PointForces as a MultiDOFJointState: names, transforms and wrenches."""
    message = _message(stamp, frame)
    for each in forces:
        wrench, said = WrenchMessage(), point_wrench(each)
        _set(wrench.force, said.force)
        _set(wrench.torque, said.torque)
        message.joint_names.append(said.name)
        message.transforms.append(_transform(said.point, said.rotation))
        message.wrench.append(wrench)
    return message
