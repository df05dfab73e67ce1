"""Rows of a contact in coordinates: normal, tangents, turns."""

from __future__ import annotations

import math

from dyn_core.contact.collision.detection.tables import Contacts
from dyn_core.contact.stepping.step_tables import StepMemory
from dyn_core.contact.stepping.structure import Structure
from dyn_core.engines.machine_code import Reals2, machine_code


@machine_code
def contact_jacobian(
    tables: Structure,
    columns: Reals2,
    contacts: Contacts,
    c: int,
    count: int,
    work: StepMemory,
) -> None:
    """Fill work.J with W . (J_a - J_b) of a contact: normal, tangents, then turns.

    W = [x x d; d] for the direction d at the point x, and [d; 0] of a turn.

    Source: LCP-2, LCP-16.
    """
    nx, ny, nz = contacts.normal[c, 0], contacts.normal[c, 1], contacts.normal[c, 2]
    ax, ay, az = tangent(nx, ny, nz)
    bx, by, bz = cross(nx, ny, nz, ax, ay, az)
    px, py, pz = contacts.point[c, 0], contacts.point[c, 1], contacts.point[c, 2]
    for end in range(2):
        body = contacts.body_a[c] if end == 0 else contacts.body_b[c]
        sign = 1.0 if end == 0 else -1.0
        for e in range(tables.path_start[body], tables.path_start[body + 1]):
            k = tables.path[e]
            i = work.where[tables.column_place[k]]
            wx, wy, wz = (
                sign * columns[k, 0],
                sign * columns[k, 1],
                sign * columns[k, 2],
            )
            sx, sy, sz = cross(wx, wy, wz, px, py, pz)  # of the point
            sx += sign * columns[k, 3]
            sy += sign * columns[k, 4]
            sz += sign * columns[k, 5]
            work.J[0, i] += nx * sx + ny * sy + nz * sz
            if count > 1:
                work.J[1, i] += ax * sx + ay * sy + az * sz
                work.J[2, i] += bx * sx + by * sy + bz * sz
            if count > 3:
                work.J[3, i] += nx * wx + ny * wy + nz * wz
            if count > 4:
                work.J[4, i] += ax * wx + ay * wy + az * wz
                work.J[5, i] += bx * wx + by * wy + bz * wz


@machine_code
def cross(
    ax: float, ay: float, az: float, bx: float, by: float, bz: float
) -> tuple[float, float, float]:
    """Return a x b."""
    return ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx


@machine_code
def tangent(nx: float, ny: float, nz: float) -> tuple[float, float, float]:
    """Return the first of two unit tangents to a unit normal; the other is n x t.

        t = e_k - n_k n, scaled,   k: smallest component of n

    Source: LCP-2.
    """
    x, y, z = abs(nx), abs(ny), abs(nz)
    tx, ty, tz = 0.0, 0.0, 0.0
    if x <= y and x <= z:
        tx, ty, tz = 1.0 - nx * nx, -nx * ny, -nx * nz
    elif y <= z:
        tx, ty, tz = -ny * nx, 1.0 - ny * ny, -ny * nz
    else:
        tx, ty, tz = -nz * nx, -nz * ny, 1.0 - nz * nz
    size = math.sqrt(tx * tx + ty * ty + tz * tz)
    return tx / size, ty / size, tz / size
