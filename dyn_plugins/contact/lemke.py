"""Contacts with polyhedral friction as a linear complementarity problem: Lemke."""

import numpy as np

from dyn_core.authoring import ContactSolver, hookimpl
from dyn_core.contact import CONVERGED, MAX_ITERATIONS, RAY, ContactSolution
from dyn_core.errors import UnsupportedError
from dyn_core.validation import shown
from dyn_plugins._options import ITERATION

PIVOT = 1e-11  # smallest pivot, rows and columns scaled to one
PROVEN = 1e-12  # residual up to which the end of a ray is a solution
SMALL_LAW = 1e-9  # residual up to which another basis is a solution
GOOD_LAW = 1e-7  # residual up to which the best of all attempts is a solution
PERTURBATIONS = (1e-10, 1e-8, 1e-6, 1e-12, 1e-5, 1e-4)  # of q, whose largest is one
SOFTENED = (1e-12, 1e-11, 1e-10, 1e-9, 1e-8)  # added to the diagonal, last attempts
GOLDEN = (5**0.5 - 1) / 2  # multiples modulo 1 are spread evenly, and never equal
LARGEST = 100.0  # largest factor by which a large z widens the tolerance
ROUNDED = 1e-4  # this factor, per entry of z


def lemke(M, q, max_iterations):
    """Return a solution z of the LCP 0 <= z, w = M z + q >= 0, w . z = 0.

    If rounding errors decide ties, as for a body at rest on many points, pivoting may
    end on a ray although there is a solution. Further attempts then perturb each row of
    q a little, and solve the resulting basis for the true q; the last attempts also add
    a little to the diagonal of M. An attempt that has used up its pivots does not end
    the search; another one does if the residual of its z (`shortfall`) is at most
    1e-9, or, for a first attempt that ends on a ray, 1e-12.

    Args:
        M, q: Matrix and vector of the problem, (n, n), (n,), scaled to about one.
        max_iterations: Largest number of pivots of an attempt; no attempt makes more
            than 100 + 20 n.

    Returns:
        z of the last attempt, or after all attempts the z with the smallest residual,
            (n,); the number of pivots of all attempts; and the status: CONVERGED if the
            residual of z is at most 1e-7, else that of the first attempt: RAY,
            MAX_ITERATIONS, or CONVERGED with a larger residual.

    Source: LCP-5.
    """
    spread = 1.0 + np.modf(GOLDEN * np.arange(len(q)))[0]
    best, least, pivots = None, np.inf, 0
    ways = [(size, 0.0) for size in (0.0, *PERTURBATIONS)]
    for size, soft in [*ways, *((1e-8, soft) for soft in SOFTENED)]:
        most = min(max_iterations, 100 + 20 * len(q))  # more pivots mean a cycle
        softened = M + soft * np.eye(len(q)) if soft else M
        z, count, status = pivoted(softened, q, size * spread, most)
        law, pivots = shortfall(M, q, z), pivots + count
        proven = PROVEN if status == RAY and not size else SMALL_LAW
        if status != MAX_ITERATIONS and law <= proven:
            return z, pivots, CONVERGED  # a ray with z0 = 0 in the basis is a solution
        if best is None or law < least:
            best, least = (z, status if best is None else best[1]), law
    return best[0], pivots, CONVERGED if least <= GOOD_LAW else best[1]


def shortfall(M, q, z):
    """Return the residual max |min(z, M z + q)| of an LCP, relative to its scale.

    M and q are scaled to about one. The scale, 1e-4 max |z| clipped to [1, 100], allows
    for rounding errors that grow with z, as for heavy bodies on light ones.
    """
    law = float(np.abs(np.minimum(z, M @ z + q)).max(initial=0.0))
    large = ROUNDED * float(np.abs(z).max(initial=0.0))
    return law / max(1.0, min(large, LARGEST))


def pivoted(M, q, change, max_iterations):
    """Return z by complementary pivoting for q + change, solved for q.

        w = M z + q + 1 z0,   z0 enters, then the complement of the leaving variable

    Ties of the ratio test are broken lexicographically by the rows of the inverse of
    the basis, so that no basis is repeated. Returns z >= 0 of the last basis, (n,),
    with negative values set to 0, also after a ray; the number of pivots; and
    CONVERGED, RAY or MAX_ITERATIONS.

    Source: LCP-5.
    """
    n = len(q)
    if not n or (q + change).min() >= 0:
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
    """Pivot on table[row, column]: change the array `table` in place."""
    table[row] /= table[row, column]
    factors = table[:, column].copy()
    factors[row] = 0.0
    table -= factors[:, None] * table[row]


