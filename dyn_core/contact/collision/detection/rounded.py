"""Contacts of spheres and capsules with each other, of a sphere with box or cylinder.

Normals point from the second shape to the first; points are midway between surfaces.
Contacts beyond the capacity are counted, not written.
Written in the subset of Python that is compiled (dyn_core.engines.machine_code).

A frame is (12,): a rotation R, row by row, and a position p [m], x_outer = R x + p.

Source: C. Ericson, Real-Time Collision Detection, 2005, 5.1.2, 5.1.9 (closest points of
segments); the rule for nearly parallel capsules is not from the literature.
"""

from __future__ import annotations

import math

from dyn_core.contact.collision.detection.detection_arrays import (
    Contacts,
    put,
    put_in_frame,
)
from dyn_core.engines.machine_code import FloatArray, machine_code

PARALLEL = 0.05  # sine below which two capsules also touch at their ends
TOGETHER = 1e-12  # distance below which two points give no normal [m]
CLOSEST = 0  # features of two capsules: the closest points, ends of a, ends of b
END_OF_A = 1
END_OF_B = 3


@machine_code
def along_segment(
    px: float,
    py: float,
    pz: float,
    ax: float,
    ay: float,
    az: float,
    bx: float,
    by: float,
    bz: float,
) -> float:
    """Return t, 0..1, of the point a + t (b - a) of a segment that is closest to p.

    It is 0 for a segment of length 0.
    """
    ux, uy, uz = bx - ax, by - ay, bz - az
    square = ux * ux + uy * uy + uz * uz
    if square <= 0.0:
        return 0.0
    t = ((px - ax) * ux + (py - ay) * uy + (pz - az) * uz) / square
    return min(max(t, 0.0), 1.0)


@machine_code
def between_segments(
    ax: float,
    ay: float,
    az: float,
    bx: float,
    by: float,
    bz: float,
    cx: float,
    cy: float,
    cz: float,
    dx: float,
    dy: float,
    dz: float,
) -> tuple[float, float, float, float, float, float]:
    """Return the closest points of two segments: x, y, z on a b, then on c d.

    They are the closest of both lines, within the segments, and of each end with the
    other segment: parallel segments and those of length 0 need no special case.
    """
    ux, uy, uz = bx - ax, by - ay, bz - az
    vx, vy, vz = dx - cx, dy - cy, dz - cz
    wx, wy, wz = cx - ax, cy - ay, cz - az
    uu, vv = ux * ux + uy * uy + uz * uz, vx * vx + vy * vy + vz * vz
    uv = ux * vx + uy * vy + uz * vz
    uw, vw = ux * wx + uy * wy + uz * wz, vx * wx + vy * wy + vz * wz
    det = uu * vv - uv * uv
    best = math.inf
    x, y, z, p, q, r = ax, ay, az, cx, cy, cz
    if det > 1e-14 * uu * vv:  # not parallel; else an end is a closest point
        s, t = (uw * vv - vw * uv) / det, (uw * uv - vw * uu) / det
        if 0.0 <= s <= 1.0 and 0.0 <= t <= 1.0:
            x, y, z = ax + s * ux, ay + s * uy, az + s * uz
            p, q, r = cx + t * vx, cy + t * vy, cz + t * vz
            best = (x - p) * (x - p) + (y - q) * (y - q) + (z - r) * (z - r)
    for end in range(4):
        if end == 0:
            t = along_segment(ax, ay, az, cx, cy, cz, dx, dy, dz)
            x0, y0, z0 = ax, ay, az
            p0, q0, r0 = cx + t * vx, cy + t * vy, cz + t * vz
        elif end == 1:
            t = along_segment(bx, by, bz, cx, cy, cz, dx, dy, dz)
            x0, y0, z0 = bx, by, bz
            p0, q0, r0 = cx + t * vx, cy + t * vy, cz + t * vz
        elif end == 2:
            t = along_segment(cx, cy, cz, ax, ay, az, bx, by, bz)
            x0, y0, z0 = ax + t * ux, ay + t * uy, az + t * uz
            p0, q0, r0 = cx, cy, cz
        else:
            t = along_segment(dx, dy, dz, ax, ay, az, bx, by, bz)
            x0, y0, z0 = ax + t * ux, ay + t * uy, az + t * uz
            p0, q0, r0 = dx, dy, dz
        apart = (x0 - p0) * (x0 - p0) + (y0 - q0) * (y0 - q0) + (z0 - r0) * (z0 - r0)
        if apart < best:
            best = apart
            x, y, z = x0, y0, z0
            p, q, r = p0, q0, r0
    return x, y, z, p, q, r


