"""Solution of the equations of a step for the derivatives of its velocity u.

    inertia du = by_q dq + by_qd dqd + (dt + by_tau) dtau + by_mu dmu + C.T dlambda
    A du + soft dlambda = c_q dq + c_qd dqd        the active rows

The names are fields of SlopeArrays. J has a row for each row of the problem and n
columns, the velocity coordinates; turned and before are the derivatives by q of J u
and of J qd, with qd the velocity before the step. sigma is J u, weight the friction
coefficient of a row, along the direction of slip. In the subset of machine_code;
step_slopes.py derives the equations.
"""

from __future__ import annotations

from dyn_core.contact.derivatives.step_slopes import (
    FREE,
    SEPARATE,
    SLIP,
    STICK,
    SlopeArrays,
)
from dyn_core.contact.rows.block_rows import gap_rule
from dyn_core.contact.rows.contact_biases import AT_ZERO, push_out
from dyn_core.contact.rows.step_tables import (
    CONTACT_ROLE,
    FRICTION,
    LIMIT,
    PRESCRIBED,
    BlockFacts,
    Rule,
    Scene,
    StepArrays,
)
from dyn_core.contact.solvers.matrices.dense import add, invert, product
from dyn_core.engines.machine_code import FloatArray2, machine_code

RANK = 1e-9  # pivot of a dependent row at most, relative to its response
NOTHING = 1e-12  # response that counts as zero, relative to the largest
AGREE = 1e-7  # largest relative contradiction of dependent rows
SLOW = 1e-3  # smallest scale of it: slope of a velocity by a position [1/s]


@machine_code
def hold_rows(scene: Scene, step: StepArrays, blocks: int, slopes: SlopeArrays) -> int:
    """Collect the active rows, and add the drag of slip; return their number.

    Active are all rows that fix a velocity: all blocks but separate and free ones. Of a
    slipping contact only the normal row is active, of a sticking one also the rows with
    a friction coefficient above 0. find_modes and fill_turned must have run. Sets A, C,
    c_q, c_qd, soft, by_tau and the columns of slipping blocks in by_mu. Adds inertia
    times the derivatives of the gyroscopic change to by_q and by_qd, drag to inertia
    and by_q.
    """
    rows, facts, rule = step.rows, step.blocks, scene.rule
    n, count = len(scene.tables.coordinate), 0
    _add_changes(n, slopes)
    for k in range(blocks):
        first, mode, role = rows.start[k], slopes.mode[k], facts.role[k]
        if mode == SEPARATE or mode == FREE:
            continue
        if role == CONTACT_ROLE or role == LIMIT:
            by_gap, by_approach = _bias_slopes(rule, facts, k, first, slopes.above[k])
            _hold(slopes, count, first, n, by_gap, by_approach, rows.compliance[first])
            count += 1
            if mode == STICK:
                for r in range(first + 1, first + rows.count[k]):
                    if slopes.weight[r] > 0.0:
                        _hold(slopes, count, r, n, 0.0, 0.0, rows.compliance[r])
                        count += 1
            if mode == SLIP:
                _drag(step, k, count - 1, n, slopes)
            continue
        for r in range(first, first + rows.count[k]):
            by_gap, by_approach = rule.erp / rule.dt, 0.0
            if role == FRICTION or role == PRESCRIBED:
                by_gap, by_approach = 0.0, -1.0 if role == PRESCRIBED else 0.0
            _hold(slopes, count, r, n, by_gap, by_approach, rows.compliance[r])
            count += 1
    return count


@machine_code
def _add_changes(n: int, slopes: SlopeArrays) -> None:
    """Set by_tau, and add to by_q and by_qd: inertia times the gyroscopic change.

        by_q += inertia change_q,  by_qd += inertia change_qd
        by_tau = inertia change_tau

    If row k of change_qd is zero, row k of all three changes counts as zero.
    """
    by_q, by_qd, by_tau = slopes.by_q, slopes.by_qd, slopes.by_tau
    for i in range(n):
        for j in range(n):
            by_tau[i, j] = 0.0
    for k in range(n):
        some = False  # only coordinates of root joints have a gyroscopic change
        for j in range(n):
            some = some or slopes.change_qd[k, j] != 0.0
        if not some:
            continue
        for i in range(n):
            x = slopes.inertia[i, k]
            if x != 0.0:
                for j in range(n):
                    by_q[i, j] += x * slopes.change_q[k, j]
                    by_qd[i, j] += x * slopes.change_qd[k, j]
                    by_tau[i, j] += x * slopes.change_tau[k, j]


