"""Mesh files, read by trimesh, the extra `view`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dyn_core.errors import UnsupportedError
from dyn_core.model.sources.mesh_corners import LONGEST, SIZE, check_solid
from dyn_core.view.colors import Color
from dyn_core.view.solids import Triangles


class MeshPiece(NamedTuple):
    """A part of a mesh file that has one colour.

    Attributes:
        triangles: Surface, in m if the file has a unit.
        color: Colour in the file; None if it has none.
        flat: Whether its triangles are drawn as flat faces, without smoothing.
    """

    triangles: Triangles
    color: Color | None
    flat: bool


def trimesh_module() -> Any:
    """Return the module trimesh.

    Raises:
        UnsupportedError: It is not installed; says how to install it.
    """
    try:
        import trimesh
    except ImportError as error:
        raise UnsupportedError(
            f"meshes need trimesh ({error}): pip install 'dyn_ros[view]'"
        ) from error
    return trimesh


def read_mesh(path: Path) -> list[MeshPiece]:
    """Return the pieces of a mesh file; the upward axis of a .dae file is ignored.

    Raises:
        OSError: There is no such file.
        UnsupportedError: trimesh is not installed, or the file is too large, cannot be
            read, has no triangles, or has corners that are not finite or too far away.
    """
    trimesh = trimesh_module()
    if path.stat().st_size > SIZE:
        raise UnsupportedError(f"mesh {path} is larger than {SIZE // 1_000_000} MB")
    try:
        scene = trimesh.load_scene(path)
        pieces = [_piece(path, mesh) for mesh in scene.dump() if hasattr(mesh, "faces")]
    except UnsupportedError as error:
        raise UnsupportedError(f"mesh {path}: {error}") from error
    except Exception as error:  # trimesh raises any type for a damaged file
        reason = "it is damaged, or of a kind that trimesh does not read"
        raise UnsupportedError(f"mesh {path} cannot be read: {reason}") from error
    pieces = [piece for piece in pieces if len(piece.triangles.faces)]
    if not pieces:
        raise UnsupportedError(f"mesh {path} has no triangles")
    return pieces


def convex_hull(pieces: list[MeshPiece]) -> Triangles:
    """Return the convex hull of all pieces, the shape used for contacts.

    Raises:
        UnsupportedError: They span no volume.
    """
    points = np.concatenate([piece.triangles.vertices for piece in pieces])
    try:
        check_solid(points)
        hull = trimesh_module().Trimesh(points, process=False).convex_hull
    except (ValueError, RuntimeError) as error:  # QhullError is one of the latter
        raise UnsupportedError(f"the convex hull of a mesh: {error}") from error
    return Triangles(np.asarray(hull.vertices, float), np.asarray(hull.faces, int))


def _piece(path: Path, mesh: Any) -> MeshPiece:
    """Return one mesh of a trimesh scene, with corners in m.

    Raises UnsupportedError if corners are not three finite numbers within LONGEST.
    """
    vertices = np.asarray(mesh.vertices, float) * _unit(path, mesh)
    if vertices.shape[1:] != (3,):
        raise UnsupportedError("a corner has something else than three numbers")
    if not np.isfinite(vertices).all() or np.abs(vertices).max(initial=0.0) > LONGEST:
        raise UnsupportedError(f"a corner is not finite, or beyond {LONGEST:g} m")
    triangles = Triangles(vertices, np.asarray(mesh.faces, int))
    return MeshPiece(triangles, _color(mesh), path.suffix.lower() == ".stl")


def _unit(path: Path, mesh: Any) -> float:
    """Return the length unit of a file [m]; it is 1 for formats other than .dae."""
    if path.suffix.lower() != ".dae":
        return 1.0
    return float(mesh.metadata.get("units", "1.0").split()[0].replace("meters", "1.0"))


def _color(mesh: Any) -> Color | None:
    """Return the colour of a material; None if it has none, or a texture."""
    material = getattr(mesh.visual, "material", None)
    if material is None or getattr(material, "image", None) is not None:
        return None
    rgba = np.asarray(material.main_color, float)
    if rgba.shape != (4,):
        return None
    red, green, blue = (int(x) for x in rgba[:3])
    return red, green, blue