def _leaving(table, column, basis, n):
    """Return the row that leaves the basis, by the lexicographic ratio test.

    A row of z0 wins among equal ratios. None, a ray: no entry of the column is above
    1e-11 times the largest magnitude in it (or times 1, if that is larger). The table
    is (n, 2 n + 2), its last column the right side; basis: 0 to n - 1 w, to 2 n - 1 z,
    2 n z0.
    """
    d = table[:, column]
    rows = np.flatnonzero(d > PIVOT * max(1.0, float(np.abs(d).max())))
    if not len(rows):
        return None
    for k in [-1, *range(n)]:
        ratios = table[rows, k] / d[rows]
        smallest = ratios.min()
        # Ratios equal up to rounding are ties; the next column decides.
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
    """Return z >= 0 of a basis, (n,), solved from the initial tableau.

    A singular basis is solved by least squares; negative values become 0.
    """
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
    """Return M, q, T and start of the LCP of a problem without free rows.

        lambda = T z + start,   w = T.T u + the coupling of y, beta and gamma

    A unilateral row has z = lambda. A box row has z = lambda - lo, or z = hi - lambda
    if only hi is finite, and between two bounds also y with w_y = hi - lo - z. A
    contact has lambda_n, beta >= 0 along the facet directions D (`facets`, even, for
    two tangent rows), and gamma: w_beta = D.T u + gamma, w_gamma = lambda_n -
    sum(beta). A contact of one row is unilateral. z follows the blocks: lambda_n, beta,
    gamma of a contact; z, y of a box row. M and q are scaled to unit responses; start
    [N·s | N·m·s] is the finite bound of a box row (the lower of two), else zero.

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
    """Return a list of the facet directions D, (m,), of a contact's cone, scaled by mu.

    Two successive tangent rows with the same coefficient have `facets` of them, by
    increasing angle from 0; another tangent row has two, + and -.
    """
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
    """Raise UnsupportedError unless `facets` is an even int, 4 or more."""
    if not isinstance(facets, int) or facets < 4 or facets % 2:
        raise UnsupportedError(
            f"lemke: facets {shown(facets)}; valid: an even number, 4 or more"
        )


class Lemke(ContactSolver):
    """Impulses by Lemke's pivoting, with friction cones as pyramids.

        0 <= lambda_n,  0 <= beta,  0 <= gamma   orthogonal to
        u_n >= 0,  D.T u + gamma >= 0,  lambda_n - sum(beta) >= 0

    Exact for planar friction, boxes and rows of other kinds; circular cones become
    inscribed pyramids (relative error of friction up to 1 - cos(pi / facets)). Torsion,
    rolling and tangents share one polytope. Free rows are eliminated, by least norm if
    they are dependent. The method ends with a solution or a ray; for semidefinite G + R
    a ray proves that there is no solution.

    Source: LCP-5.
    """

    name = "lemke"
    source = "LCP-5"
    valid = {**ITERATION, "facets": _even}

    def relaxes(self, layout):
        """Return the part of the law that is relaxed, as text.

        "" unless a contact has two or more tangent rows. layout: Blocks of the problem.
        """
        round_cones = any(block.rows > 2 for block in layout.contacts)
        return "friction cones are pyramids" if round_cones else ""

    def solve(self, problem, warm=None, facets=8, max_iterations=10_000):
        """Return the solution of a problem.

        Values of options are checked by a build, `dyn_core.contact.solve` and a World,
        not here.

        Args:
            problem: Blocks, matrix, velocities and bounds.
            warm: Unused; pivoting starts at zero.
            facets: Number of friction directions for two tangents, even and 4 or more.
            max_iterations: Largest number of pivots of an attempt, which is at most
                100 + 20 n for an LCP of n variables.

        Returns:
            Impulses, residuals and status, as a ContactSolution, whose residual `law`
            is that of the pyramids. converged; ray: pivoting ended on a ray, without a
            solution; max_iterations; or infeasible: free rows contradict each other, or
            the rest provably has no solution.
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
    """Return a list of the solvers of this file, for the Registry."""
    return [Lemke()]