@machine_code
def normal_to(ux: float, uy: float, uz: float) -> tuple[float, float, float]:
    """Return a unit normal to unit u, in the plane of u and the axis of least |u_k|."""
    x, y, z = 0.0, 0.0, 1.0
    if abs(ux) <= abs(uy) and abs(ux) <= abs(uz):
        x, z = 1.0, 0.0
    elif abs(uy) <= abs(uz):
        y, z = 1.0, 0.0
    share = ux * x + uy * y + uz * z
    x, y, z = x - share * ux, y - share * uy, z - share * uz
    size = math.sqrt(x * x + y * y + z * z)
    return x / size, y / size, z / size


@machine_code
def between_balls(
    contacts: Contacts,
    count: int,
    feature: int,
    x: float,
    y: float,
    z: float,
    r_a: float,
    p: float,
    q: float,
    r: float,
    r_b: float,
    fx: float,
    fy: float,
    fz: float,
    margin: float,
) -> int:
    """Add the contact of ball a at (x, y, z) with ball b at (p, q, r), if it is near.

    Centres are in the world [m]; the normal, from b to a, is (fx, fy, fz) if they
    coincide. Returns the new number of contacts.
    """
    nx, ny, nz = x - p, y - q, z - r
    d = math.sqrt(nx * nx + ny * ny + nz * nz)
    if d > TOGETHER:
        nx, ny, nz = nx / d, ny / d, nz / d
    else:
        nx, ny, nz = fx, fy, fz
    gap = d - r_a - r_b
    if not gap <= margin:
        return count
    return put(
        contacts,
        count,
        feature,
        (x - nx * r_a + p + nx * r_b) / 2,
        (y - ny * r_a + q + ny * r_b) / 2,
        (z - nz * r_a + r + nz * r_b) / 2,
        nx,
        ny,
        nz,
        gap,
    )


@machine_code
def sphere_sphere(
    contacts: Contacts,
    count: int,
    A: FloatArray,
    r_a: float,
    B: FloatArray,
    r_b: float,
    margin: float,
) -> int:
    """Add the contact of two spheres if it is near; return the new number.

    The normal of concentric spheres is z of the world. The feature is 0.
    """
    return between_balls(
        contacts, count, 0, A[9], A[10], A[11], r_a, B[9], B[10], B[11], r_b,
        0.0, 0.0, 1.0, margin,
    )  # fmt: skip


@machine_code
def sphere_capsule(
    contacts: Contacts,
    count: int,
    A: FloatArray,
    r_a: float,
    B: FloatArray,
    half: float,
    r_b: float,
    margin: float,
) -> int:
    """Add the contact of a sphere with a capsule if it is near; return the new number.

    If the centre is on the capsule's axis (its z), the normal is orthogonal to it. The
    feature is 0.
    """
    ux, uy, uz = B[2] * half, B[5] * half, B[8] * half
    ax, ay, az = B[9] - ux, B[10] - uy, B[11] - uz
    t = along_segment(A[9], A[10], A[11], ax, ay, az, B[9] + ux, B[10] + uy, B[11] + uz)
    fx, fy, fz = normal_to(B[2], B[5], B[8])
    return between_balls(
        contacts, count, 0, A[9], A[10], A[11], r_a,
        ax + t * 2.0 * ux, ay + t * 2.0 * uy, az + t * 2.0 * uz, r_b,
        fx, fy, fz, margin,
    )  # fmt: skip