@machine_code
def hold_corrections(
    scene: Scene, step: StepArrays, blocks: int, slopes: SlopeArrays
) -> int:
    """Collect the active rows of the position correction; return their number.

    They are the normal row of a corrected contact, the row of a corrected limit, and
    all rows of other corrected blocks. One corrected at the largest speed is active,
    too: its bias does not depend on its gap. find_corrections must have run. Sets A and
    C to J, c_q to -(turned + by_gap J), by_gap the derivative of the bias by the gap,
    c_qd to 0, and soft to the row's compliance.
    """
    rows, facts, rule = step.rows, step.blocks, scene.rule
    n, count, time = len(scene.tables.coordinate), 0, scene.rule.remaining
    fastest, after = rule.push * rule.dt / time, 0
    for k in range(blocks):
        if facts.role[k] == FRICTION or facts.role[k] == PRESCRIBED:
            continue
        closing = facts.role[k] == CONTACT_ROLE or facts.role[k] == LIMIT
        height = 1 if closing else rows.count[k]
        after += height
        if slopes.mode[k] == SEPARATE:
            continue
        for r in range(height):
            by_gap = rule.apart / time
            if (
                closing
                and push_out(facts.gap[k], time, rule.apart, fastest) <= -fastest
            ):
                by_gap = 0.0
            soft = step.normals.compliance[after - height + r]
            _hold(slopes, count, rows.start[k] + r, n, by_gap, 0.0, soft)
            count += 1
    return count


@machine_code
def _bias_slopes(
    rule: Rule, facts: BlockFacts, k: int, first: int, above: int
) -> tuple[float, float]:
    """Return the derivatives of a bias by gap [1/s] and by velocity of approach [1].

    They are (0, e), with e the restitution, if the block rebounds: its bias is e times
    the approach, which is below -threshold. At gap 0, the kink of the rule, `above` 1
    selects the side of an open gap, 0 of an overlap.
    """
    gap, approach, e = facts.gap[k], facts.approach[k], facts.restitution[k]
    rebound = e * approach
    if e > 0.0 and approach < -rule.threshold and facts.bias[first] == rebound:
        return 0.0, e
    if abs(gap) <= AT_ZERO:
        gap = AT_ZERO if above != 0 else -AT_ZERO
    _, more, no_bounce = gap_rule(rule, gap + 0.5 * AT_ZERO, 0.0, approach, 0.0)
    _, less, no_bounce = gap_rule(rule, gap - 0.5 * AT_ZERO, 0.0, approach, 0.0)
    return (more - less) / AT_ZERO, 0.0


@machine_code
def _hold(
    slopes: SlopeArrays, to: int, r: int, n: int, by_gap: float, by_approach: float,
    soft: float,
) -> None:  # fmt: skip
    """Set the active row `to` from row r: J du + soft dlambda = c_q dq + c_qd dqd.

        c_q = -(turned + by_gap J + by_approach before),   c_qd = -by_approach J

    A and C are J, until _drag changes C. by_gap [1/s] and by_approach [1] are
    derivatives of the bias, `soft` is the compliance.
    """
    slopes.soft[to] = soft
    for j in range(n):
        J = slopes.J[r, j]
        slopes.A[to, j], slopes.C[to, j] = J, J
        change = slopes.turned[r, j] + by_gap * J + by_approach * slopes.before[r, j]
        slopes.c_q[to, j], slopes.c_qd[to, j] = -change, -by_approach * J


