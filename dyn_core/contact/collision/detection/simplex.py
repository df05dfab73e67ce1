"""The point of a simplex that is closest to the origin.

Written in the subset of Python that is compiled (dyn_core.engines.machine_code).

Source: C. Ericson, Real-Time Collision Detection, 2005, 5.1.5, 5.1.6 (regions of a
triangle and of a tetrahedron).
"""

from __future__ import annotations

import math

from dyn_core.engines.machine_code import FloatArray, FloatArray2, machine_code


@machine_code
def in_triangle(
    ax: float,
    ay: float,
    az: float,
    bx: float,
    by: float,
    bz: float,
    cx: float,
    cy: float,
    cz: float,
) -> tuple[float, float, float]:
    """Return the weights of a triangle's corners at its point closest to the origin.

    They are 0 or more and add up to 1. A triangle without an area counts as an edge or
    a corner.
    """
    ux, uy, uz = bx - ax, by - ay, bz - az
    vx, vy, vz = cx - ax, cy - ay, cz - az
    d1 = -(ux * ax + uy * ay + uz * az)
    d2 = -(vx * ax + vy * ay + vz * az)
    if d1 <= 0.0 and d2 <= 0.0:
        return 1.0, 0.0, 0.0
    d3 = -(ux * bx + uy * by + uz * bz)
    d4 = -(vx * bx + vy * by + vz * bz)
    if d3 >= 0.0 and d4 <= d3:
        return 0.0, 1.0, 0.0
    d5 = -(ux * cx + uy * cy + uz * cz)
    d6 = -(vx * cx + vy * cy + vz * cz)
    if d6 >= 0.0 and d5 <= d6:
        return 0.0, 0.0, 1.0
    # (b - a) x (c - a), and the parts of the triangles that the origin makes.
    nx, ny, nz = uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx
    w_c = nx * (ay * bz - az * by) + ny * (az * bx - ax * bz) + nz * (ax * by - ay * bx)
    w_a = nx * (by * cz - bz * cy) + ny * (bz * cx - bx * cz) + nz * (bx * cy - by * cx)
    w_b = nx * (cy * az - cz * ay) + ny * (cz * ax - cx * az) + nz * (cx * ay - cy * ax)
    if w_c <= 0.0 and d1 >= 0.0 and d3 <= 0.0:
        if d1 - d3 <= 0.0:
            return 1.0, 0.0, 0.0
        t = d1 / (d1 - d3)
        return 1.0 - t, t, 0.0
    if w_b <= 0.0 and d2 >= 0.0 and d6 <= 0.0:
        if d2 - d6 <= 0.0:
            return 1.0, 0.0, 0.0
        t = d2 / (d2 - d6)
        return 1.0 - t, 0.0, t
    if w_a <= 0.0 and d4 - d3 >= 0.0 and d5 - d6 >= 0.0:
        size = (d4 - d3) + (d5 - d6)
        if size <= 0.0:
            return 0.0, 1.0, 0.0
        t = (d4 - d3) / size
        return 0.0, 1.0 - t, t
    size = w_a + w_b + w_c
    if not size > 0.0:
        return 1.0, 0.0, 0.0
    return w_a / size, w_b / size, w_c / size


@machine_code
def rows_in_triangle(
    P: FloatArray2, a: int, b: int, c: int
) -> tuple[float, float, float, float]:
    """Return in_triangle of rows a, b, c of P, and the point's square distance [m²]."""
    s, t, u = in_triangle(
        P[a, 0], P[a, 1], P[a, 2], P[b, 0], P[b, 1], P[b, 2], P[c, 0], P[c, 1], P[c, 2]
    )
    x = s * P[a, 0] + t * P[b, 0] + u * P[c, 0]
    y = s * P[a, 1] + t * P[b, 1] + u * P[c, 1]
    z = s * P[a, 2] + t * P[b, 2] + u * P[c, 2]
    return s, t, u, x * x + y * y + z * z


@machine_code
def outside(P: FloatArray2, a: int, b: int, c: int, d: int) -> bool:
    """Return whether the origin and row d lie on different sides of triangle a, b, c.

    True, too, if the four points are nearly in a plane. a, b, c, d are rows of P, with
    points in its first three columns.
    """
    ux, uy, uz = P[b, 0] - P[a, 0], P[b, 1] - P[a, 1], P[b, 2] - P[a, 2]
    vx, vy, vz = P[c, 0] - P[a, 0], P[c, 1] - P[a, 1], P[c, 2] - P[a, 2]
    nx, ny, nz = uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx
    wx, wy, wz = P[d, 0] - P[a, 0], P[d, 1] - P[a, 1], P[d, 2] - P[a, 2]
    mine = -(nx * P[a, 0] + ny * P[a, 1] + nz * P[a, 2])
    other = nx * wx + ny * wy + nz * wz
    size = math.sqrt((nx * nx + ny * ny + nz * nz) * (wx * wx + wy * wy + wz * wz))
    if abs(other) <= 1e-12 * size:
        return True
    return (mine < 0.0 and other > 0.0) or (mine > 0.0 and other < 0.0)


@machine_code
def reduce(P: FloatArray2, weights: FloatArray, size: int) -> int:
    """Reduce a simplex to the corners that span its point closest to the origin.

    Rows of P, with coordinates in the first three columns, move up. The weights of the
    remaining corners are above 0, then follow zeros or old values. Returns the number
    of remaining corners; 4: the simplex contains the origin, P is unchanged and the
    weights are 0.
    """
    for k in range(4):
        weights[k] = 0.0
    if size == 1:
        weights[0] = 1.0
    elif size == 2:
        ux, uy, uz = P[1, 0] - P[0, 0], P[1, 1] - P[0, 1], P[1, 2] - P[0, 2]
        square = ux * ux + uy * uy + uz * uz
        t = 0.0
        if square > 0.0:
            t = -(ux * P[0, 0] + uy * P[0, 1] + uz * P[0, 2]) / square
        t = min(max(t, 0.0), 1.0)
        weights[0] = 1.0 - t
        weights[1] = t
    elif size == 3:
        s, t, u, _ = rows_in_triangle(P, 0, 1, 2)
        weights[0] = s
        weights[1] = t
        weights[2] = u
    else:
        best = math.inf
        for k in range(4):
            a, b, c = (k + 1) % 4, (k + 2) % 4, (k + 3) % 4
            if not outside(P, a, b, c, k):
                continue
            s, t, u, square = rows_in_triangle(P, a, b, c)
            if square < best:
                best = square
                weights[k] = 0.0
                weights[a] = s
                weights[b] = t
                weights[c] = u
        if best == math.inf:  # the origin is on the inner side of all four faces
            return 4
    kept = 0
    for k in range(size):
        if weights[k] > 0.0:
            weights[kept] = weights[k]
            for c in range(6):
                P[kept, c] = P[k, c]
            kept += 1
    return kept
