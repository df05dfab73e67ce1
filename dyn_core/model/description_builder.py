"""Builder of a Description: the rules that the readers of URDF, MJCF and sidecar share.

A reader translates its file into calls of the builder, in the order of the file: links,
joints, shapes, rules of followers, loops. Checks of the whole robot follow when a Model
is assembled (checks/description.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from dyn_core.errors import ModelError
from dyn_core.model.checks.findings import Findings
from dyn_core.model.checks.mimics import without_lost_rules
from dyn_core.model.description import (
    Description,
    Geometry,
    JointSpec,
    LinkSpec,
    Mimic,
)
from dyn_core.model.shapes import Box, Capsule, Cylinder, Mesh, Shape, Sphere
from dyn_core.spatial import RigidInertia, Symmetric, Transform, Vector
from dyn_core.validation import known_name

Triple = tuple[float, float, float]
_ROUND: dict[str, Callable[..., Shape]] = {
    "sphere": Sphere,
    "cylinder": Cylinder,
    "capsule": Capsule,
}


class Inertial(NamedTuple):
    """The inertia of a link as most files have it: about the centre of mass.

    Attributes:
        mass: Mass [kg].
        com: Centre of mass in the link's frame [m].
        moments: Ixx, Ixy, Ixz, Iyy, Iyz, Izz about it, along the link's axes [kg·m²].
    """

    mass: float
    com: Sequence[float]
    moments: Sequence[float]


class DescriptionBuilder:
    """A Description under construction.

    `findings` collects doubtful elements, with the action taken for each; None: each
    raises a ModelError. `shapes` are collision shapes by name of the link; loops,
    point_springs, materials and pairs are as in the Description.
    """

    def __init__(self, name: str, findings: Findings | None) -> None:
        self.name, self.findings = name, findings
        self._start(Description(name, (), ()))

    @classmethod
    def of(cls, description: Description) -> DescriptionBuilder:
        """Return a builder, without findings, with the content of a description."""
        builder = cls(description.name, None)
        builder._start(description)
        return builder

    def _start(self, description: Description) -> None:
        """Replace the builder's content by that of a description.

        `name` and `findings` stay; no name is reserved. `description()` then returns
        the given name and sources, and without findings the given warnings.
        """
        self._before = description
        self._links = [(x.name, x.geometry) for x in description.links]
        self._inertias: list[RigidInertia | Inertial | None] = [
            x.inertia for x in description.links
        ]
        self.shapes = {x.name: x.collisions for x in description.links}
        self._joints = list(description.joints)
        self._places = {joint.name: k for k, joint in enumerate(self._joints)}
        self._taken: dict[str, set[str]] = {"link": set(), "joint": set()}
        self.loops = list(description.loops)
        self.point_springs = list(description.point_springs)
        self.materials = dict(description.materials)
        self.pairs = description.pairs

    def reserve(self, kind: str, names: Iterable[str]) -> None:
        """Reserve names of links or joints, of which `unused` then returns none."""
        self._taken[kind].update(names)

    def unused(self, kind: str, name: str) -> str:
        """Return a name (of a link or joint) that is not reserved, and reserve it.

        Underscores are appended. Names of added links and joints are not reserved.
        """
        return unused_name(name, self._taken[kind])

    def link(
        self,
        name: str,
        inertial: Inertial | None = None,
        geometry: tuple[Geometry, ...] = (),
    ) -> None:
        """Add a link; it is checked when a Model is assembled.

        `inertial` None is zero; links with the same Inertial object share one
        RigidInertia. The geometry adds no collision shapes, see `shape`.
        """
        self._links.append((name, geometry))
        self._inertias.append(inertial)

    @property
    def link_names(self) -> list[str]:
        """Names of the links, in the order in which they were added."""
        return [name for name, _ in self._links]

    def shape(
        self,
        where: str,
        link: str,
        kind: str,
        size: Sequence[float],
        X: Transform,
        mesh: str | None = None,
    ) -> None:
        """Add a collision shape to a link, whose existence is not checked.

        An invalid shape is left out with a finding, or a ModelError. `kind` is sphere,
        box, cylinder, capsule or mesh; `size`: radius; three sides; radius and length
        (cylinder, capsule) [m]; three scale factors of a mesh. X is the transform from
        the link's frame to the shape's; `where` names the shape in messages.
        """
        try:
            shape = _shape(where, link, kind, size, X, mesh)
        except ModelError as error:
            if self.findings is None:
                raise
            self.findings.doubtful(error, "it is left out")
        else:
            self.shapes[link] = (*self.shapes.get(link, ()), shape)

    def joint(
        self,
        name: str,
        kind: str,
        parent: str,
        child: str,
        limits: tuple[float, float] | None = None,
        **values: Any,
    ) -> None:
        """Add a joint; except for its limits, it is checked when a Model is assembled.

        `kind` is fixed, or a key of joints.KINDS. Position limits [rad | m] in the
        wrong order, lower inf or upper -inf are left out, with a finding, or a
        ModelError. `values` are other attributes of JointSpec; None: the default.
        """
        low, high = (-math.inf, math.inf) if limits is None else limits
        if low > high or low == math.inf or high == -math.inf:
            what = f"limits need lower <= upper, got {low:g} and {high:g}"
            if self.findings is None:
                raise ModelError(f"joint '{name}': {what}", name)
            self.findings.doubt("joint", name, what, "taken as none")
            low, high = -math.inf, math.inf
        values = {key: x for key, x in values.items() if x is not None}
        self._places[name] = len(self._joints)
        self._joints.append(
            JointSpec(name, kind, parent, child, lower=low, upper=high, **values)
        )

    @property
    def joints(self) -> tuple[JointSpec, ...]:
        """The joints, in the order in which they were added."""
        return tuple(self._joints)

    def joint_of(self, name: str, where: str) -> JointSpec:
        """Return the joint called `name`, the last of several; `where`: for errors."""
        known_name(where, "joint", name, self._places)
        return self._joints[self._places[name]]

    def change(self, name: str, **values: Any) -> None:
        """Replace attributes of a joint of this builder: `values` of JointSpec."""
        k = self._places[name]
        self._joints[k] = replace(self._joints[k], **values)

    def follow(self, name: str, rule: Mimic, where: str) -> None:
        """Make a joint follow another one; refused if it does so already."""
        leader = self.joint_of(rule.joint, where)
        mimic = self.joint_of(name, where).mimic
        if mimic is not None:
            raise ModelError(
                f"{where}: joint '{name}' follows '{mimic.joint}' already and cannot"
                f" follow '{leader.name}' too; leave one out",
                name,
            )
        self.change(name, mimic=rule)

    def description(self) -> Description:
        """Return the Description.

        With findings, it gets the warnings of `findings`; rules of followers that lead
        nowhere, and the first rule of each circle, are left out with a finding.
        Without findings, the initial warnings and all rules stay; a Model with such a
        rule cannot be assembled.
        """
        joints, warnings = self.joints, self._before.warnings
        if self.findings is not None:
            joints = without_lost_rules(joints, self.findings)
            warnings = self.findings.warnings
        links = [
            LinkSpec(name, inertia, geometry, self.shapes.get(name, ()))
            for (name, geometry), inertia in zip(
                self._links, _about_frames(self._inertias), strict=True
            )
        ]
        return replace(
            self._before,
            links=tuple(links),
            joints=joints,
            warnings=warnings,
            loops=tuple(self.loops),
            point_springs=tuple(self.point_springs),
            materials=self.materials,
            pairs=self.pairs,
        )


def unused_name(name: str, taken: set[str]) -> str:
    """Return a name, with underscores until it is not in `taken`, and add it there."""
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def _about_frames(
    inertias: Sequence[RigidInertia | Inertial | None],
) -> list[RigidInertia]:
    """Return each link's inertia about the origin of its frame, I = Ic - m [c][c].

    None becomes a zero inertia. Entries that are the same Inertial object share one
    result. Numbers that are not finite are no error here.
    """
    distinct = {id(x): x for x in inertias if isinstance(x, Inertial)}
    rows = [(x.mass, *x.com, *x.moments) for x in distinct.values()]
    table = np.array(rows, float).reshape(-1, 10)
    m, c, six, h = table[:, 0], table[:, 1:4], table[:, 4:], np.zeros((len(table), 3))
    with np.errstate(all="ignore"):  # checks/inertias.py names what is not finite
        k = c.any(axis=1)
        moved = RigidInertia.of(m[k], Vector(c[k].T), six[k].T)
        h[k], six[k] = np.array(moved.h.entries).T, np.array(moved.I.entries).T
    numbers = zip(m.tolist(), h.tolist(), six.tolist(), strict=True)
    made = [RigidInertia(m, Vector(h), Symmetric(I)) for m, h, I in numbers]
    about = dict(zip(distinct, made, strict=True))
    zero = RigidInertia.zero
    return [
        x if isinstance(x, RigidInertia) else zero() if x is None else about[id(x)]
        for x in inertias
    ]


def _shape(
    where: str,
    link: str,
    kind: str,
    size: Sequence[float],
    X: Transform,
    mesh: str | None,
) -> Shape:
    """Return a shape; ModelError unless its numbers and its mesh are valid.

    The size is: radius; three sides; radius and length (cylinder, capsule) [m]; three
    scale factors of a mesh. X is from the link's frame to the shape's.
    """
    R, p = X.pose
    if not all(math.isfinite(x) for x in (*p, *(x for row in R.rows for x in row))):
        raise ModelError(f"{where}: its origin holds a number that is not finite", link)
    numbers = ", ".join(map(str, size))
    if kind == "mesh":
        if not mesh:
            raise ModelError(f"{where}: names no file; give filename", link)
        if not all(math.isfinite(x) and x for x in size):
            raise ModelError(
                f"{where}: scale {numbers}; finite factors other than 0 are valid", link
            )
        return Mesh(X, mesh, (size[0], size[1], size[2]))
    if not all(math.isfinite(x) and x >= 0.0 for x in size):
        raise ModelError(
            f"{where}: size {numbers}; finite lengths that are not negative are valid"
            " [m]",
            link,
        )
    if kind == "box":
        return Box(X, (size[0], size[1], size[2]))
    return _ROUND[kind](X, *size)