@machine_code
def capsule_capsule(
    contacts: Contacts,
    count: int,
    A: FloatArray,
    half_a: float,
    r_a: float,
    B: FloatArray,
    half_b: float,
    r_b: float,
    margin: float,
) -> int:
    """Add the contacts of two capsules: the closest points, or ends if parallel.

    Nearly parallel capsules (sine up to 0.05) touch at each end that projects onto the
    other axis, at up to 4 points, and at the closest points if these are closer than
    all ends; others touch at the closest points. An end of b whose closest point is an
    end of a is left out if that end projects onto b. Each distance is one of an end and
    a segment, and so smooth in the poses. Where the axes, along z, meet, the normal is
    orthogonal to both. Features are 0 for the closest points, 1 and 2 for the ends of a
    at -z and +z, 3 and 4 for those of b.
    """
    ux, uy, uz = A[2] * half_a, A[5] * half_a, A[8] * half_a
    vx, vy, vz = B[2] * half_b, B[5] * half_b, B[8] * half_b
    ax, ay, az = A[9] - ux, A[10] - uy, A[11] - uz
    bx, by, bz = A[9] + ux, A[10] + uy, A[11] + uz
    cx, cy, cz = B[9] - vx, B[10] - vy, B[11] - vz
    dx, dy, dz = B[9] + vx, B[10] + vy, B[11] + vz
    x, y, z, p, q, r = between_segments(ax, ay, az, bx, by, bz, cx, cy, cz, dx, dy, dz)
    apart = math.sqrt((x - p) * (x - p) + (y - q) * (y - q) + (z - r) * (z - r))
    if not apart - r_a - r_b <= margin:
        return count
    fx, fy, fz = A[5] * B[8] - A[8] * B[5], A[8] * B[2] - A[2] * B[8], 0.0
    fz = A[2] * B[5] - A[5] * B[2]
    sine = math.sqrt(fx * fx + fy * fy + fz * fz)
    if sine > 1e-9:
        fx, fy, fz = fx / sine, fy / sine, fz / sine
    else:
        fx, fy, fz = normal_to(A[2], A[5], A[8])
    if fx * (A[9] - B[9]) + fy * (A[10] - B[10]) + fz * (A[11] - B[11]) < 0.0:
        fx, fy, fz = -fx, -fy, -fz
    if sine > PARALLEL:
        return between_balls(
            contacts, count, CLOSEST, x, y, z, r_a, p, q, r, r_b, fx, fy, fz, margin
        )
    least = math.inf
    first_end, second_end = False, False
    for end in range(4):
        if end == 0:
            px, py, pz = ax, ay, az
        elif end == 1:
            px, py, pz = bx, by, bz
        elif end == 2:
            px, py, pz = cx, cy, cz
        else:
            px, py, pz = dx, dy, dz
        if end < 2:
            if not beside(px, py, pz, cx, cy, cz, dx, dy, dz):
                continue
            t = along_segment(px, py, pz, cx, cy, cz, dx, dy, dz)
            ex, ey, ez = px, py, pz
            gx, gy, gz = cx + t * 2.0 * vx, cy + t * 2.0 * vy, cz + t * 2.0 * vz
            first_end = first_end or end == 0
            second_end = second_end or end == 1
        else:
            if not beside(px, py, pz, ax, ay, az, bx, by, bz):
                continue
            t = along_segment(px, py, pz, ax, ay, az, bx, by, bz)
            ex, ey, ez = ax + t * 2.0 * ux, ay + t * 2.0 * uy, az + t * 2.0 * uz
            gx, gy, gz = px, py, pz
            if first_end and same(ex, ey, ez, ax, ay, az):
                continue
            if second_end and same(ex, ey, ez, bx, by, bz):
                continue
        size = math.sqrt(
            (ex - gx) * (ex - gx) + (ey - gy) * (ey - gy) + (ez - gz) * (ez - gz)
        )
        least = min(least, size)
        count = between_balls(
            contacts, count, END_OF_A + end, ex, ey, ez, r_a, gx, gy, gz, r_b,
            fx, fy, fz, margin,
        )  # fmt: skip
    # No end is the closest point: the axes cross at a small angle.
    if apart < least - 1e-9 * (half_a + r_a + half_b + r_b):
        count = between_balls(
            contacts, count, CLOSEST, x, y, z, r_a, p, q, r, r_b, fx, fy, fz, margin
        )
    return count


