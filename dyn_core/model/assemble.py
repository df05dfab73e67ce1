"""Description -> Model: numbering, merging of fixed links, couplings, checks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dyn_core.errors import ModelError
from dyn_core.model import check
from dyn_core.model.description import Description, JointSpec, origin
from dyn_core.model.joints import Driven, Floating, Joint, make_joint
from dyn_core.model.model import Model
from dyn_core.model.parts import Frame, Lead, gravity, sum_inertias
from dyn_core.spatial import Matrix, Transform, Vector

ROOT_JOINT = "root_joint"


@dataclass(frozen=True)
class Build:
    """What a Model is made from; `again` makes it anew with something changed.

    Attributes:
        description: Links and joints.
        root: Link the chain starts at, or None for the root of the tree.
        tip: Link the chain ends at, or None for the whole tree.
        root_joint: fixed or floating.
        lock: Joint positions at which joints are fixed.
        gravity: Gravity acceleration in the root frame, 3 [m/s²].
        strict: Whether implausible inertias are errors rather than warnings.
        loops: Constraints besides those of the description (model/loops.py).
        drives: Functions of time that move the places of joints (joints/driven.py).
        joints: Joints that stand for those of the description, by name.
        forces: Functions that give passive joint forces (model/passive.py).
    """

    description: Description
    root: str | None = None
    tip: str | None = None
    root_joint: str = "fixed"
    lock: Mapping[str, Any] = field(default_factory=dict)
    gravity: tuple[float, ...] = (0.0, 0.0, -9.81)
    strict: bool = True
    drives: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict)
    joints: Mapping[str, Joint] = field(default_factory=dict)
    forces: tuple[Callable[..., Any], ...] = ()
    loops: tuple[Any, ...] = ()

    def again(self, **changes: Any) -> Model:
        """Assemble with some of the arguments changed."""
        return assemble(replace(self, **changes))


def assemble(build: Build) -> Model:
    """Make the Model of a description, checked.

    Joints are numbered depth first, siblings in document order. Fixed and locked
    joints are merged exactly; their links stay as frames.
    """
    description = build.description
    root = check.tree(description)
    warnings = [*description.warnings, *check.inertias(description, build.strict)]
    check.named("with_joint", build.joints, description)
    check.mimics(description, build.joints)
    if build.root is not None or build.tip is not None:
        root, joints = _chain(description, build.root or root, build.tip)
    else:
        joints = description.joints
    walk = _Walk(description, joints, build)
    walk.start(root)
    model = walk.model(warnings)
    check.loops(model)
    return replace(model, inertia_scale=check.inertia_scales(model))


def _chain(
    description: Description, root: str, tip: str | None
) -> tuple[str, Sequence[JointSpec]]:
    """Keep the joints between root and tip, or the sub-tree below root."""
    names = [link.name for link in description.links]
    for link in (root, tip):
        if link is not None and link not in names:
            known = ", ".join(names)
            raise ModelError(f"no link is called '{link}'; known: {known}", link)
    if tip is None:
        return root, description.joints
    above = {joint.child: joint for joint in description.joints}
    chain, link = [], tip
    while link != root:
        if link not in above:
            raise ModelError(f"link '{tip}' does not hang below link '{root}'", tip)
        chain.append(above[link].name)
        link = above[link].parent
    return root, [joint for joint in description.joints if joint.name in chain]


class _Walk:
    """The walk over the tree: one growing list per attribute of the Model."""

    def __init__(
        self, description: Description, joints: Sequence[JointSpec], build: Build
    ) -> None:
        self.description, self.build = description, build
        self.below: dict[str, list[JointSpec]] = {}
        for joint in joints:
            self.below.setdefault(joint.parent, []).append(joint)
        self.joints = {joint.name: joint for joint in description.joints}
        self.links = {link.name: link for link in description.links}
        self.parent, self.X = [0], [Transform.identity()]
        self.joint: list[Joint] = [Floating()]
        self.specs = [JointSpec("base", "fixed", "", "")]
        self.frames: dict[str, Frame] = {}
        self.mounts: list[Transform] = [Transform.identity()]
        self.locked: set[str] = set()
        self.waiting: list[tuple[JointSpec, int, Transform]] = []

    def start(self, root: str) -> None:
        """Number everything that hangs below the root link."""
        kind = self.build.root_joint
        if kind not in ("fixed", "floating"):
            raise ModelError(f"root_joint '{kind}': valid are fixed, floating", root)
        if kind == "floating":
            spec = JointSpec(ROOT_JOINT, "floating", "", root)
            self.add(spec, 0, Transform.identity())
        else:
            self.place(root, 0, Transform.identity())
        while self.waiting:
            self.go_on(*self.waiting.pop())
        unknown = set(self.build.lock) - self.locked
        if unknown:
            known = ", ".join(s.name for s in self.specs[1:])
            names = ", ".join(sorted(unknown))
            raise ModelError(f"lock: no moving joint is called {names}; known: {known}")

    def place(self, link: str, body: int, X: Transform) -> None:
        """Fix a link to a body at X; the joints below it come next, the first first."""
        self.frames[link] = Frame(body, X, self.links[link].inertia)
        below = reversed(self.below.get(link, ()))
        self.waiting += [(spec, body, X) for spec in below]

    def go_on(self, spec: JointSpec, body: int, X: Transform) -> None:
        """Walk over a joint on a link that is fixed to a body at X."""
        position = self.fixed_at(spec)
        if position is not None:
            at = position @ origin(spec.xyz, spec.rpy) @ X
            self.place(spec.child, body, plug(spec).inverse @ at)
        else:
            self.add(spec, body, X)

    def fixed_at(self, spec: JointSpec) -> Transform | None:
        """Give the joint transform of a fixed or locked joint, None if it moves."""
        if spec.kind == "fixed" and spec.name not in self.build.joints:
            return Transform.identity()
        if spec.name in self.build.lock:
            self.locked.add(spec.name)
            value = self.build.lock[spec.name]
        else:
            value = self.led_by_lock(spec)
            if value is None:
                return None
        joint = self.made(spec)
        return joint.X(_lock_value(spec, joint, value))

    def made(self, spec: JointSpec) -> Joint:
        """Give the joint of a specification, or the one that was given in its place."""
        own = self.build.joints.get(spec.name)
        return make_joint(spec) if own is None else own

    def led_by_lock(self, spec: JointSpec) -> np.ndarray | None:
        """Give where a follower stands whose leader is locked, or None."""
        for leader, ratio, offset in self.rules(spec):
            if leader in self.build.lock:
                lead = np.ravel(np.asarray(self.build.lock[leader], float))
                return np.asarray(ratio @ Vector(lead.tolist()) + offset, float)
        return None

    def rules(self, spec: JointSpec) -> Iterator[tuple[str, Matrix, Vector]]:
        """Give the leaders of a follower, near to far, with ratio and offset."""
        rule = spec.mimic
        ratio: Matrix | None = None
        offset = Vector(())
        while rule is not None:
            if ratio is None:
                ratio, offset = rule.ratio, rule.shift
            else:
                offset = ratio @ rule.shift + offset
                ratio = ratio @ rule.ratio
            yield rule.joint, ratio, offset
            rule = self.joints[rule.joint].mimic

    def add(self, spec: JointSpec, parent: int, mount: Transform) -> None:
        """Give a moving joint its number, then place the link it carries."""
        X = origin(spec.xyz, spec.rpy) @ mount
        pose = self.build.drives.get(spec.name)
        if pose is not None:
            drive = JointSpec(f"{spec.name}.drive", "driven", spec.parent, spec.child)
            self.append(drive, Driven(pose), parent, mount, X)
            parent, mount = len(self.parent) - 1, Transform.identity()
            X = Transform.identity()
        self.append(spec, self.made(spec), parent, mount, X)
        self.place(spec.child, len(self.parent) - 1, plug(spec).inverse)

    def append(
        self, spec: JointSpec, joint: Joint, parent: int, mount: Transform, X: Transform
    ) -> None:
        """Give a body its number."""
        self.parent.append(parent)
        self.joint.append(joint)
        self.mounts.append(mount)
        self.X.append(X)
        self.specs.append(spec)

    def model(self, warnings: Sequence[str]) -> Model:
        """Make the Model, its inertia_scale still to come."""
        leader = self.leaders()
        q_slices, v_slices = self.slices(leader)
        specs = self.specs[1:]
        inertia = sum_inertias(self.frames, len(self.parent))
        own = [i for i in range(1, len(self.parent)) if leader[i].body == i]
        limits = [self.limits(i, leader) for i in own]
        columns = np.array([x for rows in limits for x in rows], float).reshape(-1, 4)

        def spread(get: Callable[[JointSpec], float]) -> tuple[Vector, ...]:
            joints = self.joint[1:]
            pairs = zip(specs, joints, strict=True)
            return (Vector(()), *[Vector([get(s)] * j.nv) for s, j in pairs])

        return Model(
            name=self.description.name,
            parent=tuple(self.parent),
            joint=tuple(self.joint),
            Xtree=tuple(self.X),
            I=inertia,
            armature=spread(lambda s: s.armature),
            damping=spread(lambda s: s.damping),
            friction=spread(lambda s: s.friction),
            stiffness=spread(lambda s: s.stiffness),
            rest=self.rests(),
            a_grav=gravity(self.build.gravity),
            names=tuple(s.name for s in self.specs),
            leader=leader,
            q_slices=q_slices,
            v_slices=v_slices,
            inertia_scale=(),
            frames=self.frames,
            lower=columns[:, 0],
            upper=columns[:, 1],
            velocity_limit=columns[:, 2],
            effort_limit=columns[:, 3],
            mounts=tuple(self.mounts),
            warnings=tuple(warnings),
            build=self.build,
            forces=self.build.forces,
        )

    def rests(self) -> tuple[Vector, ...]:
        """Give the coordinates at which each joint's spring is slack."""
        rows = []
        for spec, joint in zip(self.specs[1:], self.joint[1:], strict=True):
            one = (spec.rest,) * joint.nv if isinstance(spec.rest, float) else spec.rest
            rows.append(Vector(one))
        return (Vector(()), *rows)

    def leaders(self) -> tuple[Lead, ...]:
        """Follow each mimic to the joint it finally depends on."""
        number = {spec.name: i for i, spec in enumerate(self.specs)}
        found = [Lead(0)]
        for i, spec in enumerate(self.specs[1:], 1):
            lead = Lead(i)
            for leader, ratio, offset in self.rules(spec):
                if leader not in number:
                    raise ModelError(
                        f"joint '{spec.name}' mimics '{leader}', which is not in"
                        " this sub-chain or is fixed; lock the follower too",
                        spec.name,
                    )
                lead = Lead(number[leader], ratio, offset)
            found.append(lead)
        return tuple(found)

    def slices(
        self, leader: Sequence[Lead]
    ) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
        """Lay out the independent coordinates in the order of the bodies."""
        q_at = v_at = 0
        q, v = [slice(0, 0)], [slice(0, 0)]
        for i in range(1, len(self.parent)):
            nq, nv = (
                (self.joint[i].nq, self.joint[i].nv) if leader[i].body == i else (0, 0)
            )
            q.append(slice(q_at, q_at + nq))
            v.append(slice(v_at, v_at + nv))
            q_at, v_at = q_at + nq, v_at + nv
        leads = [entry.body for entry in leader]
        return tuple(q[k] for k in leads), tuple(v[k] for k in leads)

    def limits(
        self, i: int, leader: Sequence[Lead]
    ) -> list[tuple[float, float, float, float]]:
        """Limits of a joint, narrowed by those of its followers."""
        spec, n = self.specs[i], self.joint[i].nv
        if n != 1:
            return [(-math.inf, math.inf, spec.velocity, spec.effort)] * n
        low, high, fast = spec.lower, spec.upper, spec.velocity
        for k, (lead, ratio, offset) in enumerate(leader):
            if lead == i != k and ratio is not None and len(offset) == 1:
                factor, f = ratio[0, 0], self.specs[k]
                if factor:
                    ends = [(x - offset[0]) / factor for x in (f.lower, f.upper)]
                    low, high = max(low, min(ends)), min(high, max(ends))
                    fast = min(fast, f.velocity / abs(factor))
        return [(low, high, fast, spec.effort)]


def plug(spec: JointSpec) -> Transform:
    """Transform from a child link's frame to where the joint holds it.

    Source: TAZZ-2.1 (a joint is a socket in the parent and a plug in the child).
    """
    if not any((*spec.plug_xyz, *spec.plug_rpy)):
        return Transform.identity()
    return origin(spec.plug_xyz, spec.plug_rpy)


def _lock_value(spec: JointSpec, joint: Joint, value: Any) -> Vector:
    """Check a locked joint's position."""
    q = np.ravel(np.asarray(value, float))
    if q.shape != (joint.nq,) or not np.isfinite(q).all():
        wanted = f"{joint.nq} finite numbers"
        raise ModelError(f"lock: joint '{spec.name}' needs {wanted}, got {value!r}")
    return joint.normalize(Vector(float(x) for x in q))
