"""A robot as a planar chain: its links, or the reason why it is not one.

A body between two parallel axes is a link. Loads of the bearings have no effect on
motion in the plane: offsets along the axes, products of inertia, inertias about other
axes. They matter only for a floating root, which has no bearing.

A link whose centre of mass is off the line between its joints becomes two, with a joint
at the centre of mass whose angle is constant: exact, see PlanarBody.segments.

Source: WAW-15.2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn

import numpy as np

from dyn_core.errors import ModelError
from dyn_core.model import Model
from dyn_core.spatial import Motion, Transform, Vector

NEAR = 1e-9  # tolerance of zero: lengths [m], sines of angles, relative numbers


class Segment(NamedTuple):
    """A link of the chain.

    Attributes:
        name: Of the joint at its start.
        body: Index of the body that contains it.
        turns: Whether its start is a joint of the robot; else a fixed bend.
        vector: From start to end in the neutral position, in the plane, (2,) [m].
        mass, com, inertia: Mass [kg], centre of mass from the start [m], inertia about
            it [kg·m²].
        tip: Point mass at its end [kg].
    """

    name: str
    body: int
    turns: bool
    vector: np.ndarray
    mass: float = 0.0
    com: float = 0.0
    inertia: float = 0.0
    tip: float = 0.0

    @property
    def angle(self) -> float:
        """Angle of the vector from the plane's x axis, in [-pi, pi] [rad]."""
        return math.atan2(self.vector[1], self.vector[0])


def refuse(name: str | None, why: str) -> NoReturn:
    """Raise the ModelError of a robot that is no planar chain.

    Args:
        name: Joint, link or loop that is the cause; None: none of them.
        why: Reason, for the message.
    """
    raise ModelError(f"no planar chain: {why}", name)


def is_point(I: Any) -> bool:
    """Return whether an inertia is that of a point mass, within 1e-12 m |c|².

    A body without mass is not a point mass.
    """
    if not I.m > 0:
        return False
    far = float(np.square(np.array(I.c, float)).sum())
    return bool(np.abs(np.array(I.Ic.rows, float)).max() <= 1e-12 * I.m * far)


