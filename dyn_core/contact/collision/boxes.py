"""Contact manifolds of a box with a box or a capsule: separating axes, clipping, edges.

A core is a centre, unit axes (rows) and half lengths along them: a box has three axes,
a segment one. A capsule is a segment with a radius.

The largest separation over the axes of S. Gottschalk is a lower bound of the distance,
and equal to it if the manifold of that axis attains it. Otherwise (a corner near an
edge or a corner, parallel edges) all pairs of edges are compared. Faces are enlarged by
a millionth of the size, so that equal boxes stacked with small vibrations keep four
contacts; all other distances are exact.

Source: C. Ericson, Real-Time Collision Detection, 2005, 4.4.1 (separating axes), 8.3.4
(clipping of the incident face); the features, tolerances and the test of exactness are
not from the literature.
"""

from __future__ import annotations

from collections.abc import Hashable
from itertools import product
from typing import NamedTuple

import numpy as np

from dyn_core.contact.collision.segments import between_segments

EXACT = 1e-10  # of the size: distances this close are equal
SAME = 1e-6  # of the size: a point this far beyond a face's rim is over the face
STEADY = 0.95  # relative depth below which edges are preferred to a face
_SIGNS = np.array(list(product((-1.0, 1.0), repeat=3)))[:, ::-1]  # bit k: axis k
_BITS = np.array((1, 2, 4))


class Core(NamedTuple):
    """A box or a segment: centre (3,), axes (k, 3), half lengths (k,) [m]."""

    c: np.ndarray
    axes: np.ndarray
    half: np.ndarray

    @property
    def corners(self) -> np.ndarray:
        """Corners of a box (8, 3), bit k of the index: side of axis k; or ends."""
        return self.c + (_SIGNS[: 2 ** len(self.half), : len(self.half)]) @ (
            self.axes * self.half[:, None]
        )


class BoxContact(NamedTuple):
    """A contact: feature, midpoint, normal from b to a, gap [m]."""

    feature: Hashable
    point: np.ndarray
    normal: np.ndarray
    gap: float


_RawContact = tuple[Hashable, np.ndarray, np.ndarray, np.ndarray]  # x_a, x_b, n


class _Axes(NamedTuple):
    """Candidate separating axes: normals from b to a, separations, number of faces.

    First the 3 faces of b, then those of a box a, then a's axes x b's axes.
    """

    n: np.ndarray
    s: np.ndarray
    faces: int


def box_contacts(
    core_a: tuple, radius: float, core_b: tuple, margin: float
) -> list[BoxContact]:
    """Return the contacts of a box or capsule a with a box b.

        gap = n . (x_a - x_b) - radius

    Args:
        core_a: Centre, axes and half lengths of a box or segment.
        radius: Radius of the capsule; 0 for a box [m].
        core_b: Centre, axes and half lengths of the box.
        margin: Largest gap that counts [m].

    Source: LCP-2.
    """
    a, b = Core(*core_a), Core(*core_b)
    axes = _separations(a, b)
    best = float(axes.s.max())
    if best - radius > margin:
        return []
    tol = EXACT * float(a.half.sum() + b.half.sum())
    rows: list[_RawContact] = []
    face = int(np.argmax(axes.s[: axes.faces] >= axes.s[: axes.faces].max() - tol))
    s_face = float(axes.s[face])
    if s_face >= best - tol or (best < 0.0 and STEADY * s_face >= best - tol):
        rows = _face(a, b, face, axes.n[face], tol)
        if rows and min(_gap(row) for row in rows) > s_face + tol:
            rows = []
    if not rows and len(axes.s) > axes.faces:
        k = axes.faces + int(np.argmax(axes.s[axes.faces :]))
        row = _edges(a, b, k - axes.faces, axes.n[k])
        apart = float(np.linalg.norm(row[1] - row[2]))
        if best <= 0.0 or (apart <= axes.s[k] + tol and axes.s[k] >= best - tol):
            rows = [row]
    if not rows:
        rows = _nearest(a, b, axes.n[int(np.argmax(axes.s))], tol)
    contacts = []
    for feature, x, y, n in rows:
        gap = float(n @ (x - y)) - radius
        if gap <= margin:
            contacts.append(BoxContact(feature, (x - radius * n + y) / 2, n, gap))
    return contacts


