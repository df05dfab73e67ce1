"""Conversions between messages and arrays, by joint name; they need no ROS."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from dyn_core.contact.rows.constraints import tangents
from dyn_core.contact.stepping.reports import ContactForce, StepReport
from dyn_core.control.reference.trajectory import point_rows
from dyn_core.errors import ShapeError
from dyn_core.model import Model
from dyn_core.planar import ChainModel, ChainState, joint_angles, joint_rates
from dyn_core.spatial import Vector
from dyn_core.spatial.conventions import (
    from_ros_pose,
    quaternion,
    ros_twist,
    ros_wrench,
)


class MissingJoint(ShapeError):
    """A required joint is missing in a message."""


class JointReader:
    """Reads JointState messages in a fixed order of joints.

    Names are matched once for each order of the messages; other joints are ignored.
    """

    def __init__(self, joints: Sequence[str]) -> None:
        self.joints = tuple(joints)
        self._orders: dict[tuple[str, ...], np.ndarray] = {}

    def read(self, message: Any) -> tuple[np.ndarray, np.ndarray | None]:
        """Return position and velocity (n,); the velocity is None if it is empty.

        Raises:
            MissingJoint: A joint is not in the message, or more than once.
            ShapeError: A field has not the size of the names.
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
        """Return the effort (n,); None if it is empty.

        Raises:
            MissingJoint: A joint is not in the message, or more than once.
            ShapeError: The field has not the size of the names.
        """
        names = tuple(message.name)
        effort = _field("effort", message.effort, names)
        return None if effort is None else effort[self._order(names)]

    def _order(self, names: tuple[str, ...]) -> np.ndarray:
        """Return where in a message the joints are."""
        order = self._orders.get(names)
        if order is None:
            order = self._match(names)
            if len(self._orders) > 16:
                self._orders.clear()
            self._orders[names] = order
        return order

    def _match(self, names: tuple[str, ...]) -> np.ndarray:
        for joint in self.joints:
            if names.count(joint) != 1:
                fault = "not there" if joint not in names else "there more than once"
                raise MissingJoint(f"joint '{joint}'", "one entry in name", fault)
        return np.array([names.index(joint) for joint in self.joints], int)


def _field(what: str, values: Any, names: Sequence[str]) -> np.ndarray | None:
    array = np.asarray(values, float)
    if array.size == 0 and len(names):
        return None
    if array.shape != (len(names),):
        expected = f"{len(names)} numbers, one for each name, or none"
        raise ShapeError(what, expected, str(array.size))
    return array


def stamp_seconds(stamp: Any) -> float | None:
    """Return a header's stamp in seconds; None if it is zero."""
    if stamp.sec == 0 and stamp.nanosec == 0:
        return None
    return stamp.sec + 1e-9 * stamp.nanosec


class TrajectoryArrays(NamedTuple):
    """Arrays of a JointTrajectory message, the arguments of make_trajectory."""

    names: list[str]
    times: np.ndarray
    positions: np.ndarray
    velocities: np.ndarray
    accelerations: np.ndarray


def trajectory_arrays(message: Any) -> TrajectoryArrays:
    """Return the arrays of a JointTrajectory message, one row per point.

    Raises:
        TrajectoryError: A point has not as many numbers as the first.
    """
    points = message.points
    stamps = [p.time_from_start for p in points]
    rows = {
        "positions": [p.positions for p in points],
        "velocities": [p.velocities for p in points],
        "accelerations": [p.accelerations for p in points],
    }
    return TrajectoryArrays(
        list(message.joint_names),
        np.array([x.sec + 1e-9 * x.nanosec for x in stamps], float),
        *(point_rows(what, row) for what, row in rows.items()),
    )


class JointArrays(NamedTuple):
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
        self.q_indices = np.array([model.q_slice(n).start for n in lead], int)
        self.v_indices = np.array([model.v_slice(n).start for n in lead], int)
        ones, zeros = [1.0] * len(single), [0.0] * len(single)
        self.factor = np.array([*ones, *(r.multiplier for r in rules.values())])
        self.offset = np.array([*zeros, *(r.offset for r in rules.values())])
        self.effort_factor = np.array([*ones, *(0.0 for _ in rules)])

    def write(self, q: np.ndarray, qd: np.ndarray, tau: np.ndarray) -> JointArrays:
        """Return names, positions, velocities and efforts (followers have none)."""
        position = q[self.q_indices] * self.factor + self.offset
        velocity = qd[self.v_indices] * self.factor
        return JointArrays(
            self.names, position, velocity, tau[self.v_indices] * self.effort_factor
        )


class AngleWriter:
    """Writes the angles of a planar chain: of all its joints but the last."""

    def __init__(self, chain: ChainModel) -> None:
        self.names = list(chain.joint_names[:-1])

    def write(self, q: np.ndarray, qd: np.ndarray, tau: np.ndarray) -> JointArrays:
        """Return names, positions, velocities and efforts."""
        return JointArrays(self.names, q, qd, tau)


