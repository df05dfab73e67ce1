"""Derivatives of contact rows and contact forces by the position of the bodies.

In the subset of machine_code; see step_slopes.py. With h the motion of a body per
displacement, V its velocity and W the wrench of a contact on it, all at the world's
origin, a row d at the point p of two bodies has the velocity d . (v_a - v_b), and

    dV = h x V + rates,   dv = dV.lin + dV.ang x p + V.ang x dp
    d(d . v) = d . (dv + v x w),   w = n x dn the rotation of the contact's axes
    dW - h x* W   change of the wrench relative to a wrench fixed to the body

with dp, dn of the geometry of the contact (contact_slopes.py).
"""

from __future__ import annotations

from dyn_core.contact.derivatives.step_slopes import (
    SEPARATE,
    SlopeArrays,
    fill_axes,
)
from dyn_core.contact.rows.contact_rows import cross
from dyn_core.contact.rows.step_tables import CONTACT_ROLE, Scene, StepArrays
from dyn_core.engines.machine_code import (
    FloatArray,
    FloatArray2,
    IntArray,
    machine_code,
)


@machine_code
def fill_turned(
    scene: Scene, step: StepArrays, blocks: int, rates: FloatArray2,
    rates_before: FloatArray2, slopes: SlopeArrays,
) -> None:  # fmt: skip
    """Fill the derivatives of contact rows by q, and add contact forces to by_q.

    Args:
        scene, step, blocks: Robot and world, problem with its impulses, and number of
            blocks; find_modes must have set the modes.
        rates, rates_before: Rates of the motion columns at the velocity after and
            before the step, from contact_term_slopes, (columns, 6).
        slopes: Reads modes, known, and the geometry of pressing contacts; sets rates,
            rates_before, turned and before, adds to by_q.
    """
    tables, facts = scene.tables, step.blocks
    for body in range(len(slopes.known)):
        if slopes.known[body] == 0:
            continue
        by, before = slopes.rates[body], slopes.rates_before[body]
        first, last = tables.path_start[body], tables.path_start[body + 1]
        for e in range(first, last):  # all other columns stay zero
            j = tables.coordinate[tables.column_place[tables.path[e]]]
            for c in range(6):
                by[j, c], before[j, c] = 0.0, 0.0
        for e in range(first, last):
            k = tables.path[e]
            j = tables.coordinate[tables.column_place[k]]
            for c in range(6):
                by[j, c] += rates[k, c]
                before[j, c] += rates_before[k, c]
    for k in range(blocks):
        if facts.role[k] == CONTACT_ROLE and not slopes.mode[k] == SEPARATE:
            fill_axes(step, k, slopes)
            for i in range(step.rows.support_count[k]):
                place = step.rows.support[step.rows.support_start[k] + i]
                _turn_contact(step, k, tables.coordinate[place], slopes)
            _add_loads(tables.coordinate, step, k, slopes)


@machine_code
def _turn_contact(step: StepArrays, k: int, j: int, slopes: SlopeArrays) -> None:
    """Fill the derivatives of a contact's rows and loads by one coordinate.

    Args:
        step: Problem with its impulses.
        k: Index of the contact's block.
        j: Index of the velocity coordinate whose displacement is the variable.
        slopes: Sets turned (all rows, at u), before (normal row, at qd), load_a[j] and
            load_b[j].
    """
    c, first = step.blocks.source[k], step.rows.start[k]
    A, B, p = step.contacts.body_a[c], step.contacts.body_b[c], step.contacts.point[c]
    N, a, b, G = (
        step.contacts.normal[c],
        slopes.columns[A, j],
        slopes.columns[B, j],
        slopes.geometry[c],
    )
    px, py, pz = cross(b[0], b[1], b[2], p[0], p[1], p[2])
    px, py, pz = px + b[3], py + b[4], pz + b[5]
    nx, ny, nz = cross(b[0], b[1], b[2], N[0], N[1], N[2])
    for i in range(6):
        x, g = a[i] - b[i], G[i]
        px, py, pz = px + x * g[0], py + x * g[1], pz + x * g[2]
        nx, ny, nz = nx + x * g[3], ny + x * g[4], nz + x * g[5]
    wx, wy, wz = cross(N[0], N[1], N[2], nx, ny, nz)  # rotation of the axes
    for when in range(2):
        Va, Vb = slopes.motion[A], slopes.motion[B]
        ra, rb, to = slopes.rates[A, j], slopes.rates[B, j], slopes.turned
        if when == 1:
            Va, Vb = slopes.motion_before[A], slopes.motion_before[B]
            ra, rb, to = (
                slopes.rates_before[A, j],
                slopes.rates_before[B, j],
                slopes.before,
            )
        ox, oy, oz = Va[0] - Vb[0], Va[1] - Vb[1], Va[2] - Vb[2]
        vx, vy, vz = cross(ox, oy, oz, p[0], p[1], p[2])
        vx, vy, vz = vx + Va[3] - Vb[3], vy + Va[4] - Vb[4], vz + Va[5] - Vb[5]
        ax, ay, az, bx, by, bz = _carried(a, Va, ra)
        ex, ey, ez, fx, fy, fz = _carried(b, Vb, rb)
        ax, ay, az = ax - ex, ay - ey, az - ez
        x, y, z = cross(ax, ay, az, p[0], p[1], p[2])
        bx, by, bz = bx - fx + x, by - fy + y, bz - fz + z
        x, y, z = cross(ox, oy, oz, px, py, pz)
        bx, by, bz = bx + x, by + y, bz + z
        x, y, z = cross(vx, vy, vz, wx, wy, wz)
        bx, by, bz = bx + x, by + y, bz + z
        x, y, z = cross(ox, oy, oz, wx, wy, wz)
        ax, ay, az = ax + x, ay + y, az + z
        for r in range(step.rows.count[k] if when == 0 else 1):
            d = slopes.axes[r % 3]
            if r < 3:
                to[first + r, j] = d[0] * bx + d[1] * by + d[2] * bz
            else:
                to[first + r, j] = d[0] * ax + d[1] * ay + d[2] * az
    _load(step, k, j, slopes, px, py, pz, wx, wy, wz)


