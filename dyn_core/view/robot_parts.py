"""Surfaces of a robot: its visuals, its collision shapes, else rods and joints.

A mesh that is missing or cannot be read is described in the notes; its link is shown by
its collision shapes, or by a ball if it has none.

Meshes are read by trimesh, the extra `view`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dyn_core.errors import DynError, ModelError, UnsupportedError
from dyn_core.model import Model
from dyn_core.model.description import Geometry
from dyn_core.model.shapes import Box, Capsule, Cylinder, Mesh, Shape, Sphere
from dyn_core.model.sources.mesh_corners import (
    LONGEST,
    SIZE,
    check_solid,
    mesh_unit,
)
from dyn_core.model.sources.meshes import mesh_file
from dyn_core.spatial import Transform
from dyn_core.view import colors, solids
from dyn_core.view.colors import Color
from dyn_core.view.scene import COLLISION, INERTIA, Part
from dyn_core.view.solids import Triangles


class MeshPiece(NamedTuple):
    """A part of a mesh file that has one colour, None if the file has none.

    `triangles` are in m if the file has a unit; `flat`: faces without smoothing.
    """

    triangles: Triangles
    color: Color | None
    flat: bool


def trimesh_module() -> Any:
    """Return the module trimesh; UnsupportedError says how to install it."""
    try:
        import trimesh
    except ImportError as error:
        raise UnsupportedError(
            f"meshes need trimesh ({error}): pip install 'dyn_ros[view]'"
        ) from error
    return trimesh


def read_mesh(path: Path) -> list[MeshPiece]:
    """Return the pieces of a mesh file with triangles, else UnsupportedError.

    Corners are in m if the file has a unit, else as in the file. The upward axis of a
    .dae file is ignored.
    """
    trimesh = trimesh_module()
    if path.stat().st_size > SIZE:
        raise UnsupportedError(f"mesh {path} is larger than {SIZE // 1_000_000} MB")
    try:
        unit, scene = mesh_unit(path), trimesh.load_scene(path)
        pieces = [
            _piece(path, mesh, unit) for mesh in scene.dump() if hasattr(mesh, "faces")
        ]
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
    """Return the convex hull of all pieces; UnsupportedError if they span no volume."""
    points = np.concatenate([piece.triangles.vertices for piece in pieces])
    try:
        check_solid(points)
        hull = trimesh_module().Trimesh(points, process=False).convex_hull
    except (ValueError, RuntimeError) as error:  # QhullError is one of the latter
        raise UnsupportedError(f"the convex hull of a mesh: {error}") from error
    return Triangles(np.asarray(hull.vertices, float), np.asarray(hull.faces, int))


def _piece(path: Path, mesh: Any, unit: float) -> MeshPiece:
    """Return one mesh of a trimesh scene, its unit in m, with corners in m.

    Corners that are not three finite numbers up to 1e9 m are refused. A .stl is shaded
    flat.
    """
    vertices = np.asarray(mesh.vertices, float) * unit
    if vertices.shape[1:] != (3,):
        raise UnsupportedError("a corner has something else than three numbers")
    if not np.isfinite(vertices).all() or np.abs(vertices).max(initial=0.0) > LONGEST:
        raise UnsupportedError(f"a corner is not finite, or beyond {LONGEST:g} m")
    triangles = Triangles(vertices, np.asarray(mesh.faces, int))
    return MeshPiece(triangles, _color(mesh), path.suffix.lower() == ".stl")


def _color(mesh: Any) -> Color | None:
    """Return the colour of a trimesh.Trimesh's material, red, green, blue, 0..255.

    None if it has no material, as with colours of corners, or the material has an
    `image` or no main colour of four numbers. A PBRMaterial has no `image`: with a
    texture, too, it gives its base colour, or grey without one.
    """
    material = getattr(mesh.visual, "material", None)
    if material is None or getattr(material, "image", None) is not None:
        return None
    rgba = np.asarray(material.main_color, float)
    if rgba.shape != (4,):
        return None
    red, green, blue = (int(x) for x in rgba[:3])
    return red, green, blue


COVERED = 0.5  # minimum share of bodies with collision shapes to omit rods
THICKNESS = 0.018  # radius of a rod relative to the size of the robot


def pose_of(X: Transform) -> np.ndarray:
    """Return the pose of B in A, (4, 4), of a Transform from A to B."""
    R, p = X.pose
    pose = np.eye(4)
    pose[:3, :3] = [[float(x) for x in row] for row in R.rows]
    pose[:3, 3] = [float(x) for x in p]
    return pose


class RobotParts:
    """A factory of the surfaces of a robot; `notes` has sentences about missing ones.

    `size` is the approximate reach of the robot [m].
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self.notes: list[str] = []
        self.size = extent(model)
        self._files: dict[Path, list[MeshPiece]] = {}

    def has_meshes(self) -> bool:
        """Return whether the description has mesh files, visual or collision."""
        links = self.model.build.description.links
        return any(item.shape == "mesh" for link in links for item in link.geometry)

    def visual(self) -> list[Part]:
        """Return the visuals of the links, or collision shapes if there are no visuals.

        If then fewer than half of the bodies have a collision shape, return rods
        between joints, and those shapes that span less than half of the robot's size
        along each axis of their body. Bodies with mass and without visuals are named in
        `notes` if others have visuals.
        """
        visuals = list(self._visuals())
        if visuals:
            drawn, model = {part.body for part in visuals}, self.model
            heavy = (i for i in model.bodies if float(model.I[i].m) > 0.0)
            if bare := [model.child_links[i] for i in heavy if i not in drawn]:
                names = ", ".join(bare)
                self.notes.append(
                    f"not drawn, without <visual>: {names}; their collision shapes and"
                    " inertia are"
                )
            return visuals
        shapes = list(self._collisions(1.0, colors.LINK))
        covered = {part.body for part in shapes}
        if len(covered - {0}) < COVERED * self.model.nb:
            half = self.size / 2
            spans = (np.ptp(x.triangles.vertices, axis=0).max() for x in shapes)
            small = (x for x, span in zip(shapes, spans, strict=True) if span < half)
            shapes = [
                *self.skeleton(),
                *(replace(x, color=colors.JOINT) for x in small),
            ]
        return shapes or list(self.skeleton())

    def collision(self) -> list[Part]:
        """Return the collision shapes, translucent; meshes as their convex hulls."""
        return list(self._collisions(0.55, colors.COLLISION))

    def inertia(self) -> list[Part]:
        """Return translucent homogeneous ellipsoids of the bodies' mass and inertia."""
        parts = []
        for i in self.model.bodies:
            axes = principal(self.model, i)
            if axes is not None:
                pose, sums = axes
                surface = solids.ellipsoid(np.sqrt(5.0 * sums)).moved(pose)
                name = f"{INERTIA}/{self.model.names[i]}"
                parts.append(Part(name, i, surface, colors.INERTIA, 0.5))
        return parts

    def _visuals(self) -> Iterator[Part]:
        """Yield the visuals of all links in the model.

        A visual that cannot be made is left out: a sentence is appended to self.notes,
        and replacements of its link follow (_stand_in).
        """
        links = {link.name: link for link in self.model.build.description.links}
        for name, frame in self.model.frames.items():
            link, missing = links.get(name), False
            geometry = () if link is None else link.geometry
            for k, item in enumerate(x for x in geometry if x.role == "visual"):
                where = f"visual/{name}/{k}"
                pose = pose_of(frame.X) @ _placed(item)
                try:
                    yield from self._geometry(where, name, frame.body, item, pose)
                except DynError as error:
                    self.notes.append(str(error))
                    missing = True
            if missing:
                yield from self._stand_in(name)

    def _geometry(
        self, where: str, link: str, body: int, item: Geometry, pose: np.ndarray
    ) -> Iterator[Part]:
        """Yield the parts of a visual, whose pose in the body is (4, 4).

        A mesh adds /0, /1, ... to the name `where`. ModelError if it cannot be found or
        read, UnsupportedError without trimesh.
        """
        rgb, opacity = _rgb(item.color)
        if item.shape != "mesh":
            surface = primitive(item.shape, item.size).moved(pose)
            yield Part(where, body, surface, rgb or colors.LINK, opacity)
            return
        for k, piece in enumerate(self._mesh(item.mesh or "", link)):
            surface = piece.triangles.scaled(item.size).moved(pose)
            color = rgb or piece.color or colors.LINK
            yield Part(f"{where}/{k}", body, surface, color, opacity, piece.flat)

    def _stand_in(self, link: str) -> Iterator[Part]:
        """Yield replacements of a link whose mesh is missing, in the colour of markers.

        They are its collision shapes without meshes, or a ball at its origin if there
        are none.
        """
        frame, shown = self.model.frame(link), False
        for part in self._collisions(1.0, colors.MARKER, link, meshes=False):
            shown = True
            yield part
        if not shown:
            ball = solids.ball(THICKNESS * self.size).moved(pose_of(frame.X))
            yield Part(f"marker/{link}", frame.body, ball, colors.MARKER)

    def _collisions(
        self, opacity: float, color: Color, only: str = "", meshes: bool = True
    ) -> Iterator[Part]:
        """Yield the collision shapes of a link, or of all if `only` is empty.

        A shape that cannot be made is left out, and a sentence is appended to
        self.notes.
        """
        for placed in self.model.shapes:
            is_mesh = isinstance(placed.shape, Mesh)
            if (only and placed.link != only) or (is_mesh and not meshes):
                continue
            name = f"{COLLISION}/{placed.link}/{placed.number}"
            try:
                surface = self._shape(placed.link, placed.shape)
            except DynError as error:
                self.notes.append(str(error))
                continue
            surface = surface.moved(pose_of(placed.X))
            yield Part(name, placed.body, surface, color, opacity, is_mesh)

    def _shape(self, link: str, shape: Shape) -> Triangles:
        """Return the surface of a shape in its own frame; of a mesh its convex hull.

        ModelError for another kind of shape, or a mesh that cannot be read or spans no
        volume; UnsupportedError without trimesh.
        """
        if isinstance(shape, Mesh):
            pieces = self._mesh(shape.file, link)
            try:
                return convex_hull(pieces).scaled(shape.scale)
            except UnsupportedError as error:
                message = f"link '{link}': mesh {shape.file}: {error}"
                raise ModelError(message, link) from error
        if isinstance(shape, Box):
            return solids.box(shape.size)
        if isinstance(shape, (Cylinder, Capsule)):
            return primitive(shape.kind, (shape.radius, shape.length))
        if isinstance(shape, Sphere):
            return solids.ball(shape.radius)
        raise ModelError(f"link '{link}': a {shape.kind} is not shown", link)

    def _mesh(self, file: str, link: str) -> list[MeshPiece]:
        """Return the pieces of a mesh file; each file is read only once.

        ModelError if it cannot be found or read, UnsupportedError without trimesh.
        """
        path = mesh_file(file, link, self.model.source)
        trimesh_module()
        if path not in self._files:
            try:
                self._files[path] = read_mesh(path)
            except UnsupportedError as error:
                raise ModelError(f"link '{link}': {error}", link) from error
        return self._files[path]

    def skeleton(self) -> Iterator[Part]:
        """Yield rods between joints, drums along axes, boxes for bodies that branch.

        A body with more than two rods and with mass, but not the base, has a box.
        Joints of one coordinate are drums, others balls. Free joints, and the joints
        NAME.drive that Model.drive adds, are not shown; followers are.
        """
        model, radius = self.model, THICKNESS * self.size
        ends = _ends(model, radius)
        for i in range(model.nb + 1):
            if len(ends[i]) > 2 and i and (axes := principal(model, i)) is not None:
                pose, sums = axes
                surface = solids.box(np.sqrt(12.0 * sums)).moved(pose)
                yield Part(f"box/{i}", i, surface, colors.LINK)
            for k, end in enumerate(ends[i]):
                surface = solids.rod(np.zeros(3), end, radius)
                yield Part(f"rod/{i}/{k}", i, surface, colors.LINK)
        for i in model.bodies:
            axis = np.asarray(getattr(model.joint[i], "axis", (0.0, 0.0, 1.0)), float)
            if model.joint[i].kind in ("floating", "free_rpy", "driven"):
                continue
            surface = solids.ball(1.6 * radius)
            if model.joint[i].nv == 1:
                half = 1.8 * radius * axis
                length = 2 * float(np.linalg.norm(half))
                drum = solids.cylinder(1.5 * radius, length)
                surface = drum.moved(solids.along(-half, half, 0.5))
            yield Part(f"joint/{model.names[i]}", i, surface, colors.JOINT)