@machine_code
def _drag(step: StepArrays, k: int, normal: int, n: int, slopes: SlopeArrays) -> None:
    """Add the derivatives of a slipping contact's friction to the equations.

        inertia += J_T.T K J_T,   by_q -= J_T.T K turned,   C[normal] -= D s J_T
        K[r, o] = lambda_n D_r D_o ((r == o) - s_r s_o) / sum(s D sigma)

    over all rows but the normal one, with D = weight, s = along, lambda_n the normal
    impulse. The block's columns of by_mu, sliding, torsion, rolling, become the
    derivative of J_T.T lambda_T. `normal` is an index among the active rows.
    """
    rows, first, size = step.rows, step.rows.start[k], 0.0
    last = first + rows.count[k]
    for r in range(first + 1, last):
        size += slopes.along[r] * slopes.weight[r] * slopes.sigma[r]
    push = rows.impulse[first]
    for i in range(n):
        for part in range(3 * k, 3 * k + 3):
            slopes.by_mu[i, part] = 0.0
    for r in range(first + 1, last):
        D, s = slopes.weight[r], slopes.along[r]
        for j in range(n):
            slopes.C[normal, j] -= D * s * slopes.J[r, j]
        for o in range(first + 1, last):
            K = (1.0 if o == r else 0.0) - s * slopes.along[o]
            K *= push * D * slopes.weight[o] / size
            for i in range(n):
                x = K * slopes.J[r, i]
                if x != 0.0:
                    for j in range(n):
                        slopes.inertia[i, j] += x * slopes.J[o, j]
                        slopes.by_q[i, j] -= x * slopes.turned[o, j]
            # Derivative of lambda_T = -lambda_n D s by the coefficient of row o.
            v, part = slopes.sigma[o], 3 * k + (0 if o < first + 3 else o - first - 2)
            if o == first + 5:
                part -= 1
            change = (1.0 if o == r else 0.0) * s
            change += D * ((1.0 if o == r else 0.0) - s * slopes.along[o]) * v / size
            for i in range(n):
                slopes.by_mu[i, part] -= push * change * slopes.J[r, i]


@machine_code
def solve_slopes(
    dt: float, blocks: int, m: int, slips: bool, slopes: SlopeArrays
) -> tuple[int, bool]:
    """Solve for the derivatives of the velocity, with the `m` active rows of hold_rows.

    Sets du_dq, du_dqd, du_dtau and the columns of slipping blocks in du_dmu; `inertia`
    becomes its inverse. Returns the number of rows that depend on others, and whether
    dependent rows contradict each other.
    """
    n = slopes.inertia.shape[0]
    inverse, E = slopes.inertia, slopes.applied
    invert(inverse, n, 0.0, 0.0, slopes.pivots)
    lost = _respond(m, n, slips, slopes)
    product(slopes.left, slopes.product, E, n, m, n, 0)
    for i in range(n):
        for j in range(n):
            E[i, j] = inverse[i, j] - E[i, j]
    product(E, slopes.by_q, slopes.du_dq, n, n, n, 0)
    product(E, slopes.by_qd, slopes.du_dqd, n, n, n, 0)
    _by_forces(dt, n, slopes)
    _by_coefficients(blocks, n, slopes)
    _follow(slopes.c_q, slopes.du_dq, m, n, slopes)
    _follow(slopes.c_qd, slopes.du_dqd, m, n, slopes)
    return lost, lost > 0 and _disagree(slopes, m, n)


@machine_code
def solve_corrections(m: int, slips: bool, slopes: SlopeArrays) -> None:
    """Solve for the derivative of the position correction by q, slopes.du_dq (nv, nv).

        du_dq = M^-1 by_q + Z W (c_q - A M^-1 by_q)
        Z = M^-1 A.T,   W = (A Z + R)^-1,   R the diagonal `soft`

    The `m` active rows are those of hold_corrections, and by_q is of the correction.
    Dependent rows are ignored; c_q is overwritten. With `slips` slopes.inertia must be
    the inertia without drag, and becomes its inverse; else solve_slopes inverted it.
    """
    n = slopes.inertia.shape[0]
    if slips:
        invert(slopes.inertia, n, 0.0, 0.0, slopes.pivots)
    _respond(m, n, False, slopes)
    product(slopes.inertia, slopes.by_q, slopes.du_dq, n, n, n, 0)
    product(slopes.A, slopes.du_dq, slopes.right, m, n, n, 0)
    for r in range(m):
        for j in range(n):
            slopes.c_q[r, j] -= slopes.right[r, j]
    _follow(slopes.c_q, slopes.du_dq, m, n, slopes)


