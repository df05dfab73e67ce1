"""The numbers of a constraint problem as arrays, and what array solvers share."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from dyn_core.contact.laws import (
    CONVERGED,
    GROWTH,
    HUGE,
    INFEASIBLE,
    MAX_ITERATIONS,
    law_residuals,
    weights,
)
from dyn_core.contact.layout import ConstraintLayout

_FREE = ("bilateral", "prescribed")
RANK = 1e-10  # relative to the largest eigenvalue of G with unit diagonal


@dataclass(frozen=True)
class Numbers:
    """One problem: u = (G + R) lambda + b, and the bounds and cones of lambda.

    Attributes:
        layout: Blocks.
        G: Delassus matrix, (m, m) [(m/s)/(N·s)].
        b: Free velocity, (m,) [m/s].
        mu: Friction coefficients, (k,) [1 | m].
        lo, hi: Bounds of boxes, (m,) [N·s].
        compliance: Diagonal of R, (m,) [(m/s)/(N·s)].
        warm: Where to begin, (m,) [N·s].
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
        """Least and largest impulse of each row; rows of cones have none."""
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
        """Weights T of rows: lambda = T y puts y in circular cones, (m,)."""
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
    def places(self) -> tuple[np.ndarray, np.ndarray]:
        """Normal row (c,) and tangent rows (c, 5) of contacts; m stands for none."""
        blocks = self.layout.contacts
        tangents = np.full((len(blocks), 5), len(self.b))
        for k, block in enumerate(blocks):
            tangents[k, : block.rows - 1] = list(block.tangent)
        return np.array([b.start for b in blocks], int), tangents

    @cached_property
    def blockwise(self) -> np.ndarray:
        """Largest response of each row's block, rows of other kinds their own, (m,)."""
        largest = self.response.copy()
        for block in self.layout.contacts:
            largest[list(block.all)] = largest[list(block.all)].max()
        return np.where(largest > 0, largest, 1.0)

    def tangents(self, x: np.ndarray) -> np.ndarray:
        """Give the tangent entries of each contact, (contacts, 5), zeros behind."""
        return np.append(x, 0.0)[self.places[1]]

    def spread(self, x: np.ndarray, n: np.ndarray, t: np.ndarray) -> np.ndarray:
        """Put normal (c,) and tangent entries (c, 5) of contacts into a copy of x."""
        longer = np.append(x, 0.0)
        longer[self.places[1]], longer[self.places[0]] = t, n
        return longer[:-1]

    def project(self, x: np.ndarray) -> np.ndarray:
        """Give the nearest point of bounds and circular cones (of y, not lambda)."""
        c, (normal, _) = self.coefficients, self.places
        n, t = x[normal], self.tangents(x)
        size = np.sqrt((t * t).sum(axis=1))
        inside, polar = size <= c * n, c * size <= -n
        alpha = np.where(polar, 0.0, np.maximum((n + c * size) / (1 + c * c), 0.0))
        factor = np.where(inside, 1.0, c * alpha / np.where(size > 0, size, 1.0))
        clipped = np.clip(x, *self.bounds)
        return self.spread(clipped, np.where(inside, n, alpha), factor[:, None] * t)

    def correction(self, u: np.ndarray) -> np.ndarray:
        """Give De Saxce's s for velocities of y: c |u_T| on normal rows, (m,)."""
        s = np.zeros(len(u))
        size = np.sqrt((self.tangents(u) ** 2).sum(axis=1))
        s[self.places[0]] = self.coefficients * size
        return s

    def step(self, impulse: np.ndarray, exact: bool = True) -> float:
        """Give how far a projection moves lambda, relative; zero where the laws hold.

        Args:
            impulse: lambda, (m,).
            exact: Whether De Saxce's correction belongs to the law.
        """
        y = impulse / np.where(self.scale > 0, self.scale, 1.0)
        u = self.scale * (self.A @ impulse + self.b)
        s = self.correction(u) if exact else 0.0
        moved = np.abs(self.project(y - (u + s) / self.blockwise) - y)
        size = np.abs(y)
        for block in self.layout.contacts:
            size[list(block.all)] = size[list(block.all)].max()
        whole = self.speed + GROWTH * self.blockwise * size
        relative = self.blockwise * moved / np.where(whole > 0, whole, 1.0)
        return float(relative.max(initial=0.0))

    @property
    def speed(self) -> float:
        """Largest free velocity: what velocities are measured against [m/s]."""
        return float(np.abs(self.b).max(initial=0.0))

    def impossible(self, impulse: np.ndarray) -> bool:
        """Whether the direction of a grown lambda proves that no solution exists.

        A d that may grow forever, with (G + R) d = 0 and b . d < 0, is against
        d . u >= 0; with friction only if it does not need De Saxce's correction.
        """
        size = float(np.abs(impulse).max(initial=0.0))
        usual = float((np.abs(self.b) / self.blockwise).max(initial=0.0))
        if not size > 1e3 * usual or not np.isfinite(size):
            return False
        unit = 1 / np.sqrt(self.blockwise)
        values, V = np.linalg.eigh(self.A * unit[:, None] * unit)
        V = V[:, values <= RANK * values.max(initial=0.0)]
        d = unit * (V @ (V.T @ (impulse / unit)))
        most = float(np.abs(d).max(initial=0.0))
        if not most > 0.5 * size:
            return False
        d = d / most
        lower, upper = self.bounds
        out = np.maximum(np.where(np.isfinite(lower), -d, 0.0), 0.0)
        out = np.maximum(out, np.where(np.isfinite(upper), d, 0.0))
        out[self.places[0]] = self.coefficients * np.abs(d[self.places[0]])
        grows = self.b @ d < -1e-9 * self.speed
        return bool(grows and out.max() < 1e-6)

    def answer(
        self,
        impulse: np.ndarray,
        iterations: int,
        status: float | None = None,
        law: float | None = None,
        tolerance: float = 1e-6,
    ) -> tuple[Any, ...]:
        """Give the outputs of CONTACT_SOLVE.

        Args:
            impulse: lambda, (m,).
            iterations: How many it took.
            status: One of laws.STATUSES; None: converged where the law holds.
            law: How far it is from the solver's own law [1]; None: the exact one.
            tolerance: Of the law.
        """
        u = self.A @ impulse + self.b
        found = law_residuals(
            self.layout,
            impulse.tolist(),
            u.tolist(),
            self.mu.tolist(),
            self.lo.tolist(),
            self.hi.tolist(),
            self.response.tolist(),
            self.speed,
        )
        law = found[4] if law is None else law
        if status is None or status == CONVERGED:
            status = CONVERGED if law <= tolerance else MAX_ITERATIONS  # NaN, too
        velocity = self.G @ impulse + self.b
        return impulse, velocity, np.array([*found[:4], law]), float(iterations), status

    def without_free_rows(self) -> Reduced:
        """Give the problem without rows whose impulse is free: solved by least norm.

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
        inner = replace(
            self,
            layout=ConstraintLayout(tuple(parts)),
            G=self.A[np.ix_(rest, rest)] - self.A[np.ix_(rest, free)] @ across,
            b=self.b[rest] + self.A[np.ix_(rest, free)] @ start,
            lo=self.lo[rest],
            hi=self.hi[rest],
            compliance=np.zeros(int(rest.sum())),
            warm=self.warm[rest],
        )
        return Reduced(self, inner, free, start, across)


@dataclass(frozen=True)
class Reduced:
    """A problem whose free rows are solved for.

    Attributes:
        whole, inner: The problem with and without them.
        free: Which rows they are, (m,).
        start, across: Their impulse: start - across @ (the others').
    """

    whole: Numbers
    inner: Numbers
    free: np.ndarray
    start: np.ndarray
    across: np.ndarray

    def widen(self, impulse: np.ndarray) -> np.ndarray:
        """Give all impulses, (m,), from those of the inner problem."""
        all_rows = np.zeros(len(self.free))
        all_rows[~self.free] = impulse
        all_rows[self.free] = self.start - self.across @ impulse
        return all_rows

    def contradicts(self, impulse: np.ndarray) -> bool:
        """Whether free rows ask for what no impulse can do."""
        whole = self.whole
        u = whole.A @ impulse + whole.b
        scale = np.abs(whole.b).max(initial=0.0)
        scale = max(scale, (whole.response * np.abs(impulse)).max(initial=0.0))
        return bool((np.abs(u[self.free]) > 1e-7 * scale).any())

    def answer(
        self,
        impulse: np.ndarray,
        iterations: int,
        status: float | None = None,
        law: float | None = None,
        tolerance: float = 1e-6,
    ) -> tuple[Any, ...]:
        """Give the outputs of CONTACT_SOLVE from impulses of the inner problem."""
        found = self.widen(impulse)
        if self.contradicts(found) and status in (None, CONVERGED):
            status = INFEASIBLE
        given = self.whole.answer(found, iterations, status, law, tolerance)
        if given[4] == MAX_ITERATIONS and self.inner.impossible(impulse):
            given = (*given[:4], INFEASIBLE)
        return given