def _gap(row: _RawContact) -> float:
    return float(row[3] @ (row[1] - row[2]))


def _separations(a: Core, b: Core) -> _Axes:
    """Return the separation along each candidate, b to a.

    s = |n . (c_a - c_b)| - sum_k h_k |n . u_k|
    """
    crossed = np.cross(a.axes[:, None], b.axes[None]).reshape(-1, 3)
    size = np.sqrt(np.sum(crossed * crossed, axis=1))
    usable = size > 1e-6
    crossed = crossed / np.where(usable, size, 1.0)[:, None]
    faces = [b.axes, a.axes] if len(a.axes) == 3 else [b.axes]
    n = np.concatenate([*faces, crossed])
    along = n @ (a.c - b.c)
    s = np.abs(along) - np.abs(n @ a.axes.T) @ a.half - np.abs(n @ b.axes.T) @ b.half
    count = 3 * len(faces)
    s[count:][~usable] = -np.inf
    return _Axes(np.where(along < 0.0, -1.0, 1.0)[:, None] * n, s, count)


def _face(a: Core, b: Core, face: int, n: np.ndarray, tol: float) -> list[_RawContact]:
    """Return the contacts of a face of one shape with the opposite face or segment."""
    of_b, k = face < 3, face % 3
    face_box, other = (b, a) if of_b else (a, b)
    out = n if of_b else -n
    i, j = (k + 1) % 3, (k + 2) % 3
    frame = np.stack([face_box.axes[i], face_box.axes[j], out])
    half = face_box.half[[i, j]]
    top = np.array((0.0, 0.0, face_box.half[k]))
    polygon = (_facing(other, out) - face_box.c) @ frame.T - top
    size = SAME * float(a.half.sum() + b.half.sum())
    points = _clipped(polygon, half, size)
    rows: list[_RawContact] = []
    if len(other.half) == 1:
        # Points of a segment are labelled by the nearer end: stable in time.
        u = polygon[1] - polygon[0]
        along = [(p - polygon[0]) @ u / max(u @ u, 1e-300) for p in points]
        labels: list[Hashable] = [("end", int(t > 0.5)) for t in along]
        if len(points) > 1:
            low, high = int(np.argmin(along)), int(np.argmax(along))
            points = [points[low], points[high]]
            labels = [("end", 0), ("end", 1)]
            if along[high] - along[low] < 1e-9:
                points, labels = points[:1], [("end", int(along[low] > 0.5))]
    else:
        labels = [
            _label(a, b, of_b, face_box.c + (p + top) @ frame, (k, i, j), p, out, size)
            for p in points
        ]
    for label, p in zip(labels, points, strict=True):
        if all(label != row[0] for row in rows):
            high = face_box.c + (p + top) @ frame
            low = high - out * p[2]
            rows.append((label, high, low, n) if of_b else (label, low, high, n))
    return rows


def _facing(core: Core, out: np.ndarray) -> np.ndarray:
    """Return the corners, in order, of the face most opposed to `out`; or the ends."""
    if len(core.half) == 1:
        return core.corners
    along = core.axes @ out
    k = int(np.argmax(np.abs(along)))
    i, j = (k + 1) % 3, (k + 2) % 3
    signs = np.empty((4, 3))
    signs[:, k] = -1.0 if along[k] > 0.0 else 1.0
    signs[:, i], signs[:, j] = (-1.0, 1.0, 1.0, -1.0), (-1.0, -1.0, 1.0, 1.0)
    return core.c + (signs * core.half) @ core.axes


def _clipped(polygon: np.ndarray, half: np.ndarray, tol: float) -> list[np.ndarray]:
    """Return the polygon clipped to |x| <= half_x, |y| <= half_y."""
    points = list(polygon)
    for k in (0, 1):
        for side in (-1.0, 1.0):
            kept: list[np.ndarray] = []
            over = [side * p[k] - half[k] for p in points]
            for m, p in enumerate(points):
                q, d_p, d_q = points[m - 1], over[m], over[m - 1]
                if (d_p > tol) != (d_q > tol):
                    kept.append(q + (p - q) * (d_q / (d_q - d_p)))
                if d_p <= tol:
                    kept.append(p)
            points = kept
    return points


