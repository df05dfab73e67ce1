"""Contacts as a convex problem, by Newton's method with line search."""

import numpy as np

from dyn_core.authoring import NumpySolver, hookimpl
from dyn_core.contact import ProblemArrays
from dyn_core.problems import CONTACT_SOLVE

PATIENCE = 5  # rounds without progress
SLOW = 0.1  # ratio of the law in two rounds above which the next is harder
HARDEST = 1e-8  # least softness, relative


class Softened:
    """The convex problem with soft rows and circular cones.

        cost(x) = x.T A x / 2 + sum l(u),   u = A x + b,
        gamma(u) = argmin_K (gamma - y).T R (gamma - y) / 2,   y = -(u - sigma) / R

    The minimum satisfies x = gamma(u); then x minimises
    x.T (A + R) x / 2 + x.T (b - sigma) over K.

    Args:
        arrays: The problem; its compliance is not in A here.
        R: Compliance of each row, above zero, equal for the tangents of a cone.
        sigma: Target velocity of each row, (m,).
        A, b: Problem in circular cones, (m, m), (m,).

    Source: LCP-13 (b).
    """

    def __init__(self, arrays, R, sigma, A, b):
        self.arrays, self.R, self.sigma, self.A, self.b = arrays, R, sigma, A, b
        normal, tangents = arrays.contact_rows
        self.lower, self.upper = arrays.bounds
        padded = np.append(R, 1.0)
        self.Rn, self.Rt = R[normal], padded[tangents[:, 0]]

    def gamma(self, u):
        """Return the impulses for velocities u: stick, slip or separation."""
        arrays = self.arrays
        y = (self.sigma - u) / self.R
        c = arrays.coefficients
        n, t = y[arrays.contact_rows[0]], arrays.tangents(y)
        size = np.sqrt((t * t).sum(axis=1))
        slope = c * self.Rt / self.Rn
        slip_n = (n + slope * size) / (1 + c * slope)
        stick = (size <= c * n) & (c * n > 0)
        slip_n = np.where(stick, n, np.maximum(slip_n, 0.0))
        factor = np.where(stick, 1.0, c * slip_n / np.where(size > 0, size, 1.0))
        clipped = np.clip(y, self.lower, self.upper)
        return arrays.spread(clipped, slip_n, factor[:, None] * t)

    def cost(self, x, u, gamma):
        """Return the convex cost at x."""
        y = (self.sigma - u) / self.R
        loss = 0.5 * ((y * self.R) @ y - (y - gamma) @ (self.R * (y - gamma)))
        return 0.5 * x @ (u - self.b) + loss

    def slope(self, u, gamma):
        """Return -d gamma / du, (m, m), positive semidefinite."""
        arrays, m = self.arrays, len(u)
        y = (self.sigma - u) / self.R
        free = (y > self.lower) & (y < self.upper)
        D = np.diag(np.where(free, 1 / self.R, 0.0))
        for k, block in enumerate(arrays.layout.contacts):
            rows = np.array(block.all)
            n, t = y[rows[0]], y[rows[1:]]
            c, size = arrays.coefficients[k], float(np.sqrt(t @ t))
            if size <= c * n and c * n > 0:
                continue
            D[np.ix_(rows, rows)] = 0.0
            normal_impulse = gamma[rows[0]]
            if normal_impulse <= 0.0:
                continue
            size = size or 1.0  # without friction; t is zero then
            slope = c * self.Rt[k] / self.Rn[k]
            direction = np.append(1.0, c * t / size)
            gradient = np.append(1.0, slope * t / size) / (1 + c * slope)
            inner = np.outer(direction, gradient)
            across = np.eye(len(t)) - np.outer(t, t) / size**2
            inner[1:, 1:] += c * normal_impulse / size * across
            D[np.ix_(rows, rows)] = inner / self.R[rows]
        return D[:m, :m]

    def minimise(self, x, max_iterations, tolerance):
        """Return the minimiser of the cost, and the number of Newton steps.

        (1 + S A) dx = gamma(u) - x,   S = -d gamma / du
        """
        A, eye = self.A, np.eye(len(x))
        u = A @ x + self.b
        gamma = self.gamma(u)
        count = 0
        while count < max_iterations:
            count += 1
            S = self.slope(u, gamma)
            dx = np.linalg.solve(eye + S @ A, gamma - x)
            du = A @ dx
            step = self._line(x, u, gamma, dx, du)
            x, u = x + step * dx, u + step * du
            gamma = self.gamma(u)
            size = float(np.abs(gamma).max(initial=0.0))
            if np.abs(gamma - x).max(initial=0.0) <= tolerance * size:
                break
            if step * np.abs(dx).max(initial=0.0) <= 1e-16 * size:
                break
        return gamma, count

    def _line(self, x, u, gamma, dx, du):
        """Return the step of smallest cost along dx, by bisection on the slope."""

        def slope(a):
            return float(du @ (x + a * dx - self.gamma(u + a * du)))

        low, high = 0.0, 1.0
        if slope(1.0) <= 1e-3 * abs(slope(0.0)):
            return 1.0
        for _ in range(40):
            middle = (low + high) / 2
            slope_middle = slope(middle)
            if abs(slope_middle) <= 1e-3 * abs(slope(0.0)):
                return middle
            low, high = (middle, high) if slope_middle < 0 else (low, middle)
        return (low + high) / 2


