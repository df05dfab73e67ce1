"""Pairs of links that a motion keeps apart, by capsules, convex hulls or meshes.

A capsule encloses the convex hull of its shape, and the hull encloses the mesh, so a
distance of simpler shapes is never larger. For each pair, the simplest shapes are used
that are not too close already in the initial position of the motion.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any, NamedTuple

import numpy as np

from dyn_core.contact.collision.detection.all_pairs import separations
from dyn_core.contact.collision.detection.detection_arrays import allocate_work
from dyn_core.contact.collision.hulls import Hulls, coal_module
from dyn_core.contact.collision.pairs import neighbours
from dyn_core.contact.collision.shape_tables import ShapeTable, frame_rows
from dyn_core.engines.machine_code import compiled
from dyn_core.identification.excitation.kernels import point_programs
from dyn_core.model import Model
from dyn_core.model.shapes import Box, Capsule, Cylinder, Mesh, PlacedShape, Sphere

_LEAST = 1e-12  # lower bound of lengths that are divided by [m]
_PARALLEL = 1e-12  # squared sine of the angle below which segments are parallel


class LinkCapsule(NamedTuple):
    """Capsule fixed to a body: all points within a radius [m] of a segment.

    `ends` of the segment are in coordinates of `body`, 0 the base, (2, 3) [m].
    """

    link: str
    body: int
    ends: np.ndarray
    radius: float


def link_capsules(model: Model, hulls: Hulls) -> list[LinkCapsule]:
    """Return a capsule around each collision shape, in the order of model.shapes.

    Spheres and capsules are exact. Others are enclosed: cylinders along their axis,
    boxes along their longest side, hulls of meshes along the longest principal axis.
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
    """Return segment (2, 3) and radius of a capsule around a shape, shape frame [m]."""
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
    """Return segment (2, 3) and radius of a capsule around points, two or more [m].

    Its axis, the longest principal one, is centred in their extents along the others.
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
    left out. `pairs` are the indices of both capsules, (pairs, 2); those that are
    closer than `clearance` in the initial position are in `near` instead.
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
            engine: Engine of the Programs; None: the default; UnsupportedError for an
                unknown one if there is a possible pair.
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
        """Return the distances of `pairs`, one or more, in positions q, (samples, nv).

        Its `values` are those of the surfaces, negative for an overlap, (samples,
        pairs) [m]; with them come the closest points' parameters, and the normals.
        """
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
    """Return the index pairs (k, m), k < m, of capsules that may collide, in order.

    Pairs on neighbouring bodies are excluded unless the sidecar includes them.
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
    """Return the dot products (...) of vectors (3, ...) over the first axis."""
    return np.asarray(a[0] * b[0] + a[1] * b[1] + a[2] * b[2])


