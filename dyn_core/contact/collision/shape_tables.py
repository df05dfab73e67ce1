"""Arrays of collision detection from the shapes of a Model and of its world."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dyn_core.contact.collision.detection import detection_arrays
from dyn_core.contact.collision.detection.detection_arrays import Pairs, Shapes
from dyn_core.contact.collision.detection.near_pairs import MANY
from dyn_core.contact.collision.detection.polygons import CORNERS, CUT
from dyn_core.contact.collision.halfspaces import HalfSpace, ball_points
from dyn_core.contact.collision.height_field import HeightField
from dyn_core.errors import ModelError, UnsupportedError
from dyn_core.model.material import Material
from dyn_core.model.shapes import (
    Box,
    Capsule,
    Cylinder,
    Mesh,
    PlacedShape,
    Shape,
    Sphere,
)

COPLANAR = 1e-9  # relative to the size: distance up to which triangles are one face

_Numbers = Sequence[float]


class ShapeTable:
    """Builder of Shapes: shapes are added one by one."""

    def __init__(self) -> None:
        self._rows: list[tuple[int, int, np.ndarray, _Numbers, _Numbers]] = []
        self._first: list[tuple[int, int, int, int]] = []
        self._cells: list[tuple[float, float]] = []
        self._vertices = [np.zeros((0, 3))]
        self._faces: list[np.ndarray] = []
        self._loops: list[Sequence[int]] = []
        self._heights = [np.zeros(0)]

    def add(self, placed: PlacedShape, hull: np.ndarray | None) -> None:
        """Add a shape; `hull` has the vertices of a mesh in its frame, (count, 3) [m].

        A mesh in no pair has none, and counts as a point.
        """
        R, p = placed.X.pose
        frame = np.concatenate([np.asarray(R, float).ravel(), np.asarray(p, float)])
        self.add_shape(placed.shape, placed.body, frame, hull, placed.link)

    def add_shape(
        self,
        shape: Shape,
        body: int,
        frame: np.ndarray,
        hull: np.ndarray | None = None,
        link: str = "",
    ) -> None:
        """Add a shape with its frame (12,) in a body; `hull` is as in `add`."""
        if isinstance(shape, Mesh) and hull is not None:
            self._add_hull(hull, body, frame, link)
            return
        size: tuple[float, ...]
        if isinstance(shape, Capsule):
            kind, size = (
                detection_arrays.CAPSULE,
                (0.0, 0.0, shape.length / 2, shape.radius),
            )
        elif isinstance(shape, Box):
            kind, size = detection_arrays.BOX, (*(side / 2 for side in shape.size), 0.0)
        elif isinstance(shape, Cylinder):
            r, z = shape.radius, shape.length / 2
            kind, size = detection_arrays.CYLINDER, (r, r, z, 0.0)
        elif isinstance(shape, (Sphere, Mesh)):
            radius = shape.radius if isinstance(shape, Sphere) else 0.0
            kind, size = detection_arrays.SPHERE, (0.0, 0.0, 0.0, radius)
        else:
            raise UnsupportedError(
                f"link '{link}': no contact of a {shape.kind} is known; valid: sphere,"
                " box, capsule, cylinder, mesh"
            )
        points = np.zeros((1, 3)) if isinstance(shape, Mesh) else ball_points(shape)[0]
        first = (*self._add_vertices(points), 0, 0)
        self._row(kind, body, frame, size, (0.0, 0.0, 0.0, *size[:3]), first)

    def _add_vertices(self, points: np.ndarray) -> tuple[int, int]:
        """Add vertices, (count, 3) [m]; return the first's index, and their number."""
        first = sum(len(part) for part in self._vertices)
        self._vertices.append(points)
        return first, len(points)

    def _row(
        self,
        kind: int,
        body: int,
        frame: np.ndarray,
        size: _Numbers,
        bounds: _Numbers,
        first: tuple[int, int, int, int] = (0, 0, 0, 0),
        cell: tuple[float, float] = (1.0, 1.0),
    ) -> None:
        """Add a row; vertices, faces and heights must be added separately.

        `frame`, of the shape in the body, is a rotation row by row and a position [m],
        (12,). `size` is the half lengths of the core, 3, and radius about it [m]; of a
        half-space its normal and 0; of hulls and height fields zeros. `bounds` is
        centre and half lengths of a box about the core, shape's frame, 6 [m]; of a
        half-space zeros. `first` is first vertex, number of vertices, first face,
        number of faces; of a height field first height, numbers of corners along x and
        y, 0. `cell` is the lengths of its cell along x and y [m].
        """
        self._rows.append((kind, body, frame, size, bounds))
        self._first.append(first)
        self._cells.append(cell)

    def _add_hull(
        self, points: np.ndarray, body: int, frame: np.ndarray, link: str
    ) -> None:
        """Add the convex hull of vertices (count, 3) in the shape's frame [m].

        All are stored. A flat hull has no faces. `frame` is (12,), of the shape in the
        body. No vertices, or 16384 (CUT) or more, are refused.
        """
        if not 0 < len(points) < CUT:
            raise ModelError(
                f"link '{link}': the hull of a mesh has {len(points)} vertices; valid:"
                f" 1 to {CUT - 1}",
                link,
            )
        faces, loops = hull_faces(points)
        first = (*self._add_vertices(points), len(self._loops), len(loops))
        low, high = points.min(axis=0), points.max(axis=0)
        bounds = (*(low + high) / 2, *(high - low) / 2)
        self._row(detection_arrays.HULL, body, frame, (0.0,) * 4, bounds, first)
        self._faces += list(faces)
        self._loops += loops

    def add_world(self, surface: HalfSpace | HeightField) -> None:
        """Add a half-space or a height field of the world as a shape of body 0."""
        frame = np.concatenate([np.eye(3).ravel(), surface.point])
        if isinstance(surface, HalfSpace):
            self._row(
                detection_arrays.PLANE, 0, frame, (*surface.normal, 0.0), (0.0,) * 6
            )
            return
        z = np.array(surface.heights, float)
        wide = [(n - 1) * c for n, c in zip(z.shape, surface.cell, strict=True)]
        # The box extends below the surface, so that shapes below it have contacts.
        low, high = z.min() - sum(wide), z.max()
        x, y = wide[0] / 2, wide[1] / 2
        bounds = (x, y, (low + high) / 2, x, y, (high - low) / 2)
        before = sum(len(part) for part in self._heights)
        first, cell = (before, *z.shape, 0), (surface.cell[0], surface.cell[1])
        self._row(detection_arrays.HEIGHTS, 0, frame, (0.0,) * 4, bounds, first, cell)
        self._heights.append(z.ravel())

    def shapes(self) -> Shapes:
        """Return new arrays of all shapes added so far, in their order."""
        columns = zip(*self._rows, strict=True) if self._rows else ((),) * 5
        kind, body, place, size, bounds = columns
        counts = [len(loop) for loop in self._loops]
        starts = np.concatenate([[0], np.cumsum(counts, dtype=int)])[: len(counts)]
        return Shapes(
            kind=np.array(kind, np.int64),
            body=np.array(body, np.int64),
            place=np.array(place, float).reshape(-1, 12),
            size=np.array(size, float).reshape(-1, 4),
            bounds=np.array(bounds, float).reshape(-1, 6),
            first=np.array(self._first, np.int64).reshape(-1, 4),
            vertices=np.concatenate(self._vertices),
            faces=np.array(self._faces, float).reshape(-1, 4),
            corners=np.column_stack([starts, counts]).astype(np.int64).reshape(-1, 2),
            loops=np.array([v for loop in self._loops for v in loop], np.int64),
            heights=np.concatenate(self._heights),
            cells=np.array(self._cells, float).reshape(-1, 2),
        )


