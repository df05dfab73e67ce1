"""Contacts with polyhedral friction as a linear complementarity problem: Lemke."""

import numpy as np

from dyn_core import CONTACT_SOLVE, ArraySolver, UnsupportedError, hookimpl
from dyn_core.contact import CONVERGED, MAX_ITERATIONS, RAY, Numbers

PIVOT = 1e-11  # entries below it are no pivots, rows and columns scaled to one
PROVEN = 1e-12  # what a ray may leave of the law and be a solution


def lemke(M, q, max_iterations):
    """Give z of 0 <= z, w = M z + q >= 0, w . z = 0: complementary pivoting.

        w = M z + q + 1 z0,   z0 enters, then the complement of what left

    Ties of the ratio test are broken lexicographically by the rows of the inverse of
    the basis, so that no basis comes twice.

    Args:
        M, q: Of the problem, (n, n), (n,).
        max_iterations: Most pivots.

    Returns:
        z, pivots, and one of laws.STATUSES.

    Source: LCP-5.
    """
    n = len(q)
    if not n or q.min() >= 0:
        return np.zeros(n), 0, CONVERGED
    table = np.hstack([np.eye(n), -M, -np.ones((n, 1)), q[:, None]])
    whole = table.copy()
    basis = list(range(n))
    ties = np.flatnonzero(q <= q.min() * (1 - 1e-12))
    row, enters = int(ties[-1]), 2 * n
    for count in range(1, max_iterations + 1):
        left = basis[row]
        _pivot(table, row, enters)
        basis[row] = enters
        if left == 2 * n:
            return _values(whole, basis, n), count, CONVERGED
        enters = left + n if left < n else left - n
        row = _leaving(table, enters, basis, n)
        if row is None:
            return _values(whole, basis, n), count, RAY
    return _values(whole, basis, n), max_iterations, MAX_ITERATIONS


def _pivot(table, row, column):
    """Solve a row for a column's variable, in place."""
    table[row] /= table[row, column]
    factors = table[:, column].copy()
    factors[row] = 0.0
    table -= factors[:, None] * table[row]


def _leaving(table, column, basis, n):
    """Give the row of the least ratio, lexicographically; None on a ray."""
    d = table[:, column]
    rows = np.flatnonzero(d > PIVOT * max(1.0, float(np.abs(d).max())))
    if not len(rows):
        return None
    for k in [-1, *range(n)]:
        ratios = table[rows, k] / d[rows]
        least = ratios.min()
        close = ratios <= least + 1e-12 * max(1.0, abs(least))
        rows = rows[close]
        if k == -1:
            artificial = [r for r in rows if basis[r] == 2 * n]
            if artificial:
                return int(artificial[0])
        if len(rows) == 1:
            break
    return int(rows[0])


def _values(whole, basis, n):
    """Give z of a basis, solved afresh from the first table."""
    try:
        x = np.linalg.solve(whole[:, basis], whole[:, -1])
    except np.linalg.LinAlgError:
        return np.full(n, np.nan)
    z = np.zeros(n)
    for variable, value in zip(basis, x, strict=True):
        if n <= variable < 2 * n:
            z[variable - n] = max(value, 0.0)
    return z


def polyhedral(numbers, facets):
    """Give M, q, T, start of the LCP of a problem without free rows.

        lambda = T z + start,   w = T.T u + what couples y, beta and gamma

    A unilateral row has z = lambda; a bounded one z = lambda - lo and, between two
    bounds, y of w_y = hi - lo - z; a contact has lambda_n, shares beta >= 0 of facet
    directions D and gamma: w_beta = D.T u + gamma, w_gamma = lambda_n - sum(beta).

    Args:
        numbers: The problem.
        facets: Directions for two tangent rows, even.

    Source: LCP-5.
    """
    lower, upper = numbers.bounds
    m = len(numbers.b)
    columns, start, extra, constant = [], np.zeros(m), [], []

    def add(column, unit, q=0.0):
        columns.append((column, unit))
        constant.append(q)
        return len(columns) - 1

    for block in numbers.layout.blocks:
        unit = 1 / np.sqrt(numbers.blockwise[block.start])
        if block.kind == "contact" and block.rows > 1:
            normal = add(np.eye(m)[block.start], unit)
            shares = [add(d, unit) for d in _directions(block, numbers.mu, m, facets)]
            gamma = add(np.zeros(m), 1 / unit)
            extra += [(gamma, normal, 1.0)]
            for beta in shares:
                extra += [(beta, gamma, 1.0), (gamma, beta, -1.0)]
            continue
        for row in block.all:
            side = 1.0 if np.isfinite(lower[row]) else -1.0
            start[row] = lower[row] if side > 0 else upper[row]
            first = add(side * np.eye(m)[row], unit)
            if np.isfinite(lower[row]) and np.isfinite(upper[row]):
                y = add(np.zeros(m), 1 / unit, upper[row] - lower[row])
                extra += [(first, y, 1.0), (y, first, -1.0)]
    T = np.array([c for c, _ in columns]).reshape(len(columns), m).T
    S = np.zeros((len(columns),) * 2)
    for i, j, value in extra:
        S[i, j] = value
    units = np.array([u for _, u in columns])
    M = T.T @ numbers.A @ T + S
    q = T.T @ (numbers.A @ start + numbers.b) + np.array(constant)
    return M * units[:, None] * units, q * units, T * units, start


