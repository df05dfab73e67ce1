"""Software rendering of triangles with NumPy: depth buffer, floor with grid, shadows.

It needs no window and no graphics card, and equal scenes give equal bytes. In shapes,
h and w are the height and width of the picture in subpixels (2 along a side of a
pixel), n is the number of corners of all triangles, m that of triangles.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dyn_core.view.scene import Camera
from dyn_core.view.solids import Triangles

SKY_TOP, SKY_LOW = (0.98, 0.985, 1.0), (0.88, 0.91, 0.95)
FLOOR, LINE = np.array((0.93, 0.94, 0.955)), np.array((0.76, 0.79, 0.83))
LIGHT = np.array((0.35, -0.5, 0.8)) / np.linalg.norm((0.35, -0.5, 0.8))
VIEW_ANGLE = 0.7  # vertical angle of view [rad]
FINE = 2  # subpixels along a side of a pixel
CHUNK = 1_000_000  # subpixels of the boxes of triangles that are drawn at once


class Drawn(NamedTuple):
    """A surface in the world [m] and its colour, red, green, blue, 0..255."""

    triangles: Triangles
    color: tuple[int, int, int]


class _Lens:
    """A perspective projection for a picture of some size in subpixels.

    The camera must not look straight up or down. `axes` are its unit vectors: right,
    up, forward, (3, 3), `place` its position, `focus` its focal length [subpixels],
    `near` the smallest depth that is projected [m].
    """

    def __init__(self, camera: Camera, width: int, height: int) -> None:
        self.width, self.height = width, height
        self.place = np.asarray(camera.place, float)
        forward = np.asarray(camera.target, float) - self.place
        forward /= np.linalg.norm(forward)
        right = np.cross(forward, (0.0, 0.0, 1.0))
        right /= np.linalg.norm(right)
        self.axes = np.array([right, np.cross(right, forward), forward])
        self.focus = height / (2 * np.tan(VIEW_ANGLE / 2))
        self.near = 1e-3 * camera.size  # nearer points are not projected

    def project(self, points: np.ndarray) -> np.ndarray:
        """Return column, row [subpixels] and depth [m] of points (n, 3) [m], as (n, 3).

        (0, 0) is the corner at the top left. Depth is measured along the viewing
        direction. All three are NaN for points behind the camera or nearer than `near`.
        """
        local = (points - self.place) @ self.axes.T
        depth = np.where(local[:, 2] > self.near, local[:, 2], np.nan)
        x = self.width / 2 + self.focus * local[:, 0] / depth
        y = self.height / 2 - self.focus * local[:, 1] / depth
        return np.column_stack([x, y, depth])

    def floor(self, level: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the floor's x, y seen by each subpixel, (h, w, 2) [m], and its depth.

        The depth, (h, w) [m], is along the viewing direction, and infinite where no
        floor is seen; the point is meaningless there.
        """
        x = (np.arange(self.width) + 0.5 - self.width / 2) / self.focus
        y = (self.height / 2 - np.arange(self.height) - 0.5) / self.focus
        rays = (
            self.axes[2]
            + x[None, :, None] * self.axes[0]
            + y[:, None, None] * self.axes[1]
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            depth = (level - self.place[2]) / rays[..., 2]
        depth = np.where(depth > self.near, depth, np.inf)
        seen = np.where(np.isfinite(depth), depth, 0.0)
        return self.place[:2] + seen[..., None] * rays[..., :2], depth


class Painter:
    """A renderer of surfaces; the floor and the sky are computed only once.

    The camera must not look straight up or down.
    """

    def __init__(self, camera: Camera, width: int = 640, height: int = 480) -> None:
        self.camera, self.width, self.height = camera, width, height
        self._lens = _Lens(camera, FINE * width, FINE * height)
        floor = self._lens.floor(camera.floor)
        self._floor_depth = floor[1]
        sky, ground, fade = _ground(self._lens, camera, *floor)
        self._lit = fade * ground + (1 - fade) * sky
        self._dark = fade * (0.8 * ground) + (1 - fade) * sky  # in a shadow

    def paint(self, surfaces: list[Drawn]) -> np.ndarray:
        """Return a picture of surfaces, floor and shadows, (height, width, 3) uint8.

        Floor and shadows are drawn only from above the floor; what is behind the floor
        is hidden in any case. Triangles with a corner behind the camera are not drawn.
        """
        lens = self._lens
        points, colors, faces = _gathered(surfaces)
        shade = _shades(points, faces, lens.place)
        depth, front = _nearest(lens, lens.project(points), faces)
        image = self._lit.copy()
        if self.camera.place[2] > self.camera.floor:
            shadow = self._shadow(points, faces)
            image[shadow] = self._dark[shadow]
        shown = (front >= 0) & (self._floor_depth > depth)
        lit = np.clip(colors * shade[:, None], 0.0, 1.0) ** 0.9
        image[shown] = lit[front[shown]]
        parts = [image[i::FINE, j::FINE] for i in range(FINE) for j in range(FINE)]
        return np.asarray(np.round(255 / FINE**2 * sum(parts)), np.uint8)

    def _shadow(self, points: np.ndarray, faces: np.ndarray) -> np.ndarray:
        """Return which subpixels see a shadow on the floor, (h, w) bool.

        `points` are corners (n, 3) [m], `faces` indices of the three corners (m, 3).
        Triangles with no corner above the floor cast none.
        """
        level = self.camera.floor
        faces = faces[(points[faces, 2] > level).any(axis=1)]
        fallen = points - np.maximum(points[:, 2:] - level, 0.0) * (LIGHT / LIGHT[2])
        fallen[:, 2] = level
        dark: np.ndarray = (
            _nearest(self._lens, self._lens.project(fallen), faces)[1] >= 0
        )
        return dark


def _gathered(surfaces: list[Drawn]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return all corners (n, 3) [m], triangle colours (m, 3) 0..1, triangles (m, 3).

    Triangles are indices of their corners; both are in the order of the surfaces.
    """
    starts = np.cumsum([0, *(len(x.triangles.vertices) for x in surfaces)])
    corners = [np.zeros((0, 3)), *(x.triangles.vertices for x in surfaces)]
    faces, colors = [np.zeros((0, 3), int)], [np.zeros((0, 3))]
    for surface, first in zip(surfaces, starts, strict=False):
        faces.append(surface.triangles.faces + first)
        color = np.asarray(surface.color, float) / 255
        colors.append(np.tile(color, (len(surface.triangles.faces), 1)))
    return np.concatenate(corners), np.concatenate(colors), np.concatenate(faces)


def _shades(points: np.ndarray, faces: np.ndarray, eye: np.ndarray) -> np.ndarray:
    """Return the brightness of each triangle, (m,), 0.34 to 1.12; 0.5 without area.

    `faces` (m, 3) are indices of corners `points` (n, 3) [m]. Normals are turned
    towards the camera at `eye` [m].
    """
    a, b, c = (points[faces[:, k]] for k in range(3))
    normal = np.cross(b - a, c - a)
    length = np.linalg.norm(normal, axis=1, keepdims=True)
    normal = normal / np.where(length > 0, length, 1.0)
    toward = np.einsum("ni,ni->n", normal, eye - a) < 0
    normal[toward] *= -1
    bright = np.maximum(normal @ LIGHT, 0.0)
    sky: np.ndarray = 0.5 + 0.16 * normal[:, 2] + 0.48 * bright
    return sky


def _nearest(
    lens: _Lens, projected: np.ndarray, faces: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return depth [m] and index of the nearest triangle at each subpixel, (h, w) each.

    Where there is none they are infinity and -1. `projected` has column, row
    [subpixels] and depth [m] of the corners, (n, 3); triangles with NaN, behind the
    camera, are left out.
    """
    depth = np.full(lens.height * lens.width, np.inf)
    front = np.full(lens.height * lens.width, -1)
    finite = np.isfinite(projected).all(axis=1)
    members = np.flatnonzero(finite[faces].all(axis=1))
    least, most = (f(projected[faces[members], :2], axis=1) for f in (np.min, np.max))
    end = np.array([lens.width, lens.height])
    seen = ((most > 0) & (least < end)).all(axis=1)
    members = members[seen]
    sides = np.minimum(most[seen], end) - np.maximum(least[seen], 0)
    parts = np.cumsum(sides.prod(axis=1)) // CHUNK
    for chosen in np.split(members, np.flatnonzero(np.diff(parts)) + 1):
        _keep_nearest(depth, front, chosen, *_fragments(lens, projected[faces[chosen]]))
    shape = lens.height, lens.width
    return depth.reshape(shape), front.reshape(shape)


def _fragments(
    lens: _Lens, corners: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the subpixels covered by triangles, as three flat arrays.

    In each row that a triangle meets they are the columns between two of its edges. Its
    weights (u, v, w), which are >= 0 inside, and 1 / depth are linear on the screen.
    `corners` (m, 3, 3) are column, row and depth. The arrays are: index of the subpixel
    in the picture, row by row; depth [m]; index of the triangle.
    """
    x, y, z = corners[..., 0], corners[..., 1], corners[..., 2]
    p, q = [1, 2, 0], [2, 0, 1]  # ends of the edge opposite to each corner
    wide, high = x[:, q] - x[:, p], y[:, q] - y[:, p]
    area = (wide[:, 2] * high[:, 0] - high[:, 2] * wide[:, 0])[:, None]
    area = np.where(np.abs(area) > 1e-12, area, np.nan)
    wide, high = wide / area, high / area
    first = np.maximum(np.ceil(y.min(axis=1) - 0.5), 0)
    last = np.minimum(np.floor(y.max(axis=1) - 0.5), lens.height - 1)
    number, row = _counted(first, np.where(np.isfinite(area[:, 0]), last, -1))
    # weights = start - slope * column
    slope, inverse = high[number], 1.0 / z[number]
    start = (
        wide[number] * (row[:, None] + 0.5 - y[number][:, p]) + slope * x[number][:, p]
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        edge = start / slope
    left = np.where(slope < 0, edge, 0.0).max(axis=1)
    right = np.where(slope > 0, edge, lens.width).min(axis=1)
    right[((slope == 0) & (start < 0)).any(axis=1)] = -1
    span, column = _counted(
        np.ceil(left - 0.5), np.minimum(np.floor(right - 0.5), lens.width - 1)
    )
    nearness = (start * inverse).sum(axis=1)[span]
    nearness -= (slope * inverse).sum(axis=1)[span] * (column + 0.5)
    return row[span] * lens.width + column, 1.0 / nearness, number[span]


def _counted(first: np.ndarray, last: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return index of range and number, for all whole numbers of ranges, in order.

    Both ends are included; a range is empty if last < first.
    """
    count = np.maximum(last - first + 1, 0).astype(int)
    which = np.repeat(np.arange(len(count)), count)
    ends = np.cumsum(count)
    return which, np.arange(len(which)) + (first.astype(int) - ends + count)[which]


def _keep_nearest(
    depth: np.ndarray,
    front: np.ndarray,
    chosen: np.ndarray,
    pixel: np.ndarray,
    z: np.ndarray,
    number: np.ndarray,
) -> None:
    """Update the depth buffer, `depth` [m] and `front`, with nearer fragments in place.

    Both are flat; `front` has indices of triangles. `number` is a position in `chosen`,
    indices of the triangles. At equal depths the stored triangle stays; of new
    fragments of equal depth the last one counts.
    """
    nearer = z < depth[pixel]
    pixel, z, number = pixel[nearer], z[nearer], number[nearer]
    order = np.argsort(-z, kind="stable")  # the last of equal pixels is stored
    depth[pixel[order]] = z[order]
    front[pixel[order]] = chosen[number[order]]


def _ground(
    lens: _Lens, camera: Camera, place: np.ndarray, depth: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return sky, floor with a grid, and the opacity of the floor.

    Colours are (h, w, 3), the opacity (h, w, 1), all 0..1; it is 0 for a camera not
    above the floor. `place` and `depth` are those of _Lens.floor.
    """
    share = np.linspace(0.0, 1.0, lens.height)[:, None, None]
    sky = (1 - share) * np.array(SKY_TOP) + share * np.array(SKY_LOW)
    sky = np.broadcast_to(sky, (lens.height, lens.width, 3)).copy()
    step = grid_step(camera.size)
    pixel = np.where(np.isfinite(depth), depth, 1.0) / lens.focus  # one [m]
    apart = np.abs(place / step - np.round(place / step)) * step
    line = np.clip(1.0 - (apart - 0.004 * step) / (1.5 * pixel[..., None]), 0, 1)
    distance = np.linalg.norm(place - camera.target[:2], axis=-1)
    fade = np.clip(1.6 - distance / (2.2 * camera.size), 0, 1)
    fade = np.where(np.isfinite(depth), fade, 0.0)[..., None]
    if camera.place[2] <= camera.floor:
        fade = np.zeros_like(fade)
    return sky, FLOOR + (0.9 * line.max(axis=-1))[..., None] * (LINE - FLOOR), fade


def grid_step(size: float) -> float:
    """Return the largest 1, 2 or 5 times a power of ten up to size / 6 > 0 [m]."""
    wanted = size / 6
    power = 10.0 ** np.floor(np.log10(wanted))
    # 1 + 1e-9: despite rounding, e.g. of the power of ten
    best = max(k for k in (1.0, 2.0, 5.0) if k * power <= wanted * (1 + 1e-9))
    return float(best * power)


def simplified(triangles: Triangles, cell: float) -> Triangles:
    """Return a surface with all corners in a cubic cell [m] merged into their mean."""
    if not len(triangles.faces):
        return triangles
    keys = np.floor(triangles.vertices / cell).astype(np.int64)
    _, number, count = np.unique(keys, axis=0, return_inverse=True, return_counts=True)
    number = number.reshape(-1)
    vertices = np.zeros((len(count), 3))
    np.add.at(vertices, number, triangles.vertices)
    faces = number[triangles.faces]
    a, b, c = faces.T
    return Triangles(vertices / count[:, None], faces[(a != b) & (b != c) & (a != c)])
