"""Links as capsules, and distances between capsules that could collide."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from dyn_core.contact.collision.hulls import Hulls
from dyn_core.contact.collision.pairs import neighbours
from dyn_core.identification.excitation.kernels import point_programs
from dyn_core.model import Model
from dyn_core.model.shapes import Box, Capsule, Cylinder, Mesh, PlacedShape, Sphere

_LEAST = 1e-12  # lower bound of lengths that are divided by [m]
_PARALLEL = 1e-12  # squared sine of the angle below which segments are parallel


class LinkCapsule(NamedTuple):
    """Capsule fixed to a body: all points within a radius of a segment.

    Attributes:
        link: Name of the link whose shape it encloses.
        body: Index of its body; 0 is the base.
        ends: End points of the segment, body coordinates, (2, 3) [m].
        radius: Radius [m].
    """

    link: str
    body: int
    ends: np.ndarray
    radius: float


def link_capsules(model: Model, hulls: Hulls) -> list[LinkCapsule]:
    """Return a capsule around each collision shape, in the order of model.shapes.

    Spheres and capsules are represented exactly. Others are enclosed by a capsule:
    cylinders along their axis, boxes along their longest side, convex hulls of meshes
    along their longest principal axis.

    Args:
        model: Robot.
        hulls: Convex hulls of its meshes.

    Raises:
        UnsupportedError: A mesh needs the extra `collision`.
        ModelError: A mesh cannot be used; names the link.
    """
    capsules = []
    for placed in model.shapes:
        ends, radius = _around(placed, hulls)
        R, p = placed.X.pose
        turned = ends @ np.array([list(row) for row in R.rows], float).T
        ends = turned + np.array(list(p), float)
        capsules.append(LinkCapsule(placed.link, placed.body, ends, radius))
    return capsules


def _around(placed: PlacedShape, hulls: Hulls) -> tuple[np.ndarray, float]:
    """Return segment (2, 3) and radius of an enclosing capsule, shape frame [m]."""
    shape = placed.shape
    if isinstance(shape, Sphere):
        return np.zeros((2, 3)), shape.radius
    if isinstance(shape, (Capsule, Cylinder)):
        ends = np.array([[0.0, 0.0, -0.5], [0.0, 0.0, 0.5]]) * shape.length
        return ends, shape.radius
    if isinstance(shape, Box):
        half = np.array(shape.size) / 2
        k = int(np.argmax(half))
        ends = np.zeros((2, 3))
        ends[:, k] = -half[k], half[k]
        return ends, float(np.linalg.norm(np.delete(half, k)))
    assert isinstance(shape, Mesh)
    return around_points(hulls(shape, placed.link).points)


def around_points(points: np.ndarray) -> tuple[np.ndarray, float]:
    """Return segment (2, 3) and radius of a capsule that encloses points [m].

    Its axis is the longest principal axis of the points, centred in their extents along
    the other axes.

    Args:
        points: Points, (count, 3) [m].
    """
    _, axes = np.linalg.eigh(np.cov(points.T))
    local = points @ axes[:, ::-1]  # longest first
    middle = (local.min(axis=0) + local.max(axis=0)) / 2
    away = local - middle
    across = np.linalg.norm(away[:, 1:], axis=1)
    radius = float(across.max())
    # The spherical cap covers a point beyond the end of the segment by this height.
    back = np.sqrt(np.maximum(radius**2 - across**2, 0.0))
    top, low = float((away[:, 0] - back).max()), float((away[:, 0] + back).min())
    if low > top:
        low = top = (low + top) / 2
    ends = np.zeros((2, 3))
    ends[:, 0] = low, top
    return (ends + middle) @ axes[:, ::-1].T, radius


class Distances(NamedTuple):
    """Distances of pairs of capsules in many positions.

    Attributes:
        values: Distances of the surfaces, negative for an overlap, (samples, pairs)
            [m].
        s, t: Parameters of the closest points on the first and second segment, from 0
            to 1, (samples, pairs).
        normal: Unit vector from the second to the first, world coordinates, (3,
            samples, pairs).
    """

    values: np.ndarray
    s: np.ndarray
    t: np.ndarray
    normal: np.ndarray


class CapsulePairs:
    """Pairs of capsules that could collide, and their distances.

    Pairs on one body, of neighbouring bodies, and pairs that the sidecar excludes are
    left out.

    Attributes:
        capsules: Capsules of the robot.
        pairs: Indices of both capsules, (pairs, 2).
        near: Indices of pairs that are closer than `clearance` in the initial position
            and therefore not in `pairs`, (near, 2).
    """

    def __init__(
        self,
        model: Model,
        capsules: Sequence[LinkCapsule],
        first: np.ndarray,
        clearance: float,
        engine: str | None = None,
    ) -> None:
        """Select the pairs and build the Programs.

        Args:
            model: Robot with joints of one coordinate.
            capsules: Capsules of its links.
            first: Initial position, (nv,) [rad | m].
            clearance: Distance below which a pair is `near` in the initial position
                [m].
            engine: Engine of the Programs; None: the default.
        """
        self.capsules = tuple(capsules)
        self.pairs = np.array(_possible(model, capsules), int).reshape(-1, 2)
        self._radii = np.array([c.radius for c in capsules])
        self.near = self.pairs[:0]
        if not len(self.pairs):
            return
        points = [
            (c.body, *(float(x) for x in end)) for c in capsules for end in c.ends
        ]
        self._places, self._pull = point_programs(model, points, engine)
        near = self.distances(first[None]).values[0] < clearance
        self.near, self.pairs = self.pairs[near], self.pairs[~near]

    def __len__(self) -> int:
        return len(self.pairs)

    def distances(self, q: np.ndarray) -> Distances:
        """Return the distances of `pairs` in positions q, (samples, nv)."""
        places = np.asarray(self._places(q)).reshape(len(q), -1, 2, 3)
        axes = np.ascontiguousarray(
            places.transpose(2, 3, 0, 1)
        )  # end, x, ..., capsule
        first, second = axes[..., self.pairs[:, 0]], axes[..., self.pairs[:, 1]]
        s, t = closest_on_segments(first, second)
        apart = first[0] + s * (first[1] - first[0])
        apart -= second[0] + t * (second[1] - second[0])
        length = np.sqrt(_dot(apart, apart))
        values = length - self._radii[self.pairs].sum(axis=1)
        return Distances(values, s, t, apart / np.maximum(length, _LEAST))

    def gradient(
        self, q: np.ndarray, distances: Distances, weights: np.ndarray
    ) -> np.ndarray:
        """Return the gradient of sum(weights * distances) by positions, (samples, nv).

        The closest points may be considered fixed to the bodies: moving them along the
        segments changes the distance to second order only.

        Args:
            q: Positions, (samples, nv).
            distances: Distances in these positions.
            weights: Weight of each distance, (samples, pairs); mostly zero.
        """
        result = np.zeros(np.shape(q))
        rows, pairs = np.nonzero(weights)
        if not len(rows):
            return result
        used, places = np.unique(rows, return_inverse=True)
        pulled = np.zeros((len(used), len(self.capsules), 2, 3))
        push = (weights[rows, pairs] * distances.normal[:, rows, pairs]).T
        for side, sign in ((0, 1.0), (1, -1.0)):
            share = (distances.s, distances.t)[side][rows, pairs, None]
            number = self.pairs[pairs, side]
            for end, part in enumerate((1 - share, share)):
                index: Any = places, number, end
                np.add.at(pulled, index, sign * part * push)
        result[used] = self._pull(q[used], pulled.reshape(len(used), -1))
        return result


def _possible(model: Model, capsules: Sequence[LinkCapsule]) -> list[tuple[int, int]]:
    """Return index pairs of capsules that may collide.

    Excluded are pairs on one body, and on neighbouring bodies unless the sidecar
    includes them, and pairs that the sidecar excludes.
    """
    rules, near = model.build.description.pairs, neighbours(model)
    pairs = []
    for k, a in enumerate(capsules):
        for m, b in enumerate(capsules[k + 1 :], k + 1):
            if a.body == b.body:
                continue
            rule = rules.decision(a.link, b.link)
            if rule is None:
                rule = frozenset((a.body, b.body)) not in near
            if rule:
                pairs.append((k, m))
    return pairs


def _dot(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return dot products over the first axis, which has length 3."""
    return np.asarray(a[0] * b[0] + a[1] * b[1] + a[2] * b[2])


def closest_on_segments(
    first: np.ndarray, second: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the parameters of the closest points of segments, from 0 to 1 on each.

    Args:
        first, second: End points of the segments, (2, 3, ...) [m].

    Source: C. Ericson, Real-Time Collision Detection, 2005, 5.1.9.
    """
    u, v, r = first[1] - first[0], second[1] - second[0], first[0] - second[0]
    a, e, b, c, f = _dot(u, u), _dot(v, v), _dot(u, v), _dot(u, r), _dot(v, r)
    long_a, long_e = np.maximum(a, _LEAST**2), np.maximum(e, _LEAST**2)
    size = a * e - b * b
    crossing = size > _PARALLEL * long_a * long_e
    s = np.clip((b * f - c * e) / np.where(crossing, size, 1.0), 0.0, 1.0)
    s = np.where(crossing, s, 0.5)  # arbitrary for parallel segments
    t = np.clip((b * s + f) / long_e, 0.0, 1.0)
    return np.clip((b * t - c) / long_a, 0.0, 1.0), t
