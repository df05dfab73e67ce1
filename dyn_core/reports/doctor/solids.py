"""Shapes of links as clouds of points: boxes around them, volumes of their hulls."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dyn_core.errors import DynError, UnsupportedError
from dyn_core.model.description import Geometry
from dyn_core.model.sources.meshes import mesh_file
from dyn_core.model.sources.origin import Origin
from dyn_core.reports.doctor.facts import LinkFacts

LARGEST = 30_000_000  # bytes of a mesh file that is read


class LinkSolid(NamedTuple):
    """What the shapes of a link fill.

    Attributes:
        low, high: Corners of the box around all of them, link's frame, 3 [m].
        volume: Of the convex hulls, the larger of visual and collision shapes [m³].
    """

    low: np.ndarray
    high: np.ndarray
    volume: float

    @property
    def size(self) -> np.ndarray:
        """Sides of the box, 3 [m]."""
        return self.high - self.low


class Solids:
    """Solids of links, each mesh file read once.

    Attributes:
        unread: What could not be read, by link.
    """

    def __init__(self, origin: Origin, meshes: bool = True) -> None:
        self.origin, self.meshes = origin, meshes
        self.unread: dict[str, str] = {}
        self._files: dict[Path, np.ndarray] = {}

    def of(self, link: LinkFacts) -> LinkSolid | None:
        """Return what a link's shapes fill; None without shapes that can be read."""
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
        """Return points whose hull is (nearly) that of a shape, (n, 3), its frame."""
        if shape.shape != "mesh":
            return primitive_points(shape.shape, shape.size)
        path = mesh_file(shape.mesh or "", link, self.origin)
        if path not in self._files:
            self._files[path] = mesh_points(path)
        return self._files[path] * np.array(shape.size, float)


def hull_volume(points: np.ndarray) -> float:
    """Return the volume of the convex hull of points [m³]; 0 where they are flat."""
    from scipy.spatial import ConvexHull, QhullError

    try:
        return float(ConvexHull(points).volume)
    except (QhullError, ValueError):
        return 0.0


def primitive_points(kind: str, size: Iterable[float]) -> np.ndarray:
    """Return points on the surface of a box, sphere, cylinder or capsule, (n, 3)."""
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


def mesh_points(path: Path) -> np.ndarray:
    """Return the corners of a mesh file, (n, 3): STL and OBJ, others by coal.

    Raises:
        UnsupportedError: The file is very large, or of a kind that needs coal.
        ValueError: It is damaged.
    """
    if path.stat().st_size > LARGEST:
        raise UnsupportedError(f"{path.name} is larger than {LARGEST // 1_000_000} MB")
    suffix = path.suffix.lower()
    if suffix == ".stl":
        points = _stl_points(path.read_bytes())
    elif suffix == ".obj":
        points = _obj_points(path.read_text(encoding="utf-8", errors="replace"))
    else:
        points = _coal_points(path)
    if not len(points) or not np.isfinite(points).all():
        raise ValueError(f"{path.name} has no corners, or numbers that are not finite")
    return points


def _stl_points(content: bytes) -> np.ndarray:
    """Return the corners of a binary or ASCII STL."""
    count = struct.unpack_from("<I", content, 80)[0] if len(content) >= 84 else -1
    if count >= 0 and len(content) >= 84 + 50 * count and count > 0:
        if not content.lstrip().startswith(b"solid") or len(content) == 84 + 50 * count:
            rows = np.frombuffer(content, np.uint8, 50 * count, 84).reshape(count, 50)
            corners = rows[:, 12:48].copy().view("<f4").reshape(-1, 3)
            return np.unique(corners.astype(float), axis=0)
    lines = content.decode("ascii", "replace").split("\n")
    rows_of = [x.split()[1:4] for x in lines if x.lstrip().startswith("vertex")]
    return np.array(rows_of, float).reshape(-1, 3)


def _obj_points(text: str) -> np.ndarray:
    """Return the corners of an OBJ."""
    rows = [line.split()[1:4] for line in text.split("\n") if line.startswith("v ")]
    return np.array(rows, float).reshape(-1, 3)


def _coal_points(path: Path) -> np.ndarray:
    """Return the corners of a mesh of another kind, such as DAE."""
    try:
        import coal
    except ImportError as error:
        raise UnsupportedError(
            f"{path.suffix} files need coal: pip install 'dyn_ros[collision]'"
        ) from error
    return np.array(coal.MeshLoader().load(str(path), np.ones(3)).vertices(), float)
