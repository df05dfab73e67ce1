"""Closest points of points and segments, vectorised over pairs."""

from __future__ import annotations

import numpy as np


def to_segment(p: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the closest points of segments to points.

        x = a + t (b - a),   t = (p - a).(b - a) / |b - a|² within 0..1

    Args:
        p, a, b: Points and ends of the segments, (..., 3) [m].

    Returns:
        Points x, (..., 3) [m].
    """
    u = b - a
    square = np.sum(u * u, axis=-1, keepdims=True)
    t = np.sum((p - a) * u, axis=-1, keepdims=True) / np.where(square > 0, square, 1.0)
    return a + np.clip(t, 0.0, 1.0) * u


def between_segments(
    a: np.ndarray, b: np.ndarray, c: np.ndarray, d: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the closest points of segments a b and c d.

    The minimum over the closest points of both lines, if they lie within the segments,
    and over each end with the other segment. No pair is ill-conditioned.

    Args:
        a, b, c, d: Ends, (..., 3) [m].

    Returns:
        Points on a b and on c d, (..., 3) each [m].
    """
    a, b, c, d = np.broadcast_arrays(a, b, c, d)
    u, v, w = b - a, d - c, c - a
    uu, vv, uv = (np.sum(x * y, axis=-1) for x, y in ((u, u), (v, v), (u, v)))
    uw, vw = np.sum(u * w, axis=-1), np.sum(v * w, axis=-1)
    det = uu * vv - uv * uv
    crossing = det > 1e-14 * uu * vv
    det = np.where(crossing, det, 1.0)
    s, t = (uw * vv - vw * uv) / det, (uw * uv - vw * uu) / det
    crossing &= (s >= 0.0) & (s <= 1.0) & (t >= 0.0) & (t <= 1.0)
    s, t = np.where(crossing, s, 0.0)[..., None], np.where(crossing, t, 0.0)[..., None]
    on_first = np.stack([a + s * u, a, b, to_segment(c, a, b), to_segment(d, a, b)])
    on_second = np.stack([c + t * v, to_segment(a, c, d), to_segment(b, c, d), c, d])
    apart = np.linalg.norm(on_second - on_first, axis=-1)
    apart[0] = np.where(crossing, apart[0], np.inf)
    least = np.argmin(apart, axis=0)[None, ..., None]
    first = np.take_along_axis(on_first, least, axis=0)[0]
    return first, np.take_along_axis(on_second, least, axis=0)[0]


def normal_to(u: np.ndarray) -> np.ndarray:
    """Return a unit vector orthogonal to u, from the axis where u is smallest."""
    axis = np.zeros(3)
    axis[np.argmin(np.abs(u))] = 1.0
    n = axis - u * (u @ axis) / max(float(u @ u), 1e-300)
    return n / np.linalg.norm(n)


def cross(u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Return u x v of two vectors, faster than numpy.cross."""
    return np.array(
        (
            u[1] * v[2] - u[2] * v[1],
            u[2] * v[0] - u[0] * v[2],
            u[0] * v[1] - u[1] * v[0],
        )
    )
