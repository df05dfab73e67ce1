"""Contacts between edges of two boxes, or between a segment and edges of a box.

Written in the subset of Python that is compiled (dyn_core.engines.machine_code).
"""

from __future__ import annotations

import math

from dyn_core.contact.collision.detection.box_faces import (
    EDGES,
    PAIRS,
    corner_bits,
    edge_number,
)
from dyn_core.contact.collision.detection.rounded import between_segments
from dyn_core.contact.collision.detection.tables import Contacts, Work, put_in_frame
from dyn_core.engines.machine_code import FloatArray, machine_code

PARALLEL = 1e-6  # sine below which edges are parallel


@machine_code
def corner_of(F: FloatArray, half: FloatArray, bits: int) -> tuple[float, float, float]:
    """Return corner `bits` of a box in the coordinates in which its frame F is given.

    Args:
        F, half: Frame and half lengths.
        bits: Number of the corner; see corner_bits.
    """
    x = half[0] if bits % 2 == 1 else -half[0]
    y = half[1] if bits // 2 % 2 == 1 else -half[1]
    z = half[2] if bits // 4 % 2 == 1 else -half[2]
    return (
        F[0] * x + F[1] * y + F[2] * z + F[9],
        F[3] * x + F[4] * y + F[5] * z + F[10],
        F[6] * x + F[7] * y + F[8] * z + F[11],
    )


@machine_code
def box_corner(half: FloatArray, bits: int) -> tuple[float, float, float]:
    """Return corner `bits` of a box in its own frame; see corner_bits."""
    x = half[0] if bits % 2 == 1 else -half[0]
    y = half[1] if bits // 2 % 2 == 1 else -half[1]
    z = half[2] if bits // 4 % 2 == 1 else -half[2]
    return x, y, z


@machine_code
def edge_ends(number: int, box: bool) -> tuple[int, int, int]:
    """Return both corners of an edge, and its number in features (edge_number).

    Args:
        number: Index of the edge: along x from 0, along y from 4, along z from 8. A
            segment has one edge, along z, with any index and the number 0.
        box: Whether the shape is a box; False: a segment.
    """
    if not box:
        return 0, 4, 0
    k, rest = number // 4, number % 4
    if k == 0:
        return 2 * rest, 2 * rest + 1, 2 * rest
    if k == 1:
        low = rest % 2 + rest // 2 * 4
        return low, low + 2, 8 + low
    return rest, rest + 4, 16 + rest


@machine_code
def edge_contacts(
    contacts: Contacts,
    count: int,
    work: Work,
    B: FloatArray,
    a: FloatArray,
    b: FloatArray,
    box: bool,
    best: float,
    best_edge: float,
    tol: float,
    margin: float,
) -> int:
    """Add the contact of the pair of edges with the largest separation, or the closest.

    Args:
        contacts, count: Contacts, and their number.
        work: Separations in `axis`, and the frame of a in b in `relative[0]`; only
            read.
        B: Frame of b in the world.
        a, b: Half lengths and radius of both shapes.
        box: Whether a is a box; False: a segment.
        best, best_edge: Largest separation of all axes, and of the axes of edges; -inf:
            there are none [m].
        tol: Distance up to which separations are equal [m].
        margin: Maximum gap of a contact [m].

    Returns:
        The new number of contacts.
    """
    C, axis = work.relative[0], work.axis
    first = 0 if box else 2
    row = 6 + 3 * first
    while row < 14 and axis[row, 3] < best_edge:
        row += 1
    if best_edge > -math.inf:
        nx, ny, nz = axis[row, 0], axis[row, 1], axis[row, 2]
        i, j = (row - 6) // 3, (row - 6) % 3
        bits = corner_bits(
            -(C[0] * nx + C[3] * ny + C[6] * nz),
            -(C[1] * nx + C[4] * ny + C[7] * nz),
            -(C[2] * nx + C[5] * ny + C[8] * nz),
        )
        name_a = edge_number(i, bits)
        name_b = edge_number(j, corner_bits(nx, ny, nz))
        low = name_a % 8
        weight = 4 if i == 2 else i + 1
        ax, ay, az = corner_of(C, a, low)
        bx, by, bz = corner_of(C, a, low + weight)
        if not box:
            name_a = 0
        low = name_b % 8
        weight = 4 if j == 2 else j + 1
        cx, cy, cz = box_corner(b, low)
        dx, dy, dz = box_corner(b, low + weight)
        x, y, z, p, q, r = between_segments(
            ax, ay, az, bx, by, bz, cx, cy, cz, dx, dy, dz
        )
        apart = math.sqrt((x - p) * (x - p) + (y - q) * (y - q) + (z - r) * (z - r))
        if best <= 0.0 or (apart <= best_edge + tol and best_edge >= best - tol):
            return put_edges(
                contacts, count, B, EDGES + 24 * name_a + name_b,
                x, y, z, p, q, r, nx, ny, nz, a[3], margin,
            )  # fmt: skip
    row = 0
    while row < 14 and axis[row, 3] < best:
        row += 1
    return closest_edges(
        contacts, count, work, B, a, b, box, axis[row, 0], axis[row, 1], axis[row, 2],
        tol, margin,
    )  # fmt: skip


