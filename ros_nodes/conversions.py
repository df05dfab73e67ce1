"""Conversions between ROS messages and arrays, by joint name; they need no ROS."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from dyn_core.errors import ShapeError
from dyn_core.simulation.channels import JointPose, PointForce
from dyn_core.spatial.conventions import (
    from_ros_pose,
    quaternion,
    ros_twist,
    ros_wrench,
)


class MissingJoint(ShapeError):
    """A required joint is missing in a message, or is there more than once."""


class JointReader:
    """Reads JointState messages into arrays with a fixed order of joints.

    Other joints are ignored. That numbers are finite is not checked.
    """

    def __init__(self, joints: Sequence[str]) -> None:
        self.joints = tuple(joints)
        self._orders: dict[tuple[str, ...], np.ndarray] = {}

    def read(self, message: Any) -> tuple[np.ndarray, np.ndarray | None]:
        """Return position (n,) [rad | m] and velocity (n,) [rad/s | m/s] of the joints.

        The velocity may be None. MissingJoint: a joint is missing or double.
        """
        names = tuple(message.name)
        order = self._order(names)
        position = _field("position", message.position, names)
        if position is None:
            expected = f"{len(names)} numbers, one for each name"
            raise ShapeError("position", expected, "nothing")
        velocity = _field("velocity", message.velocity, names)
        return position[order], None if velocity is None else velocity[order]

    def effort(self, message: Any) -> np.ndarray | None:
        """Return the effort, (n,) [N·m | N]; None if the field is empty."""
        names = tuple(message.name)
        effort = _field("effort", message.effort, names)
        return None if effort is None else effort[self._order(names)]

    def _order(self, names: tuple[str, ...]) -> np.ndarray:
        """Return the index in `names` of each joint, (n,), cached: do not change it."""
        order = self._orders.get(names)
        if order is None:
            order = self._match(names)
            # A publisher that permutes its names must not fill the memory.
            if len(self._orders) > 16:
                self._orders.clear()
            self._orders[names] = order
        return order

    def _match(self, names: tuple[str, ...]) -> np.ndarray:
        """Return the index in `names` of each joint, (n,); each must be there once."""
        for joint in self.joints:
            if names.count(joint) != 1:
                fault = "not there" if joint not in names else "there more than once"
                raise MissingJoint(f"joint '{joint}'", "one entry in name", fault)
        return np.array([names.index(joint) for joint in self.joints], int)


def _field(what: str, values: Any, names: Sequence[str]) -> np.ndarray | None:
    """Return a message's field as array, (len(names),); None if it alone is empty."""
    array = np.asarray(values, float)
    if array.size == 0 and len(names):
        return None
    if array.shape != (len(names),):
        expected = f"{len(names)} numbers, one for each name, or none"
        raise ShapeError(what, expected, str(array.size))
    return array


def stamp_seconds(stamp: Any) -> float | None:
    """Return the stamp of a header, sec and nanosec, in seconds; None if it is zero."""
    if stamp.sec == 0 and stamp.nanosec == 0:
        return None
    return stamp.sec + 1e-9 * stamp.nanosec


class TrajectoryArrays(NamedTuple):
    """Arrays of a JointTrajectory message: the arguments of make_trajectory.

    `names` are n, `times` (points,) [s] since the start; the others have one row a
    point, (points, n), or no columns if the message has none.
    """

    names: list[str]
    times: np.ndarray
    positions: np.ndarray
    velocities: np.ndarray
    accelerations: np.ndarray


class JointMotion(NamedTuple):
    """A JointPose as ROS has it; its frame is the frame of the JointPose.

    Attributes:
        translation: Origin of the child in the frame, (3,) [m].
        rotation: Orientation of the child in the frame, quaternion (x, y, z, w).
        linear, angular: Velocity of the child relative to the frame, in the child's
            axes, (3,) each [m/s, rad/s].
    """

    name: str
    translation: np.ndarray
    rotation: np.ndarray
    linear: np.ndarray
    angular: np.ndarray


def joint_motion(pose: JointPose) -> JointMotion:
    """Return a JointPose with quaternion, and linear and angular velocity apart."""
    twist = ros_twist(pose.velocity)
    rotation = quaternion(pose.rotation)
    return JointMotion(pose.name, pose.position, rotation, twist[:3], twist[3:])


def root_pose(position: Sequence[float], orientation: Sequence[float]) -> np.ndarray:
    """Return the coordinates of a floating root joint: x, y, z, qx, qy, qz, qw, (7,).

    The position [m] and the quaternion x, y, z, w are in the world. The quaternion is
    normalized; a ShapeError refuses one shorter than 1e-9. NaN is not refused.
    """
    p, turn = np.asarray(position, float), np.asarray(orientation, float)
    if p.shape != (3,):
        raise ShapeError("initial_root_position", "3 numbers x, y, z", str(p.size))
    size = float(np.linalg.norm(turn)) if turn.shape == (4,) else 0.0
    # A quaternion this short has no direction beyond rounding.
    if size < 1e-9:
        raise ShapeError(
            "initial_root_orientation", "a quaternion x, y, z, w", str(turn.tolist())
        )
    return from_ros_pose(p, turn / size)


class Wrench(NamedTuple):
    """A force and a torque at a point of application, with a name.

    Attributes:
        name: Name of the joint or contact.
        point: Point of application, (3,) [m].
        rotation: Orientation of a frame at the point, quaternion (x, y, z, w).
        force, torque: Force, and torque about the point, (3,) each [N, N·m], in the
            axes of the PointForce.
    """

    name: str
    point: np.ndarray
    rotation: np.ndarray
    force: np.ndarray
    torque: np.ndarray


def point_wrench(force: PointForce) -> Wrench:
    """Return a Wrench: a quaternion of the rotation, and force and torque apart."""
    f = ros_wrench(force.force)
    rotation = quaternion(force.rotation)
    return Wrench(force.name, force.point, rotation, f[:3], f[3:])
