"""Soft contacts as in MuJoCo: every row has a compliance."""

import numpy as np

from dyn_core.authoring import NumpySolver, hookimpl
from dyn_core.contact import ProblemArrays
from dyn_core.errors import UnsupportedError
from dyn_core.problems import CONTACT_SOLVE
from dyn_plugins.contact._on_rows import solve_on_rows


def _between(layout, impedance):
    """Refuse an impedance that is no part of a force."""
    if not isinstance(impedance, (int, float)) or not 0 < impedance < 1:
        raise UnsupportedError(
            f"soft_contact: impedance {impedance!r}; valid: between 0 and 1"
        )


class SoftContact(NumpySolver):
    """Impulses of soft rows, with compliance from an impedance.

        minimise lambda.T (G + R) lambda / 2 + lambda.T b over cones and bounds,
        R = (1 - d) / d G_ii where the problem's compliance is zero

    Relaxes: rows yield by R lambda, and without De Saxce's correction a sliding
    contact separates. The compliance and bias of gap and speed by solref and solimp
    come from dyn_core.contact.soft_rows. The compliance of friction rows follows from
    the normal row, times `friction_softness`, with equal R mu² in a cone. Newton steps
    on sparse rows, as `convex_newton` takes them.

    Source: LCP-14.
    """

    name = "soft_contact"
    signature = CONTACT_SOLVE
    source = "LCP-14"
    options = {
        "impedance": 0.9,
        "friction_softness": 1.0,
        "max_iterations": 100,
        "tolerance": 1e-10,
    }
    valid = {"impedance": _between}

    def relaxes(self, layout):
        """Return which part of the law is not solved exactly."""
        return "all rows are soft; sliding contacts separate"

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
        impedance,
        friction_softness,
        max_iterations,
        tolerance,
    ):
        """Return one problem's impulses.

        Args:
            layout: Blocks.
            G, b: Delassus matrix and free velocity, (m, m), (m,).
            mu: Friction coefficients, (k,).
            lo, hi: Bounds of boxes, (m,).
            compliance: Diagonal of R, (m,); zeros are replaced by the impedance's.
            warm: Initial impulses, (m,).
            impedance: d, in (0, 1).
            friction_softness: Compliance of tangents over that of the normal.
            max_iterations: Largest number of Newton steps.
            tolerance: Relative tolerance of the law.

        Returns:
            The outputs of CONTACT_SOLVE.
        """
        problem = ProblemArrays(layout, G, b, mu, lo, hi, compliance, warm)
        default = (
            (1 - impedance) / impedance * np.where(np.diag(G) > 0, np.diag(G), 1.0)
        )
        R = np.where(compliance > 0, compliance, default)
        for block in layout.contacts:
            rows, w = list(block.tangent), problem.scale[list(block.tangent)]
            if not compliance[rows].any():
                R[rows] = (
                    friction_softness * R[block.start] / np.where(w > 0, w, 1) ** 2
                )
        inputs = layout, G, b, mu, lo, hi, R, warm
        options = {"max_iterations": max_iterations, "tolerance": tolerance}
        impulse, _, residuals, count, _ = solve_on_rows(
            "convex_newton", *inputs, **options
        )
        return problem.outputs(impulse, count, law=residuals[4])


@hookimpl
def dyn_solvers():
    """Offer the solvers of this file."""
    return [SoftContact()]
