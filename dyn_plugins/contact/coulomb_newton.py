"""Contacts by Newton steps on Coulomb's law, on sparse rows in machine code."""

from dyn_core.authoring import ContactSolver, hookimpl
from dyn_core.validation import Whole
from dyn_plugins._options import ITERATION
from dyn_plugins.contact._on_rows import solve_on_rows


class CoulombNewton(ContactSolver):
    """Impulses by Newton steps on modes, for the exact law of Coulomb.

        F(x) = x - Pi(x - u),   u = Y Y.T x + R x + b,   G = Y Y.T,
        (1 + Y.T S Y) dz = Y.T gamma - z,   S = -d gamma / du

    Exact; torsion, rolling and tangents share one ellipsoid. The matrix has one row for
    each coordinate that contacts touch, and its factor is sparse. Each step selects
    sticking, sliding and open contacts together; from a warm start near the solution,
    one or two steps solve the problem. If they fail, an interior-point method starts
    from inside all cones; then sweeps, splitting (`admm`) and Newton steps in proximal
    rounds give other starts. If the impulses are not unique (G singular), it returns
    one solution, near to the warm start.

    Source: LCP-12, LCP-13 (b), LCP-19; P. Alart and A. Curnier 1991.
    """

    name = "coulomb_newton"
    source = "LCP-12"
    valid = {**ITERATION, "splittings": Whole()}

    def solve(
        self, problem, warm=None, max_iterations=120, tolerance=1e-9, splittings=3000
    ):
        """Return the solution of a problem.

        A problem that is not solved has a status, not an exception. Values of options
        are checked by a build, `dyn_core.contact.solve` and a World, not here.

        Args:
            problem: Blocks, matrix, velocities and bounds.
            warm: Initial impulses of the m rows, (m,), or one number for all, else
                ValueError [N·s | N·m·s]; None: zeros.
            max_iterations: Largest number of Newton steps from each start.
            tolerance: Tolerance of velocities, relative to the largest free one.
            splittings: Largest number of iterations of the last splitting; 0: neither
                sweeps nor splittings.

        Returns:
            Impulses, residuals and status, as a ContactSolution. The status is
            converged; max_iterations: the impulses with the smallest residual of the
            law that any method reached; or infeasible.
        """
        options = {"max_iterations": max_iterations, "tolerance": tolerance}
        return solve_on_rows(self.name, problem, warm, **options, splittings=splittings)


@hookimpl
def dyn_solvers():
    """Return a list of the solvers of this file, for the Registry."""
    return [CoulombNewton()]
