"""One constraint problem as a frozen value, checked on construction.

Beside its fields it offers the quantities that all NumPy solvers need: the matrix with
compliance, bounds, cone scales, and the problem with free rows eliminated.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dyn_core.contact.problem.layout import ConstraintLayout, without_rows
from dyn_core.contact.problem.problem_checks import (
    labels,
    matrix,
    numbers,
    refuse_bad_numbers,
)
from dyn_core.contact.problem.projections import HUGE
from dyn_core.contact.problem.residuals import law_residuals, weights
from dyn_core.errors import ModelError
from dyn_core.sharing import cached_property
from dyn_core.validation import shown

Sweep = Callable[[np.ndarray], np.ndarray]

RANK = 1e-10  # relative to the largest eigenvalue of G with unit diagonal


@dataclass(frozen=True, eq=False)
class ConstraintProblem:
    """Problem for the impulses that satisfy all constraints of one step.

        velocity = G lambda + b,   u = velocity + R lambda + bias,
        and the law of each block between its rows of lambda and of u

    The layout has m rows and k friction coefficients.
    Matrix and arrays are stored as read-only copies; one number becomes a full array.
    Arrays that are computed from them are cached, and writable.

    Args:
        layout: Blocks: a ConstraintLayout, or the arguments of ConstraintLayout.of in a
            list.
        G: Delassus matrix J H^-1 J.T, (m, m), symmetric and positive semidefinite, or
            a function that returns G lambda for lambda; then `diagonal` is needed.
        b: Free velocity of the rows, (m,) [m/s | rad/s].
        mu: Friction coefficients in the order of the layout, (k,) or one for all.
        lo, hi: Bounds of box rows, (m,) or one for all [N·s | N·m·s]; unused in
            other rows.
        compliance: R, (m,) or one for all [(m/s)/(N·s)]; the tangent rows of a contact
            must have equal values (times the squares of their coefficients).
        bias: Velocity added in the law: gap/h, e times the speed of approach, minus a
            prescribed velocity, (m,) or one for all [m/s].
        ids: One hashable key per block, for warm starts; or None.
        names: One name per block, for reports; or None.
        diagonal: Diagonal of G, (m,), where G is a function; else unused.

    Raises:
        ModelError: The layout is invalid, an array has the wrong shape, a number is
            missing, not finite or out of range, G is not symmetric, or ids are not
            unique; names the field and, for a number, its block and index.

    Source: LCP-1, LCP-9 (sweeps), LCP-19.
    """

    layout: ConstraintLayout
    G: np.ndarray | Sweep
    b: np.ndarray
    mu: Any = 0.0
    lo: Any = 0.0
    hi: Any = np.inf
    compliance: Any = 0.0
    bias: Any = 0.0
    ids: tuple[Hashable, ...] | None = None
    names: tuple[str, ...] | None = None
    diagonal: np.ndarray | None = None

    def __post_init__(self) -> None:
        layout: Any = self.layout
        if not isinstance(layout, ConstraintLayout):
            if not isinstance(layout, (list, tuple)):
                valid = "a ConstraintLayout, or a list of its blocks"
                raise ModelError(f"layout is {shown(layout)}; valid: {valid}", "layout")
            layout = ConstraintLayout.of(*layout)
        set_field = object.__setattr__
        set_field(self, "layout", layout)
        m, k = layout.m, layout.k
        for field in ("ids", "names"):
            set_field(self, field, labels(self, field))
        for field, size in (
            ("b", m),
            ("mu", k),
            ("lo", m),
            ("hi", m),
            ("compliance", m),
            ("bias", m),
        ):
            set_field(self, field, numbers(self, field, size))
        if not callable(self.G):
            set_field(self, "G", matrix(self))
        elif self.diagonal is None:
            raise ModelError(
                "diagonal: missing; valid: the diagonal of G, since G is a function",
                "diagonal",
            )
        else:
            set_field(self, "diagonal", numbers(self, "diagonal", m))
        refuse_bad_numbers(self)

    @classmethod
    def of_arrays(
        cls,
        layout: ConstraintLayout,
        G: Any,
        b: np.ndarray,
        mu: np.ndarray,
        lo: np.ndarray,
        hi: np.ndarray,
        compliance: np.ndarray,
        ids: tuple[Hashable, ...] | None = None,
        diagonal: np.ndarray | None = None,
    ) -> ConstraintProblem:
        """Return a problem of arrays that have the right sizes, without any check.

        The arrays are stored without a copy; names are None.

        Args:
            layout, G, mu, lo, hi, compliance, ids, diagonal: As in ConstraintProblem,
                all arrays full.
            b: Free velocity of the rows plus bias, (m,) [m/s | rad/s]; `bias` becomes
                zero.
        """
        problem: ConstraintProblem = object.__new__(cls)
        problem.__dict__.update(
            layout=layout,
            G=G,
            b=b,
            mu=mu,
            lo=lo,
            hi=hi,
            compliance=compliance,
            bias=np.zeros(len(b)),
            ids=ids,
            diagonal=diagonal,
        )
        return problem

    @property
    def m(self) -> int:
        """Number of rows."""
        return self.layout.m

    @property
    def matrix_free(self) -> bool:
        """Whether G is a function."""
        return callable(self.G)

    def apply(self, impulse: np.ndarray) -> np.ndarray:
        """Return the velocity that impulses add, G lambda, (m,) [m/s | rad/s].

        Args:
            impulse: lambda, (m,) [N·s | N·m·s]; another length raises ValueError if
                G is a matrix, else a function G gets it.
        """
        if callable(self.G):
            return np.asarray(self.G(impulse), float)
        return self.G @ impulse

    @cached_property
    def matrix(self) -> np.ndarray:
        """G as a matrix, (m, m): the stored array itself, not a copy.

        A function G is evaluated for each unit vector (m sweeps) and the result
        symmetrised; this array is cached and writable. Its numbers are not checked; a
        vector of another length than m raises a ValueError.
        """
        if not callable(self.G):
            return self.G
        columns = [self.apply(unit) for unit in np.eye(self.m)]
        G = np.array(columns).reshape(self.m, self.m)
        return (G + G.T) / 2

    def warm(self, earlier: Any = None) -> np.ndarray:
        """Return initial impulses for a warm start, (m,), matched to blocks by id.

        Blocks without an earlier impulse, or with another number of rows, start at
        zero; so do all blocks of a problem without ids. An array (m,) of floats is
        returned without a copy.

        Args:
            earlier: A ContactSolution, a mapping from id to the impulses of a block
                (ids of no block are ignored), or the impulses of all rows as an array,
                (m,); None for zeros.

        Raises:
            ModelError: `earlier` has another type or shape, or an impulse is not a
                finite number; names its id.
        """
        if isinstance(earlier, np.ndarray) and earlier.shape == (self.m,):
            return _impulses("all rows", earlier)
        start = np.zeros(self.m)
        known = getattr(earlier, "by_id", {} if earlier is None else earlier)
        if not isinstance(known, Mapping):
            raise ModelError(
                f"warm is {earlier!r}; valid: a ContactSolution, impulses by id, None",
                "warm",
            )
        by_id = {key: _impulses(key, x) for key, x in known.items()}
        for key, block in zip(self.ids or (), self.layout.blocks, strict=False):
            if len(by_id.get(key, ())) == block.rows:
                start[list(block.all)] = by_id[key]
        return start

    @cached_property
    def spectrum(self) -> np.ndarray:
        """Eigenvalues of G, ascending, (m,); a function G is evaluated as in `matrix`.

        If its numbers are not finite, they are NaN or raise a LinAlgError.
        """
        return np.linalg.eigvalsh((self.matrix + self.matrix.T) / 2)

    @cached_property
    def offset(self) -> np.ndarray:
        """Velocity u at zero impulses, b + bias, (m,)."""
        return self.b + self.bias

    @cached_property
    def A(self) -> np.ndarray:
        """G + R, (m, m), symmetric; a function G is evaluated as in `matrix`."""
        return (self.matrix + self.matrix.T) / 2 + np.diag(self.compliance)

    @cached_property
    def response(self) -> np.ndarray:
        """Diagonal of G + R, (m,), of the matrix A; cached and writable.

        A function G is evaluated m times, see `matrix`; `diagonal` is not used.
        """
        return np.diag(self.A).copy()

    @cached_property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper bound of each row's impulse, (m,) each.

        Box rows have lo and hi, unilateral rows and contacts of one row 0 and inf, all
        others -inf and inf. Bounds beyond HUGE (1e300) become infinite.
        """
        boxes = self.layout.boxes
        lower = np.where(boxes, self.lo, np.where(self.layout.one_sided, 0.0, -np.inf))
        upper = np.where(boxes, self.hi, np.inf)
        lower[lower < -HUGE], upper[upper > HUGE] = -np.inf, np.inf
        return lower, upper

    @cached_property
    def scale(self) -> np.ndarray:
        """Weights T of rows, (m,): with lambda = T y friction cones are circular.

        1 outside of tangent rows and in contacts of two or three rows; in contacts with
        torsion or rolling the coefficient over the largest of the block, so 0 for a
        zero coefficient.
        """
        scale = np.ones(self.m)
        for block in self.layout.contacts:
            scale[list(block.tangent)] = weights(block, self.mu.tolist())[1]
        return scale

    @cached_property
    def coefficients(self) -> np.ndarray:
        """Friction coefficient of each contact's circular cone, (contacts,).

        The largest coefficient of each block in layout.contacts, in their order.
        Contacts of one row have no entry.
        """
        blocks = self.layout.contacts
        return np.array([weights(b, self.mu.tolist())[0] for b in blocks], float)

    @cached_property
    def blockwise(self) -> np.ndarray:
        """Scale of each row's response, (m,), above zero.

        It is the `response` of the row, but the largest of the block in contacts; 1
        where it is zero.
        """
        largest = self.response.copy()
        for block in self.layout.contacts:
            largest[list(block.all)] = largest[list(block.all)].max()
        return np.where(largest > 0, largest, 1.0)

    def law(self, impulse: np.ndarray, exact: bool = True) -> float:
        """Return the relative residual of the law, the largest over the blocks [1].

        NaN if an impulse or velocity is not finite; 0 without blocks.

        Args:
            impulse: lambda, (m,) [N·s | N·m·s]; ValueError for another length.
            exact: Whether Coulomb's law is meant; False: its convex relaxation, see
                law_residuals.
        """
        u = self.A @ impulse + self.offset
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
        """Scale of velocities: largest magnitude of `offset` [m/s]; 0 without rows."""
        return float(np.abs(self.offset).max(initial=0.0))

    @cached_property
    def impossible(self) -> bool:
        """Whether a direction of impulses proves that no solution exists.

        A direction d along which impulses are unbounded (of a contact only the normal
        one, see _pushes), with (G + R) d = 0 and (b + bias) . d < 0, contradicts
        d . u >= 0, which holds for every solution with or without friction: no law lets
        a contact close. d is sought by non-negative least squares. False where no proof
        is found, also if (G + R) is not finite or the least squares do not converge.
        """
        from scipy.optimize import nnls  # not at `import dyn_core`

        columns = self._pushes()
        unit = 1 / np.sqrt(self.blockwise)
        A, b = self.A * unit[:, None] * unit, self.offset * unit
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
        """Return the unit vectors, (m,) each, along which one impulse is unbounded.

        Of a contact this is its first row, upwards; of other blocks all rows where
        `bounds` is infinite, and downwards minus the unit vector.
        """
        (lower, upper), eye = self.bounds, np.eye(self.m)
        conic = np.zeros(self.m, bool)
        for block in self.layout.contacts:
            conic[list(block.all)] = True
        up = ~conic & np.isposinf(upper)
        up[[block.start for block in self.layout.contacts]] = True
        return [*eye[up], *-eye[~conic & np.isneginf(lower)]]

    def without_free_rows(self) -> ReducedProblem:
        """Return the problem with free rows eliminated by the least-norm solution.

            lambda_f = -A_ff^+ (b_f + A_fc lambda_c)

        Free rows f are bilateral and prescribed ones, and boxes with two infinite
        bounds. The G of the reduced problem contains the compliance, its b the bias; it
        has no ids and no names. Free rows that contradict each other are no error: see
        ReducedProblem.contradicts.
        """
        free, boxes = self.layout.free, self.layout.boxes
        free = free | (boxes & np.isinf(self.bounds).all(axis=0))
        rest, A, b = ~free, self.A, self.offset
        unit = 1 / np.sqrt(np.where(self.response > 0, self.response, 1.0))[free]
        scaled = A[np.ix_(free, free)] * unit[:, None] * unit
        inverse = np.linalg.pinv(scaled, rcond=RANK, hermitian=True)
        inverse = inverse * unit[:, None] * unit
        across = inverse @ A[np.ix_(free, rest)]
        start = -inverse @ b[free]
        reduced = ConstraintProblem.of_arrays(
            without_rows(self.layout, free.tobytes()),
            A[np.ix_(rest, rest)] - A[np.ix_(rest, free)] @ across,
            b[rest] + A[np.ix_(rest, free)] @ start,
            self.mu,
            self.lo[rest],
            self.hi[rest],
            np.zeros(int(rest.sum())),
        )
        return ReducedProblem(self, reduced, free, start, across)


