"""Contact manifolds of two shapes: all points where they touch or nearly touch.

Exact for spheres, capsules and boxes with each other; half-spaces are in halfspaces.py,
all other pairs in coal_pairs.py. A contact point lies midway between the two surfaces,
the normal points from the second shape to the first, and the gap is negative in an
overlap.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

import numpy as np

from dyn_core.contact.collision.boxes import box_contacts
from dyn_core.contact.collision.segments import (
    between_segments,
    cross,
    normal_to,
    to_segment,
)
from dyn_core.model.shapes import Box, Capsule, Shape, Sphere

PARALLEL = 0.05  # sine below which two capsules also touch at their ends


class ShapePose(NamedTuple):
    """Pose of a shape: x_world = R x_shape + p.

    Attributes:
        R: Rotation, (3, 3).
        p: Position of the centre in the world, (3,) [m].
    """

    R: np.ndarray
    p: np.ndarray


class ContactPoint(NamedTuple):
    """One point of a manifold.

    Attributes:
        feature: Key of the touching corners, ends or edges.
        point: Midway between the surfaces, world, (3,) [m].
        normal: From the second shape to the first, unit, world, (3,).
        gap: Distance of the surfaces along the normal; negative: they overlap [m].
    """

    feature: Hashable
    point: np.ndarray
    normal: np.ndarray
    gap: float

    @property
    def reverse(self) -> ContactPoint:
        """The contact point with the shapes exchanged."""
        return self._replace(normal=-self.normal)


def manifold(
    a: Shape, pose_a: ShapePose, b: Shape, pose_b: ShapePose, margin: float = 0.0
) -> list[ContactPoint] | None:
    """Return all contacts of two shapes whose gap is at most the margin.

        gap = n . (x_a - x_b),   point = (x_a + x_b) / 2

    Distances of separated shapes are exact. For an overlap with a box the depth is the
    smallest over the faces, unless a pair of edges is more than 5 % less deep: a face
    has the more stable manifold.

    Args:
        a, b: Shapes.
        pose_a, pose_b: Poses of the shapes.
        margin: Largest gap that counts [m].

    Returns:
        The contacts, or None if this file has no rule for the pair.

    Source: LCP-2.
    """
    for first, second, swap in ((a, b, False), (b, a, True)):
        rule = _RULES.get((type(first), type(second)))
        if rule is not None:
            poses = (pose_b, pose_a) if swap else (pose_a, pose_b)
            contacts = rule(first, poses[0], second, poses[1], margin)
            return [contact.reverse for contact in contacts] if swap else contacts
    return None


def supports(a: Shape, b: Shape) -> bool:
    """Return whether `manifold` supports two shapes."""
    kinds = type(a), type(b)
    return kinds in _RULES or kinds[::-1] in _RULES


def _between_balls(
    feature: Hashable,
    x: np.ndarray,
    y: np.ndarray,
    radii: tuple[float, float],
    fallback: Any,
) -> ContactPoint:
    """Return the contact of balls at x and y; `fallback` is the normal if x = y."""
    apart = x - y
    d = float(np.sqrt(apart @ apart))
    n = apart / d if d > 1e-12 else fallback()
    r_a, r_b = radii
    return ContactPoint(feature, (x - n * r_a + y + n * r_b) / 2, n, d - r_a - r_b)


def _ends(shape: Any, pose: ShapePose) -> np.ndarray:
    """Return the ends of a capsule's axis, or a sphere's centre twice, (2, 3)."""
    half = getattr(shape, "length", 0.0) / 2
    z = pose.R[:, 2] * half
    return np.stack([pose.p - z, pose.p + z])


def _sphere_sphere(
    a: Sphere, pose_a: ShapePose, b: Sphere, pose_b: ShapePose, margin: float
) -> list[ContactPoint]:
    """Return the contact of two spheres; the normal of concentric ones is z."""
    up = np.array((0.0, 0.0, 1.0))
    contact = _between_balls(0, pose_a.p, pose_b.p, (a.radius, b.radius), lambda: up)
    return [contact] if contact.gap <= margin else []


def _sphere_capsule(
    a: Sphere, pose_a: ShapePose, b: Capsule, pose_b: ShapePose, margin: float
) -> list[ContactPoint]:
    """Return the contact of a sphere with a capsule."""
    y = to_segment(pose_a.p, *_ends(b, pose_b))
    radii = a.radius, b.radius
    contact = _between_balls(0, pose_a.p, y, radii, lambda: normal_to(pose_b.R[:, 2]))
    return [contact] if contact.gap <= margin else []


def _capsule_capsule(
    a: Capsule, pose_a: ShapePose, b: Capsule, pose_b: ShapePose, margin: float
) -> list[ContactPoint]:
    """Return the contacts of two capsules: the closest points, or ends if parallel.

    Nearly parallel capsules touch at each end that lies beside the other. Each gap is a
    distance of an end and a segment, and so smooth in the poses.
    """
    A, B = _ends(a, pose_a), _ends(b, pose_b)
    u, v = pose_a.R[:, 2], pose_b.R[:, 2]
    across = cross(u, v)
    sine = float(np.sqrt(across @ across))

    def fallback() -> np.ndarray:
        n = across if sine > 1e-9 else normal_to(u)
        n = n if n @ (pose_a.p - pose_b.p) >= 0.0 else -n
        return n / np.linalg.norm(n)

    radii = a.radius, b.radius
    x, y = between_segments(A[0], A[1], B[0], B[1])
    closest = _between_balls("closest", x, y, radii, fallback)
    if closest.gap > margin:
        return []
    if sine > PARALLEL:
        return [closest]
    contacts = []
    for k in (0, 1):
        y = to_segment(A[k], B[0], B[1])
        if _within(A[k], B):
            contacts.append(_between_balls(("a", k), A[k], y, radii, fallback))
    for k in (0, 1):
        x = to_segment(B[k], A[0], A[1])
        if _within(B[k], A) and not any(_same(x, A[t.feature[1]]) for t in contacts):  # type: ignore[index]
            contacts.append(_between_balls(("b", k), x, B[k], radii, fallback))
    least = min((contact.gap for contact in contacts), default=np.inf)
    if closest.gap < least - 1e-9 * (a.reach + b.reach):
        contacts.append(closest)
    return [contact for contact in contacts if contact.gap <= margin]


def _within(p: np.ndarray, ends: np.ndarray) -> bool:
    """Return whether a point projects on a segment, its ends included."""
    u = ends[1] - ends[0]
    square = u @ u
    return bool(-1e-9 * square <= (p - ends[0]) @ u <= (1.0 + 1e-9) * square)


def _same(p: np.ndarray, q: np.ndarray) -> bool:
    return bool(np.abs(p - q).max() < 1e-9 * (1.0 + np.abs(p).max()))


def _sphere_box(
    a: Sphere, pose_a: ShapePose, b: Box, pose_b: ShapePose, margin: float
) -> list[ContactPoint]:
    """Return the contact of a sphere with a box.

    A centre inside the box has the normal of the nearest face.
    """
    half = np.array(b.size) / 2
    x = pose_b.R.T @ (pose_a.p - pose_b.p)
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
    return [ContactPoint(0, pose_b.p + pose_b.R @ middle, pose_b.R @ n, gap)]


def _with_box(
    a: Any, pose_a: ShapePose, b: Box, pose_b: ShapePose, margin: float
) -> list[ContactPoint]:
    """Return the contacts of a capsule or box with a box."""
    box = pose_b.p, pose_b.R.T, np.array(b.size) / 2
    if isinstance(a, Box):
        core = pose_a.p, pose_a.R.T, np.array(a.size) / 2
        contacts = box_contacts(core, 0.0, box, margin)
    else:
        core = pose_a.p, pose_a.R.T[2:], np.array((a.length / 2,))
        contacts = box_contacts(core, a.radius, box, margin)
    return [ContactPoint(*row) for row in contacts]


_RULES: dict[tuple[type, type], Callable[..., list[ContactPoint]]] = {
    (Sphere, Sphere): _sphere_sphere,
    (Sphere, Capsule): _sphere_capsule,
    (Sphere, Box): _sphere_box,
    (Capsule, Capsule): _capsule_capsule,
    (Capsule, Box): _with_box,
    (Box, Box): _with_box,
}
