"""Bodies, joints and geoms of an MJCF as links and joints of a Description.

A body with several joints becomes as many links, all but the last without mass:
MuJoCo's joints of one body act in series, the first next to the parent. The position of
a hinge or slide equals MuJoCo's qpos; a joint with `ref` is therefore placed rotated or
shifted back by it. Sites are links without mass.

Geoms that cannot touch anything (contype and conaffinity 0) are visuals and left out.

MuJoCo tests two geoms if their bits match (contype of one and conaffinity of the other)
unless their bodies are welded together, or parent and child that both move, or the file
excludes them.
"""

from __future__ import annotations

import math
import os
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np

from dyn_core.errors import ModelError
from dyn_core.model.checks.findings import Findings
from dyn_core.model.description_builder import DescriptionBuilder, Inertial
from dyn_core.model.frames import rpy_of
from dyn_core.model.material import Material
from dyn_core.model.mjcf.compiled import Compiled
from dyn_core.model.mjcf.drives import Drives
from dyn_core.model.shapes import ANY, WORLD, PairRules
from dyn_core.sharing import once
from dyn_core.spatial import Transform, Vector
from dyn_core.spatial.conventions import quaternion_from_wxyz, rotation
from dyn_core.spatial.lie import quat_exp, quat_matrix, quat_product

Bits = tuple[int, int]  # contype, conaffinity


def read_pairs(
    mjcf: Compiled,
    shapes: Container[str],
    joined: Sequence[str],
    findings: Findings,
) -> PairRules:
    """Return the pairs of links that MuJoCo tests for contact, as rules of a Model.

    `shapes` are the links that have collision shapes, `joined` the result of
    how_joined. Pairs that a Model treats in the same way by default have no rule. If no
    two links of the robot may touch, and several of those with shapes move, one rule
    (ANY) denies all pairs of links; rules of a link and the world are kept. `findings`
    gets notes on <pair> elements, which have no counterpart, and on links of which only
    some geoms may touch another link.
    """
    for k in range(mjcf.model.npair):
        what = "no part of a Model; its friction and margin are not kept"
        findings.note("contact pair", mjcf.element("pair", k), what)
    bits = _bits(mjcf, shapes)
    tree = _Welds.of(mjcf, joined)
    excluded = _excluded(mjcf)
    allow: set[frozenset[str]] = set()
    deny: set[frozenset[str]] = set()
    met = False
    for a, b in combinations(sorted(bits), 2):
        if tree.weld[a] == tree.weld[b]:
            continue
        some, every = _matches(bits[a], bits[b])
        meet = some and not tree.filters(a, b) and (a, b) not in excluded
        met |= meet and a > 0
        only_half_spaces = a == 0 and mjcf.links[0] not in shapes
        if meet != (only_half_spaces or not tree.neighbours(a, b)):
            pair = frozenset((mjcf.links[a], mjcf.links[b]))
            (allow if meet else deny).add(pair)
        if meet and not every:
            what = "only some of its geoms meet those of another link; here all do"
            findings.note("link", mjcf.links[b], what)
    if not met and sum(tree.weld[body] > 0 for body in bits) > 1:
        deny = {pair for pair in deny if WORLD in pair} | {frozenset({ANY})}
    return PairRules(frozenset(allow), frozenset(deny))


