"""Rank-revealing orthogonal factors of rows that may be dependent, as a rolled loop.

Not a solver: _least.py uses it.
"""

from dyn_core.authoring import Vector, logical_and, loop, maximum, sqrt, total, where

TOLERANCE = 1e-9  # remainder of a dependent row at most, relative to the largest row


class RankedRows:
    """Complete orthogonal factors of the rows B: least-norm solutions of any rank.

        B = U R Q,   rows of Q and columns of U orthonormal, R triangular, r x r
        B^+ = Q.T R^-1 U.T,   (B B.T)^+ = U R^-T R^-1 U.T

    Each iteration takes the row with the largest remainder as the next direction, and
    removes this direction from all remainders, until they are below `tolerance` times
    the largest row (or below `floor`). The number of iterations is the rank. If it is
    less than the number r = min(m, n) of rows or columns, the last rows of Q are zero,
    and so are those of `over`, 1 / R_ii. The last remainder used is not smaller than
    the smallest singular value of its rank, and at most sqrt(m n) times larger.
    `remainders` are the rows' components orthogonal to Q's. The tolerance may be
    traced.

    Source: G. Golub and C. Van Loan, Matrix Computations, 5.5 (rank-deficient least
    squares by QR with column pivoting); Gram-Schmidt done twice for each direction.
    """

    def __init__(self, rows, n, tolerance=TOLERANCE, floor=0.0):
        self.m, self.n = len(rows), n
        self.r = min(self.m, self.n)
        self.largest = maximum_of([row @ row for row in rows])
        least = maximum(self.largest * (tolerance * tolerance), floor * floor)
        self._directions(rows, least)
        self.U, self.R, self.over = _triangular(self.C, self.m, self.r)

    def _directions(self, rows, least):
        """Set Q, C, remainders and rank; C holds the components of B along rows of Q.

        There are at most r directions; vectors of Q and C beyond the rank are zero.
        least: Square of the smallest remainder that adds rank.
        """
        m, n, r = self.m, self.n, self.r
        self.remainders, self.Q, self.C, self.rank = rows, [], [], 0.0
        if not r:
            return

        def split(state):
            rows = [Vector(state[k * n : (k + 1) * n]) for k in range(m)]
            Q = [Vector(state[(m + k) * n : (m + k + 1) * n]) for k in range(r)]
            start = (m + r) * n
            C = [Vector(state[start + k * m : start + (k + 1) * m]) for k in range(r)]
            return rows, Q, C, state[-1]

        def go_on(state):
            rows, _, _, k = split(state)
            remainder = maximum_of([row @ row for row in rows])
            return logical_and(remainder > least, k < float(r))

        def next_direction(state):
            rows, Q, C, k = split(state)
            q = _orthonormal(_largest(rows), Q)
            along = Vector(row @ q for row in rows)
            rows = [row - q * x for row, x in zip(rows, along, strict=True)]
            Q, C = _put(k, q, Q), _put(k, along, C)
            return [*_flat(rows), *_flat(Q), *_flat(C), k + 1.0]

        empty = [0.0] * (r * (n + m))
        state = loop([*_flat(rows), *empty, 0.0], next_direction, go_on, r)
        self.remainders, self.Q, self.C, self.rank = split(state)

    def add_combination(self, y, tolerance, counts):
        """Add the direction of y.T B to the factors in place, if it is not dependent.

        It is added if `counts` holds, its remainder is above `tolerance` times the
        largest row, and the rank is less than r. Other remainders are ignored. y is
        orthogonal to the columns of U.
        """
        y = _unit(y)
        z = total_of(self.remainders, y, self.n)
        larger = z @ z > self.largest * (tolerance * tolerance)
        adds = logical_and(counts, logical_and(larger, self.rank < float(self.r)))
        q = _orthonormal(z, self.Q)
        k = where(adds, self.rank, -1.0)
        self.Q, self.C = _put(k, q, self.Q), _put(k, y * (z @ q), self.C)
        self.rank = where(adds, self.rank + 1.0, self.rank)
        self.U, self.R, self.over = _triangular(self.C, self.m, self.r)

    def solve(self, b):
        """Return x = B^+ b, n, and the residual b - B x, m, for b, m numbers."""
        z, left = self._reduced(b)
        return total_of(self.Q, z, self.n), left

    def multipliers(self, b):
        """Return (B B.T)^+ b, m, for b, m numbers."""
        z, _ = self._reduced(b)
        y = []
        for i in range(self.r):  # R.T y = z
            x = z[i] - total(self.R[k][i] * y[k] for k in range(i))
            y.append(x * self.over[i])
        return total_of(self.U, y, self.m)

    def _reduced(self, b):
        """Return R^-1 U.T b, a list of r, and b - U U.T b, m, for b, m numbers."""
        b = Vector(b)
        along = [u @ b for u in self.U]
        left = b - total_of(self.U, along, self.m)
        z = list(along)
        for i in reversed(range(self.r)):
            z[i] = z[i] - total(self.R[i][k] * z[k] for k in range(i + 1, self.r))
            z[i] = z[i] * self.over[i]
        return z, left

    def without_rows(self, x):
        """Return the component of x, n, orthogonal to all rows of B: x - Q.T Q x."""
        return x - total_of(self.Q, [q @ x for q in self.Q], self.n)

    def without_columns(self, y):
        """Return the component of y, m, orthogonal to all columns of B: y - U U.T y."""
        return y - total_of(self.U, [u @ y for u in self.U], self.m)


