"""Channels of a simulated plant: its inputs and outputs as data.

An adapter, such as the simulator node, publishes the outputs and passes on the inputs
without knowing the kind of plant. It converts frames and orders where they differ.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from dyn_core.contact.rows.constraints import tangents
from dyn_core.contact.stepping.reports import ContactForce, StepReport
from dyn_core.model import Model
from dyn_core.spatial import Vector


class JointArrays(NamedTuple):
    """Names, and state (n,) in SI units, of n joints with one coordinate."""

    names: list[str]
    position: np.ndarray
    velocity: np.ndarray
    effort: np.ndarray


@dataclass(frozen=True)
class MeasuredJoints:
    """Joints with one coordinate, as functions of the state of a plant.

    q_indices, v_indices (n,) are of each joint's coordinate, for a follower of its
    leader's. Position is q * factor + offset, velocity qd * factor; effort_factor is 0
    for a follower, else 1.
    """

    names: list[str]
    q_indices: np.ndarray
    v_indices: np.ndarray
    factor: np.ndarray
    offset: np.ndarray
    effort_factor: np.ndarray

    @classmethod
    def of_names(cls, names: Sequence[str]) -> MeasuredJoints:
        """Return independent joints; coordinate k of q and qd belongs to names[k]."""
        n = len(names)
        return cls(
            list(names), np.arange(n), np.arange(n), np.ones(n), np.zeros(n), np.ones(n)
        )

    @classmethod
    def of_model(cls, model: Model) -> MeasuredJoints:
        """Return the one-coordinate joints of a robot: independent, then followers.

        They are in the order of q and of model.followers. Followers whose multiplier is
        not a float are left out.
        """
        single = single_joints(model)
        rules: Mapping[str, Any] = {
            name: rule
            for name, rule in model.followers.items()
            if isinstance(rule.multiplier, float)
        }
        lead = [*single, *(rule.leader for rule in rules.values())]
        ones, zeros = [1.0] * len(single), [0.0] * len(single)
        return cls(
            [*single, *rules],
            np.array([model.q_slice(n).start for n in lead], int),
            np.array([model.v_slice(n).start for n in lead], int),
            np.array([*ones, *(rule.multiplier for rule in rules.values())]),
            np.array([*zeros, *(rule.offset for rule in rules.values())]),
            np.array([*ones, *(0.0 for _ in rules)]),
        )

    def read(self, q: np.ndarray, qd: np.ndarray, tau: np.ndarray) -> JointArrays:
        """Return the state of the joints as new arrays; followers have effort 0."""
        position = q[self.q_indices] * self.factor + self.offset
        velocity = qd[self.v_indices] * self.factor
        return JointArrays(
            self.names, position, velocity, tau[self.v_indices] * self.effort_factor
        )


class JointPose(NamedTuple):
    """Pose and velocity of a joint's child link relative to a frame.

    `rotation` has the child's axes as columns, in axes of the frame, `position` its
    origin in the frame [m]; `velocity` is [angular; linear], in axes of the child,
    (6,).
    """

    name: str
    rotation: np.ndarray
    position: np.ndarray
    velocity: np.ndarray


class PointForce(NamedTuple):
    """A force [torque about `point`; force], (6,) [N·m; N], with a name.

    `rotation` has the axes of a frame at the point as columns. The function that
    returns it says in which frame and axes it is given.
    """

    name: str
    rotation: np.ndarray
    point: np.ndarray
    force: np.ndarray


@dataclass(frozen=True)
class Channels:
    """Inputs and outputs of a plant, besides the joint forces of its `command`.

    Attributes:
        joints: Joints that accept a joint force, in order; each has one coordinate.
        columns: Index of each of them in tau, (joints,).
        poses: Returns poses of joints with several coordinates, or of all joints.
        forces: By name; they raise a DynError if the forces cannot be computed, and may
            return None before the first step.
        wrench: Returns [moment; force] that a sensor at a link reads, about its origin
            and in its axes, (6,) [N·m; N], None before the first step.
        place: Sets positions and velocities of `joints`; velocities None: rest.
        carrier: Object whose method `attach` takes a Payload or None.
        faults: By name of a counter, a function that describes its last fault.
        free: Whether the plant normally also moves without any command.
    """

    joints: Sequence[str]
    columns: np.ndarray
    measured: MeasuredJoints
    poses: Callable[[], list[JointPose]]
    values: Callable[[], dict[str, Any]]
    forces: Mapping[str, Callable[[], list[PointForce] | None]] = field(
        default_factory=dict
    )
    wrench: Callable[[str], np.ndarray | None] | None = None
    accelerations: Sequence[str] = ()
    place: Callable[[np.ndarray, np.ndarray | None], None] | None = None
    carrier: Any = None
    faults: Mapping[str, Callable[[], str]] = field(default_factory=dict)
    warning: Callable[[], str | None] = lambda: None
    free: bool = False


def single_joints(model: Model) -> list[str]:
    """Return the names of independent joints with one coordinate, in the order of q."""
    columns = {name: model.v_slice(name) for name in model.joint_names}
    return [name for name, part in columns.items() if part.stop - part.start == 1]


def joint_poses(model: Model, q: np.ndarray, qd: np.ndarray) -> list[JointPose]:
    """Return pose and velocity of the child of each independent joint with nv > 1.

    They are relative to the joint's frame on the parent link (Xtree of the model), in
    which the child's pose is the identity at zero. Velocities are [angular; linear], in
    axes of the child.
    """
    poses = []
    for name in model.joint_names:
        i = model.body_of_joint(name)
        joint = model.joint[i]
        if joint.nv == 1:
            continue
        qi = Vector(q[model.q_slices[i]].tolist())
        vJ = joint.vJ(qi, Vector(qd[model.v_slices[i]].tolist()))
        R, p = joint.X(qi).pose
        rotation, position = np.asarray(R, float), np.array(list(p), float)
        poses.append(JointPose(name, rotation, position, np.array(list(vJ), float)))
    return poses


def contact_forces(reports: Sequence[StepReport], period: float) -> list[PointForce]:
    """Return the mean force of each contact over a period, acting on its first link.

        F = sum_k F_k h_k / period,   and an impact's impulse in place of F_k h_k

    F_k is the force in step k, h_k its length. Forces are [torque; force] in world
    axes, torques about the point. Point and frame are the latest ones of the contact;
    the frame has the contact normal (from the second link into the first) as x and the
    friction directions as y and z. Contacts are in the order of their first report,
    without zero forces, named by `_contact_name`.
    """
    last: dict[Any, ContactForce] = {}
    sums: dict[Any, np.ndarray] = {}
    for report in reports:
        # An impact's report has h = 0, and impulses in place of forces.
        share = (report.h or 1.0) / period
        for c in report.contacts:
            force = share * np.concatenate([c.torque, c.force])
            sums[c.id] = sums.get(c.id, 0.0) + force
            last[c.id] = c
    return [
        PointForce(_contact_name(c), _contact_axes(c.normal), c.point, force)
        for c, force in zip(last.values(), sums.values(), strict=True)
        if force.any()
    ]


def _contact_name(c: ContactForce) -> str:
    """Return the name of a contact: LINK_A|LINK_B|SHAPE_A:SHAPE_B:FEATURE.

    SHAPE is the index of a shape of its link, 0 for a half-space or height field.
    FEATURE is c.id.feature, a number, a word or a tuple, as text without spaces. A
    contact that persists has the same name in every step.
    """
    key: Any = c.id
    feature = str(key.feature).replace(" ", "")
    return f"{c.link_a}|{c.link_b}|{key.shape_a}:{key.shape_b}:{feature}"


def _contact_axes(normal: np.ndarray) -> np.ndarray:
    """Return the unit normal and two friction directions as columns, (3, 3).

    They are orthonormal and right-handed.
    """
    t1, t2 = tangents(normal[None, :])
    return np.column_stack([normal, t1[0], t2[0]])


def joint_forces(model: Model, reactions: np.ndarray) -> list[PointForce]:
    """Return the force of each moving body's joint on it, in the frame of its link.

    Point and rotation are zeros and the identity. `reactions` (nb, 6) are about the
    origin and in axes of each body's link; row 0 is for body 1.
    """
    return [
        PointForce(name, np.eye(3), np.zeros(3), force)
        for name, force in zip(model.names[1:], reactions, strict=True)
    ]