@machine_code
def put_edges(
    contacts: Contacts,
    count: int,
    B: FloatArray,
    feature: int,
    x: float,
    y: float,
    z: float,
    p: float,
    q: float,
    r: float,
    nx: float,
    ny: float,
    nz: float,
    radius: float,
    margin: float,
) -> int:
    """Add the contact of two points unless its gap is above `margin`.

    Return the new number of contacts.

    Args:
        contacts, count: Contacts, and their number.
        B: Frame of b in the world; all others are in coordinates of b.
        feature: Feature of the contact.
        x, y, z, p, q, r: Point of a, and point of b [m].
        nx, ny, nz: Unit normal from b to a.
        radius: Radius about the point of a [m].
        margin: Maximum gap of a contact [m].
    """
    gap = nx * (x - p) + ny * (y - q) + nz * (z - r) - radius
    if not gap <= margin:
        return count
    return put_in_frame(
        contacts, count, B, feature,
        (x - radius * nx + p) / 2, (y - radius * ny + q) / 2, (z - radius * nz + r) / 2,
        nx, ny, nz, gap,
    )  # fmt: skip


@machine_code
def edges_apart(
    C: FloatArray, a: FloatArray, b: FloatArray, box: bool, one: int, two: int, d: float
) -> bool:
    """Return whether the balls about two edges are more than d apart.

    If they are not, the edges may be apart all the same.

    Args:
        C: Frame of a in b.
        a, b, box: Half lengths of both shapes; whether a is a box, else a segment.
        one, two: Indices of the edges of a and of b; see edge_ends.
        d: Distance [m].
    """
    low, high, _ = edge_ends(one, box)
    ax, ay, az = corner_of(C, a, low)
    bx, by, bz = corner_of(C, a, high)
    low, high, _ = edge_ends(two, True)
    cx, cy, cz = box_corner(b, low)
    dx, dy, dz = box_corner(b, high)
    reach = a[2] + b[two // 4] + d
    if box:
        reach += a[one // 4] - a[2]
    x, y, z = (ax + bx - cx - dx) / 2, (ay + by - cy - dy) / 2, (az + bz - cz - dz) / 2
    return x * x + y * y + z * z > 1.000000001 * reach * reach


@machine_code
def edge_pair(
    C: FloatArray, a: FloatArray, b: FloatArray, box: bool, one: int, two: int
) -> tuple[float, float, float, float, float, float]:
    """Return the closest points of an edge of a and an edge of b, in the frame of b.

    Args:
        C: Frame of a in b.
        a, b: Half lengths of both shapes.
        box: Whether a is a box; False: a segment.
        one, two: Indices of the edges of a and of b; see edge_ends.
    """
    low, high, _ = edge_ends(one, box)
    ax, ay, az = corner_of(C, a, low)
    bx, by, bz = corner_of(C, a, high)
    low, high, _ = edge_ends(two, True)
    cx, cy, cz = box_corner(b, low)
    dx, dy, dz = box_corner(b, high)
    return between_segments(ax, ay, az, bx, by, bz, cx, cy, cz, dx, dy, dz)


@machine_code
def closest_edges(
    contacts: Contacts,
    count: int,
    work: Work,
    B: FloatArray,
    a: FloatArray,
    b: FloatArray,
    box: bool,
    nx: float,
    ny: float,
    nz: float,
    tol: float,
    margin: float,
) -> int:
    """Add the contact of the closest edges: two contacts if these are parallel.

    A contact with a gap above `margin` is left out; `work` is only read.

    Args:
        contacts, count: Contacts, and their number.
        work: Memory; `relative[0]` is the frame of a in b.
        B: Frame of b in the world.
        a, b, box: Half lengths and radius of both shapes; whether a is a box, else a
            segment.
        nx, ny, nz: Unit normal from b to a in coordinates of b, used if the closest
            edges touch.
        tol: Distance up to which separations are equal [m].
        margin: Maximum gap of a contact [m].

    Returns:
        The new number of contacts.
    """
    C = work.relative[0]
    edges = 12 if box else 1
    d = math.inf
    for one in range(edges):
        for two in range(12):
            if edges_apart(C, a, b, box, one, two, d):
                continue
            x, y, z, p, q, r = edge_pair(C, a, b, box, one, two)
            size = (x - p) * (x - p) + (y - q) * (y - q) + (z - r) * (z - r)
            d = min(d, math.sqrt(size))
    start = -1
    best = 0.0
    feature, t_low, t_high, from_a = 0, 0.0, 0.0, 0
    fx, fy, fz, fp, fq, fr = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for one in range(edges):
        for two in range(12):
            if edges_apart(C, a, b, box, one, two, d + 10.0 * tol):
                continue
            x, y, z, p, q, r = edge_pair(C, a, b, box, one, two)
            size = (x - p) * (x - p) + (y - q) * (y - q) + (z - r) * (z - r)
            apart = math.sqrt(size)
            low, high, name_a = edge_ends(one, box)
            first, second, name_b = edge_ends(two, True)
            if start < 0 and apart <= d + 1e-3 * tol:
                start = EDGES + 24 * name_a + name_b
                fx, fy, fz, fp, fq, fr = x, y, z, p, q, r
                if d > tol:
                    nx, ny, nz = (x - p) / d, (y - q) / d, (z - r) / d
            if not apart <= d + 10.0 * tol:
                continue
            ax, ay, az = corner_of(C, a, low)
            bx, by, bz = corner_of(C, a, high)
            cx, cy, cz = box_corner(b, first)
            dx, dy, dz = box_corner(b, second)
            ux, uy, uz = bx - ax, by - ay, bz - az
            vx, vy, vz = dx - cx, dy - cy, dz - cz
            length = math.sqrt(ux * ux + uy * uy + uz * uz)
            wx, wy, wz = uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx
            sine = math.sqrt(wx * wx + wy * wy + wz * wz)
            if sine > PARALLEL * length * math.sqrt(vx * vx + vy * vy + vz * vz):
                continue
            if not length > 0.0:
                continue
            s = ((cx - ax) * ux + (cy - ay) * uy + (cz - az) * uz) / length
            t = ((dx - ax) * ux + (dy - ay) * uy + (dz - az) * uz) / length
            s, t = max(0.0, min(s, t)), min(length, max(s, t))
            if t - s > max(best, 10.0 * tol):
                best = t - s
                feature = EDGES + PAIRS + 2 * (24 * name_a + name_b)
                t_low, t_high, from_a = s / length, t / length, one
    if best <= 0.0:
        return put_edges(
            contacts, count, B, start, fx, fy, fz, fp, fq, fr, nx, ny, nz, a[3], margin
        )
    low, high, _ = edge_ends(from_a, box)
    ax, ay, az = corner_of(C, a, low)
    bx, by, bz = corner_of(C, a, high)
    for end in range(2):
        t = t_low if end == 0 else t_high
        x, y, z = ax + t * (bx - ax), ay + t * (by - ay), az + t * (bz - az)
        count = put_edges(
            contacts, count, B, feature + end,
            x, y, z, x - nx * d, y - ny * d, z - nz * d, nx, ny, nz, a[3], margin,
        )  # fmt: skip
    return count
