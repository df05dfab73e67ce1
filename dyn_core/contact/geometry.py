"""Manifolds of two shapes: all points where they touch, or nearly so.

Exact for spheres, capsules and boxes with each other; half-spaces stand in
halfspaces.py, all other pairs in foreign.py. A point lies midway between the two
surfaces, the normal points from the second shape to the first, and the gap is negative
where they overlap.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

import numpy as np

from dyn_core.contact.boxes import box_contacts
from dyn_core.contact.segments import (
    between_segments,
    cross,
    normal_to,
    to_segment,
)
from dyn_core.model.shapes import Box, Capsule, Shape, Sphere

PARALLEL = 0.05  # sine below which two capsules also touch at their ends


class Pose(NamedTuple):
    """Where a shape is: x_world = R x_shape + p.

    Attributes:
        R: Rotation, (3, 3).
        p: Position of the centre in the world, (3,) [m].
    """

    R: np.ndarray
    p: np.ndarray


class Touch(NamedTuple):
    """One point of a manifold.

    Attributes:
        feature: What touches; the same while the same corners, ends or edges do.
        point: Midway between the surfaces, world, (3,) [m].
        normal: From the second shape to the first, unit, world, (3,).
        gap: Distance of the surfaces along the normal; negative: they overlap [m].
    """

    feature: Hashable
    point: np.ndarray
    normal: np.ndarray
    gap: float

    @property
    def reverse(self) -> Touch:
        """The same point seen with the shapes exchanged."""
        return self._replace(normal=-self.normal)


def manifold(
    a: Shape, pose_a: Pose, b: Shape, pose_b: Pose, margin: float = 0.0
) -> list[Touch] | None:
    """Give all contacts of two shapes whose gap is at most the margin.

        gap = n . (x_a - x_b),   point = (x_a + x_b) / 2

    Distances of separated shapes are exact. Where a box overlaps something, the depth
    is the least over its faces if no crossing of edges is more than 5 % less deep: a
    face gives the steadier manifold.

    Args:
        a, b: Shapes.
        pose_a, pose_b: Where they are in the world.
        margin: Largest gap that counts [m].

    Returns:
        The contacts, or None where this file does not know the pair.

    Source: LCP-2.
    """
    for first, second, swap in ((a, b, False), (b, a, True)):
        rule = _RULES.get((type(first), type(second)))
        if rule is not None:
            poses = (pose_b, pose_a) if swap else (pose_a, pose_b)
            found = rule(first, poses[0], second, poses[1], margin)
            return [touch.reverse for touch in found] if swap else found
    return None


def knows(a: Shape, b: Shape) -> bool:
    """Whether `manifold` serves two shapes."""
    kinds = type(a), type(b)
    return kinds in _RULES or kinds[::-1] in _RULES


def _between_balls(
    feature: Hashable,
    x: np.ndarray,
    y: np.ndarray,
    radii: tuple[float, float],
    spare: Any,
) -> Touch:
    """Give the contact of a ball at x with one at y; `spare` is a normal if x = y."""
    apart = x - y
    d = float(np.sqrt(apart @ apart))
    n = apart / d if d > 1e-12 else spare()
    r_a, r_b = radii
    return Touch(feature, (x - n * r_a + y + n * r_b) / 2, n, d - r_a - r_b)


def _ends(shape: Any, pose: Pose) -> np.ndarray:
    """Give the ends of a capsule's axis, or a sphere's centre twice, (2, 3)."""
    half = getattr(shape, "length", 0.0) / 2
    z = pose.R[:, 2] * half
    return np.stack([pose.p - z, pose.p + z])


def _sphere_sphere(
    a: Sphere, at_a: Pose, b: Sphere, at_b: Pose, margin: float
) -> list[Touch]:
    """Give the contact of two spheres; at one centre the normal is z."""
    up = np.array((0.0, 0.0, 1.0))
    touch = _between_balls(0, at_a.p, at_b.p, (a.radius, b.radius), lambda: up)
    return [touch] if touch.gap <= margin else []


def _sphere_capsule(
    a: Sphere, at_a: Pose, b: Capsule, at_b: Pose, margin: float
) -> list[Touch]:
    """Give the contact of a sphere with a capsule."""
    y = to_segment(at_a.p, *_ends(b, at_b))
    radii = a.radius, b.radius
    touch = _between_balls(0, at_a.p, y, radii, lambda: normal_to(at_b.R[:, 2]))
    return [touch] if touch.gap <= margin else []


def _capsule_capsule(
    a: Capsule, at_a: Pose, b: Capsule, at_b: Pose, margin: float
) -> list[Touch]:
    """Give the contacts of two capsules: the closest points; of nearly parallel ones
    also each end beside the other.

    Each is a true distance, of an end and a segment, and so smooth in the poses.
    """
    A, B = _ends(a, at_a), _ends(b, at_b)
    u, v = at_a.R[:, 2], at_b.R[:, 2]
    across = cross(u, v)
    sine = float(np.sqrt(across @ across))

    def spare() -> np.ndarray:
        n = across if sine > 1e-9 else normal_to(u)
        n = n if n @ (at_a.p - at_b.p) >= 0.0 else -n
        return n / np.linalg.norm(n)

    radii = a.radius, b.radius
    x, y = between_segments(A[0], A[1], B[0], B[1])
    closest = _between_balls("closest", x, y, radii, spare)
    if closest.gap > margin:
        return []
    if sine > PARALLEL:
        return [closest]
    found = []
    for k in (0, 1):
        y = to_segment(A[k], B[0], B[1])
        if _within(A[k], B):
            found.append(_between_balls(("a", k), A[k], y, radii, spare))
    for k in (0, 1):
        x = to_segment(B[k], A[0], A[1])
        if _within(B[k], A) and not any(_same(x, A[t.feature[1]]) for t in found):  # type: ignore[index]
            found.append(_between_balls(("b", k), x, B[k], radii, spare))
    least = min((touch.gap for touch in found), default=np.inf)
    if closest.gap < least - 1e-9 * (a.reach + b.reach):
        found.append(closest)
    return [touch for touch in found if touch.gap <= margin]


def _within(p: np.ndarray, ends: np.ndarray) -> bool:
    """Whether a point lies beside a segment, its ends included."""
    u = ends[1] - ends[0]
    square = u @ u
    return bool(-1e-9 * square <= (p - ends[0]) @ u <= (1.0 + 1e-9) * square)


def _same(p: np.ndarray, q: np.ndarray) -> bool:
    return bool(np.abs(p - q).max() < 1e-9 * (1.0 + np.abs(p).max()))


def _sphere_box(
    a: Sphere, at_a: Pose, b: Box, at_b: Pose, margin: float
) -> list[Touch]:
    """Give the contact of a sphere with a box; a centre inside leaves by the nearest
    face.
    """
    half = np.array(b.size) / 2
    x = at_b.R.T @ (at_a.p - at_b.p)
    y = np.clip(x, -half, half)
    d = float(np.linalg.norm(x - y))
    if d > 0.0:
        n = (x - y) / d
    else:
        k = int(np.argmin(half - np.abs(x)))
        n = np.zeros(3)
        n[k] = 1.0 if x[k] >= 0.0 else -1.0
        d = float(np.abs(x[k]) - half[k])
        y = x - n * d
    gap = d - a.radius
    if gap > margin:
        return []
    middle = (y + x - n * a.radius) / 2
    return [Touch(0, at_b.p + at_b.R @ middle, at_b.R @ n, gap)]


def _with_box(a: Any, at_a: Pose, b: Box, at_b: Pose, margin: float) -> list[Touch]:
    """Give the contacts of a capsule or box with a box."""
    box = at_b.p, at_b.R.T, np.array(b.size) / 2
    if isinstance(a, Box):
        core = at_a.p, at_a.R.T, np.array(a.size) / 2
        found = box_contacts(core, 0.0, box, margin)
    else:
        core = at_a.p, at_a.R.T[2:], np.array((a.length / 2,))
        found = box_contacts(core, a.radius, box, margin)
    return [Touch(*row) for row in found]


_RULES: dict[tuple[type, type], Callable[..., list[Touch]]] = {
    (Sphere, Sphere): _sphere_sphere,
    (Sphere, Capsule): _sphere_capsule,
    (Sphere, Box): _sphere_box,
    (Capsule, Capsule): _capsule_capsule,
    (Capsule, Box): _with_box,
    (Box, Box): _with_box,
}
