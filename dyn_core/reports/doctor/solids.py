"""Shapes of links as point clouds: bounding boxes, and volumes of convex hulls."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dyn_core.errors import DynError, UnsupportedError
from dyn_core.model.description import Geometry
from dyn_core.model.sources.mesh_corners import mesh_corners
from dyn_core.model.sources.meshes import mesh_file
from dyn_core.model.sources.origin import Origin
from dyn_core.reports.doctor.facts import LinkFacts

LARGEST = 30_000_000  # maximum size of a mesh file [bytes]


class LinkSolid(NamedTuple):
    """The extent of a link's shapes: minimum and maximum coordinates in its frame [m].

    `volume` is that of the convex hull of all visual or of all collision shapes, the
    larger of both [m³].
    """

    low: np.ndarray
    high: np.ndarray
    volume: float

    @property
    def size(self) -> np.ndarray:
        """Sides of the box, 3 [m]."""
        return self.high - self.low


class Solids:
    """A reader of the shapes of links, which reads each mesh file once.

    Meshes are searched by `origin`, and not read if `meshes` is False. `of` adds to
    `unread`, reasons by link why shapes could not be read.
    """

    def __init__(self, origin: Origin, meshes: bool = True) -> None:
        self.origin, self.meshes = origin, meshes
        self.unread: dict[str, str] = {}
        self._files: dict[Path, np.ndarray] = {}

    def of(self, link: LinkFacts) -> LinkSolid | None:
        """Return box (in the link's frame) and volume of a link's shapes, or None.

        None if the link has no shapes, if a shape cannot be read (the reason is stored
        in `unread`), or if the link has a mesh and `meshes` is False.
        """
        clouds: dict[str, list[np.ndarray]] = {}
        for shape in link.geometry:
            if shape.shape == "mesh" and not self.meshes:
                return None
            try:
                points = self._points(shape, link.name)
            except (DynError, OSError, ValueError, RuntimeError) as error:
                self.unread[link.name] = str(error)
                return None
            R, p = (np.asarray(x, float) for x in shape.pose)
            clouds.setdefault(shape.role, []).append(points @ R.T + p)
        joined = [np.concatenate(parts) for parts in clouds.values() if parts]
        joined = [points for points in joined if len(points)]
        if not joined:
            return None
        volume = max(map(hull_volume, joined))
        whole = np.concatenate(joined)
        return LinkSolid(whole.min(axis=0), whole.max(axis=0), volume)

    def _points(self, shape: Geometry, link: str) -> np.ndarray:
        """Return points whose hull is nearly that of a shape, (n, 3) [m], in its frame.

        ModelError, UnsupportedError or OSError: a mesh file is not found, too large or
        not valid.
        """
        if shape.shape != "mesh":
            return primitive_points(shape.shape, shape.size)
        path = mesh_file(shape.mesh or "", link, self.origin)
        if path not in self._files:
            if path.stat().st_size > LARGEST:
                what = f"{path.name} is larger than {LARGEST // 1_000_000} MB"
                raise UnsupportedError(what)
            try:
                self._files[path] = mesh_corners(path)
            except ValueError as error:
                raise UnsupportedError(f"{path.name}: {error}") from error
        return self._files[path] * np.array(shape.size, float)


def hull_volume(points: np.ndarray) -> float:
    """Return the volume of the convex hull of points (n, 3) [m³].

    It is 0 for points in one plane, less than four, or not finite.
    """
    from scipy.spatial import ConvexHull, QhullError

    try:
        return float(ConvexHull(points).volume)
    except (QhullError, ValueError):
        return 0.0


def primitive_points(kind: str, size: Iterable[float]) -> np.ndarray:
    """Return points of a centred primitive whose hull nearly fills it, (n, 3) [m].

    Sizes are the sides of a box, the radius of a sphere, or radius and length of a
    cylinder or of a capsule's cylindrical part, along z [m]; they are not checked. Any
    other kind counts as a capsule.
    """
    sizes = [*size]
    if kind == "box":
        corners = np.stack(np.meshgrid(*[[-0.5, 0.5]] * 3), axis=-1).reshape(-1, 3)
        return corners * np.array(sizes)
    turn = np.linspace(0.0, 2 * np.pi, 24, endpoint=False)
    ring = np.stack([np.cos(turn), np.sin(turn), np.zeros_like(turn)], axis=1)
    radius = sizes[0]
    if kind == "cylinder":
        half = np.array([0.0, 0.0, sizes[1] / 2])
        return np.concatenate([ring * radius + half, ring * radius - half])
    slope = np.linspace(-np.pi / 2, np.pi / 2, 13)[:, None, None]
    ball = radius * (np.cos(slope) * ring + np.sin(slope) * np.array([0.0, 0.0, 1.0]))
    ball = ball.reshape(-1, 3)
    if kind == "sphere":
        return ball
    half = np.array([0.0, 0.0, sizes[1] / 2])
    return np.concatenate([ball + half, ball - half])
