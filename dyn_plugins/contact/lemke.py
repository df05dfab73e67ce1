"""Contacts with polyhedral friction as a linear complementarity problem: Lemke."""

import numpy as np

from dyn_core.authoring import ContactSolver, hookimpl
from dyn_core.contact import CONVERGED, MAX_ITERATIONS, RAY, ContactSolution
from dyn_core.errors import UnsupportedError
from dyn_core.validation import shown

PIVOT = 1e-11  # smallest pivot, rows and columns scaled to one
PROVEN = 1e-12  # residual of the law below which a ray is a solution
SMALL_LAW = 1e-9  # the same of a basis that was found for another q
GOOD_LAW = 1e-7  # the same of the best of all ways
PERTURBATIONS = (1e-10, 1e-8, 1e-6, 1e-12, 1e-5, 1e-4)  # of q, where its largest is one
SOFTENED = (1e-12, 1e-11, 1e-10, 1e-9, 1e-8)  # of the diagonal, the last ways
GOLDEN = (5**0.5 - 1) / 2
LARGEST = 100.0  # factor by which a large z may widen the tolerance
ROUNDED = 1e-4  # error of a large z, over the tolerance of the law


def lemke(M, q, max_iterations):
    """Return z of 0 <= z, w = M z + q >= 0, w . z = 0, the first that holds.

    Ties that rounding errors decide, as in a body at rest on many points, may end on a
    ray where there is a solution. Another way then goes to a q that differs a little in
    each row, and the basis that it finds is solved for the true q; the last ways soften
    the diagonal of M a little.

    Args:
        M, q: Matrix and vector of the problem, (n, n), (n,), scaled to about one.
        max_iterations: Largest number of pivots of a way.

    Returns:
        z, pivots, and one of residuals.STATUSES.

    Source: LCP-5.
    """
    spread = 1.0 + np.modf(GOLDEN * np.arange(len(q)))[0]
    best, least, pivots = None, np.inf, 0
    ways = [(size, 0.0) for size in (0.0, *PERTURBATIONS)]
    for size, soft in [*ways, *((1e-8, soft) for soft in SOFTENED)]:
        most = min(max_iterations, 100 + 20 * len(q))  # beyond it goes round and round
        softened = M + soft * np.eye(len(q)) if soft else M
        z, count, status = pivoted(softened, q, size * spread, most)
        law, pivots = shortfall(M, q, z), pivots + count
        proven = PROVEN if status == RAY and not size else SMALL_LAW
        if status != MAX_ITERATIONS and law <= proven:
            return z, pivots, CONVERGED  # on a ray z0 is zero, though in the basis
        if best is None or law < least:
            best, least = (z, status if best is None else best[1]), law
    return best[0], pivots, CONVERGED if least <= GOOD_LAW else best[1]


def shortfall(M, q, z):
    """Return how far z is from 0 <= z, M z + q >= 0 and their product zero.

    Relative to q, that is one; large z, as of heavy bodies on light ones, count by the
    part of them that rounding errors may take.
    """
    law = float(np.abs(np.minimum(z, M @ z + q)).max(initial=0.0))
    large = ROUNDED * float(np.abs(z).max(initial=0.0))
    return law / max(1.0, min(large, LARGEST))


def pivoted(M, q, change, max_iterations):
    """Return z by complementary pivoting for q + change, solved for q.

        w = M z + q + 1 z0,   z0 enters, then the complement of the leaving variable

    Ties of the ratio test are broken lexicographically by the rows of the inverse of
    the basis, so that no basis is repeated.

    Args:
        M, q: Matrix and vector of the problem, (n, n), (n,).
        change: Added to q while it pivots, (n,).
        max_iterations: Largest number of pivots.

    Returns:
        z, pivots, and one of residuals.STATUSES.

    Source: LCP-5.
    """
    n = len(q)
    if not n or q.min() >= 0:
        return np.zeros(n), 0, CONVERGED
    initial = np.hstack([np.eye(n), -M, -np.ones((n, 1)), q[:, None]])
    q = q + change
    table = initial.copy()
    table[:, -1] = q
    basis = list(range(n))
    ties = np.flatnonzero(q <= q.min() * (1 - 1e-12))
    row, entering = int(ties[-1]), 2 * n
    for count in range(1, max_iterations + 1):
        leaving = basis[row]
        _pivot(table, row, entering)
        basis[row] = entering
        if leaving == 2 * n:
            return _values(initial, basis, n), count, CONVERGED
        entering = leaving + n if leaving < n else leaving - n
        row = _leaving(table, entering, basis, n)
        if row is None:
            return _values(initial, basis, n), count, RAY
    return _values(initial, basis, n), max_iterations, MAX_ITERATIONS


def _pivot(table, row, column):
    """Solve a row for a column's variable, in place."""
    table[row] /= table[row, column]
    factors = table[:, column].copy()
    factors[row] = 0.0
    table -= factors[:, None] * table[row]


