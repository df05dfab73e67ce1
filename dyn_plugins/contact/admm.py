"""Contacts by the alternating direction method of multipliers: exact Coulomb cones."""

from dyn_core.authoring import ContactSolver, hookimpl
from dyn_plugins._options import PENALTY
from dyn_plugins.contact._on_rows import solve_on_rows


class ADMM(ContactSolver):
    """Impulses by ADMM with adaptive penalty, for the exact law of Coulomb.

        K_mu contains lambda, orthogonal to u + s in K_mu*,  s = (mu |u_T|, 0)

    Exact; torsion, rolling and tangents share one ellipsoid. Steps of a World use the
    same compiled solver on sparse rows. With friction there is no proof of convergence:
    after 500 iterations it tries Newton steps from its result. The status tells whether
    it converged. If the impulses are not unique (G singular), it returns one solution.

    Source: LCP-12, LCP-19.
    """

    name = "admm"
    source = "LCP-12"
    valid = PENALTY

    def solve(self, problem, warm=None, max_iterations=5000, tolerance=1e-10, rho=1.0):
        """Return the solution of a problem.

        A problem that is not solved has a status, not an exception. Values of options
        are checked by a build, `dyn_core.contact.solve` and a World, not here.

        Args:
            problem: Blocks, matrix, velocities and bounds.
            warm: Initial impulses, (problem.m,) or one for all, else ValueError
                [N·s | N·m·s]; None: zeros.
            max_iterations: Largest number of iterations.
            tolerance: Relative tolerance of the law.
            rho: Initial penalty, relative to the response of a block.

        Returns:
            Impulses, residuals and status (converged, max_iterations or infeasible), as
            a ContactSolution.
        """
        options = {"max_iterations": max_iterations, "tolerance": tolerance, "rho": rho}
        return solve_on_rows(self.name, problem, warm, **options)


@hookimpl
def dyn_solvers():
    """Return a list of the solvers of this file, for the Registry."""
    return [ADMM()]
