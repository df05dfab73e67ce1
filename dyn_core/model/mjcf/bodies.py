"""Bodies and joints of an MJCF as links and joints of a Description.

A body with several joints becomes as many links, all but the last without mass:
MuJoCo's joints of one body act in series, the first next to the parent. The position of
a hinge or slide equals MuJoCo's qpos; a joint with `ref` is therefore placed rotated or
shifted back by it. Sites are links without mass.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from dyn_core.errors import ModelError
from dyn_core.model.description_builder import DescriptionBuilder, Inertial
from dyn_core.model.frames import rpy_of
from dyn_core.model.mjcf.compiled import Compiled
from dyn_core.model.mjcf.drives import Drives
from dyn_core.spatial import Vector
from dyn_core.spatial.conventions import quaternion_from_wxyz, rotation
from dyn_core.spatial.lie import quat_exp, quat_matrix, quat_product

_HERE = ([0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0])
ROOT_JOINTS = ("fixed", "floating")


def add_links(
    mjcf: Compiled,
    builder: DescriptionBuilder,
    drives: Drives,
    kinds: Sequence[str],
    places: Mapping[str, float],
) -> None:
    """Add the links and joints of an MJCF, in the order of the file, sites last.

    Args:
        mjcf: The compiled file.
        builder: Gets them.
        drives: Quantities that actuators add to joints.
        kinds: Kind of the joint of each body, by how_joined.
        places: Positions at which joints are fixed, by name [rad | m].
    """
    builder.reserve("link", (*mjcf.links, *mjcf.sites))
    builder.reserve("joint", mjcf.joints)
    inertials = _inertials(mjcf)
    builder.link(mjcf.links[0], inertials[0])
    joined = _Joined(mjcf, builder, drives, kinds, places)
    for body in range(1, mjcf.model.nbody):
        joined.add_chain(body)
        builder.link(mjcf.links[body], inertials[body])
    for site, name in enumerate(mjcf.sites):
        if name:
            parent = mjcf.links[int(mjcf.model.site_bodyid[site])]
            joined.add_fixed(parent, name, mjcf.pose("site", site))
            builder.link(name)


def _inertials(mjcf: Compiled) -> list[Inertial | None]:
    """Return the inertia of each body; None if it has none."""
    m = mjcf.model
    R = rotation(quaternion_from_wxyz(m.body_iquat))
    Ic = (R * m.body_inertia[:, None, :]) @ R.swapaxes(1, 2)
    six = Ic[:, [0, 0, 0, 1, 1, 2], [0, 1, 2, 1, 2, 2]].tolist()
    rows = zip(m.body_mass.tolist(), m.body_ipos.tolist(), six, strict=True)
    return [Inertial(*row) if row[0] or any(row[2]) else None for row in rows]


class _Joined:
    """Adds the joints between each body and its parent, with unique names.

    Args are as in add_links.
    """

    def __init__(
        self,
        mjcf: Compiled,
        builder: DescriptionBuilder,
        drives: Drives,
        kinds: Sequence[str],
        places: Mapping[str, float],
    ) -> None:
        self.mjcf, self.builder, self.drives = mjcf, builder, drives
        self.kinds, self.places = kinds, places

    def add_fixed(self, parent: str, child: str, pose: tuple) -> None:
        """Add a fixed joint at `pose` (position, quaternion), named by the child."""
        name = self.builder.unused("joint", f"{child}_fixed")
        xyz, quaternion = pose
        rpy = rpy_of(quaternion, "", "")
        self.builder.joint(name, "fixed", parent, child, xyz=tuple(xyz), rpy=rpy)

    def add_chain(self, body: int) -> None:
        """Add the joints between a body (index) and its parent, parent's first.

        A fixed body has one fixed joint, a free body one floating joint. Between the
        joints of a body are links without mass.
        """
        m = self.mjcf.model
        parent = self.mjcf.links[int(m.body_parentid[body])]
        child, pose = self.mjcf.links[body], self.mjcf.pose("body", body)
        first, count = int(m.body_jntadr[body]), int(m.body_jntnum[body])
        if not self.kinds[body]:
            self.add_fixed(parent, child, pose)
            return
        if self.kinds[body] == "free":
            if count:
                name, forces = self.mjcf.joints[first], self._forces(first)
            else:
                name, forces = self.builder.unused("joint", f"{child}_joint"), {}
            self.builder.joint(name, "floating", parent, child, **forces)
            return
        for joint in range(first, first + count):
            below = child
            if joint < first + count - 1:
                name = f"{child}.{self.mjcf.joints[joint]}"
                below = self.builder.unused("link", name)
                self.builder.link(below)
            self._add_moving(joint, parent, below, pose)
            parent, pose = below, _HERE

    def _add_moving(self, joint: int, parent: str, child: str, pose: tuple) -> None:
        """Add a hinge, slide or ball joint; a fixed one if its position is fixed.

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
        shift = self.places.get(self.mjcf.joints[joint], 0.0) - ref
        if kind == "slide":
            anchor = Vector(axis) * shift
        xyz = start + quat_matrix(turn) @ anchor
        if kind == "slide":
            anchor = Vector.zeros(3)
        if kind == "hinge":
            turn = quat_product(turn, quat_exp(Vector(axis) * shift))
        family, values = "spherical", dict[str, Any]()
        if kind != "ball":
            limited = bool(m.jnt_limited[joint])
            family = "prismatic" if kind == "slide" else "revolute"
            if not limited and kind == "hinge":
                family = "continuous"
            values = {
                "limits": tuple(m.jnt_range[joint].tolist()) if limited else None,
                "axis": tuple(axis),
                "effort": self.drives.effort.get(joint),
                "stiffness": float(m.jnt_stiffness[joint]),
                "rest": rest,
            }
        if self.mjcf.joints[joint] in self.places:
            family, values = "fixed", {}
        self.builder.joint(
            self.mjcf.joints[joint],
            family,
            parent,
            child,
            xyz=tuple(xyz),
            rpy=rpy_of(tuple(turn), "", ""),
            plug_xyz=tuple(anchor),
            passive=self.drives.driven is not None and joint not in self.drives.driven,
            **values,
            **self._forces(joint),
        )

    def _forces(self, joint: int) -> dict[str, Any]:
        """Return damping, dry friction and armature of a joint, with its actuators'."""
        m, place = self.mjcf.model, int(self.mjcf.model.jnt_dofadr[joint])
        drives = self.drives
        return {
            "damping": float(m.dof_damping[place]) + drives.damping.get(joint, 0.0),
            "friction": float(m.dof_frictionloss[place]),
            "armature": float(m.dof_armature[place]) + drives.armature.get(joint, 0.0),
        }


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