def hull_faces(points: np.ndarray) -> tuple[np.ndarray, list[list[int]]]:
    """Return the faces of a convex hull; triangles in one plane are one face.

    They are outward normal n and offset, n . x = offset, (faces, 4), and the indices of
    the corners, counterclockwise about n, at most 16, evenly chosen. A hull that is
    flat, or that Qhull cannot compute, has no faces.
    """
    from scipy.spatial import ConvexHull, QhullError  # not at `import dyn_core`

    try:
        hull = ConvexHull(points)
    except (QhullError, ValueError):
        return np.zeros((0, 4)), []
    size = float(np.abs(points - points.mean(axis=0)).max())
    corners, normals = points[hull.simplices], hull.equations[:, :3]
    offsets = -hull.equations[:, 3]
    # Triangles in one plane of a convex hull are neighbours of each other: to compare
    # all with all takes a minute for the meshes of a humanoid.
    beside, up = hull.neighbors, normals[:, None, :]
    off = np.abs((corners[beside] * up[:, :, None]).sum(-1) - offsets[:, None, None])
    turned = (normals[beside] * up).sum(-1)
    flat = (turned > 0.5) & (off.max(-1) < COPLANAR * size)
    loops = _triangles(points, hull.simplices, normals)
    seen = np.zeros(len(normals), bool)
    faces = np.ones(len(normals), bool)
    for k in np.flatnonzero(flat.any(axis=1)).tolist():
        if seen[k]:
            continue
        n, offset = normals[k], offsets[k]
        same, reached = {k}, [k]
        while reached:
            for j in beside[reached.pop()].tolist():
                if j in same or normals[j] @ n <= 0.5:
                    continue
                if np.abs(corners[j] @ n - offset).max() < COPLANAR * size:
                    same.add(j)
                    reached.append(j)
        seen[list(same)] = True
        faces[[j for j in same if j > k]] = False
        numbers = np.unique(hull.simplices[sorted(same)])
        order = _around(points[numbers], n)
        if len(order) > CORNERS:
            order = order[np.arange(CORNERS) * len(order) // CORNERS]
        loops[k] = numbers[order].tolist()
    kept = np.flatnonzero(faces)
    return np.column_stack([normals, offsets])[kept], [loops[k] for k in kept]


def _around(corners: np.ndarray, n: np.ndarray) -> np.ndarray:
    """Return the order of corners in a plane, counterclockwise about its normal n."""
    arms = corners - corners.mean(axis=-2, keepdims=True)
    u = arms[..., :1, :]
    v = np.cross(n[..., None, :], u)
    angles = np.arctan2((arms * v).sum(-1), (arms * u).sum(-1))
    return np.argsort(angles, axis=-1, kind="stable")


def _triangles(
    points: np.ndarray, simplices: np.ndarray, normals: np.ndarray
) -> list[list[int]]:
    """Return the corners of each triangle, counterclockwise about its normal."""
    numbers = np.sort(simplices, axis=1)
    order = _around(points[numbers], normals)
    triangles: list[list[int]] = np.take_along_axis(numbers, order, axis=1).tolist()
    return triangles


def pair_table(pairs: Mapping[tuple[int, int], Material]) -> Pairs:
    """Return the table of pairs of shapes and their materials, in the given order.

    Keys are (first, second), the lower index first; pairs with half-spaces and height
    fields must come first, the others sorted. `number` has the index of each pair at
    [first, second], else -1; it is (0, 0) for at most MANY pairs, which need no sweep.
    """
    both = np.array(list(pairs), np.int64).reshape(-1, 2)
    rows = [(m.mu, m.torsion, m.rolling, m.restitution) for m in pairs.values()]
    size = int(both.max()) + 1 if len(both) > MANY else 0
    number = np.full((size, size), -1, np.int64)
    if size:
        number[both[:, 0], both[:, 1]] = np.arange(len(both))
    return Pairs(
        first=both[:, 0].copy(),
        second=both[:, 1].copy(),
        materials=np.array(rows, float).reshape(-1, 4),
        number=number,
    )


def frame_rows(R: Any, p: Any) -> np.ndarray:
    """Return n frames, R (n, 3, 3) and p (n, 3) [m], as rows of 12: R by rows, p."""
    R, p = np.asarray(R, float), np.asarray(p, float)
    return np.concatenate([R.reshape(-1, 9), p.reshape(-1, 3)], axis=1)