def closest_on_segments(
    first: np.ndarray, second: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the parameters (s, t) of the closest points of two segments, (...) each.

    `first` and `second` have the end points, (2, 3, ...) [m]; s and t are 0 at the
    first end and 1 at the other. Parallel segments have arbitrary ones of their closest
    points; a segment may have length 0.

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


# Points of a body whose positions determine its pose: origin and unit vectors.
CORNERS = ((0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))


class HullDistances(NamedTuple):
    """Distances of convex hulls, (samples, pairs) [m], negative for an overlap.

    `normal`, (samples, pairs, 3), is the unit vector from the second to the first in
    the world, `points` the closest of both in body coordinates, (samples, pairs, 2, 3).
    """

    values: np.ndarray
    normal: np.ndarray
    points: np.ndarray


class HullPairs:
    """Pairs of convex shapes, indices in model.shapes (pairs, 2); meshes are hulls."""

    def __init__(
        self,
        model: Model,
        pairs: np.ndarray,
        hulls: Hulls,
        engine: str | None = None,
    ) -> None:
        """Build tables and Programs.

        Args:
            model: Robot with joints of one coordinate.
            pairs: Indices of both shapes in model.shapes, (pairs, 2), at least one
                pair.
            hulls: Convex hulls of its meshes.
            engine: Engine of the Programs; None: the default.

        Raises:
            UnsupportedError: A mesh needs the extra `collision`, or the engine is
                unknown.
            ModelError: A mesh cannot be used; names the link.
        """
        self._hulls, self._placed = hulls, model.shapes
        self._used = sorted(set(np.ravel(pairs).tolist()))
        bodies = sorted({model.shapes[k].body for k in self._used})
        self._body = {k: bodies.index(model.shapes[k].body) for k in self._used}
        table = ShapeTable()
        for k in self._used:
            shape, link = model.shapes[k].shape, model.shapes[k].link
            points = hulls(shape, link).points if isinstance(shape, Mesh) else None
            table.add_shape(shape, self._body[k], _frame(model.shapes[k]), points, link)
        self._shapes = table.shapes()
        corners = [(body, *corner) for body in bodies for corner in CORNERS]
        self._places, self._pull = point_programs(model, corners, engine)
        self._poses = np.zeros((len(bodies), 12))
        self._choose(pairs)

    def __len__(self) -> int:
        return len(self.pairs)

    def of(self, chosen: np.ndarray) -> HullPairs:
        """Return a HullPairs of pairs in a mask, one or more, with shared Programs."""
        some = copy(self)
        some._poses = np.zeros_like(self._poses)
        some._choose(self.pairs[chosen])
        return some

    def _choose(self, pairs: np.ndarray) -> None:
        """Set self.pairs, and bind the compiled function of their distances.

        `pairs`, (pairs, 2), are indices in model.shapes, of pairs of the constructor.
        """
        self.pairs = pairs
        sides = np.array([[self._used.index(k) for k in pair] for pair in pairs])
        first, second = (np.array(x, np.int64) for x in sides.reshape(-1, 2).T)
        self._results = np.zeros((len(pairs), 10))
        work = allocate_work(len(self._used), len(pairs))
        self._find = compiled(separations).bind(
            self._shapes, first, second, self._poses, self._results, work
        )

    def _frames(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return rotations (body to world) and origins of the frames of bodies.

        (samples, bodies, 3, 3) and (samples, bodies, 3), of the used bodies, ascending.
        """
        places = np.asarray(self._places(q)).reshape(len(q), -1, 4, 3)
        origin = places[:, :, 0]
        return (places[:, :, 1:] - origin[:, :, None]).swapaxes(2, 3), origin

    def distances(self, q: np.ndarray) -> HullDistances:
        """Return the distances of `pairs` in positions q, (samples, nv)."""
        R, p = self._frames(q)
        results = np.empty((len(q), *self._results.shape))
        for k in range(len(q)):
            self._poses[:] = frame_rows(R[k], p[k])
            self._find()
            results[k] = self._results
        sides = [[self._body[k] for k in pair] for pair in self.pairs.tolist()]
        away = results[:, :, 4:].reshape(len(q), -1, 2, 3) - p[:, sides]
        points = np.einsum("npsij,npsi->npsj", R[:, sides], away)
        return HullDistances(results[:, :, 0], results[:, :, 1:4], points)

    def gradient(
        self, q: np.ndarray, distances: HullDistances, weights: np.ndarray
    ) -> np.ndarray:
        """Return the gradient of sum(weights * distances), as of CapsulePairs."""
        result = np.zeros(np.shape(q))
        rows, pairs = np.nonzero(weights)
        if not len(rows):
            return result
        used, places = np.unique(rows, return_inverse=True)
        pulled = np.zeros((len(used), len(self._poses), 4, 3))
        push = weights[rows, pairs, None] * distances.normal[rows, pairs]
        for side, sign in ((0, 1.0), (1, -1.0)):
            body = [self._body[k] for k in self.pairs[pairs, side].tolist()]
            share = distances.points[rows, pairs, side]
            shares = np.column_stack([1 - share.sum(axis=1), share])
            for corner in range(4):
                index: Any = places, body, corner
                np.add.at(pulled, index, sign * shares[:, corner, None] * push)
        result[used] = self._pull(q[used], pulled.reshape(len(used), -1))
        return result

    def meshes_apart(self, q: np.ndarray, k: int) -> np.ndarray:
        """Return the distances of pair k's meshes, not their hulls, (samples,) [m].

        Meshes that touch have 0 or less. A pair without a mesh has the distances of its
        convex shapes.
        """
        placed = [self._placed[n] for n in self.pairs[k]]
        if not any(isinstance(x.shape, Mesh) for x in placed):
            alone = np.arange(len(self.pairs)) == k
            return self.of(alone).distances(q).values[:, 0]
        coal = coal_module(f"link '{placed[0].link}': the distance of meshes")
        bodies = [self._body[n] for n in self.pairs[k].tolist()]
        geometries = [self._geometry(coal, x) for x in placed]
        local = [_frame(x) for x in placed]
        R, p = self._frames(q)
        request, result = coal.DistanceRequest(), np.empty(len(q))
        for row in range(len(q)):
            frames = []
            for body, frame in zip(bodies, local, strict=True):
                turn = R[row, body] @ frame[:9].reshape(3, 3)
                place = R[row, body] @ frame[9:] + p[row, body]
                frames.append(coal.Transform3s(turn, place))
            both = geometries[0], frames[0], geometries[1], frames[1]
            result[row] = coal.distance(*both, request, coal.DistanceResult())
        return result

    def _geometry(self, coal: Any, placed: PlacedShape) -> Any:
        """Return a shape as an object of coal; equal meshes (faces) share one."""
        shape = placed.shape
        if isinstance(shape, Mesh):
            return self._hulls(shape, placed.link).mesh
        if isinstance(shape, Sphere):
            return coal.Sphere(shape.radius)
        if isinstance(shape, Box):
            return coal.Box(*shape.size)
        assert isinstance(shape, (Capsule, Cylinder))
        kind = coal.Capsule if isinstance(shape, Capsule) else coal.Cylinder
        return kind(shape.radius, shape.length)


def _frame(placed: PlacedShape) -> np.ndarray:
    """Return a placed shape's frame in its body, (12,): rotation by rows, position."""
    return np.asarray(frame_rows(*placed.X.pose)[0])


class NearPair(NamedTuple):
    """A pair of shapes whose capsules are too close at the start.

    `by` are the shapes whose distance is limited: hulls, meshes, or nothing if they
    touch at the `start` [m]. The `limit` is the clearance; where `start` is less, half
    of `start`; 0 if nothing is limited [m].
    """

    links: tuple[str, str]
    by: str
    start: float
    limit: float


class LinkDistances(NamedTuple):
    """Distances of pairs of links, by capsules, then by hulls, (samples, pairs) [m]."""

    values: np.ndarray
    capsules: Distances | None
    hulls: HullDistances | None


class LinkPairs:
    """Pairs of links that could collide, kept apart by capsules, hulls or meshes.

    `links` (names) and `limits` (minimum distances [m]) are in the order of
    LinkDistances; `near` are the pairs whose capsules are too close at the start.
    """

    def __init__(
        self,
        model: Model,
        first: np.ndarray,
        clearance: float | None,
        packages: Mapping[str, Any] | None = None,
        engine: str | None = None,
    ) -> None:
        """Select the pairs, and the shapes by which each is kept apart.

        Args:
            model: Robot with joints of one coordinate.
            first: Initial position, (nv,) [rad | m].
            clearance: Minimum distance; None: there are no pairs [m].
            packages: Folders for package:// addresses of meshes, by package name.
            engine: Engine of the Programs; None: the default.

        Raises:
            UnsupportedError: A mesh needs the extra `collision`; or the engine is
                unknown, and there is a pair that could collide.
            ModelError: A mesh cannot be used; names the link.
        """
        least = 0.0 if clearance is None else clearance
        hulls = Hulls(model.source, packages or {})
        capsules = [] if clearance is None else link_capsules(model, hulls)
        self.capsules = CapsulePairs(model, capsules, first, least, engine)
        self.hulls: HullPairs | None = None
        self.meshes: HullPairs | None = None
        self.near: tuple[NearPair, ...] = ()
        self._names = [capsule.link for capsule in capsules]
        if len(self.capsules.near):
            close = HullPairs(model, self.capsules.near, hulls, engine)
            self.near = tuple(self._judged(close, first[None], least))
            by = np.array([pair.by for pair in self.near])
            self.hulls = close.of(by == "hulls") if "hulls" in by else None
            self.meshes = close.of(by == "meshes") if "meshes" in by else None
        kept = [pair for pair in self.near if pair.by == "hulls"]
        limits = [pair.limit for pair in kept]
        self.limits = np.append(np.full(len(self.capsules), least), limits)
        self.links = [self._links(pair) for pair in self.capsules.pairs]
        self.links += [pair.links for pair in kept]

    def __len__(self) -> int:
        return len(self.limits)

    def _links(self, pair: np.ndarray) -> tuple[str, str]:
        """Return the names of both links of a pair, the indices of two capsules."""
        return self._names[pair[0]], self._names[pair[1]]

    def _judged(self, close: HullPairs, q: np.ndarray, clearance: float) -> Any:
        """Yield a NearPair for each pair of close capsules, in their order.

        The limit is the clearance; where the distance at q, (1, nv), is less, half of
        it.
        """
        for k, apart in enumerate(close.distances(q).values[0].tolist()):
            by = "hulls"
            if apart <= 0:
                by, apart = "meshes", float(close.meshes_apart(q, k)[0])
            if apart <= 0:
                by = "nothing"
            limit = clearance if apart >= clearance else max(apart, 0.0) / 2
            yield NearPair(self._links(close.pairs[k]), by, apart, limit)

    def distances(self, q: np.ndarray) -> LinkDistances:
        """Return distances by capsules, then hulls, not meshes, at q (samples, nv)."""
        capsules = self.capsules.distances(q) if len(self.capsules) else None
        hulls = None if self.hulls is None else self.hulls.distances(q)
        parts = [x.values for x in (capsules, hulls) if x is not None]
        values = np.hstack(parts) if parts else np.zeros((len(q), 0))
        return LinkDistances(values, capsules, hulls)

    def gradient(
        self, q: np.ndarray, distances: LinkDistances, weights: np.ndarray
    ) -> np.ndarray:
        """Return the gradient of sum(weights * distances), as of CapsulePairs."""
        result, count = np.zeros(np.shape(q)), len(self.capsules)
        if distances.capsules is not None:
            weight = weights[:, :count]
            result += self.capsules.gradient(q, distances.capsules, weight)
        if self.hulls is not None and distances.hulls is not None:
            result += self.hulls.gradient(q, distances.hulls, weights[:, count:])
        return result

    def of_meshes(self, q: np.ndarray) -> list[tuple[NearPair, np.ndarray]]:
        """Return pairs kept apart by meshes, each with its distances, (samples,) [m].

        If the distance of the hulls is at least the limit and the distance at the
        start, it is used instead of the distance of the meshes.
        """
        if self.meshes is None:
            return []
        result, values = [], self.meshes.distances(q).values
        pairs = [pair for pair in self.near if pair.by == "meshes"]
        for k, pair in enumerate(pairs):
            apart = values[:, k]
            close = apart < max(pair.limit, pair.start)
            apart[close] = self.meshes.meshes_apart(q[close], k)
            result.append((pair, apart))
        return result