class PlanarBody:
    """One body projected on the plane, in the neutral position, from its origin.

    Args:
        model: Robot.
        E: Axes x and y of the plane in body coordinates, (2, 3).
        n: Normal of the plane in body coordinates, 3.
        body: Index of the body.

    Attributes:
        last: Whether the body is the robot's last.
        places: Origins of the links fixed to the body, in the plane, by name [m].
        parts: For each of these links, in their order, a tuple: mass [kg], centre of
            mass in the plane, (2,) [m], inertia about it along the normal [kg·m²], and
            whether it is a point mass.
    """

    def __init__(self, model: Model, E: np.ndarray, n: np.ndarray, body: int) -> None:
        self.model, self.E, self.n, self.body = model, E, n, body
        self.last = body == model.nb
        self.places: dict[str, np.ndarray] = {}
        self.parts = []
        for name, frame in model.frames.items():
            if frame.body == body:
                R, p = (np.array(x, float) for x in (frame.X.pose[0].rows, frame.X.r))
                I = frame.inertia
                com = E @ (p + R @ np.array(I.c, float))
                about = n @ R @ np.array(I.Ic.rows, float) @ R.T @ n
                self.places[name] = E @ p
                self.parts.append((float(I.m), com, float(about), is_point(I)))

    def free_start(self, tip: str | None) -> np.ndarray:
        """Return the start of the link of a freely moving root, in the plane, (2,) [m].

        It is the body's origin or, for a point mass or if the link ends at the origin,
        the centre of mass. If the link ends there too, it is a point beside the end in
        direction -x, at the radius of gyration, or at 1 m for a point mass.

        Args:
            tip: Name of a link of the last body, where the link ends, or None: its
                farthest link; ignored for other bodies.

        Raises:
            ModelError: `tip` is not a link of the last body, or nothing determines
                where the last link ends: it has no mass, and no link away from its
                origin.
        """
        mass, com, about = _summed(self.parts)
        end, _ = self.end(np.zeros(2), tip)
        for start in (np.zeros(2), com) if about else (com,):
            if np.linalg.norm(end - start) > NEAR:
                return start
        return end - np.array((math.sqrt(about / mass) if about > 0 else 1.0, 0.0))

    def end(self, start: np.ndarray, tip: str | None) -> tuple[np.ndarray, str]:
        """Return the end of the body's link in the plane, (2,) [m], and its name.

        It is the next joint, with an empty name. For the last body it is the origin of
        the link `tip`; if `tip` is None, of the farthest link from `start`. If all
        links are at the start, it is the point at twice the distance of the centre of
        mass or, if this is at the start too, at the radius of gyration along x; the
        name is JOINT_end, JOINT the body's joint.

        Args:
            start: Start of the link, in the plane, (2,) [m].
            tip: Name of a link of the last body, or None; ignored for other bodies.

        Raises:
            ModelError: `tip` is not a link of the last body, or nothing determines
                where the last link ends: it has no mass, and no link away from `start`.
        """
        if not self.last:
            return self.E @ np.array(self.model.Xtree[self.body + 1].r, float), ""
        if tip is not None and tip not in self.places:
            valid = ", ".join(self.places)
            refuse(tip, f"no link '{tip}' is fixed to the last body; valid: {valid}")
        far = {k: np.linalg.norm(p - start) for k, p in self.places.items()}
        best = tip or max(far, key=lambda name: far[name])
        if tip or far[best] > NEAR:
            return self.places[best], best
        mass, com, about = _summed(self.parts)
        joint = self.model.names[self.body]
        if not mass:
            refuse(
                joint,
                f"joint '{joint}' carries no mass, and no link away from it"
                " says where the chain ends: give one a mass, or name a"
                " tip",
            )
        name = f"{joint}_end"
        if np.linalg.norm(com - start) > NEAR:
            return start + 2 * (com - start), name
        return start + np.array((math.sqrt(about / mass), 0.0)), name

    def segments(self, start: np.ndarray, tip: str | None) -> tuple[list[Segment], str]:
        """Return the Segments of this body, and the name of its end ("" for a joint).

        Point masses at the end are the `tip` of the last Segment. There is one Segment
        if the other links' centre of mass is on the line from start to end, or they
        have no mass. Else there are two with half the mass and half the inertia each;
        the joint between them, at the centre of mass, keeps its angle, and the centres
        of mass of both are there.

        Args:
            start: Start of the link, in the plane, (2,) [m].
            tip: Link at whose origin the last body's chain link ends; None: its
                farthest link, or a point that depends on its centre of mass.

        Raises:
            ModelError: The link has no length, `tip` is not a link of the last body, or
                nothing determines where the last link ends.

        Source: WAW-13.4 (a), with a bend.
        """
        name, (end, end_name) = self.model.names[self.body], self.end(start, tip)
        along = end - start
        L = float(np.linalg.norm(along))
        if L <= NEAR:
            after = end_name or self.model.names[self.body + 1]
            refuse(name, f"the link from joint '{name}' to '{after}' has no length")
        points = [p for p in self.parts if p[3] and np.linalg.norm(p[1] - end) <= NEAR]
        rest = [p for p in self.parts if not any(p is q for q in points)]
        tip_mass = float(sum(p[0] for p in points))
        mass, com, about = _summed(rest)
        to = com - start
        off = (along[0] * to[1] - along[1] * to[0]) / L
        if mass == 0 or abs(off) <= NEAR * max(L, float(np.linalg.norm(to))):
            centre = float(along @ to) / L if mass else 0.0
            one = Segment(name, self.body, True, along, mass, centre, about, tip_mass)
            return [one], end_name
        half, size, bend = (mass / 2, about / 2), float(np.hypot(*to)), f"{name}_bend"
        near = Segment(name, self.body, True, to, half[0], size, half[1])
        far = Segment(
            bend, self.body, False, end - com, half[0], 0.0, half[1], tip_mass
        )
        return [near, far], end_name


def _summed(parts: list[Any]) -> tuple[float, np.ndarray, float]:
    """Return the total mass, centre of mass (2,), and inertia about it of parts.

    A part is (m, com, I, point), with I about its centre of mass; `point` is not used.
    """
    mass = float(sum(m for m, *_ in parts))
    if not mass > 0:
        return 0.0, np.zeros(2), 0.0
    com = sum((m * c for m, c, *_ in parts), np.zeros(2)) / mass
    about = sum(I + m * float((c - com) @ (c - com)) for m, c, I, _ in parts)
    size = max(mass * float(com @ com), 1e-300)
    return mass, com, 0.0 if about <= 1e-14 * size else float(about)


