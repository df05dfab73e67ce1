"""One constraint problem as a value, checked on construction."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dyn_core.contact.problem.layout import ConstraintLayout
from dyn_core.contact.problem.problem_arrays import ProblemArrays
from dyn_core.errors import ModelError
from dyn_core.sharing import cached_property

Sweep = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True, eq=False)
class ConstraintProblem:
    """Problem for the impulses that satisfy all constraints of one step.

        velocity = G lambda + b,   u = velocity + R lambda + bias,
        and the law of each block between its rows of lambda and of u

    Args:
        layout: Blocks: a ConstraintLayout, or what ConstraintLayout.of takes in a list.
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
        diagonal: Diagonal of G, (m,), where G is a function.

    Raises:
        ModelError: A number is missing, not finite or out of range; names field, block
            and index.

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
            layout = ConstraintLayout.of(*layout)
        set_field = object.__setattr__
        set_field(self, "layout", layout)
        m, k = layout.m, layout.k
        for field in ("ids", "names"):
            set_field(self, field, _labels(self, field))
        for field, size in (
            ("b", m),
            ("mu", k),
            ("lo", m),
            ("hi", m),
            ("compliance", m),
            ("bias", m),
        ):
            set_field(self, field, self._numbers(field, size))
        if callable(self.G):
            if self.diagonal is None:
                raise ModelError(
                    "diagonal: missing; valid: the diagonal of G, since G is"
                    " a function",
                    "diagonal",
                )
            set_field(self, "diagonal", self._numbers("diagonal", m))
        else:
            set_field(self, "G", self._matrix())
        self._check()

    def _numbers(self, field: str, size: int) -> np.ndarray:
        """Return a field as a checked copy."""
        try:
            values = np.array(getattr(self, field), float)
        except (TypeError, ValueError) as error:
            raise ModelError(f"{field}: valid: numbers", field) from error
        if values.shape not in ((), (size,)):
            raise ModelError(
                f"{field}: shape {values.shape}; valid: ({size},), one for each"
                f" {'coefficient' if field == 'mu' else 'row'}, or one number",
                field,
            )
        full = np.array(np.broadcast_to(values, (size,)))
        bad = np.isnan(full) if field in ("lo", "hi") else ~np.isfinite(full)
        if bad.any():
            index = int(np.flatnonzero(bad)[0])
            raise ModelError(
                f"{field}[{index}] of {self._whose(field, index)} is {full[index]};"
                " valid: a finite number",
                field,
            )
        full.flags.writeable = False
        return full

    def _matrix(self) -> np.ndarray:
        """Return G, checked."""
        m = self.layout.m
        try:
            G: Any = np.array(self.G, float)
        except (TypeError, ValueError) as error:
            raise ModelError("G: valid: numbers, or a function", "G") from error
        G = G.reshape(m, m) if G.size == 0 == m else G
        if G.shape != (m, m):
            raise ModelError(f"G: shape {G.shape}; valid: ({m}, {m})", "G")
        size = float(np.abs(G).max(initial=0.0))
        bad = ~np.isfinite(G)
        what = "not finite"
        if not bad.any():
            d = np.sqrt(np.abs(np.diag(G)))
            bad = np.abs(G - G.T) > 1e-7 * (d[:, None] * d + 1e-9 * size)
            what = "not symmetric"
            if not bad.any():
                bad, what = np.diag(np.diag(G) < 0), "negative on the diagonal"
        if bad.any():
            i, j = (int(x[0]) for x in np.nonzero(bad))
            raise ModelError(
                f"G[{i}, {j}] of {self._whose('G', i)} is {G[i, j]}, {what}; valid: a"
                " symmetric positive semidefinite matrix",
                "G",
            )
        G.flags.writeable = False
        return G

    def _check(self) -> None:
        """Refuse coefficients, bounds and compliances out of range."""
        for field, bad, valid in (
            ("mu", self.mu < 0, "0 or more"),
            ("compliance", self.compliance < 0, "0 or more"),
            ("lo", self._boxes & (self.lo > self.hi), "not above hi"),
            ("lo", self._boxes & (self.lo == np.inf), "below infinity"),
            ("hi", self._boxes & (self.hi == -np.inf), "above minus infinity"),
        ):
            if bad.any():
                index = int(np.flatnonzero(bad)[0])
                value = getattr(self, field)[index]
                raise ModelError(
                    f"{field}[{index}] of {self._whose(field, index)} is {value};"
                    f" valid: {valid}",
                    field,
                )
        arrays = self._parts(np.zeros((0, 0)))
        R = arrays.scale**2 * self.compliance
        for block in self.layout.contacts:
            R_tangent = R[list(block.tangent)]
            if np.ptp(R_tangent) > 1e-9 * R_tangent.max():
                raise ModelError(
                    f"compliance[{block.start + 1}:{block.start + block.rows}] of"
                    f" {self._whose('b', block.start)}: tangent rows differ; valid:"
                    " one compliance, times (largest mu / own mu)² on rows of torsion"
                    " and rolling",
                    "compliance",
                )

    def _whose(self, field: str, index: int) -> str:
        """Name the block of a row or coefficient."""
        for index, block in enumerate(self.layout.blocks):
            rows = (
                range(block.first, block.first + block.count)
                if field == "mu"
                else block.all
            )
            if index in rows:
                name = "" if self.names is None else f" '{self.names[index]}'"
                return f"block {index}{name} ({block.kind})"
        return "the problem"

    @cached_property
    def _boxes(self) -> np.ndarray:
        boxes = np.zeros(self.layout.m, bool)
        for block in self.layout.blocks:
            boxes[list(block.all)] = block.kind == "box"
        return boxes

    def _parts(self, G: np.ndarray) -> ProblemArrays:
        parts = (self.b + self.bias, self.mu, self.lo, self.hi, self.compliance)
        return ProblemArrays(self.layout, G, *parts, np.zeros(self.layout.m))

    @property
    def m(self) -> int:
        """Number of rows."""
        return self.layout.m

    @property
    def matrix_free(self) -> bool:
        """Whether G is a function."""
        return callable(self.G)

    def apply(self, impulse: np.ndarray) -> np.ndarray:
        """Return G lambda, (m,): the velocity that impulses add."""
        if callable(self.G):
            return np.asarray(self.G(impulse), float)
        return self.G @ impulse

    @cached_property
    def matrix(self) -> np.ndarray:
        """G as a matrix, (m, m); of a function column by column, m sweeps."""
        if not callable(self.G):
            return self.G
        columns = [self.apply(unit) for unit in np.eye(self.m)]
        G = np.array(columns).reshape(self.m, self.m)
        return (G + G.T) / 2

    @cached_property
    def arrays(self) -> ProblemArrays:
        """The problem as arrays for NumPy solvers, with the bias added to b."""
        return self._parts(self.matrix)

    def warm(self, earlier: Any = None) -> np.ndarray:
        """Return initial impulses, (m,): earlier ones of blocks with the same ids.

        Blocks that are new, or whose number of rows differs, start at zero.

        Args:
            earlier: A ContactSolution, impulses by id, or those of all rows as an
                array, (m,); None for zeros.

        Raises:
            ModelError: It is none of these, or an impulse is no finite number; names
                its id.
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
        impulses = {key: _impulses(key, x) for key, x in known.items()}
        for key, block in zip(self.ids or (), self.layout.blocks, strict=False):
            if len(impulses.get(key, ())) == block.rows:
                start[list(block.all)] = impulses[key]
        return start

    @cached_property
    def spectrum(self) -> np.ndarray:
        """Eigenvalues of G, ascending, (m,)."""
        return np.linalg.eigvalsh((self.matrix + self.matrix.T) / 2)


def _impulses(key: Hashable, values: Any) -> np.ndarray:
    """Return the impulses of a block for a warm start, checked."""
    try:
        impulses = np.asarray(values, float).ravel()
    except (TypeError, ValueError) as error:
        raise ModelError(f"warm[{key!r}]: valid: numbers", "warm") from error
    if not np.isfinite(impulses).all():
        raise ModelError(
            f"warm[{key!r}] is {impulses.tolist()}; valid: finite numbers", "warm"
        )
    return impulses


def _labels(problem: Any, field: str) -> tuple[Any, ...] | None:
    """Return ids or names as a tuple, checked."""
    labels, count = getattr(problem, field), len(problem.layout.parts)
    if labels is None:
        return None
    labels = tuple(labels)
    if len(labels) != count:
        raise ModelError(
            f"{field}: {len(labels)}; valid: {count}, one per block", field
        )
    try:
        different = len({*labels})
    except TypeError as error:
        raise ModelError(f"{field}: {error}; valid: hashable values", field) from error
    if field == "ids" and different != count:
        twice = next(x for x in labels if labels.count(x) > 1)
        raise ModelError(f"ids: {twice!r} occurs twice; valid: one per block", field)
    return labels
