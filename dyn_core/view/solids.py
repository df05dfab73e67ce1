"""Triangles of boxes, balls, cylinders, capsules and arrows, with NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

AROUND = 24  # number of corners of a circle
Sizes = Sequence[float] | np.ndarray


class Triangles(NamedTuple):
    """A surface: vertices (n, 3) [m]; faces (m, 3), counter-clockwise from outside."""

    vertices: np.ndarray
    faces: np.ndarray

    def moved(self, pose: np.ndarray) -> Triangles:
        """Return the surface transformed by the pose of its frame, (4, 4)."""
        return Triangles(self.vertices @ pose[:3, :3].T + pose[:3, 3], self.faces)

    def scaled(self, factors: Sizes) -> Triangles:
        """Return the surface scaled along x, y, z, its corners reversed if mirrored."""
        faces = self.faces if np.prod(factors) > 0 else self.faces[:, ::-1]
        return Triangles(self.vertices * np.asarray(factors, float), faces)


def joined(several: Sequence[Triangles]) -> Triangles:
    """Return surfaces merged into one; without surfaces, an empty one."""
    starts = np.cumsum([0, *(len(x.vertices) for x in several)])
    return Triangles(
        np.concatenate([np.zeros((0, 3)), *(x.vertices for x in several)]),
        np.concatenate(
            [
                np.zeros((0, 3), int),
                *(x.faces + k for x, k in zip(several, starts, strict=False)),
            ]
        ),
    )


def box(size: Sizes) -> Triangles:
    """Return a box about the origin with sides along x, y, z [m].

    Its faces share no corners, so that their edges are sharp.
    """
    vertices: list[np.ndarray] = []
    faces: list[tuple[int, int, int]] = []
    for axis in range(3):
        for sign in (-1.0, 1.0):
            u, v = (axis + 1) % 3, (axis + 2) % 3
            corners = np.zeros((4, 3))
            corners[:, axis] = sign
            corners[:, u], corners[:, v] = (-1, 1, 1, -1), (-1, -1, 1, 1)
            first = 4 * len(vertices)
            order = [0, 1, 2, 3] if sign > 0 else [0, 3, 2, 1]
            a, b, c, d = (first + k for k in order)
            faces += [(a, b, c), (a, c, d)]
            vertices.append(corners)
    half = np.asarray(size, float) / 2
    return Triangles(np.concatenate(vertices) * half, np.array(faces))


def ball(radius: float, around: int = AROUND) -> Triangles:
    """Return a ball about the origin, with its poles on the z axis.

    Args:
        radius: Radius [m].
        around: Number of corners of each circle of latitude, at least 4; there are
            around // 2 strips from pole to pole.
    """
    return _turned(_arc(radius, 0.0, np.pi, around // 2), around)


def ellipsoid(half_axes: Sizes) -> Triangles:
    """Return an ellipsoid about the origin with half axes along x, y, z [m]."""
    return ball(1.0).scaled(half_axes)


def cylinder(radius: float, length: float, around: int = AROUND) -> Triangles:
    """Return a closed cylinder about z, centred at the origin.

    Its caps share no corners with its side, so that the edges are sharp.

    Args:
        radius, length: Radius and length [m].
        around: Number of corners of a circle.
    """
    h = length / 2
    caps = [[(0.0, h), (radius, h)], [(radius, -h), (0.0, -h)]]
    side = [(radius, h), (radius, -h)]
    return joined([_turned(np.array(x), around) for x in (caps[0], side, caps[1])])


def capsule(radius: float, length: float, around: int = AROUND) -> Triangles:
    """Return a capsule about z, centred at 0; length is without caps, around >= 4."""
    top = _arc(radius, 0.0, np.pi / 2, around // 4) + (0.0, length / 2)
    bottom = _arc(radius, np.pi / 2, np.pi, around // 4) - (0.0, length / 2)
    return _turned(np.concatenate([top, bottom]), around)


def cone(radius: float, length: float, around: int = AROUND) -> Triangles:
    """Return a cone about z: base at z = 0, tip at z = length; the edge is sharp."""
    side = np.array([(0.0, length), (radius, 0.0)])
    foot = np.array([(radius, 0.0), (0.0, 0.0)])
    return joined([_turned(side, around), _turned(foot, around)])


def rod(start: np.ndarray, end: np.ndarray, radius: float) -> Triangles:
    """Return a capsule; `start` and `end`, (3,) [m], are the ends of its cylinder."""
    length = float(np.linalg.norm(np.subtract(end, start)))
    return capsule(radius, length).moved(along(start, end, 0.5))


def arrow(start: np.ndarray, end: np.ndarray, radius: float) -> Triangles:
    """Return an arrow between two points, (3,) [m]; `radius` is that of the shaft.

    The head is 6 radii long, but at most half of the arrow, and 2.2 times as thick as
    the shaft. For equal points it is a flat disc across the world's z axis.
    """
    length = float(np.linalg.norm(np.subtract(end, start)))
    head = min(6.0 * radius, 0.5 * length)
    shaft = length - head
    lower = cylinder(radius, shaft, 12).vertices + (0.0, 0.0, shaft / 2)
    parts = [
        Triangles(lower, cylinder(radius, shaft, 12).faces),
        Triangles(
            cone(2.2 * radius, head, 12).vertices + (0.0, 0.0, shaft),
            cone(2.2 * radius, head, 12).faces,
        ),
    ]
    return joined(parts).moved(along(start, end, 0.0))


def along(start: np.ndarray, end: np.ndarray, share: float) -> np.ndarray:
    """Return a pose whose z axis points from `start` to `end`, (4, 4).

    For equal points the axes are those of the world.

    Args:
        start, end: Points, (3,) [m].
        share: Position of its origin on the line, from 0 at start to 1 at end.
    """
    a, b = np.asarray(start, float), np.asarray(end, float)
    pose = np.eye(4)
    pose[:3, 3] = a + share * (b - a)
    length = float(np.linalg.norm(b - a))
    if length > 0:
        z = (b - a) / length
        x = np.cross(np.eye(3)[int(np.argmin(np.abs(z)))], z)
        x /= np.linalg.norm(x)
        pose[:3, :3] = np.column_stack([x, np.cross(z, x), z])
    return pose


def _arc(radius: float, start: float, end: float, pieces: int) -> np.ndarray:
    """Return points (r, z) of an arc about the origin, (pieces + 1, 2) [m].

    r is the distance from the z axis, `start` and `end` are angles from it.
    """
    angle = np.linspace(start, end, pieces + 1)
    return radius * np.column_stack([np.sin(angle), np.cos(angle)])


def _turned(profile: np.ndarray, around: int) -> Triangles:
    """Return the surface of revolution of a profile about z.

    `profile` are points (r, z) from top to bottom, (n, 2) [m]. Triangles whose area is
    exactly 0, as at r = 0, are left out; their corners stay.
    """
    angle = np.linspace(0.0, 2 * np.pi, around, endpoint=False)
    r, z = profile.T
    rings = np.stack(
        [np.outer(r, np.cos(angle)), np.outer(r, np.sin(angle)),
         np.repeat(z[:, None], around, axis=1)],
        axis=-1,
    )  # fmt: skip
    numbers = np.arange(len(profile) * around).reshape(len(profile), around)
    a, b = numbers[:-1], numbers[1:]
    c, d = np.roll(b, -1, axis=1), np.roll(a, -1, axis=1)
    faces = np.concatenate(
        [np.stack(x, axis=-1).reshape(-1, 3) for x in ((a, b, c), (a, c, d))]
    )
    vertices = rings.reshape(-1, 3)
    corners = vertices[faces]
    area = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    return Triangles(vertices, faces[np.abs(area).max(axis=1) > 0])
