"""Conversions between ROS messages and arrays, by joint name; they need no ROS."""

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
    """A required joint is missing in a message, or is there more than once."""


class JointReader:
    """Reads JointState messages into arrays with a fixed order of joints.

    Names are matched once for each sequence of names; other joints are ignored.

    Args:
        joints: Names of the joints, in the order of the arrays.
    """

    def __init__(self, joints: Sequence[str]) -> None:
        self.joints = tuple(joints)
        self._orders: dict[tuple[str, ...], np.ndarray] = {}

    def read(self, message: Any) -> tuple[np.ndarray, np.ndarray | None]:
        """Return position and velocity, (n,) [rad | m] and /s; velocity None if empty.

        Raises:
            MissingJoint: A joint is missing in the message, or is there more than once.
            ShapeError: The position is empty, or a field differs in size from the
                names.
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
        """Return the effort, (n,) [N·m | N]; None if the field is empty.

        Raises:
            MissingJoint: A joint is missing in the message, or is there more than once.
            ShapeError: The field differs in size from the names.
        """
        names = tuple(message.name)
        effort = _field("effort", message.effort, names)
        return None if effort is None else effort[self._order(names)]

    def _order(self, names: tuple[str, ...]) -> np.ndarray:
        """Return the index in a message of each joint, (n,); cached by the names.

        Raises:
            MissingJoint: A joint is missing in the names, or is there more than once.
        """
        order = self._orders.get(names)
        if order is None:
            order = self._match(names)
            # A publisher that permutes its names must not fill the memory.
            if len(self._orders) > 16:
                self._orders.clear()
            self._orders[names] = order
        return order

    def _match(self, names: tuple[str, ...]) -> np.ndarray:
        """Return the index in `names` of each joint, (n,).

        Raises:
            MissingJoint: A joint is missing in the names, or is there more than once.
        """
        for joint in self.joints:
            if names.count(joint) != 1:
                fault = "not there" if joint not in names else "there more than once"
                raise MissingJoint(f"joint '{joint}'", "one entry in name", fault)
        return np.array([names.index(joint) for joint in self.joints], int)


def _field(what: str, values: Any, names: Sequence[str]) -> np.ndarray | None:
    """Return a message's field as array, (len(names),); None if it is empty.

    Args:
        what: Name of the field, for the message.
        values: Numbers of the field.
        names: Names of the message; if there are none, an empty field is an empty
            array.

    Raises:
        ShapeError: The field is not empty and differs in size from the names.
    """
    array = np.asarray(values, float)
    if array.size == 0 and len(names):
        return None
    if array.shape != (len(names),):
        expected = f"{len(names)} numbers, one for each name, or none"
        raise ShapeError(what, expected, str(array.size))
    return array


def stamp_seconds(stamp: Any) -> float | None:
    """Return the stamp of a header in seconds; None if it is zero."""
    if stamp.sec == 0 and stamp.nanosec == 0:
        return None
    return stamp.sec + 1e-9 * stamp.nanosec


class TrajectoryArrays(NamedTuple):
    """Arrays of a JointTrajectory message: the arguments of make_trajectory.

    Attributes:
        names: Names of the n joints.
        times: Time of each point since the start, (points,) [s].
        positions, velocities, accelerations: One row a point, (points, n), or without
            columns if the message has none.
    """

    names: list[str]
    times: np.ndarray
    positions: np.ndarray
    velocities: np.ndarray
    accelerations: np.ndarray


def trajectory_arrays(message: Any) -> TrajectoryArrays:
    """Return the arrays of a JointTrajectory message, one row per point.

    Raises:
        TrajectoryError: The points differ in their number of positions, velocities or
            accelerations.
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
    """The fields of a JointState message.

    Attributes:
        names: Names of the n joints.
        position, velocity, effort: Arrays, (n,) [rad | m], /s, [N·m | N].
    """

    names: list[str]
    position: np.ndarray
    velocity: np.ndarray
    effort: np.ndarray


class JointWriter:
    """Converts a robot's state to JointState fields, for joints with one coordinate.

    Followers (mimic joints) are included, after the independent joints. Followers whose
    multiplier is not a float are left out.

    Attributes:
        names: Names of the written joints.
        q_indices, v_indices: Index of each joint's coordinate in q and qd; of its
            leader for a follower.
        factor, offset: Position is q * factor + offset, velocity qd * factor.
        effort_factor: 1 for an independent joint, 0 for a follower.
    """

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
        """Return the fields of a JointState; followers have effort 0.

        Args:
            q: Joint positions, (nq,).
            qd, tau: Joint velocities and efforts, (nv,).
        """
        position = q[self.q_indices] * self.factor + self.offset
        velocity = qd[self.v_indices] * self.factor
        return JointArrays(
            self.names, position, velocity, tau[self.v_indices] * self.effort_factor
        )


