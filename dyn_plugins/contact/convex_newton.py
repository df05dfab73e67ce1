"""Contacts as a convex problem, by Newton's method with line search."""

import numpy as np

from dyn_core import CONTACT_SOLVE, ArraySolver, hookimpl
from dyn_core.contact import Numbers


class Softened:
    """The convex problem with every row soft, in circular cones.

        cost(x) = x.T A x / 2 + sum l(u),   u = A x + b,
        gamma(u) = argmin_K (gamma - y).T R (gamma - y) / 2,   y = -(u - sigma) / R

    The least cost is where x = gamma(u): then x minimises
    x.T (A + R) x / 2 + x.T (b - sigma) over K.

    Args:
        numbers: The problem; its compliance is not in A here.
        R: Compliance of each row, all above zero, alike within a cone's tangents.
        sigma: Velocity that rows want, (m,).
        A, b: Of circular cones, (m, m), (m,).

    Source: LCP-13 (b).
    """

    def __init__(self, numbers, R, sigma, A, b):
        self.numbers, self.R, self.sigma, self.A, self.b = numbers, R, sigma, A, b
        normal, tangents = numbers.places
        self.lower, self.upper = numbers.bounds
        padded = np.append(R, 1.0)
        self.Rn, self.Rt = R[normal], padded[tangents[:, 0]]

    def gamma(self, u):
        """Give impulses for velocities: stick, slip or none at each contact."""
        numbers = self.numbers
        y = (self.sigma - u) / self.R
        c = numbers.coefficients
        n, t = y[numbers.places[0]], numbers.tangents(y)
        size = np.sqrt((t * t).sum(axis=1))
        slope = c * self.Rt / self.Rn
        slip_n = (n + slope * size) / (1 + c * slope)
        stick = size <= c * n
        slip_n = np.where(stick, n, np.maximum(slip_n, 0.0))
        factor = np.where(stick, 1.0, c * slip_n / np.where(size > 0, size, 1.0))
        clipped = np.clip(y, self.lower, self.upper)
        return numbers.spread(clipped, slip_n, factor[:, None] * t)

    def cost(self, x, u, gamma):
        """Give the convex cost at x."""
        y = (self.sigma - u) / self.R
        loss = 0.5 * ((y * self.R) @ y - (y - gamma) @ (self.R * (y - gamma)))
        return 0.5 * x @ (u - self.b) + loss

    def slope(self, u, gamma):
        """Give -d gamma / du, (m, m), positive semidefinite."""
        numbers, m = self.numbers, len(u)
        y = (self.sigma - u) / self.R
        free = (y > self.lower) & (y < self.upper)
        D = np.diag(np.where(free, 1 / self.R, 0.0))
        for k, block in enumerate(numbers.layout.contacts):
            rows = np.array(block.all)
            n, t = y[rows[0]], y[rows[1:]]
            c, size = numbers.coefficients[k], float(np.sqrt(t @ t))
            if size <= c * n:
                continue
            D[np.ix_(rows, rows)] = 0.0
            got = gamma[rows[0]]
            if got <= 0.0 or size == 0.0:
                continue
            slope = c * self.Rt[k] / self.Rn[k]
            way = np.append(1.0, c * t / size)
            turn = np.append(1.0, slope * t / size) / (1 + c * slope)
            inner = np.outer(way, turn)
            across = np.eye(len(t)) - np.outer(t, t) / size**2
            inner[1:, 1:] += c * got / size * across
            D[np.ix_(rows, rows)] = inner / self.R[rows]
        return D[:m, :m]

    def minimise(self, x, max_iterations, tolerance):
        """Give the x of least cost, and Newton steps.

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
        """Give the step to the least cost along dx: bisection on its slope."""

        def slope(a):
            return float(du @ (x + a * dx - self.gamma(u + a * du)))

        low, high = 0.0, 1.0
        if slope(1.0) <= 1e-3 * abs(slope(0.0)):
            return 1.0
        for _ in range(40):
            middle = (low + high) / 2
            at = slope(middle)
            if abs(at) <= 1e-3 * abs(slope(0.0)):
                return middle
            low, high = (middle, high) if at < 0 else (low, middle)
        return (low + high) / 2


def convex(numbers, max_iterations, tolerance, softness, rounds):
    """Give impulses of the convex problem: proximal rounds of softened ones.

        x_next = argmin_K x.T A x / 2 + x.T b + |x - x_now|²_softness / 2

    Args:
        numbers: A problem without free rows.
        max_iterations, tolerance: Most Newton steps of a round; of the law, relative.
        softness: Compliance that is added in a round, over the block's response.
        rounds: Most rounds.

    Returns:
        Impulses and Newton steps.
    """
    T = numbers.scale
    A, b = numbers.A * T[:, None] * T, T * numbers.b
    R = softness * numbers.blockwise
    y = numbers.project(np.where(T > 0, numbers.warm / np.where(T > 0, T, 1.0), 0.0))
    steps = 0
    for _ in range(rounds):
        task = Softened(numbers, R, R * y, A, b)
        y, more = task.minimise(y, max_iterations, tolerance)
        steps += more
        if not numbers.step(T * y, exact=False) > tolerance:
            break
        if not np.isfinite(y).all() or numbers.impossible(T * y):
            break
    return T * y, steps


class ConvexNewton(ArraySolver):
    """Impulses of the convex relaxation, by Newton steps with line search (SAP).

        minimise lambda.T (G + R) lambda / 2 + lambda.T b over cones and bounds

    Relaxes: without De Saxce's correction a sliding contact separates, u_n = mu |u_T|.
    All else is exact, and without friction all is. There is always one velocity, and
    it is found; rigid rows (R = 0) are solved by a few proximal rounds of soft ones.

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
        """Say which part of the law is not solved exactly."""
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
        """Give one problem's impulses.

        Args:
            layout: Blocks.
            G, b: Delassus matrix and free velocity, (m, m), (m,).
            mu: Friction coefficients, (k,).
            lo, hi: Bounds of boxes, (m,).
            compliance: Diagonal of R, (m,).
            warm: Where to begin, (m,).
            max_iterations, tolerance: Most Newton steps a round; of the law, relative.
            softness, rounds: Compliance added in a round, relative; most rounds.

        Returns:
            The outputs of CONTACT_SOLVE.
        """
        whole = Numbers(layout, G, b, mu, lo, hi, compliance, warm)
        reduced = whole.without_free_rows()
        x, count = convex(reduced.inner, max_iterations, tolerance, softness, rounds)
        law = reduced.inner.step(x, exact=False)
        return reduced.answer(x, count, law=law)


@hookimpl
def dyn_solvers():
    """Offer the solvers of this file."""
    return [ConvexNewton()]