def _directions(block, mu, m, facets):
    """Give the directions of friction at the limit, columns of m rows."""
    own = [mu[c] for c in block.coefficients]
    rows, at, found = list(block.tangent), 0, []
    while at < len(rows):
        pair = (
            at + 1 < len(rows) and block.coefficients[at] == block.coefficients[at + 1]
        )
        angles = 2 * np.pi * np.arange(facets) / facets if pair else (0.0, np.pi)
        for angle in angles:
            d = np.zeros(m)
            d[rows[at]] = own[at] * np.round(np.cos(angle), 16)
            if pair:
                d[rows[at + 1]] = own[at] * np.round(np.sin(angle), 16)
            found.append(d)
        at += 2 if pair else 1
    return found


class Lemke(ArraySolver):
    """Impulses by Lemke's pivoting: friction cones become pyramids of some facets.

        0 <= lambda_n,  0 <= beta,  0 <= gamma   orthogonal to
        u_n >= 0,  D.T u + gamma >= 0,  lambda_n - sum(beta) >= 0

    Exact for everything but the cones: planar friction, boxes and rows of any kind are
    exact, round cones are pyramids within them (error of friction at most
    1 - cos(pi / facets)), torsion and rolling stand in one polytope with the tangents.
    Free rows are eliminated, by least norm where they depend on each other. It ends
    with a solution or a ray: with G + R semidefinite a ray means that none exists.

    Source: LCP-5.
    """

    name = "lemke"
    signature = CONTACT_SOLVE
    source = "LCP-5"
    options = {"facets": 8, "max_iterations": 10_000}

    def relaxes(self, layout):
        """Say which part of the law is not solved exactly."""
        round_cones = any(block.rows > 2 for block in layout.contacts)
        return "friction cones are pyramids" if round_cones else ""

    def solve(self, layout, G, b, mu, lo, hi, compliance, warm, facets, max_iterations):
        """Give one problem's impulses.

        Args:
            layout: Blocks.
            G, b: Delassus matrix and free velocity, (m, m), (m,).
            mu: Friction coefficients, (k,).
            lo, hi: Bounds of boxes, (m,).
            compliance: Diagonal of R, (m,).
            warm: Unused; pivoting begins at zero.
            facets: Directions of friction between two tangents.
            max_iterations: Most pivots.

        Returns:
            The outputs of CONTACT_SOLVE.
        """
        if facets < 4 or facets % 2:
            raise UnsupportedError(
                f"lemke: facets {facets}; valid: an even number, 4 or more"
            )
        whole = Numbers(layout, G, b, mu, lo, hi, compliance, warm)
        reduced = whole.without_free_rows()
        M, q, T, start = polyhedral(reduced.inner, facets)
        size = float(np.abs(q).max(initial=0.0)) or 1.0
        z, pivots, status = lemke(M, q / size, max_iterations)
        w = M @ z + q / size
        law = float(np.abs(np.minimum(z, w)).max(initial=0.0))
        law /= max(1.0, float(np.abs(z).max(initial=0.0)))
        if status == RAY and law <= PROVEN:
            status = CONVERGED  # the artificial variable is zero, though in the basis
        return reduced.answer(T @ z * size + start, pivots, status, law)


@hookimpl
def dyn_solvers():
    """Offer the solvers of this file."""
    return [Lemke()]
