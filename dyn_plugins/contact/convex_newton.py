"""Contacts as a convex problem, by Newton's method with line search."""

from dyn_core.authoring import ContactSolver, hookimpl
from dyn_plugins._options import ITERATION
from dyn_plugins.contact._on_rows import solve_on_rows


class ConvexNewton(ContactSolver):
    """Impulses of the convex relaxation, by Newton steps with line search (SAP).

        minimise lambda.T (G + R) lambda / 2 + lambda.T b over cones and bounds

    Relaxes: without De Saxce's correction a sliding contact separates, u_n = mu |u_T|.
    All other laws are exact, and so is a problem without friction. The velocity exists
    and is unique. Rigid rows (R = 0) are solved by a few proximal rounds with soft
    rows. Steps of a World use the same compiled solver on sparse rows.

    Source: LCP-13 (b).
    """

    name = "convex_newton"
    source = "LCP-13"
    valid = ITERATION

    def relaxes(self, layout):
        """Return the part of the law that is relaxed, as text; "" without contacts."""
        return "sliding contacts separate" if layout.contacts else ""

    def solve(self, problem, warm=None, max_iterations=100, tolerance=1e-9):
        """Return the solution of a problem.

        A problem that is not solved has a status, not an exception. Values of options
        are checked by a build, `dyn_core.contact.solve` and a World, not here.

        Args:
            problem: Blocks, matrix, velocities and bounds.
            warm: Initial impulses of the m rows, (m,), or one number for all, else
                ValueError [N·s | N·m·s]; None: zeros.
            max_iterations: Largest number of Newton steps.
            tolerance: Tolerance of velocities, relative to the largest free one.

        Returns:
            Impulses, residuals and status (converged, max_iterations or infeasible), as
            a ContactSolution; its residual `law` refers to the relaxation.
        """
        options = {"max_iterations": max_iterations, "tolerance": tolerance}
        return solve_on_rows(self.name, problem, warm, **options)


@hookimpl
def dyn_solvers():
    """Return a list of the solvers of this file, for the Registry."""
    return [ConvexNewton()]
