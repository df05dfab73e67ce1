"""Bodies and joints of an MJCF as links and joints of a Description.

A body with several joints becomes as many links, all but the last without mass:
MuJoCo's joints of one body act in series, the first next to the parent. The position of
a hinge or slide equals MuJoCo's qpos; a joint with `ref` is therefore placed rotated or
shifted back by it. Sites are links without mass.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dyn_core.errors import ModelError
from dyn_core.model.description import JointSpec, LinkSpec
from dyn_core.model.mjcf.compiled import Compiled, unused
from dyn_core.model.mjcf.drives import Drives
from dyn_core.model.shapes import Shape
from dyn_core.model.urdf_xml.attributes import rpy_of
from dyn_core.spatial import RigidInertia, Vector
from dyn_core.spatial.conventions import quaternion_from_wxyz, rotation
from dyn_core.spatial.lie import quat_exp, quat_matrix, quat_product

_HERE = ([0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0])
ROOT_JOINTS = ("fixed", "floating")


def read_links(
    mjcf: Compiled,
    drives: Drives,
    shapes: Mapping[int, tuple[Shape, ...]],
    kinds: Sequence[str],
    places: Mapping[str, float],
) -> tuple[tuple[LinkSpec, ...], tuple[JointSpec, ...]]:
    """Return the links and joints of an MJCF, in the order of the file, sites last.

    Args:
        mjcf: The compiled file.
        drives: Quantities that actuators add to joints.
        shapes: Collision shapes of each body, by number.
        kinds: Kind of the joint of each body, by how_joined.
        places: Positions at which joints are fixed, by name [rad | m].
    """
    inertias = _inertias(mjcf)
    links = [LinkSpec(mjcf.links[0], inertias[0], (), shapes.get(0, ()))]
    joints: list[JointSpec] = []
    joined = _Joined(mjcf, drives, kinds, places)
    for body in range(1, mjcf.model.nbody):
        chain = joined.chain(body)
        links += [LinkSpec(x.child, RigidInertia.zero()) for x in chain[:-1]]
        links.append(
            LinkSpec(mjcf.links[body], inertias[body], (), shapes.get(body, ()))
        )
        joints += chain
    for site, name in enumerate(mjcf.sites):
        if name:
            links.append(LinkSpec(name, RigidInertia.zero()))
            parent = mjcf.links[int(mjcf.model.site_bodyid[site])]
            joints.append(joined.fixed(parent, name, mjcf.pose("site", site)))
    return tuple(links), tuple(joints)


def _inertias(mjcf: Compiled) -> list[RigidInertia]:
    """Return the inertia of each body about the origin of its frame."""
    m = mjcf.model
    R = rotation(quaternion_from_wxyz(m.body_iquat))
    Ic = (R * m.body_inertia[:, None, :]) @ R.swapaxes(1, 2)
    six = Ic[:, [0, 0, 0, 1, 1, 2], [0, 1, 2, 1, 2, 2]].tolist()
    rows = zip(m.body_mass.tolist(), m.body_ipos.tolist(), six, strict=True)
    return [
        RigidInertia.of(mass, c, entries) if mass or any(entries) else _NOTHING
        for mass, c, entries in rows
    ]


_NOTHING = RigidInertia.zero()


class _Joined:
    """Builder of the joints of each body, with unique names.

    Args are as in read_links.
    """

    def __init__(
        self,
        mjcf: Compiled,
        drives: Drives,
        kinds: Sequence[str],
        places: Mapping[str, float],
    ) -> None:
        self.mjcf, self.drives, self.places = mjcf, drives, places
        self.link_names = {*mjcf.links, *mjcf.sites}
        self.joint_names = set(mjcf.joints)
        self.kinds = kinds

    def fixed(self, parent: str, child: str, pose: tuple) -> JointSpec:
        """Return a fixed joint at `pose` (position, quaternion), named by the child."""
        name = unused(f"{child}_fixed", self.joint_names)
        xyz, quaternion = pose
        return JointSpec(
            name, "fixed", parent, child, tuple(xyz), rpy_of(quaternion, "", "")
        )

    def chain(self, body: int) -> list[JointSpec]:
        """Return the joints between a body (index) and its parent, parent's first.

        A fixed body has one fixed joint, a free body one floating joint.
        """
        m = self.mjcf.model
        parent = self.mjcf.links[int(m.body_parentid[body])]
        child, pose = self.mjcf.links[body], self.mjcf.pose("body", body)
        first, count = int(m.body_jntadr[body]), int(m.body_jntnum[body])
        if not self.kinds[body]:
            return [self.fixed(parent, child, pose)]
        if self.kinds[body] == "free":
            name = self.mjcf.joints[first] if count else f"{child}_joint"
            name = name if count else unused(name, self.joint_names)
            spec = JointSpec(name, "floating", parent, child)
            return [
                _with_forces(self.mjcf, self.drives, first, spec) if count else spec
            ]
        specs = []
        for joint in range(first, first + count):
            last = joint == first + count - 1
            name = f"{child}.{self.mjcf.joints[joint]}"
            below = child if last else unused(name, self.link_names)
            specs.append(self._moving(joint, parent, below, pose))
            parent, pose = below, _HERE
        return specs

    def _moving(self, joint: int, parent: str, child: str, pose: tuple) -> JointSpec:
        """Return a hinge, slide or ball joint; a fixed one if its position is fixed.

        Args:
            joint: Index of the joint.
            parent, child: Names of the links.
            pose: Position and quaternion (x, y, z, w) of the child in the parent.
        """
        m, kind = self.mjcf.model, self.mjcf.kind("jnt_type", joint)
        start, turn = Vector(pose[0]), Vector(pose[1])
        anchor, axis = Vector(m.jnt_pos[joint].tolist()), m.jnt_axis[joint].tolist()
        place = int(m.jnt_qposadr[joint])
        ref, rest = float(m.qpos0[place]), float(m.qpos_spring[place])
        limits: dict[str, Any] = {}
        shift = self.places.get(self.mjcf.joints[joint], 0.0) - ref
        if kind == "slide":
            anchor = Vector(axis) * shift
        xyz = start + quat_matrix(turn) @ anchor
        if kind == "slide":
            anchor = Vector.zeros(3)
        if kind == "hinge":
            turn = quat_product(turn, quat_exp(Vector(axis) * shift))
        name = "spherical"
        if kind != "ball":
            limited = bool(m.jnt_limited[joint])
            low, high = m.jnt_range[joint].tolist()
            name = "prismatic" if kind == "slide" else "revolute"
            name = name if limited or name == "prismatic" else "continuous"
            limits = {"axis": tuple(axis), "effort": self.drives.effort.get(joint, 0.0)}
            if limited:
                limits |= {"lower": low, "upper": high}
            limits |= {"stiffness": float(m.jnt_stiffness[joint]), "rest": rest}
        if self.mjcf.joints[joint] in self.places:
            name, limits = "fixed", {}
        spec = JointSpec(
            self.mjcf.joints[joint], name, parent, child, tuple(xyz),
            rpy_of(tuple(turn), "", ""), plug_xyz=tuple(anchor), **limits,
            passive=self.drives.driven is not None and joint not in self.drives.driven,
        )  # fmt: skip
        return _with_forces(self.mjcf, self.drives, joint, spec)


def _with_forces(
    mjcf: Compiled, drives: Drives, joint: int, spec: JointSpec
) -> JointSpec:
    """Return a joint with damping, dry friction and armature of file and actuators.

    `joint` is the index of the joint, `drives` the actuators' share.
    """
    m, place = mjcf.model, int(mjcf.model.jnt_dofadr[joint])
    return replace(
        spec,
        damping=float(m.dof_damping[place]) + drives.damping.get(joint, 0.0),
        friction=float(m.dof_frictionloss[place]),
        armature=float(m.dof_armature[place]) + drives.armature.get(joint, 0.0),
    )


def how_joined(mjcf: Compiled, root_joint: str | None) -> list[str]:
    """Return by body how it is joined to its parent.

    The entry is hinge, slide, ball or free (its only joint), several, or "" if the body
    is fixed; entry 0 is the world's.

    Args:
        mjcf: The compiled file.
        root_joint: fixed: free joints are fixed. floating: the only body that is fixed
            to the world becomes free. None: as in the file.

    Raises:
        ModelError: floating, but not exactly one body is fixed to the world.
    """
    m = mjcf.model
    floating = _floating_body(mjcf) if root_joint == "floating" else None
    result = []
    for body in range(m.nbody):
        first, count = int(m.body_jntadr[body]), int(m.body_jntnum[body])
        kind = "several" if count > 1 else ""
        if count == 1:
            kind = mjcf.kind("jnt_type", first)
        if kind == "free" and root_joint == "fixed":
            kind = ""
        result.append("free" if body == floating else kind)
    return result


def _floating_body(mjcf: Compiled) -> int | None:
    """Return the body that gets a free joint; None if the file has a free joint.

    Raises:
        ModelError: Not exactly one body is fixed to the world.
    """
    m = mjcf.model
    if any(mjcf.kind("jnt_type", k) == "free" for k in range(m.njnt)):
        return None
    fixed = [
        k for k in range(1, m.nbody) if not m.body_parentid[k] and not m.body_jntnum[k]
    ]
    if len(fixed) != 1:
        names = ", ".join(mjcf.links[k] for k in fixed) or "none"
        raise ModelError(
            "root_joint 'floating': needs one body that is fixed to the world;"
            f" these are: {names}"
        )
    return fixed[0]


def initial_positions(mjcf: Compiled) -> Iterator[str]:
    """Yield the names of joints whose initial position is not neutral.

    Ball joints are not compared.
    """
    m = mjcf.model
    for joint in range(m.njnt):
        place = int(m.jnt_qposadr[joint])
        if mjcf.kind("jnt_type", joint) == "free":
            moved = np.abs(m.qpos0[place : place + 7] - [0, 0, 0, 1, 0, 0, 0]).max()
        elif mjcf.kind("jnt_type", joint) == "ball":
            continue
        else:
            moved = abs(m.qpos0[place])
        if moved > 0 or math.isnan(moved):
            yield mjcf.joints[joint]