TURNS = ("revolute", "continuous")
Y, X, Z = (0.0, 1.0, 0.0), (1.0, 0.0, 0.0), (0.0, 0.0, 1.0)


@dataclass(frozen=True)
class PlanarChainGeometry:
    """A robot as a planar chain of segments.

    Attributes:
        axes: x and y of the plane and its normal in the robot's base frame, 3x3.
        slides: Indices of the bodies that slide, at most two.
        root: Index of the body of the first link; without links, of the last body that
            slides, or 0.
        free: Whether the root's joint is planar or floating.
        poses: By body: rotation and position in the base frame, at neutral.
        start: From the root's origin to joint 0, in the plane [m].
        mass: Point mass at joint 0 [kg].
        tip: Name of the last joint of the chain.
    """

    axes: np.ndarray
    slides: tuple[int, ...]
    root: int
    free: bool
    poses: list[tuple[np.ndarray, np.ndarray]]
    start: np.ndarray
    mass: float
    segments: tuple[Segment, ...]
    tip: str

    def flat(self, vector: Any) -> np.ndarray:
        """Return the plane coordinates, (2,), of a vector (3,) of the base frame."""
        return self.axes[:2] @ np.asarray(vector, float)

    def lifted(self, vector: Any) -> np.ndarray:
        """Return the base-frame vector, (3,), of plane coordinates (2,)."""
        return np.asarray(vector, float) @ self.axes[:2]

    def sense(self, model: Model, body: int) -> float:
        """Return 1.0 if qd > 0 is counter-clockwise about axes[2], else -1.0."""
        axis: Any = model.joint[body]
        turned = self.poses[body][0] @ np.array(axis.axis)
        return 1.0 if self.axes[2] @ turned > 0 else -1.0

    @property
    def bends(self) -> list[float]:
        """By segment: neutral angle from the one before or x, within pi of 0 [rad]."""
        angles = [0.0, *[segment.angle for segment in self.segments]]
        pairs = zip(angles, angles[1:], strict=False)
        return [math.remainder(b - a, 2 * math.pi) for a, b in pairs]


def read(model: Model, tip: str | None = None) -> PlanarChainGeometry:
    """Return the geometry of a robot that is a planar chain; another one is refused.

    `tip` is the link at whose origin the last chain link ends; None: the farthest link
    fixed to the last body, or a point that depends on its centre of mass
    (PlanarBody.end).
    """
    _unmixed(model)
    slides, turning = _order(model)
    poses = place(model, model.neutral())
    axes = _plane(model, poses, slides, turning)
    if turning and model.joint[turning[0]].kind == "floating":
        _fits_floating(model, poses, axes, turning)
    root = turning[0] if turning else len(slides)
    free = bool(turning) and model.joint[turning[0]].kind not in TURNS
    segments: list[Segment] = []
    start, end = np.zeros(2), _carried(model, slides)
    for body in turning:
        flat_body = PlanarBody(
            model, axes[:2] @ poses[body][0], axes[2] @ poses[body][0], body
        )
        if body == turning[0] and free:
            start = flat_body.free_start(tip)
        links, end = flat_body.segments(start if body == root else np.zeros(2), tip)
        segments += links
    if not segments and tip is not None:
        refuse(tip, f"no link turns that could end at '{tip}'")
    mass = 0.0 if free else _mass_at(model, slides, root, poses)
    return PlanarChainGeometry(
        axes, tuple(slides), root, free, poses, start, mass, tuple(segments), end
    )