def _label(
    a: Core,
    b: Core,
    of_b: bool,
    x: np.ndarray,
    frame: tuple[int, int, int],
    p: np.ndarray,
    out: np.ndarray,
    tol: float,
) -> Hashable:
    """Label a point of the overlap of two faces: a corner of a or b, or two edges.

    The label does not depend on which box has the reference face.
    """
    owner, other = (b, a) if of_b else (a, b)
    k, i, j = frame
    x_owner = np.empty(3)
    x_owner[k] = owner.half[k] * (1.0 if owner.axes[k] @ out > 0.0 else -1.0)
    x_owner[i], x_owner[j] = p[0], p[1]
    x_other = other.axes @ (x - other.c)
    facing = int(np.argmax(np.abs(other.axes @ out)))
    places = {of_b: (x_owner, owner, k), not of_b: (x_other, other, facing)}
    edges = []
    for is_b in (False, True):
        y, box, normal = places[is_b]
        bits = int((y > 0.0) @ _BITS)
        off = np.abs(np.abs(y) - box.half)
        off[normal] = 0.0
        if off.max() <= tol:
            return ("b" if is_b else "a", bits)
        off[normal] = np.inf
        free = 3 - normal - int(np.argmin(off))
        edges.append(_edge(free, bits))
    return ("edges", *edges)


def _edge(direction: int, bits: int) -> int:
    """Return the index of an edge: its direction, and its sides of the other axes."""
    return 8 * direction + (bits & ~(1 << direction))


def _edges(a: Core, b: Core, k: int, n: np.ndarray) -> _RawContact:
    """Return the closest points of the two edges that face each other along n."""
    i, j = divmod(k, 3)
    ends, names = [], []
    for core, axis, way in ((a, i, -n), (b, j, n)):
        signs = np.where(core.axes @ way > 0.0, 1.0, -1.0)
        bits = int((signs > 0.0) @ _BITS[: len(signs)])
        side = signs * core.half
        side[axis] = 0.0
        middle, u = core.c + side @ core.axes, core.axes[axis] * core.half[axis]
        ends += [middle - u, middle + u]
        names.append(_edge(axis, bits))
    x, y = between_segments(*ends)
    return ("edges", *names), x, y, n


def _all_edges(core: Core) -> tuple[np.ndarray, np.ndarray, list[int]]:
    """Return both ends of every edge and the edges' numbers."""
    corners, pairs = core.corners, []
    for k in range(len(core.half)):
        low = [m for m in range(len(corners)) if not m & 1 << k]
        pairs += [(m, m | 1 << k, _edge(k, m)) for m in low]
    first, second, names = zip(*pairs, strict=True)
    return corners[list(first)], corners[list(second)], list(names)


def _nearest(a: Core, b: Core, n: np.ndarray, tol: float) -> list[_RawContact]:
    """Return the closest points of all edges: two contacts for parallel edges."""
    a0, a1, a_names = _all_edges(a)
    b0, b1, b_names = _all_edges(b)
    x, y = between_segments(a0[:, None], a1[:, None], b0[None], b1[None])
    apart = np.linalg.norm(x - y, axis=-1)
    d = float(apart.min())
    first = np.unravel_index(int(np.argmax(apart <= d + 1e-3 * tol)), apart.shape)
    if d > tol:
        n = (x[first] - y[first]) / d
    near = np.argwhere(apart <= d + 10.0 * tol)
    names: tuple[Hashable, ...] = "edges", a_names[first[0]], b_names[first[1]]
    rows: list[_RawContact] = [(names, x[first], y[first], n)]
    best = 0.0
    for i, j in near:
        u, v = a1[i] - a0[i], b1[j] - b0[j]
        length = np.linalg.norm(u)
        if np.linalg.norm(np.cross(u, v)) > SAME * length * np.linalg.norm(v):
            continue
        u = u / length
        ends = sorted(((b0[j] - a0[i]) @ u, (b1[j] - a0[i]) @ u))
        low, high = max(0.0, ends[0]), min(float(length), ends[1])
        if high - low > max(best, 10.0 * tol):
            best = high - low
            names = "edges", a_names[i], b_names[j]
            points = [a0[i] + t * u for t in (low, high)]
            rows = [((*names, k), p, p - n * d, n) for k, p in enumerate(points)]
    return rows
