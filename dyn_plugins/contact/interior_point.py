"""Contacts as a convex cone program, by the interior-point method of clarabel."""

import numpy as np

from dyn_core.authoring import ContactSolver, hookimpl
from dyn_core.contact import (
    CONVERGED,
    MAX_ITERATIONS,
    ContactSolution,
    conic_libraries,
    minimise_over_cones,
)
from dyn_plugins._options import ITERATION

SMALL = 1e-3  # friction coefficient below which the normal gets a separate row


class InteriorPoint(ContactSolver):
    """Impulses of the convex relaxation by clarabel (extra `qp`).

        minimise lambda.T (G + R) lambda / 2 + lambda.T b over cones and bounds

    Relaxes: without De Saxce's correction a sliding contact separates, u_n = mu |u_T|
    (Anitescu's cone). All other laws are exact, and so is a problem without friction.

    Source: LCP-13 (a).
    """

    name = "interior_point"
    source = "LCP-13"
    valid = ITERATION

    def relaxes(self, layout):
        """Return the part of the law that is relaxed, as text; "" without contacts."""
        return "sliding contacts separate" if layout.contacts else ""

    def build(self, model, **choices):
        """Return a Program for the ConstraintLayout `model`.

        choices: Options of ContactSolver.build.

        Raises:
            UnsupportedError: clarabel or scipy is not installed. The errors of
                ContactSolver.build pass through.
        """
        conic_libraries()
        return super().build(model, **choices)

    def solve(self, problem, warm=None, max_iterations=200, tolerance=1e-12):
        """Return the solution of a problem.

        Values of options are checked by a build, `dyn_core.contact.solve` and a World,
        not here.

        Args:
            problem: Blocks, matrix, velocities and bounds.
            warm: Unused; interior-point methods have their own start.
            max_iterations: Largest number of iterations.
            tolerance: Tolerance of clarabel's gap and feasibility.

        Returns:
            Impulses, residuals and status, as a ContactSolution, whose residual `law`
            refers to the relaxation. infeasible: a direction of impulses proves that
            there is no solution, or free rows contradict each other; max_iterations:
            the relaxed law does not hold to 1e-5, or clarabel reports no minimum or
            impulses that are not finite; else converged.

        Raises:
            UnsupportedError: clarabel or scipy is not installed.
        """
        reduction = problem.without_free_rows()
        inner = reduction.reduced
        rows, offsets, sizes = _cones(inner)
        unit = 1 / np.sqrt(inner.blockwise)
        T = inner.scale * unit
        size = float(np.abs(T * inner.offset).max(initial=0.0)) or 1.0
        A = inner.A * T[:, None] * T
        if not len(T):
            return ContactSolution.from_impulses(
                problem, np.zeros(0), reduction=reduction
            )
        y, count, bounded = minimise_over_cones(
            A,
            T * inner.offset / size,
            rows * unit,
            offsets / size,
            sizes,
            max_iterations,
            tolerance,
        )
        x = T * y * size
        # That clarabel finds no bound proves nothing: it does not find one either where
        # cones are nearly half-spaces. `solve` looks for a proof of infeasibility.
        solved = bounded and np.isfinite(x).all()
        status = CONVERGED if solved else MAX_ITERATIONS
        law = inner.law(x, exact=False)
        return ContactSolution.from_impulses(
            problem, x, count, status, law, 1e-5, reduction
        )


def _cones(problem):
    """Return C, (rows, m), d and sizes of the constraints C y - d of scaled impulses y.

    The first size counts rows C y - d >= 0: normals of contacts with mu < 1e-3 (the
    last contact first), finite lower, then upper bounds. The others are those of
    second-order cones (mu normal, tangents), by contact, with its largest mu and d = 0.
    """
    lower, upper = problem.bounds
    eye = np.eye(len(problem.offset))
    lows, highs = np.isfinite(lower), np.isfinite(upper)
    rows = [eye[lows], -eye[highs]]
    offsets = [lower[lows], -upper[highs]]
    sizes = [int(lows.sum() + highs.sum())]
    for block, c in zip(problem.layout.contacts, problem.coefficients, strict=True):
        rows.append(eye[list(block.all)])
        rows[-1][0] *= c
        offsets.append(np.zeros(block.rows))
        sizes.append(block.rows)
    for block, c in zip(problem.layout.contacts, problem.coefficients, strict=True):
        if c < SMALL:  # the row of the cone then hardly restricts the normal
            rows.insert(0, eye[[block.start]])
            offsets.insert(0, np.zeros(1))
            sizes[0] += 1
    return np.vstack(rows), np.concatenate(offsets), sizes


@hookimpl
def dyn_solvers():
    """Return a list of the solvers of this file, for the Registry."""
    return [InteriorPoint()]
