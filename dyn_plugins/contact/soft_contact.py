"""Soft contacts as in MuJoCo: each row has a compliance."""

import numpy as np

from dyn_core.authoring import ContactSolver, hookimpl
from dyn_core.contact import ConstraintProblem, ContactSolution, compliance
from dyn_core.errors import UnsupportedError
from dyn_core.validation import Quantity, shown
from dyn_plugins._options import ITERATION
from dyn_plugins.contact._on_rows import solve_arrays


def _between(layout, impedance):
    """Raise UnsupportedError unless `impedance` is between 0 and 1, ends excluded."""
    if not isinstance(impedance, (int, float)) or not 0 < impedance < 1:
        raise UnsupportedError(
            f"soft_contact: impedance {shown(impedance)}; valid: between 0 and 1"
        )


class SoftContact(ContactSolver):
    """Impulses of soft rows, with compliance from an impedance.

        minimise lambda.T (G + R) lambda / 2 + lambda.T b over cones and bounds,
        R = (1 - d) / d G_ii where the problem's compliance is zero

    Relaxes: rows yield by R lambda, and without De Saxce's correction a sliding
    contact separates. The compliance and bias of gap and speed by solref and solimp
    come from dyn_core.contact.soft_rows. The compliance of friction rows is the normal
    row's, times `friction_softness`, with equal R mu² in a cone. The problem is solved
    by the solver `convex_newton`.

    Source: LCP-14.
    """

    name = "soft_contact"
    source = "LCP-14"
    valid = {
        **ITERATION,
        "impedance": _between,
        "friction_softness": Quantity(0.0),
    }

    def relaxes(self, layout):
        """Return the part of the law that is relaxed, as text, for every layout."""
        return "all rows are soft; sliding contacts separate"

    def solve(
        self,
        problem,
        warm=None,
        impedance=0.9,
        friction_softness=1.0,
        max_iterations=100,
        tolerance=1e-10,
    ):
        """Return the solution of a problem.

        A problem that is not solved has a status, not an exception. Values of options
        are checked by a build, `dyn_core.contact.solve` and a World, not here.

        Args:
            problem: Blocks, matrix, velocities and bounds.
            warm: Initial impulses of the m rows, (m,), or one number for all, else
                ValueError [N·s | N·m·s]; None: zeros.
            impedance: Impedance d of rows without a compliance, in (0, 1).
            friction_softness: Compliance of the tangents with the largest coefficient
                over that of the normal, for contacts whose tangents have no compliance
                in the problem; the other tangents have equal R mu².
            max_iterations: Largest number of Newton steps.
            tolerance: Relative tolerance of the law.

        Returns:
            ContactSolution of the given problem: impulses, velocities G lambda + b
            without the compliance, and residuals, whose `law` refers to the soft rows.
            The status is converged if `law` is at most 1e-6, else max_iterations.
        """
        G, scale = problem.matrix, problem.scale
        response = np.where(np.diag(G) > 0, np.diag(G), 1.0)
        default = compliance(impedance, response)
        R = np.where(problem.compliance > 0, problem.compliance, default)
        for block in problem.layout.contacts:
            rows, w = list(block.tangent), scale[list(block.tangent)]
            if not problem.compliance[rows].any():
                R[rows] = (
                    friction_softness * R[block.start] / np.where(w > 0, w, 1) ** 2
                )
        soft = ConstraintProblem.of_arrays(
            problem.layout, G, problem.offset, problem.mu, problem.lo, problem.hi, R
        )
        x, *_, law, count, _ = solve_arrays(
            "convex_newton",
            soft,
            warm,
            max_iterations=max_iterations,
            tolerance=tolerance,
        )
        return ContactSolution.from_impulses(problem, x, count, law=law)


@hookimpl
def dyn_solvers():
    """Return a list of the solvers of this file, for the Registry."""
    return [SoftContact()]