@machine_code
def _respond(m: int, n: int, slips: bool, slopes: SlopeArrays) -> int:
    """Compute W = (A M^-1 C.T + R)^-1 of the active rows; return how many are lost.

    response becomes W, left Z = M^-1 C.T, right A M^-1, product W A M^-1; pivots is
    overwritten. `inertia` is M^-1, soft the diagonal of R; C is read only if `slips`.
    Lost rows depend on others; rows of no response do not count, W is zero for both.
    """
    Z, inverse = slopes.left, slopes.inertia
    product(slopes.A, inverse, slopes.right, m, n, n, 0)
    if slips:
        product(slopes.C, inverse, slopes.product, m, n, n, 0)
    for r in range(m):
        for i in range(n):
            Z[i, r] = slopes.product[r, i] if slips else slopes.right[r, i]
    product(slopes.A, Z, slopes.response, m, n, m, 0)
    for r in range(m):
        slopes.response[r, r] += slopes.soft[r]
    lost = invert(slopes.response, m, RANK, NOTHING, slopes.pivots)
    product(slopes.response, slopes.right, slopes.product, m, m, n, 0)
    return lost


@machine_code
def _follow(
    c: FloatArray2, to: FloatArray2, m: int, n: int, slopes: SlopeArrays
) -> None:
    """Add Z W c to `to`: the change of velocity that makes the active rows equal c.

    c is (m, n), `to` (n, n); Z and W are from _respond. product and applied are
    overwritten. Nothing is changed if c is zero.
    """
    some = False
    for r in range(m):
        for j in range(n):
            some = some or c[r, j] != 0.0
    if some:
        product(slopes.response, c, slopes.product, m, m, n, 0)
        product(slopes.left, slopes.product, slopes.applied, n, m, n, 0)
        add(slopes.applied, to, n, n)


@machine_code
def _by_forces(dt: float, n: int, slopes: SlopeArrays) -> None:
    """Set slopes.du_dtau = E (dt 1 + by_tau), with E in slopes.applied."""
    # The gyroscopic change, and so by_tau, depends on forces at root joints alone.
    E = slopes.applied
    for j in range(n):
        changes = False
        for i in range(n):
            changes = changes or slopes.by_tau[i, j] != 0.0
        for i in range(n):
            total = dt * E[i, j]
            if changes:
                for k in range(n):
                    total += E[i, k] * slopes.by_tau[k, j]
            slopes.du_dtau[i, j] = total


@machine_code
def _by_coefficients(blocks: int, n: int, slopes: SlopeArrays) -> None:
    """Set columns 3 k to 3 k + 2 of slopes.du_dmu of slipping blocks k: E by_mu."""
    for k in range(blocks):
        if slopes.mode[k] == SLIP:
            for part in range(3 * k, 3 * k + 3):
                for i in range(n):
                    total = 0.0
                    for j in range(n):
                        total += slopes.applied[i, j] * slopes.by_mu[j, part]
                    slopes.du_dmu[i, part] = total


@machine_code
def _disagree(slopes: SlopeArrays, m: int, n: int) -> bool:
    """Return whether du_dq violates a rigid active row for a fixed displacement of q.

        |A du_dq d - c_q d| > 1e-7 max(|c_q d|, 1e-3),   largest values over the rows

    d is the irregular displacement of _displacement; no other is tested. Rows with a
    compliance are left out; pivots is overwritten.
    """
    # A fixed, irregular displacement stands for all of them.
    change, left, size = slopes.pivots[0], 0.0, 0.0
    for i in range(n):
        change[i] = 0.0
        for j in range(n):
            change[i] += slopes.du_dq[i, j] * _displacement(j)
    for r in range(m):
        if slopes.soft[r] > 0.0:
            continue
        total, wanted = 0.0, 0.0
        for j in range(n):
            wanted += slopes.c_q[r, j] * _displacement(j)
            total += slopes.A[r, j] * change[j]
        left, size = max(left, abs(total - wanted)), max(size, abs(wanted))
    return left > max(size, SLOW) * AGREE


@machine_code
def _displacement(j: int) -> float:
    """Return entry j of an irregular displacement of q, from -9/11 to 1."""
    return 1.0 - 2.0 * float((7 * j + 3) % 11) / 11.0
