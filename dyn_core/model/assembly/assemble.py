"""Assembly of a Tree from a Build: numbering, merged links, couplings, checks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from dyn_core.errors import ModelError, unknown_name
from dyn_core.model.assembly.build import Build
from dyn_core.model.assembly.tree import Tree
from dyn_core.model.checks.description import check_joint_names, check_tree
from dyn_core.model.checks.findings import Findings
from dyn_core.model.checks.follower_limits import bounded_range
from dyn_core.model.checks.inertias import (
    check_inertia_along,
    check_inertias,
    with_inertia_scales,
)
from dyn_core.model.checks.mimics import check_mimics
from dyn_core.model.checks.names import with_mended_names
from dyn_core.model.checks.robots import (
    DEEP,
    HINGES,
    TURNED,
    excess,
    odd_gravity,
    turns,
)
from dyn_core.model.checks.tree import check_loops, check_point_springs
from dyn_core.model.coordinates.order import coordinate_slices
from dyn_core.model.description import Description, JointSpec, Mimic
from dyn_core.model.description_builder import unused_name
from dyn_core.model.frames import (
    Frame,
    Lead,
    gravity,
    on_links,
    origin,
    sum_inertias,
)
from dyn_core.model.joints import Driven, Floating, Joint, make_joint
from dyn_core.model.point_springs import spring_forces
from dyn_core.spatial import Matrix, Transform, Vector

ROOT_JOINT = "root_joint"
USUAL_GRAVITY = (0.0, 0.0, -9.81)  # in the root frame [m/s²]


def assemble_tree(build: Build) -> Tree:
    """Return the checked Tree of a Build, with its warnings; none is issued.

    Joints are numbered depth first, siblings in document order. Fixed and locked joints
    are merged exactly; their links remain as frames. Invisible characters of names
    become underscores.
    """
    build = with_mended_names(build)
    description = build.description
    findings = Findings(build.strict, description.warnings)
    root, made = check_tree(description)
    check_inertias(description, findings)
    check_joint_names("with_joint", build.joints, description)
    check_mimics(description, build.joints)
    joints: Sequence[JointSpec] = description.joints
    if build.root is not None or build.tip is not None:
        root, joints = _chain(description, build.root or root, build.tip)
        _note_gravity(build, root, findings)
    if build.root is None:
        if doubt := odd_gravity(build.gravity):
            findings.note("", "", doubt)
    walk = _Walk(description, joints, made, build, findings)
    walk.start(root)
    tree = with_inertia_scales(walk.tree())
    check_loops(tree)
    check_point_springs(tree)
    check_inertia_along(tree, findings)
    return replace(tree, warnings=findings.warnings)


def _chain(
    description: Description, root: str, tip: str | None
) -> tuple[str, Sequence[JointSpec]]:
    """Return the root link and the joints from root to tip, in the order of the file.

    Without tip these are all joints of the description.
    """
    names = [link.name for link in description.links]
    for link in (root, tip):
        if link is not None and not (isinstance(link, str) and link in names):
            raise ModelError(unknown_name("link", link, names), link)
    if tip is None:
        return root, description.joints
    above = {joint.child: joint for joint in description.joints}
    chain, link = set(), tip
    while link != root:
        if link not in above:
            raise ModelError(f"link '{tip}' does not hang below link '{root}'", tip)
        chain.add(above[link].name)
        link = above[link].parent
    return root, [joint for joint in description.joints if joint.name in chain]


def _note_gravity(build: Build, root: str, findings: Findings) -> None:
    """Add a warning if a fixed root is mounted turned, and gravity is the usual one.

    Gravity is in the axes of the root. Any other gravity than (0, 0, -9.81) is taken as
    meant so. Moving joints above the root count at zero.
    """
    if build.root_joint != "fixed" or tuple(build.gravity) != USUAL_GRAVITY:
        return
    above = {joint.child: joint for joint in build.description.joints}
    path, link = list[JointSpec](), root
    while link in above:
        path.append(above[link])
        link = above[link].parent
    g = Vector(USUAL_GRAVITY)
    for spec in reversed(path):
        g = plug(spec).inverse.E @ (origin(spec.xyz, spec.rpy).E @ g)
    if max(abs(x - y) for x, y in zip(g, USUAL_GRAVITY, strict=True)) > 1e-6:
        meant = ", ".join(f"{x + 0.0:.6g}" for x in np.round(list(map(float, g)), 6))
        findings.note(
            "",
            "",
            f"gravity is (0, 0, -9.81) in the axes of the root '{root}', which the file"
            f" mounts turned in '{link}': if it is so there, set `gravity`, which would"
            f" be ({meant})",
        )


class _Walk:
    """Depth-first numbering of the tree: `start` once, then `tree`.

    Lists are by body, with the base as entry 0. `waiting` is a stack of arguments of
    `pass_joint`; `locked` are the names in build.lock that occurred so far.
    """

    def __init__(
        self,
        description: Description,
        joints: Sequence[JointSpec],
        made: Mapping[str, Joint],
        build: Build,
        findings: Findings,
    ) -> None:
        self.description, self.build, self.findings = description, build, findings
        self.below: dict[str, list[JointSpec]] = {}
        for joint in joints:
            self.below.setdefault(joint.parent, []).append(joint)
        self.joints = {joint.name: joint for joint in description.joints}
        self.links = {link.name: link for link in description.links}
        self.parent, self.X = [0], [Transform.identity()]
        self.joint: list[Joint] = [Floating()]
        self.specs = [JointSpec("base", "fixed", "", "")]
        self.made, self.placed = made, _placed(joints)
        self.frames: dict[str, Frame] = {}
        self.joint_mounts: list[Transform] = [Transform.identity()]
        self.locked: set[str] = set()
        self.waiting: list[tuple[JointSpec, int, Transform]] = []

    def start(self, root: str) -> None:
        """Number the bodies of the tree, and set `frames` of all links.

        A floating root link is body 1, a fixed one belongs to the base (0). Links
        behind fixed or locked joints belong to the body before the joint.
        """
        kind = self.build.root_joint
        if not isinstance(kind, str) or kind not in ("fixed", "floating"):
            raise ModelError(f"root_joint '{kind}': valid are fixed, floating", root)
        if kind == "floating":
            spec = JointSpec(self.root_joint_name(), "floating", "", root)
            self.add(spec, 0, Transform.identity())
        else:
            self.place(root, 0, Transform.identity())
        while self.waiting:
            self.pass_joint(*self.waiting.pop())
        unknown = sorted(map(str, set(self.build.lock) - self.locked))
        if unknown:
            known = [spec.name for spec in self.specs[1:]]
            base = known.pop(0) if kind == "floating" else None
            message = unknown_name("moving joint", unknown[0], known)
            if unknown[0] == base:
                message = (
                    f"'{base}' is the joint of the floating base; valid:"
                    f" {', '.join(known) or 'none'}; root_joint='fixed' fixes the base"
                )
            raise ModelError(f"lock: {message}", unknown[0])

    def root_joint_name(self) -> str:
        """Return ROOT_JOINT, or with a warning another name if a joint is called so."""
        name = unused_name(ROOT_JOINT, {*self.joints})
        if name != ROOT_JOINT:
            what = f"is in the file; the joint of the floating root is called '{name}'"
            self.findings.note("joint", ROOT_JOINT, what)
        return name

    def place(self, link: str, body: int, X: Transform) -> None:
        """Fix a link to a body, X from it, and push the joints below on `waiting`."""
        self.frames[link] = Frame(body, X, self.links[link].inertia)
        # `waiting` is a stack: reversed, the first joint of the file is numbered first.
        below = reversed(self.below.get(link, ()))
        self.waiting += [(spec, body, X) for spec in below]

    def pass_joint(self, spec: JointSpec, body: int, X: Transform) -> None:
        """Merge a fixed or locked joint, or add a moving one with its body, as `add`.

        `body` carries the joint's parent link, X is from this body to the link. The
        child link is placed with the joint's plug at the frame after the joint.
        """
        XJ = self.fixed_transform(spec)
        if XJ is not None:
            if XJ is Transform.identity():
                X_plug = self.placement(spec, X)
            else:
                X_plug = XJ @ origin(spec.xyz, spec.rpy) @ X
            self.place(spec.child, body, plug(spec).inverse @ X_plug)
        else:
            self.add(spec, body, X)

    def fixed_transform(self, spec: JointSpec) -> Transform | None:
        """Return the transform across a fixed or locked joint; None if the joint moves.

        A follower of a locked leader is locked, too; a fixed joint that is replaced by
        the user's joint moves. A name in build.lock is added to `locked`.
        """
        if spec.kind == "fixed" and spec.name not in self.build.joints:
            return Transform.identity()
        ruled = self.position_by_lock(spec)
        value: ArrayLike | None = self.build.lock.get(spec.name, ruled)
        if value is None and spec.name not in self.build.lock:
            return None
        joint = self.joint_of(spec)
        position = _lock_value(spec, joint, value)
        if spec.name in self.build.lock:
            self.locked.add(spec.name)
            _check_rule(spec, position, ruled)
            self.note_beyond_limits(spec, joint, position)
        return joint.X(position)

    def note_beyond_limits(self, spec: JointSpec, joint: Joint, q: Vector) -> None:
        """Add a warning if a lock at q is beyond its limits by over 0.01 [rad | m].

        An angle above 4 pi that no limit bounds is a warning, too. Joints of several
        coordinates are not checked.
        """
        if joint.nv != 1:
            return
        x = float(q[0])
        beyond = max(spec.lower - x, x - spec.upper)
        if beyond > DEEP:
            slides = joint.kind == "prismatic"
            sentence = excess("lock", "the lock", spec.name, x, beyond, slides)
            self.findings.note("", "", sentence)
        free = math.isinf(spec.upper if x > 0 else spec.lower)
        if free and joint.kind in HINGES and abs(x) > TURNED:
            self.findings.note("", "", turns("lock", "the lock", spec.name, x))

    def joint_of(self, spec: JointSpec) -> Joint:
        """Return the joint of build.joints, else the one in `made`, else a new one."""
        replacement = self.build.joints.get(spec.name)
        if replacement is not None:
            return replacement
        return self.made.get(spec.name) or make_joint(spec)

    def placement(self, spec: JointSpec, mount: Transform) -> Transform:
        """Return the transform from a body to the frame before a joint.

        `mount` is from the body to the joint's parent link.
        """
        if mount is Transform.identity() and spec.name in self.placed:
            return self.placed[spec.name]
        return origin(spec.xyz, spec.rpy) @ mount

    def position_by_lock(self, spec: JointSpec) -> np.ndarray | None:
        """Return a follower's position (nq,) by its nearest locked leader, or None."""
        for leader, ratio, offset in self.rules(spec) if self.build.lock else ():
            if leader in self.build.lock:
                spec = self.joints[leader]
                lead = _lock_value(spec, self.joint_of(spec), self.build.lock[leader])
                return np.asarray(ratio @ lead + offset, float)
        return None

    def rules(self, spec: JointSpec) -> Iterator[tuple[str, Matrix, Vector]]:
        """Yield name, ratio and offset of each leader of a joint, nearest first.

        q = ratio q_leader + offset holds for the whole chain of rules up to it.
        """
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
        """Add the body of a moving joint, then place the link it carries.

        `parent` carries the joint's parent link, `mount` is from this body to the link.
        A driven joint gets an additional body without mass in between.
        """
        X = self.placement(spec, mount)
        pose = self.build.drives.get(spec.name)
        if pose is not None:
            drive = JointSpec(f"{spec.name}.drive", "driven", spec.parent, spec.child)
            self.append(drive, Driven(pose), parent, mount, X)
            parent, mount = len(self.parent) - 1, Transform.identity()
            X = Transform.identity()
        self.append(spec, self.joint_of(spec), parent, mount, X)
        self.place(spec.child, len(self.parent) - 1, plug(spec).inverse)

    def append(
        self, spec: JointSpec, joint: Joint, parent: int, mount: Transform, X: Transform
    ) -> None:
        """Append a body to all lists.

        From its parent, `mount` leads to the link the joint is on, X to the frame
        before the joint.
        """
        self.parent.append(parent)
        self.joint.append(joint)
        self.joint_mounts.append(mount)
        self.X.append(X)
        self.specs.append(spec)

    def tree(self) -> Tree:
        """Return the Tree; inertia_scale, without_inertia and warnings are empty.

        `start` must have run. Position limits of followers that do not fit become
        warnings in `findings`.
        """
        leader = self.leaders()
        specs = self.specs[1:]
        bodies = [i for i in range(1, len(self.parent)) if leader[i].body == i]
        q_slices, v_slices = coordinate_slices(self.joint, leader, bodies)
        followers: dict[int, list[int]] = {}
        for k, lead in enumerate(leader):
            if lead.body != k:
                followers.setdefault(lead.body, []).append(k)
        limits = [self.limits(i, leader, followers.get(i, ())) for i in bodies]
        columns = np.array([x for rows in limits for x in rows], float).reshape(-1, 4)
        columns.setflags(write=False)  # model.lower[0] = 0 would change half of it

        def spread(get: Callable[[JointSpec], float]) -> tuple[Vector, ...]:
            """Return `get` by body, repeated for each coordinate; entry 0 is empty."""
            joints = self.joint[1:]
            pairs = zip(specs, joints, strict=True)
            return (Vector(()), *[Vector([get(s)] * j.nv) for s, j in pairs])

        return Tree(
            name=self.description.name,
            parent=tuple(self.parent),
            joint=tuple(self.joint),
            Xtree=tuple(self.X),
            I=sum_inertias(self.frames, len(self.parent)),
            armature=spread(lambda s: s.armature),
            damping=spread(lambda s: s.damping),
            friction=spread(lambda s: s.friction),
            friction_asymmetry=spread(lambda s: s.friction_asymmetry),
            friction_speed=spread(lambda s: s.friction_speed),
            stribeck=spread(lambda s: s.stribeck),
            stribeck_speed=spread(lambda s: s.stribeck_speed),
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
            joint_mounts=tuple(self.joint_mounts),
            warnings=(),
            build=self.build,
            forces=(*spring_forces(self.description), *self.build.forces),
        )

    def rests(self) -> tuple[Vector, ...]:
        """Return by body the coordinates at which the joint's spring is slack.

        Followers are included; entry 0 is empty.
        """
        rows = []
        for spec, joint in zip(self.specs[1:], self.joint[1:], strict=True):
            one = (spec.rest,) * joint.nv if isinstance(spec.rest, float) else spec.rest
            rows.append(Vector(one))
        return (Vector(()), *rows)

    def leaders(self) -> tuple[Lead, ...]:
        """Return by body the Lead of its joint: independent body and total rule.

        An independent joint leads itself, with ratio None; entry 0 is the base's.
        ModelError for a leader outside the sub-chain, or fixed or locked.
        """
        number = {spec.name: i for i, spec in enumerate(self.specs)}
        leads: dict[str, Lead] = {}
        for spec in self.specs[1:]:
            last, behind = spec, list[tuple[str, Mimic]]()
            while last.name not in leads and last.mimic is not None:
                leader = last.mimic.joint
                if leader not in number:
                    raise ModelError(
                        f"joint '{spec.name}' mimics '{leader}', which is not in"
                        " this sub-chain or is fixed; lock the follower too",
                        spec.name,
                    )
                behind.append((last.name, last.mimic))
                last = self.joints[leader]
            leads.setdefault(last.name, Lead(number[last.name]))
            for name, rule in reversed(behind):
                leads[name] = _lead_behind(rule, leads[rule.joint])
        return (Lead(0), *(leads[spec.name] for spec in self.specs[1:]))

    def limits(
        self, i: int, leader: Sequence[Lead], numbers: Sequence[int]
    ) -> list[tuple[float, float, float, float]]:
        """Return (lower, upper, velocity, effort) of each coordinate of joint i.

        Limits of its followers (`numbers`) bound a joint of one coordinate; position
        limits that leave no range are ignored with a warning. A joint of several
        coordinates has no position limits and ignores followers.
        """
        spec, n = self.specs[i], self.joint[i].nv
        if n != 1:
            return [(-math.inf, math.inf, spec.velocity, spec.effort)] * n
        velocity, followers = spec.velocity, []
        for k in numbers:
            _, ratio, offset = leader[k]
            if ratio is not None and len(offset) == 1:
                factor, f = ratio[0, 0], self.specs[k]
                if factor:
                    ends = [(x - offset[0]) / factor for x in (f.lower, f.upper)]
                    followers.append((f, (min(ends), max(ends))))
                    velocity = min(velocity, f.velocity / abs(factor))
        (low, high), warnings = bounded_range(spec, followers)
        for warning in warnings:
            self.findings.note("", "", warning)
        return [(low, high, velocity, spec.effort)]