@dataclass(frozen=True)
class _Welds:
    """Groups of bodies that are fixed to each other, and the tree of these groups.

    By body, `weld` is the topmost body of its group (0: the world), `above` that of
    the group that carries it (-1 for the world). `single` are topmost bodies joined to
    their parent by a single joint that is not free. `filter_parents`: whether MuJoCo
    ignores pairs of moving parents and children.
    """

    weld: Sequence[int]
    above: Sequence[int]
    single: frozenset[int]
    filter_parents: bool

    @classmethod
    def of(cls, mjcf: Compiled, joined: Sequence[str]) -> _Welds:
        """Return the groups of bodies that are fixed to each other.

        `joined` is by body: hinge, slide, ball, free or several; "" for a body that is
        fixed to its parent. Equality constraints do not count.
        """
        parents = mjcf.model.body_parentid.tolist()
        weld: list[int] = [0]
        for body in range(1, len(parents)):
            weld.append(body if joined[body] else weld[parents[body]])
        above = [weld[parents[top]] if top else -1 for top in weld]
        single = {
            k for k, how in enumerate(joined) if how not in ("", "free", "several")
        }
        flag = int(mjcf.mujoco.mjtDisableBit.mjDSBL_FILTERPARENT)
        kept = not mjcf.model.opt.disableflags & flag
        return cls(weld, above, frozenset(single), kept)

    def filters(self, a: int, b: int) -> bool:
        """Return whether MuJoCo ignores a pair of bodies as parent and child.

        It does if the groups of a and b are one carried by the other, neither group is
        fixed to the world, and the file does not disable this filter.
        """
        if not (self.filter_parents and self.weld[a] and self.weld[b]):
            return False
        return self.weld[a] == self.above[b] or self.weld[b] == self.above[a]

    def neighbours(self, a: int, b: int) -> bool:
        """Return whether a Model treats bodies as neighbours.

        Their groups are connected by a single joint that is not free; the world is a
        group, too. Their contacts are excluded by default.
        """
        if self.weld[a] == self.above[b]:
            return self.weld[b] in self.single
        return self.weld[b] == self.above[a] and self.weld[a] in self.single


@once
def _matches(a: frozenset[Bits], b: frozenset[Bits]) -> tuple[bool, bool]:
    """Return whether some, and whether all, pairs of geoms of two bodies may touch.

    `a` and `b` are the distinct (contype, conaffinity) of the geoms of each body.
    """
    results = [bool(x[0] & y[1] or y[0] & x[1]) for x, y in product(a, b)]
    return any(results), all(results)


def _bits(mjcf: Compiled, shapes: Container[str]) -> dict[int, frozenset[Bits]]:
    """Return the distinct (contype, conaffinity) of geoms, by index of the body.

    Geoms that cannot touch others do not count, nor do those of bodies whose link is
    not in `shapes`, but for the planes of the world (body 0).
    """
    m = mjcf.model
    bits: dict[int, set[Bits]] = {}
    for geom in range(m.ngeom):
        body = int(m.geom_bodyid[geom])
        floor = body == 0 and mjcf.kind("geom_type", geom) == "plane"
        if touching(mjcf, geom) and (mjcf.links[body] in shapes or floor):
            both = int(m.geom_contype[geom]), int(m.geom_conaffinity[geom])
            bits.setdefault(body, set()).add(both)
    return {body: frozenset(pairs) for body, pairs in bits.items()}


def _excluded(mjcf: Compiled) -> set[tuple[int, int]]:
    """Return the pairs of bodies in <exclude>, as (lower, higher) index."""
    pairs = set()
    for signature in mjcf.model.exclude_signature.tolist():
        a, b = signature >> 16, signature & 0xFFFF
        pairs.add((min(a, b), max(a, b)))
    return pairs


_NOT_KEPT = "it is left out"


def touching(mjcf: Compiled, geom: int) -> bool:
    """Return whether a geom can touch another one: contype or conaffinity is not 0."""
    return bool(mjcf.model.geom_contype[geom] or mjcf.model.geom_conaffinity[geom])


def add_shapes(mjcf: Compiled, builder: DescriptionBuilder, findings: Findings) -> None:
    """Add the collision shapes of all links to `builder`.

    Geoms that cannot touch others are skipped. A plane is left out with a note, other
    geoms that a Model cannot represent as doubtful findings.
    """
    for geom in range(mjcf.model.ngeom):
        if not touching(mjcf, geom):
            continue
        kind, X = mjcf.kind("geom_type", geom), _placement(mjcf, "geom", geom)
        name = mjcf.element("geom", geom)
        a, b, c = mjcf.model.geom_size[geom].tolist()
        sizes = {
            "sphere": (a,),
            "capsule": (a, 2 * b),
            "cylinder": (a, 2 * b),
            "box": (2 * a, 2 * b, 2 * c),
        }
        where, link = f"geom '{name}'", mjcf.links[mjcf.model.geom_bodyid[geom]]
        if kind in sizes:
            builder.shape(where, link, kind, sizes[kind], X)
        elif kind == "plane":
            findings.note("geom", name, _plane(mjcf, geom, X))
        elif kind == "mesh":
            mesh = _mesh(mjcf, geom, findings)
            if mesh is not None:
                file, scale, moved = mesh
                builder.shape(where, link, kind, scale, moved.inverse @ X, file)
        else:
            what = f"{kind} is no collision shape of a Model"
            findings.doubt("geom", name, what, _NOT_KEPT)