def principal(model: Model, body: int) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the principal axes of a body, and mean squares (x², y², z²) of its mass.

        x² = (Iy + Iz - Ix) / (2 m),   alike for y and z

    The axes are a pose (4, 4) at the centre of mass, in the frame of the body. The
    squares [m²] are at least 1e-6 of the largest, and 1e-10 m², also for impossible
    inertias. None if the body has no mass.
    """
    inertia = model.I[body]
    m = float(inertia.m)
    if not m > 0:
        return None
    Ic = np.array([[float(x) for x in row] for row in inertia.Ic.rows])
    moments, axes = np.linalg.eigh((Ic + Ic.T) / 2)
    if np.linalg.det(axes) < 0:
        axes[:, 0] *= -1
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = axes, [float(x) for x in inertia.c]
    sums = (moments.sum() - 2 * moments) / (2 * m)
    # sums can be zero or negative for impossible inertias; callers take roots
    smallest = 1e-6 * float(np.abs(sums).max())
    return pose, np.maximum(sums, max(smallest, 1e-10))


def primitive(kind: str, size: tuple[float, ...]) -> Triangles:
    """Return the surface of a primitive about the origin, with its axis along z.

    `size`: sides of a box, radius of a sphere, radius and length (without caps) else
    [m].
    """
    if kind == "box":
        return solids.box(size)
    if kind == "sphere":
        return solids.ball(size[0])
    turned = solids.cylinder if kind == "cylinder" else solids.capsule
    return turned(size[0], size[1])


def extent(model: Model) -> float:
    """Return the approximate reach of a robot [m], 1 if it is zero.

    It is the largest sum of distances between joints from the base to a body, or the
    longest rod of the skeleton if longer.
    """
    steps = [float(np.linalg.norm(end)) for body in _ends(model, 0.0) for end in body]
    longest = np.zeros(model.nb + 1)
    for i in model.bodies:
        r = np.linalg.norm(pose_of(model.Xtree[i])[:3, 3])
        longest[i] = longest[model.parent[i]] + r
    reach = max(float(longest.max()), max(steps, default=0.0))
    return reach if reach > 0 else 1.0


def _ends(model: Model, least: float) -> list[list[np.ndarray]]:
    """Return the ends of rods from the origin of each body, in its frame, (3,) [m].

    The list is indexed by body number and has nb + 1 entries, entry 0 for the base.
    Rods lead to the joints of child bodies, except floating or free ones, and to links.
    A body (not the base) with mass and without an end beyond `least` has one at twice
    the centre of mass. Ends within `least` (at least 1e-9 m) of the origin or of an
    earlier end are left out.
    """
    ends: list[list[np.ndarray]] = [[] for _ in range(model.nb + 1)]
    for i in model.bodies:
        if model.joint[i].kind not in ("floating", "free_rpy"):
            ends[model.parent[i]].append(pose_of(model.Xtree[i])[:3, 3])
    for frame in model.frames.values():
        ends[frame.body].append(pose_of(frame.X)[:3, 3])
    for i in model.bodies:
        if not any(np.linalg.norm(end) > least for end in ends[i]):
            mass: Any = model.I[i]
            if float(mass.m) > 0:
                ends[i].append(2.0 * np.array([float(x) for x in mass.c]))
    kept: list[list[np.ndarray]] = []
    for several in ends:
        chosen: list[np.ndarray] = []
        for end in several:
            near = [np.linalg.norm(end - other) <= max(least, 1e-9) for other in chosen]
            if np.linalg.norm(end) > max(least, 1e-9) and not any(near):
                chosen.append(end)
        kept.append(chosen)
    return kept


def _placed(item: Geometry) -> np.ndarray:
    """Return the pose of a geometry in its link, (4, 4)."""
    return pose_of(Transform.of_pose(*item.pose))


def _rgb(color: tuple[float, ...] | None) -> tuple[Color | None, float]:
    """Return a colour, 0..255, and its opacity, 0..1, from RGBA, 0..1, or None."""
    if color is None:
        return None, 1.0
    red, green, blue = (round(255 * x) for x in color[:3])
    return (red, green, blue), float(color[3])