@machine_code
def beside(
    px: float,
    py: float,
    pz: float,
    ax: float,
    ay: float,
    az: float,
    bx: float,
    by: float,
    bz: float,
) -> bool:
    """Return whether p projects onto segment a b, up to 1e-9 of its length beyond."""
    ux, uy, uz = bx - ax, by - ay, bz - az
    square = ux * ux + uy * uy + uz * uz
    along = (px - ax) * ux + (py - ay) * uy + (pz - az) * uz
    return -1e-9 * square <= along <= (1.0 + 1e-9) * square


@machine_code
def same(x: float, y: float, z: float, p: float, q: float, r: float) -> bool:
    """Return whether points agree within 1e-9 (1 + the first's largest coordinate)."""
    size = max(max(abs(x), abs(y)), abs(z))
    apart = max(max(abs(x - p), abs(y - q)), abs(z - r))
    return apart < 1e-9 * (1.0 + size)


@machine_code
def sphere_box(
    contacts: Contacts,
    count: int,
    A: FloatArray,
    r_a: float,
    B: FloatArray,
    half: FloatArray,
    relative: FloatArray,
    margin: float,
) -> int:
    """Add the contact of a sphere with a box if it is near; return the new number.

    A centre inside the box has the normal of the nearest face. The feature is 0.
    `relative` is the frame of the sphere in the box; A is ignored.
    """
    x, y, z = relative[9], relative[10], relative[11]
    p = min(max(x, -half[0]), half[0])
    q = min(max(y, -half[1]), half[1])
    r = min(max(z, -half[2]), half[2])
    nx, ny, nz = x - p, y - q, z - r
    d = math.sqrt(nx * nx + ny * ny + nz * nz)
    if d > 0.0:
        nx, ny, nz = nx / d, ny / d, nz / d
    else:
        inside_x, inside_y = half[0] - abs(x), half[1] - abs(y)
        inside_z = half[2] - abs(z)
        nx, ny, nz = 0.0, 0.0, 0.0
        if inside_x <= inside_y and inside_x <= inside_z:
            nx, d = 1.0 if x >= 0.0 else -1.0, -inside_x
        elif inside_y <= inside_z:
            ny, d = 1.0 if y >= 0.0 else -1.0, -inside_y
        else:
            nz, d = 1.0 if z >= 0.0 else -1.0, -inside_z
        p, q, r = x - nx * d, y - ny * d, z - nz * d
    gap = d - r_a
    if not gap <= margin:
        return count
    return put_in_frame(
        contacts, count, B, 0,
        (p + x - nx * r_a) / 2, (q + y - ny * r_a) / 2, (r + z - nz * r_a) / 2,
        nx, ny, nz, gap,
    )  # fmt: skip


@machine_code
def sphere_cylinder(
    contacts: Contacts,
    count: int,
    r_a: float,
    B: FloatArray,
    size: FloatArray,
    relative: FloatArray,
    margin: float,
) -> int:
    """Add the contact of a sphere with a cylinder if it is near; return the new number.

    A centre inside is pushed out through the side or an end, whichever is nearer; from
    the axis through the side it is pushed along x. The feature is 0. `size` is radius,
    radius, half length [m]; `relative` is the frame of the sphere in the cylinder.
    """
    x, y, z = relative[9], relative[10], relative[11]
    across = math.sqrt(x * x + y * y)
    ux, uy = 1.0, 0.0
    if across > TOGETHER:
        ux, uy = x / across, y / across
    out, over = across - size[0], abs(z) - size[2]
    sign = 1.0 if z >= 0.0 else -1.0
    nx, ny, nz, d = 0.0, 0.0, sign, over
    if out > 0.0 and over > 0.0:
        d = math.sqrt(out * out + over * over)
        nx, ny, nz = ux * out / d, uy * out / d, sign * over / d
    elif out > over:
        nx, ny, nz, d = ux, uy, 0.0, out
    gap = d - r_a
    if not gap <= margin:
        return count
    back = (d + r_a) / 2
    return put_in_frame(
        contacts, count, B, 0, x - nx * back, y - ny * back, z - nz * back,
        nx, ny, nz, gap,
    )  # fmt: skip
