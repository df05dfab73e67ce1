"""Contacts by the alternating direction method of multipliers: exact Coulomb cones."""

import numpy as np

from dyn_core.authoring import NumpySolver, hookimpl
from dyn_core.contact import ProblemArrays
from dyn_core.problems import CONTACT_SOLVE

EVERY = 5  # iterations between changes of rho


def admm(arrays, max_iterations, tolerance, rho, proximal, exact=True):
    """Return impulses and iterations by splitting, with rho from balanced residuals.

        x <- (A + rho + eta)^-1 (rho y + eta x - z - b - s)
        y <- Pi_K(x + z / rho),   z <- z + rho (x - y),   s <- mu |z_T| e_n

    A = G + R is scaled to unit diagonal block by block and diagonalised once, so that a
    new rho needs no factorisation.

    Args:
        arrays: A problem without free rows.
        max_iterations: Largest number of iterations.
        tolerance: Relative tolerance of the law.
        rho, proximal: Initial penalty and eta, relative to the response of a block.
        exact: Whether De Saxce's correction s is applied.

    Source: LCP-12.
    """
    unit = 1 / np.sqrt(arrays.blockwise)
    T = arrays.scale * unit
    A = arrays.A * T[:, None] * T
    b = T * arrays.b
    values, vectors = np.linalg.eigh(A)
    values = np.maximum(values, 0.0)
    size = float(np.abs(b).max(initial=0.0)) or 1.0
    b = b / size
    factor = unit * size  # alike in a cone: it changes neither Pi nor s

    def nearest(y):
        return arrays.project(y * factor) / factor

    y = nearest(np.where(T > 0, arrays.warm / np.where(T > 0, T, 1.0), 0.0) / size)
    x, z = y.copy(), -(A @ y + b)
    z = z - exact * arrays.correction(z)
    s = exact * arrays.correction(z)
    count = 0
    for count in range(1, max_iterations + 1):
        load = rho * y + proximal * x - z - b - s
        x = vectors @ ((vectors.T @ load) / (values + rho + proximal))
        before, y = y, nearest(x + z / rho)
        z = z + rho * (x - y)
        s = exact * arrays.correction(z)
        primal = float(np.abs(x - y).max(initial=0.0))
        dual = rho * float(np.abs(y - before).max(initial=0.0))
        largest = max(float(np.abs(y).max(initial=0.0)), 1e-300)
        if not np.isfinite(primal):
            break
        if primal <= tolerance * max(1.0, 1e-4 * largest) and dual <= tolerance:
            break
        if count % EVERY == 0:
            ratio = np.sqrt((primal / largest) / max(dual, 1e-300))
            rho = float(np.clip(rho * np.clip(ratio, 0.1, 10.0), 1e-9, 1e9))
    return T * y * size, count


class ADMM(NumpySolver):
    """Impulses by ADMM with adaptive penalty, for the exact law of Coulomb.

        K_mu contains lambda, orthogonal to u + s in K_mu*,  s = (mu |u_T|, 0)

    Exact; torsion, rolling and tangents share one ellipsoid. Free rows are eliminated,
    by least norm if they are dependent. With friction there is no proof of convergence;
    the status says whether it has converged. If the impulses are not unique (G
    singular), it returns one solution.

    Source: LCP-12, LCP-19.
    """

    name = "admm"
    signature = CONTACT_SOLVE
    source = "LCP-12"
    options = {
        "max_iterations": 5000,
        "tolerance": 1e-10,
        "rho": 1.0,
        "proximal": 1e-6,
    }

    def solve(
        self,
        layout,
        G,
        b,
        mu,
        lo,
        hi,
        compliance,
        warm,
        max_iterations,
        tolerance,
        rho,
        proximal,
    ):
        """Return one problem's impulses.

        Args:
            layout: Blocks.
            G, b: Delassus matrix and free velocity, (m, m), (m,).
            mu: Friction coefficients, (k,).
            lo, hi: Bounds of boxes, (m,).
            compliance: Diagonal of R, (m,).
            warm: Initial impulses, (m,).
            max_iterations: Largest number of iterations.
            tolerance: Relative tolerance of the law.
            rho, proximal: Initial penalty, and penalty of a change of x.

        Returns:
            The outputs of CONTACT_SOLVE.
        """
        problem = ProblemArrays(layout, G, b, mu, lo, hi, compliance, warm)
        reduction = problem.without_free_rows()
        x, count = admm(reduction.reduced, max_iterations, tolerance, rho, proximal)
        return reduction.outputs(x, count, tolerance=max(1e-6, 10 * tolerance))


@hookimpl
def dyn_solvers():
    """Offer the solvers of this file."""
    return [ADMM()]