def _impulses(key: Hashable, values: Any) -> np.ndarray:
    """Return finite impulses of a block for a warm start, flattened row by row."""
    try:
        impulses = np.asarray(values, float).ravel()
    except (TypeError, ValueError, OverflowError) as error:
        raise ModelError(f"warm[{key!r}]: valid: numbers", "warm") from error
    if not np.isfinite(impulses).all():
        raise ModelError(
            f"warm[{key!r}] is {impulses.tolist()}; valid: finite numbers", "warm"
        )
    return impulses


@dataclass(frozen=True)
class ReducedProblem:
    """A problem and its reduction by the elimination of free rows.

    Attributes:
        original, reduced: The problem with and without free rows; n of its m rows
            remain.
        free: Mask of the free rows, (m,).
        start, across: Free impulses as a function of the others, (m - n,), (m - n, n):
            start - across @ (impulses of the reduced problem).
    """

    original: ConstraintProblem
    reduced: ConstraintProblem
    free: np.ndarray
    start: np.ndarray
    across: np.ndarray

    def widen(self, impulse: np.ndarray) -> np.ndarray:
        """Return the impulses of the original problem, (m,).

        Args:
            impulse: Impulses of the reduced problem, (n,).
        """
        all_rows = np.zeros(len(self.free))
        all_rows[~self.free] = impulse
        all_rows[self.free] = self.start - self.across @ impulse
        return all_rows

    def contradicts(self, impulse: np.ndarray) -> bool:
        """Return whether the free rows have no solution: `widen` leaves them moving.

        Their velocity u, which should be zero, counts above 1e-7 of the scale of free
        velocities and responses.

        Args:
            impulse: Result of `widen`, (m,).
        """
        problem = self.original
        u = problem.A @ impulse + problem.offset
        scale = np.abs(problem.offset).max(initial=0.0)
        scale = max(scale, (problem.response * np.abs(impulse)).max(initial=0.0))
        return bool((np.abs(u[self.free]) > 1e-7 * scale).any())