def _placement(mjcf: Compiled, owner: str, number: int) -> Transform:
    """Return the transform to a geom from its body's frame, or to a mesh's centre.

    The latter is from the frame of the mesh's file. `owner` is geom or mesh.
    """
    p, quaternion = mjcf.pose(owner, number)
    return Transform.of_pose(quat_matrix(Vector(quaternion)), Vector(p))


def _plane(mjcf: Compiled, geom: int, X: Transform) -> str:
    """Return the text of a finding about a plane geom; X leads from its body to it."""
    if mjcf.model.geom_bodyid[geom]:
        return "a plane on a body is no collision shape of a Model; it is left out"
    R, p = X.pose
    normal = tuple(round(float(R[k, 2]), 9) + 0.0 for k in range(3))
    point = tuple(float(x) for x in p)
    return (
        "a plane is part of the World, not of a robot; give it there:"
        f" HalfSpace(point={point}, normal={normal})"
    )


def _mesh(
    mjcf: Compiled, geom: int, findings: Findings
) -> tuple[str, tuple[float, ...], Transform] | None:
    """Return the mesh of a geom; None, with a finding, if it is not supported.

    It is the file, below the mesh folder if it is there, else below the MJCF's folder
    (of XML the current one); three scale factors; and the transform from the file's
    frame to the mesh's centre and principal axes, where MuJoCo puts its frame.
    Supported are .obj and .stl without refpos and refquat; the file may be missing.
    """
    m, number = mjcf.model, int(mjcf.model.geom_dataid[geom])
    file = _mesh_file(mjcf, number)
    name = mjcf.element("geom", geom)
    problem = ""
    if number in mjcf.turned_meshes:
        problem = "mesh with refpos or refquat is not read"
    elif file is None or file.suffix.lower() not in (".obj", ".stl"):
        kind = "that is in the MJCF itself" if file is None else f"of {file.name}"
        problem = f"mesh {kind} is not read"
    if problem or file is None:
        findings.doubt("geom", name, problem, _NOT_KEPT)
        return None
    folder = Path() if mjcf.path is None else mjcf.path.parent
    below = folder / mjcf.mesh_folder / file  # older versions leave meshdir out
    file = below if os.path.isfile(below) else folder / file
    scale = tuple(m.mesh_scale[number].tolist())
    return str(file), scale, _placement(mjcf, "mesh", number)


def _mesh_file(mjcf: Compiled, mesh: int) -> Path | None:
    """Return the path of a mesh's file as MuJoCo records it, not resolved.

    It is absolute, or relative to a folder that depends on MuJoCo's version. It is None
    if the vertices are in the MJCF itself.
    """
    start = int(mjcf.model.mesh_pathadr[mesh])
    if start < 0:
        return None
    paths: bytes = mjcf.model.paths
    return Path(paths[start : paths.index(b"\0", start)].decode())


def add_materials(
    mjcf: Compiled, builder: DescriptionBuilder, findings: Findings
) -> None:
    """Set builder.materials to the friction of links that have shapes, by name.

    If all have equal friction, it has one entry `default` instead. A link whose geoms
    differ gets the largest of each coefficient, with a note; geoms that can touch
    nothing do not count. The shapes must have been added before.
    """
    by_link: dict[str, list[Material]] = {}
    for geom in range(mjcf.model.ngeom):
        link = mjcf.links[mjcf.model.geom_bodyid[geom]]
        if link in builder.shapes and touching(mjcf, geom):
            by_link.setdefault(link, []).append(_material(mjcf, geom))
    materials = {}
    for name, several in by_link.items():
        materials[name] = Material(
            max(x.mu for x in several),
            max(x.torsion for x in several),
            max(x.rolling for x in several),
        )
        if len(set(several)) > 1:
            what = "its geoms differ in friction; the largest of each is taken"
            findings.note("link", name, what)
    if len(set(materials.values())) == 1:
        materials = {"default": next(iter(materials.values()))}
    builder.materials = materials