class AngleWriter:
    """Converts a planar chain's state to JointState fields, without its last joint."""

    def __init__(self, chain: ChainModel) -> None:
        self.names = list(chain.joint_names[:-1])

    def write(self, q: np.ndarray, qd: np.ndarray, tau: np.ndarray) -> JointArrays:
        """Return the fields of a JointState with the names of the joints.

        Args:
            q, qd, tau: Angle, rate and effort of each joint but the last [rad, rad/s,
                N·m].
        """
        return JointArrays(self.names, q, qd, tau)


class JointMotion(NamedTuple):
    """Pose and velocity of a joint's child relative to its parent, as ROS has them.

    For a planar chain they are relative to the fixed frame, see chain_joints.

    Attributes:
        name: Name of the joint.
        translation: Position of the child in the joint's frame, 3 [m].
        rotation: Orientation of the child in the joint's frame, quaternion (x, y, z,
            w).
        linear, angular: Velocity across the joint in the child's axes, 3 each [m/s,
            rad/s].
    """

    name: str
    translation: np.ndarray
    rotation: np.ndarray
    linear: np.ndarray
    angular: np.ndarray


def multi_dof_joints(model: Model, q: np.ndarray, qd: np.ndarray) -> list[JointMotion]:
    """Return the motion of each joint with nv != 1, for a MultiDOFJointState.

    Args:
        model: Robot.
        q: Joint positions, (nq,).
        qd: Joint velocities, (nv,).
    """
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
    """Return the motion of each joint of a planar chain, in the axes of the next link.

    Position and orientation are relative to the fixed frame of the chain, not to the
    previous link. The plane's x axis is the frame's X axis and its y axis is Z, so that
    angles are about -Y. The last joint has the axes of the last link. The linear
    velocity is relative to the fixed frame, in the axes of the link.

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
    """Return the coordinates of a floating root joint, (7,).

    Args:
        position: Position of the root, x, y, z [m].
        orientation: Quaternion x, y, z, w; it is normalized.

    Raises:
        ShapeError: An argument has the wrong size, or the quaternion is zero.
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
        point: Point of application, 3 [m].
        rotation: Orientation of a frame at the point, quaternion (x, y, z, w).
        force, torque: 3 each [N, N·m]; the function that returns the wrench states the
            axes.
    """

    name: str
    point: np.ndarray
    rotation: np.ndarray
    force: np.ndarray
    torque: np.ndarray


def contact_wrenches(reports: Sequence[StepReport], period: float) -> list[Wrench]:
    """Return the mean force of each contact over a period, acting on its first link.

        F = sum_k F_k h_k / period,   and an impact's impulse in place of F_k h_k

    Forces are in world axes, torques about the point. The frame at the point has the
    contact normal (from the second link into the first) as x and the friction
    directions as y and z; point and frame are the latest ones of the contact. Contacts
    without force are left out.

    Args:
        reports: Reports of the steps within the period.
        period: Duration [s].
    """
    last: dict[Any, ContactForce] = {}
    sums: dict[Any, np.ndarray] = {}
    for report in reports:
        # An impact's report has h = 0, and impulses in place of forces.
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
    """Return the name of a contact, which is equal in every step.

    It consists of links, shape indices and feature.
    """
    key: Any = c.id
    feature = str(key.feature).replace(" ", "")
    return f"{c.link_a}|{c.link_b}|{key.shape_a}:{key.shape_b}:{feature}"


def _frame(normal: np.ndarray) -> np.ndarray:
    """Return the quaternion of the frame with axes normal and friction directions."""
    t1, t2 = tangents(normal[None, :])
    return quaternion(np.column_stack([normal, t1[0], t2[0]]))


def joint_wrenches(model: Model, reactions: np.ndarray) -> list[Wrench]:
    """Return the wrench that each joint exerts on its child, in the child link's frame.

    Args:
        model: Robot.
        reactions: Spatial force of each body's joint, in the frame of its link, (nb, 6)
            [N·m; N]; row 0 is of body 1.
    """
    none, still = np.zeros(3), np.array([0.0, 0.0, 0.0, 1.0])
    return [
        Wrench(name, none, still, f[:3], f[3:])
        for name, f in zip(model.names[1:], ros_wrench(reactions), strict=True)
    ]
