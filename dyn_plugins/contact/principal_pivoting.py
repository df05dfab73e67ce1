"""Boxes and unilateral rows by principal pivoting, row by row.

m is the number of rows.
"""

import numpy as np

from dyn_core.authoring import ContactSolver, hookimpl
from dyn_core.contact import CONVERGED, INFEASIBLE, MAX_ITERATIONS, ContactSolution
from dyn_plugins._options import ITERATION

SMALL = 1e-11  # relative tolerance of velocities and pivots


class PrincipalPivoting(ContactSolver):
    """Impulses between bounds by Dantzig's principal pivoting; friction is refused.

        lambda = lo: u >= 0,   lambda = hi: u <= 0,   else u = 0

    Each row in turn is changed until its law holds, while the laws of the previous rows
    continue to hold: rows between bounds keep u = 0, the others stay at their bound.
    The first row that would violate its law changes sets (ties: smallest index). Exact.
    G + R may be semidefinite; an unbounded step proves that there is no solution.

    Source: LCP-5.
    """

    name = "principal_pivoting"
    source = "LCP-5"
    valid = ITERATION

    def refusal(self, layout):
        """Return the reason why a layout is not supported, as text.

        A contact with tangent rows is not supported, even if its mu is 0. None for a
        layout without such contacts.
        """
        for index, block in enumerate(layout.blocks):
            if block.kind == "contact" and block.rows > 1:
                return (
                    f"block {index} is a contact with friction ({block.rows} rows) and"
                    " this solver is for boxes; valid: unilateral, box, bilateral and"
                    " prescribed blocks, or another solver (lemke, admm)"
                )
        return None

    def solve(self, problem, warm=None, max_iterations=10_000):
        """Return the solution of a problem.

        Values of options are checked by a build, `dyn_core.contact.solve` and a World,
        not here.

        Args:
            problem: Blocks, matrix, velocities and bounds. Contacts with friction,
                which `build` refuses, are not noticed here.
            warm: Unused; pivoting starts at zero.
            max_iterations: Largest number of pivots.

        Returns:
            Impulses, residuals and status, as a ContactSolution; infeasible: there is
            no solution; max_iterations: the pivots are used up, or the law does not
            hold to 1e-6; else converged.

        Raises:
            numpy.linalg.LinAlgError: The block of G + R of the rows between bounds is
                singular.
        """
        reduction = problem.without_free_rows()
        x, count, status = pivot(reduction.reduced, max_iterations)
        return ContactSolution.from_impulses(
            problem, x, count, status, reduction=reduction
        )


def pivot(problem, max_iterations):
    """Return impulses between bounds, (m,) [N·s | N·m·s], number of pivots, and status.

        d lambda_C = -A_CC^-1 A_Cd,   du = A[:, C] d lambda_C + A[:, d]

    C are the rows between bounds, d is the row that is changed, A is G + R, scaled. The
    problem has no free rows and no friction. The status is CONVERGED, or with the
    impulses reached so far MAX_ITERATIONS or INFEASIBLE.
    """
    unit = 1 / np.sqrt(np.where(problem.response > 0, problem.response, 1.0))
    A = problem.A * unit[:, None] * unit
    lower, upper = (bound / unit for bound in problem.bounds)
    b = problem.offset * unit
    x = np.clip(np.zeros(len(b)), lower, upper)
    between = np.zeros(len(b), bool)
    count, eps = 0, SMALL * float(np.abs(b).max(initial=0.0))
    for row in range(len(b)):
        while True:
            u = A @ x + b
            sign = -np.sign(u[row])
            at_bound = x[row] >= upper[row] if sign > 0 else x[row] <= lower[row]
            if abs(u[row]) <= eps or at_bound:
                break
            if count >= max_iterations:
                return x * unit, count, MAX_ITERATIONS
            count += 1
            driven = _drive(A, u, x, lower, upper, between, row, sign)
            if driven is None:
                return x * unit, count, INFEASIBLE
            x, done = driven
            if done:
                break
    return _exact(A, b, x, lower, upper, between) * unit, count, CONVERGED


def _drive(A, u, x, lower, upper, between, row, sign):
    """Return impulses after driving one row until a row changes sets, and whether done.

    None if the step is unbounded: the problem has no solution. `between`, whether rows
    are between their bounds, is changed in place; sign is the direction, 1 or -1.
    """
    C = np.flatnonzero(between)
    change = np.zeros(len(x))
    change[row] = sign
    if len(C):
        change[C] = np.linalg.solve(A[np.ix_(C, C)], -sign * A[C, row])
    du = A @ change
    steps = [(np.inf, row)]
    if du[row] * sign > SMALL:
        steps.append((-u[row] / du[row], row))
    limit = upper[row] if sign > 0 else lower[row]
    steps.append((abs(limit - x[row]), -1))
    for i in C:
        end = upper[i] if change[i] > 0 else lower[i]
        if abs(change[i]) > SMALL and np.isfinite(end):
            steps.append((max((end - x[i]) / change[i], 0.0), int(i)))
    for i in range(row):
        at_lower, at_upper = x[i] <= lower[i], x[i] >= upper[i]
        leaves = du[i] if at_lower else -du[i] if at_upper else -abs(du[i])
        if not between[i] and lower[i] < upper[i] and leaves < -SMALL:
            steps.append((max(-u[i] / du[i], 0.0), i))
    length, which = min(steps)
    if not np.isfinite(length):
        return None
    x = np.clip(x + length * change, lower, upper)
    if which == -1:
        x[row] = limit
        return x, True
    if between[which]:
        x[which] = upper[which] if change[which] > 0 else lower[which]
    between[which] = not between[which]
    return x, which == row


def _exact(A, b, x, lower, upper, between):
    """Return x, clipped, with the rows between bounds solved again for u = 0.

    This removes accumulated rounding errors. x itself is returned if no row is between
    its bounds; it is not changed.
    """
    C, N = np.flatnonzero(between), np.flatnonzero(~between)
    if not len(C):
        return x
    x = x.copy()
    x[C] = np.linalg.solve(A[np.ix_(C, C)], -b[C] - A[np.ix_(C, N)] @ x[N])
    return np.clip(x, lower, upper)


@hookimpl
def dyn_solvers():
    """Return a list of the solvers of this file, for the Registry."""
    return [PrincipalPivoting()]
