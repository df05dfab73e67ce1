"""All derivatives of a step in one call of machine code, after the step itself.

    modes -> contact_term_slopes -> contacts' geometry -> derivatives of rows -> solve
    -> moved_state_slopes; the same for a position correction -> A, B

Derivatives of rows and contact forces are by the position of the bodies. With h the
motion of a body per displacement, V its velocity and W the wrench of a contact on it,
all at the world's origin, a row d at the point p of two bodies has the velocity
d . (v_a - v_b), and

    dV = h x V + rates,   dv = dV.lin + dV.ang x p + V.ang x dp
    d(d . v) = d . (dv + v x w),   w = n x dn the rotation of the contact's axes
    dW - h x* W   change of the wrench relative to a wrench fixed to the body

with dp, dn of the geometry of the contact (contact_slopes.py).

In the subset of machine_code; step_slopes.py has the equations.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dyn_core.contact.collision.detection.contact_slopes import (
    SlopeRoom,
    contact_slopes,
)
from dyn_core.contact.derivatives.slope_solution import (
    hold_corrections,
    hold_rows,
    solve_corrections,
    solve_slopes,
)
from dyn_core.contact.derivatives.step_slopes import (
    AT_BOUNDARY,
    SEPARATE,
    SLIP,
    SMOOTH,
    SlopeArrays,
    fill_axes,
    find_corrections,
    find_modes,
)
from dyn_core.contact.rows.contact_rows import cross
from dyn_core.contact.rows.step_tables import CONTACT_ROLE, Scene, StepArrays
from dyn_core.contact.solvers.matrices.dense import add_by_sparse, add_sparse
from dyn_core.engines.machine_code import (
    FloatArray,
    FloatArray2,
    FloatArray3,
    IntArray,
    KernelAddress,
    machine_code,
    run_kernel,
)

NEAR = 1e-3  # margin of displaced contacts beyond the margin of a step [m]
REFUSED = -1  # flag: a Program found a value that is not finite


@machine_code
def fill_turned(
    scene: Scene, step: StepArrays, blocks: int, rates: FloatArray2,
    rates_before: FloatArray2, slopes: SlopeArrays,
) -> None:  # fmt: skip
    """Fill the derivatives of contact rows by q; add changes of their forces to by_q.

    find_modes or find_corrections must have set the modes; contacts in the mode
    SEPARATE are left out. `rates` and `rates_before` are those of the motion columns at
    the velocity after and before the step, (columns, 6). Sets rates and rates_before of
    the known bodies, turned, and before (normal rows only); adds to by_q the
    derivatives of contact forces at constant impulses, relative to forces fixed to the
    bodies. axes, wrench, load_a and load_b are overwritten.
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
    """Fill the derivatives of a contact's rows and loads by velocity coordinate j.

    Axes, wrench, geometry and both bodies' columns, motions and rates must be set in
    `slopes`. Sets turned (derivatives of J u, all rows), before (of J qd, normal row
    only), and load_a[j] and load_b[j].
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
    """Return the derivative of a body's velocity by a coordinate, h x V + rate.

    All are [angular; linear] of the point at the world's origin, (6,). h is the motion
    per displacement of the coordinate, `rate` its rate as in contact_term_slopes.
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

    Both are derivatives of the wrench on body a, [moment; force] at the world's origin,
    relative to a wrench fixed to body a and to body b. p is the derivative of the
    contact's point by coordinate j, w the rotation of its axes, world.
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
    """Add load_a along the columns of body a, minus load_b along those of b, to by_q.

    `coordinate` has the velocity coordinate at each place; supports list places.
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


class SlopeKernels(NamedTuple):
    """Programs, bound to the arrays of a step, SlopeArrays and EndSlopes.

    `terms` and `more` are contact_term_slopes, of the step and of the position
    correction, whose inertia is written to EndSlopes.inertia. `start` and `end` are
    moved_state_slopes, from the start to the state of the constraints, and from there
    to the end; the address of `start` is 0 if its two states are the same.
    """

    terms: KernelAddress
    more: KernelAddress
    end: KernelAddress
    start: KernelAddress


class EndSlopes(NamedTuple):
    """Derivatives of the state after a step, and work arrays; n is nv.

    The constraints are evaluated at the middle: the state before the step or its
    midpoint. "x by y" is a derivative.

    Attributes:
        modes: Mode of each block, an index in MODES, (blocks,).
        slipped: 1 for each block with non-zero columns in by_mu, else 0, (blocks,).
        u: Velocity after the step; then with the correction added, (n,).
        correction: Velocity of the position correction, (n,).
        pushes: Force of contacts on each body, body coordinates, (nb, 6) [N·m; N].
        rates, rates_before: Outputs of contact_term_slopes, (columns, 6).
        dense: Rows of loops and limits of ball joints, by q, (rows, n, n).
        by_q, by_u, by_correction: Final state by middle q, u and correction, (2 n, n).
        start_q, start_qd: Middle by the state before the step, (2 n, n).
        inertia: Inertia from the program `more`, without the drag of slip, (n, n).
        kept_q, kept_rates: by_q and rates without the correction, (n, n), (columns, 6).
        by_mu: Final state by friction coefficients, three a block, (2 n, 3 blocks).
        A, B: Final state by the initial one, (2 n, 2 n), and by joint forces, (2 n, n).
        middle: Final state by the middle, (2 n, 2 n).
    """

    modes: IntArray
    slipped: IntArray
    u: FloatArray
    correction: FloatArray
    pushes: FloatArray2
    rates: FloatArray2
    rates_before: FloatArray2
    dense: FloatArray3
    by_q: FloatArray2
    by_u: FloatArray2
    by_correction: FloatArray2
    start_q: FloatArray2
    start_qd: FloatArray2
    inertia: FloatArray2
    kept_q: FloatArray2
    kept_rates: FloatArray2
    by_mu: FloatArray2
    A: FloatArray2
    B: FloatArray2
    middle: FloatArray2


def allocate_end_slopes(
    bodies: int, n: int, columns: int, dense: int, blocks: int
) -> EndSlopes:
    """Allocate EndSlopes, filled with zeros.

    `bodies` is without the world; `dense` counts rows of loops and of limits of balls.
    """
    sizes: dict[str, tuple[int, ...]] = {
        name: (n, n) if name in ("inertia", "kept_q") else (2 * n, n)
        for name in EndSlopes._fields
    }
    rates = ("rates", "rates_before", "kept_rates")
    sizes |= dict.fromkeys(rates, (columns, 6))
    sizes |= dict.fromkeys(("A", "middle"), (2 * n, 2 * n))
    sizes |= {"u": (n,), "correction": (n,), "pushes": (bodies, 6)}
    sizes |= {"dense": (dense, n, n), "by_mu": (2 * n, 3 * blocks)}
    parts: dict[str, np.ndarray] = {name: np.zeros(x) for name, x in sizes.items()}
    parts |= {name: np.zeros(blocks, np.int64) for name in ("modes", "slipped")}
    return EndSlopes(**parts)


@machine_code
def take_slopes(
    scene: Scene,
    step: StepArrays,
    room: SlopeRoom,
    kernels: SlopeKernels,
    slopes: SlopeArrays,
    ends: EndSlopes,
    blocks: int,
    contacts: int,
    corrected: bool,
) -> int:
    """Compute A, B and by_mu of a completed step, of state 0; return a flag.

    ends.dense must be filled if the step has loops or limits of ball joints. ends.modes
    become the modes of the velocities; other arrays of `slopes` and `ends` are
    overwritten, and qd_next and impulses of `step` if positions were corrected.

    The flag is REFUSED (-1): a Program failed, and the results are incomplete. Else
    AT_BOUNDARY (1): a block is between two modes, or is separate and corrected, or
    there are dependent rows that contradict each other, or any with a slip. Else
    GAP_ZERO (2): a pressing contact or limit is at gap 0. Else SMOOTH (0).
    """
    n, slips = len(scene.tables.coordinate), False
    for j in range(n):
        ends.u[j], ends.correction[j] = step.qd_next[0, j], step.correction[0, j]
    for i in range(len(ends.pushes)):
        for j in range(6):
            ends.pushes[i, j] = 0.0
    flag = find_modes(scene, step, blocks, ends.pushes, slopes)
    if run_kernel(kernels.terms) != 0 or run_kernel(kernels.end) != 0:
        return REFUSED
    for k in range(blocks):
        ends.modes[k] = slopes.mode[k]
        slips = slips or slopes.mode[k] == SLIP
    if corrected:
        fill(ends.kept_q, slopes.by_q)
        fill(ends.kept_rates, ends.rates)
    move_rows(scene, step, room, blocks, contacts, slopes, ends)
    holding = hold_rows(scene, step, blocks, slopes)
    lost, disagree = solve_slopes(scene.rule.dt, blocks, holding, slips, slopes)
    write_ends(blocks, n, slopes, ends)
    if corrected:
        for j in range(n):
            step.qd_next[0, j] = ends.correction[j]
            ends.u[j] += ends.correction[j]
        opening = find_corrections(scene, step, blocks, ends.pushes, slopes)
        flag = opening if opening != SMOOTH else flag
        if run_kernel(kernels.more) != 0:
            return REFUSED
        subtract(slopes.by_q, ends.kept_q)
        subtract(ends.rates, ends.kept_rates)
        move_rows(scene, step, room, blocks, contacts, slopes, ends)
        holding = hold_corrections(scene, step, blocks, slopes)
        if slips:  # slopes.inertia, already inverted, has the drag of slip
            fill(slopes.inertia, ends.inertia)
        solve_corrections(holding, slips, slopes)
        add_sparse(ends.by_correction, slopes.du_dq, ends.middle, 2 * n, n, n, 0)
    if kernels.start.address == 0:
        fill(ends.A, ends.middle)
    elif run_kernel(kernels.start) != 0:
        return REFUSED
    else:
        clear(ends.A)
        add_by_sparse(ends.middle, ends.start_q, ends.A, 2 * n, 2 * n, n, 0)
        add_by_sparse(ends.middle, ends.start_qd, ends.A, 2 * n, 2 * n, n, n)
    return AT_BOUNDARY if disagree or (lost > 0 and slips) else flag


@machine_code
def move_rows(
    scene: Scene,
    step: StepArrays,
    room: SlopeRoom,
    blocks: int,
    contacts: int,
    slopes: SlopeArrays,
    ends: EndSlopes,
) -> None:
    """Compute the derivatives by q of the rows of contacts, loops and ball limits.

    find_modes or find_corrections must have set the modes; contacts in the mode
    SEPARATE are left out. Sets turned and before of these rows, the derivatives of J u
    (u is step.qd_next[0]) and J qd; of a contact, before is set in the normal row only.
    Sets geometry of pressed contacts. Adds to by_q the derivative of J.T lambda at
    constant impulses; of contacts only what it has beyond a force fixed to the body,
    which contact_term_slopes takes into account. Of `ends`, dense, rates and
    rates_before are read.
    """
    contact_slopes(
        scene.shapes,
        scene.pairs,
        step.terms.poses[0],
        scene.rule.margin + NEAR,
        step.contacts,
        contacts,
        slopes.pressed,
        room,
        step.collision,
        slopes.geometry,
    )
    for k in range(blocks):
        contact = step.blocks.role[k] == CONTACT_ROLE
        if not contact and -1 - step.blocks.id[k] >= len(scene.joints.role):
            move_dense(step, k, slopes, ends)
    fill_turned(scene, step, blocks, ends.rates, ends.rates_before, slopes)


@machine_code
def move_dense(step: StepArrays, k: int, slopes: SlopeArrays, ends: EndSlopes) -> None:
    """Compute the derivatives by q of block k, a loop or the limit of a ball joint.

    Sets `turned` and `before` of its rows to the derivatives of J u and J qd, at the
    first state's u and qd, from ends.dense (of J); adds the derivative of J.T lambda at
    constant impulses to by_q.
    """
    n, u, qd = len(ends.u), step.qd_next[0], step.terms.qd[0]
    for r in range(step.rows.count[k]):
        row, change = step.rows.start[k] + r, ends.dense[step.blocks.source[k] + r]
        turned, before, push = (
            slopes.turned[row],
            slopes.before[row],
            step.rows.impulse[row],
        )
        for j in range(n):
            turned[j], before[j] = 0.0, 0.0
        for i in range(n):
            for j in range(n):
                turned[j] += change[i, j] * u[i]
                before[j] += change[i, j] * qd[i]
                slopes.by_q[i, j] += change[i, j] * push


@machine_code
def write_ends(blocks: int, n: int, slopes: SlopeArrays, ends: EndSlopes) -> None:
    """Set ends.middle, B and by_mu from the derivatives of the velocity in `slopes`.

        middle = [by_q + by_u du_dq, by_u du_dqd],   B = by_u du_dtau
        by_mu = by_u du_dmu for blocks that slip, else zero

    ends.slipped of the previous call tells what to clear in by_mu.
    """
    for i in range(2 * n):
        for j in range(n):
            ends.middle[i, j], ends.middle[i, n + j] = ends.by_q[i, j], 0.0
            ends.B[i, j] = 0.0
    add_sparse(ends.by_u, slopes.du_dq, ends.middle, 2 * n, n, n, 0)
    add_sparse(ends.by_u, slopes.du_dqd, ends.middle, 2 * n, n, n, n)
    add_sparse(ends.by_u, slopes.du_dtau, ends.B, 2 * n, n, n, 0)
    for k in range(blocks):
        slips, was = slopes.mode[k] == SLIP, ends.slipped[k] != 0
        ends.slipped[k] = 1 if slips else 0
        if not (slips or was):  # its columns are zero
            continue
        for i in range(2 * n):
            for j in range(3 * k, 3 * k + 3):
                ends.by_mu[i, j] = 0.0
                if slips:
                    for m in range(n):
                        ends.by_mu[i, j] += ends.by_u[i, m] * slopes.du_dmu[m, j]


@machine_code
def fill(to: FloatArray2, a: FloatArray2) -> None:
    """Copy the matrix a to the first rows and columns of `to`.

    `to` must be at least as large as a in both axes, which is not checked.
    """
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            to[i, j] = a[i, j]


@machine_code
def clear(to: FloatArray2) -> None:
    """Set a matrix to zero."""
    for i in range(to.shape[0]):
        for j in range(to.shape[1]):
            to[i, j] = 0.0


@machine_code
def subtract(a: FloatArray2, b: FloatArray2) -> None:
    """Subtract b, at least as large in both axes (not checked), from a, in place."""
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            a[i, j] -= b[i, j]