@machine_code
def _carried(
    h: FloatArray, V: FloatArray, rate: FloatArray
) -> tuple[float, float, float, float, float, float]:
    """Return the change of a body's velocity, h x V + rate, [angular; linear].

    Args:
        h: Motion of the body per displacement, (6,).
        V: Velocity of the body, (6,).
        rate: Rate of h, (6,).
    """
    ax, ay, az = cross(h[0], h[1], h[2], V[0], V[1], V[2])
    bx, by, bz = cross(h[0], h[1], h[2], V[3], V[4], V[5])
    cx, cy, cz = cross(h[3], h[4], h[5], V[0], V[1], V[2])
    return (
        ax + rate[0], ay + rate[1], az + rate[2],
        bx + cx + rate[3], by + cy + rate[4], bz + cz + rate[5],
    )  # fmt: skip


@machine_code
def _load(
    step: StepArrays, k: int, j: int, slopes: SlopeArrays,
    px: float, py: float, pz: float, wx: float, wy: float, wz: float,
) -> None:  # fmt: skip
    """Set slopes.load_a[j] and load_b[j], dW - h x* W of a contact's wrench W.

    They are the changes of the wrench relative to a wrench fixed to each body.

    Args:
        step, k, j: Problem, index of the contact's block, index of the coordinate.
        slopes: Reads columns and wrench; load_a[j] and load_b[j] are set.
        px, py, pz: Derivative of the contact's point by coordinate j.
        wx, wy, wz: Rotation of the contact's axes by coordinate j.
    """
    c = step.blocks.source[k]
    p = step.contacts.point[c]
    f, t = slopes.wrench[0], slopes.wrench[1]
    fx, fy, fz, tx, ty, tz = f[0], f[1], f[2], t[0], t[1], t[2]
    mx, my, mz = cross(p[0], p[1], p[2], fx, fy, fz)
    mx, my, mz = mx + tx, my + ty, mz + tz
    gx, gy, gz = cross(wx, wy, wz, fx, fy, fz)
    ux, uy, uz = cross(wx, wy, wz, tx, ty, tz)
    x, y, z = cross(px, py, pz, fx, fy, fz)
    ux, uy, uz = ux + x, uy + y, uz + z
    x, y, z = cross(p[0], p[1], p[2], gx, gy, gz)
    ux, uy, uz = ux + x, uy + y, uz + z
    for end in range(2):
        body = step.contacts.body_a[c] if end == 0 else step.contacts.body_b[c]
        h, to = slopes.columns[body, j], slopes.load_a[j]
        if end == 1:
            to = slopes.load_b[j]
        ax, ay, az = cross(h[0], h[1], h[2], mx, my, mz)
        bx, by, bz = cross(h[3], h[4], h[5], fx, fy, fz)
        to[0], to[1], to[2] = ux - ax - bx, uy - ay - by, uz - az - bz
        ax, ay, az = cross(h[0], h[1], h[2], fx, fy, fz)
        to[3], to[4], to[5] = gx - ax, gy - ay, gz - az


@machine_code
def _add_loads(
    coordinate: IntArray, step: StepArrays, k: int, slopes: SlopeArrays
) -> None:
    """Add the loads of a contact to slopes.by_q of the equation of motion.

    Args:
        coordinate: Velocity coordinate of each entry of a support.
        step: Problem.
        k: Index of the contact's block.
        slopes: Reads columns, load_a and load_b; by_q is changed.
    """
    rows, c = step.rows, step.blocks.source[k]
    A, B = step.contacts.body_a[c], step.contacts.body_b[c]
    start = rows.support_start[k]
    for m in range(start, start + rows.support_count[k]):
        i = coordinate[rows.support[m]]
        a, b, to = slopes.columns[A, i], slopes.columns[B, i], slopes.by_q[i]
        for n in range(start, start + rows.support_count[k]):
            j = coordinate[rows.support[n]]
            x, y, total = slopes.load_a[j], slopes.load_b[j], 0.0
            for e in range(6):
                total += a[e] * x[e] - b[e] * y[e]
            to[j] += total
