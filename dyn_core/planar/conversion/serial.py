"""A robot as a planar chain: its links, or the reason why it is not one.

A body between two parallel axes is a link. Loads of the bearings have no effect on
motion in the plane: offsets along the axes, products of inertia, inertias about other
axes. They matter only for a floating root, which has no bearing.

Source: WAW-15.2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dyn_core.model import Model
from dyn_core.planar.conversion.segments import (
    NEAR,
    PlanarBody,
    Segment,
    is_point,
    refuse,
)
from dyn_core.spatial import Motion, Transform, Vector

TURNS = ("revolute", "continuous")
Y, X, Z = (0.0, 1.0, 0.0), (1.0, 0.0, 0.0), (0.0, 0.0, 1.0)


@dataclass(frozen=True)
class PlanarChainGeometry:
    """A robot as a planar chain of segments.

    Attributes:
        axes: x and y of the plane and its normal in the robot's base frame, 3x3.
        slides: Indices of the bodies that slide.
        root: Index of the body that carries joint 0's link.
        free: Whether the root's joint is planar or floating.
        poses: Rotation and position of each body in the base frame, in the neutral
            position; entry 0 is the base.
        start: From the root's origin to joint 0, in the plane [m].
        mass: Point mass at joint 0 [kg].
        segments: The links.
        tip: Name of the end.
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
        """Return the plane coordinates, 2, of a vector of the base frame."""
        return self.axes[:2] @ np.asarray(vector, float)

    def lifted(self, vector: Any) -> np.ndarray:
        """Return the base-frame vector, 3, of plane coordinates."""
        return np.asarray(vector, float) @ self.axes[:2]

    def sense(self, model: Model, body: int) -> float:
        """Return 1.0 if the body's joint turns counter-clockwise, else -1.0."""
        axis: Any = model.joint[body]
        turned = self.poses[body][0] @ np.array(axis.axis)
        return 1.0 if self.axes[2] @ turned > 0 else -1.0

    @property
    def bends(self) -> list[float]:
        """By segment: angle from the previous one, for the first from x [rad].

        Angles are within pi of zero.
        """
        angles = [0.0, *[segment.angle for segment in self.segments]]
        pairs = zip(angles, angles[1:], strict=False)
        return [math.remainder(b - a, 2 * math.pi) for a, b in pairs]


def read(model: Model, tip: str | None = None) -> PlanarChainGeometry:
    """Return the geometry of a robot that is a planar chain.

    Args:
        model: Robot.
        tip: Link at whose origin the last chain link ends; None: the farthest link
            fixed to the last body, or twice the distance of its centre of mass.

    Raises:
        ModelError: It is not one; names the joint or link and the reason.
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
    """Return rotation (3, 3) and position of each body in the base frame, at q.

    A rotation is from body to base coordinates; entry 0 is the base.
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
    """Return angular velocity and velocity of the origin of a body, base axes."""
    v = Motion.zero()
    for i in range(1, body + 1):
        x = Vector(float(y) for y in q[model.q_slices[i]])
        rate = Vector(float(y) for y in qd[model.v_slices[i]])
        joint = model.joint[i]
        v = joint.X(x) @ model.Xtree[i] @ v + joint.vJ(x, rate)
    R = place(model, q)[body][0]
    return R @ np.array(v.ang, float), R @ np.array(v.lin, float)


def _unmixed(model: Model) -> None:
    """Raise ModelError for branches, followers, loops and unsupported forces.

    Unsupported: springs, rotor inertia, dry friction, the user's functions.
    """
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
    """Return the indices of the bodies that slide, and of those that turn.

    Raises ModelError for a third slide, another kind of joint, a damped slide or
    floating joint, or mass between two slides.
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
    """Return x, y and normal of the plane, y along the base's z if possible, (3, 3).

    Raises ModelError if axes are not parallel, slides leave the plane or coincide, or
    gravity is not in the plane.
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
    """Return x, y, normal of the plane across n: (X, Z), (Y, Z) or (X, Y) for axes."""
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
    """Raise ModelError for a floating robot that would leave the plane."""
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
    first = next(iter(heights))
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
    """Return a name for the end of a chain without links: the last slide or "base"."""
    return model.child_links[slides[-1]] if slides else "base"


def _mass_at(model: Model, slides: list[int], root: int, poses: list[Any]) -> float:
    """Return the point mass at joint 0: the cart, or one of the base there [kg]."""
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
