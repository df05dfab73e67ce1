"""Pairs of shapes without a closed form in geometry.py: by coal, and their flat parts.

coal finds the normal and the nearest or deepest points. Where faces or sides lie along
each other, the corners of their overlap are contacts, too: a cylinder stands on a box.

coal is the extra `collision`, imported when a robot needs it. A mesh is replaced by its
convex hull; its file is read here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dyn_core.contact.collision.geometry import ContactPoint, ShapePose
from dyn_core.errors import ModelError, UnsupportedError
from dyn_core.model.shapes import Box, Capsule, Cylinder, Mesh, Shape, Sphere
from dyn_core.model.sources.meshes import mesh_file
from dyn_core.model.sources.origin import Origin

ACCURACY = 1e-9  # coal's tolerance [m]
SAME = 1e-6  # difference of gaps that does not count [m]
ALONG = 0.05  # slope up to which a face or side lies along the other surface
RIM = 8  # points on the rim of a cylinder
NEEDS = (
    "install the extra: pip install 'dyn_ros[collision]' (coal); or give the link a"
    " sphere, capsule or box in the sidecar (collisions: {LINK: {replace: [...]}}), or"
    " deny the pair there (pairs: {deny: [[A, B]]})"
)


def coal_module(what: str) -> Any:
    """Return the module coal.

    Raises:
        UnsupportedError: coal is not installed; names `what` and the alternatives.
    """
    try:
        import coal
    except ImportError as error:
        raise UnsupportedError(
            f"{what} needs coal, which is not installed; {NEEDS}"
        ) from (error)
    return coal


class CoalPair:
    """Two shapes whose contact is computed by coal: the closest or deepest points.

    Attributes:
        kinds: Kinds of both shapes.
    """

    def __init__(self, a: Shape, b: Shape, links: tuple[str, str], hulls: Any) -> None:
        """Create both geometries.

        Args:
            a, b: Shapes.
            links: Names of their links.
            hulls: Function of mesh and link that returns the convex hull.
        """
        self.kinds = f"{a.kind} and {b.kind}"
        self.links = links
        self.coal = coal_module(
            f"links '{links[0]}' ({a.kind}) and '{links[1]}' ({b.kind}): contact"
        )
        pair = zip((a, b), links, strict=True)
        self.shapes = [self._geometry(shape, link, hulls) for shape, link in pair]
        self.kinds_of = (a, b)
        self.points = [
            hulls(shape, link).points if isinstance(shape, Mesh) else None
            for shape, link in zip((a, b), links, strict=True)
        ]
        self.request = self.coal.DistanceRequest()
        self.request.enable_signed_distance = True
        self.request.gjk_tolerance = self.request.epa_tolerance = ACCURACY
        self.request.gjk_max_iterations = 1000
        self.request.epa_max_iterations = 1000

    def _geometry(self, shape: Shape, link: str, hulls: Any) -> Any:
        if isinstance(shape, Sphere):
            return self.coal.Sphere(shape.radius)
        if isinstance(shape, Box):
            return self.coal.Box(*shape.size)
        if isinstance(shape, Capsule):
            return self.coal.Capsule(shape.radius, shape.length)
        if isinstance(shape, Cylinder):
            return self.coal.Cylinder(shape.radius, shape.length)
        if isinstance(shape, Mesh):
            return hulls(shape, link).geometry
        raise UnsupportedError(
            f"links '{self.links[0]}' and '{self.links[1]}': no contact of {self.kinds}"
            " is known; valid: sphere, box, capsule, cylinder, mesh"
        )

    def touch(
        self, pose_a: ShapePose, pose_b: ShapePose, margin: float
    ) -> list[ContactPoint]:
        """Return the contacts with a gap of at most the margin [m]."""
        places = [self.coal.Transform3s(pose.R, pose.p) for pose in (pose_a, pose_b)]
        result = self.coal.DistanceResult()
        gap = float(
            self.coal.distance(
                self.shapes[0], places[0], self.shapes[1], places[1],
                self.request, result,
            )
        )  # fmt: skip
        n = -np.array(result.normal, float)
        if not np.isfinite([gap, *n]).all():
            raise UnsupportedError(
                f"links '{self.links[0]}' and '{self.links[1]}': coal finds no distance"
                f" of {self.kinds}; boxes, capsules and spheres are exact without it"
            )
        if gap > margin:
            return []
        x, y = result.getNearestPoint1(), result.getNearestPoint2()
        point = (np.array(x) + np.array(y)) / 2
        patch_a, patch_b = (
            _flat(shape, points, pose, way)
            for shape, points, pose, way in zip(
                self.kinds_of, self.points, (pose_a, pose_b), (-n, n), strict=True
            )
        )
        touches = _overlap(patch_a, patch_b, point, n, margin)
        if not touches or min(touch.gap for touch in touches) > gap + SAME:
            touches.append(ContactPoint(0, point, n, gap))
        return touches


def _flat(
    shape: Shape, points: np.ndarray | None, pose: ShapePose, way: np.ndarray
) -> np.ndarray:
    """Return the corners of the part of a surface that faces `way`, in the world.

    A face in order around it, (k, 3); both ends of the side of a cylinder or capsule,
    (2, 3); none of what is round or inclined, (0, 3).

    Args:
        shape: Shape.
        points: Corners of a mesh's hull; None of others.
        pose: Its pose.
        way: Unit vector out of it, towards the other shape, world.
    """
    d, corners = pose.R.T @ way, np.zeros((0, 3))
    if isinstance(shape, Box):
        k = int(np.argmax(np.abs(d)))
        if np.linalg.norm(np.delete(d, k)) <= ALONG:
            i, j = (k + 1) % 3, (k + 2) % 3
            corners = np.zeros((4, 3))
            corners[:, k] = np.sign(d[k])
            corners[:, i], corners[:, j] = (-1, 1, 1, -1), (-1, -1, 1, 1)
            corners *= np.array(shape.size) / 2
    elif isinstance(shape, (Cylinder, Capsule)):
        r, half, across = shape.radius, shape.length / 2, float(np.hypot(d[0], d[1]))
        if abs(d[2]) <= ALONG:
            out = np.append(d[:2] / across * r, 0.0)
            corners = out + np.array([[0.0, 0.0, -half], [0.0, 0.0, half]])
        elif across <= ALONG and isinstance(shape, Cylinder):
            angle = 2 * np.pi * np.arange(RIM) / RIM
            height = np.full(RIM, np.sign(d[2]) * half)
            corners = np.stack([r * np.cos(angle), r * np.sin(angle), height], axis=1)
    elif points is not None:
        high = points @ d
        near = points[high >= high.max() - SAME]
        if len(near) >= 3:
            e, f = np.linalg.svd(near - near.mean(axis=0))[2][:2]
            around = near - near.mean(axis=0)
            corners = near[np.argsort(np.arctan2(around @ f, around @ e))]
    return corners @ pose.R.T + pose.p


def _overlap(
    patch_a: np.ndarray,
    patch_b: np.ndarray,
    origin: np.ndarray,
    n: np.ndarray,
    margin: float,
) -> list[ContactPoint]:
    """Return the contacts at the corners of the overlap of two flat parts.

    Corners of each inside the other, and crossings of their edges, seen along n; the
    gap of each is measured along n.
    """
    if min(len(patch_a), len(patch_b)) < 2:
        return []
    e = np.cross(n, np.eye(3)[int(np.argmin(np.abs(n)))])
    e = e / np.linalg.norm(e)
    frame = np.stack([e, np.cross(n, e), n])
    a, b = ((patch - origin) @ frame.T for patch in (patch_a, patch_b))
    places: list[tuple[Any, np.ndarray]] = [
        *((("a", k), p[:2]) for k, p in enumerate(a) if _inside(p, b)),
        *((("b", k), p[:2]) for k, p in enumerate(b) if _inside(p, a)),
    ]
    for i, j in np.ndindex(len(a) if len(a) > 2 else 1, len(b) if len(b) > 2 else 1):
        p, u = a[i - 1][:2], a[i][:2] - a[i - 1][:2]
        s, v = b[j - 1][:2], b[j][:2] - b[j - 1][:2]
        area = u[0] * v[1] - u[1] * v[0]
        if abs(area) <= SAME * np.linalg.norm(u) * np.linalg.norm(v):
            continue
        w = s - p
        t = np.array([w[0] * v[1] - w[1] * v[0], w[0] * u[1] - w[1] * u[0]]) / area
        if (t > 0).all() and (t < 1).all():
            places.append((("edges", i, j), p + t[0] * u))
    touches, taken = [], np.zeros((0, 2))
    for feature, place in places:
        if len(taken) and np.abs(taken - place).max(axis=1).min() <= SAME:
            continue
        taken = np.vstack([taken, place])
        low, high = _height(b, place), _height(a, place)
        if high - low <= margin:
            x = origin + np.append(place, (low + high) / 2) @ frame
            touches.append(ContactPoint(feature, x, n, high - low))
    return touches


def _inside(point: np.ndarray, patch: np.ndarray) -> bool:
    """Return whether a point lies over a patch, a polygon or a segment."""
    p, corners = point[:2], patch[:, :2]
    if len(patch) == 2:
        u = corners[1] - corners[0]
        w, size = p - corners[0], float(np.linalg.norm(u)) or 1.0
        off = abs(u[0] * w[1] - u[1] * w[0]) / size
        return bool(off <= SAME and -SAME <= w @ u / size <= size + SAME)
    u = corners - np.roll(corners, 1, axis=0)
    w = p - np.roll(corners, 1, axis=0)
    off = (u[:, 0] * w[:, 1] - u[:, 1] * w[:, 0]) / np.linalg.norm(u, axis=1)
    return bool((off >= -SAME).all() or (off <= SAME).all())


def _height(patch: np.ndarray, place: np.ndarray) -> float:
    """Return the height of a patch at a place, by the plane or line through it."""
    around = patch - patch.mean(axis=0)
    slope = np.linalg.lstsq(around[:, :2], around[:, 2], rcond=1e-9)[0]
    return float(patch[:, 2].mean() + slope @ (place - patch[:, :2].mean(axis=0)))


class Hull:
    """The convex hull of a mesh.

    Attributes:
        points: Vertices, (count, 3) [m].
        geometry: The hull as an object of coal.
    """

    def __init__(self, geometry: Any) -> None:
        self.geometry = geometry
        self.points = np.array(geometry.points(), float)

    @property
    def reach(self) -> float:
        """Largest distance of a vertex from the origin of the mesh [m]."""
        return float(np.linalg.norm(self.points, axis=1).max())


class Hulls:
    """Convex hulls of mesh files, each read once.

    Attributes:
        origin: What the robot was read from.
        packages: Folders of package:// addresses, by name.
    """

    def __init__(self, origin: Origin, packages: Mapping[str, Any]) -> None:
        self.origin, self.packages = origin, packages
        self._hulls: dict[tuple[str, tuple[float, ...]], Hull] = {}

    def __call__(self, mesh: Mesh, link: str) -> Hull:
        """Return the hull of a mesh of a link."""
        key = mesh.file, mesh.scale
        if key not in self._hulls:
            coal = coal_module(f"link '{link}' (mesh {mesh.file}): contact")
            path = mesh_file(mesh.file, link, self.origin, self.packages)
            try:
                model = coal.MeshLoader().load(str(path), np.array(mesh.scale))
                model.buildConvexHull(True, "Qt")
            except (ValueError, RuntimeError) as error:
                raise ModelError(
                    f"link '{link}': the mesh {path} cannot be used: {error}", link
                ) from error
            self._hulls[key] = Hull(model.convex)
        return self._hulls[key]
