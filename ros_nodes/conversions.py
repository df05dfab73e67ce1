"""Messages <-> arrays, by joint name; pure functions that need no ROS."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from dyn_core.errors import ShapeError
from dyn_core.model import Model
from dyn_core.planar import ChainModel, ChainState, joint_angles, joint_rates
from dyn_core.spatial import Vector
from dyn_core.spatial.conventions import quaternion, ros_twist


class MissingJoint(ShapeError):
    """A message lacks a joint that is needed."""


class JointReader:
    """Reads JointState messages in the order of given joints.

    Names are matched once for each order that comes; extra joints are left out.
    """

    def __init__(self, joints: Sequence[str]) -> None:
        self.joints = tuple(joints)
        self._orders: dict[tuple[str, ...], np.ndarray] = {}

    def read(self, message: Any) -> tuple[np.ndarray, np.ndarray | None]:
        """Give position and velocity (n,); the velocity is None where it is empty.

        Raises:
            MissingJoint: A joint is not in the message, or twice.
            ShapeError: A field is neither empty nor as long as the names.
        """
        names = tuple(message.name)
        order = self._orders.get(names)
        if order is None:
            order = self._match(names)
            if len(self._orders) > 16:
                self._orders.clear()
            self._orders[names] = order
        position = _field("position", message.position, names)
        if position is None:
            wanted = f"{len(names)} numbers, one for each name"
            raise ShapeError("position", wanted, "nothing")
        velocity = _field("velocity", message.velocity, names)
        return position[order], None if velocity is None else velocity[order]

    def _match(self, names: tuple[str, ...]) -> np.ndarray:
        for joint in self.joints:
            if names.count(joint) != 1:
                found = "not there" if joint not in names else "there more than once"
                raise MissingJoint(f"joint '{joint}'", "one entry in name", found)
        return np.array([names.index(joint) for joint in self.joints], int)


def _field(what: str, values: Any, names: Sequence[str]) -> np.ndarray | None:
    array = np.asarray(values, float)
    if array.size == 0 and len(names):
        return None
    if array.shape != (len(names),):
        wanted = f"{len(names)} numbers, one for each name, or none"
        raise ShapeError(what, wanted, str(array.size))
    return array


def stamp_seconds(stamp: Any) -> float | None:
    """Give a header's stamp in seconds; None where it was left zero."""
    if stamp.sec == 0 and stamp.nanosec == 0:
        return None
    return stamp.sec + 1e-9 * stamp.nanosec


class TrajectoryArrays(NamedTuple):
    """What make_trajectory takes of a JointTrajectory message."""

    names: list[str]
    times: list[float]
    positions: list[Any]
    velocities: list[Any]
    accelerations: list[Any]


def trajectory_arrays(message: Any) -> TrajectoryArrays:
    """Give the arrays of a JointTrajectory message."""
    points = message.points
    times = [p.time_from_start.sec + 1e-9 * p.time_from_start.nanosec for p in points]
    return TrajectoryArrays(
        list(message.joint_names),
        times,
        [np.asarray(p.positions, float) for p in points],
        [np.asarray(p.velocities, float) for p in points],
        [np.asarray(p.accelerations, float) for p in points],
    )


class Joints(NamedTuple):
    """The fields of a JointState."""

    names: list[str]
    position: np.ndarray
    velocity: np.ndarray
    effort: np.ndarray


class JointWriter:
    """Writes the state of joints with one coordinate, followers included."""

    def __init__(self, model: Model) -> None:
        single = [
            n
            for n in model.joint_names
            if model.v_slice(n).stop - model.v_slice(n).start == 1
        ]
        rules: Mapping[str, Any] = {
            name: rule
            for name, rule in model.followers.items()
            if isinstance(rule.multiplier, float)
        }
        self.names = [*single, *rules]
        lead = [*single, *(rule.leader for rule in rules.values())]
        self.q_at = np.array([model.q_slice(n).start for n in lead], int)
        self.v_at = np.array([model.v_slice(n).start for n in lead], int)
        ones, zeros = [1.0] * len(single), [0.0] * len(single)
        self.factor = np.array([*ones, *(r.multiplier for r in rules.values())])
        self.offset = np.array([*zeros, *(r.offset for r in rules.values())])
        self.own = np.array([*ones, *(0.0 for _ in rules)])

    def write(self, q: np.ndarray, qd: np.ndarray, tau: np.ndarray) -> Joints:
        """Give names, positions, velocities and efforts (followers have none)."""
        position = q[self.q_at] * self.factor + self.offset
        velocity = qd[self.v_at] * self.factor
        return Joints(self.names, position, velocity, tau[self.v_at] * self.own)


class AngleWriter:
    """Writes the angles of a planar chain: of all its joints but the last."""

    def __init__(self, chain: ChainModel) -> None:
        self.names = list(chain.joint_names[:-1])

    def write(self, q: np.ndarray, qd: np.ndarray, tau: np.ndarray) -> Joints:
        """Give names, positions, velocities and efforts."""
        return Joints(self.names, q, qd, tau)


class Placed(NamedTuple):
    """Pose and velocity of a joint with several coordinates, as ROS has them.

    Attributes:
        name: The joint.
        translation: Of the child in the joint's place, 3 [m].
        rotation: Quaternion (x, y, z, w).
        linear, angular: Velocity across the joint in the child's axes [m/s], [rad/s].
    """

    name: str
    translation: np.ndarray
    rotation: np.ndarray
    linear: np.ndarray
    angular: np.ndarray


def placed_joints(model: Model, q: np.ndarray, qd: np.ndarray) -> list[Placed]:
    """Give each joint with several coordinates, for a MultiDOFJointState."""
    found = []
    for name in model.joint_names:
        i = model.body_of_joint(name)
        joint = model.joint[i]
        if joint.nv == 1:
            continue
        qi = Vector(q[model.q_slices[i]].tolist())
        vJ = joint.vJ(qi, Vector(qd[model.v_slices[i]].tolist()))
        R, p = joint.X(qi).pose
        twist = ros_twist(np.array(list(vJ), float))
        rotation = quaternion(np.asarray(R, float))
        found.append(Placed(name, np.array(list(p)), rotation, twist[:3], twist[3:]))
    return found


def placed_points(chain: ChainModel, state: ChainState) -> list[Placed]:
    """Give each joint of a planar chain with the axes of the link that begins there.

    The plane's x is the frame's X, its y is Z: angles turn about -Y. The last joint has
    the axes of the last link.

    Source: WAW-15.2.
    """
    angles = np.cumsum(joint_angles(chain, state)).tolist()
    rates = np.cumsum(joint_rates(chain, state)).tolist()
    found = []
    for i, name in enumerate(chain.joint_names):
        k = min(i, chain.n - 2)
        c, s = np.cos(angles[k]), np.sin(angles[k])
        (x, y), (vx, vy) = state.x[i].tolist(), state.v[i].tolist()
        half = 0.5 * angles[k]
        found.append(
            Placed(
                name,
                np.array([x, 0.0, y]),
                np.array([0.0, -np.sin(half), 0.0, np.cos(half)]),
                np.array([c * vx + s * vy, 0.0, c * vy - s * vx]),
                np.array([0.0, -rates[k], 0.0]),
            )
        )
    return found