def _leaving(table, column, basis, n):
    """Return the row of the smallest ratio, lexicographically; None on a ray."""
    d = table[:, column]
    rows = np.flatnonzero(d > PIVOT * max(1.0, float(np.abs(d).max())))
    if not len(rows):
        return None
    for k in [-1, *range(n)]:
        ratios = table[rows, k] / d[rows]
        smallest = ratios.min()
        close = ratios <= smallest + 1e-12 * max(1.0, abs(smallest))
        rows = rows[close]
        if k == -1:
            artificial = [r for r in rows if basis[r] == 2 * n]
            if artificial:
                return int(artificial[0])
        if len(rows) == 1:
            break
    return int(rows[0])


def _values(initial, basis, n):
    """Return z of a basis, solved from the initial tableau."""
    try:
        x = np.linalg.solve(initial[:, basis], initial[:, -1])
    except np.linalg.LinAlgError:
        x = np.linalg.lstsq(initial[:, basis], initial[:, -1], rcond=None)[0]
    z = np.zeros(n)
    for variable, value in zip(basis, x, strict=True):
        if n <= variable < 2 * n:
            z[variable - n] = max(value, 0.0)
    return z


def polyhedral(problem, facets):
    """Return M, q, T, start of the LCP of a problem without free rows.

        lambda = T z + start,   w = T.T u + the coupling of y, beta and gamma

    A unilateral row has z = lambda; a bounded one z = lambda - lo and, between two
    bounds, y of w_y = hi - lo - z; a contact has lambda_n, beta >= 0 along the facet
    directions D, and gamma: w_beta = D.T u + gamma, w_gamma = lambda_n - sum(beta).

    Args:
        problem: The problem.
        facets: Number of directions for two tangent rows, even.

    Source: LCP-5.
    """
    lower, upper = problem.bounds
    m = len(problem.offset)
    columns, start, extra, constant = [], np.zeros(m), [], []

    def add(column, unit, q=0.0):
        columns.append((column, unit))
        constant.append(q)
        return len(columns) - 1

    for block in problem.layout.blocks:
        unit = 1 / np.sqrt(problem.blockwise[block.start])
        if block.kind == "contact" and block.rows > 1:
            normal = add(np.eye(m)[block.start], unit)
            betas = [add(d, unit) for d in _directions(block, problem.mu, m, facets)]
            gamma = add(np.zeros(m), 1 / unit)
            extra += [(gamma, normal, 1.0)]
            for beta in betas:
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
    M = T.T @ problem.A @ T + S
    q = T.T @ (problem.A @ start + problem.offset) + np.array(constant)
    return M * units[:, None] * units, q * units, T * units, start


def _directions(block, mu, m, facets):
    """Return the directions of friction at its limit, each of m rows."""
    mu_block = [mu[c] for c in block.coefficients]
    rows, k, directions = list(block.tangent), 0, []
    while k < len(rows):
        pair = k + 1 < len(rows) and block.coefficients[k] == block.coefficients[k + 1]
        angles = 2 * np.pi * np.arange(facets) / facets if pair else (0.0, np.pi)
        for angle in angles:
            d = np.zeros(m)
            d[rows[k]] = mu_block[k] * np.round(np.cos(angle), 16)
            if pair:
                d[rows[k + 1]] = mu_block[k] * np.round(np.sin(angle), 16)
            directions.append(d)
        k += 2 if pair else 1
    return directions


def _even(layout, facets):
    """Refuse a number of friction directions that makes no pyramid."""
    if not isinstance(facets, int) or facets < 4 or facets % 2:
        raise UnsupportedError(
            f"lemke: facets {shown(facets)}; valid: an even number, 4 or more"
        )


class Lemke(ContactSolver):
    """Impulses by Lemke's pivoting, with friction cones as pyramids.

        0 <= lambda_n,  0 <= beta,  0 <= gamma   orthogonal to
        u_n >= 0,  D.T u + gamma >= 0,  lambda_n - sum(beta) >= 0

    Exact for planar friction, boxes and rows of other kinds; round cones become
    inscribed pyramids (error of friction at most 1 - cos(pi / facets)). Torsion,
    rolling and tangents share one polytope. Free rows are eliminated, by least norm if
    they are dependent. It ends with a solution or a ray; for semidefinite G + R a ray
    proves that there is no solution.

    Source: LCP-5.
    """

    name = "lemke"
    source = "LCP-5"
    valid = {"facets": _even}

    def relaxes(self, layout):
        """Return which part of the law is not solved exactly."""
        round_cones = any(block.rows > 2 for block in layout.contacts)
        return "friction cones are pyramids" if round_cones else ""

    def solve(self, problem, warm=None, facets=8, max_iterations=10_000):
        """Return the solution of a problem.

        Args:
            problem: Blocks, matrix, velocities and bounds.
            warm: Unused; pivoting starts at zero.
            facets: Number of friction directions for two tangents.
            max_iterations: Largest number of pivots.

        Returns:
            Impulses, residuals and status, as a ContactSolution.
        """
        reduction = problem.without_free_rows()
        M, q, T, start = polyhedral(reduction.reduced, facets)
        size = float(np.abs(q).max(initial=0.0)) or 1.0
        z, pivots, status = lemke(M, q / size, max_iterations)
        law = shortfall(M, q / size, z)
        x = T @ z * size + start
        return ContactSolution.from_impulses(
            problem, x, pivots, status, law, reduction=reduction
        )


@hookimpl
def dyn_solvers():
    """Offer the solvers of this file."""
    return [Lemke()]
