"""A constraint problem as arrays, with the operations that NumPy solvers share."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dyn_core.contact.problem.layout import ConstraintLayout
from dyn_core.contact.problem.projections import HUGE
from dyn_core.contact.problem.residuals import law_residuals, row_projection, weights
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
            if block.kind == "contact" and block.rows > 1:
                continue
            for i in block.all:
                lower[i], upper[i] = (
                    row_projection(block.kind, x, self.lo[i], self.hi[i])
                    for x in (-np.inf, np.inf)
                )
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
    def blockwise(self) -> np.ndarray:
        """Response of each row, in contacts the largest of the block, (m,)."""
        largest = self.response.copy()
        for block in self.layout.contacts:
            largest[list(block.all)] = largest[list(block.all)].max()
        return np.where(largest > 0, largest, 1.0)

    def law(self, impulse: np.ndarray, exact: bool = True) -> float:
        """Return the residual of the law for some impulses; see law_residuals."""
        u = self.A @ impulse + self.b
        x, u, mu, lo, hi, response = (
            part.tolist()
            for part in (impulse, u, self.mu, self.lo, self.hi, self.response)
        )
        values = law_residuals(
            self.layout, x, u, mu, lo, hi, response, self.speed, exact
        )
        return float(values[4])

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
        up[[block.start for block in self.layout.contacts]] = True
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
