"""Rows of active contacts, at most six for each body, and their solution of any rank.

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

RANK = 1e-9  # of a row, part below which a remainder adds no rank
FLAT = 1e-7  # of a column, part below which its remainder adds no rank
AGREE = 1e-7  # part of right sides by which dependent rows may differ
NOTHING = 1e-12  # of the largest response, part below which a row has none


class Row(NamedTuple):
    """A row of active contacts on a body: functions of columns of its joints.

        along . du + by_q dq + by_qd dqd + by_gap dgap = 0

    Attributes:
        along: Velocity of the row per motion.
        push: Wrench of the row per impulse.
        turned: What s adds by q.
        before: What s adds by qd, and the rate of the motion before the step by q.
        by_gap: By contact of the body.
    """

    along: Force
    push: Force
    turned: Force
    before: Force
    by_gap: Vector


class BodyRows(NamedTuple):
    """The rows of one body.

    Attributes:
        rows: At most six Rows, or those of two contacts.
        dependent: How many rows the others imply.
        T: The map to the rows; None: they are those of the contacts.
        disagree: Condition that rows that depend on each other ask for different
            changes, as where the gaps of corners have other slopes.
    """

    rows: list
    dependent: Any
    T: Any
    disagree: Any


def rows_of_body(contacts, slopes):
    """Return the BodyRows of one body.

    Normal rows where contacts press, tangents where they stick; where they slip, the
    push of the normal has the friction with it.

    Of more than six rows A (m x 6) the same is said by T A, with T (6 x m) the
    transposed orthonormal columns of A: Gram-Schmidt on six columns, which leaves out
    those of no rank. The impulses T.T y are those of least norm.

    Args:
        contacts: ActiveContacts of one body.
        slopes: By contact: slopes of its bias by gap and by the velocity of approach.
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

    Those that a solver finds for dependent rows may lie at a cone without need. The
    same wrench by other impulses proves that no contact is about to slip.

    Args:
        contacts: ActiveContacts of one body.
        T: Of BodyRows; None: the impulses are the only ones.
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
    """Return the sum of Rows by weights."""
    parts = zip(*rows, strict=True)
    return Row(
        *(total(x * w for x, w in zip(part, weights, strict=True)) for part in parts)
    )


def _orthonormal(columns):
    """Return orthonormal vectors that span the columns, zeros where there are fewer.

    Returns:
        A vector for each column, and the rank.
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
    """Return an inverse of M on the rows that add to its rank, zero on the others.

    Gauss-Jordan elimination in the order of the rows. A row whose pivot vanishes
    depends on those before: of symmetric semidefinite M, and right sides that agree,
    the solution then satisfies it, too.

    Args:
        M: Square, the responses of rows to each other.

    Returns:
        The inverse, and the number of rows that respond but were left out.

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
