"""Pairs of shapes, and the distances of their convex hulls and of their meshes."""

from __future__ import annotations

from copy import copy
from typing import Any, NamedTuple

import numpy as np

from dyn_core.contact.collision.detection.all_pairs import separations
from dyn_core.contact.collision.detection.tables import allocate_work
from dyn_core.contact.collision.hulls import Hulls, coal_module
from dyn_core.contact.collision.shape_tables import ShapeTable, frame_rows
from dyn_core.engines.machine_code import compiled
from dyn_core.identification.excitation.kernels import point_programs
from dyn_core.model import Model
from dyn_core.model.shapes import Box, Capsule, Cylinder, Mesh, PlacedShape, Sphere

# Points of a body whose positions determine its pose: origin and unit vectors.
CORNERS = ((0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))


class HullDistances(NamedTuple):
    """Distances of pairs of convex hulls in many positions.

    Attributes:
        values: Distances, negative for an overlap, (samples, pairs) [m].
        normal: Unit vector from the second to the first, world coordinates, (samples,
            pairs, 3).
        points: Closest points of both, body coordinates, (samples, pairs, 2, 3) [m].
    """

    values: np.ndarray
    normal: np.ndarray
    points: np.ndarray


class HullPairs:
    """Pairs of convex shapes: spheres, capsules, boxes, cylinders and hulls of meshes.

    Attributes:
        pairs: Indices of both shapes in model.shapes, (pairs, 2).
    """

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
        """Return the pairs selected by a mask, bool, (pairs,)."""
        some = copy(self)
        some._poses = np.zeros_like(self._poses)
        some._choose(self.pairs[chosen])
        return some

    def _choose(self, pairs: np.ndarray) -> None:
        """Set the pairs that `distances` computes, (pairs, 2); bind their kernel."""
        self.pairs = pairs
        sides = np.array([[self._used.index(k) for k in pair] for pair in pairs])
        first, second = (np.array(x, np.int64) for x in sides.reshape(-1, 2).T)
        self._results = np.zeros((len(pairs), 10))
        work = allocate_work(len(self._used), len(pairs))
        self._find = compiled(separations).bind(
            self._shapes, first, second, self._poses, self._results, work
        )

    def _frames(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return rotations (samples, bodies, 3, 3) and origins (..., 3) [m]."""
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
        """Return the gradient of sum(weights * distances) by positions, (samples, nv).

        The closest points may be considered fixed to the bodies; see CapsulePairs.

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
        """Return the distances of a pair's meshes, not their hulls, (samples,) [m].

        Zero or less where they touch. For a pair without a mesh, the distances of the
        hulls.

        Args:
            q: Positions, (samples, nv).
            k: Index of the pair.

        Raises:
            UnsupportedError: The extra `collision` is not installed.
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
        """Return a shape as a geometry object of the library coal."""
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
    """Return the frame of a shape in its body, a row of 12 numbers."""
    return np.asarray(frame_rows(*placed.X.pose)[0])
