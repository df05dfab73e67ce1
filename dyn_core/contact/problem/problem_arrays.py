"""A constraint problem as arrays, with the operations that NumPy solvers share."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dyn_core.contact.problem.layout import ConstraintLayout
from dyn_core.contact.problem.residuals import GROWTH, HUGE, weights
from dyn_core.sharing import cached_property

_FREE = ("bilateral", "prescribed")
RANK = 1e-10  # relative to the largest eigenvalue of G with unit diagonal


@dataclass(frozen=True)
class ProblemArrays:
    """One constraint problem: u = (G + R) lambda + b, bounds and cones of lambda.

    Attributes:
        layout: Blocks.
        G: Delassus matrix, (m, m) [(m/s)/(N·s)].
        b: Free velocity, (m,) [m/s].
        mu: Friction coefficients, (k,) [1 | m].
        lo, hi: Bounds of boxes, (m,) [N·s].
        compliance: Diagonal of R, (m,) [(m/s)/(N·s)].
        warm: Initial impulses, (m,) [N·s].
    """

    layout: ConstraintLayout
    G: np.ndarray
    b: np.ndarray
    mu: np.ndarray
    lo: np.ndarray
    hi: np.ndarray
    compliance: np.ndarray
    warm: np.ndarray

    @cached_property
    def A(self) -> np.ndarray:
        """G + R, (m, m), symmetric."""
        return (self.G + self.G.T) / 2 + np.diag(self.compliance)

    @cached_property
    def response(self) -> np.ndarray:
        """Diagonal of G + R, (m,)."""
        return np.diag(self.A).copy()

    @cached_property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper bound of each row's impulse; infinite for rows of cones."""
        lower, upper = np.full(len(self.b), -np.inf), np.full(len(self.b), np.inf)
        for block in self.layout.blocks:
            rows = list(block.all)
            if block.kind == "unilateral" or (block.kind, block.rows) == ("contact", 1):
                lower[rows] = 0.0
            elif block.kind == "box":
                lower[rows], upper[rows] = self.lo[rows], self.hi[rows]
        return (
            np.where(lower < -HUGE, -np.inf, lower),
            np.where(upper > HUGE, np.inf, upper),
        )

    @cached_property
    def scale(self) -> np.ndarray:
        """Weights T of rows: in lambda = T y the cones of y are circular, (m,)."""
        scale = np.ones(len(self.b))
        for block in self.layout.contacts:
            scale[list(block.tangent)] = weights(block, self.mu.tolist())[1]
        return scale

    @cached_property
    def coefficients(self) -> np.ndarray:
        """Coefficient of each contact's circular cone, (contacts,)."""
        blocks = self.layout.contacts
        return np.array([weights(b, self.mu.tolist())[0] for b in blocks], float)

    @cached_property
    def contact_rows(self) -> tuple[np.ndarray, np.ndarray]:
        """Normal row (c,) and tangent rows (c, 5) of contacts, padded with m."""
        blocks = self.layout.contacts
        tangents = np.full((len(blocks), 5), len(self.b))
        for k, block in enumerate(blocks):
            tangents[k, : block.rows - 1] = list(block.tangent)
        return np.array([b.start for b in blocks], int), tangents

    @cached_property
    def blockwise(self) -> np.ndarray:
        """Response of each row, in contacts the largest of the block, (m,)."""
        largest = self.response.copy()
        for block in self.layout.contacts:
            largest[list(block.all)] = largest[list(block.all)].max()
        return np.where(largest > 0, largest, 1.0)

    def tangents(self, x: np.ndarray) -> np.ndarray:
        """Return the tangent entries of contacts, (c, 5), padded with zeros."""
        return np.append(x, 0.0)[self.contact_rows[1]]

    def spread(self, x: np.ndarray, n: np.ndarray, t: np.ndarray) -> np.ndarray:
        """Return x with normal (c,) and tangent entries (c, 5) of contacts replaced."""
        longer = np.append(x, 0.0)
        longer[self.contact_rows[1]], longer[self.contact_rows[0]] = t, n
        return longer[:-1]

    def project(self, x: np.ndarray) -> np.ndarray:
        """Return the projection of y on bounds and circular cones."""
        c, (normal, _) = self.coefficients, self.contact_rows
        n, t = x[normal], self.tangents(x)
        size = np.sqrt((t * t).sum(axis=1))
        polar = c * size <= -n  # first: with c = 0 it holds where |t| <= c n does
        inside = (size <= c * n) & ~polar
        alpha = np.where(polar, 0.0, np.maximum((n + c * size) / (1 + c * c), 0.0))
        factor = np.where(inside, 1.0, c * alpha / np.where(size > 0, size, 1.0))
        clipped = np.clip(x, *self.bounds)
        return self.spread(clipped, np.where(inside, n, alpha), factor[:, None] * t)

    def correction(self, u: np.ndarray) -> np.ndarray:
        """Return De Saxce's correction s: c |u_T| on normal rows, (m,)."""
        s = np.zeros(len(u))
        size = np.sqrt((self.tangents(u) ** 2).sum(axis=1))
        s[self.contact_rows[0]] = self.coefficients * size
        return s

    def step(self, impulse: np.ndarray, exact: bool = True) -> float:
        """Return the relative step of a projection of lambda; zero at a solution.

        Args:
            impulse: lambda, (m,).
            exact: Whether the law includes De Saxce's correction.
        """
        T = self.scale
        y = impulse / np.where(T > 0, T, 1.0)
        u = T * (self.A @ impulse + self.b)
        s = self.correction(u) if exact else 0.0
        start = np.where(T > 0, y, 0.0)  # a row without a coefficient has no impulse
        moved = np.abs(self.project(start - (u + s) / self.blockwise) - y)
        size = np.abs(y)
        for block in self.layout.contacts:
            size[list(block.all)] = size[list(block.all)].max()
        scale = self.speed + GROWTH * self.blockwise * size
        relative = self.blockwise * moved / np.where(scale > 0, scale, 1.0)
        return float(relative.max(initial=0.0))

    @property
    def speed(self) -> float:
        """Largest free velocity, the scale of velocities [m/s]."""
        return float(np.abs(self.b).max(initial=0.0))

    @cached_property
    def impossible(self) -> bool:
        """Whether a direction of impulses proves that no solution exists.

        Pushes d >= 0 of normals, unilateral and one-sided rows with (G + R) d = 0 and
        b . d < 0 contradict d . u >= 0, which holds for every solution, with friction,
        too: no law lets a contact close.
        """
        from scipy.optimize import nnls  # not at `import dyn_core`

        columns = self._pushes()
        unit = 1 / np.sqrt(self.blockwise)
        A, b = self.A * unit[:, None] * unit, self.b * unit
        speed = float(np.abs(b).max(initial=0.0))
        if not columns or not speed or not np.isfinite(A).all():
            return False
        D = np.array(columns).T
        system = np.vstack([A @ D, (b / speed) @ D])
        try:
            d, _ = nnls(system, np.append(np.zeros(len(b)), -1.0))
        except RuntimeError:  # no end of its iterations: nothing is proven
            return False
        off = np.abs(A @ (D @ d)).max() if d.any() else np.inf
        return bool(off <= RANK * d.max(initial=0.0) and (b / speed) @ D @ d < -0.5)

    def _pushes(self) -> list[np.ndarray]:
        """Return the directions in which impulses have no end, one row at a time."""
        (lower, upper), eye = self.bounds, np.eye(len(self.b))
        conic = np.zeros(len(self.b), bool)
        for block in self.layout.contacts:
            conic[list(block.all)] = True
        up = ~conic & np.isposinf(upper)
        up[self.contact_rows[0]] = True
        return [*eye[up], *-eye[~conic & np.isneginf(lower)]]

    def without_free_rows(self) -> ReducedProblem:
        """Return the problem without its free rows, eliminated by least norm.

        lambda_f = -A_ff^+ (b_f + A_fc lambda_c)
        """
        blocks = self.layout.blocks
        free = np.zeros(len(self.b), bool)
        parts: list[tuple[str, int]] = []
        lower, upper = self.bounds
        for block in blocks:
            for row in block.all:
                free[row] = block.kind in _FREE or (
                    block.kind == "box" and np.isinf([lower[row], upper[row]]).all()
                )
            if block.kind == "contact":
                parts.append((block.kind, block.rows))
            else:
                kept = [row for row in block.all if not free[row]]
                parts += [(block.kind, 1)] * len(kept)
        rest = ~free
        unit = 1 / np.sqrt(np.where(self.response > 0, self.response, 1.0))[free]
        scaled = self.A[np.ix_(free, free)] * unit[:, None] * unit
        inverse = np.linalg.pinv(scaled, rcond=RANK, hermitian=True)
        inverse = inverse * unit[:, None] * unit
        across = inverse @ self.A[np.ix_(free, rest)]
        start = -inverse @ self.b[free]
        reduced = replace(
            self,
            layout=ConstraintLayout(tuple(parts)),
            G=self.A[np.ix_(rest, rest)] - self.A[np.ix_(rest, free)] @ across,
            b=self.b[rest] + self.A[np.ix_(rest, free)] @ start,
            lo=self.lo[rest],
            hi=self.hi[rest],
            compliance=np.zeros(int(rest.sum())),
            warm=self.warm[rest],
        )
        return ReducedProblem(self, reduced, free, start, across)


@dataclass(frozen=True)
class ReducedProblem:
    """A problem and its reduction by the elimination of free rows.

    Attributes:
        original, reduced: The problem with and without free rows.
        free: Mask of the free rows, (m,).
        start, across: Impulses of the free rows: start - across @ (other impulses).
    """

    original: ProblemArrays
    reduced: ProblemArrays
    free: np.ndarray
    start: np.ndarray
    across: np.ndarray

    def widen(self, impulse: np.ndarray) -> np.ndarray:
        """Return all impulses, (m,), from those of the reduced problem."""
        all_rows = np.zeros(len(self.free))
        all_rows[~self.free] = impulse
        all_rows[self.free] = self.start - self.across @ impulse
        return all_rows

    def contradicts(self, impulse: np.ndarray) -> bool:
        """Whether no impulses satisfy the free rows."""
        problem = self.original
        u = problem.A @ impulse + problem.b
        scale = np.abs(problem.b).max(initial=0.0)
        scale = max(scale, (problem.response * np.abs(impulse)).max(initial=0.0))
        return bool((np.abs(u[self.free]) > 1e-7 * scale).any())
