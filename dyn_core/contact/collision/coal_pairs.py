"""Pairs of shapes without a closed form in geometry.py: by coal, one point per pair.

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
        """Return the contact, if its gap is at most the margin [m]."""
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
        return [ContactPoint(0, (np.array(x) + np.array(y)) / 2, n, gap)]


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
