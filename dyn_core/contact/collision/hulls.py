"""Convex hulls of mesh files, by coal.

coal is the extra `collision`, imported when a robot needs it. A mesh is replaced by the
convex hull of its corners, which are checked before they are passed to coal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from dyn_core.errors import ModelError, UnsupportedError
from dyn_core.model.shapes import Mesh
from dyn_core.model.sources.mesh_corners import check_solid, mesh_corners, mesh_unit
from dyn_core.model.sources.meshes import mesh_file
from dyn_core.model.sources.origin import Origin
from dyn_core.sharing import cached_property

NEEDS = (
    "install the extra: pip install 'dyn_ros[collision]' (coal); or give the link a"
    " sphere, capsule or box in the sidecar (collisions: {LINK: {replace: [...]}}), or"
    " deny the pair there (pairs: {deny: [[A, B]]})"
)


def coal_module(what: str) -> Any:
    """Return the module coal; refuse if it is missing: "`what` needs coal"."""
    try:
        import coal
    except ImportError as error:
        raise UnsupportedError(
            f"{what} needs coal, which is not installed; {NEEDS}"
        ) from (error)
    return coal


class Hull:
    """The convex hull of a mesh; `points` are (count, 3) in the mesh's frame [m]."""

    def __init__(self, geometry: Any, read: Callable[[], Any]) -> None:
        """Store a hull.

        Args:
            geometry: Hull as an object of coal, in the frame of the mesh.
            read: Function that reads the mesh and returns it as an object of coal;
                called when `mesh` is first used.
        """
        self.geometry, self._read = geometry, read
        self.points = np.array(geometry.points(), float)

    @cached_property
    def mesh(self) -> Any:
        """The mesh itself as an object of coal, read from its file on first use."""
        return self._read()

    @property
    def reach(self) -> float:
        """Largest distance of a vertex from the origin of the mesh [m]."""
        return float(np.linalg.norm(self.points, axis=1).max())


class Hulls:
    """Convex hulls of mesh files, each read once; paths resolved against `origin`."""

    def __init__(self, origin: Origin, packages: Mapping[str, Any]) -> None:
        self.origin, self.packages = origin, packages
        self._hulls: dict[tuple[str, tuple[float, ...]], Hull] = {}

    def __call__(self, mesh: Mesh, link: str) -> Hull:
        """Return the hull of a mesh of a link, in the frame of the mesh.

        The same object is returned for the same file, as written, and scale.

        Args:
            mesh: File and scale of the mesh.
            link: Name of the link, for messages only.

        Raises:
            UnsupportedError: coal is not installed.
            ModelError: The file is not found, cannot be read, or has no solid hull;
                names the link.
        """
        key = mesh.file, mesh.scale
        if key not in self._hulls:
            coal = coal_module(f"link '{link}' (mesh {mesh.file}): contact")
            path = mesh_file(mesh.file, link, self.origin, self.packages)
            try:
                corners = mesh_corners(path) * np.array(mesh.scale)
                check_solid(corners)
                points = coal.StdVec_Vec3s()
                points.extend(corners)
                hull = coal.ConvexBase.convexHull(points, True, "Qt")
            except (ValueError, RuntimeError) as error:
                raise ModelError(
                    f"link '{link}': the mesh {path} cannot be used: {error}", link
                ) from error
            # Its corners are finite, so that coal may read the faces, too.
            scale = mesh_unit(path) * np.array(mesh.scale)
            read = partial(coal.MeshLoader().load, str(path), scale)
            self._hulls[key] = Hull(hull, read)
        return self._hulls[key]