def place(model: Model, q: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return a list of rotation (3, 3) and position (3,) [m] of each body, at q.

    Both are relative to the base frame: a rotation is from body to base coordinates.
    Entry 0 is the base. q are the joint positions, (nq,). The bodies must be a chain:
    the parent of body i is i - 1.
    """
    return [(np.array(R.rows), np.array(p)) for R, p in _placed(model, q)]


def _placed(model: Model, q: np.ndarray) -> list[Any]:
    X = [Transform.identity()]
    for i in model.bodies:
        x = Vector(float(y) for y in q[model.q_slices[i]])
        X.append(model.joint[i].X(x) @ model.Xtree[i] @ X[-1])
    return [x.pose for x in X]


def speed(
    model: Model, q: np.ndarray, qd: np.ndarray, body: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return angular velocity and velocity of the origin of a body, in base axes.

    They are arrays (3,) [rad/s], [m/s]. The bodies must be a chain: the parent of body
    i is i - 1.

    Args:
        model: Robot.
        q: Joint positions, (nq,).
        qd: Joint velocities, (nv,).
        body: Index of the body, 1..nb.
    """
    v = Motion.zero()
    for i in range(1, body + 1):
        x = Vector(float(y) for y in q[model.q_slices[i]])
        rate = Vector(float(y) for y in qd[model.v_slices[i]])
        joint = model.joint[i]
        v = joint.X(x) @ model.Xtree[i] @ v + joint.vJ(x, rate)
    R = place(model, q)[body][0]
    return R @ np.array(v.ang, float), R @ np.array(v.lin, float)


def _unmixed(model: Model) -> None:
    """Raise ModelError for branches, followers, loops and unsupported forces."""
    for i in model.bodies:
        name, p = model.names[i], model.parent[i]
        if p != i - 1:
            both = [model.names[k] for k in model.bodies if model.parent[k] == p]
            link = model.child_links[p] or next(iter(model.frames))
            refuse(
                link,
                f"link '{link}' carries the joints {', '.join(both)}; a chain has no"
                " branches",
            )
        if model.leader[i].body != i:
            leader = model.names[model.leader[i].body]
            refuse(name, f"joint '{name}' follows joint '{leader}'")
        if any(model.stiffness[i]):
            refuse(
                name,
                f"joint '{name}' has a spring; valid without it:"
                " model.resisting(friction=True, springs=False)",
            )
        if any(model.armature[i]):
            refuse(
                name,
                f"joint '{name}' has the inertia of a rotor (armature), which turns"
                " between two links; links of a chain have none",
            )
        if any(model.friction[i]):
            refuse(
                name,
                f"joint '{name}' has dry friction; valid without it and damping:"
                " model.without_friction()",
            )
    if model.loops:
        loop = model.loops[0].name
        refuse(loop, f"loop '{loop}' closes it; valid: model.without_loops()")
    if model.forces:
        refuse(None, "functions give it more joint forces (with_forces)")


def _order(model: Model) -> tuple[list[int], list[int]]:
    """Return the indices of the bodies that slide, and of the bodies after them.

    The latter turn; the first body may instead have a planar or floating joint.
    ModelError for another order or kind, a damped base, or mass between two slides.
    """
    kinds = {i: model.joint[i].kind for i in model.bodies}
    turning = list(model.bodies)
    while turning and kinds[turning[0]] == "prismatic":
        turning.pop(0)
    slides = [i for i in model.bodies if i not in turning]
    for i in slides[2:]:
        refuse(
            model.names[i],
            f"joint '{model.names[i]}' is the third that slides; the base moves along a"
            " line or in the plane",
        )
    for i in turning:
        at_root = i == 1 and kinds[i] in ("planar", "floating")
        if kinds[i] not in TURNS and not at_root:
            refuse(
                model.names[i],
                f"joint '{model.names[i]}' is {kinds[i]}; only the base slides or"
                f" floats, the other joints are {' or '.join(TURNS)}",
            )
    for i in [*slides, *turning[:1]]:
        if kinds[i] not in TURNS and any(model.damping[i]):
            refuse(
                model.names[i],
                f"joint '{model.names[i]}' is {kinds[i]} and damped; only joints that"
                " turn resist; valid without: model.without_friction()",
            )
    if len(slides) == 2 and model.I[1].m > 0:
        refuse(
            model.child_links[1],
            f"link '{model.child_links[1]}' slides along one line only and has"
            " mass; the"
            " mass of a free joint moves both ways",
        )
    return slides, turning


def _plane(
    model: Model, poses: list[Any], slides: list[int], turning: list[int]
) -> Any:
    """Return x, y and normal of the plane as rows in the base frame, (3, 3).

    The normal is along the axes of the joints that turn; if none has an axis, it is the
    first of the base's y, x, z across slides and gravity, or y. ModelError if axes,
    slides or gravity do not fit a plane. `poses` are neutral.
    """
    g = np.array(model.a_grav.lin, float)
    axes: dict[str, np.ndarray] = {}
    for i in [*slides, *turning]:
        joint: Any = model.joint[i]
        if joint.kind != "floating":
            axes[model.names[i]] = poses[i][0] @ np.array(joint.axis)
    lines = {model.names[i]: axes.pop(model.names[i]) for i in slides}
    if axes:
        who, n = next(iter(axes.items()))
    else:
        across = [*lines.values(), g / max(float(np.linalg.norm(g)), 1e-300)]
        normals = [a for a in map(np.array, (Y, X, Z)) if _all_across(a, across)]
        who, n = "", normals[0] if normals else np.array(Y)
    for name, axis in axes.items():
        if np.linalg.norm(np.cross(n, axis)) > NEAR:
            refuse(name, f"the axes of joints '{who}' and '{name}' are not parallel")
    for name, line in lines.items():
        if abs(line @ n) > NEAR:
            refuse(
                name,
                f"joint '{name}' slides along {_shown(line)}, out of the plane across"
                f" {_shown(n)}",
            )
    if len(lines) == 2:
        (one, a), (two, b) = lines.items()
        if np.linalg.norm(np.cross(a, b)) <= NEAR:
            refuse(two, f"joints '{one}' and '{two}' slide along the same line")
    if abs(g @ n) > NEAR * np.linalg.norm(g):
        refuse(
            who or None,
            f"gravity {_shown(g)} is not in the plane across {_shown(n)}, in which the"
            " links move; load the robot with another one (gravity=...)",
        )
    return _basis(n)


def _all_across(axis: np.ndarray, lines: list[np.ndarray]) -> bool:
    return all(abs(axis @ line) <= NEAR for line in lines)


def _basis(n: np.ndarray) -> np.ndarray:
    """Return x, y and normal of the plane across a unit vector n, as rows (3, 3).

    The normal is n or -n. y is the direction of Z in the plane, and x points to
    positive X, or to positive Y if it has no X component. For n along Z, x and y are X
    and Y.
    """
    up = np.array(Z) - n * n[2]
    if np.linalg.norm(up) < NEAR:
        return np.array((X, Y, Z))
    up = up / np.linalg.norm(up)
    right = np.cross(up, n)
    if right[0] < -NEAR or (abs(right[0]) <= NEAR and right[1] < 0):
        right = -right
    return np.array((right, up, np.cross(right, up))) + 0.0


def _shown(vector: Any) -> str:
    return f"({', '.join(f'{x + 0.0:.6g}' for x in vector)})"


def _fits_floating(
    model: Model, poses: list[Any], axes: np.ndarray, turning: list[int]
) -> None:
    """Raise ModelError for a floating robot that would leave the plane.

    `axes` are rows x, y, normal, (3, 3); `poses` are neutral.
    """
    heights = {}
    for i in turning:
        I, (R, p) = model.I[i], poses[i]
        if not I.m:
            continue
        heights[i] = float(axes[2] @ (p + R @ np.array(I.c, float)))
        turn = R @ np.array(I.Ic.rows, float) @ R.T @ axes[2]
        off = turn - axes[2] * (axes[2] @ turn)
        if np.abs(off).max() > NEAR * max(float(np.abs(turn).max()), 1e-300):
            refuse(
                model.child_links[i],
                f"link '{model.child_links[i]}' has products of inertia across the"
                " plane,"
                " which turn a floating robot out of it",
            )
    first = next(iter(heights), 0)  # 0: none has mass, as PlanarBody says
    for i, height in heights.items():
        if abs(height - heights[first]) > NEAR:
            refuse(
                model.child_links[i],
                f"the centres of mass of the links '{model.child_links[first]}' and"
                f" '{model.child_links[i]}' are not in one plane, which turns a"
                " floating"
                " robot out of it",
            )


def _carried(model: Model, slides: list[int]) -> str:
    """Return the name of the only joint of a chain without links."""
    return model.child_links[slides[-1]] if slides else "base"


def _mass_at(model: Model, slides: list[int], root: int, poses: list[Any]) -> float:
    """Return the point mass at joint 0 [kg]: of the last body that slides, or the base.

    Without slides, it is the sum of the base's point masses at the origin of body
    `root`. `poses` are neutral.
    """
    if slides:
        return float(model.I[slides[-1]].m)
    joint = poses[root][1]
    mass = 0.0
    for frame in model.frames.values():
        if frame.body == 0 and is_point(frame.inertia):
            R, p = frame.X.pose
            com = np.array(p, float) + np.array(R.rows) @ np.array(frame.inertia.c)
            if np.linalg.norm(com - joint) <= NEAR:
                mass += float(frame.inertia.m)
    return mass