class JointMotion(NamedTuple):
    """Pose and velocity across a joint, in the conventions of ROS.

    Attributes:
        name: Name of the joint.
        translation: Position of the child in the joint's frame, 3 [m].
        rotation: Quaternion (x, y, z, w).
        linear, angular: Velocity across the joint in the child's axes [m/s], [rad/s].
    """

    name: str
    translation: np.ndarray
    rotation: np.ndarray
    linear: np.ndarray
    angular: np.ndarray


def multi_dof_joints(model: Model, q: np.ndarray, qd: np.ndarray) -> list[JointMotion]:
    """Return each joint with several coordinates, for a MultiDOFJointState."""
    motions = []
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
        motions.append(
            JointMotion(name, np.array(list(p)), rotation, twist[:3], twist[3:])
        )
    return motions


def chain_joints(chain: ChainModel, state: ChainState) -> list[JointMotion]:
    """Return each joint of a planar chain, with the axes of the link that starts there.

    The plane's x is the frame's X and its y is Z, so that angles are about -Y. The last
    joint has the axes of the last link.

    Source: WAW-15.2.
    """
    angles = np.cumsum(joint_angles(chain, state)).tolist()
    rates = np.cumsum(joint_rates(chain, state)).tolist()
    motions = []
    for i, name in enumerate(chain.joint_names):
        k = min(i, chain.n - 2)
        c, s = np.cos(angles[k]), np.sin(angles[k])
        (x, y), (vx, vy) = state.x[i].tolist(), state.v[i].tolist()
        half = 0.5 * angles[k]
        motions.append(
            JointMotion(
                name,
                np.array([x, 0.0, y]),
                np.array([0.0, -np.sin(half), 0.0, np.cos(half)]),
                np.array([c * vx + s * vy, 0.0, c * vy - s * vx]),
                np.array([0.0, -rates[k], 0.0]),
            )
        )
    return motions


def root_pose(position: Sequence[float], orientation: Sequence[float]) -> np.ndarray:
    """Return the coordinates of a floating root from position and quaternion x y z w.

    Raises:
        ShapeError: One has the wrong size, or the quaternion is zero.
    """
    p, turn = np.asarray(position, float), np.asarray(orientation, float)
    if p.shape != (3,):
        raise ShapeError("initial_root_position", "3 numbers x, y, z", str(p.size))
    size = float(np.linalg.norm(turn)) if turn.shape == (4,) else 0.0
    if size < 1e-9:
        raise ShapeError(
            "initial_root_orientation", "a quaternion x, y, z, w", str(turn.tolist())
        )
    return from_ros_pose(p, turn / size)


class Wrench(NamedTuple):
    """A named wrench with its point of application.

    Attributes:
        name: Name of the joint or contact.
        point: Point of application, 3 [m].
        rotation: Quaternion (x, y, z, w) of a frame at the point.
        force, torque: [N], [N·m]; in the axes that its maker documents.
    """

    name: str
    point: np.ndarray
    rotation: np.ndarray
    force: np.ndarray
    torque: np.ndarray


def contact_wrenches(reports: Sequence[StepReport], period: float) -> list[Wrench]:
    """Return the mean force of each contact over a period, on its first link.

        F = sum_k F_k h_k / period,   and an impact's impulse in place of F_k h_k

    World axes, torques about the point. The frame has the normal (from the second link
    into the first) as x, the directions of friction as y and z. Contacts without force
    are left out.
    """
    last: dict[Any, ContactForce] = {}
    sums: dict[Any, np.ndarray] = {}
    for report in reports:
        share = (report.h or 1.0) / period
        for c in report.contacts:
            force = share * np.concatenate([c.force, c.torque])
            sums[c.id] = sums.get(c.id, 0.0) + force
            last[c.id] = c
    return [
        Wrench(_contact_name(c), c.point, _frame(c.normal), f[:3], f[3:])
        for c, f in zip(last.values(), sums.values(), strict=True)
        if f.any()
    ]


def _contact_name(c: ContactForce) -> str:
    """Return a name that is equal in every step: links, shape indices, feature."""
    key: Any = c.id
    feature = str(key.feature).replace(" ", "")
    return f"{c.link_a}|{c.link_b}|{key.shape_a}:{key.shape_b}:{feature}"


def _frame(normal: np.ndarray) -> np.ndarray:
    """Return the frame of normal and friction directions, as a quaternion."""
    t1, t2 = tangents(normal[None, :])
    return quaternion(np.column_stack([normal, t1[0], t2[0]]))


def joint_wrenches(model: Model, reactions: np.ndarray) -> list[Wrench]:
    """Return the force through each joint on its child, in the child link's frame.

    Args:
        model: Robot.
        reactions: By body, in the frame of its link, (nb, 6) [N·m; N].
    """
    none, still = np.zeros(3), np.array([0.0, 0.0, 0.0, 1.0])
    return [
        Wrench(name, none, still, f[:3], f[3:])
        for name, f in zip(model.names[1:], ros_wrench(reactions), strict=True)
    ]