def _material(mjcf: Compiled, geom: int) -> Material:
    """Return the friction of a geom, given by its index, as a Material.

    Sliding friction needs condim 3, torsional friction 4, rolling friction 6; otherwise
    the coefficient is zero. One that is negative or not finite is zero, too.
    """
    slide, spin, roll = mjcf.model.geom_friction[geom].tolist()
    condim = int(mjcf.model.geom_condim[geom])
    mu, torsion, rolling = (
        x if condim >= least and 0.0 <= x < math.inf else 0.0
        for x, least in ((slide, 3), (spin, 4), (roll, 6))
    )
    return Material(mu, torsion, rolling)


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

    The first link is the world's; only sites with names become links. `kinds` is the
    result of how_joined, `places` are positions of joints that become fixed, by name
    [rad | m].
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
    """Return the inertia of each body; None for a body without mass and inertia.

    It is about the centre of mass, in the axes of the body's frame.
    """
    m = mjcf.model
    R = rotation(quaternion_from_wxyz(m.body_iquat))
    Ic = (R * m.body_inertia[:, None, :]) @ R.swapaxes(1, 2)
    six = Ic[:, [0, 0, 0, 1, 1, 2], [0, 1, 2, 1, 2, 2]].tolist()
    rows = zip(m.body_mass.tolist(), m.body_ipos.tolist(), six, strict=True)
    return [Inertial(*row) if row[0] or any(row[2]) else None for row in rows]


class _Joined:
    """Adds the joints between each body and its parent, with unique names.

    `kinds` is by body: hinge, slide, ball, free or several; "" for a fixed one.
    `places` has the positions [rad | m] of joints that become fixed joints.
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
        """Add a fixed joint, named CHILD_fixed or, if that is in use, with underscores.

        `pose` is the child's in the parent: position [m], quaternion (x, y, z, w).
        """
        name = self.builder.unused("joint", f"{child}_fixed")
        xyz, quaternion = pose
        rpy = rpy_of(quaternion, "", "")
        self.builder.joint(name, "fixed", parent, child, xyz=tuple(xyz), rpy=rpy)

    def add_chain(self, body: int) -> None:
        """Add the joints between a body and its parent, the one on the parent first.

        A fixed body gets one fixed joint, a free body one floating joint at the
        parent's origin, called LINK_joint if the file has no joint for it. Between
        several joints of a body, links without mass are added, called LINK.JOINT; the
        body's own link is not added here. A joint in `places` is added as a fixed one.
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
        """Add a hinge, slide or ball joint; a fixed joint if it is in self.places.

        A hinge or ball is at MuJoCo's anchor, a slide at the child's origin. A fixed
        joint is at the position in self.places, and keeps damping, friction and
        armature, but not limits. `pose` is as in add_fixed, at the initial position.
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
        """Return damping, friction (dry) and armature of a joint, by these keys.

        Damping and armature include the joint's actuators; only the first degree of
        freedom is read.
        """
        m, place = self.mjcf.model, int(self.mjcf.model.jnt_dofadr[joint])
        drives = self.drives
        return {
            "damping": float(m.dof_damping[place]) + drives.damping.get(joint, 0.0),
            "friction": float(m.dof_frictionloss[place]),
            "armature": float(m.dof_armature[place]) + drives.armature.get(joint, 0.0),
        }


def how_joined(mjcf: Compiled, root_joint: str | None) -> list[str]:
    """Return by body how it is joined to its parent; entry 0 is the world's, "".

    The entry is hinge, slide, ball, free, several (joints) or "" (fixed). A root_joint
    fixed fixes free joints; floating frees the only body that is fixed to the world,
    unless the file has a free joint.
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
    """Return the only body that is fixed to the world, which gets a free joint.

    None if the file has a free joint; else ModelError if it is not exactly one body.
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
    """Yield the names of joints whose initial position (pos, ref) is not neutral.

    Neutral is 0, and for a free joint the identity pose. NaN is not neutral. Ball
    joints are not compared.
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
