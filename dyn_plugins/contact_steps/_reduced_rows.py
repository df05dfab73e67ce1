"""Rows of active contacts, at most six for each body, and an inverse of any rank.

Not a solver: the derivatives of steps share it.
"""

from typing import Any, NamedTuple

from dyn_core.authoring import (
    Force,
    Matrix,
    Vector,
    absolute,
    logical_and,
    logical_not,
    logical_or,
    maximum,
    sqrt,
    total,
    where,
)

RANK = 1e-9  # pivot of a dependent row at most, relative to its response
FLAT = 1e-7  # remainder of a dependent column at most, relative to the column
AGREE = 1e-7  # largest contradiction of dependent rows, relative to their right sides
NOTHING = 1e-12  # response that counts as zero, relative to the largest


class Row(NamedTuple):
    """A row of active contacts on a body, as Forces paired with columns s of joints.

        along . du + by_q dq + by_qd dqd + by_gap dgap = 0

    Attributes:
        along: Velocity of the row per motion.
        push: Wrench of the row per impulse.
        turned: Coefficient of a column s in by_q.
        before: Coefficient of s in by_qd, and of the rate of s before the step in by_q.
        by_gap: Coefficients of the gaps of the body's contacts.
    """

    along: Force
    push: Force
    turned: Force
    before: Force
    by_gap: Vector


class BodyRows(NamedTuple):
    """Rows of one body.

    Attributes:
        rows: At most six Rows.
        dependent: Number of rows that the others imply.
        T: Map from the rows of the contacts to `rows`; None: identity.
        disagree: Condition: dependent rows contradict each other, as if the gaps of a
            box's corners had different derivatives.
    """

    rows: list
    dependent: Any
    T: Any
    disagree: Any


def rows_of_body(contacts, slopes):
    """Return the BodyRows of one body.

    A pressing contact has a normal row, a sticking one also tangent rows. In a slipping
    contact, `push` of the normal row includes the friction.

    More than six rows A (m x 6) are reduced to T A, with T (6 x m) the transposed
    orthonormal columns of A: Gram-Schmidt on six columns, with zeros for dependent
    columns. The impulses T.T y have the least norm.

    Args:
        contacts: ActiveContacts of one body.
        slopes: For each contact, the derivatives of its bias by gap and by the velocity
            of approach.
    """
    rows, n = [], range(len(contacts))
    for k, (x, (by_gap, by_approach)) in enumerate(zip(contacts, slopes, strict=True)):
        mode, (shift, _), (_, g_before) = x.mode, x.by_gap, x.before
        parts = (
            (mode.pressed, x.f[0] - x.f[1] * mode.mu),
            (mode.sticks, x.f[1]),
            (mode.sticks, x.f[2]),
        )
        for a, (weight, push) in enumerate(parts):
            turned, before, moved = x.g[a], Force.zero(), shift[a]
            if a == 0:
                turned = turned + x.f[0] * by_gap + g_before * by_approach
                before, moved = x.f[0] * by_approach, moved + by_gap
            gaps = Vector(moved * weight if l == k else 0.0 for l in n)
            spatial = (part * weight for part in (x.f[a], push, turned, before))
            rows.append(Row(*spatial, gaps))
    if len(rows) <= 6:
        return BodyRows(rows, 0.0, None, False)
    count = total(x.mode.pressed + x.mode.sticks * 2.0 for x in contacts)
    six = list(zip(*(tuple(row.along) for row in rows), strict=True))
    T, rank = _orthonormal([Vector(column) for column in (*six[3:], *six[:3])])
    reduced = [_combined(rows, t) for t in T]
    left, size = 0.0, 0.0
    for k, row in enumerate(rows):
        implied = total(x.turned * t[k] for x, t in zip(reduced, T, strict=True))
        for x, y in zip(row.turned, implied, strict=True):
            left, size = maximum(left, absolute(x - y)), maximum(size, absolute(x))
    return BodyRows(reduced, count - rank, T, left > size * AGREE)


def inside_by_others(contacts, T):
    """Return the condition that impulses of least norm lie inside all cones.

    For dependent rows, the impulses that a solver finds may lie on a cone without need.
    If other impulses with the same wrench lie inside, no contact is about to slip.

    Args:
        contacts: ActiveContacts of one body.
        T: BodyRows.T; None: the impulses are unique, and the result is False.
    """
    if T is None:
        return False
    impulses = Vector(x for contact in contacts for x in contact.impulse)
    least = total(t * (t @ impulses) for t in T)
    inside = True
    for k, contact in enumerate(contacts):
        n, s, e = least[3 * k : 3 * k + 3]
        mode, limit = contact.mode, n * contact.mu
        sticks = logical_and(n > 0.0, sqrt(s * s + e * e) < limit * 0.999)
        good = logical_or(mode.pressed < 0.5, logical_and(mode.sticks > 0.5, sticks))
        inside = logical_and(inside, good)
    return inside


def _combined(rows, weights):
    """Return the weighted sum of Rows, as a Row."""
    parts = zip(*rows, strict=True)
    return Row(
        *(total(x * w for x, w in zip(part, weights, strict=True)) for part in parts)
    )


def _orthonormal(columns):
    """Return orthonormal vectors that span the columns, by Gram-Schmidt.

    Returns:
        A vector for each column, zero for a dependent column; and the rank.
    """
    basis, rank = [], 0.0
    for column in columns:
        left = column
        for other in basis:
            left = left - other * (other @ left)
        square, whole = left @ left, column @ column
        new = square > whole * (FLAT * FLAT)
        over = where(new, 1.0 / sqrt(where(new, square, 1.0)), 0.0)
        basis.append(left * over)
        rank = rank + where(new, 1.0, 0.0)
    return basis, rank


def inverse_of_any_rank(M):
    """Return an inverse of M on its independent rows, zero on dependent rows.

    Gauss-Jordan elimination in the order of the rows. A row whose pivot vanishes
    depends on previous rows: for symmetric semidefinite M and consistent right sides,
    the solution satisfies it, too.

    Args:
        M: Square Matrix, the responses of rows to each other.

    Returns:
        The inverse, and the number of dependent rows, without rows of no response.

    Source: G. Golub and C. Van Loan, Matrix Computations, 5.5, for the rank.
    """
    n, a = len(M.rows), [list(row) for row in M.rows]
    start = [absolute(a[k][k]) for k in range(n)]
    largest, dropped = 0.0, 0.0
    for x in start:
        largest = where(x > largest, x, largest)
    for k in range(n):
        responds = start[k] > largest * NOTHING
        good = logical_and(responds, absolute(a[k][k]) > start[k] * RANK)
        lost = logical_and(responds, logical_not(good))
        dropped = dropped + where(lost, 1.0, 0.0)
        over = where(good, 1.0 / where(good, a[k][k], 1.0), 0.0)
        pivots = [x * over for x in a[k]]
        for i in range(n):
            if i == k:
                continue
            x = a[i][k]
            for j in range(n):
                if j != k:
                    a[i][j] = a[i][j] - x * pivots[j]
            a[i][k] = -x * over
        a[k] = pivots
        a[k][k] = over
    return Matrix(a), dropped
