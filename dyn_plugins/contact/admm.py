"""Contacts by the alternating direction method of multipliers: exact Coulomb cones."""

import numpy as np

from dyn_core import CONTACT_SOLVE, ArraySolver, hookimpl
from dyn_core.contact import Numbers

EVERY = 5  # iterations between changes of rho


def admm(numbers, max_iterations, tolerance, rho, proximal, exact=True):
    """Give impulses and iterations: splitting, with rho by the balance of residuals.

        x <- (A + rho + eta)^-1 (rho y + eta x - z - b - s)
        y <- Pi_K(x + z / rho),   z <- z + rho (x - y),   s <- mu |z_T| e_n

    A = G + R is brought to unit diagonal block by block and to eigenvectors once, so
    that a new rho costs nothing.

    Args:
        numbers: A problem without free rows.
        max_iterations, tolerance: Most iterations; of the law, relative.
        rho, proximal: First penalty; eta, over the usual response of a block.
        exact: Whether De Saxce's correction s acts.

    Source: LCP-12.
    """
    unit = 1 / np.sqrt(numbers.blockwise)
    T = numbers.scale * unit
    A = numbers.A * T[:, None] * T
    b = T * numbers.b
    values, vectors = np.linalg.eigh(A)
    values = np.maximum(values, 0.0)
    size = float(np.abs(b).max(initial=0.0)) or 1.0
    b = b / size
    factor = unit * size  # alike in a cone: it changes neither Pi nor s

    def nearest(y):
        return numbers.project(y * factor) / factor

    y = nearest(np.where(T > 0, numbers.warm / np.where(T > 0, T, 1.0), 0.0) / size)
    x, z = y.copy(), -(A @ y + b)
    z = z - exact * numbers.correction(z)
    s = exact * numbers.correction(z)
    count = 0
    for count in range(1, max_iterations + 1):
        right = rho * y + proximal * x - z - b - s
        x = vectors @ ((vectors.T @ right) / (values + rho + proximal))
        before, y = y, nearest(x + z / rho)
        z = z + rho * (x - y)
        s = exact * numbers.correction(z)
        primal = float(np.abs(x - y).max(initial=0.0))
        dual = rho * float(np.abs(y - before).max(initial=0.0))
        most = max(float(np.abs(y).max(initial=0.0)), 1e-300)
        if not np.isfinite(primal):
            break
        if primal <= tolerance * max(1.0, 1e-4 * most) and dual <= tolerance:
            break
        if count % EVERY == 0:
            ratio = np.sqrt((primal / most) / max(dual, 1e-300))
            rho = float(np.clip(rho * np.clip(ratio, 0.1, 10.0), 1e-9, 1e9))
    return T * y * size, count


class ADMM(ArraySolver):
    """Impulses by ADMM with adaptive penalty, for the exact law of Coulomb.

        K_mu contains lambda, orthogonal to u + s in K_mu*,  s = (mu |u_T|, 0)

    Exact, torsion and rolling in one ellipsoid with the tangents; free rows are
    eliminated, by least norm where they depend on each other. With friction and
    G + R given the iteration is not proven to converge: where it has not, status says
    so. Of several impulses (G singular) it gives one.

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
        """Give one problem's impulses.

        Args:
            layout: Blocks.
            G, b: Delassus matrix and free velocity, (m, m), (m,).
            mu: Friction coefficients, (k,).
            lo, hi: Bounds of boxes, (m,).
            compliance: Diagonal of R, (m,).
            warm: Where to begin, (m,).
            max_iterations, tolerance: Most iterations; of the law, relative.
            rho, proximal: First penalty, and that of a change of x.

        Returns:
            The outputs of CONTACT_SOLVE.
        """
        whole = Numbers(layout, G, b, mu, lo, hi, compliance, warm)
        reduced = whole.without_free_rows()
        x, count = admm(reduced.inner, max_iterations, tolerance, rho, proximal)
        return reduced.answer(x, count, tolerance=max(1e-6, 10 * tolerance))


@hookimpl
def dyn_solvers():
    """Offer the solvers of this file."""
    return [ADMM()]