def _placed(joints: Sequence[JointSpec]) -> dict[str, Transform]:
    """Return by joint name the transform from the parent link to the joint's socket.

    Joints whose placement has other numbers than floats, such as symbols, are left out.
    """
    numbers = {joint.name: (*joint.xyz, *joint.rpy) for joint in joints}
    plain = {k: x for k, x in numbers.items() if all(type(y) is float for y in x)}
    table = np.array([*plain.values()], float).reshape(-1, 6)
    return dict(zip(plain, on_links(table[:, :3], table[:, 3:]), strict=True))


def _lead_behind(rule: Mimic, lead: Lead) -> Lead:
    """Return the Lead of a follower, by its rule and the Lead of the joint it names."""
    if lead.ratio is None:
        return Lead(lead.body, rule.ratio, rule.shift)
    offset = rule.ratio @ lead.offset + rule.shift
    return Lead(lead.body, rule.ratio @ lead.ratio, offset)


def plug(spec: JointSpec) -> Transform:
    """Return the transform from a child link's frame to the joint's plug in it.

    It is the identity where the plug is the link's frame, as in a URDF.

    Source: TAZZ-2.1 (a joint is a socket in the parent and a plug in the child).
    """
    if not any((*spec.plug_xyz, *spec.plug_rpy)):
        return Transform.identity()
    return origin(spec.plug_xyz, spec.plug_rpy)