def _orthonormal(q, others):
    """Return the unit vector, or zero, of q's part orthogonal to vectors `others`."""
    for _ in range(2):  # the second time removes rounding errors
        for other in others:
            q = q - other * (other @ q)
        q = _unit(q)
    return q


def _unit(v):
    """Return a vector of length 1 along v; zero for zero."""
    size = sqrt(v @ v)
    return v * (1.0 / where(size > 0.0, size, 1.0))


def _put(k, value, vectors):
    """Return a list of the vectors with element k replaced by `value`.

    k is a float and may be traced; one outside the list, such as -1.0, replaces none.
    """
    return [  # k is a float, so it is compared with a margin
        where(logical_and(k > i - 0.5, k < i + 0.5), value, vector)
        for i, vector in enumerate(vectors)
    ]


def _triangular(columns, m, r):
    """Return U, R and 1 / R_ii of r columns C = U R, of length m, by Gram-Schmidt.

    If nothing at all is left of a column after the earlier ones, its column of U, R_ii
    and 1 / R_ii are zero.
    """
    U, R, over = [], [[0.0] * r for _ in range(r)], []
    for j, c in enumerate(columns):
        for _ in range(2):
            for i, u in enumerate(U):
                x = u @ c
                c, R[i][j] = c - u * x, R[i][j] + x
        size = sqrt(c @ c)
        R[j][j] = size
        over.append(where(size > 0.0, 1.0 / where(size > 0.0, size, 1.0), 0.0))
        U.append(c * over[j])
    return U, R, over


def _largest(rows):
    """Return the Vector with the largest norm of a non-empty list, first of equals."""
    best, size = rows[0], rows[0] @ rows[0]
    for row in rows[1:]:
        square = row @ row
        larger = square > size
        best, size = where(larger, row, best), where(larger, square, size)
    return best


def maximum_of(values):
    """Return the maximum of non-negative numbers; zero for no values."""
    largest = 0.0
    for x in values:
        largest = maximum(largest, x)
    return largest


def total_of(vectors, weights, n):
    """Return the sum of `weights` times vectors of length n; zeros for no vectors."""
    result = Vector.zeros(n)
    for v, x in zip(vectors, weights, strict=True):
        result = result + v * x
    return result


def _flat(vectors):
    """Return the entries of all vectors, one after another, as a list."""
    return [x for v in vectors for x in v]
