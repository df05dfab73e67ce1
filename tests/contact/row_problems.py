"""Problems as rows that several tests share: stacks, legs on a base, mixed blocks."""

import numpy as np

from dyn_core.contact import ConstraintProblem
from dyn_core.contact.problem.rows import CONTACT, Rows

NORMAL_FIRST = np.array([[0, 0, 1.0], [1, 0, 0], [0, 1, 0]])


def rows_from(blocks, mu=0.5):
    """Return Rows and the number of coordinates of contacts (support, Y, b)."""
    supports, Ys, bs = zip(*blocks, strict=True)
    widths = np.array([len(s) for s in supports])
    counts = np.array([len(b) for b in bs])
    coefficients = np.zeros((len(blocks), 3))
    coefficients[:, 0] = mu
    m = int(counts.sum())

    def starts(sizes):
        return np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)

    rows = Rows(
        kind=np.full(len(blocks), CONTACT, np.int64),
        start=starts(counts),
        count=counts.astype(np.int64),
        support_start=starts(widths),
        support_count=widths.astype(np.int64),
        support=np.concatenate(supports).astype(np.int64),
        y_start=starts(widths * counts),
        y=np.concatenate([np.ravel(Y) for Y in Ys]),
        b=np.concatenate(bs).astype(float),
        lo=np.zeros(m),
        hi=np.zeros(m),
        compliance=np.zeros(m),
        mu=coefficients,
        impulse=np.zeros(m),
        rest=np.zeros(1),
    )
    return rows, int(rows.support.max()) + 1


def stacked_boxes(masses, mu=0.5, push=0.0, h=1e-3):
    """Return boxes of 0.2 m on each other, four contacts each, pushed by `push` m/s²."""
    half, blocks = 0.1, []
    free = np.array([push * h, 0, -9.81 * h, 0, 0, 0])
    for i, _ in enumerate(masses):
        for corner in ((1, 1), (1, -1), (-1, 1), (-1, -1)):
            support, Y, b = [], [], np.zeros(3)
            for body, z, sign in ((i - 1, half, -1), (i, -half, 1)):
                if body < 0:
                    continue
                r = np.array([corner[0] * half, corner[1] * half, z])
                J = sign * np.hstack([NORMAL_FIRST, np.cross(r, NORMAL_FIRST)])
                inertia = masses[body] * np.repeat([1, (2 * half) ** 2 / 6], 3)
                support += range(6 * body, 6 * body + 6)
                Y.append(J / np.sqrt(inertia))
                b = b + J @ free
            blocks.append((support, np.hstack(Y), b))
    return rows_from(blocks, mu)


def legs_on_a_base(seed, legs=4, feet=1, joints=3, mu=0.6):
    """Return random contacts of the feet of legs that share six coordinates."""
    rng = np.random.default_rng(seed)
    nv, blocks = 6 + legs * joints, []
    free = rng.normal(size=nv) * 0.002
    free[2] -= 0.03
    for leg in range(legs):
        joint_rows = range(6 + leg * joints, 6 + (leg + 1) * joints)
        support = [*range(6), *joint_rows]
        frame = rng.normal(size=(6, len(support)))
        frame *= np.repeat([0.3, 1.0], (6, joints))
        for _ in range(feet):
            r = rng.normal(size=3) * 0.1
            Y = np.hstack([NORMAL_FIRST, np.cross(r, NORMAL_FIRST)]) @ frame
            Y[0, 2] += 0.3
            blocks.append((support, Y, Y @ free[support] - [0.01, 0, 0]))
    return rows_from(blocks, mu)


def problem_of(rows, nv):
    """Return the ConstraintProblem of Rows whose blocks are contacts without torsion."""
    Y = dense(rows, nv)
    parts = [("contact", int(n)) for n in rows.count]
    return ConstraintProblem(
        parts, Y @ Y.T, rows.b, mu=rows.mu[:, 0], compliance=rows.compliance
    )


def dense(rows, nv):
    """Return Y as a matrix, (rows, nv)."""
    Y = np.zeros((len(rows.b), nv))
    for k, first in enumerate(rows.start):
        s, width = rows.support_start[k], rows.support_count[k]
        support, count = rows.support[s : s + width], rows.count[k]
        values = rows.y[rows.y_start[k] : rows.y_start[k] + count * width]
        Y[first : first + count, support] = values.reshape(count, width)
    return Y


def mixed_blocks(seed, singular=False):
    """Return a problem of every kind of block, with compliance and two islands."""
    rng = np.random.default_rng(seed)
    parts = [
        ("contact", 3),
        ("bilateral", 2),
        ("box", 2),
        ("contact", 4),
        ("unilateral", 2),
        ("contact", 6),
        ("prescribed", 1),
        ("contact", 1),
        ("contact", 2),
        ("box", 1),
    ]
    sizes = [n for _, n in parts]
    m, half = sum(sizes), sum(sizes[:5])
    G, b = np.zeros((m, m)), np.zeros(m)
    for part in (slice(0, half), slice(half, m)):
        n = part.stop - part.start
        J = rng.normal(size=(n, n - 2 if singular else n + 3))
        G[part, part], b[part] = J @ J.T, J @ rng.normal(size=J.shape[1])
    mu = rng.choice([0.0, 0.1, 0.6], size=7)
    lo = -rng.uniform(0, 0.3, size=m)
    hi = np.where(rng.uniform(size=m) < 0.3, np.inf, 0.2)
    return ConstraintProblem(parts, G, b, mu=mu, lo=lo, hi=hi)