def _lock_value(spec: JointSpec, joint: Joint, value: ArrayLike | None) -> Vector:
    """Return a user's lock position [rad | m], nq, with quaternions normalised.

    `value` has nq finite numbers in any shape, else ModelError.
    """
    try:
        q = np.ravel(np.asarray(value, float))
    except (TypeError, ValueError, OverflowError):
        q = np.empty(0)
    if q.shape != (joint.nq,) or not np.isfinite(q).all():
        wanted = f"{joint.nq} finite number{'s' * (joint.nq != 1)}"
        raise ModelError(
            f"lock: joint '{spec.name}' needs {wanted}, got {value!r}", spec.name
        )
    if not joint.has_lengths(q):
        raise ModelError(
            f"lock: joint '{spec.name}': its quaternion is zero or beyond 1e154 and has"
            f" no direction, got {value!r}; valid: any other",
            spec.name,
        )
    return joint.normalize(Vector(float(x) for x in q))


def _check_rule(spec: JointSpec, position: Vector, ruled: np.ndarray | None) -> None:
    """Check that the locked position of a follower agrees with its locked leader.

    `ruled` is the position by its rule, None if its leader is not locked.
    """
    if ruled is None or np.allclose(np.array(list(position)), ruled, 1e-6, 1e-6):
        return
    got, wanted = ([round(float(x), 9) for x in values] for values in (position, ruled))
    raise ModelError(
        f"lock: joint '{spec.name}' is given {got}, but its leader is locked, too, and"
        f" puts it to {wanted}; leave it out or give that",
        spec.name,
    )
