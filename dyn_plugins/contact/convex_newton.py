"""Contacts as a convex problem, by Newton's method with line search."""

from dyn_core.authoring import NumpySolver, hookimpl
from dyn_core.problems import CONTACT_SOLVE
from dyn_plugins.contact._on_rows import solve_on_rows


class ConvexNewton(NumpySolver):
    """Impulses of the convex relaxation, by Newton steps with line search (SAP).

        minimise lambda.T (G + R) lambda / 2 + lambda.T b over cones and bounds

    Relaxes: without De Saxce's correction a sliding contact separates, u_n = mu |u_T|.
    All else is exact, and everything without friction. The velocity exists and is
    unique; rigid rows (R = 0) are solved by a few proximal rounds of soft ones. On
    sparse rows in machine code, the same that steps of a World take.

    Source: LCP-13 (b).
    """

    name = "convex_newton"
    signature = CONTACT_SOLVE
    source = "LCP-13"
    options = {"max_iterations": 100, "tolerance": 1e-9}

    def relaxes(self, layout):
        """Return which part of the law is not solved exactly."""
        return "sliding contacts separate" if layout.contacts else ""

    def solve(
        self, layout, G, b, mu, lo, hi, compliance, warm, max_iterations, tolerance
    ):
        """Return one problem's impulses.

        Args:
            layout: Blocks.
            G, b: Delassus matrix and free velocity, (m, m), (m,).
            mu: Friction coefficients, (k,).
            lo, hi: Bounds of boxes, (m,).
            compliance: Diagonal of R, (m,).
            warm: Initial impulses, (m,).
            max_iterations: Largest number of Newton steps.
            tolerance: Tolerance of velocities, relative to the largest free one.

        Returns:
            The outputs of CONTACT_SOLVE.
        """
        inputs = layout, G, b, mu, lo, hi, compliance, warm
        options = {"max_iterations": max_iterations, "tolerance": tolerance}
        return solve_on_rows(self.name, *inputs, **options)


@hookimpl
def dyn_solvers():
    """Offer the solvers of this file."""
    return [ConvexNewton()]