def convex(arrays, max_iterations, tolerance, softness, rounds):
    """Return the impulses of the convex problem by proximal iterations.

        x_next = argmin_K x.T A x / 2 + x.T b + |x - x_now|²_softness / 2

    Args:
        arrays: A problem without free rows.
        max_iterations: Largest number of Newton steps in a round.
        tolerance: Relative tolerance of the law.
        softness: Compliance added in a round, relative to the block's response; less
            where rounds are slow, as with bodies of very different mass.
        rounds: Largest number of rounds.

    Returns:
        Impulses and Newton steps.
    """
    T = arrays.scale
    A, b = arrays.A * T[:, None] * T, T * arrays.b
    y = arrays.project(np.where(T > 0, arrays.warm / np.where(T > 0, T, 1.0), 0.0))
    steps, best, least, since = 0, y, np.inf, 0
    for count in range(rounds):
        R = softness * arrays.blockwise
        softened = Softened(arrays, R, R * y, A, b)
        y, more = softened.minimise(y, max_iterations, tolerance)
        steps += more
        law = arrays.step(T * y, exact=False)
        slow, since = law > SLOW * least, 0 if law < least else since + 1
        if law < least:
            best, least = y, law
        if not law > tolerance or since > PATIENCE or not np.isfinite(y).all():
            break
        if count == PATIENCE and arrays.impossible:
            break
        if slow:
            softness = max(0.01 * softness, HARDEST)
    return T * best, steps


class ConvexNewton(NumpySolver):
    """Impulses of the convex relaxation, by Newton steps with line search (SAP).

        minimise lambda.T (G + R) lambda / 2 + lambda.T b over cones and bounds

    Relaxes: without De Saxce's correction a sliding contact separates, u_n = mu |u_T|.
    All else is exact, and everything without friction. The velocity exists and is
    unique; rigid rows (R = 0) are solved by a few proximal rounds of soft ones.

    Source: LCP-13 (b).
    """

    name = "convex_newton"
    signature = CONTACT_SOLVE
    source = "LCP-13"
    options = {
        "max_iterations": 100,
        "tolerance": 1e-10,
        "softness": 1e-4,
        "rounds": 50,
    }

    def relaxes(self, layout):
        """Return which part of the law is not solved exactly."""
        return "sliding contacts separate" if layout.contacts else ""

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
        softness,
        rounds,
    ):
        """Return one problem's impulses.

        Args:
            layout: Blocks.
            G, b: Delassus matrix and free velocity, (m, m), (m,).
            mu: Friction coefficients, (k,).
            lo, hi: Bounds of boxes, (m,).
            compliance: Diagonal of R, (m,).
            warm: Initial impulses, (m,).
            max_iterations: Largest number of Newton steps in a round.
            tolerance: Relative tolerance of the law.
            softness: Compliance added in a round, relative to the block's response.
            rounds: Largest number of rounds.

        Returns:
            The outputs of CONTACT_SOLVE.
        """
        problem = ProblemArrays(layout, G, b, mu, lo, hi, compliance, warm)
        reduction = problem.without_free_rows()
        x, count = convex(
            reduction.reduced, max_iterations, tolerance, softness, rounds
        )
        law = reduction.reduced.step(x, exact=False)
        return reduction.outputs(x, count, law=law)


@hookimpl
def dyn_solvers():
    """Offer the solvers of this file."""
    return [ConvexNewton()]
