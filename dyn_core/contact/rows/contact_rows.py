"""Rows of contacts: normal, tangents, turns, from data computed once per body.

With the columns C of a body (6 x its places), Y of a row is W C L^-1 for every contact:
C L^-1 is computed once for each body that has contacts in a step.
"""

from __future__ import annotations

import math

from dyn_core.contact.collision.detection.detection_arrays import Contacts
from dyn_core.contact.problem.rows import Rows
from dyn_core.contact.rows.step_tables import BlockFacts, StepMemory
from dyn_core.contact.rows.structure import Structure
from dyn_core.engines.machine_code import FloatArray, FloatArray2, machine_code


@machine_code
def fill_body(
    tables: Structure,
    columns: FloatArray2,
    factor: FloatArray,
    body: int,
    work: StepMemory,
) -> None:
    """Compute C L^-1 of a body and its velocities, once in a step.

    Sets work.columns[body]: row i is the velocity [angular; linear] of the point at the
    world's origin for place i of the body's list Structure.moved, from T L = C. Two
    more rows are the body's velocity in a step without contacts, and before the step.
    `columns`, (nc, 6), are the joints' columns in the world, likewise [angular;
    linear]; `factor` is packed L as in block_rows.finish. work.where is overwritten.
    """
    if work.known[body] != 0:
        return
    work.known[body] = 1
    T, nv = work.columns[body], len(tables.coordinate)
    start = tables.moved_start[body]
    n = tables.moved_start[body + 1] - start
    free, now = T[n], T[n + 1]
    for c in range(6):
        free[c], now[c] = 0.0, 0.0
    for i in range(n):
        work.where[tables.moved[start + i]] = i
        for c in range(6):
            T[i, c] = 0.0
    for e in range(tables.path_start[body], tables.path_start[body + 1]):
        k = tables.path[e]
        place = tables.column_place[k]
        to = T[work.where[place]]
        by_free, by_now = work.free[place], work.qd[place]
        for c in range(6):
            x = columns[k, c]
            to[c] += x
            free[c] += x * by_free
            now[c] += x * by_now
    if n > 0 and is_chain(tables, tables.moved[start + n - 1], n):
        solve_chain(tables, factor, start, n, T)
        return
    for i in range(n - 1, -1, -1):
        k, column = tables.moved[start + i], T[i]
        for c in range(6):
            column[c] *= factor[k]
        for e in range(tables.above_start[k], tables.above_start[k + 1]):
            to, entry = T[work.where[tables.above[e]]], factor[nv + e]
            for c in range(6):
                to[c] -= column[c] * entry


@machine_code
def is_chain(tables: Structure, last: int, n: int) -> bool:
    """Return whether the place `last` and its ancestors are a chain of n places."""
    count = tables.above_start[last + 1] - tables.above_start[last] + 1
    return tables.straight[last] != 0 and count == n


@machine_code
def solve_chain(
    tables: Structure, factor: FloatArray, start: int, n: int, T: FloatArray2
) -> None:
    """Replace C by C L^-1 in place, for a body whose places are a chain.

    Row i of T is the column of C at Structure.moved[start + i]; rows from n on stay.
    """
    nv = len(tables.coordinate)
    for i in range(n - 1, -1, -1):
        k, column = tables.moved[start + i], T[i]
        x0, x1, x2 = column[0], column[1], column[2]
        x3, x4, x5 = column[3], column[4], column[5]
        for j in range(i + 1, n):
            below = T[j]
            entry = factor[nv + tables.above_start[tables.moved[start + j]] + i]
            x0, x1, x2 = (
                x0 - below[0] * entry,
                x1 - below[1] * entry,
                x2 - below[2] * entry,
            )
            x3, x4, x5 = (
                x3 - below[3] * entry,
                x4 - below[4] * entry,
                x5 - below[5] * entry,
            )
        column[0], column[1], column[2] = x0 * factor[k], x1 * factor[k], x2 * factor[k]
        column[3], column[4], column[5] = x3 * factor[k], x4 * factor[k], x5 * factor[k]


@machine_code
def contact_rows(
    tables: Structure,
    contacts: Contacts,
    c: int,
    rows: Rows,
    blocks: BlockFacts,
    block: int,
    work: StepMemory,
) -> None:
    """Fill b and y of a contact's block: W . (C_a - C_b) L^-1.

    W = [x x d; d] for the direction d at the point x, and [d; 0] of a turn. Rows are
    along the normal and both tangents (see `tangent`), then turns about these in that
    order. `fill_body` of its bodies, `begin` and `locate` come before. The free
    velocities of the rows are added to b; approach becomes the normal velocity before
    the step.

    Source: LCP-2, LCP-16.
    """
    nx, ny, nz = contacts.normal[c, 0], contacts.normal[c, 1], contacts.normal[c, 2]
    ax, ay, az = tangent(nx, ny, nz)
    bx, by, bz = cross(nx, ny, nz, ax, ay, az)
    px, py, pz = contacts.point[c, 0], contacts.point[c, 1], contacts.point[c, 2]
    n, count = rows.support_count[block], rows.count[block]
    row, y = rows.start[block], rows.y_start[block]
    blocks.approach[block] = 0.0
    for i in range(count * n):
        rows.y[y + i] = 0.0
    for end in range(2):
        body = contacts.body_a[c] if end == 0 else contacts.body_b[c]
        if body == 0:  # the world, which stands still
            continue
        sign = 1.0 if end == 0 else -1.0
        start, T = tables.moved_start[body], work.columns[body]
        places = tables.moved_start[body + 1] - start
        for i in range(places + 1):  # the columns, then the velocity of a free step
            v = T[i]
            vx, vy, vz = cross(v[0], v[1], v[2], px, py, pz)
            vx, vy, vz = sign * (vx + v[3]), sign * (vy + v[4]), sign * (vz + v[5])
            to, index, step = rows.b, row, 1
            if i < places:
                to, index, step = rows.y, y + work.where[tables.moved[start + i]], n
            to[index] += nx * vx + ny * vy + nz * vz
            if count > 1:
                to[index + step] += ax * vx + ay * vy + az * vz
                to[index + 2 * step] += bx * vx + by * vy + bz * vz
            if count > 3:
                wx, wy, wz = sign * v[0], sign * v[1], sign * v[2]
                to[index + 3 * step] += nx * wx + ny * wy + nz * wz
                if count > 4:
                    to[index + 4 * step] += ax * wx + ay * wy + az * wz
                    to[index + 5 * step] += bx * wx + by * wy + bz * wz
        v = T[places + 1]  # the velocity now
        vx, vy, vz = cross(v[0], v[1], v[2], px, py, pz)
        normal = nx * (vx + v[3]) + ny * (vy + v[4]) + nz * (vz + v[5])
        blocks.approach[block] += sign * normal


@machine_code
def cross(
    ax: float, ay: float, az: float, bx: float, by: float, bz: float
) -> tuple[float, float, float]:
    """Return x, y, z of the cross product a x b."""
    return ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx


@machine_code
def tangent(nx: float, ny: float, nz: float) -> tuple[float, float, float]:
    """Return x, y, z of the first of two unit tangents to a normal n.

        t = e_k - n_k n, scaled,   k: first of the components with the smallest |n_k|

    The second tangent is n x t. The normal must be a unit vector, which is not checked.

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
